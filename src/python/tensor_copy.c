/* Copies of whole tensor objects: deepcopy, and pickles. Tensors are pickled by value, with class and attributes. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "python/tensor.h"

static msa_tensor *of(PyObject *self) { return msa_python_tensor_of(self); }

static int copy_attributes(PyObject *from, PyObject *to, PyObject *memo) {
    PyObject *dict = ((python_tensor *)from)->dict;
    if (!dict || !PyDict_GET_SIZE(dict)) return 0;
    PyObject *copy = PyImport_ImportModule("copy"), *deep = NULL;
    if (copy) deep = PyObject_CallMethod(copy, "deepcopy", "OO", dict, memo);
    int status = deep ? PyObject_SetAttrString(to, "__dict__", deep) : -1;
    Py_XDECREF(copy);
    Py_XDECREF(deep);
    return status;
}

/* A copy that nothing records. */
static msa_tensor *copy_sparse_leaf(msa_tensor *t) {
    msa_auto msa_tensor *plain = msa_detach(t);
    return plain ? msa_clone(plain, -1) : NULL;
}

static PyObject *deepcopy(PyObject *self, PyObject *memo) {
    msa_tensor *t = of(self);
    if (!PyDict_Check(memo)) return PyErr_Format(PyExc_TypeError, "__deepcopy__() takes a dictionary");
    PyObject *key = PyLong_FromVoidPtr(self);
    if (!key) return NULL;
    PyObject *known = PyDict_GetItemWithError(memo, key), *result = NULL;
    if (known || PyErr_Occurred()) {
        Py_DECREF(key);
        return Py_XNewRef(known);
    }
    if (!msa_tensor_is_leaf(t)) {
        PyErr_SetString(PyExc_RuntimeError, "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment");
        goto done;
    }
    msa_tensor *copy = t->layout ? copy_sparse_leaf(t) : msa_clone_values(t);
    if (!copy) {
        msa_python_raise();
        goto done;
    }
    result = msa_python_wrap_as(Py_TYPE(self), copy);
    if (!result) goto done;
    if (t->requires_grad && msa_tensor_set_requires_grad(copy, true) != 0) {
        msa_python_raise();
        Py_CLEAR(result);
        goto done;
    }
    msa_tensor *grad = msa_tensor_grad(t);
    if (grad) {
        msa_auto msa_tensor *grad_copy = grad->layout ? copy_sparse_leaf(grad) : msa_clone_values(grad);
        if (!grad_copy || msa_tensor_set_grad(copy, grad_copy) != 0) {
            msa_python_raise();
            Py_CLEAR(result);
            goto done;
        }
    }
    if (PyDict_SetItem(memo, key, result) != 0 || copy_attributes(self, result, memo) != 0) Py_CLEAR(result);
done:
    Py_DECREF(key);
    return result;
}

/* torch._utils._rebuild_sparse_tensor(layout, (indices, values, size)), for CSR (crow_indices, col_indices, values, size): PyTorch's form. */
static PyObject *reduce_sparse(PyObject *self, msa_tensor *t) {
    const msa_sparse *s = msa_sparse_of(t);
    PyObject *indices = msa_python_wrap(msa_tensor_alias(s->indices)), *columns = s->columns ? msa_python_wrap(msa_tensor_alias(s->columns)) : NULL;
    PyObject *values = msa_python_wrap(msa_tensor_alias(s->values)), *module = PyImport_ImportModule("msadapter.pytorch._utils");
    PyObject *function = module ? PyObject_GetAttrString(module, "_rebuild_sparse_tensor") : NULL, *result = NULL;
    Py_XDECREF(module);
    if (indices && values && function && (columns || !s->columns))
        result = columns ? Py_BuildValue("O(N(OOON))", function, msa_python_layout(t->layout), indices, columns, values, msa_python_size(msa_sizes(t)))
                         : Py_BuildValue("O(N(OON))", function, msa_python_layout(t->layout), indices, values, msa_python_size(msa_sizes(t)));
    Py_XDECREF(indices);
    Py_XDECREF(columns);
    Py_XDECREF(values);
    Py_XDECREF(function);
    return result;
}

/* (bytes, dtype, sizes, requires_grad, class or None, attributes or None) */
static PyObject *reduce(PyObject *self, PyObject *protocol) {
    msa_tensor *t = of(self);
    if (!msa_tensor_is_leaf(t))
        return PyErr_Format(PyExc_RuntimeError, "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does "
                            "not support crossing process boundaries.  If you just want to transfer the data, call detach() on the "
                            "tensor before serializing (e.g., putting it on the queue).");
    if (t->layout) return reduce_sparse(self, t);
    msa_auto msa_tensor *plain = msa_contiguous_values(t);
    if (!plain) return msa_python_raise();
    const char *data = plain->numel ? msa_data(plain) : "";
    if (!data) return msa_python_raise();
    PyObject *bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)((size_t)plain->numel * msa_dtype_size((msa_dtype)plain->dtype)));
    PyObject *dict = ((python_tensor *)self)->dict;
    PyObject *cls = Py_TYPE(self) == msa_python_tensor_class ? Py_None : (PyObject *)Py_TYPE(self);
    return Py_BuildValue("N(NNNNOO)", msa_python_helper("_rebuild_tensor"), bytes, msa_python_dtype((msa_dtype)t->dtype),
                         msa_python_size(msa_sizes(t)), PyBool_FromLong(t->requires_grad), cls, dict && PyDict_GET_SIZE(dict) ? dict : Py_None);
}

static PyObject *rebuild_tensor(PyObject *module, PyObject *args) {
    Py_buffer bytes;
    PyObject *dtype_object, *sizes_object, *cls, *dict, *result = NULL;
    int requires_grad;
    if (!PyArg_ParseTuple(args, "y*OOpOO:_rebuild_tensor", &bytes, &dtype_object, &sizes_object, &requires_grad, &cls, &dict)) return NULL;
    int64_t sizes[MSA_MAX_DIMS];
    int ndim;
    msa_dtype dtype;
    PyTypeObject *type = cls == Py_None ? msa_python_tensor_class : (PyTypeObject *)cls;
    if (msa_python_as_dtype(dtype_object, &dtype) != 0) goto done;
    if (msa_python_as_ints(sizes_object, sizes, MSA_MAX_DIMS, &ndim) != 1 || !PyType_Check((PyObject *)type) ||
        !PyType_IsSubtype(type, &msa_python_tensor_type) || (dict != Py_None && !PyDict_Check(dict))) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "_rebuild_tensor(): malformed arguments");
        goto done;
    }
    msa_tensor *t = msa_tensor_new((msa_ints){sizes, ndim}, dtype);
    if (!t) {
        msa_python_raise();
        goto done;
    }
    if ((size_t)bytes.len != (size_t)t->numel * msa_dtype_size(dtype)) {
        PyErr_SetString(PyExc_ValueError, "_rebuild_tensor(): the data does not fit the sizes");
        msa_tensor_release(t);
        goto done;
    }
    if (bytes.len) memcpy(msa_data(t), bytes.buf, (size_t)bytes.len);
    result = msa_python_wrap_as(type, t);
    if (result && requires_grad && msa_tensor_set_requires_grad(t, true) != 0) {
        msa_python_raise();
        Py_CLEAR(result);
    }
    if (result && dict != Py_None && PyObject_SetAttrString(result, "__dict__", dict) != 0) Py_CLEAR(result);
done:
    PyBuffer_Release(&bytes);
    return result;
}

static PyMethodDef functions[] = {
    {"_rebuild_tensor", rebuild_tensor, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyMethodDef msa_python_copy_methods[] = {
    {"__deepcopy__", deepcopy, METH_O, NULL},
    {"__reduce_ex__", reduce, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_copies(PyObject *module) { return PyModule_AddFunctions(module, functions); }
