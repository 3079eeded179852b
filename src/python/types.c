/* dtype, layout and memory_format objects: one constant object for each value. */
#include "python/types.h"

/* dtype */

typedef struct {
    PyObject_HEAD
    msa_dtype dtype;
} python_dtype;

static python_dtype dtype_objects[MSA_DTYPES];

PyObject *msa_python_dtype(msa_dtype dtype) {
    if (dtype < 0 || dtype >= MSA_DTYPES) Py_RETURN_NONE;
    return Py_NewRef((PyObject *)&dtype_objects[dtype]);
}

int msa_python_match_dtype(PyObject *object, msa_dtype *dtype) {
    if (Py_TYPE(object) == &msa_python_dtype_type) *dtype = ((python_dtype *)object)->dtype;
    else if (object == (PyObject *)&PyFloat_Type) *dtype = MSA_FLOAT64;
    else if (object == (PyObject *)&PyLong_Type) *dtype = MSA_INT64;
    else if (object == (PyObject *)&PyBool_Type) *dtype = MSA_BOOL;
    else if (object == (PyObject *)&PyComplex_Type) *dtype = MSA_COMPLEX128;
    else return 0;
    return 1;
}

int msa_python_as_dtype(PyObject *object, msa_dtype *dtype) {
    if (msa_python_match_dtype(object, dtype)) return 0;
    PyErr_Format(PyExc_TypeError, "must be torch.dtype, not %.200s", Py_TYPE(object)->tp_name);
    return -1;
}

static msa_dtype dtype_of(PyObject *self) { return ((python_dtype *)self)->dtype; }
static PyObject *dtype_repr(PyObject *self) { return PyUnicode_FromFormat("torch.%s", msa_dtype_name(dtype_of(self))); }
static PyObject *dtype_is_floating(PyObject *self, void *unused) { return PyBool_FromLong(msa_is_floating(dtype_of(self))); }
static PyObject *dtype_is_complex(PyObject *self, void *unused) { return PyBool_FromLong(msa_is_complex(dtype_of(self))); }
static PyObject *dtype_is_signed(PyObject *self, void *unused) {
    return PyBool_FromLong(dtype_of(self) != MSA_BOOL && dtype_of(self) != MSA_UINT8);
}
static PyObject *dtype_itemsize(PyObject *self, void *unused) { return PyLong_FromSize_t(msa_dtype_size(dtype_of(self))); }
static PyObject *dtype_module(PyObject *self, void *unused) { return PyUnicode_FromString("msadapter._C"); }
static PyObject *dtype_reduce(PyObject *self, PyObject *unused) { return PyUnicode_FromString(msa_dtype_name(dtype_of(self))); }
static PyObject *dtype_to_real(PyObject *self, PyObject *unused) { return msa_python_dtype(msa_dtype_real(dtype_of(self))); }
static PyObject *dtype_to_complex(PyObject *self, PyObject *unused) { return msa_python_dtype(msa_dtype_complex(dtype_of(self))); }

static PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, NULL, "Whether values are floating-point numbers.", NULL},
    {"is_complex", dtype_is_complex, NULL, "Whether values are complex numbers.", NULL},
    {"is_signed", dtype_is_signed, NULL, "Whether values may be negative.", NULL},
    {"itemsize", dtype_itemsize, NULL, "Bytes of an element.", NULL},
    {"__module__", dtype_module, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {"to_real", dtype_to_real, METH_NOARGS, "The dtype of the real part."},
    {"to_complex", dtype_to_complex, METH_NOARGS, "The complex dtype whose parts are of this one."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject msa_python_dtype_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.dtype",
    .tp_basicsize = sizeof(python_dtype),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The type of a tensor's elements.",
    .tp_repr = dtype_repr,
    .tp_getset = dtype_getset,
    .tp_methods = dtype_methods,
};

static const struct {
    const char *name;
    msa_dtype dtype;
} dtype_names[] = {
    {"bool", MSA_BOOL}, {"uint8", MSA_UINT8}, {"int8", MSA_INT8}, {"int16", MSA_INT16}, {"short", MSA_INT16},
    {"int32", MSA_INT32}, {"int", MSA_INT32}, {"int64", MSA_INT64}, {"long", MSA_INT64}, {"float16", MSA_FLOAT16},
    {"half", MSA_FLOAT16}, {"bfloat16", MSA_BFLOAT16}, {"float32", MSA_FLOAT32}, {"float", MSA_FLOAT32},
    {"float64", MSA_FLOAT64}, {"double", MSA_FLOAT64}, {"complex64", MSA_COMPLEX64}, {"cfloat", MSA_COMPLEX64},
    {"complex128", MSA_COMPLEX128}, {"cdouble", MSA_COMPLEX128},
};

/* layout and memory_format */

typedef struct {
    PyObject_HEAD
    const char *name;
    int code;
} python_constant;

static python_constant layouts[] = {
    {.name = "strided", .code = 0}, {.name = "sparse_coo", .code = 1}, {.name = "sparse_csr", .code = 2},
    {.name = "sparse_csc", .code = 3}, {.name = "sparse_bsr", .code = 4}, {.name = "sparse_bsc", .code = 5},
};
static python_constant memory_formats[] = {
    {.name = "contiguous_format", .code = MSA_CONTIGUOUS_FORMAT},
    {.name = "preserve_format", .code = MSA_PRESERVE_FORMAT},
    {.name = "channels_last", .code = MSA_CHANNELS_LAST},
    {.name = "channels_last_3d", .code = MSA_CHANNELS_LAST_3D},
};

static PyObject *constant_repr(PyObject *self) { return PyUnicode_FromFormat("torch.%s", ((python_constant *)self)->name); }
static PyObject *constant_reduce(PyObject *self, PyObject *unused) { return PyUnicode_FromString(((python_constant *)self)->name); }
static PyGetSetDef constant_getset[] = {{"__module__", dtype_module, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMethodDef constant_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

PyTypeObject msa_python_layout_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.layout",
    .tp_basicsize = sizeof(python_constant),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "How a tensor lies in memory.",
    .tp_repr = constant_repr,
    .tp_getset = constant_getset,
    .tp_methods = constant_methods,
};

PyTypeObject msa_python_memory_format_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.memory_format",
    .tp_basicsize = sizeof(python_constant),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "The order in which a tensor's dimensions lie in memory.",
    .tp_repr = constant_repr,
    .tp_getset = constant_getset,
    .tp_methods = constant_methods,
};

int msa_python_match_layout(PyObject *object, int *layout) {
    if (Py_TYPE(object) != &msa_python_layout_type) return 0;
    *layout = ((python_constant *)object)->code;
    if (*layout == 0) return 1;
    PyErr_Format(PyExc_NotImplementedError, "layout torch.%s is not implemented here", ((python_constant *)object)->name);
    return -1;
}

int msa_python_match_memory_format(PyObject *object, int *format) {
    if (Py_TYPE(object) != &msa_python_memory_format_type) return 0;
    *format = ((python_constant *)object)->code;
    return 1;
}

PyObject *msa_python_strided(void) { return Py_NewRef((PyObject *)&layouts[0]); }
PyObject *msa_python_layout(int layout) { return Py_NewRef((PyObject *)&layouts[layout]); }

static int add_constants(PyObject *module, python_constant *constants, size_t n, PyTypeObject *type) {
    if (PyType_Ready(type) != 0) return -1;
    for (size_t i = 0; i < n; i++) {
        PyObject_Init((PyObject *)&constants[i], type);
        if (PyModule_AddObjectRef(module, constants[i].name, (PyObject *)&constants[i]) != 0) return -1;
    }
    return 0;
}

int msa_python_add_types(PyObject *module) {
    if (PyType_Ready(&msa_python_dtype_type) != 0) return -1;
    for (int d = 0; d < MSA_DTYPES; d++) {
        PyObject_Init((PyObject *)&dtype_objects[d], &msa_python_dtype_type);
        dtype_objects[d].dtype = (msa_dtype)d;
    }
    for (size_t i = 0; i < sizeof dtype_names / sizeof *dtype_names; i++)
        if (PyModule_AddObjectRef(module, dtype_names[i].name, (PyObject *)&dtype_objects[dtype_names[i].dtype]) != 0) return -1;
    if (PyModule_AddObjectRef(module, "dtype", (PyObject *)&msa_python_dtype_type) != 0) return -1;
    if (add_constants(module, layouts, sizeof layouts / sizeof *layouts, &msa_python_layout_type) != 0 ||
        PyModule_AddObjectRef(module, "layout", (PyObject *)&msa_python_layout_type) != 0)
        return -1;
    if (add_constants(module, memory_formats, sizeof memory_formats / sizeof *memory_formats, &msa_python_memory_format_type) != 0 ||
        PyModule_AddObjectRef(module, "memory_format", (PyObject *)&msa_python_memory_format_type) != 0)
        return -1;
    if (msa_python_add_devices(module) != 0 || msa_python_add_sizes(module) != 0) return -1;
    return msa_python_add_generators(module) != 0 ? -1 : msa_python_add_type_infos(module);
}
