/* Descriptors: what the generated tables say about operators, and boxed calls through them. */
#ifndef MSA_OPS_INTERNAL_H
#define MSA_OPS_INTERNAL_H

#include "msadapter/tensor.h"

#ifndef MSA_DOUBLES_DEFINED
#define MSA_DOUBLES_DEFINED
typedef struct {
    const double *data;
    int64_t n;
} msa_doubles;
#endif

/* Parameter types of the table. An optional one is the type with MSA_OPTIONAL in `flags`. */
typedef enum {
    MSA_P_TENSOR,
    MSA_P_TENSORS, /* Tensor[]; entries may be None with MSA_OPTIONAL_ITEMS */
    MSA_P_SCALAR,
    MSA_P_INT,
    MSA_P_INTS,
    MSA_P_DOUBLE,
    MSA_P_DOUBLES,
    MSA_P_BOOL,
    MSA_P_DTYPE,
    MSA_P_STR,
    MSA_P_GENERATOR,
    MSA_P_LAYOUT,
    MSA_P_DEVICE,
    MSA_P_MEMORY_FORMAT,
} msa_param_type;

enum { MSA_OPTIONAL = 1, MSA_OPTIONAL_ITEMS = 2, MSA_KEYWORD_ONLY = 4, MSA_HAS_DEFAULT = 8, MSA_TAKES_NUMBER = 16 /* a Tensor that may be given as a number */ };

/* One argument or result, boxed; the parameter's type says which member counts. */
typedef union {
    msa_tensor *tensor;
    msa_tensors tensors;
    msa_scalar scalar;
    msa_opt_scalar opt_scalar;
    int64_t i;
    msa_opt_int opt_int; /* int? and bool? */
    msa_ints ints;
    double d;
    msa_opt_double opt_double;
    msa_doubles doubles;
    bool b;
    msa_dtype dtype;
    const char *str;
    msa_generator *generator;
    int code; /* layout, device, memory format; -1 for None */
    msa_list *list;
} msa_value;

typedef struct {
    const char *name; /* as in the table: "self", "other" */
    uint8_t type;     /* msa_param_type */
    uint8_t flags;
    uint8_t list_size; /* int[2]: 2, so that one int may stand for it; 0: any */
    msa_value fallback; /* the default, with MSA_HAS_DEFAULT */
} msa_param;

typedef enum { MSA_R_NONE, MSA_R_TENSOR, MSA_R_TENSORS /* several */, MSA_R_LIST, MSA_R_SCALAR } msa_result_kind;

typedef struct msa_op {
    const char *name;   /* Python's: "add", "add_" */
    const char *schema; /* "(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)", for messages */
    const msa_param *params;
    uint8_t n_params;
    uint8_t result; /* msa_result_kind */
    uint8_t n_results;
    bool inplace;                     /* the result is self */
    const char *const *result_names;  /* for torch.return_types; NULL: a plain tuple */
    /* Call with all n_params arguments filled in. Results are owned by the caller. 0 or -1. For in-place operators
     * results[0].tensor is a new reference to self. */
    int (*call)(const msa_value *args, msa_value *results);
    /* With out=: as many tensors as there are results; NULL where the operator has none. */
    int (*call_out)(const msa_value *args, msa_tensor *const *out);
} msa_op;

/* A Python name and its overloads, in the order in which they are tried. */
typedef struct {
    const char *module; /* "" for torch's own, "nn", "linalg", "special", "fft" */
    const char *name;
    const msa_op *const *overloads;
    int n;
    const char *documented;          /* as PyTorch documents it, "(value, *, rounding_mode=None)", where that differs; NULL elsewhere */
    const char *const (*synonyms)[2]; /* {documented name of a parameter, the rows' name}, ending with {NULL}; NULL: none */
} msa_op_group;

extern const msa_op_group msa_function_groups[]; /* ends with name == NULL */
extern const msa_op_group msa_method_groups[];   /* Tensor methods: `self` is the first parameter */

#endif
