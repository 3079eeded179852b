/* The parser of operator arguments: driven by the descriptors, no allocation on the way.
 *
 * Overloads are tried in order. Whether an argument fits is decided while it is converted, so that the usual call
 * looks at each argument once; only when no overload fits is the reason looked for. */
#include "python/arguments.h"

#include "python/types.h"

/* Other names that arguments go by (numpy's). */
static const struct {
    const char *name, *alias;
} aliases[] = {{"dim", "axis"}, {"keepdim", "keepdims"}, {"input", "x"}, {"input", "a"}, {"input", "x1"}, {"input", "self"},
               {"other", "x2"}, {"dim0", "axis0"}, {"dim1", "axis1"}};

static const char *const type_texts[] = {
    [MSA_P_TENSOR] = "Tensor", [MSA_P_TENSORS] = "tuple of Tensors", [MSA_P_SCALAR] = "Number", [MSA_P_INT] = "int",
    [MSA_P_INTS] = "tuple of ints", [MSA_P_DOUBLE] = "float", [MSA_P_DOUBLES] = "tuple of floats", [MSA_P_BOOL] = "bool",
    [MSA_P_DTYPE] = "torch.dtype", [MSA_P_STR] = "str", [MSA_P_GENERATOR] = "torch.Generator",
    [MSA_P_LAYOUT] = "torch.layout", [MSA_P_DEVICE] = "torch.device", [MSA_P_MEMORY_FORMAT] = "torch.memory_format",
};

void msa_python_shape(const msa_op *op, bool method, python_signature *signature) {
    int first = method ? 1 : 0;
    signature->op = op;
    signature->n_positional = 0;
    for (int p = 0; p < op->n_params; p++)
        if (!(op->params[p].flags & MSA_KEYWORD_ONLY)) signature->n_positional = (uint8_t)(p + 1);
    signature->spreads = signature->n_positional == first + 1 && op->params[first].type == MSA_P_INTS;
}

int msa_python_signatures(const msa_op_group *group, bool method, python_signature **signatures) {
    python_signature *made = PyMem_Calloc((size_t)group->n, sizeof *made);
    if (!made) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < group->n; i++) {
        const msa_op *op = group->overloads[i];
        msa_python_shape(op, method, &made[i]);
        made[i].synonyms = group->synonyms;
        if (op->n_params > MSA_MAX_PARAMS) {
            PyErr_Format(PyExc_SystemError, "%s has more than %d parameters", op->name, MSA_MAX_PARAMS);
            return -1;
        }
        for (int p = 0; p < op->n_params; p++) {
            const char *name = op->params[p].name;
            made[i].names[p] = PyUnicode_InternFromString(strcmp(name, "self") == 0 ? "input" : name);
            if (!made[i].names[p]) return -1;
        }
    }
    *signatures = made;
    return 0;
}

static void *room(python_arguments *a, Py_ssize_t words) {
    if (words <= MSA_ARENA_WORDS - a->used) {
        void *at = a->arena + a->used;
        a->used += (int)words;
        return at;
    }
    void *block = a->n_blocks < MSA_MAX_TEMPORARIES ? PyMem_Malloc((size_t)words * sizeof(int64_t)) : NULL;
    if (!block) PyErr_NoMemory();
    else a->blocks[a->n_blocks++] = block;
    return block;
}

static inline void note_tensor(python_arguments *a, const msa_tensor *t) {
    if (t->numel > a->largest) a->largest = t->numel;
}

/* Functions that take numbers for all their tensors: torch.mul(2, 3). Elsewhere numbers stand beside a tensor only. */
static bool takes_numbers_alone(const char *name) {
    static const char *const names[] = {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static int convert_tensor(const msa_param *p, PyObject *o, msa_value *v, python_arguments *a) {
    if (msa_python_is_tensor(o)) {
        v->tensor = ((python_tensor *)o)->tensor;
        note_tensor(a, v->tensor);
        return 1;
    }
    if (o == Py_None && (p->flags & MSA_OPTIONAL)) {
        v->tensor = NULL;
        return 1;
    }
    if (!(p->flags & MSA_TAKES_NUMBER)) return 0;
    msa_scalar number;
    int status = msa_python_as_scalar(o, &number);
    if (status != 1) return status;
    if (a->n_temporaries == MSA_MAX_TEMPORARIES) return 0;
    v->tensor = msa_python_number(number);
    if (!v->tensor) {
        msa_python_raise();
        return -1;
    }
    a->temporaries[a->n_temporaries++] = v->tensor;
    return 1;
}

static int convert_tensors(const msa_param *p, PyObject *o, msa_value *v, python_arguments *a) {
    if (o == Py_None && (p->flags & MSA_OPTIONAL)) {
        v->tensors = (msa_tensors){NULL, 0};
        return 1;
    }
    if (!PyTuple_Check(o) && !PyList_Check(o)) return 0;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
    msa_tensor **list = room(a, n);
    if (!list) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(o, i);
        if (msa_python_is_tensor(item)) {
            list[i] = ((python_tensor *)item)->tensor;
            note_tensor(a, list[i]);
        } else if (item == Py_None && (p->flags & MSA_OPTIONAL_ITEMS)) {
            list[i] = NULL;
        } else {
            return 0;
        }
    }
    v->tensors = (msa_tensors){list, n};
    return 1;
}

static int convert_ints(const msa_param *p, PyObject *o, msa_value *v, python_arguments *a) {
    if (PyTuple_Check(o) || PyList_Check(o)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
        int64_t *list = room(a, n ? n : 1);
        if (!list) return -1;
        for (Py_ssize_t i = 0; i < n; i++) {
            int status = msa_python_as_int(PySequence_Fast_GET_ITEM(o, i), &list[i]);
            if (status != 1) return status;
        }
        v->ints = (msa_ints){list, n};
        return 1;
    }
    if (o == Py_None) {
        v->ints = MSA_NO_INTS;
        return (p->flags & MSA_OPTIONAL) != 0;
    }
    if (!p->list_size) return 0;
    int64_t one;
    int status = msa_python_as_int(o, &one);
    if (status != 1) return status;
    int64_t *list = room(a, p->list_size);
    if (!list) return -1;
    for (int i = 0; i < p->list_size; i++) list[i] = one;
    v->ints = (msa_ints){list, p->list_size};
    return 1;
}

static int convert_doubles(const msa_param *p, PyObject *o, msa_value *v, python_arguments *a) {
    if (o == Py_None && (p->flags & MSA_OPTIONAL)) {
        v->doubles = (msa_doubles){NULL, -1};
        return 1;
    }
    bool single = p->list_size && !PyTuple_Check(o) && !PyList_Check(o);
    if (!single && !PyTuple_Check(o) && !PyList_Check(o)) return 0;
    Py_ssize_t n = single ? p->list_size : PySequence_Fast_GET_SIZE(o);
    double *list = room(a, n ? n : 1);
    if (!list) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int status = msa_python_as_double(single ? o : PySequence_Fast_GET_ITEM(o, i), &list[i]);
        if (status != 1) return status;
    }
    v->doubles = (msa_doubles){list, n};
    return 1;
}

static int as_bool(PyObject *o, int64_t *value) {
    if (PyBool_Check(o)) {
        *value = o == Py_True;
        return 1;
    }
    if (strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) != 0) return 0;
    int truth = PyObject_IsTrue(o);
    *value = truth;
    return truth < 0 ? -1 : 1;
}

static int convert(const msa_param *p, int index, PyObject *o, msa_value *v, python_arguments *a) {
    bool optional = p->flags & MSA_OPTIONAL;
    int status = 0;
    switch ((msa_param_type)p->type) {
    case MSA_P_TENSOR: return convert_tensor(p, o, v, a);
    case MSA_P_TENSORS: return convert_tensors(p, o, v, a);
    case MSA_P_INTS: return convert_ints(p, o, v, a);
    case MSA_P_DOUBLES: return convert_doubles(p, o, v, a);
    case MSA_P_SCALAR:
        if (!optional) return msa_python_as_scalar(o, &v->scalar);
        v->opt_scalar.has = o != Py_None;
        return o == Py_None ? 1 : msa_python_as_scalar(o, &v->opt_scalar.v);
    case MSA_P_INT:
        if (!optional) return msa_python_as_int(o, &v->i);
        v->opt_int.has = o != Py_None;
        return o == Py_None ? 1 : msa_python_as_int(o, &v->opt_int.v);
    case MSA_P_DOUBLE:
        if (!optional) return msa_python_as_double(o, &v->d);
        v->opt_double.has = o != Py_None;
        return o == Py_None ? 1 : msa_python_as_double(o, &v->opt_double.v);
    case MSA_P_BOOL:
        if (optional) {
            v->opt_int.has = o != Py_None;
            return o == Py_None ? 1 : as_bool(o, &v->opt_int.v);
        }
        int64_t truth;
        status = as_bool(o, &truth);
        if (status == 1) v->b = truth != 0;
        return status;
    case MSA_P_DTYPE:
        v->dtype = MSA_NO_DTYPE;
        return o == Py_None ? optional : msa_python_match_dtype(o, &v->dtype);
    case MSA_P_STR:
        v->str = NULL;
        if (o == Py_None) return optional;
        if (!PyUnicode_Check(o)) return 0;
        v->str = PyUnicode_AsUTF8(o);
        return v->str ? 1 : -1;
    case MSA_P_GENERATOR:
        v->generator = NULL;
        if (o == Py_None) return 1;
        return msa_python_match_generator(o, &v->generator);
    case MSA_P_LAYOUT: v->code = -1; return o == Py_None ? 1 : msa_python_match_layout(o, &v->code);
    case MSA_P_DEVICE: v->code = -1; return o == Py_None ? 1 : msa_python_match_device(o, &v->code);
    case MSA_P_MEMORY_FORMAT: v->code = -1; return o == Py_None ? 1 : msa_python_match_memory_format(o, &v->code);
    }
    return status;
}

/* The parameter that a keyword names, n_params for out, or -1. */
static int find_keyword(const python_signature *s, PyObject *keyword) {
    for (int i = 0; i < s->op->n_params; i++)
        if (s->names[i] == keyword) return i;
    for (int i = 0; i < s->op->n_params; i++)
        if (PyUnicode_Compare(s->names[i], keyword) == 0) return i;
    if (PyUnicode_CompareWithASCIIString(keyword, "out") == 0) return s->op->call_out ? s->op->n_params : -1;
    for (size_t k = 0; k < sizeof aliases / sizeof *aliases; k++)
        if (PyUnicode_CompareWithASCIIString(keyword, aliases[k].alias) == 0)
            for (int i = 0; i < s->op->n_params; i++)
                if (PyUnicode_CompareWithASCIIString(s->names[i], aliases[k].name) == 0) return i;
    for (const char *const(*pair)[2] = s->synonyms; pair && (*pair)[0]; pair++)
        if (PyUnicode_CompareWithASCIIString(keyword, (*pair)[0]) == 0)
            for (int i = 0; i < s->op->n_params; i++)
                if (PyUnicode_CompareWithASCIIString(s->names[i], (*pair)[1]) == 0) return i;
    return -1;
}

static int refuse(bool complain) { return complain ? -1 : 0; }

static int wrong_type(const python_signature *s, bool method, int i, PyObject *o, bool by_position) {
    const char *expected = type_texts[s->op->params[i].type];
    PyObject *found = NULL;
    Py_ssize_t at = 0;
    uint8_t type = s->op->params[i].type;
    if ((PyTuple_Check(o) || PyList_Check(o)) && (type == MSA_P_INTS || type == MSA_P_TENSORS || type == MSA_P_DOUBLES))
        for (at = 0; at < PySequence_Fast_GET_SIZE(o); at++) {
            PyObject *item = PySequence_Fast_GET_ITEM(o, at);
            int64_t integer;
            double number;
            bool fits = type == MSA_P_TENSORS ? msa_python_is_tensor(item)
                        : type == MSA_P_INTS  ? msa_python_as_int(item, &integer) == 1
                                              : msa_python_as_double(item, &number) == 1;
            PyErr_Clear();
            if (fits) continue;
            found = item;
            break;
        }
    char position[32] = "";
    if (by_position) snprintf(position, sizeof position, " (position %d)", method ? i : i + 1);
    if (found && type == MSA_P_TENSORS)
        PyErr_Format(PyExc_TypeError, "expected Tensor as element %zd in argument %d, but got %.200s", at, method ? i - 1 : i,
                     Py_TYPE(found)->tp_name);
    else if (found)
        PyErr_Format(PyExc_TypeError, "%s(): argument '%U'%s must be %s, but found element of type %.200s at pos %zd",
                     s->op->name, s->names[i], position, expected, Py_TYPE(found)->tp_name, at);
    else
        PyErr_Format(PyExc_TypeError, "%s(): argument '%U'%s must be %s, not %.200s", s->op->name, s->names[i], position,
                     expected, Py_TYPE(o)->tp_name);
    return -1;
}

static int missing(const python_signature *s, PyObject *const *slots, bool complain) {
    if (!complain) return 0;
    PyObject *names = NULL;
    int count = 0;
    for (int i = 0; i < s->op->n_params; i++) {
        if (slots[i] || (s->op->params[i].flags & MSA_HAS_DEFAULT)) continue;
        PyObject *text = names ? PyUnicode_FromFormat("%U, \"%U\"", names, s->names[i])
                               : PyUnicode_FromFormat("\"%U\"", s->names[i]);
        Py_XSETREF(names, text);
        if (!names) return -1;
        count++;
    }
    PyErr_Format(PyExc_TypeError, "%s() missing %d required positional arguments: %U", s->op->name, count, names);
    Py_XDECREF(names);
    return -1;
}

/* Ints given one by one for a list. */
static int spread(const python_signature *s, int first, PyObject *const *args, Py_ssize_t n, python_arguments *a) {
    int64_t *list = room(a, n - first);
    if (!list) return -1;
    for (Py_ssize_t i = first; i < n; i++) {
        int status = msa_python_as_int(args[i], &list[i - first]);
        if (status != 1) return status;
    }
    a->values[first].ints = (msa_ints){list, n - first};
    return 1;
}

static int match(const python_signature *s, bool method, PyObject *const *args, Py_ssize_t n, PyObject *keywords,
                 python_arguments *a, bool complain) {
    const msa_op *op = s->op;
    int n_params = op->n_params, first = method ? 1 : 0, spread_at = -1;
    PyObject *slots[MSA_MAX_PARAMS + 1];
    a->op = op;
    a->out = NULL;
    a->used = a->n_temporaries = a->n_blocks = 0;
    a->largest = -1;
    if (s->spreads && n > first && !PyTuple_Check(args[first]) && !PyList_Check(args[first])) {
        int status = spread(s, first, args, n, a);
        if (status < 0) return -1;
        if (status == 1) {
            spread_at = first;
            slots[first] = args[first];
            for (int i = 0; i < first; i++) slots[i] = args[i];
            n = first + 1;
        }
    }
    if (n > s->n_positional) {
        if (complain)
            PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd were given", op->name,
                         s->n_positional - first, s->n_positional - first == 1 ? "" : "s", n - first);
        return refuse(complain);
    }
    for (Py_ssize_t i = 0; i < n; i++) slots[i] = args[i];
    for (Py_ssize_t i = n; i <= n_params; i++) slots[i] = NULL;
    if (keywords) {
        /* Values of keywords follow the positional ones as they were given. */
        Py_ssize_t given = PyTuple_GET_SIZE(keywords);
        PyObject *const *values = args + (spread_at < 0 ? n : a->values[spread_at].ints.n + first);
        for (Py_ssize_t k = 0; k < given; k++) {
            PyObject *keyword = PyTuple_GET_ITEM(keywords, k);
            int at = find_keyword(s, keyword);
            if (at < 0 || (method && at == 0)) {
                if (complain)
                    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", op->name, keyword);
                return refuse(complain);
            }
            if (slots[at]) {
                if (complain)
                    PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'", op->name, keyword);
                return refuse(complain);
            }
            slots[at] = values[k];
        }
        a->out = slots[n_params] == Py_None ? NULL : slots[n_params];
    }
    for (int i = 0; i < n_params; i++) {
        const msa_param *p = &op->params[i];
        if (!slots[i]) {
            if (!(p->flags & MSA_HAS_DEFAULT)) return missing(s, slots, complain);
            a->values[i] = p->fallback;
            continue;
        }
        if (i == spread_at) continue;
        int status = convert(p, i, slots[i], &a->values[i], a);
        if (status < 0) return -1;
        if (status == 0) return complain ? wrong_type(s, method, i, slots[i], i < n) : 0;
    }
    if (a->n_temporaries && a->largest < 0 && !takes_numbers_alone(op->name)) {
        for (int i = 0; complain && i < n_params; i++)
            if (op->params[i].type == MSA_P_TENSOR && slots[i]) return wrong_type(s, method, i, slots[i], i < n);
        return 0;
    }
    return 1;
}

void msa_python_arguments_clear(python_arguments *a) {
    for (int i = 0; i < a->n_temporaries; i++) msa_tensor_release(a->temporaries[i]);
    for (int i = 0; i < a->n_blocks; i++) PyMem_Free(a->blocks[i]);
    a->n_temporaries = a->n_blocks = 0;
}

static PyObject *signature_text(const python_signature *s, bool method) {
    PyObject *pieces = PyList_New(0), *comma = PyUnicode_FromString(", "), *text = NULL;
    bool keyword_only = false;
    for (int i = method ? 1 : 0; pieces && comma && i < s->op->n_params; i++) {
        const msa_param *p = &s->op->params[i];
        PyObject *piece = NULL;
        if ((p->flags & MSA_KEYWORD_ONLY) && !keyword_only) {
            keyword_only = true;
            piece = PyUnicode_FromString("*");
            if (!piece || PyList_Append(pieces, piece) != 0) goto done;
            Py_DECREF(piece);
        }
        piece = PyUnicode_FromFormat("%s %U", type_texts[p->type], s->names[i]);
        int status = piece ? PyList_Append(pieces, piece) : -1;
        Py_XDECREF(piece);
        if (status != 0) goto done;
    }
    text = pieces && comma ? PyUnicode_Join(comma, pieces) : NULL;
    if (text && s->op->call_out)
        Py_SETREF(text, PyUnicode_FromFormat(keyword_only ? "%U, Tensor out" : "%U, *, Tensor out", text));
done:
    Py_XDECREF(pieces);
    Py_XDECREF(comma);
    return text;
}

static PyObject *given_text(PyObject *const *args, Py_ssize_t first, Py_ssize_t n, PyObject *keywords) {
    PyObject *text = PyUnicode_FromString("");
    Py_ssize_t total = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    for (Py_ssize_t i = first; text && i < total; i++) {
        const char *type = Py_TYPE(args[i])->tp_name, *separator = i > first ? ", " : "";
        const char *dot = strrchr(type, '.');
        type = dot && msa_python_is_tensor(args[i]) ? dot + 1 : type;
        PyObject *longer = i < n ? PyUnicode_FromFormat("%U%s%s", text, separator, type)
                                 : PyUnicode_FromFormat("%U%s%U=%s", text, separator, PyTuple_GET_ITEM(keywords, i - n), type);
        Py_SETREF(text, longer);
    }
    return text;
}

/* No overload fits: say why where only one could have, or list them all. */
static int explain(const msa_op_group *group, const python_signature *signatures, bool method, PyObject *const *args,
                   Py_ssize_t n, PyObject *keywords) {
    Py_ssize_t total = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    int candidates = 0, last = 0;
    for (int i = 0; i < group->n; i++) {
        const msa_op *op = signatures[i].op;
        if (total > op->n_params + (op->call_out != NULL) && !signatures[i].spreads) continue;
        candidates++;
        last = i;
    }
    if (group->n == 1 || candidates == 1) {
        python_arguments again;
        int status = match(&signatures[candidates == 1 ? last : 0], method, args, n, keywords, &again, true);
        msa_python_arguments_clear(&again);
        if (status < 0) return -1;
    }
    PyObject *given = given_text(args, method ? 1 : 0, n, keywords);
    PyObject *text = given ? PyUnicode_FromFormat("%s() received an invalid combination of arguments - got (%U), but expected "
                                                  "one of:\n", group->name, given)
                           : NULL;
    for (int i = 0; text && i < group->n; i++) {
        PyObject *line = signature_text(&signatures[i], method);
        Py_SETREF(text, line ? PyUnicode_FromFormat("%U * (%U)\n", text, line) : NULL);
        Py_XDECREF(line);
    }
    if (text) PyErr_SetObject(PyExc_TypeError, text);
    Py_XDECREF(given);
    Py_XDECREF(text);
    return -1;
}

int msa_python_parse(const msa_op_group *group, const python_signature *signatures, bool method, PyObject *const *args,
                     Py_ssize_t n, PyObject *keywords, python_arguments *parsed) {
    for (int i = 0; i < group->n; i++) {
        int status = match(&signatures[i], method, args, n, keywords, parsed, false);
        if (status == 1) return 0;
        msa_python_arguments_clear(parsed);
        if (status < 0) return -1;
    }
    return explain(group, signatures, method, args, n, keywords);
}
