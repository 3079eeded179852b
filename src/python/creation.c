/* Tensors out of Python objects: tensor, as_tensor, asarray, frombuffer. */
#include "msadapter/ops.h"
#include "autograd/internal.h"
#include "python/tensor.h"

/* The options that creation functions share. */
typedef struct {
    PyObject *dtype, *device, *requires_grad, *pin_memory, *copy;
} options;

static int checked(const char *function, const options *o, msa_dtype *dtype, bool *requires_grad) {
    int device, status;
    *dtype = MSA_NO_DTYPE;
    *requires_grad = false;
    if (o->dtype && o->dtype != Py_None && !msa_python_match_dtype(o->dtype, dtype)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'dtype' must be torch.dtype, not %.200s", function, Py_TYPE(o->dtype)->tp_name);
        return -1;
    }
    if (o->device && o->device != Py_None && (status = msa_python_match_device(o->device, &device)) != 1) {
        if (status == 0)
            PyErr_Format(PyExc_TypeError, "%s(): argument 'device' must be torch.device, not %.200s", function, Py_TYPE(o->device)->tp_name);
        return -1;
    }
    PyObject *const flags[] = {o->requires_grad, o->pin_memory};
    for (int i = 0; i < 2; i++)
        if (flags[i] && flags[i] != Py_None && !PyBool_Check(flags[i])) {
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be bool, not %.200s", function, i ? "pin_memory" : "requires_grad",
                         Py_TYPE(flags[i])->tp_name);
            return -1;
        }
    *requires_grad = o->requires_grad == Py_True;
    return 0;
}

static PyObject *finished(msa_tensor *t, bool requires_grad) {
    if (!t) return PyErr_Occurred() ? NULL : msa_python_raise();
    if (requires_grad && msa_tensor_set_requires_grad(t, true) != 0) {
        msa_tensor_release(t);
        return msa_python_raise();
    }
    return msa_python_wrap(t);
}

static PyObject *tensor(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"data", "dtype", "device", "requires_grad", "pin_memory", NULL};
    PyObject *data;
    options o = {NULL};
    msa_dtype dtype;
    bool requires_grad;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OOOO:tensor", names, &data, &o.dtype, &o.device, &o.requires_grad, &o.pin_memory) ||
        checked("tensor", &o, &dtype, &requires_grad) != 0)
        return NULL;
    if (msa_python_is_tensor(data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use sourceTensor.clone().detach() or "
                     "sourceTensor.clone().detach().requires_grad_(True), rather than torch.tensor(sourceTensor).", 1) != 0)
        return NULL;
    return finished(msa_python_new_tensor(data, dtype), requires_grad);
}

/* A tensor over the object's own memory where it has some; *shared says so. NULL without an exception when it has none. */
static msa_tensor *shared_memory(PyObject *data) {
    if (msa_python_is_tensor(data)) return msa_tensor_retain(msa_python_tensor_of(data));
    if (msa_python_is_array(data)) return msa_python_from_array(data, true);
    return NULL;
}

static PyObject *as_tensor(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"data", "dtype", "device", NULL};
    PyObject *data;
    options o = {NULL};
    msa_dtype dtype;
    bool requires_grad;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OO:as_tensor", names, &data, &o.dtype, &o.device) ||
        checked("as_tensor", &o, &dtype, &requires_grad) != 0)
        return NULL;
    msa_auto msa_tensor *own = shared_memory(data);
    if (!own) return PyErr_Occurred() ? NULL : finished(msa_python_new_tensor(data, dtype), false);
    if (dtype == MSA_NO_DTYPE || dtype == own->dtype) return msa_python_wrap(msa_take(own));
    return msa_python_wrap(msa_to_dtype(own, dtype, false, false, -1));
}

static PyObject *asarray(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"obj", "dtype", "device", "copy", "requires_grad", NULL};
    PyObject *data;
    options o = {NULL};
    msa_dtype dtype;
    bool requires_grad;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OOOO:asarray", names, &data, &o.dtype, &o.device, &o.copy, &o.requires_grad) ||
        checked("asarray", &o, &dtype, &requires_grad) != 0)
        return NULL;
    bool copy = o.copy == Py_True, may_copy = o.copy != Py_False;
    msa_auto msa_tensor *own = shared_memory(data);
    if (PyErr_Occurred()) return NULL;
    if (!own && !PyUnicode_Check(data) && PyObject_CheckBuffer(data)) {
        own = msa_python_from_array(data, false);
        if (!own) return NULL;
        if (dtype != MSA_NO_DTYPE && dtype != own->dtype && own->dtype == MSA_UINT8) {
            /* Bytes are read as elements of the dtype. */
            msa_tensor *typed = msa_view_dtype(own, dtype);
            if (!typed) return msa_python_raise();
            msa_tensor_release(own);
            own = typed;
        }
    }
    if (!own) {
        if (!may_copy) return PyErr_Format(PyExc_ValueError, "can't alias arbitrary sequence into a tensor.");
        return finished(msa_python_new_tensor(data, dtype), requires_grad);
    }
    bool changes = dtype != MSA_NO_DTYPE && dtype != own->dtype;
    if (changes && !may_copy)
        return PyErr_Format(PyExc_ValueError, "can't alias tensor with dtype '%s' into dtype '%s'.", msa_dtype_name((msa_dtype)own->dtype),
                            msa_dtype_name(dtype));
    msa_tensor *result;
    if (changes || copy) result = msa_to_dtype(own, changes ? dtype : (msa_dtype)own->dtype, false, true, -1);
    else result = own->requires_grad && !requires_grad ? msa_detach(own) : msa_tensor_retain(own);
    if (result && result->requires_grad && !requires_grad) {
        msa_tensor *detached = msa_detach(result);
        msa_tensor_release(result);
        result = detached;
    }
    return finished(result, requires_grad && result && !result->requires_grad);
}

static void release_buffer(void *context) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(context);
    PyMem_Free(context);
    PyGILState_Release(state);
}

static PyObject *frombuffer(PyObject *module, PyObject *args, PyObject *keywords) {
    static char *names[] = {"buffer", "dtype", "count", "offset", "requires_grad", NULL};
    PyObject *object;
    options o = {NULL};
    long long count = -1, offset = 0;
    msa_dtype dtype;
    bool requires_grad;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OLLO:frombuffer", names, &object, &o.dtype, &count, &offset, &o.requires_grad) ||
        checked("frombuffer", &o, &dtype, &requires_grad) != 0)
        return NULL;
    if (dtype == MSA_NO_DTYPE) return PyErr_Format(PyExc_TypeError, "frombuffer() missing 1 required positional arguments: \"dtype\"");
    if (!PyObject_CheckBuffer(object)) return PyErr_Format(PyExc_ValueError, "object does not implement Python buffer protocol.");
    Py_buffer *buffer = PyMem_Malloc(sizeof *buffer);
    if (!buffer) return PyErr_NoMemory();
    bool read_only = false;
    if (PyObject_GetBuffer(object, buffer, PyBUF_WRITABLE) != 0) {
        PyErr_Clear();
        read_only = true;
        if (PyObject_GetBuffer(object, buffer, PyBUF_SIMPLE) != 0) {
            PyMem_Free(buffer);
            return NULL;
        }
    }
    long long size = (long long)msa_dtype_size(dtype), length = buffer->len;
    if (read_only && PyErr_WarnEx(PyExc_UserWarning,
                                  "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
                                  "write to the underlying (supposedly non-writable) buffer using the tensor.", 1) != 0)
        goto failed;
    if (length <= 0 || count == 0) {
        PyErr_Format(PyExc_ValueError, "both buffer length (%lld) and count (%lld) must not be 0", length, count);
        goto failed;
    }
    if (offset < 0 || offset >= length) {
        PyErr_Format(PyExc_ValueError, "offset (%lld bytes) must be non-negative and no greater than buffer length (%lld bytes) minus 1", offset, length);
        goto failed;
    }
    if (count < 0 && (length - offset) % size) {
        PyErr_Format(PyExc_ValueError, "buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of element size (%lld)", length, offset, size);
        goto failed;
    }
    if (count > 0 && count > (length - offset) / size) {
        PyErr_Format(PyExc_ValueError, "requested buffer length (%lld * %lld bytes) after offset (%lld bytes) must not be greater than actual "
                     "buffer length (%lld bytes)", count, size, offset, length);
        goto failed;
    }
    int64_t n = count < 0 ? (length - offset) / size : count;
    msa_tensor *t = msa_tensor_from_memory((char *)buffer->buf + offset, MSA_INTS(n), MSA_INTS(1), dtype, release_buffer, buffer);
    if (t) return finished(t, requires_grad);
    msa_python_raise();
failed:
    PyBuffer_Release(buffer);
    PyMem_Free(buffer);
    return NULL;
}

#define KEYWORDS(f) (PyCFunction)(void (*)(void))f, METH_VARARGS | METH_KEYWORDS
static PyMethodDef functions[] = {
    {"tensor", KEYWORDS(tensor), "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor\n\n"
     "A copy of data: a number, nested sequences, an array or a tensor. The dtype is found from the values."},
    {"as_tensor", KEYWORDS(as_tensor), "as_tensor(data, dtype=None, device=None) -> Tensor\n\nLike tensor(), sharing memory where it can."},
    {"asarray", KEYWORDS(asarray), "asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False) -> Tensor\n\n"
     "Shares the memory of tensors, arrays and buffers where it can. ValueError when copy=False and it can't."},
    {"frombuffer", KEYWORDS(frombuffer), "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor\n\n"
     "A 1-D tensor over the memory of a buffer. ValueError when the buffer is too small."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_creation(PyObject *module) { return PyModule_AddFunctions(module, functions); }
