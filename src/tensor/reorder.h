/* Moving between N,C,H,W and N,H,W,C: the transposition behind the hidden layout. */
#ifndef MSA_TENSOR_REORDER_H
#define MSA_TENSOR_REORDER_H

#include <stddef.h>
#include <stdint.h>

/* to is (N,C,P), from is (N,P,C); elements of `itemsize` bytes; no overlap. */
void msa_reorder_nhwc_to_nchw(void *to, const void *from, int64_t n, int64_t c, int64_t p, size_t itemsize);
/* to is (N,P,C), from is (N,C,P). */
void msa_reorder_nchw_to_nhwc(void *to, const void *from, int64_t n, int64_t c, int64_t p, size_t itemsize);

#endif
