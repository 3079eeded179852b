/* Operations on single elements of any type, for indexing that cannot be a loop over runs. */
#ifndef MSA_CPU_ELEMENT_H
#define MSA_CPU_ELEMENT_H

#include "tensor/internal.h"

/* *a += *b and *a *= *b. */
void msa_element_add(msa_dtype dtype, void *a, const void *b);
void msa_element_multiply(msa_dtype dtype, void *a, const void *b);

/* memcpy, where the usual sizes of one element are worth no call. */
static inline void msa_copy_block(char *to, const char *from, int64_t bytes) {
    if (bytes == 4) memcpy(to, from, 4);
    else if (bytes == 8) memcpy(to, from, 8);
    else memcpy(to, from, (size_t)bytes);
}

/* Copy `count` elements between two geometries over the same sizes: from a to b, or, with `into_a`, from b to a (added up
 * with `accumulate`). */
void msa_element_walk(int ndim, const int64_t *sizes, int64_t count, void *a, const int64_t *a_strides, void *b,
                      const int64_t *b_strides, msa_dtype dtype, bool into_a, bool accumulate);

#endif
