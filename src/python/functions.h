/* Operators as Python callables. */
#ifndef MSA_PYTHON_FUNCTIONS_H
#define MSA_PYTHON_FUNCTIONS_H

#include "python/arguments.h"

/* The group of a function or method; NULL when the table has none of that name. */
const msa_op_group *msa_python_find_function(const char *name);
const msa_op_group *msa_python_find_method(const char *name);
PyObject *msa_python_operator(const msa_op_group *group, bool method); /* a new callable */
/* Call an operator of torch's own module by name, borrowed arguments. NotImplementedError when it is not there. */
PyObject *msa_python_call_operator(const char *name, PyObject *const *args, Py_ssize_t n);

#endif
