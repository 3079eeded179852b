/* What the files of the tensor type share. */
#ifndef MSA_PYTHON_TENSOR_H
#define MSA_PYTHON_TENSOR_H

#include "python/arguments.h"
#include "python/types.h"

static inline msa_tensor *msa_python_tensor_of(PyObject *self) { return ((python_tensor *)self)->tensor; }

/* A new object of `type` for the tensor, which must have none yet. Steals the reference. */
PyObject *msa_python_wrap_as(PyTypeObject *type, msa_tensor *owned);

extern PyNumberMethods msa_python_number_methods;
PyObject *msa_python_reflected_power(PyObject *self, PyObject *other);
extern PyMethodDef msa_python_tensor_methods[];     /* tensor_methods.c */
extern PyMethodDef msa_python_override_methods[];   /* override.c */
extern PyMethodDef msa_python_geometry_methods[];   /* tensor_geometry.c */
extern PyMethodDef msa_python_conversion_methods[]; /* tensor_to.c */
extern PyMethodDef msa_python_copy_methods[];       /* tensor_copy.c */
extern PyMethodDef msa_python_numpy_methods[];      /* numpy.c */
extern PyMethodDef msa_python_dlpack_methods[];     /* dlpack.c */
extern PyMethodDef msa_python_storage_methods[];    /* storage.c */
extern PyGetSetDef msa_python_tensor_getset[];      /* tensor_attributes.c */

PyObject *msa_python_compare(PyObject *a, PyObject *b, int operation);
PyObject *msa_python_iterate(PyObject *self);
PyObject *msa_python_legacy_new(PyTypeObject *type, PyObject *args, PyObject *keywords);
int msa_python_truth(PyObject *self);
Py_ssize_t msa_python_length(PyObject *self);
int msa_python_contains(PyObject *self, PyObject *element);

/* Values of Python objects: numbers, nested sequences, arrays, tensors. MSA_NO_DTYPE: the dtype is found. Always a copy. */
msa_tensor *msa_python_new_tensor(PyObject *data, msa_dtype dtype);
/* An array over numpy's memory (or any object with the buffer protocol), NULL with an exception. */
msa_tensor *msa_python_from_array(PyObject *array, bool writable_warning);
int msa_python_is_array(PyObject *object); /* numpy.ndarray */

int msa_python_add_overrides(PyObject *module);
int msa_python_add_numpy(PyObject *module);
int msa_python_add_dlpack(PyObject *module);
int msa_python_add_storage(PyObject *module);
int msa_python_add_legacy(PyObject *module);
int msa_python_add_copies(PyObject *module);

/* Storage objects. */
extern PyTypeObject msa_python_storage_type;
msa_tensor *msa_python_storage_values(PyObject *storage); /* a 1-D tensor over its elements, owned */
PyObject *msa_python_new_storage(msa_storage *owned, msa_dtype dtype); /* MSA_NO_DTYPE: untyped */
msa_storage *msa_python_storage_of(PyObject *object, msa_dtype *dtype); /* borrowed; NULL with TypeError */

#endif
