/* The old constructors: Tensor(2, 3), Tensor([1, 2]), FloatTensor(...), and isinstance(t, FloatTensor). */
#include "autograd/internal.h"
#include "python/tensor.h"

/* The values that Tensor(...) takes in `dtype`; owned, NULL with an exception. */
static msa_tensor *legacy_values(PyObject *args, msa_dtype dtype, const char *name, bool exact) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    int64_t sizes[MSA_MAX_DIMS];
    if (n == 0) {
        msa_tensor *t = msa_tensor_new(MSA_INTS(0), dtype);
        if (!t) msa_python_raise();
        return t;
    }
    PyObject *first = PyTuple_GET_ITEM(args, 0);
    if (n == 1 && msa_python_is_tensor(first)) {
        msa_tensor *source = msa_python_tensor_of(first);
        if (exact && source->dtype != dtype) {
            PyErr_Format(PyExc_TypeError, "%s() expected a tensor of %s (got %s)", name, msa_dtype_name(dtype),
                         msa_dtype_name((msa_dtype)source->dtype));
            return NULL;
        }
        msa_tensor *t = msa_tensor_alias(source);
        if (!t) msa_python_raise();
        return t;
    }
    bool all_ints = n <= MSA_MAX_DIMS;
    for (Py_ssize_t i = 0; all_ints && i < n; i++) {
        int status = msa_python_as_int(PyTuple_GET_ITEM(args, i), &sizes[i]);
        if (status < 0) return NULL;
        all_ints = status == 1;
    }
    if (!all_ints && n == 1 && PyObject_TypeCheck(first, &msa_python_size_type)) {
        int count;
        if (msa_python_as_ints(first, sizes, MSA_MAX_DIMS, &count) != 1) return NULL;
        n = count;
        all_ints = true;
    }
    if (all_ints) {
        msa_tensor *t = msa_tensor_new((msa_ints){sizes, n}, dtype);
        if (!t) msa_python_raise();
        return t;
    }
    if (n != 1) {
        PyErr_Format(PyExc_TypeError, "%s() received an invalid combination of arguments", name);
        return NULL;
    }
    if (PyObject_TypeCheck(first, &msa_python_storage_type)) return msa_python_storage_values(first);
    if (!PySequence_Check(first) && !msa_python_is_array(first)) {
        PyErr_Format(PyExc_TypeError, "new(): data must be a sequence (got %.200s)", Py_TYPE(first)->tp_name);
        return NULL;
    }
    return msa_python_new_tensor(first, dtype);
}

static int no_keywords(PyObject *keywords, const char *name) {
    if (!keywords || !PyDict_GET_SIZE(keywords)) return 0;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(keywords, &at, &key, &value)) {
        int device;
        if (PyUnicode_CompareWithASCIIString(key, "device") == 0 && (value == Py_None || msa_python_match_device(value, &device) == 1)) continue;
        if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", name, key);
        return -1;
    }
    return 0;
}

PyObject *msa_python_legacy_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    if (no_keywords(keywords, "new") != 0) return NULL;
    /* A subclass of Tensor gets an object of its own over the same memory. */
    msa_tensor *t = legacy_values(args, msa_default_dtype(), "new", false);
    if (!t) return NULL;
    return t->python ? msa_python_wrap(t) : msa_python_wrap_as(type == &msa_python_tensor_type ? msa_python_tensor_class : type, t);
}

/* FloatTensor and the others: objects that make tensors of one dtype, and know them. */

typedef struct {
    PyObject_HEAD
    const char *name;
    msa_dtype dtype;
    bool cuda;
} python_tensor_type_object;

static PyObject *kind_call(PyObject *self, PyObject *args, PyObject *keywords) {
    python_tensor_type_object *k = (python_tensor_type_object *)self;
    int device;
    if (no_keywords(keywords, k->name) != 0) return NULL;
    if (k->cuda) {
        PyObject *text = PyUnicode_FromString("cuda");
        int status = text ? msa_python_match_device(text, &device) : -1;
        Py_XDECREF(text);
        if (status < 0) return NULL;
    }
    msa_tensor *t = legacy_values(args, k->dtype, k->name, true);
    return t ? msa_python_wrap(t) : NULL;
}

static PyObject *kind_check(PyObject *self, PyObject *object) {
    python_tensor_type_object *k = (python_tensor_type_object *)self;
    return PyBool_FromLong(!k->cuda && msa_python_is_tensor(object) && msa_python_tensor_of(object)->dtype == k->dtype);
}

static PyObject *kind_repr(PyObject *self) {
    python_tensor_type_object *k = (python_tensor_type_object *)self;
    return PyUnicode_FromFormat("<class 'torch.%s%s'>", k->cuda ? "cuda." : "", k->name);
}
static PyObject *kind_name(PyObject *self, void *unused) { return PyUnicode_FromString(((python_tensor_type_object *)self)->name); }
static PyObject *kind_module(PyObject *self, void *unused) {
    return PyUnicode_FromString(((python_tensor_type_object *)self)->cuda ? "torch.cuda" : "torch");
}
static PyObject *kind_dtype(PyObject *self, void *unused) { return msa_python_dtype(((python_tensor_type_object *)self)->dtype); }
static PyObject *kind_layout(PyObject *self, void *unused) { return msa_python_strided(); }
static PyObject *kind_is_cuda(PyObject *self, void *unused) { return PyBool_FromLong(((python_tensor_type_object *)self)->cuda); }
static PyObject *kind_reduce(PyObject *self, PyObject *unused) {
    python_tensor_type_object *k = (python_tensor_type_object *)self;
    return Py_BuildValue("N(si)", msa_python_helper("_make_tensor_type"), k->name, k->cuda);
}

static PyMethodDef kind_methods[] = {
    {"__instancecheck__", kind_check, METH_O, NULL},
    {"__reduce__", kind_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef kind_getset[] = {
    {"__name__", kind_name, NULL, NULL, NULL},
    {"__qualname__", kind_name, NULL, NULL, NULL},
    {"__module__", kind_module, NULL, NULL, NULL},
    {"dtype", kind_dtype, NULL, NULL, NULL},
    {"layout", kind_layout, NULL, NULL, NULL},
    {"is_cuda", kind_is_cuda, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject kind_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.tensortype",
    .tp_basicsize = sizeof(python_tensor_type_object),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_call = kind_call,
    .tp_repr = kind_repr,
    .tp_methods = kind_methods,
    .tp_getset = kind_getset,
};

static python_tensor_type_object kinds[] = {
    {.name = "BoolTensor", .dtype = MSA_BOOL}, {.name = "ByteTensor", .dtype = MSA_UINT8}, {.name = "CharTensor", .dtype = MSA_INT8},
    {.name = "ShortTensor", .dtype = MSA_INT16}, {.name = "IntTensor", .dtype = MSA_INT32}, {.name = "LongTensor", .dtype = MSA_INT64},
    {.name = "HalfTensor", .dtype = MSA_FLOAT16}, {.name = "BFloat16Tensor", .dtype = MSA_BFLOAT16},
    {.name = "FloatTensor", .dtype = MSA_FLOAT32}, {.name = "DoubleTensor", .dtype = MSA_FLOAT64},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
static python_tensor_type_object cuda_kinds[KINDS];

static PyObject *make_tensor_type(PyObject *module, PyObject *args) {
    const char *name;
    int cuda;
    if (!PyArg_ParseTuple(args, "sp:_make_tensor_type", &name, &cuda)) return NULL;
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) return Py_NewRef((PyObject *)(cuda ? &cuda_kinds[i] : &kinds[i]));
    return PyErr_Format(PyExc_ValueError, "no tensor type '%.200s'", name);
}

static PyMethodDef functions[] = {
    {"_make_tensor_type", make_tensor_type, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_legacy(PyObject *module) {
    if (PyType_Ready(&kind_type) != 0) return -1;
    PyObject *cuda = PyDict_New();
    if (!cuda) return -1;
    for (int i = 0; i < KINDS; i++) {
        cuda_kinds[i] = kinds[i];
        cuda_kinds[i].cuda = true;
        PyObject_Init((PyObject *)&kinds[i], &kind_type);
        PyObject_Init((PyObject *)&cuda_kinds[i], &kind_type);
        if (PyModule_AddObjectRef(module, kinds[i].name, (PyObject *)&kinds[i]) != 0 ||
            PyDict_SetItemString(cuda, kinds[i].name, (PyObject *)&cuda_kinds[i]) != 0)
            return -1;
    }
    int status = PyModule_AddObjectRef(module, "_cuda_tensor_types", cuda);
    Py_DECREF(cuda);
    return status == 0 ? PyModule_AddFunctions(module, functions) : -1;
}
