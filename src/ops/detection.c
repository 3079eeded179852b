/* Operators of detection that are made of others: suppression by score, and deformable convolution as a product with its columns. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

msa_tensor *nms_values(msa_tensor *boxes, msa_tensor *scores, double iou_threshold) {
    const msa_dtype type = (msa_dtype)boxes->dtype;
    if (boxes->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "boxes should be a 2d tensor, got %dD", boxes->ndim);
    if (boxes->sizes[1] != 4) return msa_fail_null(MSA_RUNTIME_ERROR, "boxes should have 4 elements in dimension 1, got %lld", (long long)boxes->sizes[1]);
    if (scores->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "scores should be a 1d tensor, got %dD", scores->ndim);
    if (boxes->sizes[0] != scores->sizes[0])
        return msa_fail_null(MSA_RUNTIME_ERROR, "boxes and scores should have same number of elements in dimension 0, got %lld and %lld", (long long)boxes->sizes[0],
                             (long long)scores->sizes[0]);
    if (type != MSA_FLOAT32 && type != MSA_FLOAT64) return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"nms_kernel\" not implemented for '%s'", msa_dtype_type_name(type));
    if (scores->dtype != boxes->dtype) return msa_fail_null(MSA_RUNTIME_ERROR, "dets should have the same type as scores");
    msa_auto msa_tensor *order = msa_argsort_stable(scores, true, 0, true), *by_score = msa_index_select(boxes, 0, order), *values = msa_detach(by_score);
    return msa_nms_kept(values, order, iou_threshold);
}

/* weight is (out, in / groups, high, wide). */
msa_tensor *deform_conv2d_values(msa_tensor *input, msa_tensor *offset, msa_tensor *weight, msa_tensor *bias, msa_ints stride, msa_ints padding,
                                 msa_ints dilation, msa_tensor *mask) {
    if (input->ndim != 4 || weight->ndim != 4) return msa_fail_null(MSA_RUNTIME_ERROR, "deform_conv2d: input and weight must have 4 dimensions");
    const int64_t n = input->sizes[0], in = weight->sizes[1], out = weight->sizes[0], high = weight->sizes[2], wide = weight->sizes[3];
    const int64_t groups = in > 0 ? input->sizes[1] / in : 0;
    if (groups < 1 || in * groups != input->sizes[1] || out % groups != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "deform_conv2d: a weight of size %s does not fit %lld channels", msa_sizes_text(msa_sizes(weight)),
                             (long long)input->sizes[1]);
    if (weight->dtype != input->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "expected scalar type %s but found %s", msa_dtype_type_name((msa_dtype)input->dtype),
                             msa_dtype_type_name((msa_dtype)weight->dtype));
    msa_auto msa_tensor *columns = msa_deform_columns(input, offset, mask, MSA_INTS(high, wide), stride, padding, dilation, groups);
    if (!columns) return NULL;
    msa_auto msa_tensor *taps_first = msa_permute(weight, MSA_INTS(0, 2, 3, 1)), *rows = msa_reshape(taps_first, MSA_INTS(groups, out / groups, high * wide * in));
    msa_auto msa_tensor *turned = msa_permute(rows, MSA_INTS(0, 2, 1)), *product = msa_bmm(columns, turned); /* (groups, N * places, out / groups) */
    const int64_t oh = offset->sizes[2], ow = offset->sizes[3];
    msa_auto msa_tensor *split = msa_reshape(product, MSA_INTS(groups, n, oh, ow, out / groups)), *moved = msa_permute(split, MSA_INTS(1, 0, 4, 2, 3));
    msa_auto msa_tensor *image = msa_reshape(moved, MSA_INTS(n, out, oh, ow));
    if (!bias) return msa_contiguous(image, -1);
    msa_auto msa_tensor *spread = msa_reshape(bias, MSA_INTS(1, out, 1, 1)), *plain = msa_contiguous(image, -1);
    return msa_add(plain, spread, msa_int(1));
}
