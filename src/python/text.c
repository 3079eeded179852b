/* The text form of tensors. */
#include "python/tensor.h"

PyObject *msa_python_repr(PyObject *self) {
    PyObject *values = msa_python_to_list(self, NULL), *dtype = msa_python_dtype((msa_dtype)msa_python_tensor_of(self)->dtype);
    PyObject *text = values && dtype ? PyUnicode_FromFormat("tensor(%R, dtype=%R)", values, dtype) : NULL;
    Py_XDECREF(values);
    Py_XDECREF(dtype);
    return text;
}
