/* Pooling of regions of interest: aligned samples (He et al., 2017, Mask R-CNN), largest values (Girshick, 2015, Fast R-CNN) and
 * their position-sensitive kinds (Li et al., 2017, Light-Head R-CNN; Dai et al., 2016, R-FCN), with gradients.
 *
 * input is (N, C, H, W), rois (K, 5) of the same type: image, x1, y1, x2, y2; the result (K, C, bins high, bins wide), for the
 * position-sensitive kinds with C / (bins high * bins wide) channels. */
#include <float.h>
#include <math.h>

#include "base/parallel.h"
#include "cpu/layout.h"
#include "cpu/vector.h"
#include "ops/kernels.h"

typedef struct {
    int64_t images, channels, height, width; /* of the input */
    int64_t count, bins_high, bins_wide;     /* regions, and what each becomes */
    int64_t sampling_ratio;
    double scale;
    bool shift; /* by half an element */
    int threads;
} msa_regions;

#define T float
#define N(name) f32_##name
#include "cpu/regions_loops.h"
#undef T
#undef N
#define T double
#define N(name) f64_##name
#include "cpu/regions_loops.h"

/* ---- arguments --------------------------------------------------------------------------------------------------------- */

static msa_dtype working_type(msa_dtype d) { return d == MSA_FLOAT64 ? d : MSA_FLOAT32; }

/* Checks everything; *typed are the regions, contiguous and of the working type, none of them naming an image that isn't there. */
static int plan_regions(const char *op, msa_ints input, msa_dtype dtype, msa_tensor *rois, double scale, int64_t high, int64_t wide,
                        bool position_sensitive, msa_regions *r, msa_tensor **typed) {
    if (rois->ndim != 2 || rois->sizes[1] != 5) return msa_fail(MSA_RUNTIME_ERROR, "rois must have shape as Tensor[K, 5]");
    if (dtype != (msa_dtype)rois->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type torch.%sTensor"
                        " does not equal torch.%sTensor (while checking arguments for %s_forward_kernel)", msa_dtype_type_name(dtype),
                        msa_dtype_type_name((msa_dtype)rois->dtype), op);
    if (!msa_is_floating(dtype) || dtype == MSA_BFLOAT16)
        return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s_forward_kernel\" not implemented for '%s'", op, msa_dtype_type_name(dtype));
    if (input.n != 4) return msa_fail(MSA_INDEX_ERROR, "%s: expected an input of 4 dimensions (N, C, H, W), but got size %s", op, msa_sizes_text(input));
    if (high < 0 || wide < 0 || high > INT32_MAX || wide > INT32_MAX)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: the output size (%lld, %lld) is out of range", op, (long long)high, (long long)wide);
    if (input.data[2] * input.data[3] > INT32_MAX) return msa_fail(MSA_RUNTIME_ERROR, "%s: the input is too large", op);
    if (position_sensitive && (high * wide == 0 || input.data[1] % (high * wide) != 0))
        return msa_fail(MSA_RUNTIME_ERROR, "input channels must be a multiple of pooling height * pooling width");
    *r = (msa_regions){.images = input.data[0], .channels = input.data[1], .height = input.data[2], .width = input.data[3], .count = rois->sizes[0],
                       .bins_high = high, .bins_wide = wide, .scale = scale};
    if (r->count > 0 && r->height * r->width == 0) return msa_fail(MSA_RUNTIME_ERROR, "%s: the input %s has no elements to take", op, msa_sizes_text(input));
    msa_auto msa_tensor *same = msa_cast_values(rois, working_type(dtype)), *plain = same ? msa_contiguous_values(same) : NULL;
    const void *from = plain ? msa_data(plain) : NULL;
    if (!plain || (!from && plain->numel)) return -1;
    for (int64_t k = 0; k < r->count; k++) {
        const double image = plain->dtype == MSA_FLOAT64 ? ((const double *)from)[5 * k] : (double)((const float *)from)[5 * k];
        if (!(image > -1 && image < (double)r->images))
            return msa_fail(MSA_INDEX_ERROR, "%s: region %lld is of image %g, but there are %lld images", op, (long long)k, image, (long long)r->images);
    }
    r->threads = 1;
    *typed = msa_take(plain);
    return 0;
}

/* Threads for the regions, `samples` being looked at in each bin of each channel. */
static int threads_for(const msa_regions *r, int64_t samples) {
    return msa_threads_for(r->count * r->bins_high * r->bins_wide * r->channels * samples, MSA_GRAIN);
}

/* An owned tensor in the working type; NULL on failure. */
static msa_tensor *working(msa_tensor *t) { return msa_cast_values(t, working_type((msa_dtype)t->dtype)); }

/* A cleared gradient of the input, channels last. */
static int cleared(msa_ints sizes, msa_dtype type, msa_image_out *out) {
    if (msa_image_out_new(sizes, type, false, out) != 0) return -1;
    if (out->result->numel) memset(out->data, 0, (size_t)out->result->numel * msa_dtype_size(type));
    return 0;
}

static msa_tensor *finished(msa_image_out *out, msa_dtype dtype) {
    msa_auto msa_tensor *t = msa_image_out_finish(out);
    return msa_cast_values(t, dtype);
}

static int check_grad(const char *op, msa_tensor *grad, msa_tensor *rois, msa_ints sizes, int64_t channels) {
    if (grad->ndim == 4 && sizes.n == 4 && rois->ndim == 2 && grad->sizes[0] == rois->sizes[0] && grad->sizes[1] == channels) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "%s_backward: a gradient of size %s does not fit", op, msa_sizes_text(msa_sizes(grad)));
}

/* ---- roi_align ----------------------------------------------------------------------------------------------------------- */

msa_tensor *roi_align_cpu(msa_tensor *input, msa_tensor *rois, double spatial_scale, int64_t pooled_height, int64_t pooled_width,
                          int64_t sampling_ratio, bool aligned) {
    msa_regions r;
    msa_auto msa_tensor *regions = NULL;
    const msa_dtype dtype = (msa_dtype)input->dtype;
    if (plan_regions("roi_align", msa_sizes(input), dtype, rois, spatial_scale, pooled_height, pooled_width, false, &r, &regions) != 0) return NULL;
    r.sampling_ratio = sampling_ratio;
    r.shift = aligned;
    r.threads = threads_for(&r, 8);
    msa_auto msa_tensor *x = working(input);
    msa_auto_image image = {NULL, NULL};
    msa_image_out out;
    const bool any = r.count * r.channels * pooled_height * pooled_width > 0;
    if (!x || (any && msa_image_channels_last(x, &image) != 0)) return NULL;
    if (msa_image_out_new(MSA_INTS(r.count, r.channels, pooled_height, pooled_width), (msa_dtype)x->dtype, false, &out) != 0) return NULL;
    if (any && x->dtype == MSA_FLOAT64) f64_align(&r, image.data, msa_data(regions), out.data);
    else if (any) f32_align(&r, image.data, msa_data(regions), out.data);
    return finished(&out, dtype);
}

msa_tensor *roi_align_backward_cpu(msa_tensor *grad, msa_tensor *rois, double spatial_scale, int64_t sampling_ratio, bool aligned, msa_ints sizes) {
    msa_regions r;
    msa_auto msa_tensor *regions = NULL;
    const msa_dtype dtype = (msa_dtype)grad->dtype;
    if (check_grad("roi_align", grad, rois, sizes, sizes.n == 4 ? sizes.data[1] : 0) != 0 ||
        plan_regions("roi_align", sizes, dtype, rois, spatial_scale, grad->sizes[2], grad->sizes[3], false, &r, &regions) != 0)
        return NULL;
    r.sampling_ratio = sampling_ratio;
    r.shift = aligned;
    r.threads = r.channels >= 32 ? threads_for(&r, 8) : 1;
    msa_auto msa_tensor *g = working(grad);
    msa_auto_image image = {NULL, NULL};
    msa_image_out out;
    if (!g || (g->numel && msa_image_channels_last(g, &image) != 0) || cleared(sizes, (msa_dtype)g->dtype, &out) != 0) return NULL;
    if (g->numel && g->dtype == MSA_FLOAT64) f64_align_back(&r, image.data, msa_data(regions), out.data);
    else if (g->numel) f32_align_back(&r, image.data, msa_data(regions), out.data);
    return finished(&out, dtype);
}

/* ---- roi_pool ------------------------------------------------------------------------------------------------------------ */

int roi_pool_cpu(msa_tensor *input, msa_tensor *rois, double spatial_scale, int64_t pooled_height, int64_t pooled_width, msa_tensor **results) {
    msa_regions r;
    msa_auto msa_tensor *regions = NULL;
    const msa_dtype dtype = (msa_dtype)input->dtype;
    if (plan_regions("roi_pool", msa_sizes(input), dtype, rois, spatial_scale, pooled_height, pooled_width, false, &r, &regions) != 0) return -1;
    r.threads = threads_for(&r, 8);
    msa_auto msa_tensor *x = working(input);
    msa_auto_image image = {NULL, NULL};
    msa_image_out out, places;
    const bool any = r.count * r.channels * pooled_height * pooled_width > 0;
    const msa_ints sizes = MSA_INTS(r.count, r.channels, pooled_height, pooled_width);
    if (!x || (any && msa_image_channels_last(x, &image) != 0)) return -1;
    if (msa_image_out_new(sizes, (msa_dtype)x->dtype, false, &out) != 0) return -1;
    if (msa_image_out_new(sizes, MSA_INT32, false, &places) != 0) {
        msa_image_out_drop(&out);
        return -1;
    }
    if (any && x->dtype == MSA_FLOAT64) f64_pool(&r, image.data, msa_data(regions), out.data, places.data);
    else if (any) f32_pool(&r, image.data, msa_data(regions), out.data, places.data);
    results[1] = msa_image_out_finish(&places);
    results[0] = finished(&out, dtype);
    return results[0] ? 0 : -1;
}

/* What backward and its own gradient have in common; places come from roi_pool, for as many channels. */
static int plan_places(msa_tensor *places, msa_tensor *rois, msa_ints sizes, msa_dtype dtype, msa_regions *r, msa_tensor **regions, msa_image *at) {
    if (check_grad("roi_pool", places, rois, sizes, sizes.n == 4 ? sizes.data[1] : 0) != 0 ||
        plan_regions("roi_pool", sizes, dtype, rois, 1, places->sizes[2], places->sizes[3], false, r, regions) != 0)
        return -1;
    if (places->dtype != MSA_INT32) return msa_fail(MSA_RUNTIME_ERROR, "roi_pool_backward: places of another type");
    if (!places->numel) return 0;
    if (msa_image_channels_last(places, at) != 0) return -1;
    const int32_t *place = at->data;
    for (int64_t i = 0; i < places->numel; i++)
        if (place[i] < -1 || place[i] >= r->height * r->width) return msa_fail(MSA_INDEX_ERROR, "roi_pool_backward: a place lies outside the input");
    return 0;
}

msa_tensor *roi_pool_backward_cpu(msa_tensor *grad, msa_tensor *places, msa_tensor *rois, msa_ints sizes) {
    msa_regions r;
    msa_auto msa_tensor *regions = NULL;
    msa_auto_image image = {NULL, NULL}, at = {NULL, NULL};
    msa_image_out out;
    if (plan_places(places, rois, sizes, (msa_dtype)grad->dtype, &r, &regions, &at) != 0) return NULL;
    if (!msa_same_sizes(grad, places)) return msa_fail_null(MSA_RUNTIME_ERROR, "roi_pool_backward: a gradient of another size");
    msa_auto msa_tensor *g = working(grad);
    if (!g || (g->numel && msa_image_channels_last(g, &image) != 0) || cleared(sizes, (msa_dtype)g->dtype, &out) != 0) return NULL;
    void *bins = (void *)(uintptr_t)image.data;
    if (g->numel && g->dtype == MSA_FLOAT64) f64_pool_places(&r, out.data, msa_data(regions), bins, at.data, false);
    else if (g->numel) f32_pool_places(&r, out.data, msa_data(regions), bins, at.data, false);
    return finished(&out, (msa_dtype)grad->dtype);
}

msa_tensor *roi_pool_gather_cpu(msa_tensor *input, msa_tensor *places, msa_tensor *rois) {
    msa_regions r;
    msa_auto msa_tensor *regions = NULL;
    msa_auto_image image = {NULL, NULL}, at = {NULL, NULL};
    msa_image_out out;
    if (plan_places(places, rois, msa_sizes(input), (msa_dtype)input->dtype, &r, &regions, &at) != 0) return NULL;
    msa_auto msa_tensor *x = working(input);
    if (!x || (places->numel && msa_image_channels_last(x, &image) != 0) || msa_image_out_new(msa_sizes(places), (msa_dtype)x->dtype, false, &out) != 0)
        return NULL;
    void *values = (void *)(uintptr_t)image.data;
    if (places->numel && x->dtype == MSA_FLOAT64) f64_pool_places(&r, values, msa_data(regions), out.data, at.data, true);
    else if (places->numel) f32_pool_places(&r, values, msa_data(regions), out.data, at.data, true);
    return finished(&out, (msa_dtype)input->dtype);
}

/* ---- position-sensitive -------------------------------------------------------------------------------------------------- */

/* Forward: `given` is the input; back: it is the gradient, and `sizes` are the input's. */
static msa_tensor *position_sensitive(const char *op, msa_tensor *given, msa_tensor *rois, double scale, int64_t high, int64_t wide,
                                      int64_t sampling_ratio, bool align, bool back, msa_ints sizes) {
    msa_regions r;
    msa_auto msa_tensor *regions = NULL;
    const msa_dtype dtype = (msa_dtype)given->dtype;
    if (plan_regions(op, sizes, dtype, rois, scale, high, wide, true, &r, &regions) != 0) return NULL;
    const int64_t channels_out = r.channels / (high * wide);
    if (back && check_grad(op, given, rois, sizes, channels_out) != 0) return NULL;
    r.sampling_ratio = sampling_ratio;
    r.threads = threads_for(&r, 4);
    msa_auto msa_tensor *typed = working(given), *x = typed ? msa_contiguous_values(typed) : NULL;
    msa_auto msa_tensor *out = x ? msa_tensor_new(back ? sizes : MSA_INTS(r.count, channels_out, high, wide), (msa_dtype)x->dtype) : NULL;
    if (!out || msa_fill_values(out, msa_int(0)) != 0) return NULL;
    if (x->numel && out->numel && r.count) {
        void *one = msa_data(x), *other = out->storage->data, *input = back ? other : one, *bins = back ? one : other;
        if (!one) return NULL;
        const bool wide_type = x->dtype == MSA_FLOAT64;
        if (align && wide_type) f64_ps_align(&r, input, msa_data(regions), bins, back);
        else if (align) f32_ps_align(&r, input, msa_data(regions), bins, back);
        else if (wide_type) f64_ps_pool(&r, input, msa_data(regions), bins, back);
        else f32_ps_pool(&r, input, msa_data(regions), bins, back);
    }
    return msa_cast_values(out, dtype);
}

msa_tensor *ps_roi_align_cpu(msa_tensor *input, msa_tensor *rois, double scale, int64_t high, int64_t wide, int64_t sampling_ratio) {
    return position_sensitive("ps_roi_align", input, rois, scale, high, wide, sampling_ratio, true, false, msa_sizes(input));
}

msa_tensor *ps_roi_align_backward_cpu(msa_tensor *grad, msa_tensor *rois, double scale, int64_t sampling_ratio, msa_ints sizes) {
    if (grad->ndim != 4) return msa_fail_null(MSA_RUNTIME_ERROR, "ps_roi_align_backward: a gradient of size %s does not fit", msa_sizes_text(msa_sizes(grad)));
    return position_sensitive("ps_roi_align", grad, rois, scale, grad->sizes[2], grad->sizes[3], sampling_ratio, true, true, sizes);
}

msa_tensor *ps_roi_pool_cpu(msa_tensor *input, msa_tensor *rois, double scale, int64_t high, int64_t wide) {
    return position_sensitive("ps_roi_pool", input, rois, scale, high, wide, 0, false, false, msa_sizes(input));
}

msa_tensor *ps_roi_pool_backward_cpu(msa_tensor *grad, msa_tensor *rois, double scale, msa_ints sizes) {
    if (grad->ndim != 4) return msa_fail_null(MSA_RUNTIME_ERROR, "ps_roi_pool_backward: a gradient of size %s does not fit", msa_sizes_text(msa_sizes(grad)));
    return position_sensitive("ps_roi_pool", grad, rois, scale, grad->sizes[2], grad->sizes[3], 0, false, true, sizes);
}
