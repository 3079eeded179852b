"""Compiles the expressions of the table (gradients, composites) into C statements over entry points.

An expression is written as in Python. Each call makes a temporary that is released at the end of its block; plain values
(numbers, flags, sizes) become plain C expressions.
"""

import ast

from schema import TableError

BINARY = {ast.Add: ("add", "+"), ast.Sub: ("sub", "-"), ast.Mult: ("mul", "*"), ast.Div: ("div", "/"),
          ast.Pow: ("pow", None)}
COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}
NUMBERS = ("int", "float", "bool", "Scalar")


class Value:
    """A C expression, what kind of thing it is, and whether it may be NULL without an error."""

    def __init__(self, code, kind, owned=False, nullable=False):
        self.code, self.kind, self.owned, self.nullable = code, kind, owned, nullable


class Compiler:
    """Compiles one expression; `names` maps the names it may use to Values."""

    def __init__(self, operators, helpers, names, fail, prefix="t"):
        self.operators, self.helpers, self.names, self.fail = operators, helpers, names, fail
        self.lines, self.count, self.prefix = [], 0, prefix
        self.used = set()

    def compile(self, text):
        return self.visit(ast.parse(text.strip(), mode="eval").body)

    def temporary(self, c_type, code, attribute="msa_auto "):
        self.count += 1
        name = f"{self.prefix}{self.count}"
        self.lines += [f"{attribute}{c_type}{name} = {code};", f"if (!{name}) {self.fail}"]
        return name

    def visit(self, node):
        method = getattr(self, "visit_" + type(node).__name__, None)
        if method is None:
            raise TableError(f"{ast.unparse(node)} is not understood")
        return method(node)

    def visit_Constant(self, node):
        v = node.value
        if v is None:
            return Value("NULL", "None")
        if isinstance(v, bool):
            return Value("true" if v else "false", "bool")
        if isinstance(v, int):
            return Value(str(v), "int")
        if isinstance(v, float):
            return Value(repr(v), "float")
        return Value('"' + v + '"', "str")

    def visit_Name(self, node):
        constants = {"inf": "(double)INFINITY", "nan": "(double)NAN", "pi": "M_PI"}
        if node.id in constants and node.id not in self.names:
            return Value(constants[node.id], "float")
        return self.named(node.id)

    def visit_Attribute(self, node):
        return self.named(f"{node.value.id}.{node.attr}")

    def named(self, name):
        if name not in self.names:
            raise TableError(f"unknown name {name}")
        self.used.add(name)
        return self.names[name]

    def visit_List(self, node):
        items = [self.visit(item) for item in node.elts]
        if items and all(i.kind in ("Tensor", "Tensor?") for i in items):
            return Value(f"MSA_TENSORS({', '.join(i.code for i in items)})", "Tensor[]")
        if not items:
            return Value("((msa_ints){(const int64_t[1]){0}, 0})", "int[]")
        return Value(f"MSA_INTS({', '.join(self.convert(i, 'int') for i in items)})", "int[]")

    visit_Tuple = visit_List

    def visit_Subscript(self, node):
        value, index = self.visit(node.value), self.visit(node.slice)
        if value.kind == "int[]":
            return Value(f"{value.code}.data[{index.code}]", "int")
        if value.kind == "list":
            return Value(f"{value.code}->items[{index.code}]", "Tensor")
        if value.kind == "Tensor[]":
            return Value(f"{value.code}.data[{index.code}]", "Tensor")
        raise TableError("only lists have items")

    def visit_UnaryOp(self, node):
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!({self.truth(value)})", "bool")
        if value.kind == "Tensor":
            return self.call("neg", [value], {})
        if value.kind == "Scalar":
            return Value(f"msa_scalar_negated({value.code})", "Scalar")
        return Value(f"(-{value.code})", value.kind)

    def visit_BinOp(self, node):
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, (ast.Mod, ast.FloorDiv)):
            return Value(f"({left.code} {'%' if isinstance(node.op, ast.Mod) else '/'} {right.code})", "int")
        operator, symbol = BINARY[type(node.op)]
        if "Tensor" in (left.kind, right.kind):
            if operator == "pow":
                name = ("pow_Tensor_Tensor" if left.kind == right.kind else
                        "pow_Tensor_Scalar" if left.kind == "Tensor" else "pow_Scalar")
                return self.call(name, [left, right], {})
            return self.call(operator, [left, right], {})
        if "Scalar" in (left.kind, right.kind):
            if symbol is None:
                raise TableError("** of numbers")
            name = {"+": "added", "-": "subtracted", "*": "multiplied", "/": "divided"}[symbol]
            return Value(f"msa_scalar_{name}({self.convert(left, 'Scalar')}, {self.convert(right, 'Scalar')})", "Scalar")
        if symbol == "/":
            return Value(f"((double)({left.code}) / (double)({right.code}))", "float")
        if symbol is None:
            return Value(f"pow((double)({left.code}), (double)({right.code}))", "float")
        return Value(f"({left.code} {symbol} {right.code})", "float" if "float" in (left.kind, right.kind) else "int")

    def visit_Compare(self, node):
        if len(node.ops) != 1:
            raise TableError("one comparison at a time")
        left, right, operator = self.visit(node.left), self.visit(node.comparators[0]), node.ops[0]
        if isinstance(operator, (ast.Is, ast.IsNot)):
            test = self.presence(left)
            return Value(test if isinstance(operator, ast.IsNot) else f"!({test})", "bool")
        symbol = COMPARE[type(operator)]
        if "str" in (left.kind, right.kind):
            return Value(f"(strcmp({left.code}, {right.code}) {symbol} 0)", "bool")
        if "Scalar" in (left.kind, right.kind):
            left, right = (Value(self.convert(v, "float"), "float") for v in (left, right))
        return Value(f"({left.code} {symbol} {right.code})", "bool")

    def presence(self, value):
        if value.kind in ("Tensor", "Tensor?", "str", "str?", "Generator?"):
            return f"({value.code} != NULL)"
        if value.kind in ("Scalar?", "int?", "float?", "bool?"):
            return f"({value.code}.has)"
        if value.kind in ("int[]", "int[]?"):
            return f"({value.code}.data != NULL)"
        if value.kind in ("dtype", "dtype?"):
            return f"({value.code} != MSA_NO_DTYPE)"
        raise TableError("is None of something that is never None")

    def truth(self, value):
        if value.kind == "Scalar":
            return f"!msa_scalar_is_zero({value.code})"
        if value.kind in ("int", "bool", "float"):
            return value.code
        return self.presence(value)

    def visit_BoolOp(self, node):
        symbol = " && " if isinstance(node.op, ast.And) else " || "
        return Value("(" + symbol.join(self.truth(self.visit(v)) for v in node.values) + ")", "bool")

    def visit_IfExp(self, node):
        test = self.truth(self.visit(node.test))
        branches, results = [], []
        for branch in (node.body, node.orelse):
            outer, self.lines = self.lines, []
            results.append(self.visit(branch))
            branches.append(self.lines)
            self.lines = outer
        kinds = {r.kind for r in results} - {"None"}
        if kinds and kinds <= {"Tensor", "Tensor?"}:
            self.count += 1
            name = f"{self.prefix}{self.count}"
            self.lines.append(f"msa_auto msa_tensor *{name} = NULL;")
            for keyword, lines, result in ((f"if ({test})", branches[0], results[0]), ("else", branches[1], results[1])):
                self.lines += [f"{keyword} {{", *lines]
                if result.kind != "None":
                    taken = f"msa_take({result.code})" if result.owned else f"msa_tensor_retain({result.code})"
                    self.lines.append(f"{name} = {taken};")
                self.lines.append("}")
            return Value(name, "Tensor", owned=True, nullable=any(r.kind == "None" or r.nullable for r in results))
        if branches[0] or branches[1]:
            raise TableError("plain values cannot make temporaries in a condition")
        if any(k in ("int?", "bool?", "float?", "Scalar?") for k in kinds):
            results = [Value(f"{r.code}.v", r.kind[:-1]) if r.kind.endswith("?") else r for r in results]
            kinds = {r.kind for r in results}
        if len(kinds) != 1:
            kinds = {"float"} if kinds <= {"int", "float", "bool"} else {"Scalar"}
        kind = kinds.pop()
        if kind == "Scalar":
            return Value(f"({test} ? {self.convert(results[0], 'Scalar')} : {self.convert(results[1], 'Scalar')})", kind)
        return Value(f"({test} ? {results[0].code} : {results[1].code})", kind)

    def visit_Call(self, node):
        if node.func.id == "len":
            return Value(f"{self.visit(node.args[0]).code}.n", "int")
        if node.func.id == "double":
            return Value(self.convert(self.visit(node.args[0]), "float"), "float")
        args = [self.visit(a) for a in node.args]
        return self.call(node.func.id, args, {k.arg: self.visit(k.value) for k in node.keywords})

    def call(self, name, args, keywords):
        if name in self.operators:
            operator = self.operators[name]
            kinds = [(p.type, p.name, p.default) for p in operator.params]
            if operator.result not in ("tensor", "list"):
                raise TableError(f"{name} does not give one tensor")
            result, symbol = "Tensor" if operator.result == "tensor" else "list", f"msa_{operator.c_name}"
        elif name in self.helpers:
            result, kinds = self.helpers[name]
            kinds, symbol = [(kind, param, None) for kind, param in kinds], name
        else:
            raise TableError(f"unknown operator or helper {name}")
        code = f"{symbol}({', '.join(self.arguments(name, kinds, args, keywords))})"
        if result == "Tensor":
            return Value(self.temporary("msa_tensor *", code), "Tensor", owned=True)
        if result == "list":
            return Value(self.temporary("msa_list *", code, attribute="msa_auto_list "), "list", owned=True)
        return Value(code, result)

    def arguments(self, name, kinds, args, keywords):
        if len(args) > len(kinds):
            raise TableError(f"{name}: {len(args)} arguments for {len(kinds)}")
        codes = []
        for index, (kind, param, default) in enumerate(kinds):
            if index < len(args):
                codes.append(self.convert(args[index], kind))
            elif param in keywords:
                codes.append(self.convert(keywords[param], kind))
            elif default is not None:
                codes.append(default_code(kind, default))
            else:
                raise TableError(f"{name}: argument {param} is missing")
        if set(keywords) - {param for _, param, _ in kinds}:
            raise TableError(f"{name}: unknown arguments {set(keywords)}")
        return codes

    def convert(self, value, kind):
        """C code of `value` as an argument of `kind`."""
        code, have = value.code, value.kind
        if have == "None":
            return default_code(kind, "None")
        if kind in ("Tensor", "Tensor?"):
            if have in ("Tensor", "Tensor?"):
                return code
            if have in NUMBERS:
                return self.temporary("msa_tensor *", f"msa_wrap_number({self.convert(value, 'Scalar')})")
        if kind == have or (kind.rstrip("?") == have.rstrip("?")
                            and kind.rstrip("?") in ("int[]", "dtype", "str", "float[]")):
            return code
        if {kind, have} <= {"Tensor[]", "Tensor?[]"}:
            return code
        if kind in ("Tensor[]", "Tensor?[]") and have == "list":
            return f"msa_list_view({code})"
        if kind == "Scalar" and have in ("int", "float", "bool"):
            return {"int": "msa_int", "float": "msa_float", "bool": "msa_bool_scalar"}[have] + f"({code})"
        if kind == "Scalar" and have == "Scalar?":
            return f"{code}.v"
        if kind == "float":
            if have in ("int", "bool"):
                return f"(double)({code})"
            if have == "Scalar":
                return f"msa_scalar_double({code})"
            if have == "float?":
                return f"{code}.v"
        if kind == "int":
            if have == "bool":
                return code
            if have == "Scalar":
                return f"msa_scalar_int({code})"
            if have in ("int?", "bool?"):
                return f"{code}.v"
        if kind == "bool" and have in ("int", "int?", "bool?"):
            return f"({code}{'.v' if have.endswith('?') else ''} != 0)"
        if kind in ("int?", "bool?") and have in ("int", "bool"):
            return f"((msa_opt_int){{true, {code}}})"
        if kind == "Scalar?" and have in NUMBERS:
            return f"((msa_opt_scalar){{true, {self.convert(value, 'Scalar')}}})"
        if kind == "float?" and have in ("int", "float"):
            return f"((msa_opt_double){{true, {code}}})"
        if kind in ("int[]", "int[]?") and have == "int":
            return f"MSA_INTS({code})"
        raise TableError(f"{have} where {kind} is wanted")


def default_code(kind, default):
    """C code of a default value."""
    if default == "None":
        return {"Scalar?": "((msa_opt_scalar){0})", "int?": "((msa_opt_int){0})", "bool?": "((msa_opt_int){0})",
                "float?": "((msa_opt_double){0})", "int[]?": "MSA_NO_INTS", "float[]?": "((msa_doubles){NULL, -1})",
                "dtype?": "MSA_NO_DTYPE", "layout?": "-1", "device?": "-1", "memory_format?": "-1"}.get(kind, "NULL")
    if kind in ("int[]", "int[]?"):
        text = default.strip("[]()")
        return f"MSA_INTS({text})" if text else "((msa_ints){(const int64_t[1]){0}, 0})"
    if kind in ("Scalar", "Scalar?"):
        value = f"msa_int({default})"
        if default in ("True", "False"):
            value = f"msa_bool_scalar({default.lower()})"
        elif any(c in default for c in ".enf"):
            value = f"msa_float({_float(default)})"
        return value if kind == "Scalar" else f"((msa_opt_scalar){{true, {value}}})"
    if kind == "bool":
        return default.lower()
    if kind == "bool?":
        return f"((msa_opt_int){{true, {default.lower()}}})"
    if kind == "int?":
        return f"((msa_opt_int){{true, {default}}})"
    if kind in ("float", "float?"):
        return _float(default) if kind == "float" else f"((msa_opt_double){{true, {_float(default)}}})"
    if kind in ("dtype", "dtype?"):
        return {"int64": "MSA_INT64", "float32": "MSA_FLOAT32", "bool": "MSA_BOOL"}[default]
    if kind in ("str", "str?"):
        return '"' + default.strip("'\"") + '"'
    if kind == "memory_format?":
        return {"contiguous_format": "0", "preserve_format": "1", "channels_last": "2"}[default]
    if kind == "Tensor":
        raise TableError("a Tensor parameter cannot have a default other than None")
    return default


def _float(text):
    return {"inf": "(double)INFINITY", "-inf": "(-(double)INFINITY)", "nan": "(double)NAN"}.get(text, text)
