/* torch.finfo and torch.iinfo: the limits of number types. */
#include "python/types.h"

#include <float.h>

typedef struct {
    PyObject_HEAD
    msa_dtype dtype;
} python_info;

static const struct {
    int bits;
    double eps, max, smallest, resolution;
} floats[] = {
    [MSA_FLOAT16] = {16, 0x1p-10, 65504, 0x1p-14, 1e-3},
    [MSA_BFLOAT16] = {16, 0x1p-7, 0x1.fep127, 0x1p-126, 1e-2},
    [MSA_FLOAT32] = {32, FLT_EPSILON, FLT_MAX, FLT_MIN, 1e-6},
    [MSA_FLOAT64] = {64, DBL_EPSILON, DBL_MAX, DBL_MIN, 1e-15},
};

static PyObject *info(PyTypeObject *type, msa_dtype dtype) {
    python_info *i = (python_info *)type->tp_alloc(type, 0);
    if (i) i->dtype = dtype;
    return (PyObject *)i;
}

static int dtype_argument(PyObject *args, PyObject *keywords, const char *format, msa_dtype *dtype) {
    static char *names[] = {"type", NULL};
    PyObject *object = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, format, names, &object)) return -1;
    *dtype = msa_default_dtype();
    return object ? msa_python_as_dtype(object, dtype) : 0;
}

static PyObject *finfo_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    msa_dtype d;
    if (dtype_argument(args, keywords, "|O:finfo", &d) != 0) return NULL;
    if (!msa_is_inexact(d))
        return PyErr_Format(PyExc_TypeError, "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.%s'",
                            msa_dtype_name(d));
    return info(type, msa_dtype_real(d));
}

static PyObject *iinfo_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    msa_dtype d;
    if (dtype_argument(args, keywords, "O:iinfo", &d) != 0) return NULL;
    if (msa_is_inexact(d))
        return PyErr_Format(PyExc_TypeError, "torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.%s'",
                            msa_dtype_name(d));
    if (d == MSA_BOOL) return PyErr_Format(PyExc_TypeError, "torch.bool is not supported by torch.iinfo");
    return info(type, d);
}

static msa_dtype dtype_of(PyObject *self) { return ((python_info *)self)->dtype; }

static PyObject *get_dtype(PyObject *self, void *unused) { return PyUnicode_FromString(msa_dtype_name(dtype_of(self))); }
static PyObject *finfo_bits(PyObject *self, void *unused) { return PyLong_FromLong(floats[dtype_of(self)].bits); }
static PyObject *finfo_eps(PyObject *self, void *unused) { return PyFloat_FromDouble(floats[dtype_of(self)].eps); }
static PyObject *finfo_max(PyObject *self, void *unused) { return PyFloat_FromDouble(floats[dtype_of(self)].max); }
static PyObject *finfo_min(PyObject *self, void *unused) { return PyFloat_FromDouble(-floats[dtype_of(self)].max); }
static PyObject *finfo_tiny(PyObject *self, void *unused) { return PyFloat_FromDouble(floats[dtype_of(self)].smallest); }
static PyObject *finfo_resolution(PyObject *self, void *unused) { return PyFloat_FromDouble(floats[dtype_of(self)].resolution); }

static int bits(PyObject *self) { return (int)msa_dtype_size(dtype_of(self)) * 8; }
static long long iinfo_high(PyObject *self) {
    return dtype_of(self) == MSA_UINT8 ? 255 : (long long)((1ull << (bits(self) - 1)) - 1);
}
static PyObject *iinfo_bits(PyObject *self, void *unused) { return PyLong_FromLong(bits(self)); }
static PyObject *iinfo_max(PyObject *self, void *unused) { return PyLong_FromLongLong(iinfo_high(self)); }
static PyObject *iinfo_min(PyObject *self, void *unused) {
    return PyLong_FromLongLong(dtype_of(self) == MSA_UINT8 ? 0 : -iinfo_high(self) - 1);
}

static PyObject *finfo_repr(PyObject *self) {
    msa_dtype d = dtype_of(self);
    char text[256];
    snprintf(text, sizeof text, "finfo(resolution=%g, min=%g, max=%g, eps=%g, smallest_normal=%g, tiny=%g, dtype=%s)",
             floats[d].resolution, -floats[d].max, floats[d].max, floats[d].eps, floats[d].smallest, floats[d].smallest, msa_dtype_name(d));
    return PyUnicode_FromString(text);
}

static PyObject *iinfo_repr(PyObject *self) {
    char text[128];
    double low = dtype_of(self) == MSA_UINT8 ? 0 : -(double)iinfo_high(self) - 1;
    snprintf(text, sizeof text, "iinfo(min=%g, max=%g, dtype=%s)", low, (double)iinfo_high(self), msa_dtype_name(dtype_of(self)));
    return PyUnicode_FromString(text);
}

static PyObject *info_compare(PyObject *a, PyObject *b, int operation) {
    if (Py_TYPE(a) != Py_TYPE(b) || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((dtype_of(a) == dtype_of(b)) == (operation == Py_EQ));
}

static Py_hash_t info_hash(PyObject *self) { return dtype_of(self); }

static PyGetSetDef finfo_getset[] = {
    {"dtype", get_dtype, NULL, "The name of the type.", NULL},
    {"bits", finfo_bits, NULL, "Bits of a number.", NULL},
    {"eps", finfo_eps, NULL, "The distance from 1 to the next number.", NULL},
    {"max", finfo_max, NULL, "The largest number.", NULL},
    {"min", finfo_min, NULL, "The smallest number, -max.", NULL},
    {"tiny", finfo_tiny, NULL, "The smallest normal number above 0.", NULL},
    {"smallest_normal", finfo_tiny, NULL, "The smallest normal number above 0.", NULL},
    {"resolution", finfo_resolution, NULL, "The resolution in decimal digits.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyGetSetDef iinfo_getset[] = {
    {"dtype", get_dtype, NULL, "The name of the type.", NULL},
    {"bits", iinfo_bits, NULL, "Bits of a number.", NULL},
    {"max", iinfo_max, NULL, "The largest number.", NULL},
    {"min", iinfo_min, NULL, "The smallest number.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject finfo_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.finfo",
    .tp_basicsize = sizeof(python_info),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "finfo(dtype)\n\nThe limits of a floating-point type. TypeError for others.",
    .tp_new = finfo_new,
    .tp_repr = finfo_repr,
    .tp_hash = info_hash,
    .tp_richcompare = info_compare,
    .tp_getset = finfo_getset,
};
static PyTypeObject iinfo_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.iinfo",
    .tp_basicsize = sizeof(python_info),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "iinfo(dtype)\n\nThe limits of an integer type. TypeError for others.",
    .tp_new = iinfo_new,
    .tp_repr = iinfo_repr,
    .tp_hash = info_hash,
    .tp_richcompare = info_compare,
    .tp_getset = iinfo_getset,
};

int msa_python_add_type_infos(PyObject *module) {
    if (PyType_Ready(&finfo_type) != 0 || PyType_Ready(&iinfo_type) != 0) return -1;
    return PyModule_AddObjectRef(module, "finfo", (PyObject *)&finfo_type) != 0
               ? -1
               : PyModule_AddObjectRef(module, "iinfo", (PyObject *)&iinfo_type);
}
