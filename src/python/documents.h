/* Conversions between documents of src/io and Python objects. */
#ifndef MSA_PYTHON_DOCUMENTS_H
#define MSA_PYTHON_DOCUMENTS_H

#include "io/pth.h"
#include "python/tensor.h"

/* The Python object of the document's root; objects that appear more than once become one object. New reference. */
PyObject *msa_python_build_document(const msa_document *document, PyTypeObject *parameter_class);
/* The document of an object, or NULL: with an exception, or without where only Python's pickle can save it. */
msa_document *msa_python_take_document(PyObject *object, PyTypeObject *parameter_class);

#endif
