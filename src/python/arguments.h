/* Arguments of operators: Python objects in, boxed values of a descriptor out. */
#ifndef MSA_PYTHON_ARGUMENTS_H
#define MSA_PYTHON_ARGUMENTS_H

#include "python/internal.h"

enum { MSA_MAX_PARAMS = 32, MSA_ARENA_WORDS = 96, MSA_MAX_TEMPORARIES = 8 };

/* Keyword names of an overload, made at the first call. */
typedef struct {
    const msa_op *op;
    uint8_t n_positional;  /* parameters that may be given by position */
    bool spreads;          /* the only positional parameter (after a method's self) is an int list: view(2, 3) */
    PyObject *names[MSA_MAX_PARAMS]; /* interned; "self" is called "input" */
    const char *const (*synonyms)[2]; /* the group's, or NULL */
} python_signature;

/* A filled call. `op` says which overload was taken. Values borrow from the Python arguments and from this struct, which
 * msa_python_arguments_clear gives back. Not initialised by the caller. */
typedef struct {
    const msa_op *op;
    PyObject *out; /* what came as out=, borrowed; NULL when nothing or None did */
    int64_t largest; /* elements of the largest tensor; -1 when there is none */
    int n_temporaries, n_blocks, used;
    msa_tensor *temporaries[MSA_MAX_TEMPORARIES]; /* numbers given for tensors */
    void *blocks[MSA_MAX_TEMPORARIES];            /* lists that the arena has no room for */
    msa_value values[MSA_MAX_PARAMS];
    int64_t arena[MSA_ARENA_WORDS];
} python_arguments;

/* Everything of a signature but the names. */
void msa_python_shape(const msa_op *op, bool method, python_signature *signature);
/* Prepare the overloads of a group; -1 with an exception. */
int msa_python_signatures(const msa_op_group *group, bool method, python_signature **signatures);
/* Find the first overload that takes the arguments: 0, or -1 with an exception. Methods get self as args[0]. */
int msa_python_parse(const msa_op_group *group, const python_signature *signatures, bool method, PyObject *const *args,
                     Py_ssize_t n, PyObject *keywords, python_arguments *parsed);
void msa_python_arguments_clear(python_arguments *parsed);

/* Conversions of single values: 1, or 0 when the object is of the wrong type, or -1 with an exception. */
int msa_python_as_scalar(PyObject *object, msa_scalar *value);
int msa_python_as_int(PyObject *object, int64_t *value);
int msa_python_as_double(PyObject *object, double *value);
/* A list or tuple of at most `limit` ints; *n is their number. */
int msa_python_as_ints(PyObject *object, int64_t *values, int limit, int *n);
int msa_python_is_numpy_scalar(PyObject *object);
/* A 0-dim tensor that gives way in type promotion. */
msa_tensor *msa_python_number(msa_scalar value);

#endif
