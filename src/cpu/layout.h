/* Images for kernels that want channels last: (N, C, spatial...) tensors read and made as (N, positions, C) in memory. */
#ifndef MSA_CPU_LAYOUT_H
#define MSA_CPU_LAYOUT_H

#include "base/memory.h"
#include "tensor/internal.h"

/* Memory that holds a tensor's values in some order; `owned` is a copy that had to be made, or NULL. */
typedef struct {
    const void *data;
    void *owned;
} msa_image;
static inline void msa_image_release(msa_image *i) { msa_data_free(i->owned); }
#define msa_auto_image __attribute__((cleanup(msa_image_release))) msa_image

/* t's values channels last: as they are where t is hidden, visibly channels last or alike in both orders; else a copy. */
int msa_image_channels_last(const msa_tensor *t, msa_image *image);

/* What a result of `sizes` is written to channels last: a hidden 4-D tensor, a visibly channels-last one (`visible`), or for
 * other ranks a buffer that msa_image_finish turns into a plain tensor. */
typedef struct {
    msa_tensor *result;
    void *data;  /* write here */
    void *owned; /* the buffer, or NULL when data is the result's */
} msa_image_out;
int msa_image_out_new(msa_ints sizes, msa_dtype dtype, bool visible, msa_image_out *out);
msa_tensor *msa_image_out_finish(msa_image_out *out); /* the result */
void msa_image_out_drop(msa_image_out *out);          /* on failure */

/* Visible strides are channels-last ones, and not contiguous ones as well. */
static inline bool msa_visibly_channels_last(const msa_tensor *t) { return !t->contiguous && msa_is_channels_last(t); }

#endif
