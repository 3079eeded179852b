/* What max and average pooling share: the geometry of windows over up to three dimensions. */
#ifndef MSA_CPU_POOLING_H
#define MSA_CPU_POOLING_H

#include "tensor/internal.h"

typedef struct {
    int spatial;
    int64_t n, c;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3]; /* leading dimensions are 1 where there are fewer */
} msa_pool;

/* Of a (N, C, spatial...) input; lists have one entry for each spatial dimension. Checks everything but the batch. */
int msa_pool_plan(const char *op, msa_ints sizes, msa_ints kernel, msa_ints stride, msa_ints padding, msa_ints dilation,
                  bool ceil_mode, msa_pool *p);
/* (N, C, out...) */
void msa_pool_out_sizes(const msa_pool *p, int64_t *sizes);
static inline int64_t msa_volume(const int64_t *v) { return v[0] * v[1] * v[2]; }

#endif
