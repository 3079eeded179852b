/* What the files of the extension share. */
#ifndef MSA_PYTHON_INTERNAL_H
#define MSA_PYTHON_INTERNAL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ops/internal.h"
#include "tensor/internal.h"

/* The Python object of a tensor. `_C.TensorBase`; `msadapter.pytorch.Tensor` is a Python subclass of it, registered by
 * _C.set_tensor_class so that results are instances of it. */
typedef struct {
    PyObject_HEAD
    msa_tensor *tensor;
    PyObject *dict; /* made on demand */
    PyObject *weak_references;
} python_tensor;

extern PyTypeObject msa_python_tensor_type;
extern PyTypeObject *msa_python_tensor_class; /* what new tensors are made as */

/* The Python object for a tensor: the one that exists already, or a new one. Steals the reference; NULL in gives NULL
 * out with the library's error turned into an exception. */
PyObject *msa_python_wrap(msa_tensor *owned);
/* Borrowed; NULL with TypeError when it is no tensor. */
msa_tensor *msa_python_unwrap(PyObject *object);
static inline int msa_python_is_tensor(PyObject *object) {
    return Py_TYPE(object) == msa_python_tensor_class || PyObject_TypeCheck(object, &msa_python_tensor_type);
}
void msa_python_drop(void *object); /* a reference that the engine held; from any thread */
/* NotImplementedError for a sparse tensor, where memory of its own is needed; -1. */
static inline int msa_python_check_strided(const char *op, const msa_tensor *t) { return t->layout ? msa_refuse_sparse(op) : 0; }
/* Turn the library's error into a Python exception; always NULL. */
PyObject *msa_python_raise(void);

/* Run kernels without the GIL only where they take longer than giving it up does. */
enum { MSA_PYTHON_GIL_NUMEL = 1 << 16 };

/* Numbers: bool, int, float, complex (numpy's scalars too). 0 and the value, or -1 with TypeError. */
int msa_python_scalar(PyObject *object, msa_scalar *value);
PyObject *msa_python_from_scalar(msa_scalar value);

/* dtype objects: `torch.float32`. */
extern PyTypeObject msa_python_dtype_type;
PyObject *msa_python_dtype(msa_dtype dtype); /* new reference */
int msa_python_as_dtype(PyObject *object, msa_dtype *dtype);
PyObject *msa_python_size(msa_ints sizes); /* torch.Size */
msa_generator *msa_python_as_generator(PyObject *object);

/* Each file adds its types and functions. */
int msa_python_add_types(PyObject *module);      /* dtype, device, Size, layout, memory_format, Generator, finfo, iinfo */
int msa_python_add_tensor(PyObject *module);     /* TensorBase */
int msa_python_add_functions(PyObject *module);  /* _ops, _nn, _linalg, ... from the descriptors */
int msa_python_add_creation(PyObject *module);   /* tensor, as_tensor, from_numpy, ... */
int msa_python_add_graph_hooks(PyObject *module); /* hooks on saved tensors, anomalies */
int msa_python_add_autograd(PyObject *module);   /* backward, grad, Function, hooks, grad modes */
int msa_python_add_autocast(PyObject *module);     /* the settings of mixed precision */
int msa_python_add_module_base(PyObject *module);
int msa_python_add_serialization(PyObject *module);
int msa_python_add_optim(PyObject *module);
int msa_python_add_profiler(PyObject *module);
int msa_python_add_parallel(PyObject *module); /* process groups */
int msa_python_add_text(PyObject *module); /* set_printoptions */

/* Tensor protocols kept in files of their own. */
PyObject *msa_python_get_item(PyObject *self, PyObject *key);
int msa_python_set_item(PyObject *self, PyObject *key, PyObject *value);
PyObject *msa_python_to_numpy(PyObject *self, PyObject *unused);
PyObject *msa_python_to_list(PyObject *self, PyObject *unused);
PyObject *msa_python_repr(PyObject *self);

#endif
