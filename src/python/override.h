/* Subclasses that override operators: __torch_function__. */
#ifndef MSA_PYTHON_OVERRIDE_H
#define MSA_PYTHON_OVERRIDE_H

#include "python/internal.h"

/* What an object's type does about operators. */
typedef enum {
    MSA_PLAIN,     /* nothing: Tensor itself, Parameter, objects without __torch_function__ */
    MSA_PRESERVED, /* a subclass with Tensor's own __torch_function__: results are of the subclass */
    MSA_OVERRIDDEN /* a __torch_function__ of its own is called */
} msa_override;

msa_override msa_python_override_slow(PyTypeObject *type);
static inline msa_override msa_python_override_of(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    if (__builtin_expect(type == msa_python_tensor_class || type == &PyFloat_Type || type == &PyLong_Type, 1)) return MSA_PLAIN;
    return msa_python_override_slow(type);
}

/* The strongest of all arguments, lists gone through. *type: whose (borrowed), for MSA_PRESERVED. */
msa_override msa_python_override_among(PyObject *const *args, Py_ssize_t n, PyTypeObject **type);
/* Call the __torch_function__ of the arguments for `callable`. */
PyObject *msa_python_call_override(PyObject *callable, const char *name, PyObject *const *args, Py_ssize_t n, PyObject *keywords);

/* Results are made as this class; borrowed. Set only around wrapping, never while Python code or kernels run. */
extern PyTypeObject *msa_python_result_class;
/* Wrap a result of `self`: of its class where that is preserved. */
PyObject *msa_python_wrap_like(PyObject *self, msa_tensor *owned);

#endif
