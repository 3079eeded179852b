/* Conversions between Python numbers and the library's plain values. */
#include "python/arguments.h"

/* numpy's scalar types are told by name: numpy may never have been imported. */
int msa_python_is_numpy_scalar(PyObject *object) {
    const char *name = Py_TYPE(object)->tp_name;
    if (strncmp(name, "numpy.", 6) != 0) return 0;
    name += 6;
    static const char *const kinds[] = {"float", "int", "uint", "bool", "complex", "long", "ulong", "clong", "short", "byte",
                                        "ushort", "ubyte", "half", "single", "double", "intc", "half"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0) return 1;
    return 0;
}

static int long_value(PyObject *object, int64_t *value) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) {
        PyErr_SetString(PyExc_RuntimeError, "Overflow when unpacking long");
        return -1;
    }
    if (v == -1 && PyErr_Occurred()) return -1;
    *value = v;
    return 1;
}

static int numpy_scalar(PyObject *object, msa_scalar *value) {
    const char *name = Py_TYPE(object)->tp_name + 6;
    if (strncmp(name, "bool", 4) == 0) {
        int truth = PyObject_IsTrue(object);
        if (truth < 0) return -1;
        *value = msa_bool_scalar(truth);
        return 1;
    }
    if (name[0] == 'c') {
        Py_complex c = PyComplex_AsCComplex(object);
        if (c.real == -1 && PyErr_Occurred()) return -1;
        *value = msa_complex(c.real, c.imag);
        return 1;
    }
    if (PyIndex_Check(object)) {
        PyObject *index = PyNumber_Index(object);
        if (!index) PyErr_Clear();
        else {
            int64_t i = 0;
            int status = long_value(index, &i);
            Py_DECREF(index);
            *value = msa_int(i);
            return status;
        }
    }
    double d = PyFloat_AsDouble(object);
    if (d == -1 && PyErr_Occurred()) return -1;
    *value = msa_float(d);
    return 1;
}

int msa_python_as_scalar(PyObject *object, msa_scalar *value) {
    if (PyFloat_Check(object)) {
        *value = msa_float(PyFloat_AS_DOUBLE(object));
        return 1;
    }
    if (PyBool_Check(object)) {
        *value = msa_bool_scalar(object == Py_True);
        return 1;
    }
    if (PyLong_Check(object)) {
        int64_t i = 0;
        int status = long_value(object, &i);
        *value = msa_int(i);
        return status;
    }
    if (PyComplex_Check(object)) {
        Py_complex c = PyComplex_AsCComplex(object);
        *value = msa_complex(c.real, c.imag);
        return 1;
    }
    if (msa_python_is_tensor(object)) {
        const msa_tensor *t = ((python_tensor *)object)->tensor;
        if (t->ndim != 0 || t->requires_grad) return 0;
        if (msa_tensor_item(t, value) == 0) return 1;
        msa_python_raise();
        return -1;
    }
    return msa_python_is_numpy_scalar(object) ? numpy_scalar(object, value) : 0;
}

int msa_python_scalar(PyObject *object, msa_scalar *value) {
    int status = msa_python_as_scalar(object, value);
    if (status == 1) return 0;
    if (status == 0) PyErr_Format(PyExc_TypeError, "must be Number, not %.200s", Py_TYPE(object)->tp_name);
    return -1;
}

PyObject *msa_python_from_scalar(msa_scalar value) {
    switch (value.kind) {
    case MSA_BOOL: return PyBool_FromLong(value.i != 0);
    case MSA_COMPLEX64:
    case MSA_COMPLEX128: return PyComplex_FromDoubles(value.d, value.im);
    default: return value.kind >= MSA_FLOAT16 ? PyFloat_FromDouble(value.d) : PyLong_FromLongLong(value.i);
    }
}

int msa_python_as_int(PyObject *object, int64_t *value) {
    if (PyLong_CheckExact(object)) return long_value(object, value);
    if (PyBool_Check(object) || PyFloat_Check(object)) return 0;
    if (msa_python_is_tensor(object)) {
        const msa_tensor *t = ((python_tensor *)object)->tensor;
        msa_scalar item;
        if (!msa_is_integral((msa_dtype)t->dtype, false) || t->numel != 1) return 0;
        if (msa_tensor_item(t, &item) != 0) {
            msa_python_raise();
            return -1;
        }
        *value = item.i;
        return 1;
    }
    if (!PyIndex_Check(object)) return 0;
    PyObject *index = PyNumber_Index(object);
    if (!index) {
        PyErr_Clear();
        return 0;
    }
    int status = long_value(index, value);
    Py_DECREF(index);
    return status;
}

int msa_python_as_double(PyObject *object, double *value) {
    if (PyFloat_Check(object)) {
        *value = PyFloat_AS_DOUBLE(object);
        return 1;
    }
    if (PyLong_Check(object)) {
        *value = PyLong_AsDouble(object);
        return *value == -1 && PyErr_Occurred() ? -1 : 1;
    }
    msa_scalar s;
    int status = msa_python_as_scalar(object, &s);
    if (status != 1) return status;
    if (msa_is_complex(s.kind)) return 0;
    *value = msa_scalar_double(s);
    return 1;
}

int msa_python_as_ints(PyObject *object, int64_t *values, int limit, int *n) {
    if (!PyTuple_Check(object) && !PyList_Check(object)) return 0;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    if (count > limit) {
        PyErr_Format(PyExc_RuntimeError, "a list of at most %d ints is expected, got %zd", limit, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        int status = msa_python_as_int(PySequence_Fast_GET_ITEM(object, i), &values[i]);
        if (status != 1) return status;
    }
    *n = (int)count;
    return 1;
}

msa_tensor *msa_python_number(msa_scalar value) {
    /* One tensor of each kind is used again as long as nobody else holds it. */
    static msa_tensor *kept[4];
    msa_tensor **slot = &kept[value.kind == MSA_FLOAT64 ? 0 : value.kind == MSA_INT64 ? 1 : value.kind == MSA_BOOL ? 2 : 3];
    msa_tensor *t = *slot;
    if (t && t->references == 1 && t->storage->references == 1 && !t->python && !t->autograd) {
        void *data = t->storage->data;
        switch (value.kind) {
        case MSA_FLOAT64: *(double *)data = value.d; break;
        case MSA_INT64: *(int64_t *)data = value.i; break;
        case MSA_BOOL: *(uint8_t *)data = value.i != 0; break;
        default:
            ((double *)data)[0] = value.d;
            ((double *)data)[1] = value.im;
        }
        return msa_tensor_retain(t);
    }
    t = msa_tensor_scalar(value, value.kind);
    if (!t) return NULL;
    t->wrapped_number = true;
    msa_tensor_release(*slot);
    *slot = msa_tensor_retain(t);
    return t;
}
