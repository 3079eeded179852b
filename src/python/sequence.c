/* Tensors out of Python values: numbers, nested sequences of numbers, arrays and tensors. */
#include "python/tensor.h"

/* What the elements ask for, as PyTorch infers it: 0, or -1 with an exception. */
static int infer(PyObject *o, msa_dtype *dtype, int depth) {
    msa_dtype found = MSA_NO_DTYPE;
    if (PyFloat_Check(o)) found = msa_default_dtype();
    else if (PyBool_Check(o)) found = MSA_BOOL;
    else if (PyLong_Check(o)) found = MSA_INT64;
    else if (PyComplex_Check(o)) found = msa_dtype_complex(msa_default_dtype());
    else if (msa_python_is_tensor(o)) found = (msa_dtype)msa_python_tensor_of(o)->dtype;
    else if (msa_python_is_numpy_scalar(o)) {
        static const struct {
            const char *name;
            msa_dtype dtype;
        } scalars[] = {{"float16", MSA_FLOAT16}, {"float32", MSA_FLOAT32}, {"int8", MSA_INT8}, {"int16", MSA_INT16},
                       {"int32", MSA_INT32}, {"int64", MSA_INT64}, {"uint8", MSA_UINT8}, {"bool", MSA_BOOL},
                       {"complex64", MSA_COMPLEX64}, {"longlong", MSA_INT64}};
        const char *name = Py_TYPE(o)->tp_name + 6;
        for (size_t i = 0; i < sizeof scalars / sizeof *scalars && found == MSA_NO_DTYPE; i++)
            if (strncmp(name, scalars[i].name, strlen(scalars[i].name)) == 0) found = scalars[i].dtype;
    } else if (msa_python_is_array(o)) {
        msa_tensor *t = msa_python_from_array(o, false);
        if (!t) return -1;
        found = (msa_dtype)t->dtype;
        msa_tensor_release(t);
    } else if (PyUnicode_Check(o) || PyBytes_Check(o)) {
        PyErr_Format(PyExc_TypeError, "new(): invalid data type '%.200s'", Py_TYPE(o)->tp_name);
        return -1;
    } else if (PySequence_Check(o)) {
        if (depth > MSA_MAX_DIMS) {
            PyErr_Format(PyExc_ValueError, "too many dimensions '%.200s'", Py_TYPE(o)->tp_name);
            return -1;
        }
        PyObject *fast = PySequence_Fast(o, "not a sequence");
        if (!fast) return -1;
        int status = 0;
        for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(fast); i++)
            status = infer(PySequence_Fast_GET_ITEM(fast, i), dtype, depth + 1);
        Py_DECREF(fast);
        return status;
    }
    if (found == MSA_NO_DTYPE) {
        PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %.200s", Py_TYPE(o)->tp_name);
        return -1;
    }
    *dtype = *dtype == MSA_NO_DTYPE ? found : msa_dtype_promote(*dtype, found);
    return 0;
}

static bool is_nested(PyObject *o) { return !msa_python_is_tensor(o) && PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !msa_python_is_array(o); }

/* Sizes by going down along first elements. */
static int find_sizes(PyObject *data, int64_t *sizes, int *ndim) {
    PyObject *o = Py_NewRef(data);
    *ndim = 0;
    int status = 0;
    while (is_nested(o)) {
        Py_ssize_t n = PySequence_Size(o);
        if (n < 0 || *ndim == MSA_MAX_DIMS) {
            if (n >= 0) PyErr_Format(PyExc_ValueError, "too many dimensions '%.200s'", Py_TYPE(data)->tp_name);
            status = -1;
            break;
        }
        sizes[(*ndim)++] = n;
        if (n == 0) break;
        PyObject *first = PySequence_GetItem(o, 0);
        Py_SETREF(o, first);
        if (!o) return -1;
    }
    if (status == 0 && msa_python_is_array(o)) {
        msa_tensor *t = msa_python_from_array(o, false);
        if (!t || *ndim + t->ndim > MSA_MAX_DIMS) {
            if (t) PyErr_SetString(PyExc_ValueError, "too many dimensions");
            status = -1;
        } else {
            memcpy(sizes + *ndim, t->sizes, sizeof(int64_t) * t->ndim);
            *ndim += t->ndim;
        }
        msa_tensor_release(t);
    }
    Py_DECREF(o);
    return status;
}

static int overflow(msa_dtype dtype) {
    PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", msa_dtype_name(dtype));
    return -1;
}

/* One number written at `at`. */
static int store(PyObject *o, msa_dtype dtype, void *at) {
    msa_scalar v;
    if (dtype == MSA_FLOAT32 && PyFloat_CheckExact(o)) {
        *(float *)at = (float)PyFloat_AS_DOUBLE(o);
        return 0;
    }
    if (msa_python_is_tensor(o)) {
        const msa_tensor *t = msa_python_tensor_of(o);
        if (t->numel != 1) {
            PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
            return -1;
        }
        if (msa_tensor_item(t, &v) != 0) {
            msa_python_raise();
            return -1;
        }
    } else if (msa_python_is_array(o)) {
        msa_tensor *t = msa_python_from_array(o, false);
        int status = t ? msa_tensor_item(t, &v) : -1;
        bool made = t != NULL;
        msa_tensor_release(t);
        if (status != 0) {
            if (made) msa_python_raise();
            return -1;
        }
    } else {
        if (PyLong_Check(o) && msa_is_inexact(dtype)) {
            /* Beyond 64 bits floating types still hold it. */
            double d = PyLong_AsDouble(o);
            if (d == -1 && PyErr_Occurred()) return -1;
            v = msa_float(d);
            if (!PyBool_Check(o) && d > -9.2e18 && d < 9.2e18) v = msa_int(PyLong_AsLongLong(o));
        } else {
            int status = msa_python_as_scalar(o, &v);
            if (status == 0) {
                if (PyUnicode_Check(o)) PyErr_Format(PyExc_ValueError, "too many dimensions 'str'");
                else if (msa_is_inexact(dtype)) PyErr_Format(PyExc_TypeError, "must be real number, not %.200s", Py_TYPE(o)->tp_name);
                else PyErr_Format(PyExc_TypeError, "'%.200s' object cannot be interpreted as an integer", Py_TYPE(o)->tp_name);
            }
            if (status != 1) return -1;
        }
    }
    if (msa_is_complex(v.kind) && !msa_is_complex(dtype) && dtype != MSA_BOOL) {
        if (msa_is_inexact(dtype)) PyErr_SetString(PyExc_TypeError, "must be real number, not complex");
        else PyErr_SetString(PyExc_TypeError, "'complex' object cannot be interpreted as an integer");
        return -1;
    }
    int64_t i = 0;
    if (msa_is_integral(dtype, false)) {
        if (v.kind == MSA_FLOAT64 && !(v.d > -9.3e18 && v.d < 9.3e18)) return overflow(dtype);
        i = msa_scalar_int(v);
    }
    double d = msa_scalar_double(v);
    switch (dtype) {
    case MSA_BOOL: *(uint8_t *)at = !msa_scalar_is_zero(v); break;
    case MSA_UINT8:
        if (i < -255 || i > 255) return overflow(dtype);
        *(uint8_t *)at = (uint8_t)i;
        break;
    case MSA_INT8:
        if (i < -128 || i > 127) return overflow(dtype);
        *(int8_t *)at = (int8_t)i;
        break;
    case MSA_INT16:
        if (i < INT16_MIN || i > INT16_MAX) return overflow(dtype);
        *(int16_t *)at = (int16_t)i;
        break;
    case MSA_INT32:
        if (i < INT32_MIN || i > INT32_MAX) return overflow(dtype);
        *(int32_t *)at = (int32_t)i;
        break;
    case MSA_INT64: *(int64_t *)at = i; break;
    case MSA_FLOAT16: *(_Float16 *)at = (_Float16)d; break;
    case MSA_BFLOAT16: {
        /* Rounded to nearest even. */
        float f = (float)d;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        *(uint16_t *)at = f != f ? 0x7fc0 : (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
        break;
    }
    case MSA_FLOAT32: *(float *)at = (float)d; break;
    case MSA_FLOAT64: *(double *)at = d; break;
    case MSA_COMPLEX64:
        ((float *)at)[0] = (float)d;
        ((float *)at)[1] = (float)(msa_is_complex(v.kind) ? v.im : 0);
        break;
    default:
        ((double *)at)[0] = d;
        ((double *)at)[1] = msa_is_complex(v.kind) ? v.im : 0;
    }
    return 0;
}

/* The values of an array from dimension d on. */
static int store_array(PyObject *o, msa_tensor *t, int d, int64_t offset) {
    msa_auto msa_tensor *source = msa_python_from_array(o, false);
    if (!source) return -1;
    if (source->ndim != t->ndim - d || memcmp(source->sizes, t->sizes + d, sizeof(int64_t) * source->ndim) != 0) {
        PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got an array of another shape)",
                     d < t->ndim ? (long long)t->sizes[d] : 1, d);
        return -1;
    }
    msa_auto msa_tensor *view = msa_tensor_over(t->storage, (msa_dtype)t->dtype, offset, source->ndim, t->sizes + d, t->strides + d);
    if (view && msa_copy_values(view, source) == 0) return 0;
    msa_python_raise();
    return -1;
}

static int store_nested(PyObject *o, msa_tensor *t, int d, int64_t offset) {
    if (msa_python_is_array(o)) return store_array(o, t, d, offset);
    msa_dtype dtype = (msa_dtype)t->dtype;
    size_t itemsize = msa_dtype_size(dtype);
    if (d == t->ndim) return store(o, dtype, (char *)t->storage->data + (size_t)offset * itemsize);
    if (!is_nested(o)) {
        PyErr_SetString(PyExc_TypeError, "not a sequence");
        return -1;
    }
    PyObject *fast = PySequence_Fast(o, "not a sequence");
    if (!fast) return -1;
    int status = 0;
    if (PySequence_Fast_GET_SIZE(fast) != t->sizes[d]) {
        PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %zd)", (long long)t->sizes[d], d,
                     PySequence_Fast_GET_SIZE(fast));
        status = -1;
    }
    for (Py_ssize_t i = 0; status == 0 && i < t->sizes[d]; i++) {
        /* A list may shrink while its items are converted by code of theirs. */
        if (i >= PySequence_Fast_GET_SIZE(fast)) {
            PyErr_SetString(PyExc_RuntimeError, "the sequence has changed its size");
            status = -1;
            break;
        }
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(fast, i));
        status = store_nested(item, t, d + 1, offset + i * t->strides[d]);
        Py_DECREF(item);
    }
    Py_DECREF(fast);
    return status;
}

static msa_tensor *converted_copy(msa_tensor *t, msa_dtype dtype) {
    if (dtype == MSA_NO_DTYPE || dtype == t->dtype) return msa_clone_values(t);
    msa_tensor *copy = msa_cast_values(t, dtype);
    return copy;
}

msa_tensor *msa_python_new_tensor(PyObject *data, msa_dtype dtype) {
    msa_tensor *t = NULL;
    if (msa_python_is_tensor(data)) {
        t = converted_copy(msa_python_tensor_of(data), dtype);
    } else if (msa_python_is_array(data)) {
        msa_auto msa_tensor *source = msa_python_from_array(data, false);
        if (!source) return NULL;
        t = converted_copy(source, dtype);
    } else {
        if (PyUnicode_Check(data) || PyBytes_Check(data)) {
            PyErr_Format(PyExc_TypeError, "new(): invalid data type '%.200s'", Py_TYPE(data)->tp_name);
            return NULL;
        }
        int64_t sizes[MSA_MAX_DIMS];
        int ndim;
        if (find_sizes(data, sizes, &ndim) != 0) return NULL;
        if (dtype == MSA_NO_DTYPE && infer(data, &dtype, 0) != 0) return NULL;
        if (dtype == MSA_NO_DTYPE) dtype = msa_default_dtype(); /* no elements */
        t = msa_tensor_new((msa_ints){sizes, ndim}, dtype);
        if (t && store_nested(data, t, 0, 0) != 0) {
            msa_tensor_release(t);
            return NULL;
        }
    }
    if (!t && !PyErr_Occurred()) msa_python_raise();
    return t;
}
