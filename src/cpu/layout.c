/* The helpers of layout.h. */
#include "cpu/layout.h"

#include "tensor/reorder.h"

static int64_t positions(msa_ints sizes) {
    int64_t p = 1;
    for (int64_t i = 2; i < sizes.n; i++) p *= sizes.data[i];
    return p;
}

int msa_image_channels_last(const msa_tensor *t, msa_image *image) {
    *image = (msa_image){NULL, NULL};
    if (msa_hidden_nhwc(t)) {
        image->data = t->storage->data;
        return 0;
    }
    const int64_t c = t->sizes[1], p = positions(msa_sizes(t));
    if ((t->contiguous && (c == 1 || p == 1)) || msa_visibly_channels_last(t)) {
        image->data = msa_data(t);
        return image->data ? 0 : -1;
    }
    msa_auto msa_tensor *plain = msa_contiguous_values((msa_tensor *)(uintptr_t)t);
    if (!plain) return -1;
    const size_t size = msa_dtype_size((msa_dtype)t->dtype);
    const void *from = msa_data(plain);
    image->owned = msa_data_alloc((size_t)t->numel * size);
    if (!from || !image->owned) return -1;
    if (c == 1 || p == 1) memcpy(image->owned, from, (size_t)t->numel * size);
    else msa_reorder_nchw_to_nhwc(image->owned, from, t->sizes[0], c, p, size);
    image->data = image->owned;
    return 0;
}

int msa_image_out_new(msa_ints sizes, msa_dtype dtype, bool visible, msa_image_out *out) {
    *out = (msa_image_out){NULL, NULL, NULL};
    const int64_t c = sizes.data[1], p = positions(sizes);
    if (visible) {
        int64_t strides[MSA_MAX_DIMS], step = 1;
        strides[1] = 1;
        step = c;
        for (int64_t i = sizes.n - 1; i >= 2; i--) {
            strides[i] = step;
            step *= sizes.data[i];
        }
        strides[0] = step;
        out->result = msa_tensor_new_strided(sizes, (msa_ints){strides, sizes.n}, dtype);
    } else if (sizes.n == 4) out->result = msa_tensor_new_hidden(sizes.data[0], c, sizes.data[2], sizes.data[3], dtype);
    else out->result = msa_tensor_new(sizes, dtype);
    if (!out->result) return -1;
    if (visible || sizes.n == 4 || c == 1 || p == 1) {
        out->data = out->result->storage->data;
        return 0;
    }
    out->data = out->owned = msa_data_alloc((size_t)out->result->numel * msa_dtype_size(dtype));
    if (out->data) return 0;
    msa_image_out_drop(out);
    return -1;
}

msa_tensor *msa_image_out_finish(msa_image_out *out) {
    msa_tensor *t = out->result;
    if (out->owned) {
        msa_reorder_nhwc_to_nchw(t->storage->data, out->owned, t->sizes[0], t->sizes[1], positions(msa_sizes(t)),
                                 msa_dtype_size((msa_dtype)t->dtype));
        msa_data_free(out->owned);
    }
    *out = (msa_image_out){NULL, NULL, NULL};
    return t;
}

void msa_image_out_drop(msa_image_out *out) {
    msa_data_free(out->owned);
    msa_tensor_release(out->result);
    *out = (msa_image_out){NULL, NULL, NULL};
}
