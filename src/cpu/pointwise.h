/* The driver of pointwise operators.
 *
 * A loop works on contiguous runs of one computing type; everything else is the driver's: broadcasting, strides, conversion
 * (each run of a strided or differently typed operand is gathered into a small buffer first), threads, the hidden
 * layout (its physical strides are as good as any), in-place and out= targets. The loops are generated from the
 * table, for three instruction sets; the best one is chosen when the library is loaded. */
#ifndef MSA_CPU_POINTWISE_H
#define MSA_CPU_POINTWISE_H

#include "tensor/internal.h"

enum { MSA_POINTWISE_INPUTS = 5 };

/* out[i] = f(in[0][i], in[1][i], ...) for i < n; `params` are the operator's numbers in order. */
typedef void (*msa_pointwise_loop)(int64_t n, void *restrict out, const void *const *in, const msa_scalar *params);

typedef enum { MSA_C_BOOL, MSA_C_INT64, MSA_C_FLOAT32, MSA_C_FLOAT64, MSA_C_COMPLEX64, MSA_C_COMPLEX128, MSA_COMPUTE_TYPES } msa_compute;

typedef enum {
    MSA_PROMOTE_DEFAULT,
    MSA_PROMOTE_FLOAT,
    MSA_PROMOTE_COMPARE,
    MSA_PROMOTE_BOOL_FLOAT,
    MSA_PROMOTE_REAL,
    MSA_PROMOTE_REAL_FLOAT,
    MSA_PROMOTE_FIRST,
} msa_promotion;

/* What an input is read as: the computing type, or a fixed one. */
typedef enum { MSA_IN_T, MSA_IN_BOOL, MSA_IN_INT64, MSA_IN_REAL } msa_input_type;

typedef struct {
    const char *name;
    uint8_t n_inputs;
    uint8_t promotion;
    uint8_t inputs[MSA_POINTWISE_INPUTS]; /* msa_input_type */
    const char *no_bool;                  /* message that refuses a bool result type, or NULL */
    msa_pointwise_loop loops[MSA_COMPUTE_TYPES]; /* NULL: not implemented for that type */
} msa_pointwise_row;

/* The generated rows, chosen for this processor; indexed by MSA_POINTWISE_<OP>. */
extern const msa_pointwise_row *msa_pointwise_rows;

/* `dtype_hints` are extra 0-dim operands that count for the result type only (Scalar parameters): may be empty.
 * Without `target` a new tensor is returned. With one it is written (broadcast shape must be its shape) and a new
 * reference to it is returned. */
msa_tensor *msa_pointwise_run(const msa_pointwise_row *row, msa_tensor *const *inputs, const msa_scalar *params,
                              const msa_scalar *dtype_hints, int n_hints, msa_tensor *target);
/* out=: resizes `target` first when its shape differs. */
msa_tensor *msa_pointwise_out(const msa_pointwise_row *row, msa_tensor *const *inputs, const msa_scalar *params,
                              const msa_scalar *dtype_hints, int n_hints, msa_tensor *target);

/* The result type of a row's operands. */
msa_dtype msa_pointwise_result_type(const msa_pointwise_row *row, msa_tensor *const *inputs,
                                    const msa_scalar *dtype_hints, int n_hints, msa_dtype *computing);

#endif
