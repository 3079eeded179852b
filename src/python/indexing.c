/* t[key] and t[key] = value.
 *
 * Ints, slices, None, Ellipsis and bools are applied one after the other to a view; tensors, arrays and sequences are
 * collected and go to the index operators in the end. Where nothing is recorded for gradients, the view's geometry
 * is worked out first and one view is made of it. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "python/override.h"
#include "python/tensor.h"

/* A view in the making. */
typedef struct {
    msa_tensor *base;    /* borrowed */
    msa_tensor *current; /* owned: what the recorded steps have made; NULL while none has */
    bool recorded;       /* each step is an operator */
    bool changed;
    int ndim;
    int64_t offset;
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
} cursor;

static int begin(cursor *c, msa_tensor *base) {
    if (base->storage->hidden.on && msa_storage_make_plain(base->storage) != 0) return -1;
    c->base = base;
    c->current = NULL;
    c->recorded = base->requires_grad && msa_grad_enabled();
    c->changed = false;
    c->ndim = base->ndim;
    c->offset = base->offset;
    memcpy(c->sizes, base->sizes, sizeof(int64_t) * base->ndim);
    memcpy(c->strides, base->strides, sizeof(int64_t) * base->ndim);
    return 0;
}

/* A recorded step has given `next`. */
static int advance(cursor *c, msa_tensor *next) {
    if (!next) return -1;
    msa_tensor_release(c->current);
    c->current = next;
    c->ndim = next->ndim;
    memcpy(c->sizes, next->sizes, sizeof(int64_t) * next->ndim);
    return 0;
}

static msa_tensor *at(const cursor *c) { return c->current ? c->current : c->base; }

static int take(cursor *c, int dim, int64_t index, int named_dim) {
    int64_t size = c->sizes[dim];
    if (index < -size || index >= size)
        return msa_fail(MSA_INDEX_ERROR, "index %lld is out of bounds for dimension %d with size %lld", (long long)index, named_dim,
                        (long long)size);
    if (index < 0) index += size;
    c->changed = true;
    if (c->recorded) return advance(c, msa_select_int(at(c), dim, index));
    c->offset += index * c->strides[dim];
    c->ndim--;
    for (int i = dim; i < c->ndim; i++) {
        c->sizes[i] = c->sizes[i + 1];
        c->strides[i] = c->strides[i + 1];
    }
    return 0;
}

/* 0, or -1 with a Python exception. */
static int narrow(cursor *c, int dim, PyObject *slice) {
    PySliceObject *s = (PySliceObject *)slice;
    if (s->start == Py_None && s->stop == Py_None && s->step == Py_None) return 0;
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) != 0) return -1;
    if (step < 1) {
        PyErr_SetString(PyExc_ValueError, "step must be greater than zero");
        return -1;
    }
    Py_ssize_t length = PySlice_AdjustIndices((Py_ssize_t)c->sizes[dim], &start, &stop, step);
    if (stop < start) stop = start;
    if (start == 0 && length == c->sizes[dim] && step == 1) return 0;
    c->changed = true;
    if (c->recorded) {
        if (advance(c, msa_slice_Tensor(at(c), dim, (msa_opt_int){true, start}, (msa_opt_int){true, stop}, step)) == 0) return 0;
        msa_python_raise();
        return -1;
    }
    if (length) c->offset += start * c->strides[dim];
    c->sizes[dim] = length;
    c->strides[dim] *= step;
    return 0;
}

static int insert(cursor *c, int dim) {
    if (c->ndim == MSA_MAX_DIMS) return msa_fail(MSA_RUNTIME_ERROR, "a tensor can have at most %d dimensions", MSA_MAX_DIMS);
    c->changed = true;
    if (c->recorded) return advance(c, msa_unsqueeze(at(c), dim));
    for (int i = c->ndim; i > dim; i--) {
        c->sizes[i] = c->sizes[i - 1];
        c->strides[i] = c->strides[i - 1];
    }
    c->strides[dim] = dim < c->ndim ? c->sizes[dim + 1] * c->strides[dim + 1] : 1;
    c->sizes[dim] = 1;
    c->ndim++;
    return 0;
}

/* The view, owned. */
static msa_tensor *finish(cursor *c) {
    if (c->current) return msa_take(c->current);
    if (c->recorded) return msa_alias(c->base);
    const msa_tensor *base = c->base;
    msa_tensor *t = msa_tensor_over(base->storage, (msa_dtype)base->dtype, c->offset, c->ndim, c->sizes, c->strides);
    if (!t) return NULL;
    t->device = base->device;
    t->detached_data = base->detached_data;
    t->inference = base->inference;
    if (msa_grad_mode && msa_view_mark(t, c->base) != 0) {
        msa_tensor_release(t);
        return NULL;
    }
    return t;
}

/* Index tensors, by position; NULL entries leave a dimension alone. */
typedef struct {
    int n; /* 0: none */
    msa_tensor *items[MSA_MAX_DIMS];
} indices;

static void record(indices *list, int dim, msa_tensor *owned) {
    while (list->n < dim) list->items[list->n++] = NULL;
    list->items[list->n++] = owned;
}

static void indices_clear(indices *list) {
    for (int i = 0; i < list->n; i++) msa_tensor_release(list->items[i]);
    list->n = 0;
}

static bool is_mask(const msa_tensor *t) { return t->dtype == MSA_BOOL || t->dtype == MSA_UINT8; }

/* A sequence or array as an index tensor; NULL with an exception. */
static msa_tensor *sequence_index(PyObject *item) {
    msa_tensor *t = msa_python_new_tensor(item, MSA_NO_DTYPE);
    if (t && t->numel == 0 && t->dtype != MSA_BOOL && msa_is_inexact((msa_dtype)t->dtype)) {
        msa_tensor *empty = msa_cast_values(t, MSA_INT64);
        msa_tensor_release(t);
        t = empty;
        if (!t) msa_python_raise();
    }
    if (t && msa_is_integral((msa_dtype)t->dtype, false) && t->dtype != MSA_INT64 && t->dtype != MSA_UINT8) {
        msa_tensor *wide = msa_cast_values(t, MSA_INT64);
        msa_tensor_release(t);
        t = wide;
        if (!t) msa_python_raise();
    }
    return t;
}

static bool is_integer(PyObject *item) {
    return PyLong_CheckExact(item) || (!PyBool_Check(item) && (PyLong_Check(item) || msa_python_is_numpy_scalar(item)) && PyIndex_Check(item));
}

/* Dimensions that an item uses up. */
static int dimensions_of(PyObject *item) {
    if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
    if (msa_python_is_tensor(item)) {
        const msa_tensor *t = msa_python_tensor_of(item);
        return is_mask(t) ? t->ndim : 1;
    }
    return 1;
}

/* True selects everything along a new dimension of size one, False nothing. */
static int apply_truth(cursor *c, indices *list, int *dim, bool truth) {
    if (insert(c, *dim) != 0) {
        msa_python_raise();
        return -1;
    }
    msa_tensor *t = msa_tensor_new(MSA_INTS(truth ? 1 : 0), MSA_INT64);
    if (!t || (truth && msa_fill_values(t, msa_int(0)) != 0)) {
        msa_tensor_release(t);
        msa_python_raise();
        return -1;
    }
    record(list, (*dim)++, t);
    return 0;
}

static int apply_tensor(cursor *c, indices *list, int *dim, int *named_dim, msa_tensor *t) {
    if (t->ndim == 0 && msa_is_integral((msa_dtype)t->dtype, true)) {
        msa_scalar value;
        if (msa_tensor_item(t, &value) != 0) {
            msa_python_raise();
            return -1;
        }
        if (is_mask(t)) return apply_truth(c, list, dim, value.i != 0);
        if (take(c, *dim, value.i, *named_dim) != 0) {
            msa_python_raise();
            return -1;
        }
        (*named_dim)++;
        return 0;
    }
    record(list, (*dim)++, msa_tensor_retain(t));
    *named_dim += is_mask(t) ? t->ndim : 1;
    return 0;
}

static int apply_item(cursor *c, indices *list, PyObject *item, int *dim, int *named_dim, int specified) {
    if (is_integer(item)) {
        int64_t index;
        int status = msa_python_as_int(item, &index);
        if (status < 0) return -1;
        if (take(c, *dim, index, (*named_dim)++) == 0) return 0;
        msa_python_raise();
        return -1;
    }
    if (PySlice_Check(item)) {
        if (narrow(c, *dim, item) != 0) return -1;
        (*dim)++;
        (*named_dim)++;
        return 0;
    }
    if (item == Py_None) {
        if (insert(c, (*dim)++) == 0) return 0;
        msa_python_raise();
        return -1;
    }
    if (item == Py_Ellipsis) {
        *dim += c->base->ndim - specified;
        *named_dim += c->base->ndim - specified;
        return 0;
    }
    if (PyBool_Check(item)) return apply_truth(c, list, dim, item == Py_True);
    if (msa_python_is_tensor(item)) return apply_tensor(c, list, dim, named_dim, msa_python_tensor_of(item));
    if (msa_python_is_array(item) || PySequence_Check(item)) {
        msa_tensor *t = sequence_index(item);
        if (!t) return -1;
        int status = apply_tensor(c, list, dim, named_dim, t);
        msa_tensor_release(t);
        return status;
    }
    if (PyIndex_Check(item)) {
        int64_t index;
        int status = msa_python_as_int(item, &index);
        if (status < 0) return -1;
        if (status == 1) {
            if (take(c, *dim, index, (*named_dim)++) == 0) return 0;
            msa_python_raise();
            return -1;
        }
    }
    PyErr_Format(PyExc_IndexError,
                 "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %.200s)",
                 Py_TYPE(item)->tp_name);
    return -1;
}

/* A list stands for a tuple when something in it is no number, as numpy once had it. */
static bool list_is_tuple(PyObject *key) {
    if (!PyList_Check(key) || PyList_GET_SIZE(key) >= 32) return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); i++) {
        PyObject *item = PyList_GET_ITEM(key, i);
        if (msa_python_is_tensor(item) || PySlice_Check(item) || item == Py_Ellipsis || item == Py_None ||
            (PySequence_Check(item) && !PyUnicode_Check(item)))
            return true;
    }
    return false;
}

/* Apply a whole key: 0, or -1 with an exception. */
static int apply(cursor *c, indices *list, PyObject *key) {
    bool several = PyTuple_Check(key) || list_is_tuple(key);
    PyObject *items = several ? PySequence_Tuple(key) : NULL; /* a list may change while it is gone through */
    if (several && !items) return -1;
    PyObject *const *first = several ? &PyTuple_GET_ITEM(items, 0) : &key;
    Py_ssize_t n = several ? PyTuple_GET_SIZE(items) : 1;
    int dim = 0, named_dim = 0, specified = 0, status = 0;
    list->n = 0;
    for (Py_ssize_t i = 0; i < n; i++) specified += dimensions_of(first[i]);
    if (!several && c->base->ndim == 0 && is_integer(key)) {
        PyErr_SetString(PyExc_IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                                          "convert a 0-dim tensor to a number");
        status = -1;
    } else if (specified > c->base->ndim) {
        /* An item that is no index at all is the first thing to complain about. */
        for (Py_ssize_t i = 0; i < n && status == 0; i++)
            if (PyUnicode_Check(first[i])) {
                PyErr_Format(PyExc_TypeError, "new(): invalid data type '%.200s'", Py_TYPE(first[i])->tp_name);
                status = -1;
            }
        if (status == 0) PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", (int)c->base->ndim);
        status = -1;
    }
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) status = apply_item(c, list, first[i], &dim, &named_dim, specified);
    Py_XDECREF(items);
    return status;
}

/* A subclass with a __torch_function__ of its own is asked. */
static PyObject *override(const char *name, PyObject *self, PyObject *key, PyObject *value) {
    PyObject *method = PyObject_GetAttrString((PyObject *)&msa_python_tensor_type, name), *const args[] = {self, key, value};
    PyObject *result = method ? msa_python_call_override(method, name, args, value ? 3 : 2, NULL) : NULL;
    Py_XDECREF(method);
    return result;
}

PyObject *msa_python_get_item(PyObject *self, PyObject *key) {
    msa_tensor *t = msa_python_tensor_of(self);
    cursor c;
    indices list;
    list.n = 0;
    if (__builtin_expect(Py_TYPE(self) != msa_python_tensor_class, 0) && msa_python_override_of(self) == MSA_OVERRIDDEN)
        return override("__getitem__", self, key, NULL);
    if (begin(&c, t) != 0) return msa_python_raise();
    if (apply(&c, &list, key) != 0) {
        msa_tensor_release(c.current);
        indices_clear(&list);
        return NULL;
    }
    if (list.n == 0) return msa_python_wrap_like(self, finish(&c));
    msa_auto msa_tensor *view = c.changed ? finish(&c) : msa_tensor_retain(t);
    msa_tensor *result = NULL;
    if (view && view->numel > MSA_PYTHON_GIL_NUMEL) {
        Py_BEGIN_ALLOW_THREADS
        result = msa_index_Tensor(view, (msa_tensors){list.items, list.n});
        Py_END_ALLOW_THREADS
    } else if (view) {
        result = msa_index_Tensor(view, (msa_tensors){list.items, list.n});
    }
    indices_clear(&list);
    return msa_python_wrap_like(self, result);
}

/* The assigned value without leading dimensions of size one that the target lacks. */
static msa_tensor *fitted(msa_tensor *value, int ndim) {
    int extra = 0;
    while (value->ndim - extra > ndim && value->sizes[extra] == 1) extra++;
    if (!extra) return msa_tensor_retain(value);
    return msa_reshape(value, (msa_ints){value->sizes + extra, value->ndim - extra});
}

static int assign(msa_tensor *view, const indices *list, msa_tensor *value, const msa_scalar *number) {
    if (list->n == 0) {
        if (number) {
            msa_auto msa_tensor *filled = msa_fill_Scalar_(view, *number);
            return filled ? 0 : -1;
        }
        msa_auto msa_tensor *source = fitted(value, view->ndim);
        msa_auto msa_tensor *written = source ? msa_copy_(view, source, false) : NULL;
        return written ? 0 : -1;
    }
    if (number && list->n == 1 && list->items[0]->dtype == MSA_BOOL && msa_same_sizes(list->items[0], view)) {
        msa_auto msa_tensor *filled = msa_masked_fill_(view, list->items[0], *number);
        return filled ? 0 : -1;
    }
    msa_auto msa_tensor *source = number ? msa_tensor_scalar(*number, (msa_dtype)view->dtype) : msa_tensor_retain(value);
    msa_auto msa_tensor *written = source ? msa_index_put_(view, (msa_tensors){list->items, list->n}, source, false) : NULL;
    return written ? 0 : -1;
}

int msa_python_set_item(PyObject *self, PyObject *key, PyObject *value) {
    msa_tensor *t = msa_python_tensor_of(self);
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
        return -1;
    }
    if (__builtin_expect(Py_TYPE(self) != msa_python_tensor_class, 0) && msa_python_override_of(self) == MSA_OVERRIDDEN) {
        PyObject *result = override("__setitem__", self, key, value);
        Py_XDECREF(result);
        return result ? 0 : -1;
    }
    msa_scalar number;
    bool is_tensor = msa_python_is_tensor(value);
    if (!is_tensor) {
        int status = msa_python_as_scalar(value, &number);
        if (status == 0)
            PyErr_Format(PyExc_TypeError, "can't assign a %.200s to a torch.%sTensor", Py_TYPE(value)->tp_name,
                         msa_dtype_type_name((msa_dtype)t->dtype));
        if (status != 1) return -1;
        if (msa_is_complex(number.kind) && !msa_is_complex((msa_dtype)t->dtype)) {
            PyErr_SetString(PyExc_TypeError, "can't convert complex to float");
            return -1;
        }
    }
    cursor c;
    indices list;
    list.n = 0;
    if (begin(&c, t) != 0) {
        msa_python_raise();
        return -1;
    }
    int status = apply(&c, &list, key);
    if (status != 0) {
        msa_tensor_release(c.current);
        indices_clear(&list);
        return -1;
    }
    msa_auto msa_tensor *view = c.changed ? finish(&c) : msa_tensor_retain(t);
    status = view ? assign(view, &list, is_tensor ? msa_python_tensor_of(value) : NULL, is_tensor ? NULL : &number) : -1;
    indices_clear(&list);
    if (status != 0) msa_python_raise();
    return status;
}
