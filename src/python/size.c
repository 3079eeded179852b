/* torch.Size: a tuple of ints. */
#include "python/arguments.h"
#include "python/types.h"

PyObject *msa_python_size(msa_ints sizes) {
    PyObject *size = msa_python_size_type.tp_alloc(&msa_python_size_type, (Py_ssize_t)sizes.n);
    for (Py_ssize_t i = 0; size && i < (Py_ssize_t)sizes.n; i++) {
        PyObject *item = PyLong_FromLongLong(sizes.data[i]);
        if (!item) Py_CLEAR(size);
        else PyTuple_SET_ITEM(size, i, item);
    }
    return size;
}

static PyObject *size_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *size = PyTuple_Type.tp_new(type, args, keywords);
    for (Py_ssize_t i = 0; size && i < PyTuple_GET_SIZE(size); i++) {
        PyObject *item = PyTuple_GET_ITEM(size, i);
        if (PyLong_CheckExact(item)) continue;
        int64_t value;
        int status = msa_python_as_int(item, &value);
        PyObject *integer = status == 1 ? PyLong_FromLongLong(value) : NULL;
        if (status == 0)
            PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%.200s')", i, Py_TYPE(item)->tp_name);
        if (!integer) {
            Py_DECREF(size);
            return NULL;
        }
        PyTuple_SET_ITEM(size, i, integer);
        Py_DECREF(item);
    }
    return size;
}

static PyObject *as_size(PyObject *tuple) {
    if (!tuple || tuple == Py_NotImplemented || !PyTuple_Check(tuple)) return tuple;
    PyObject *size = PyObject_CallOneArg((PyObject *)&msa_python_size_type, tuple);
    Py_DECREF(tuple);
    return size;
}

static PyObject *size_repr(PyObject *self) {
    PyObject *list = PySequence_List(self), *text = list ? PyUnicode_FromFormat("torch.Size(%R)", list) : NULL;
    Py_XDECREF(list);
    return text;
}

static PyObject *size_concat(PyObject *a, PyObject *b) { return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }
static PyObject *size_repeat(PyObject *a, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n)); }
static PyObject *size_subscript(PyObject *self, PyObject *key) {
    PyObject *item = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    return PySlice_Check(key) ? as_size(item) : item;
}

static PyObject *size_numel(PyObject *self, PyObject *unused) {
    PyObject *product = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; product && i < PyTuple_GET_SIZE(self); i++)
        Py_SETREF(product, PyNumber_Multiply(product, PyTuple_GET_ITEM(self, i)));
    return product;
}

static PyObject *size_reduce(PyObject *self, PyObject *unused) {
    PyObject *tuple = PyTuple_GetSlice(self, 0, PyTuple_GET_SIZE(self));
    if (tuple && !PyTuple_CheckExact(tuple)) {
        PyObject *list = PySequence_List(tuple);
        Py_SETREF(tuple, list);
    }
    return tuple ? Py_BuildValue("N(N)", msa_python_helper("_make_size"), tuple) : NULL;
}

/* What pickles call: the class's own name says "torch", which need not be importable. */
static PyObject *make_size(PyObject *module, PyObject *tuple) { return PyObject_CallOneArg((PyObject *)&msa_python_size_type, tuple); }
static PyMethodDef functions[] = {{"_make_size", make_size, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static PySequenceMethods size_sequence = {.sq_concat = size_concat, .sq_repeat = size_repeat};
static PyMappingMethods size_mapping = {.mp_subscript = size_subscript};
static PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "The product of the sizes."},
    {"__reduce__", size_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject msa_python_size_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.Size",
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Size(iterable)\n\nThe sizes of a tensor's dimensions.",
    .tp_new = size_new,
    .tp_repr = size_repr,
    .tp_as_sequence = &size_sequence,
    .tp_as_mapping = &size_mapping,
    .tp_methods = size_methods,
};

int msa_python_add_sizes(PyObject *module) {
    msa_python_size_type.tp_base = &PyTuple_Type;
    if (PyType_Ready(&msa_python_size_type) != 0) return -1;
    size_mapping.mp_length = PyTuple_Type.tp_as_mapping->mp_length;
    size_sequence.sq_length = PyTuple_Type.tp_as_sequence->sq_length;
    size_sequence.sq_item = PyTuple_Type.tp_as_sequence->sq_item;
    size_sequence.sq_contains = PyTuple_Type.tp_as_sequence->sq_contains;
    if (PyModule_AddFunctions(module, functions) != 0) return -1;
    return PyModule_AddObjectRef(module, "Size", (PyObject *)&msa_python_size_type);
}
