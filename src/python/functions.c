/* Operators as Python callables: functions in _ops, _nn, _linalg, ..., and methods of TensorBase.
 *
 * One object stands for a name with all its overloads. Methods are descriptors with Py_TPFLAGS_METHOD_DESCRIPTOR, so that
 * `a.add(b)` calls the operator at once, without making a bound object. */
#include "python/functions.h"

#include "msadapter/ops.h"
#include "python/override.h"
#include "python/types.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const msa_op_group *group;
    python_signature *signatures; /* made at the first call */
    bool method;
} python_operator;

static PyObject *return_types; /* name -> struct sequence type */

/* torch.return_types.max, and so on. */

static PyObject *structure_repr(PyObject *self) {
    PyObject *text = PyUnicode_FromFormat("%s(\n", Py_TYPE(self)->tp_name);
    PyObject *names = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "__match_args__");
    Py_ssize_t n = PyTuple_GET_SIZE(self);
    for (Py_ssize_t i = 0; text && names && i < n; i++) {
        PyObject *item = PyObject_Repr(PyTuple_GET_ITEM(self, i));
        Py_SETREF(text, item ? PyUnicode_FromFormat("%U%U=%U%s", text, PyTuple_GET_ITEM(names, i), item, i + 1 < n ? ",\n" : ")")
                             : NULL);
        Py_XDECREF(item);
    }
    if (!names) Py_CLEAR(text);
    Py_XDECREF(names);
    return text;
}

static PyTypeObject *structure_type(const msa_op *op) {
    PyObject *known = PyDict_GetItemString(return_types, op->name);
    if (known) return (PyTypeObject *)known;
    PyStructSequence_Field fields[16] = {{NULL, NULL}};
    if (op->n_results >= 16) return NULL;
    for (int i = 0; i < op->n_results; i++) fields[i].name = op->result_names[i];
    char *name = PyMem_Malloc(strlen(op->name) + 32); /* the type keeps it */
    if (!name) return (PyTypeObject *)PyErr_NoMemory();
    sprintf(name, "torch.return_types.%s", op->name);
    PyStructSequence_Desc description = {name, "The results of an operator, by name.", fields, op->n_results};
    PyTypeObject *type = PyStructSequence_NewType(&description);
    if (!type) return NULL;
    type->tp_repr = structure_repr;
    if (PyDict_SetItemString(return_types, op->name, (PyObject *)type) != 0) return NULL;
    Py_DECREF(type); /* the dictionary holds it */
    return type;
}

/* Results. */

static PyObject *wrap_or_none(msa_tensor *owned) { return owned ? msa_python_wrap(owned) : Py_NewRef(Py_None); }

static PyObject *wrap_several(const msa_op *op, const msa_value *results) {
    PyTypeObject *type = op->result_names ? structure_type(op) : NULL;
    PyObject *tuple = op->result_names ? (type ? PyStructSequence_New(type) : NULL) : PyTuple_New(op->n_results);
    for (int i = 0; i < op->n_results; i++) {
        PyObject *item = tuple ? wrap_or_none(results[i].tensor) : NULL;
        if (!tuple) msa_tensor_release(results[i].tensor);
        else if (!item) Py_CLEAR(tuple);
        else if (op->result_names) PyStructSequence_SET_ITEM(tuple, i, item);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *wrap_list(msa_list *list) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)list->n);
    for (int64_t i = 0; tuple && i < list->n; i++) {
        PyObject *item = wrap_or_none(msa_take(list->items[i]));
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    msa_list_release(list);
    return tuple;
}

static PyObject *wrap_results(const msa_op *op, const msa_value *results) {
    switch ((msa_result_kind)op->result) {
    case MSA_R_TENSOR: return msa_python_wrap(results[0].tensor);
    case MSA_R_TENSORS: return wrap_several(op, results);
    case MSA_R_LIST: return wrap_list(results[0].list);
    case MSA_R_SCALAR: return msa_python_from_scalar(results[0].scalar);
    default: Py_RETURN_NONE;
    }
}

static PyObject *out_type_error(const msa_op *op, PyObject *out) {
    return PyErr_Format(PyExc_TypeError, "%s(): argument 'out' must be %s, not %.200s", op->name,
                        op->n_results > 1 ? "tuple of Tensors" : "Tensor", Py_TYPE(out)->tp_name);
}

static PyObject *call_out(const python_arguments *a) {
    const msa_op *op = a->op;
    msa_tensor *out[16];
    if (op->result != MSA_R_TENSORS) {
        if (!msa_python_is_tensor(a->out)) return out_type_error(op, a->out);
        out[0] = ((python_tensor *)a->out)->tensor;
        return op->call_out(a->values, out) == 0 ? Py_NewRef(a->out) : msa_python_raise();
    }
    if ((!PyTuple_Check(a->out) && !PyList_Check(a->out)) || PySequence_Fast_GET_SIZE(a->out) != op->n_results)
        return out_type_error(op, a->out);
    for (int i = 0; i < op->n_results; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(a->out, i);
        if (!msa_python_is_tensor(item)) return out_type_error(op, a->out);
        out[i] = ((python_tensor *)item)->tensor;
    }
    if (op->call_out(a->values, out) != 0) return msa_python_raise();
    msa_value results[16];
    for (int i = 0; i < op->n_results; i++) results[i].tensor = msa_tensor_retain(out[i]);
    return wrap_several(op, results);
}

/* Hold the tensors of list arguments: another thread may change the list meanwhile. */
static void hold_lists(const python_arguments *a, bool hold) {
    for (int i = 0; i < a->op->n_params; i++) {
        if (a->op->params[i].type != MSA_P_TENSORS) continue;
        for (int64_t k = 0; k < a->values[i].tensors.n; k++) {
            if (hold) msa_tensor_retain(a->values[i].tensors.data[k]);
            else msa_tensor_release(a->values[i].tensors.data[k]);
        }
    }
}

static int call_without_gil(python_arguments *a, msa_value *results) {
    int status;
    hold_lists(a, true);
    Py_BEGIN_ALLOW_THREADS
    status = a->op->call(a->values, results);
    Py_END_ALLOW_THREADS
    hold_lists(a, false);
    return status;
}

static PyObject *call_group(const msa_op_group *group, const python_signature *signatures, bool method,
                            PyObject *const *args, Py_ssize_t n, PyObject *keywords, PyTypeObject *preserved) {
    python_arguments a;
    if (msa_python_parse(group, signatures, method, args, n, keywords, &a) != 0) return NULL;
    PyObject *result;
    if (__builtin_expect(a.out != NULL, 0)) {
        result = call_out(&a);
    } else {
        msa_value results[16];
        int status = a.largest > MSA_PYTHON_GIL_NUMEL ? call_without_gil(&a, results) : a.op->call(a.values, results);
        if (__builtin_expect(preserved != NULL, 0)) msa_python_result_class = preserved;
        result = status == 0 ? wrap_results(a.op, results) : msa_python_raise();
        msa_python_result_class = msa_python_tensor_class;
    }
    if (a.n_temporaries | a.n_blocks) msa_python_arguments_clear(&a);
    return result;
}

static PyObject *operator_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    python_operator *o = (python_operator *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (__builtin_expect(!o->signatures, 0) && msa_python_signatures(o->group, o->method, &o->signatures) != 0) return NULL;
    if (o->method && (n < 1 || !msa_python_is_tensor(args[0])))
        return PyErr_Format(PyExc_TypeError, "descriptor '%s' for 'torch._C._TensorBase' objects doesn't apply to a '%.200s' object",
                            o->group->name, n < 1 ? "missing" : Py_TYPE(args[0])->tp_name);
    PyTypeObject *preserved = NULL;
    msa_override override = msa_python_override_among(args, n + (keywords ? PyTuple_GET_SIZE(keywords) : 0), &preserved);
    if (override == MSA_OVERRIDDEN) return msa_python_call_override(self, o->group->name, args, n, keywords);
    return call_group(o->group, o->signatures, o->method, args, n, keywords, preserved);
}

/* The callable types. */

static void operator_dealloc(PyObject *self) {
    PyMem_Free(((python_operator *)self)->signatures);
    PyObject_Free(self);
}

static PyObject *operator_get(PyObject *self, PyObject *object, PyObject *type) {
    return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyObject *operator_repr(PyObject *self) {
    python_operator *o = (python_operator *)self;
    return o->method ? PyUnicode_FromFormat("<method '%s' of 'torch._C._TensorBase' objects>", o->group->name)
                     : PyUnicode_FromFormat("<built-in method %s of type object at %p>", o->group->name, self);
}

static PyObject *operator_name(PyObject *self, void *unused) {
    return PyUnicode_FromString(((python_operator *)self)->group->name);
}

static PyObject *operator_qualified_name(PyObject *self, void *unused) {
    python_operator *o = (python_operator *)self;
    return PyUnicode_FromFormat(o->method ? "TensorBase.%s" : "%s", o->group->name);
}

static PyObject *operator_module(PyObject *self, void *unused) {
    const char *module = ((python_operator *)self)->group->module;
    return module[0] ? PyUnicode_FromFormat("msadapter._C._%s", module) : PyUnicode_FromString("msadapter._C._ops");
}

static PyObject *default_text(const msa_param *p) {
    const msa_value *v = &p->fallback;
    bool optional = p->flags & MSA_OPTIONAL;
    msa_scalar number = msa_int(0);
    switch ((msa_param_type)p->type) {
    case MSA_P_SCALAR:
        if (optional && !v->opt_scalar.has) return PyUnicode_FromString("None");
        number = optional ? v->opt_scalar.v : v->scalar;
        break;
    case MSA_P_INT:
        if (optional && !v->opt_int.has) return PyUnicode_FromString("None");
        number = msa_int(optional ? v->opt_int.v : v->i);
        break;
    case MSA_P_DOUBLE:
        if (optional && !v->opt_double.has) return PyUnicode_FromString("None");
        number = msa_float(optional ? v->opt_double.v : v->d);
        break;
    case MSA_P_BOOL:
        if (optional && !v->opt_int.has) return PyUnicode_FromString("None");
        number = msa_bool_scalar(optional ? v->opt_int.v : v->b);
        break;
    case MSA_P_STR: return v->str ? PyUnicode_FromFormat("'%s'", v->str) : PyUnicode_FromString("None");
    case MSA_P_INTS: {
        if (v->ints.n < 0) return PyUnicode_FromString("None");
        PyObject *tuple = PyTuple_New((Py_ssize_t)v->ints.n), *text;
        for (Py_ssize_t i = 0; tuple && i < (Py_ssize_t)v->ints.n; i++)
            PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(v->ints.data[i]));
        text = tuple ? PyObject_Repr(tuple) : NULL;
        Py_XDECREF(tuple);
        return text;
    }
    case MSA_P_MEMORY_FORMAT:
        if (v->code >= 0) return PyUnicode_FromString(v->code == MSA_PRESERVE_FORMAT ? "torch.preserve_format" : "torch.contiguous_format");
        return PyUnicode_FromString("None");
    case MSA_P_DTYPE:
        if (v->dtype != MSA_NO_DTYPE) return PyUnicode_FromFormat("torch.%s", msa_dtype_name(v->dtype));
        return PyUnicode_FromString("None");
    default: return PyUnicode_FromString("None");
    }
    PyObject *value = msa_python_from_scalar(number), *text = value ? PyObject_Repr(value) : NULL;
    Py_XDECREF(value);
    return text;
}

/* The documented line, where it differs, and one line for each overload: `add(input, other, *, alpha=1, out=None) -> Tensor`. */
static PyObject *operator_doc(PyObject *self, void *unused) {
    python_operator *o = (python_operator *)self;
    static const char *const results[] = {"None", "Tensor", "Tensors", "tuple of Tensors", "Number"};
    PyObject *text = o->group->documented ? PyUnicode_FromFormat("%s%s -> %s\n", o->group->name, o->group->documented,
                                                                 results[o->group->overloads[0]->result])
                                          : PyUnicode_FromString("");
    for (int i = 0; text && i < o->group->n; i++) {
        const msa_op *op = o->group->overloads[i];
        bool keyword_only = false, first = true;
        python_signature shape;
        msa_python_shape(op, o->method, &shape);
        Py_SETREF(text, PyUnicode_FromFormat("%U%s(", text, o->group->name));
        for (int p = o->method ? 1 : 0; text && p < op->n_params; p++) {
            const msa_param *param = &op->params[p];
            const char *name = strcmp(param->name, "self") == 0 ? "input" : param->name;
            const char *star = shape.spreads && p == (o->method ? 1 : 0) ? "*" : "";
            if ((param->flags & MSA_KEYWORD_ONLY) && !keyword_only) {
                keyword_only = true;
                Py_SETREF(text, PyUnicode_FromFormat(first ? "%U*" : "%U, *", text));
                first = false;
            }
            PyObject *fallback = text && (param->flags & MSA_HAS_DEFAULT) ? default_text(param) : NULL;
            if (text)
                Py_SETREF(text, fallback ? PyUnicode_FromFormat("%U%s%s=%U", text, first ? "" : ", ", name, fallback)
                                         : PyUnicode_FromFormat("%U%s%s%s", text, first ? "" : ", ", star, name));
            Py_XDECREF(fallback);
            first = false;
        }
        if (text && op->call_out && !o->method)
            Py_SETREF(text, PyUnicode_FromFormat(keyword_only ? "%U, out=None" : "%U, *, out=None", text));
        if (text) Py_SETREF(text, PyUnicode_FromFormat("%U) -> %s\n", text, results[op->result]));
    }
    return text;
}

static PyObject *operator_reduce(PyObject *self, PyObject *unused) { return operator_name(self, NULL); }

static PyGetSetDef operator_getset[] = {
    {"__name__", operator_name, NULL, NULL, NULL},
    {"__qualname__", operator_qualified_name, NULL, NULL, NULL},
    {"__module__", operator_module, NULL, NULL, NULL},
    {"__doc__", operator_doc, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef operator_methods[] = {
    {"__reduce__", operator_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#define OPERATOR_TYPE(type_name, flags, ...) \
    { \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = type_name, .tp_basicsize = sizeof(python_operator), \
        .tp_vectorcall_offset = offsetof(python_operator, vectorcall), .tp_call = PyVectorcall_Call, \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | (flags), .tp_dealloc = operator_dealloc, \
        .tp_repr = operator_repr, .tp_getset = operator_getset, .tp_methods = operator_methods, __VA_ARGS__ \
    }
static PyTypeObject function_type = OPERATOR_TYPE("torch.builtin_operator", 0);
static PyTypeObject method_type = OPERATOR_TYPE("torch.method_operator", Py_TPFLAGS_METHOD_DESCRIPTOR, .tp_descr_get = operator_get);

PyObject *msa_python_operator(const msa_op_group *group, bool method) {
    python_operator *o = PyObject_New(python_operator, method ? &method_type : &function_type);
    if (!o) return NULL;
    o->vectorcall = operator_call;
    o->group = group;
    o->signatures = NULL;
    o->method = method;
    return (PyObject *)o;
}

/* By name. */

static const msa_op_group *find(const msa_op_group *groups, const char *name) {
    for (const msa_op_group *g = groups; g->name; g++)
        if (!g->module[0] && strcmp(g->name, name) == 0) return g;
    return NULL;
}

const msa_op_group *msa_python_find_function(const char *name) { return find(msa_function_groups, name); }
const msa_op_group *msa_python_find_method(const char *name) { return find(msa_method_groups, name); }

PyObject *msa_python_call_operator(const char *name, PyObject *const *args, Py_ssize_t n) {
    static PyObject *known; /* name -> callable */
    if (!known && !(known = PyDict_New())) return NULL;
    PyObject *callable = PyDict_GetItemString(known, name);
    if (!callable) {
        const msa_op_group *group = msa_python_find_function(name);
        bool method = !group;
        if (!group) group = msa_python_find_method(name);
        if (!group) return PyErr_Format(PyExc_NotImplementedError, "%s() is not implemented", name);
        callable = msa_python_operator(group, method);
        if (!callable || PyDict_SetItemString(known, name, callable) != 0) return NULL;
        Py_DECREF(callable);
    }
    return operator_call(callable, args, (size_t)n, NULL);
}

/* Modules. */

static PyObject *submodule(PyObject *module, const char *name) {
    char attribute[64], full[96];
    snprintf(attribute, sizeof attribute, "_%s", name[0] ? name : "ops");
    snprintf(full, sizeof full, "msadapter._C.%s", attribute);
    PyObject *known = PyDict_GetItemString(PyModule_GetDict(module), attribute);
    if (known) return known;
    PyObject *made = PyModule_New(full);
    if (!made) return NULL;
    PyObject *modules = PyImport_GetModuleDict();
    int status = PyDict_SetItemString(modules, full, made) == 0 ? PyModule_AddObjectRef(module, attribute, made) : -1;
    Py_DECREF(made);
    return status == 0 ? made : NULL;
}

int msa_python_add_functions(PyObject *module) {
    if (PyType_Ready(&function_type) != 0 || PyType_Ready(&method_type) != 0) return -1;
    return_types = PyDict_New();
    if (!return_types || PyModule_AddObjectRef(module, "_return_types", return_types) != 0) return -1;
    static const char *const always[] = {"", "nn", "linalg", "special", "fft", "sparse"};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (!submodule(module, always[i])) return -1;
    for (const msa_op_group *g = msa_function_groups; g->name; g++) {
        PyObject *target = submodule(module, g->module), *callable = target ? msa_python_operator(g, false) : NULL;
        int status = callable ? PyDict_SetItemString(PyModule_GetDict(target), g->name, callable) : -1;
        Py_XDECREF(callable);
        if (status != 0) return -1;
    }
    PyObject *attributes = msa_python_tensor_type.tp_dict;
    for (const msa_op_group *g = msa_method_groups; g->name; g++) {
        if (PyDict_GetItemString(attributes, g->name)) continue; /* written by hand */
        PyObject *callable = msa_python_operator(g, true);
        int status = callable ? PyDict_SetItemString(attributes, g->name, callable) : -1;
        Py_XDECREF(callable);
        if (status != 0) return -1;
    }
    PyType_Modified(&msa_python_tensor_type);
    return 0;
}
