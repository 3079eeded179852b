"""Emits the descriptors: parameters, boxed calls, and the groups of overloads that Python sees."""

from schema import MEMBER, PARAM_TYPE

SCHEMA_TYPES = {"Scalar": "Number", "int": "int", "int[]": "tuple of ints", "float": "float", "float[]": "tuple of floats",
                "Tensor[]": "tuple of Tensors", "Tensor?[]": "tuple of Tensors", "bool": "bool", "dtype": "torch.dtype",
                "layout": "torch.layout", "device": "torch.device", "memory_format": "torch.memory_format",
                "Generator": "torch.Generator", "str": "str", "Tensor": "Tensor"}


def static_default(p):
    """A constant initialiser of msa_value for a default."""
    kind, default, member = p.type, p.default, MEMBER[p.type]
    if default == "None":
        return {"opt_scalar": "{.opt_scalar = {false}}", "opt_int": "{.opt_int = {false}}",
                "opt_double": "{.opt_double = {false}}", "ints": "{.ints = {NULL, -1}}",
                "doubles": "{.doubles = {NULL, -1}}", "dtype": "{.dtype = MSA_NO_DTYPE}", "code": "{.code = -1}"}.get(
                    member, f"{{.{member} = NULL}}")
    number = {"inf": "(double)INFINITY", "-inf": "-(double)INFINITY", "nan": "(double)NAN"}.get(default, default)
    if member in ("scalar", "opt_scalar"):
        if default in ("True", "False"):
            body = f"{{MSA_BOOL, {{.i = {int(default == 'True')}}}, 0}}"
        elif any(c in default for c in ".enf"):
            body = f"{{MSA_FLOAT64, {{.d = {number}}}, 0}}"
        else:
            body = f"{{MSA_INT64, {{.i = {default}}}, 0}}"
        return f"{{.scalar = {body}}}" if member == "scalar" else f"{{.opt_scalar = {{true, {body}}}}}"
    if member == "ints":
        text = default.strip("[]()")
        count = len([t for t in text.split(",") if t.strip()])
        if p.list_size and count == 1 and not default.startswith("["):
            text, count = ", ".join([text] * p.list_size), p.list_size
        return f"{{.ints = {{(const int64_t[]){{{text or 0}}}, {count}}}}}"
    if member == "dtype":
        return "{.dtype = " + {"int64": "MSA_INT64", "float32": "MSA_FLOAT32", "bool": "MSA_BOOL"}[default] + "}"
    if member == "str":
        return '{.str = "' + default.strip("'\"") + '"}'
    if member == "opt_int":
        return f"{{.opt_int = {{true, {default.lower()}}}}}"
    if member == "opt_double":
        return f"{{.opt_double = {{true, {number}}}}}"
    if member == "code":
        return "{.code = " + {"contiguous_format": "0", "preserve_format": "1", "channels_last": "2"}[default] + "}"
    return f"{{.{member} = {default.lower() if kind == 'bool' else number}}}"


def schema_text(op, with_out):
    pieces, keyword = [], False
    for p in op.params:
        if p.keyword_only and not keyword:
            pieces.append("*")
            keyword = True
        name = "input" if p.name == "self" else p.name
        default = "" if p.default is None else f"={p.default}"
        pieces.append(f"{SCHEMA_TYPES[p.type.rstrip('?')]} {name}{default}")
    if with_out:
        pieces += ([] if keyword else ["*"]) + ["Tensor out" if op.result == "tensor" else "tuple of Tensors out"]
    return f"({', '.join(pieces)})".replace('"', "'")


def thunk(op, suffix):
    """A function that unboxes the arguments of an entry point."""
    args = [f"a[{i}].{MEMBER[p.type]}" for i, p in enumerate(op.params)]
    lines = [f"static int call_{op.c_name}{suffix}(const msa_value *a, msa_value *r) {{", "(void)a; (void)r;"]
    call = f"msa_{op.c_name}{suffix}"
    if suffix == "_" or op.mutates or op.result == "tensor":
        lines.append(f"return (r[0].tensor = {call}({', '.join(args)})) ? 0 : -1;")
    elif op.result == "list":
        lines.append(f"return (r[0].list = {call}({', '.join(args)})) ? 0 : -1;")
    elif op.result == "scalar":
        lines.append(f"return {call}({', '.join(args + ['&r[0].scalar'])});")
    elif op.result == "none":
        lines.append(f"return {call}({', '.join(args)});")
    else:
        n = len(op.results)
        lines += [f"msa_tensor *results[{n}];", f"if ({call}({', '.join(args + ['results'])}) != 0) return -1;",
                  f"for (int i = 0; i < {n}; i++) r[i].tensor = results[i];", "return 0;"]
    return lines + ["}"]


def out_thunk(op):
    args = [f"a[{i}].{MEMBER[p.type]}" for i, p in enumerate(op.params)]
    out = "out[0]" if op.result == "tensor" else "out"
    return [f"static int call_{op.c_name}_out(const msa_value *a, msa_tensor *const *out) {{",
            "(void)a;", f"return msa_{op.c_name}_out({', '.join(args + [out])});", "}"]


def descriptor(op, inplace):
    suffix = "_" if inplace else ""
    kind = "TENSOR" if inplace or op.mutates else {"tensor": "TENSOR", "list": "LIST", "scalar": "SCALAR",
                                                      "none": "NONE", "tensors": "TENSORS"}[op.result]
    with_out = "out" in op.forms and not inplace
    names = f"{op.c_name}_results" if op.result_names and not inplace and op.result == "tensors" else "NULL"
    return (f'static const msa_op op_{op.c_name}{suffix} = {{"{op.name}{suffix}", "{schema_text(op, with_out)}", '
            f"{op.c_name}_params, {len(op.params)}, MSA_R_{kind}, {1 if inplace or op.mutates else max(len(op.results), 0)}, "
            f"{'true' if inplace or op.mutates else 'false'}, {names}, call_{op.c_name}{suffix}, "
            f"{f'call_{op.c_name}_out' if with_out else 'NULL'}}};")


def groups(operators):
    """(module, name) -> descriptors for functions, name -> descriptors for methods."""
    functions, methods = {}, {}

    def add(name_suffix, op, symbol):
        spelled = [(op.module, op.name)]
        for alias in op.aliases:
            module, _, name = alias.rpartition(".")
            spelled.append((module if module else op.module, name))
        for module, name in spelled:
            if "function" in op.forms:
                functions.setdefault((module, name + name_suffix), []).append(symbol)
            if "method" in op.forms and module in ("", op.module):
                methods.setdefault(name + name_suffix, []).append(symbol)

    for op in operators:
        add("", op, f"op_{op.c_name}")
        if "inplace" in op.forms:
            add("_", op, f"op_{op.c_name}_")
    # An in-place form of a function row is a method as well where the function is one, or where it is torch's own.
    for op in operators:
        if "inplace" in op.forms and "method" not in op.forms and not op.module:
            methods.setdefault(op.name + "_", []).append(f"op_{op.c_name}_")
    return functions, methods


def documented_parameters(line):
    """The names of the parameters that can be given by position."""
    names = []
    for piece in line.strip("()").split(", "):
        if piece.startswith("*"):
            break
        names.append(piece.split("=")[0])
    return names


def synonyms(line, overloads, method):
    """Documented name -> the overloads' name, for parameters that all have at that position under one other name."""
    known = {"input" if p.name == "self" else p.name for op in overloads for p in op.params}
    pairs = {}
    for position, name in enumerate(documented_parameters(line), int(method)):
        theirs = {op.params[position].name for op in overloads if position < len(op.params) and not op.params[position].keyword_only}
        if len(theirs) == 1 and name not in known:
            ours = theirs.pop()
            pairs[name] = "input" if ours == "self" else ours
    return pairs


def table_file(operators, documented):
    parts = ['/* Generated by tools/opgen: descriptors of all operators. */', "#include <math.h>", '#include "msadapter/ops.h"',
             '#include "ops/internal.h"']
    functions, methods = groups(operators)
    # Operators that only formulas use need no descriptor.
    used = {symbol for table in (functions, methods) for symbols in table.values() for symbol in symbols}
    for op in operators:
        if not used & {f"op_{op.c_name}", f"op_{op.c_name}_"}:
            continue
        rows = []
        for p in op.params:
            flags = [f for f, on in (("MSA_OPTIONAL", p.optional), ("MSA_OPTIONAL_ITEMS", p.type == "Tensor?[]"),
                                     ("MSA_KEYWORD_ONLY", p.keyword_only), ("MSA_HAS_DEFAULT", p.default is not None),
                                     ("MSA_TAKES_NUMBER", p.name in op.numbers)) if on]
            base = p.type if p.type == "Tensor?[]" else p.type.rstrip("?")
            fallback = static_default(p) if p.default is not None else "{.i = 0}"
            rows.append(f'{{"{p.name}", MSA_P_{PARAM_TYPE[base]}, {" | ".join(flags) or 0}, {p.list_size}, {fallback}}}')
        parts.append(f"static const msa_param {op.c_name}_params[] = {{{', '.join(rows) or '{0}'}}};")
        if op.result_names and op.result == "tensors":
            listed = ", ".join('"' + n + '"' for n in op.result_names)
            parts.append(f"static const char *const {op.c_name}_results[] = {{{listed}}};")
        if f"op_{op.c_name}" in used:
            parts += thunk(op, "")
            if "out" in op.forms:
                parts += out_thunk(op)
            parts.append(descriptor(op, False))
        if "inplace" in op.forms and f"op_{op.c_name}_" in used:
            parts += thunk(op, "_")
            parts.append(descriptor(op, True))
    lists, rows = [], {"functions": [], "methods": []}
    by_symbol = {f"op_{op.c_name}{suffix}": op for op in operators for suffix in ("", "_")}
    unused = set(documented)
    for kind, table in (("functions", functions), ("methods", methods)):
        for key, symbols in table.items():
            module, name = key if isinstance(key, tuple) else ("", key)
            listed = f"{kind}_{module}_{name}_list"
            lists.append(f"static const msa_op *const {listed}[] = {{{', '.join('&' + s for s in symbols)}}};")
            full = f"Tensor.{name}" if kind == "methods" else f"{module or 'torch'}.{name}"
            text, pairs = "NULL", "NULL"
            if full in documented:
                unused.discard(full)
                text = f'"{documented[full]}"'
                found = synonyms(documented[full], [by_symbol[s] for s in symbols], kind == "methods")
                if found:
                    pairs = f"{kind}_{module}_{name}_synonyms"
                    rows_of = ", ".join(f'{{"{theirs}", "{ours}"}}' for theirs, ours in found.items())
                    lists.append(f"static const char *const {pairs}[][2] = {{{rows_of}, {{NULL, NULL}}}};")
            rows[kind].append(f'    {{"{module}", "{name}", {listed}, {len(symbols)}, {text}, {pairs}}},')
    if unused:
        raise SystemExit(f"documented, but no row's name: {', '.join(sorted(unused))}")
    parts += lists
    for kind, symbol in (("functions", "msa_function_groups"), ("methods", "msa_method_groups")):
        parts += [f"const msa_op_group {symbol}[] = {{", *rows[kind], "    {NULL, NULL, NULL, 0, NULL, NULL},", "};"]
    return "\n".join(parts) + "\n"
