/* What the engine asks of oneDNN. onednn.c is the only file that includes its headers. */
#ifndef MSA_CPU_ONEDNN_H
#define MSA_CPU_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

#include "tensor/internal.h"

/* c = alpha * op(a) @ op(b) + beta * c, row-major, op(a) (m, k), op(b) (k, n); ta and tb are 'N' or 'T'. */
int msa_onednn_sgemm(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                     const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* A convolution, always as three spatial dimensions (leading ones are 1 where there are fewer). Sizes are those of the
 * ordinary direction, for transposed convolutions too: `in` is what the window slides over. */
typedef struct {
    int64_t n, ci, co, groups;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} msa_conv;

/* float32, channels last on both sides: src is (n, in..., ci), dst (n, out..., co); weight is (co, ci / groups, kernel...), contiguous.
 * `weight` is the tensor that owns it, for the cache of reordered weights; bias may be NULL. 1 when oneDNN has no fast
 * implementation: the caller then computes it otherwise. 0 done, -1 error. */
int msa_onednn_conv_forward(const msa_conv *c, const float *src, const msa_tensor *weight, const float *bias, float *dst);
int msa_onednn_conv_backward_data(const msa_conv *c, const float *diff_dst, const msa_tensor *weight, float *diff_src);
/* diff_weight comes out contiguous; diff_bias may be NULL. */
int msa_onednn_conv_backward_weights(const msa_conv *c, const float *src, const float *diff_dst, float *diff_weight,
                                     float *diff_bias);

#endif
