/* Storage objects, torch.storage.TypedStorage and UntypedStorage, and the methods of tensors that deal with storages. */
#include "autograd/internal.h"
#include "python/sharing.h"
#include "python/tensor.h"

typedef struct {
    PyObject_HEAD
    msa_storage *storage;
    msa_dtype dtype; /* MSA_NO_DTYPE: untyped, in bytes */
} python_storage;

static PyTypeObject untyped_type;

static python_storage *of(PyObject *self) { return (python_storage *)self; }
static msa_dtype element_dtype(const python_storage *s) { return s->dtype == MSA_NO_DTYPE ? MSA_UINT8 : s->dtype; }
static int64_t length(const python_storage *s) { return (int64_t)(s->storage->bytes / msa_dtype_size(element_dtype(s))); }

static PyObject *storage_object(PyTypeObject *type, msa_storage *owned, msa_dtype dtype) {
    if (!owned) return msa_python_raise();
    python_storage *s = (python_storage *)type->tp_alloc(type, 0);
    if (!s) {
        msa_storage_release(owned);
        return NULL;
    }
    s->storage = owned;
    owned->lent = true;
    s->dtype = dtype;
    return (PyObject *)s;
}

static PyObject *typed(msa_storage *owned, msa_dtype dtype) { return storage_object(&msa_python_storage_type, owned, dtype); }

PyObject *msa_python_new_storage(msa_storage *owned, msa_dtype dtype) {
    return storage_object(dtype == MSA_NO_DTYPE ? &untyped_type : &msa_python_storage_type, owned, dtype);
}

msa_storage *msa_python_storage_of(PyObject *object, msa_dtype *dtype) {
    if (PyObject_TypeCheck(object, &msa_python_storage_type) || PyObject_TypeCheck(object, &untyped_type)) {
        *dtype = of(object)->dtype;
        return of(object)->storage;
    }
    PyErr_Format(PyExc_TypeError, "expected a storage, got %.200s", Py_TYPE(object)->tp_name);
    return NULL;
}

static void storage_dealloc(PyObject *self) {
    msa_storage_release(of(self)->storage);
    Py_TYPE(self)->tp_free(self);
}

/* A 1-D tensor over all elements. */
msa_tensor *msa_python_storage_values(PyObject *self) {
    python_storage *s = of(self);
    if (msa_storage_make_plain(s->storage) != 0) {
        msa_python_raise();
        return NULL;
    }
    int64_t size = length(s), one = 1;
    msa_tensor *t = msa_tensor_over(s->storage, element_dtype(s), 0, 1, &size, &one);
    if (!t) msa_python_raise();
    return t;
}

/* TypedStorage(size or sequence, dtype=..., wrap_storage=...), UntypedStorage(size). */
static PyObject *storage_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"data", "dtype", "device", "wrap_storage", NULL};
    PyObject *data = NULL, *dtype_object = Py_None, *device = Py_None, *wrapped = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$OOO", names, &data, &dtype_object, &device, &wrapped)) return NULL;
    bool bytes = PyType_IsSubtype(type, &untyped_type);
    msa_dtype dtype = bytes ? MSA_NO_DTYPE : msa_default_dtype();
    int code;
    if (dtype_object != Py_None && (bytes || msa_python_as_dtype(dtype_object, &dtype) != 0))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "UntypedStorage() takes no dtype");
    if (device != Py_None && msa_python_match_device(device, &code) != 1)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "device must be torch.device, not %.200s", Py_TYPE(device)->tp_name);
    if (wrapped != Py_None) {
        if (!PyObject_TypeCheck(wrapped, &msa_python_storage_type) && !PyObject_TypeCheck(wrapped, &untyped_type))
            return PyErr_Format(PyExc_TypeError, "wrap_storage must be a storage, not %.200s", Py_TYPE(wrapped)->tp_name);
        return storage_object(type, msa_storage_retain(of(wrapped)->storage), dtype);
    }
    size_t itemsize = msa_dtype_size(bytes ? MSA_UINT8 : dtype);
    int64_t n = 0;
    int status = data ? msa_python_as_int(data, &n) : 1;
    if (status < 0) return NULL;
    if (status == 1) {
        if (n < 0 || (uint64_t)n > (uint64_t)INT64_MAX / 32) return PyErr_Format(PyExc_RuntimeError, "invalid storage size %lld", (long long)n);
        return storage_object(type, msa_storage_new((size_t)n * itemsize), dtype);
    }
    msa_auto msa_tensor *t = msa_python_new_tensor(data, bytes ? MSA_UINT8 : dtype);
    return t ? storage_object(type, msa_storage_retain(t->storage), dtype) : NULL;
}

static Py_ssize_t storage_length(PyObject *self) { return (Py_ssize_t)length(of(self)); }

static msa_tensor *element_at(PyObject *self, int64_t i) {
    python_storage *s = of(self);
    int64_t n = length(s), none = 0;
    if (i < 0) i += n;
    if (i < 0 || i >= n) {
        PyErr_Format(PyExc_IndexError, "index %lld out of range for storage of size %lld", (long long)i, (long long)n);
        return NULL;
    }
    msa_tensor *t = msa_storage_make_plain(s->storage) == 0 ? msa_tensor_over(s->storage, element_dtype(s), i, 0, &none, &none) : NULL;
    if (!t) msa_python_raise();
    return t;
}

static PyObject *storage_item(PyObject *self, PyObject *key) {
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) != 0) return NULL;
        Py_ssize_t n = PySlice_AdjustIndices(storage_length(self), &start, &stop, step);
        if (step != 1) return PyErr_Format(PyExc_RuntimeError, "Trying to slice with a step of %zd, but only a step of 1 is supported", step);
        python_storage *s = of(self);
        size_t itemsize = msa_dtype_size(element_dtype(s));
        msa_storage *copy = msa_storage_make_plain(s->storage) == 0 ? msa_storage_new((size_t)n * itemsize) : NULL;
        if (copy) memcpy(copy->data, (char *)s->storage->data + (size_t)start * itemsize, (size_t)n * itemsize);
        return storage_object(Py_TYPE(self), copy, s->dtype);
    }
    int64_t i;
    int status = msa_python_as_int(key, &i);
    if (status == 0) PyErr_Format(PyExc_TypeError, "can't index a storage with %.200s", Py_TYPE(key)->tp_name);
    if (status != 1) return NULL;
    msa_auto msa_tensor *t = element_at(self, i);
    msa_scalar value;
    if (!t) return NULL;
    return msa_tensor_item(t, &value) == 0 ? msa_python_from_scalar(value) : msa_python_raise();
}

static int fill(msa_tensor *t, PyObject *value) {
    msa_scalar number;
    if (!t || msa_python_scalar(value, &number) != 0) return -1;
    if (msa_fill_values(t, number) == 0) return 0;
    msa_python_raise();
    return -1;
}

static int storage_set_item(PyObject *self, PyObject *key, PyObject *value) {
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "can't delete elements of a storage");
        return -1;
    }
    if (PySlice_Check(key)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(key, &start, &stop, &step) != 0) return -1;
        int64_t n = PySlice_AdjustIndices(storage_length(self), &start, &stop, step), one = 1;
        if (step != 1) {
            PyErr_Format(PyExc_RuntimeError, "Trying to slice with a step of %zd, but only a step of 1 is supported", step);
            return -1;
        }
        msa_auto msa_tensor *t = msa_tensor_over(of(self)->storage, element_dtype(of(self)), start, 1, &n, &one);
        return fill(t, value);
    }
    int64_t i;
    int status = msa_python_as_int(key, &i);
    if (status == 0) PyErr_Format(PyExc_TypeError, "can't index a storage with %.200s", Py_TYPE(key)->tp_name);
    if (status != 1) return -1;
    msa_auto msa_tensor *t = element_at(self, i);
    return fill(t, value);
}

static PyObject *storage_repr(PyObject *self) {
    python_storage *s = of(self);
    PyObject *text = PyUnicode_FromString("");
    bool bytes = s->dtype == MSA_NO_DTYPE;
    for (int64_t i = 0; text && i < length(s); i++) {
        msa_auto msa_tensor *t = element_at(self, i);
        msa_scalar value;
        if (!t || msa_tensor_item(t, &value) != 0) {
            Py_DECREF(text);
            return t ? msa_python_raise() : NULL;
        }
        PyObject *number = msa_python_from_scalar(value);
        Py_SETREF(text, number ? PyUnicode_FromFormat("%U %S\n", text, number) : NULL);
        Py_XDECREF(number);
    }
    if (!text) return NULL;
    PyObject *result = bytes ? PyUnicode_FromFormat("%U[torch.storage.UntypedStorage(device=cpu) of size %lld]", text, (long long)length(s))
                             : PyUnicode_FromFormat("%U[torch.storage.TypedStorage(dtype=torch.%s, device=cpu) of size %lld]", text,
                                                    msa_dtype_name(s->dtype), (long long)length(s));
    Py_DECREF(text);
    return result;
}

static PyObject *storage_data_ptr(PyObject *self, PyObject *unused) {
    if (msa_storage_make_plain(of(self)->storage) != 0) return msa_python_raise();
    return PyLong_FromVoidPtr(of(self)->storage->bytes ? of(self)->storage->data : NULL);
}
static PyObject *storage_nbytes(PyObject *self, PyObject *unused) { return PyLong_FromSize_t(of(self)->storage->bytes); }
static PyObject *storage_size(PyObject *self, PyObject *unused) { return PyLong_FromLongLong(length(of(self))); }
static PyObject *storage_element_size(PyObject *self, PyObject *unused) { return PyLong_FromSize_t(msa_dtype_size(element_dtype(of(self)))); }

static PyObject *storage_list(PyObject *self, PyObject *unused) {
    msa_tensor *t = msa_python_storage_values(self);
    PyObject *object = t ? msa_python_wrap(t) : NULL, *list = object ? msa_python_to_list(object, NULL) : NULL;
    Py_XDECREF(object);
    return list;
}

static PyObject *storage_resize(PyObject *self, PyObject *size) {
    int64_t n;
    int status = msa_python_as_int(size, &n);
    if (status == 0) PyErr_Format(PyExc_TypeError, "resize_() expects an int, not %.200s", Py_TYPE(size)->tp_name);
    if (status != 1) return NULL;
    if (n < 0 || (uint64_t)n > (uint64_t)INT64_MAX / 32) return PyErr_Format(PyExc_RuntimeError, "invalid storage size %lld", (long long)n);
    if (!of(self)->storage->resizable) return PyErr_Format(PyExc_RuntimeError, "Trying to resize storage that is not resizable");
    size_t bytes = (size_t)n * msa_dtype_size(element_dtype(of(self)));
    return msa_storage_resize(of(self)->storage, bytes) == 0 ? Py_NewRef(self) : msa_python_raise();
}

static PyObject *storage_fill(PyObject *self, PyObject *value) {
    msa_auto msa_tensor *t = msa_python_storage_values(self);
    return t && fill(t, value) == 0 ? Py_NewRef(self) : NULL;
}

static PyObject *storage_copy(PyObject *self, PyObject *args) {
    PyObject *source, *non_blocking = NULL;
    if (!PyArg_ParseTuple(args, "O|O:copy_", &source, &non_blocking)) return NULL;
    if (!PyObject_TypeCheck(source, &msa_python_storage_type) && !PyObject_TypeCheck(source, &untyped_type))
        return PyErr_Format(PyExc_TypeError, "copy_() expects a storage, not %.200s", Py_TYPE(source)->tp_name);
    if (length(of(self)) != length(of(source))) return PyErr_Format(PyExc_RuntimeError, "copy_(): the storages must have the same size");
    msa_auto msa_tensor *to = msa_python_storage_values(self), *from = to ? msa_python_storage_values(source) : NULL;
    if (!from) return NULL;
    return msa_copy_values(to, from) == 0 ? Py_NewRef(self) : msa_python_raise();
}

static PyObject *storage_clone(PyObject *self, PyObject *unused) {
    msa_auto msa_tensor *t = msa_python_storage_values(self);
    if (!t) return NULL;
    msa_auto msa_tensor *copy = msa_clone_values(t);
    return copy ? storage_object(Py_TYPE(self), msa_storage_retain(copy->storage), of(self)->dtype) : msa_python_raise();
}

static PyObject *storage_deepcopy(PyObject *self, PyObject *memo) {
    PyObject *key = PyLong_FromVoidPtr(self), *known = key && PyDict_Check(memo) ? PyDict_GetItemWithError(memo, key) : NULL;
    PyObject *copy = known ? Py_NewRef(known) : PyErr_Occurred() ? NULL : storage_clone(self, NULL);
    if (copy && !known && PyDict_Check(memo) && PyDict_SetItem(memo, key, copy) != 0) Py_CLEAR(copy);
    Py_XDECREF(key);
    return copy;
}

static PyObject *storage_reduce(PyObject *self, PyObject *protocol) {
    python_storage *s = of(self);
    if (msa_storage_make_plain(s->storage) != 0) return msa_python_raise();
    PyObject *bytes = PyBytes_FromStringAndSize(s->storage->data, (Py_ssize_t)s->storage->bytes);
    return Py_BuildValue("N(NN)", msa_python_helper("_rebuild_storage"), bytes, msa_python_dtype(s->dtype));
}

static PyObject *rebuild_storage(PyObject *module, PyObject *args) {
    Py_buffer bytes;
    PyObject *dtype_object;
    msa_dtype dtype = MSA_NO_DTYPE;
    if (!PyArg_ParseTuple(args, "y*O:_rebuild_storage", &bytes, &dtype_object)) return NULL;
    PyObject *result = NULL;
    if (dtype_object == Py_None || msa_python_as_dtype(dtype_object, &dtype) == 0) {
        msa_storage *s = msa_storage_new((size_t)bytes.len);
        if (s) memcpy(s->data, bytes.buf, (size_t)bytes.len);
        result = storage_object(dtype == MSA_NO_DTYPE ? &untyped_type : &msa_python_storage_type, s, dtype);
    }
    PyBuffer_Release(&bytes);
    return result;
}

static PyObject *as_untyped(PyObject *self, PyObject *unused) {
    return storage_object(&untyped_type, msa_storage_retain(of(self)->storage), MSA_NO_DTYPE);
}

static PyObject *as_dtype(PyObject *self, msa_dtype dtype) {
    if (of(self)->dtype == dtype) return Py_NewRef(self);
    msa_auto msa_tensor *t = msa_python_storage_values(self);
    if (!t) return NULL;
    msa_auto msa_tensor *copy = msa_cast_values(t, dtype);
    return copy ? typed(msa_storage_retain(copy->storage), dtype) : msa_python_raise();
}
#define CONVERT(name, dtype) \
    static PyObject *storage_##name(PyObject *self, PyObject *unused) { return as_dtype(self, dtype); }
CONVERT(float, MSA_FLOAT32)
CONVERT(double, MSA_FLOAT64)
CONVERT(half, MSA_FLOAT16)
CONVERT(bfloat16, MSA_BFLOAT16)
CONVERT(int, MSA_INT32)
CONVERT(long, MSA_INT64)
CONVERT(short, MSA_INT16)
CONVERT(char, MSA_INT8)
CONVERT(byte, MSA_UINT8)
CONVERT(bool, MSA_BOOL)

static PyObject *returns_self(PyObject *self, PyObject *unused) { return Py_NewRef(self); }
static PyObject *returns_false(PyObject *self, PyObject *unused) { Py_RETURN_FALSE; }

static PyObject *storage_share(PyObject *self, PyObject *unused) {
    return msa_storage_share(of(self)->storage, msa_python_sharing) == 0 ? Py_NewRef(self) : msa_python_raise();
}
static PyObject *storage_is_shared(PyObject *self, PyObject *unused) { return PyBool_FromLong(msa_storage_is_shared(of(self)->storage)); }

static PyObject *storage_dtype(PyObject *self, void *unused) { return msa_python_dtype(of(self)->dtype); }
static PyObject *storage_device(PyObject *self, void *unused) { return msa_python_device(0, -1); }
static PyObject *storage_is_cuda(PyObject *self, void *unused) { Py_RETURN_FALSE; }
static PyObject *storage_cdata(PyObject *self, void *unused) { return PyLong_FromVoidPtr(of(self)->storage); }

static PyObject *storage_compare(PyObject *a, PyObject *b, int operation) {
    bool storages = PyObject_TypeCheck(b, &msa_python_storage_type) || PyObject_TypeCheck(b, &untyped_type);
    if (!storages || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((of(a)->storage == of(b)->storage && of(a)->dtype == of(b)->dtype) == (operation == Py_EQ));
}
static Py_hash_t storage_hash(PyObject *self) { return _Py_HashPointer(of(self)->storage); }

static PyMethodDef methods[] = {
    {"data_ptr", storage_data_ptr, METH_NOARGS, "The address of the first element."},
    {"nbytes", storage_nbytes, METH_NOARGS, "The size in bytes."},
    {"size", storage_size, METH_NOARGS, "The number of elements."},
    {"element_size", storage_element_size, METH_NOARGS, "Bytes of an element."},
    {"tolist", storage_list, METH_NOARGS, "The elements as a list."},
    {"resize_", storage_resize, METH_O, "Change the number of elements."},
    {"fill_", storage_fill, METH_O, "Set all elements to a number."},
    {"copy_", storage_copy, METH_VARARGS, "Copy the elements of another storage."},
    {"clone", storage_clone, METH_NOARGS, "A copy."},
    {"cpu", returns_self, METH_NOARGS, NULL},
    {"pin_memory", returns_self, METH_NOARGS, NULL},
    {"is_pinned", returns_false, METH_NOARGS, NULL},
    {"share_memory_", storage_share, METH_NOARGS, "Move the elements to memory that other processes can share."},
    {"is_shared", storage_is_shared, METH_NOARGS, NULL},
    {"untyped", as_untyped, METH_NOARGS, "The same memory as bytes."},
    {"_untyped", as_untyped, METH_NOARGS, NULL},
    {"float", storage_float, METH_NOARGS, NULL},
    {"double", storage_double, METH_NOARGS, NULL},
    {"half", storage_half, METH_NOARGS, NULL},
    {"bfloat16", storage_bfloat16, METH_NOARGS, NULL},
    {"int", storage_int, METH_NOARGS, NULL},
    {"long", storage_long, METH_NOARGS, NULL},
    {"short", storage_short, METH_NOARGS, NULL},
    {"char", storage_char, METH_NOARGS, NULL},
    {"byte", storage_byte, METH_NOARGS, NULL},
    {"bool", storage_bool, METH_NOARGS, NULL},
    {"__deepcopy__", storage_deepcopy, METH_O, NULL},
    {"__reduce_ex__", storage_reduce, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getset[] = {
    {"dtype", storage_dtype, NULL, "The type of the elements; None for bytes.", NULL},
    {"device", storage_device, NULL, NULL, NULL},
    {"is_cuda", storage_is_cuda, NULL, NULL, NULL},
    {"_cdata", storage_cdata, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMappingMethods mapping = {.mp_length = storage_length, .mp_subscript = storage_item, .mp_ass_subscript = storage_set_item};

#define STORAGE_TYPE(type_name, text) \
    { \
        PyVarObject_HEAD_INIT(NULL, 0).tp_name = type_name, .tp_basicsize = sizeof(python_storage), \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .tp_doc = text, .tp_new = storage_new, .tp_dealloc = storage_dealloc, \
        .tp_repr = storage_repr, .tp_hash = storage_hash, .tp_richcompare = storage_compare, .tp_as_mapping = &mapping, \
        .tp_methods = methods, .tp_getset = getset \
    }
PyTypeObject msa_python_storage_type = STORAGE_TYPE("torch.storage.TypedStorage", "TypedStorage(size_or_values, *, dtype=None)\n\nThe memory that tensors view.");
static PyTypeObject untyped_type = STORAGE_TYPE("torch.storage.UntypedStorage", "UntypedStorage(size)\n\nThe memory that tensors view, as bytes.");

/* Methods of tensors. */

static msa_tensor *tensor_of(PyObject *self) { return msa_python_tensor_of(self); }

static PyObject *tensor_storage(PyObject *self, PyObject *unused) {
    if (msa_python_check_strided("storage", tensor_of(self)) != 0) return msa_python_raise();
    return typed(msa_storage_retain(tensor_of(self)->storage), (msa_dtype)tensor_of(self)->dtype);
}
static PyObject *tensor_untyped_storage(PyObject *self, PyObject *unused) {
    if (msa_python_check_strided("storage", tensor_of(self)) != 0) return msa_python_raise();
    return storage_object(&untyped_type, msa_storage_retain(tensor_of(self)->storage), MSA_NO_DTYPE);
}
static PyObject *tensor_share(PyObject *self, PyObject *unused) {
    if (msa_python_check_strided("share_memory_", tensor_of(self)) != 0) return msa_python_raise();
    return msa_storage_share(tensor_of(self)->storage, msa_python_sharing) == 0 ? Py_NewRef(self) : msa_python_raise();
}
static PyObject *tensor_is_shared(PyObject *self, PyObject *unused) { return PyBool_FromLong(msa_storage_is_shared(tensor_of(self)->storage)); }

/* set_(), set_(tensor), set_(storage), set_(storage or tensor, storage_offset, size, stride=()) */
static PyObject *tensor_set(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"source", "storage_offset", "size", "stride", NULL};
    PyObject *source = NULL, *size_object = NULL, *stride_object = NULL;
    long long offset = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OLOO:set_", names, &source, &offset, &size_object, &stride_object)) return NULL;
    msa_tensor *t = tensor_of(self);
    if (t->requires_grad && msa_grad_enabled()) return PyErr_Format(PyExc_RuntimeError, "set_(): a tensor that requires grad cannot be changed");
    if (msa_python_check_strided("set_", t) != 0 || (source && msa_python_is_tensor(source) && msa_python_check_strided("set_", tensor_of(source)) != 0)) return msa_python_raise();
    msa_auto msa_tensor *view = NULL;
    if (!source) view = msa_tensor_new(MSA_INTS(0), (msa_dtype)t->dtype);
    else if (msa_python_is_tensor(source)) view = msa_tensor_alias(tensor_of(source));
    else if (PyObject_TypeCheck(source, &msa_python_storage_type) || PyObject_TypeCheck(source, &untyped_type)) {
        if (of(source)->dtype != MSA_NO_DTYPE && of(source)->dtype != t->dtype)
            return PyErr_Format(PyExc_RuntimeError, "Expected a Storage of type %s or an UntypedStorage, but got type %s",
                                msa_dtype_name((msa_dtype)t->dtype), msa_dtype_name(of(source)->dtype));
        int64_t n = (int64_t)(of(source)->storage->bytes / msa_dtype_size((msa_dtype)t->dtype)), one = 1;
        view = msa_tensor_over(of(source)->storage, (msa_dtype)t->dtype, 0, 1, &n, &one);
    } else {
        return PyErr_Format(PyExc_TypeError, "set_(): argument 'source' must be Tensor or Storage, not %.200s", Py_TYPE(source)->tp_name);
    }
    if (!view) return msa_python_raise();
    if (view->dtype != t->dtype)
        return PyErr_Format(PyExc_RuntimeError, "Could not set tensor of type %s to a tensor of type %s", msa_dtype_name((msa_dtype)view->dtype),
                            msa_dtype_name((msa_dtype)t->dtype));
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    int ndim = view->ndim, n_strides = -1;
    memcpy(sizes, view->sizes, sizeof(int64_t) * (size_t)ndim);
    memcpy(strides, view->strides, sizeof(int64_t) * (size_t)ndim);
    if (size_object) {
        if (msa_python_as_ints(size_object, sizes, MSA_MAX_DIMS, &ndim) != 1)
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "set_(): argument 'size' must be tuple of ints");
        if (stride_object && msa_python_as_ints(stride_object, strides, MSA_MAX_DIMS, &n_strides) != 1)
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "set_(): argument 'stride' must be tuple of ints");
        if (n_strides <= 0) msa_contiguous_strides(ndim, sizes, strides);
        else if (n_strides != ndim) return PyErr_Format(PyExc_RuntimeError, "set_(): size and stride must have the same length");
    } else {
        offset += view->offset;
    }
    /* Checked against the storage here, grown to what is asked for as PyTorch does. */
    int64_t last = 0;
    bool empty = false;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] < 0 || strides[i] < 0) return PyErr_Format(PyExc_RuntimeError, "set_(): sizes and strides must not be negative");
        int64_t step;
        if (sizes[i] == 0) empty = true;
        else if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last))
            return PyErr_Format(PyExc_RuntimeError, "set_(): the sizes are too large");
    }
    if (offset < 0 || offset > INT64_MAX / 64 || last > INT64_MAX / 64) return PyErr_Format(PyExc_RuntimeError, "Tensor: invalid storage offset %lld", offset);
    size_t needed = empty ? 0 : (size_t)(last + 1 + offset) * msa_dtype_size((msa_dtype)t->dtype);
    if (needed > view->storage->bytes && msa_storage_resize(view->storage, needed) != 0) return msa_python_raise();
    if (msa_storage_make_plain(view->storage) != 0) return msa_python_raise();
    msa_tensor_set_storage(t, view->storage, (msa_dtype)t->dtype);
    if (msa_tensor_set_geometry(t, ndim, sizes, strides, offset) != 0) return msa_python_raise();
    return Py_NewRef(self);
}

PyMethodDef msa_python_storage_methods[] = {
    {"storage", tensor_storage, METH_NOARGS, "storage() -> TypedStorage\n\nThe memory that this tensor views."},
    {"_storage", tensor_untyped_storage, METH_NOARGS, NULL},
    {"untyped_storage", tensor_untyped_storage, METH_NOARGS, "untyped_storage() -> UntypedStorage\n\nThe memory that this tensor views, as bytes."},
    {"share_memory_", tensor_share, METH_NOARGS, "share_memory_() -> Tensor\n\nMove the memory to where other processes can share it."},
    {"is_shared", tensor_is_shared, METH_NOARGS, "is_shared() -> bool"},
    {"set_", (PyCFunction)(void (*)(void))tensor_set, METH_VARARGS | METH_KEYWORDS,
     "set_(source=None, storage_offset=0, size=None, stride=None) -> Tensor\n\nView other memory from now on. RuntimeError for another dtype."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef functions[] = {
    {"_rebuild_storage", rebuild_storage, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_storage(PyObject *module) {
    if (PyType_Ready(&msa_python_storage_type) != 0 || PyType_Ready(&untyped_type) != 0) return -1;
    if (msa_python_add_sharing(module, &msa_python_storage_type) != 0 || msa_python_add_sharing(module, &untyped_type) != 0) return -1;
    if (PyModule_AddObjectRef(module, "TypedStorage", (PyObject *)&msa_python_storage_type) != 0 ||
        PyModule_AddObjectRef(module, "UntypedStorage", (PyObject *)&untyped_type) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
