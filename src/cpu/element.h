/* Operations on single elements of any type, for indexing that cannot be a loop over runs. */
#ifndef MSA_CPU_ELEMENT_H
#define MSA_CPU_ELEMENT_H

#include "tensor/internal.h"

/* *a += *b and *a *= *b. */
void msa_element_add(msa_dtype dtype, void *a, const void *b);
void msa_element_multiply(msa_dtype dtype, void *a, const void *b);

/* Copy `count` elements between two geometries over the same sizes: from a to b, or, with `into_a`, from b to a (added up
 * with `accumulate`). */
void msa_element_walk(int ndim, const int64_t *sizes, int64_t count, void *a, const int64_t *a_strides, void *b,
                      const int64_t *b_strides, msa_dtype dtype, bool into_a, bool accumulate);

#endif
