"""Reads the operator table: rows of src/ops/*.yaml become Operator objects, checked."""

import re

import yaml

C_TYPES = {
    "Tensor": "msa_tensor *", "Tensor?": "msa_tensor *", "Tensor[]": "msa_tensors", "Tensor?[]": "msa_tensors",
    "Scalar": "msa_scalar", "Scalar?": "msa_opt_scalar", "int": "int64_t", "int?": "msa_opt_int",
    "int[]": "msa_ints", "int[]?": "msa_ints", "float": "double", "float?": "msa_opt_double",
    "float[]": "msa_doubles", "float[]?": "msa_doubles", "bool": "bool", "bool?": "msa_opt_int",
    "dtype": "msa_dtype", "dtype?": "msa_dtype", "str": "const char *", "str?": "const char *",
    "Generator?": "msa_generator *", "layout?": "int", "device?": "int", "memory_format?": "int",
}
MEMBER = {  # of msa_value
    "Tensor": "tensor", "Tensor?": "tensor", "Tensor[]": "tensors", "Tensor?[]": "tensors", "Scalar": "scalar",
    "Scalar?": "opt_scalar", "int": "i", "int?": "opt_int", "int[]": "ints", "int[]?": "ints", "float": "d",
    "float?": "opt_double", "float[]": "doubles", "float[]?": "doubles", "bool": "b", "bool?": "opt_int",
    "dtype": "dtype", "dtype?": "dtype", "str": "str", "str?": "str", "Generator?": "generator", "layout?": "code",
    "device?": "code", "memory_format?": "code",
}
PARAM_TYPE = {
    "Tensor": "TENSOR", "Tensor[]": "TENSORS", "Tensor?[]": "TENSORS", "Scalar": "SCALAR", "int": "INT", "int[]": "INTS",
    "float": "DOUBLE", "float[]": "DOUBLES", "bool": "BOOL", "dtype": "DTYPE", "str": "STR", "Generator": "GENERATOR",
    "layout": "LAYOUT", "device": "DEVICE", "memory_format": "MEMORY_FORMAT",
}
NOT_FOR_KERNELS = {"layout", "device", "pin_memory", "requires_grad"}
OPTIONS = ("dtype? dtype=None", "layout? layout=None", "device? device=None", "bool? pin_memory=None",
           "bool requires_grad=False")
WORKS = ("pointwise", "kernel", "view", "composite", "function", "mutate")
KEYS = {"op", "forms", "module", "alias", "grad", "nondifferentiable", "options", "autocast", "shard", "mindspore", "doc", "check", "numbers", "resizes", "node",
        "exact_out", "sparse", "sparse_inplace", "sparse_function", *WORKS}
AUTOCAST = ("lower", "cuda_lower", "float32", "cpu_float32", "cuda_float32", "promote", "cuda_promote")
FORMS = {"function", "method", "inplace", "out"}
C_KEYWORDS = {"default", "float", "double", "int", "long", "short", "char", "register", "signed", "unsigned", "break",
              "const", "continue", "auto", "static", "switch", "case", "do", "for", "if", "else", "while", "return",
              "struct", "union", "enum", "void", "inline", "restrict", "y0", "y1", "j0", "j1"}


class TableError(Exception):
    """Something in the table is wrong; the text names the row."""


class Param:
    """One parameter of a signature."""

    def __init__(self, type_, name, default, keyword_only):
        sized = re.match(r"^(int|float)\[(\d+)\](\??)$", type_)
        self.list_size = int(sized.group(2)) if sized else 0
        self.type = f"{sized.group(1)}[]{sized.group(3)}" if sized else type_
        self.name, self.default, self.keyword_only = name, default, keyword_only
        if self.type not in C_TYPES:
            raise TableError(f"unknown type {type_!r}")
        self.c_name = name + "_" if name in C_KEYWORDS else name
        self.optional = self.type.endswith("?")
        self.is_tensor = self.type in ("Tensor", "Tensor?")
        self.is_list = self.type in ("Tensor[]", "Tensor?[]")

    @property
    def c_type(self):
        return C_TYPES[self.type]

    @property
    def declaration(self):
        return f"{self.c_type}{'' if self.c_type.endswith('*') else ' '}{self.c_name}"

    @property
    def for_kernel(self):
        return self.name not in NOT_FOR_KERNELS


class Operator:
    """A row."""

    def __init__(self, row, source):
        self.row, self.source = row, source
        unknown = set(row) - KEYS
        if unknown:
            raise TableError(f"unknown keys {sorted(unknown)}")
        match = re.match(r"^([A-Za-z_0-9]+)(?:\.([A-Za-z_0-9]+))?\((.*)\)\s*->\s*(.+)$", row["op"].strip(), re.S)
        if not match:
            raise TableError("signature not understood")
        self.name, self.overload, params, result = match.groups()
        self.c_name = self.name if not self.overload else f"{self.name.rstrip('_')}_{self.overload}" + (
            "_" if self.name.endswith("_") else "")
        self.params = self._params(params, row.get("options", False))
        self._result(result.strip())
        self.forms = _names(row.get("forms", "function"))
        if set(self.forms) - FORMS:
            raise TableError(f"unknown forms {self.forms}")
        self.module = row.get("module", "")
        self.aliases = _names(row.get("alias", ""))
        works = [w for w in WORKS if w in row]
        if len(works) != 1:
            raise TableError(f"exactly one of {', '.join(WORKS)} is wanted, got {works}")
        self.work = works[0]
        self.how = row[self.work]
        self.exact_out = row.get("exact_out", False)  # True; or "apart": converted, but sharing no memory
        self.mutates = self.work == "mutate"
        self.sets_requires_grad = any(p.name == "requires_grad" for p in self.params)
        self.autocast = row.get("autocast", "")
        if self.autocast and self.autocast not in AUTOCAST:
            raise TableError(f"{self.name}: autocast is one of {', '.join(AUTOCAST)}, not {self.autocast}")
        self.node = row.get("node", "")
        # What is called when any tensor is sparse: a function of the same signature, or "through" for the work itself; nothing: such calls are refused.
        self.sparse = row.get("sparse", "")
        self.sparse_function = row.get("sparse_function", "")  # the same, but recording by itself, as `function` does
        self.sparse_inplace = row.get("sparse_inplace", "")
        self.resizes = bool(row.get("resizes", False))
        nondifferentiable = row.get("nondifferentiable", "")
        self.never_differentiable = nondifferentiable == "all"
        self.nondifferentiable = set() if self.never_differentiable else set(_names(nondifferentiable))
        self.nondifferentiable |= {"indices"} & set(self.results)
        self.grads = [(_names(names), str(expression)) for names, expression in (row.get("grad") or {}).items()]
        known = {p.name for p in self.params}
        self.numbers = set(_names(row.get("numbers", "")))
        if self.numbers - known:
            raise TableError(f"numbers for unknown parameters {self.numbers - known}")
        if {"result", "results"} & known:
            raise TableError("result and results are names of results, not of parameters")
        for names, _ in self.grads:
            if set(names) - known:
                raise TableError(f"gradient for unknown parameters {set(names) - known}")

    @staticmethod
    def _params(text, options):
        params, keyword_only = [], False
        pieces = [p.strip() for p in _split(text) if p.strip()]
        if options:
            pieces += ([] if "*" in pieces else ["*"]) + list(OPTIONS)
        for piece in pieces:
            if piece == "*":
                keyword_only = True
                continue
            declaration, _, default = piece.partition("=")
            type_, name = declaration.split()
            params.append(Param(type_, name, default.strip() if default else None, keyword_only))
        return params

    def _result(self, text):
        self.result_names = None
        if text == "()":
            self.result, self.results = "none", []
        elif text.startswith("("):
            parts = [p.split() for p in _split(text[1:-1])]
            self.result = "tensors"
            self.results = [p[1] if len(p) > 1 else f"result{i}" for i, p in enumerate(parts)]
            self.result_names = self.results if all(len(p) > 1 for p in parts) else None
        elif text == "Tensor":
            self.result, self.results = "tensor", ["result"]
        elif text == "Tensor[]":
            self.result, self.results = "list", ["result"]
        elif text in ("bool", "int", "float", "Scalar"):
            self.result, self.results = "scalar", ["result"]
        else:
            raise TableError(f"unknown result {text!r}")

    @property
    def self_param(self):
        return self.params[0] if self.params and self.params[0].is_tensor else None

    @property
    def tensor_params(self):
        return [p for p in self.params if p.is_tensor]


def _names(text):
    return [n.strip() for n in str(text).split(",") if n.strip()]


def _split(text):
    """Split at commas outside brackets."""
    pieces, depth, current = [], 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            pieces.append(current)
            current = ""
        else:
            current += character
    return pieces + [current]


def load(paths):
    """All rows of the given files, in order."""
    operators, seen = [], {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or []
        for row in rows:
            try:
                operator = Operator(row, path)
                if operator.c_name in seen:
                    raise TableError(f"defined before in {seen[operator.c_name]}")
            except (TableError, KeyError, ValueError) as error:
                raise SystemExit(f"{path}: {row.get('op', row)}: {error}") from None
            seen[operator.c_name] = path
            operators.append(operator)
    return operators


PROTOTYPE = re.compile(
    r"^(?:MSA_API\s+)?(?:const\s+)?([A-Za-z_0-9]+\s*\**)\s*([a-z_0-9]+)\(([^)]*)\)(?:\s*__attribute__.*)?;", re.M | re.S)
KIND_OF_C = {"msa_tensor *": "Tensor", "msa_tensors": "Tensor[]", "msa_scalar": "Scalar", "msa_opt_scalar": "Scalar?",
             "int64_t": "int", "int": "int", "msa_opt_int": "int?", "msa_ints": "int[]", "double": "float",
             "msa_opt_double": "float?", "msa_doubles": "float[]", "bool": "bool", "msa_dtype": "dtype",
             "const char *": "str", "msa_generator *": "Generator?", "msa_list *": "list", "msa_tensor **": "results"}


def load_helpers(paths):
    """Prototypes of headers: name -> (result kind, [(kind, name)])."""
    helpers = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        for result, name, params in PROTOTYPE.findall(text):
            kinds = []
            for piece in params.replace("\n", " ").split(","):
                piece = piece.strip()
                if piece in ("void", ""):
                    continue
                match = re.match(r"^(.*?)([a-z_0-9A-Z]+)$", piece)
                kinds.append((KIND_OF_C[re.sub(r"\s+", " ", match.group(1)).strip()], match.group(2)))
            result = re.sub(r"\s+", "", result).replace("*", " *")
            helpers[name] = (KIND_OF_C[result], kinds)
    return helpers


def load_documented(path):
    """Name ("torch.div", "Tensor.div") -> parameter list as PyTorch documents it."""
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path else {}
