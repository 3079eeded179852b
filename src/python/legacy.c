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

/* FloatTensor and the others: classes that make tensors of one dtype and know them by isinstance. Their metaclass does both; the
 * class dictionary holds the dtype. */

static msa_dtype kind_dtype(PyObject *cls, bool *cuda) {
    PyObject *dict = ((PyTypeObject *)cls)->tp_dict, *dtype = PyDict_GetItemString(dict, "dtype");
    msa_dtype d = MSA_NO_DTYPE;
    *cuda = PyDict_GetItemString(dict, "is_cuda") == Py_True;
    return dtype && msa_python_match_dtype(dtype, &d) ? d : MSA_NO_DTYPE;
}

static PyObject *kind_call(PyObject *self, PyObject *args, PyObject *keywords) {
    bool cuda;
    int device;
    const char *name = ((PyTypeObject *)self)->tp_name;
    msa_dtype dtype = kind_dtype(self, &cuda);
    if (dtype == MSA_NO_DTYPE) return PyErr_Format(PyExc_TypeError, "%s makes no tensors", name);
    if (no_keywords(keywords, name) != 0) return NULL;
    if (cuda) {
        PyObject *text = PyUnicode_FromString("cuda");
        int status = text ? msa_python_match_device(text, &device) : -1;
        Py_XDECREF(text);
        if (status < 0) return NULL;
    }
    msa_tensor *t = legacy_values(args, dtype, name, true);
    return t ? msa_python_wrap(t) : NULL;
}

static PyObject *kind_check(PyObject *self, PyObject *object) {
    bool cuda;
    msa_dtype dtype = kind_dtype(self, &cuda);
    return PyBool_FromLong(!cuda && dtype != MSA_NO_DTYPE && msa_python_is_tensor(object) && msa_python_tensor_of(object)->dtype == dtype);
}

static PyObject *kind_repr(PyObject *self) {
    bool cuda;
    kind_dtype(self, &cuda);
    return PyUnicode_FromFormat("<class 'torch.%s%s'>", cuda ? "cuda." : "", ((PyTypeObject *)self)->tp_name);
}

static PyMethodDef kind_methods[] = {
    {"__instancecheck__", kind_check, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject kind_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.tensortype",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_TYPE_SUBCLASS,
    .tp_call = kind_call,
    .tp_repr = kind_repr,
    .tp_methods = kind_methods,
};

static const struct {
    const char *name;
    msa_dtype dtype;
} kinds[] = {
    {"BoolTensor", MSA_BOOL},  {"ByteTensor", MSA_UINT8},   {"CharTensor", MSA_INT8},          {"ShortTensor", MSA_INT16},   {"IntTensor", MSA_INT32},
    {"LongTensor", MSA_INT64}, {"HalfTensor", MSA_FLOAT16}, {"BFloat16Tensor", MSA_BFLOAT16}, {"FloatTensor", MSA_FLOAT32}, {"DoubleTensor", MSA_FLOAT64},
};

/* A class, under the name by which pickles find it in _C. */
static PyObject *new_kind(PyObject *module, const char *name, msa_dtype dtype, bool cuda) {
    char attribute[64];
    snprintf(attribute, sizeof attribute, "%s%s", cuda ? "_Cuda" : "", name);
    PyObject *cls = PyObject_CallFunction((PyObject *)&kind_type, "s(O){s:s,s:s,s:N,s:N,s:O}", name, &PyBaseObject_Type, "__module__",
                                          "msadapter._C", "__qualname__", attribute, "dtype", msa_python_dtype(dtype), "layout",
                                          msa_python_strided(), "is_cuda", cuda ? Py_True : Py_False);
    if (cls && PyModule_AddObjectRef(module, attribute, cls) != 0) Py_CLEAR(cls);
    return cls;
}

int msa_python_add_legacy(PyObject *module) {
    kind_type.tp_base = &PyType_Type;
    if (PyType_Ready(&kind_type) != 0) return -1;
    PyObject *cuda = PyDict_New();
    for (size_t i = 0; cuda && i < sizeof kinds / sizeof *kinds; i++) {
        PyObject *own = new_kind(module, kinds[i].name, kinds[i].dtype, false), *other = new_kind(module, kinds[i].name, kinds[i].dtype, true);
        if (!own || !other || PyDict_SetItemString(cuda, kinds[i].name, other) != 0) Py_CLEAR(cuda);
        Py_XDECREF(own);
        Py_XDECREF(other);
    }
    int status = cuda ? PyModule_AddObjectRef(module, "_cuda_tensor_types", cuda) : -1;
    Py_XDECREF(cuda);
    return status;
}
