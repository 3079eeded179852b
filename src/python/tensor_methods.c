/* Methods of tensors that ask what a tensor is, and the protocols of containers and numbers. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "python/functions.h"
#include "python/tensor.h"

static msa_tensor *of(PyObject *self) { return msa_python_tensor_of(self); }

/* Sizes and strides. */

static PyObject *ints_or_one(PyObject *self, PyObject *args, PyObject *keywords, const int64_t *values, bool as_size) {
    static char *names[] = {"dim", NULL};
    PyObject *dim = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, as_size ? "|O:size" : "|O:stride", names, &dim)) return NULL;
    msa_tensor *t = of(self);
    if (dim == Py_None) {
        if (as_size) return msa_python_size((msa_ints){values, t->ndim});
        PyObject *tuple = PyTuple_New(t->ndim);
        for (int i = 0; tuple && i < t->ndim; i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromLongLong(values[i]));
        return tuple;
    }
    int64_t d;
    int status = msa_python_as_int(dim, &d);
    if (status == 0)
        PyErr_Format(PyExc_TypeError, "%s(): argument 'dim' (position 1) must be int, not %.200s", as_size ? "size" : "stride",
                     Py_TYPE(dim)->tp_name);
    if (status != 1) return NULL;
    if (t->ndim == 0) return PyErr_Format(PyExc_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)d);
    if (d < -t->ndim || d >= t->ndim)
        return PyErr_Format(PyExc_IndexError, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -t->ndim,
                            t->ndim - 1, (long long)d);
    return PyLong_FromLongLong(values[d < 0 ? d + t->ndim : d]);
}

static PyObject *size(PyObject *self, PyObject *args, PyObject *keywords) {
    return ints_or_one(self, args, keywords, of(self)->sizes, true);
}
static PyObject *stride(PyObject *self, PyObject *args, PyObject *keywords) {
    if (msa_python_check_strided("stride", of(self)) != 0) return msa_python_raise();
    return ints_or_one(self, args, keywords, msa_tensor_strides(of(self)), false);
}
static PyObject *dim(PyObject *self, PyObject *unused) { return PyLong_FromLong(of(self)->ndim); }
static PyObject *numel(PyObject *self, PyObject *unused) { return PyLong_FromLongLong(of(self)->numel); }
static PyObject *storage_offset(PyObject *self, PyObject *unused) { return PyLong_FromLongLong(of(self)->offset); }
static PyObject *element_size(PyObject *self, PyObject *unused) { return PyLong_FromSize_t(msa_dtype_size((msa_dtype)of(self)->dtype)); }

static PyObject *data_ptr(PyObject *self, PyObject *unused) {
    if (msa_python_check_strided("data_ptr", of(self)) != 0) return msa_python_raise();
    if (of(self)->numel == 0) return PyLong_FromLong(0);
    void *data = msa_tensor_data(of(self));
    return data ? PyLong_FromVoidPtr(data) : msa_python_raise();
}

static PyObject *is_contiguous(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"memory_format", NULL};
    PyObject *format = NULL;
    int code = MSA_CONTIGUOUS_FORMAT;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:is_contiguous", names, &format)) return NULL;
    if (format && msa_python_match_memory_format(format, &code) != 1)
        return PyErr_Format(PyExc_TypeError, "is_contiguous(): argument 'memory_format' must be torch.memory_format, not %.200s",
                            Py_TYPE(format)->tp_name);
    msa_tensor *t = of(self);
    switch (code) {
    case MSA_CONTIGUOUS_FORMAT: return PyBool_FromLong(t->contiguous);
    case MSA_CHANNELS_LAST: return PyBool_FromLong(t->ndim == 4 && msa_is_channels_last(t));
    case MSA_CHANNELS_LAST_3D: return PyBool_FromLong(t->ndim == 5 && msa_is_channels_last(t));
    default: return PyErr_Format(PyExc_RuntimeError, "preserve memory format is unsupported by the contiguous operator");
    }
}

static PyObject *is_floating_point(PyObject *self, PyObject *unused) { return PyBool_FromLong(msa_is_floating((msa_dtype)of(self)->dtype)); }
static PyObject *is_complex(PyObject *self, PyObject *unused) { return PyBool_FromLong(msa_is_complex((msa_dtype)of(self)->dtype)); }
static PyObject *is_signed(PyObject *self, PyObject *unused) {
    return PyBool_FromLong(of(self)->dtype != MSA_BOOL && of(self)->dtype != MSA_UINT8);
}
static PyObject *returns_false(PyObject *self, PyObject *unused) { Py_RETURN_FALSE; }
static PyObject *returns_self(PyObject *self, PyObject *unused) { return Py_NewRef(self); }
static PyObject *get_device_index(PyObject *self, PyObject *unused) { return PyLong_FromLong(-1); }

static PyObject *is_same_size(PyObject *self, PyObject *other) {
    msa_tensor *o = msa_python_unwrap(other);
    return o ? PyBool_FromLong(msa_same_sizes(of(self), o)) : NULL;
}

static PyObject *is_set_to(PyObject *self, PyObject *other) {
    msa_tensor *t = of(self), *o = msa_python_unwrap(other);
    if (!o) return NULL;
    return PyBool_FromLong(t->storage == o->storage && t->offset == o->offset && msa_same_sizes(t, o) &&
                           memcmp(t->strides, o->strides, sizeof(int64_t) * t->ndim) == 0);
}

/* Values. */

static PyObject *item(PyObject *self, PyObject *unused) {
    msa_scalar value;
    if (msa_tensor_item(of(self), &value) == 0) return msa_python_from_scalar(value);
    if (msa_error_get() == MSA_RUNTIME_ERROR && of(self)->numel != 1) {
        msa_error_clear();
        return PyErr_Format(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
    }
    return msa_python_raise();
}

/* Values along dimensions d, d + 1, ... as nested lists. */
static PyObject *nested_list(const msa_tensor *t, int d, const char *data, msa_tensor *cursor) {
    size_t itemsize = msa_dtype_size((msa_dtype)t->dtype);
    if (d == t->ndim) {
        msa_scalar value;
        cursor->offset = (data - (const char *)t->storage->data) / (int64_t)itemsize;
        return msa_tensor_item(cursor, &value) == 0 ? msa_python_from_scalar(value) : msa_python_raise();
    }
    PyObject *list = PyList_New((Py_ssize_t)t->sizes[d]);
    for (int64_t i = 0; list && i < t->sizes[d]; i++) {
        PyObject *entry = nested_list(t, d + 1, data + i * t->strides[d] * (int64_t)itemsize, cursor);
        if (!entry) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, entry);
    }
    return list;
}

PyObject *msa_python_to_list(PyObject *self, PyObject *unused) {
    msa_tensor *t = of(self);
    if (msa_python_check_strided("tolist", t) != 0) return msa_python_raise();
    const char *data = t->numel ? msa_data(t) : (const char *)t->storage->data;
    if (t->numel && !data) return msa_python_raise();
    /* A 0-dim tensor that walks over the elements. */
    msa_auto msa_tensor *cursor = msa_tensor_over(t->storage, (msa_dtype)t->dtype, 0, 0, t->sizes, t->sizes);
    return cursor ? nested_list(t, 0, data, cursor) : msa_python_raise();
}

int msa_python_truth(PyObject *self) {
    msa_tensor *t = of(self);
    msa_scalar value;
    if (t->numel != 1) {
        PyErr_Format(PyExc_RuntimeError, "Boolean value of Tensor with %s ambiguous", t->numel ? "more than one value is" : "no values is");
        return -1;
    }
    if (msa_tensor_item(t, &value) == 0) return !msa_scalar_is_zero(value);
    msa_python_raise();
    return -1;
}

static PyObject *is_nonzero(PyObject *self, PyObject *unused) {
    int truth = msa_python_truth(self);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

/* Containers. */

Py_ssize_t msa_python_length(PyObject *self) {
    if (of(self)->ndim) return (Py_ssize_t)of(self)->sizes[0];
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
}

PyObject *msa_python_iterate(PyObject *self) {
    if (of(self)->ndim == 0) return PyErr_Format(PyExc_TypeError, "iteration over a 0-d tensor");
    PyObject *views = msa_python_call_operator("unbind", &self, 1), *iterator = views ? PyObject_GetIter(views) : NULL;
    Py_XDECREF(views);
    return iterator;
}

int msa_python_contains(PyObject *self, PyObject *element) {
    msa_scalar number;
    if (!msa_python_is_tensor(element)) {
        int status = msa_python_as_scalar(element, &number);
        if (status == 0) PyErr_Format(PyExc_RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.", Py_TYPE(element));
        if (status != 1) return -1;
    }
    PyObject *equal = PyObject_RichCompare(element, self, Py_EQ);
    PyObject *any = equal ? msa_python_call_operator("any", &equal, 1) : NULL;
    int found = any ? PyObject_IsTrue(any) : -1;
    Py_XDECREF(equal);
    Py_XDECREF(any);
    return found;
}

/* Python functions over elements, in place. */

static PyObject *each(PyObject *self, PyObject *other, PyObject *function) {
    msa_tensor *t = of(self), *o = other ? msa_python_unwrap(other) : NULL;
    if (other && !o) return NULL;
    if (t->requires_grad) return PyErr_Format(PyExc_TypeError, "Can't call apply_() or map_() on Variable that requires grad. Use var.detach().apply_() instead.");
    if (o && !msa_same_sizes(t, o)) return PyErr_Format(PyExc_RuntimeError, "map_(): the tensors must have the same sizes");
    if (msa_python_check_strided("apply_", t) != 0 || (o && msa_python_check_strided("map_", o) != 0)) return msa_python_raise();
    msa_auto msa_tensor *values = msa_tensor_new(msa_sizes(t), (msa_dtype)t->dtype);
    msa_auto msa_tensor *first = msa_contiguous_values(t), *second = o ? msa_contiguous_values(o) : NULL;
    if (!values || !first || (o && !second)) return msa_python_raise();
    int64_t zero[1] = {0};
    for (int64_t i = 0; i < t->numel; i++) {
        msa_auto msa_tensor *a = msa_tensor_over(first->storage, (msa_dtype)t->dtype, first->offset + i, 0, zero, zero);
        msa_auto msa_tensor *b = o ? msa_tensor_over(second->storage, (msa_dtype)o->dtype, second->offset + i, 0, zero, zero) : NULL;
        msa_auto msa_tensor *to = msa_tensor_over(values->storage, (msa_dtype)t->dtype, i, 0, zero, zero);
        msa_scalar x, y, r;
        if (!a || !to || (o && !b) || msa_tensor_item(a, &x) != 0 || (o && msa_tensor_item(b, &y) != 0)) return msa_python_raise();
        PyObject *px = msa_python_from_scalar(x), *py = o ? msa_python_from_scalar(y) : NULL;
        PyObject *answer = px && (py || !o) ? PyObject_CallFunctionObjArgs(function, px, py, NULL) : NULL;
        Py_XDECREF(px);
        Py_XDECREF(py);
        int status = answer ? msa_python_scalar(answer, &r) : -1;
        Py_XDECREF(answer);
        if (status != 0) return NULL;
        if (msa_fill_values(to, r) != 0) return msa_python_raise();
    }
    if (msa_copy_values(t, values) != 0) return msa_python_raise();
    msa_bump_version(t);
    return Py_NewRef(self);
}

static PyObject *apply_(PyObject *self, PyObject *function) { return each(self, NULL, function); }
static PyObject *map_(PyObject *self, PyObject *args) {
    PyObject *other, *function;
    return PyArg_ParseTuple(args, "OO:map_", &other, &function) ? each(self, other, function) : NULL;
}

#define KEYWORDS(f) (PyCFunction)(void (*)(void))f, METH_VARARGS | METH_KEYWORDS
PyMethodDef msa_python_tensor_methods[] = {
    {"size", KEYWORDS(size), "size(dim=None) -> Size or int\n\nThe sizes, or that of one dimension. IndexError when there is no such one."},
    {"stride", KEYWORDS(stride), "stride(dim=None) -> tuple or int\n\nElements between neighbours along each dimension."},
    {"dim", dim, METH_NOARGS, "dim() -> int\n\nThe number of dimensions."},
    {"ndimension", dim, METH_NOARGS, "ndimension() -> int\n\nThe same as dim()."},
    {"numel", numel, METH_NOARGS, "numel() -> int\n\nThe number of elements."},
    {"nelement", numel, METH_NOARGS, "nelement() -> int\n\nThe same as numel()."},
    {"storage_offset", storage_offset, METH_NOARGS, "storage_offset() -> int\n\nWhere in the storage the first element is."},
    {"element_size", element_size, METH_NOARGS, "element_size() -> int\n\nBytes of an element."},
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr() -> int\n\nThe address of the first element."},
    {"is_contiguous", KEYWORDS(is_contiguous), "is_contiguous(memory_format=torch.contiguous_format) -> bool"},
    {"is_floating_point", is_floating_point, METH_NOARGS, "is_floating_point() -> bool"},
    {"is_complex", is_complex, METH_NOARGS, "is_complex() -> bool"},
    {"is_signed", is_signed, METH_NOARGS, "is_signed() -> bool"},
    {"is_conj", returns_false, METH_NOARGS, "is_conj() -> bool\n\nFalse: conj() computes its values."},
    {"is_neg", returns_false, METH_NOARGS, "is_neg() -> bool"},
    {"_is_zerotensor", returns_false, METH_NOARGS, NULL},
    {"is_pinned", (PyCFunction)returns_false, METH_VARARGS, "is_pinned() -> bool"},
    {"is_distributed", returns_false, METH_NOARGS, "is_distributed() -> bool"},
    {"has_names", returns_false, METH_NOARGS, NULL},
    {"resolve_conj", returns_self, METH_NOARGS, "resolve_conj() -> Tensor"},
    {"resolve_neg", returns_self, METH_NOARGS, "resolve_neg() -> Tensor"},
    {"pin_memory", (PyCFunction)returns_self, METH_VARARGS, "pin_memory() -> Tensor\n\nThe tensor itself: its memory serves the CPU."},
    {"get_device", get_device_index, METH_NOARGS, "get_device() -> int\n\n-1, as for every tensor of the CPU."},
    {"is_same_size", is_same_size, METH_O, "is_same_size(other) -> bool"},
    {"is_set_to", is_set_to, METH_O, "is_set_to(tensor) -> bool\n\nWhether both show the same memory in the same way."},
    {"item", item, METH_NOARGS, "item() -> number\n\nThe value of a one-element tensor. ValueError for others."},
    {"tolist", msa_python_to_list, METH_NOARGS, "tolist() -> list or number\n\nThe values as nested lists."},
    {"is_nonzero", is_nonzero, METH_NOARGS, "is_nonzero() -> bool\n\nOf a one-element tensor."},
    {"apply_", apply_, METH_O, "apply_(callable) -> Tensor\n\nReplace each element by callable(element)."},
    {"map_", map_, METH_VARARGS, "map_(tensor, callable) -> Tensor\n\nReplace each element by callable(element, other element)."},
    {NULL, NULL, 0, NULL},
};
