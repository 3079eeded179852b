"""Emits the entry points: promotion and checks belong to kernels and loops; here is what surrounds them for autograd."""

import re

from expression import Compiler, Value
from schema import TableError


def signature(op, suffix="", extra=(), prefix="msa_"):
    """C prototype of an entry point, without the semicolon."""
    params = [p.declaration for p in op.params] + list(extra)
    if not suffix:
        params += {"tensors": ["msa_tensor **results"], "scalar": ["msa_scalar *result"]}.get(op.result, [])
    result = {"tensor": "msa_tensor *", "list": "msa_list *"}.get(op.result, "int ")
    if suffix == "_":
        result = "msa_tensor *"
    elif suffix == "_out":
        result = "int "
    elif op.mutates:
        result = "msa_tensor *"
    return f"{result}{prefix}{op.c_name}{suffix}({', '.join(params) or 'void'})"


def kernel_signature(op, name):
    """Prototype of the function that a row names."""
    params = [p.declaration for p in op.params if p.for_kernel or op.work == "function"]
    params += {"tensors": ["msa_tensor **results"], "scalar": ["msa_scalar *result"]}.get(op.result, [])
    result = {"tensor": "msa_tensor *", "list": "msa_list *"}.get(op.result, "int ")
    if op.mutates:
        result = "int "
    return f"{result}{name}({', '.join(params) or 'void'})"


def saved_key(name):
    """What is kept for a name of a formula: `self.ndim` and `self.numel` follow from `self.sizes`."""
    base, dot, attribute = name.partition(".")
    return base + dot + ("sizes" if attribute in ("ndim", "numel") else attribute)


class Gradients:
    """What a row's formulas need: edges, saved values, and the code of its backward function."""

    def __init__(self, op, operators, helpers):
        self.op, self.helpers = op, helpers
        self.singles = [p for p in op.params if p.is_tensor and any(p.name in names for names, _ in op.grads)]
        self.list = next((p for p in op.params if p.is_list and any(p.name in names for names, _ in op.grads)), None)
        self.saved = {}  # key -> slot
        self.blocks = []
        self.differentiable = [r for r in op.results if r not in op.nondifferentiable]
        self.grad_names = {r: "grad" if len(self.differentiable) == 1 else f"grad_{r}" for r in self.differentiable}
        if op.mutates:
            self.grad_names = {"result": "grad"}
        for names, text in op.grads:
            self._compile(names, text, operators, helpers)

    def edge(self, param):
        return self.singles.index(param)

    def _names(self):
        names = {}
        for p in self.op.params:
            names[p.name] = Value(p.c_name, p.type)
            if p.is_tensor:
                names[p.name + ".sizes"] = Value(f"{p.c_name}_sizes", "int[]")
                names[p.name + ".dtype"] = Value(f"{p.c_name}_dtype", "dtype")
                names[p.name + ".ndim"] = Value(f"{p.c_name}_sizes.n", "int")
                names[p.name + ".numel"] = Value(f"msa_product({p.c_name}_sizes)", "int")
            if p.is_list:
                names[p.name + ".sizes"] = Value(f"{p.c_name}_sizes", "Tensor[]")
        for r in self.op.results if not self.op.mutates else ["result"]:
            names.setdefault(r, Value(r + "_result", "Tensor"))
        for r, grad in self.grad_names.items():
            names[grad] = Value(grad, "Tensor")
        if len(self.op.results) > 1:
            for index, r in enumerate(self.op.results):
                names.setdefault(f"grad_{r}", Value(f"grads[{index}]", "Tensor"))
        if self.op.result == "list":
            names["grads"] = Value("grad_list", "Tensor[]")
        names["needs"] = Value("needs", "int[]")
        return names

    def _compile(self, params, text, operators, helpers):
        by_name = {p.name: p for p in self.op.params}
        compiler = Compiler(operators, helpers, self._names(), "return -1;")
        if len(params) == 1:
            value = compiler.compile(text)
            code = self._store_one(by_name[params[0]], value)
        else:
            code = self._call_many(compiler, [by_name[p] for p in params], text, operators, helpers)
        self.blocks.append(([by_name[p] for p in params], compiler.lines + code, set(compiler.used)))
        for name in sorted(compiler.used):
            self._save(name)

    def _store_one(self, param, value):
        if param is self.list:
            if value.kind != "list":
                raise TableError("the gradient of a list is a list")
            return [f"for (int64_t i = 0; i < {value.code}->n; i++) "
                    f"results[{len(self.singles)} + i] = msa_take({value.code}->items[i]);"]
        if value.kind == "None":
            return []
        if value.kind != "Tensor" and value.kind != "Tensor?":
            raise TableError(f"gradient of {param.name} is a {value.kind}")
        taken = f"msa_take({value.code})" if value.owned else f"msa_tensor_retain({value.code})"
        return [f"results[{self.edge(param)}] = {taken};"]

    def _call_many(self, compiler, params, text, operators, helpers):
        import ast
        node = ast.parse(text.strip(), mode="eval").body
        name = node.func.id
        if name in operators:
            operator = operators[name]
            kinds = [(p.type, p.name, p.default) for p in operator.params]
            symbol, count = f"msa_{operator.c_name}", len(operator.results)
        else:
            kinds = [(kind, param, None) for kind, param in helpers[name][1] if kind != "results"]
            symbol, count = name, len(params)
        args = [compiler.visit(a) for a in node.args]
        codes = compiler.arguments(name, kinds, args, {k.arg: compiler.visit(k.value) for k in node.keywords})
        lines = [f"msa_tensor *many[{count}] = {{NULL}};",
                 f"if ({symbol}({', '.join(codes + ['many'])}) != 0) return -1;"]
        for index, p in enumerate(params):
            lines.append(f"results[{self.edge(p)}] = many[{index}];")
        lines += [f"msa_tensor_release(many[{i}]);" for i in range(len(params), count)]
        return lines

    def _save(self, name):
        if name in ("grad", "needs", "grads") or name.startswith("grad_") and name not in {p.name for p in self.op.params}:
            return
        self.saved.setdefault(saved_key(name), len(self.saved))

    def users(self, key):
        """The parameters whose gradients need a saved value."""
        found = []
        for params, _, used in self.blocks:
            for name in used:
                if saved_key(name) == key:
                    found += params
        return list(dict.fromkeys(p.name for p in found))

    def save_lines(self, self_name=None, which="all"):
        """Statements that save values into `node_`; `self_name` replaces self in in-place forms. `which`: inputs, which
        in-place forms save before they write, outputs, or all."""
        lines = []
        by_name = {p.name: p for p in self.op.params}
        for key, slot in self.saved.items():
            base, _, attribute = key.partition(".")
            users = [by_name[u] for u in self.users(key)]
            condition = " || ".join(self.wants(u) for u in users)
            p = by_name.get(base)
            if which != "all" and (which == "outputs") != (p is None):
                continue
            c_name = p.c_name if p else base
            if p is not None and p is self.op.self_param and self_name and not attribute:
                c_name = self_name
            if p is None:
                statement = f"msa_node_save_output(node_, {slot}, {self.result_code(base)})"
            elif attribute == "sizes" and p.is_list:
                statement = f"msa_node_save_shapes(node_, {slot}, {c_name})"
            elif attribute == "sizes":
                statement = f"msa_node_save_ints(node_, {slot}, {c_name} ? msa_sizes({c_name}) : MSA_NO_INTS)"
            elif attribute == "dtype":
                statement = f"msa_node_save_value(node_, {slot}, (msa_value){{.dtype = {c_name} ? (msa_dtype){c_name}->dtype : MSA_NO_DTYPE}})"
            elif p.is_tensor:
                statement = f"msa_node_save_tensor(node_, {slot}, {c_name})"
            elif p.is_list:
                statement = f"msa_node_save_tensors(node_, {slot}, {c_name})"
            elif p.type in ("int[]", "int[]?"):
                statement = f"msa_node_save_ints(node_, {slot}, {c_name})"
            elif p.type in ("str", "str?"):
                statement = f"msa_node_save_text(node_, {slot}, {c_name})"
            elif p.type in ("float[]", "float[]?"):
                statement = f"msa_node_save_doubles(node_, {slot}, {c_name})"
            else:
                from schema import MEMBER
                statement = f"msa_node_save_value(node_, {slot}, (msa_value){{.{MEMBER[p.type]} = {c_name}}})"
            lines.append(f"if (({condition}) && {statement} != 0) goto failed_;")
        return lines

    def result_code(self, name):
        if self.op.mutates:
            return "self"
        if self.op.result == "tensors":
            return f"results[{self.op.results.index(name)}]"
        return "result"

    @staticmethod
    def wants(param):
        if param.is_list:
            return f"msa_any_requires_grad({param.c_name})"
        if param.optional:
            return f"({param.c_name} && {param.c_name}->requires_grad)"
        return f"{param.c_name}->requires_grad"

    def load_lines(self, names):
        """Declarations that bring saved values back."""
        lines = []
        by_name = {p.name: p for p in self.op.params}
        for key, slot in self.saved.items():
            if all(saved_key(name) != key for name in names):
                continue
            base, _, attribute = key.partition(".")
            p = by_name.get(base)
            if p is None:
                lines.append(f"msa_auto msa_tensor *{base}_result = NULL;")
                lines.append(f"if (msa_node_load_tensor(node, {slot}, &{base}_result) != 0) return -1;")
            elif attribute == "sizes" and p.is_list:
                lines.append(f"msa_tensors {p.c_name}_sizes = msa_node_load_tensors(node, {slot});")
            elif attribute == "sizes":
                lines.append(f"msa_ints {p.c_name}_sizes = msa_node_load_ints(node, {slot});")
            elif attribute == "dtype":
                lines.append(f"msa_dtype {p.c_name}_dtype = msa_node_load_value(node, {slot}).dtype;")
            elif p.is_tensor:
                lines.append(f"msa_auto msa_tensor *{p.c_name} = NULL;")
                lines.append(f"if (msa_node_load_tensor(node, {slot}, &{p.c_name}) != 0) return -1;")
            elif p.is_list:
                lines.append(f"msa_auto_list msa_list *{p.c_name}_list = msa_node_load_list(node, {slot});")
                lines.append(f"if (!{p.c_name}_list) return -1;")
                lines.append(f"msa_tensors {p.c_name} = msa_list_view({p.c_name}_list);")
            elif p.type in ("int[]", "int[]?"):
                lines.append(f"msa_ints {p.c_name} = msa_node_load_ints(node, {slot});")
            elif p.type in ("float[]", "float[]?"):
                lines.append(f"msa_doubles {p.c_name} = msa_node_load_doubles(node, {slot});")
            else:
                from schema import MEMBER
                space = "" if p.c_type.endswith("*") else " "
                lines.append(f"{p.c_type}{space}{p.c_name} = msa_node_load_value(node, {slot}).{MEMBER[p.type]};")
        return lines

    def _takes_sparse(self):
        """Operators refuse sparse gradients themselves; helpers read values without asking."""
        words = {word for _, text in self.op.grads for word in re.findall(r"[A-Za-z_0-9]+(?=\()", text)}
        return "true" if self.op.sparse or not {w for w in words & set(self.helpers) if not w.startswith("sparse_")} - {"scaled"} else "false"

    def backward_function(self):
        """The static backward function and the node's class."""
        op = self.op
        lines = [f"static int {op.c_name}_backward(msa_node *node, msa_tensor *const *grads, msa_tensor **results) {{"]
        if op.result == "list":
            lines.append("msa_tensors grad_list = {grads, node->n_inputs};")
            lines.append("bool any_ = false;")
            lines.append("for (uint32_t i = 0; i < node->n_inputs; i++) any_ = any_ || grads[i];")
            lines.append("if (!any_) return 0;")
        else:
            outputs = ["result"] if op.mutates else op.results
            for index, r in enumerate(outputs):
                if r in self.grad_names:
                    lines.append(f"msa_tensor *{self.grad_names[r]} = grads[{index}];")
            names = list(self.grad_names.values())
            if names:
                lines.append(f"if ({' && '.join('!' + g for g in names)}) return 0;")
        for params, code, used in self.blocks:
            condition = " || ".join(
                f"msa_node_wants(node, {self.edge(p)})" if p.is_tensor else
                f"msa_node_wants_any(node, {len(self.singles)})" for p in params)
            lines.append(f"if ({condition}) {{")
            if "needs" in used:
                wants = ", ".join(f"msa_node_wants(node, {self.edge(p)})" for p in params)
                lines.append(f"msa_ints needs = MSA_INTS({wants});")
            lines += self.load_lines(used)
            lines += code
            lines.append("}")
        lines += ["return 0;", "}",
                  f'static const msa_node_class {op.c_name}_class = {{"{op.node or camel(op)}", {op.c_name}_backward, NULL, {self._takes_sparse()}}};']
        return lines


def camel(op):
    """`max_pool2d` -> `MaxPool2DBackward0`, as PyTorch names its nodes."""
    name = op.name.strip("_")
    words = "".join(w[:1].upper() + w[1:] for w in name.split("_"))
    for low, high in (("1d", "1D"), ("2d", "2D"), ("3d", "3D")):
        words = words.replace(low, high)
    return f"{words}Backward{op.index}"


class EntryWriter:
    """Writes the entry points of one operator."""

    def __init__(self, operators, helpers):
        self.operators, self.helpers = operators, helpers

    def write(self, op):
        if op.work in ("composite", "function"):
            return self._composite(op)
        gradients = Gradients(op, self.operators, self.helpers)
        lines = []
        has_formulas = bool(op.grads)
        if has_formulas:
            lines += gradients.backward_function()
        lines += self._functional(op, gradients, has_formulas) if not op.mutates else self._mutating(op, gradients)
        if "inplace" in op.forms:
            lines += self._inplace(op, gradients, has_formulas)
        if "out" in op.forms:
            lines += self._out(op)
        return lines

    # Calls of what does the work.

    def _arguments(self, op, replace_self=None):
        return [replace_self if replace_self and p is op.self_param else p.c_name
                for p in op.params if p.for_kernel or op.work == "function"]

    def _pointwise(self, op, target, function="run"):
        tensors = ", ".join(p.c_name for p in op.tensor_params)
        params, hints = [], []
        for p in op.params:
            if p.is_tensor or not p.for_kernel:
                continue
            params.append(boxed(p))
            if p.optional:
                params.append(f"msa_bool_scalar({p.c_name}.has)")
            if p.name in str(op.how.get("promote_with", "")).replace(" ", "").split(","):
                hints.append(p)
        lines = [f"msa_tensor *const inputs_[] = {{{tensors}}};",
                 f"const msa_scalar params_[] = {{{', '.join(params) or 'msa_int(0)'}}};"]
        if hints:
            lines.append(f"msa_scalar hints_[{len(hints)}];")
            lines.append("int n_hints_ = 0;")
            for p in hints:
                if p.optional:
                    lines.append(f"if ({p.c_name}.has) hints_[n_hints_++] = {p.c_name}.v;")
                else:
                    lines.append(f"hints_[n_hints_++] = {boxed(p)};")
        row = f"&msa_pointwise_rows[MSA_POINTWISE_{op.c_name}]"
        tail = "hints_, n_hints_" if hints else "NULL, 0"
        call = f"msa_pointwise_{function}({row}, inputs_, params_, {tail}, {target})"
        if "check" in op.row:
            call = f"{op.row['check']}({', '.join(self._arguments(op))}) != 0 ? NULL : {call}"
        if op.sparse:
            call = f"sparse_ ? {op.sparse}({', '.join(self._arguments(op))}) : {call}"
        lines.append(f"msa_tensor *computed_ = {call};")
        return lines

    def _work(self, op):
        """Statements that leave the result in `result` (or `results`), or return."""
        failed = "return NULL;" if op.result in ("tensor", "list") else "return -1;"
        if op.work == "pointwise":
            return self._null_checks(op, failed) + self._pointwise(op, "NULL") + ["msa_tensor *result = computed_;", "if (!result) return NULL;"]
        args = self._arguments(op)
        lines = self._null_checks(op, failed)
        guard = ["bool recording_ = msa_grad_mode;", "msa_grad_mode = false;"]
        if op.result == "tensor":
            return lines + guard + [f"msa_tensor *result = {self._of_layout(op, op.how)}({', '.join(args)});", "msa_grad_mode = recording_;",
                                    "if (!result) return NULL;"]
        if op.result == "list":
            return lines + guard + [f"msa_list *result = {self._of_layout(op, op.how)}({', '.join(args)});", "msa_grad_mode = recording_;",
                                    "if (!result) return NULL;"]
        if op.result == "tensors":
            clear = [f"for (int i = 0; i < {len(op.results)}; i++) results[i] = NULL;"]
            return lines + clear + guard + [
                f"int status_ = {self._of_layout(op, op.how)}({', '.join(args + ['results'])});", "msa_grad_mode = recording_;",
                "if (status_ != 0) {",
                f"for (int i = 0; i < {len(op.results)}; i++) msa_tensor_release(msa_take(results[i]));", "return -1;", "}"]
        tail = ["result"] if op.result == "scalar" else []
        return lines + guard + [f"int status_ = {self._of_layout(op, op.how)}({', '.join(args + tail)});", "msa_grad_mode = recording_;",
                                "if (status_ != 0) return -1;"]

    def _null_checks(self, op, failed, form=""):
        """C callers that pass NULL for a tensor get an error, or pass on the one that made it NULL."""
        lines = [f'if (!{p.c_name}) {{ msa_missing_argument("{op.name}", "{p.name}"); {failed} }}'
                 for p in op.params if p.type == "Tensor"]
        seen = " | ".join(f"msa_any_sparse({p.c_name})" if p.is_list else f"({p.c_name} && {p.c_name}->layout)" if p.optional else f"{p.c_name}->layout"
                          for p in op.params if p.is_tensor or p.is_list)
        if not seen or op.sparse == "through":
            return lines
        if op.sparse_function and form:
            return lines if form == "out" and op.work != "pointwise" else lines + [f'if (__builtin_expect({seen}, 0)) {{ msa_refuse_sparse("{op.name}"); {failed} }}']
        if op.sparse_function:
            results = {"tensors": ["results"], "scalar": ["result"]}.get(op.result, [])
            return lines + [f"if (__builtin_expect({seen}, 0)) return {op.sparse_function}({', '.join(self._arguments(op) + results)});"]
        if op.sparse:
            return lines + [f"__attribute__((unused)) const bool sparse_ = __builtin_expect({seen}, 0);"]
        return lines + [f'if (__builtin_expect({seen}, 0)) {{ msa_refuse_sparse("{op.name}"); {failed} }}']

    @staticmethod
    def _of_layout(op, how):
        """What is called: the row's work, or what it names for sparse tensors."""
        return f"(sparse_ ? {op.sparse} : {how})" if op.sparse and op.sparse != "through" else how

    def _record(self, op, gradients, has_formulas):
        """Statements that make the node and attach it to the outputs."""
        if op.never_differentiable or op.result in ("scalar", "none") and not op.mutates:
            return []
        targets = [p for names, _ in op.grads for p in op.params if p.name in names]
        if not has_formulas:
            tensors = [p for p in op.params if p.is_tensor or p.is_list]
            if not tensors:
                return []
            condition = " || ".join(Gradients.wants(p) for p in tensors)
            lines = [f"if (msa_grad_mode && ({condition})) {{",
                     f'node_ = msa_node_without_derivative("{op.name}");', "if (!node_) goto failed_;"]
        else:
            condition = " || ".join(Gradients.wants(p) for p in dict.fromkeys(targets))
            listed = f" + (uint32_t){gradients.list.c_name}.n" if gradients.list else ""
            lines = [f"if (msa_grad_mode && ({condition})) {{",
                     f"node_ = msa_node_new(&{op.c_name}_class, {len(gradients.singles)}{listed}, {len(gradients.saved)});",
                     "if (!node_) goto failed_;"]
            for p in gradients.singles:
                lines.append(f"msa_node_connect(node_, {gradients.edge(p)}, {p.c_name});")
            if gradients.list:
                p = gradients.list
                lines.append(f"for (int64_t i = 0; i < {p.c_name}.n; i++) "
                             f"msa_node_connect(node_, {len(gradients.singles)} + (uint32_t)i, {p.c_name}.data[i]);")
        return lines

    def _functional(self, op, gradients, has_formulas):
        failed = "NULL" if op.result in ("tensor", "list") else "-1"
        lines = [signature(op) + " {"] + profiled(op) + autocast_lines(op) + node_declaration(op) + self._work(op)
        if op.work == "view":
            lines += self._mark_view(op)
        if op.sets_requires_grad:
            lines += ["if (requires_grad && msa_tensor_set_requires_grad(result, true) != 0) {",
                      "msa_tensor_release(result);", "return NULL;", "}"]
        record = self._record(op, gradients, has_formulas)
        if record:
            lines += record
            if has_formulas:
                saves = gradients.save_lines()
                # Outputs are attached first: saving one needs its place.
                lines += self._attach(op)
                lines += saves
            else:
                lines += self._attach(op)
            lines += ["msa_node_release(msa_take(node_));", "}"]
        if op.result in ("tensor", "list"):
            lines.append("return result;")
        else:
            lines.append("return 0;")
        if record:
            lines.append("failed_:")
            lines.append("msa_node_release(node_);")
            if op.result == "tensor":
                lines.append("msa_tensor_release(result);")
            elif op.result == "list":
                lines.append("msa_list_release(result);")
            elif op.result == "tensors":
                lines.append(f"for (int i = 0; i < {len(op.results)}; i++) msa_tensor_release(msa_take(results[i]));")
            lines.append(f"return {failed};")
        lines.append("}")
        return lines

    def _attach(self, op):
        if op.result == "tensor":
            return ["if (msa_node_attach(node_, 0, result) != 0) goto failed_;"]
        if op.result == "list":
            return ["for (int64_t i = 0; i < result->n; i++)",
                    "if (msa_node_attach(node_, (uint32_t)i, result->items[i]) != 0) goto failed_;"]
        lines = []
        for index, name in enumerate(op.results):
            function = "msa_node_skip" if name in op.nondifferentiable else "msa_node_attach"
            lines.append(f"if ({function}(node_, {index}, results[{index}]) != 0) goto failed_;")
        return lines

    @staticmethod
    def _mark_view(op):
        base = op.self_param.c_name
        if op.result == "list":
            return ["if (msa_grad_mode) for (int64_t i = 0; i < result->n; i++)",
                    f"if (msa_view_mark(result->items[i], {base}) != 0) {{", "msa_list_release(result);", "return NULL;", "}"]
        return [f"if (msa_grad_mode && msa_view_mark(result, {base}) != 0) {{", "msa_tensor_release(result);",
                "return NULL;", "}"]

    def _in_place_checks(self, op, others):
        condition = " || ".join(Gradients.wants(p) for p in others) or "false"
        return [f'if (msa_check_inplace("{op.name}", self, {condition}) != 0) return NULL;']

    def _inplace(self, op, gradients, has_formulas):
        name = op.self_param
        if name is None or op.result != "tensor":
            raise TableError("only operators with a self and one result have an in-place form")
        text = signature(op, "_").replace(f"*{name.c_name}", "*self", 1)
        lines = [text + " {"] + profiled(op, "_") + node_declaration(op)
        if name.c_name != "self":
            raise TableError("the first parameter of an in-place form is called self")
        lines += self._null_checks(op, "return NULL;", "inplace")
        others = [p for p in op.params if (p.is_tensor or p.is_list) and p is not name]
        lines += self._in_place_checks(op, others)
        needs_self = has_formulas and "self" in gradients.saved
        record = self._record(op, gradients, has_formulas)
        if needs_self:
            users = [p for p in op.params if p.name in gradients.users("self")]
            condition = " || ".join(Gradients.wants(p) for p in users)
            lines += ["msa_auto msa_tensor *original_ = NULL;",
                      f"if (msa_grad_mode && ({condition})) {{", "original_ = msa_clone(self, -1);", "if (!original_) return NULL;", "}"]
        lines += self._before_write(record, gradients, has_formulas, needs_self)
        failed = "goto failed_;" if record else "return NULL;"
        if op.work == "pointwise":
            lines += ["{"]
            if op.sparse_inplace:  # the write itself, where the result would be dense
                lines += ["if (sparse_ && !self->layout) {", f"if ({op.sparse_inplace}({', '.join(self._arguments(op))}) != 0) {failed}", "} else {"]
            lines += self._pointwise(op, "self") + [f"if (!computed_) {failed}"]
            if op.sparse:
                lines += [f'const int written_ = sparse_ ? msa_write_inplace("{op.name}_", self, computed_) : 0;', "msa_tensor_release(computed_);",
                          f"if (written_ != 0) {failed}"]
            else:
                lines += ["msa_tensor_release(computed_);"]
            lines += ["}"] * (2 if op.sparse_inplace else 1)
        else:
            lines += ["{", "bool recording_ = msa_grad_mode;", "msa_grad_mode = false;",
                      f"msa_auto msa_tensor *computed_ = {self._of_layout(op, op.how)}({', '.join(self._arguments(op))});",
                      "msa_grad_mode = recording_;",
                      f'if (!computed_ || {"msa_write_resized" if op.resizes else "msa_write_inplace"}("{op.name}_", self, computed_) != 0) {failed}', "}"]
        return lines + self._after_write(record, gradients, has_formulas)

    @staticmethod
    def _before_write(record, gradients, has_formulas, needs_self):
        """Edges and saved inputs, as they are before the write."""
        if not record:
            return []
        saves = gradients.save_lines("original_" if needs_self else None, "inputs") if has_formulas else []
        return record + saves + ["}"]

    @staticmethod
    def _after_write(record, gradients, has_formulas):
        lines = ["msa_bump_version(self);"]
        if record:
            lines += ["if (node_) {", "if (msa_node_rebase(node_, self) != 0) goto failed_;"]
            if has_formulas:
                lines += [line.replace(", result)", ", self)") for line in gradients.save_lines(None, "outputs")]
            lines += ["msa_node_release(msa_take(node_));", "}"]
        lines.append("return msa_tensor_retain(self);")
        if record:
            lines += ["failed_:", "msa_node_release(node_);", "return NULL;"]
        return lines + ["}"]

    def _mutating(self, op, gradients):
        has_formulas = bool(op.grads)
        lines = [signature(op) + " {"] + profiled(op) + node_declaration(op) + self._null_checks(op, "return NULL;")
        others = [p for p in op.params if (p.is_tensor or p.is_list) and p is not op.self_param]
        lines += self._in_place_checks(op, others)
        needs_self = "self" in gradients.saved
        if needs_self:
            lines += ["msa_auto msa_tensor *original_ = NULL;", "if (msa_grad_mode) {", "original_ = msa_clone(self, -1);",
                      "if (!original_) return NULL;", "}"]
        record = self._record(op, gradients, has_formulas)
        lines += self._before_write(record, gradients, has_formulas, needs_self)
        lines += ["bool recording_ = msa_grad_mode;", "msa_grad_mode = false;",
                  f"int status_ = {self._of_layout(op, op.how)}({', '.join(self._arguments(op))});", "msa_grad_mode = recording_;",
                  "if (status_ != 0) " + ("goto failed_;" if record else "return NULL;")]
        return lines + self._after_write(record, gradients, has_formulas)

    def _out(self, op):
        count = len(op.results)
        outs = ["msa_tensor *out"] if op.result == "tensor" else ["msa_tensor *const *out"]
        lines = [signature(op, "_out", outs) + " {"] + profiled(op) + self._null_checks(op, "return -1;", "out")
        tensors = [p for p in op.params if p.is_tensor or p.is_list]
        condition = " || ".join(Gradients.wants(p) for p in tensors) or "false"
        first = "out" if op.result == "tensor" else "out[0]"
        lines.append(f'if (msa_check_out("{op.name}", {first}, {condition}) != 0) return -1;')
        if op.work == "pointwise":
            lines += [f'if (out->layout{" && !sparse_" if op.sparse else ""}) return msa_refuse_sparse("{op.name}");']
            lines += self._pointwise(op, "out", "out") + ["if (!computed_) return -1;"]
            if op.sparse:
                lines += [f'const int written_ = sparse_ ? msa_write_out("{op.name}", out, computed_) : 0;', "msa_tensor_release(computed_);",
                          "if (written_ != 0) return -1;"]
            else:
                lines += ["msa_tensor_release(computed_);"]
            lines += ["msa_bump_version(out);", "return 0;", "}"]
            return lines
        args = ", ".join(p.c_name for p in op.params)
        if op.exact_out:
            one_by_one = ", ".join(p.c_name for p in op.params if p.is_tensor)
            operands = ([f"MSA_TENSORS({one_by_one})"] if one_by_one else []) + [p.c_name for p in op.params if p.is_list]
            lines += [f'if (msa_check_out_apart("{op.name}", {target}, {some}) != 0) return -1;'
                      for target in (["out"] if op.result == "tensor" else [f"out[{i}]" for i in range(count)]) for some in operands]
        lines += ["bool recording_ = msa_grad_mode;", "msa_grad_mode = false;"]
        write = "msa_write_out_exactly" if op.exact_out is True else "msa_write_out"
        if op.result == "tensor":
            lines += [f"msa_auto msa_tensor *computed_ = msa_{op.c_name}({args});", "msa_grad_mode = recording_;",
                      f'return computed_ ? {write}("{op.name}", out, computed_) : -1;', "}"]
        elif op.result == "tensors":
            lines += [f"msa_tensor *computed_[{count}];", f"int status_ = msa_{op.c_name}({args}, computed_);",
                      "msa_grad_mode = recording_;", "if (status_ != 0) return -1;",
                      f"for (int i = 0; i < {count}; i++) {{",
                      f'if (status_ == 0 && computed_[i]) status_ = {write}("{op.name}", out[i], computed_[i]);',
                      "msa_tensor_release(computed_[i]);", "}", "return status_;", "}"]
        else:
            raise TableError("out= needs tensor results")
        return lines

    def _composite(self, op):
        lines = [signature(op) + " {"] + profiled(op) + autocast_lines(op)
        if op.work == "function":
            args = self._arguments(op) + {"tensors": ["results"], "scalar": ["result"]}.get(op.result, [])
            failed = "return NULL;" if op.result in ("tensor", "list") else "return -1;"
            called = f"{self._of_layout(op, op.how)}({', '.join(args)})"
            if op.node:
                called = f'msa_node_named({called}, "{op.node}")'
            lines += self._null_checks(op, failed) + [f"return {called};", "}"]
        else:
            names = {p.name: Value(p.c_name, p.type) for p in op.params}
            for p in op.params:
                if p.is_tensor:
                    names[p.name + ".sizes"] = Value(f"msa_sizes({p.c_name})", "int[]")
                    names[p.name + ".dtype"] = Value(f"((msa_dtype){p.c_name}->dtype)", "dtype")
                    names[p.name + ".ndim"] = Value(f"((int64_t){p.c_name}->ndim)", "int")
                    names[p.name + ".numel"] = Value(f"{p.c_name}->numel", "int")
            compiler = Compiler(self.operators, self.helpers, names, "return NULL;")
            value = compiler.compile(str(op.how))
            taken = f"msa_take({value.code})" if value.owned else f"msa_tensor_retain({value.code})"
            if op.node:
                taken = f'msa_node_named({taken}, "{op.node}")'
            lines += self._null_checks(op, "return NULL;") + compiler.lines + [f"return {taken};", "}"]
        if "inplace" in op.forms:
            # What the operators save must not be what is written: where gradients are wanted they see a copy.
            args = ", ".join("from_" if p is op.self_param else p.c_name for p in op.params)
            lines += [signature(op, "_") + " {", *profiled(op, "_"),
                      "msa_auto msa_tensor *from_ = self && self->requires_grad && msa_grad_mode ? msa_clone(self, -1) : msa_tensor_retain(self);",
                      f"msa_auto msa_tensor *computed_ = from_ ? msa_{op.c_name}({args}) : NULL;",
                      f'if (!computed_ || msa_check_written("{op.name}_", self, computed_) != 0) return NULL;',
                      "return msa_copy_(self, computed_, false);", "}"]
        if "out" in op.forms:
            lines += self._out(op)
        return lines


def autocast_lines(op):
    """Under autocast: convert the tensors that the row's policy names, then call the entry point again without autocast."""
    if not op.autocast:
        return []
    tensors = [p for p in op.params if p.is_tensor or p.is_list]
    lists = [p for p in tensors if p.is_list]
    seen = lists[0].c_name if lists else f"MSA_TENSORS({', '.join(p.c_name for p in tensors)})"
    failed = "NULL" if op.result in ("tensor", "list") else "-1"
    lines = ["if (msa_autocast_on) {", f"msa_dtype to_ = msa_autocast_target(MSA_AUTOCAST_{op.autocast.upper()}, {seen});",
             "if (to_ != MSA_NO_DTYPE) {"]
    arguments = []
    for p in op.params:
        if p.is_list:
            lines += [f"msa_auto_list msa_list *cast_{p.c_name} = msa_autocast_list({p.c_name}, to_);", f"if (!cast_{p.c_name}) return {failed};"]
            arguments.append(f"msa_list_view(cast_{p.c_name})")
        elif p.is_tensor:
            lines += [f"msa_auto msa_tensor *cast_{p.c_name} = NULL;", f"if (msa_autocast_tensor({p.c_name}, to_, &cast_{p.c_name}) != 0) return {failed};"]
            arguments.append(f"cast_{p.c_name}")
        else:
            arguments.append(p.c_name)
    result = {"tensor": "msa_tensor *", "list": "msa_list *"}.get(op.result, "int ")
    arguments += {"tensors": ["results"], "scalar": ["result"]}.get(op.result, [])
    return lines + ["msa_autocast_on = false;", f"{result}called_ = msa_{op.c_name}({', '.join(arguments)});", "msa_autocast_on = true;",
                    "return called_;", "}", "}"]


def profiled(op, suffix=""):
    """The scope that the profiler times, with the tensors whose shapes it may note."""
    inputs = [p.c_name if p.is_tensor else "NULL" for p in op.params]
    return [f'MSA_PROFILED("aten::{op.name}{suffix}", {len(inputs)}, {", ".join(inputs) or "NULL"});']


def records(op):
    """Whether an entry point may make a node."""
    if op.never_differentiable or op.result in ("scalar", "none") and not op.mutates:
        return False
    return bool(op.grads) or any(p.is_tensor or p.is_list for p in op.params)


def node_declaration(op):
    return ["msa_node *node_ = NULL;"] if records(op) else []


def boxed(p):
    """A non-tensor parameter as an msa_scalar for the loops."""
    return {
        "Scalar": p.c_name, "float": f"msa_float({p.c_name})", "int": f"msa_int({p.c_name})",
        "bool": f"msa_bool_scalar({p.c_name})", "Scalar?": f"{p.c_name}.v", "int?": f"msa_int({p.c_name}.v)",
        "float?": f"msa_float({p.c_name}.v)", "bool?": f"msa_bool_scalar({p.c_name}.v)",
    }.get(p.type) or _unsupported(p)


def _unsupported(p):
    raise TableError(f"a pointwise operator cannot have a {p.type} parameter")
