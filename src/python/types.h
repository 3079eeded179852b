/* dtype, device, layout, memory_format and Generator objects, as arguments. */
#ifndef MSA_PYTHON_TYPES_H
#define MSA_PYTHON_TYPES_H

#include "python/internal.h"

/* memory_format codes of the operator table. */
enum { MSA_CONTIGUOUS_FORMAT, MSA_PRESERVE_FORMAT, MSA_CHANNELS_LAST, MSA_CHANNELS_LAST_3D };

typedef struct {
    PyObject_HEAD
    int kind;  /* index into the list of device types */
    int index; /* -1 for none */
} python_device;

extern PyTypeObject msa_python_device_type, msa_python_size_type, msa_python_layout_type, msa_python_memory_format_type,
    msa_python_generator_type;

/* 1, or 0 when the object is of another type, or -1 with an exception. */
int msa_python_match_dtype(PyObject *object, msa_dtype *dtype); /* Python's float, int, bool and complex too */
int msa_python_match_layout(PyObject *object, int *layout);
int msa_python_match_device(PyObject *object, int *device); /* devices of others mean the CPU, with one warning */
int msa_python_match_memory_format(PyObject *object, int *format);
int msa_python_match_generator(PyObject *object, msa_generator **generator);

PyObject *msa_python_helper(const char *name);   /* a function of _C, for pickles; new reference */
PyObject *msa_python_device(int kind, int index); /* new reference */
PyObject *msa_python_layout(int layout);           /* of an msa_layout, new reference */
PyObject *msa_python_strided(void);               /* torch.strided, new reference */
int msa_python_add_devices(PyObject *module);
int msa_python_add_sizes(PyObject *module);
int msa_python_add_generators(PyObject *module);
int msa_python_add_type_infos(PyObject *module);

#endif
