/* Tensors and numpy arrays over the same memory, without numpy's headers.
 *
 * Arrays come in by the buffer protocol, which keeps their memory alive and in place. They go out as an array that numpy makes of
 * an object with __array_interface__; the array holds that object, and the object holds the tensor. */
#include "autograd/internal.h"
#include "python/tensor.h"

/* numpy.ndarray or a subclass, told by name: numpy may never have been imported. */
int msa_python_is_array(PyObject *object) {
    for (PyTypeObject *type = Py_TYPE(object); type && type != &PyBaseObject_Type; type = type->tp_base)
        if (strcmp(type->tp_name, "numpy.ndarray") == 0) return 1;
    return 0;
}

static int dtype_of_format(const char *format, Py_ssize_t itemsize, msa_dtype *dtype) {
    if (!format) format = "B";
    if (*format == '@' || *format == '=' || *format == '<') format++;
    msa_dtype d = MSA_NO_DTYPE;
    switch (*format) {
    case '?': d = MSA_BOOL; break;
    case 'B': d = MSA_UINT8; break;
    case 'b': d = MSA_INT8; break;
    case 'h': d = MSA_INT16; break;
    case 'i':
    case 'l':
    case 'q': d = itemsize == 8 ? MSA_INT64 : MSA_INT32; break;
    case 'e': d = MSA_FLOAT16; break;
    case 'f': d = MSA_FLOAT32; break;
    case 'd': d = MSA_FLOAT64; break;
    case 'Z':
        format++;
        d = *format == 'f' ? MSA_COMPLEX64 : *format == 'd' ? MSA_COMPLEX128 : MSA_NO_DTYPE;
        break;
    }
    if (d == MSA_NO_DTYPE || format[1] || (Py_ssize_t)msa_dtype_size(d) != itemsize) return -1;
    *dtype = d;
    return 0;
}

static void release_buffer(void *context) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyBuffer_Release(context);
    PyMem_Free(context);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(state);
}

static msa_tensor *unsupported(PyObject *array) {
    PyErr_Clear();
    PyObject *descriptor = PyObject_GetAttrString(array, "dtype"), *dtype = descriptor ? PyObject_GetAttrString(descriptor, "type") : NULL;
    PyObject *native = descriptor ? PyObject_GetAttrString(descriptor, "isnative") : NULL;
    Py_XDECREF(descriptor);
    PyErr_Clear();
    if (native == Py_False)
        PyErr_SetString(PyExc_ValueError, "given numpy array has byte order different from the native byte order. Conversion between byte "
                        "orders is currently not supported.");
    else
        PyErr_Format(PyExc_TypeError, "can't convert np.ndarray of type %s%s. The only supported types are: float64, float32, float16, "
                 "complex64, complex128, int64, int32, int16, int8, uint8, and bool.",
                     dtype && PyType_Check(dtype) && strncmp(((PyTypeObject *)dtype)->tp_name, "numpy.", 6) != 0 ? "numpy." : "",
                     dtype && PyType_Check(dtype) ? ((PyTypeObject *)dtype)->tp_name : "unknown");
    Py_XDECREF(native);
    Py_XDECREF(dtype);
    return NULL;
}

msa_tensor *msa_python_from_array(PyObject *array, bool writable_warning) {
    Py_buffer *buffer = PyMem_Malloc(sizeof *buffer);
    if (!buffer) return (msa_tensor *)(void *)PyErr_NoMemory();
    bool read_only = false;
    if (PyObject_GetBuffer(array, buffer, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE) != 0) {
        PyErr_Clear();
        read_only = true;
        if (PyObject_GetBuffer(array, buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
            PyMem_Free(buffer);
            return unsupported(array);
        }
    }
    msa_dtype dtype;
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    if (dtype_of_format(buffer->format, buffer->itemsize, &dtype) != 0) {
        unsupported(array);
        goto failed;
    }
    bool empty = false;
    for (int i = 0; i < buffer->ndim; i++) empty = empty || buffer->shape[i] == 0;
    for (int i = 0; i < buffer->ndim; i++) {
        Py_ssize_t stride = buffer->strides ? buffer->strides[i] : buffer->itemsize;
        sizes[i] = buffer->shape ? buffer->shape[i] : buffer->len / buffer->itemsize;
        if (stride < 0 && !empty && sizes[i] > 1) {
            PyErr_SetString(PyExc_ValueError,
                            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                            "currently supported. (You can probably work around this by making a copy of your array  with array.copy().) ");
            goto failed;
        }
        if (stride % buffer->itemsize && !empty) {
            PyErr_SetString(PyExc_ValueError, "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                            "reallocate the memory.");
            goto failed;
        }
        strides[i] = stride < 0 || stride % buffer->itemsize ? 1 : stride / buffer->itemsize;
    }
    if (read_only && writable_warning &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this "
                     "tensor will result in undefined behavior. You may want to copy the array to protect its data or make it writable "
                     "before converting it to a tensor. This type of warning will be suppressed for the rest of this program.", 1) != 0)
        goto failed;
    msa_tensor *t = msa_tensor_from_memory(buffer->buf, (msa_ints){sizes, buffer->ndim}, (msa_ints){strides, buffer->ndim}, dtype,
                                           release_buffer, buffer);
    if (t) {
        t->storage->read_only = read_only;
        return t;
    }
    msa_python_raise();
failed:
    PyBuffer_Release(buffer);
    PyMem_Free(buffer);
    return NULL;
}

static PyObject *from_numpy(PyObject *module, PyObject *array) {
    if (!msa_python_is_array(array)) return PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %.200s)", Py_TYPE(array)->tp_name);
    msa_tensor *t = msa_python_from_array(array, true);
    return t ? msa_python_wrap(t) : NULL;
}

/* What numpy makes an array of. */

typedef struct {
    PyObject_HEAD
    msa_tensor *tensor;
} array_source;

static void source_dealloc(PyObject *self) {
    msa_tensor_release(((array_source *)self)->tensor);
    PyObject_Free(self);
}

static PyObject *tuple_of(int n, const int64_t *values, int64_t factor) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i] * factor));
    return tuple;
}

static const char *const type_strings[MSA_DTYPES] = {
    [MSA_BOOL] = "|b1", [MSA_UINT8] = "|u1", [MSA_INT8] = "|i1", [MSA_INT16] = "<i2", [MSA_INT32] = "<i4", [MSA_INT64] = "<i8",
    [MSA_FLOAT16] = "<f2", [MSA_FLOAT32] = "<f4", [MSA_FLOAT64] = "<f8", [MSA_COMPLEX64] = "<c8", [MSA_COMPLEX128] = "<c16",
};

static PyObject *source_interface(PyObject *self, void *unused) {
    msa_tensor *t = ((array_source *)self)->tensor;
    if (msa_python_check_strided("numpy", t) != 0) return msa_python_raise();
    void *data = t->numel ? msa_data(t) : t->storage->data;
    if (!data && t->numel) return msa_python_raise();
    t->storage->lent = true;
    return Py_BuildValue("{s:N,s:s,s:(NO),s:N,s:i}", "shape", tuple_of(t->ndim, t->sizes, 1), "typestr", type_strings[t->dtype], "data",
                         PyLong_FromVoidPtr(data), t->storage->read_only ? Py_True : Py_False, "strides",
                         tuple_of(t->ndim, t->strides, (int64_t)msa_dtype_size((msa_dtype)t->dtype)), "version", 3);
}

static PyGetSetDef source_getset[] = {
    {"__array_interface__", source_interface, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyTypeObject source_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msadapter._C.ArraySource",
    .tp_basicsize = sizeof(array_source),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = source_dealloc,
    .tp_getset = source_getset,
};

static PyObject *array_of(msa_tensor *t) {
    static PyObject *asarray;
    if (!type_strings[t->dtype])
        return PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType %s", msa_dtype_type_name((msa_dtype)t->dtype));
    if (!asarray) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        asarray = numpy ? PyObject_GetAttrString(numpy, "asarray") : NULL;
        Py_XDECREF(numpy);
        if (!asarray) return NULL;
    }
    /* The array relies on the memory staying where it is. */
    t->storage->resizable = false;
    array_source *source = PyObject_New(array_source, &source_type);
    if (!source) return NULL;
    source->tensor = msa_tensor_alias(t);
    PyObject *array = source->tensor ? PyObject_CallOneArg(asarray, (PyObject *)source) : msa_python_raise();
    Py_DECREF(source);
    return array;
}

PyObject *msa_python_to_numpy(PyObject *self, PyObject *unused) {
    msa_tensor *t = msa_python_tensor_of(self);
    if (t->requires_grad)
        return PyErr_Format(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    return array_of(t);
}

static PyObject *numpy(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"force", NULL};
    int force = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$p:numpy", names, &force)) return NULL;
    return force ? array_of(msa_python_tensor_of(self)) : msa_python_to_numpy(self, NULL);
}

/* __array__(dtype=None, copy=None) */
static PyObject *to_array(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:__array__", names, &dtype, &copy)) return NULL;
    PyObject *array = msa_python_to_numpy(self, NULL);
    if (array && dtype != Py_None) {
        PyObject *arguments = Py_BuildValue("(O)", dtype), *options = Py_BuildValue("{s:O}", "copy", Py_False);
        PyObject *method = PyObject_GetAttrString(array, "astype");
        Py_SETREF(array, arguments && options && method ? PyObject_Call(method, arguments, options) : NULL);
        Py_XDECREF(arguments);
        Py_XDECREF(options);
        Py_XDECREF(method);
    }
    if (array && copy == Py_True) Py_SETREF(array, PyObject_CallMethod(array, "copy", NULL));
    return array;
}

/* What a numpy function gives for a tensor argument becomes a tensor: __array_wrap__(array, context=None, return_scalar=False) */
static PyObject *wrap_array(PyObject *self, PyObject *args) {
    PyObject *array, *context = NULL, *return_scalar = NULL;
    if (!PyArg_ParseTuple(args, "O|OO:__array_wrap__", &array, &context, &return_scalar)) return NULL;
    if (!msa_python_is_array(array)) {
        msa_tensor *number = msa_python_new_tensor(array, MSA_NO_DTYPE);
        return number ? msa_python_wrap(number) : NULL;
    }
    msa_tensor *t = msa_python_from_array(array, false);
    return t ? msa_python_wrap(t) : NULL;
}

PyMethodDef msa_python_numpy_methods[] = {
    {"numpy", (PyCFunction)(void (*)(void))numpy, METH_VARARGS | METH_KEYWORDS,
     "numpy(*, force=False) -> numpy.ndarray\n\nAn array over the same memory. RuntimeError when a gradient is wanted; TypeError for bfloat16."},
    {"__array__", (PyCFunction)(void (*)(void))to_array, METH_VARARGS | METH_KEYWORDS, NULL},
    {"__array_wrap__", wrap_array, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O, "from_numpy(ndarray) -> Tensor\n\nA tensor over the array's memory. TypeError for types that tensors lack, ValueError for negative strides."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_numpy(PyObject *module) {
    if (PyType_Ready(&source_type) != 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
