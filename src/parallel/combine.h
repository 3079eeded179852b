/* Element-wise reduction of two buffers, for collectives. */
#ifndef MSA_PARALLEL_COMBINE_H
#define MSA_PARALLEL_COMBINE_H

#include <stdbool.h>
#include <stdint.h>

#include "msadapter/dtype.h"

typedef enum { MSA_SUM, MSA_PRODUCT, MSA_MIN, MSA_MAX, MSA_BAND, MSA_BOR, MSA_BXOR, MSA_REDUCE_OPS } msa_reduce_op;

/* Bit operations need integers or bools; complex numbers can only be added. */
bool msa_can_combine(msa_reduce_op op, msa_dtype dtype);
/* a[i] = a[i] op b[i] for n elements. The sum of bools is "or", their product "and". Half types compute in float32. */
void msa_combine(msa_reduce_op op, msa_dtype dtype, void *a, const void *b, int64_t n);

#endif
