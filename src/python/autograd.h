/* What autograd.c and function.c share, and the tables that tensor.c merges into the tensor type. */
#ifndef MSA_PYTHON_AUTOGRAD_H
#define MSA_PYTHON_AUTOGRAD_H

#include "python/internal.h"

#include "autograd/internal.h"

extern PyGetSetDef msa_python_autograd_getset[];
extern PyMethodDef msa_python_autograd_methods[];

/* The tensors of a Python sequence, borrowed from it. */
typedef struct {
    PyObject *fast;
    msa_tensor **data;
    msa_tensors list;
} tensor_items;
int msa_python_tensors(PyObject *object, const char *what, bool none_allowed, tensor_items *items);
void msa_python_tensors_clear(tensor_items *items);

PyObject *msa_python_node(msa_node *node); /* its Python object, a new reference */
PyObject *msa_python_context(msa_node *node); /* of an autograd.Function, borrowed; NULL for other nodes */
PyObject *msa_python_next_functions(msa_node *node);
PyObject *msa_python_add_node_hook(msa_node *node, PyObject *callable, bool before);
int msa_python_add_function_type(PyObject *module);

#endif
