/* The user's pooling operators: lists made as long as there are dimensions, unbatched inputs, indices; each made of the windowed
 * operators that carry the gradients. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

typedef struct {
    int64_t kernel[3], stride[3], padding[3], dilation[3];
} lists;

static int spread(const char *op, const char *name, msa_ints given, int n, int64_t *out) {
    static const char *const words[] = {"", "one int", "two ints", "three ints"};
    if (given.n != 1 && given.n != n)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: %s must either be a single int, or a tuple of %s", op, name, words[n]);
    for (int i = 0; i < n; i++) out[i] = given.data[given.n == 1 ? 0 : i];
    return 0;
}

static int spread_all(const char *op, int n, msa_ints kernel, msa_ints stride, msa_ints padding, msa_ints dilation, lists *l) {
    if (spread(op, "kernel_size", kernel, n, l->kernel) != 0 || spread(op, "padding", padding, n, l->padding) != 0 ||
        spread(op, "dilation", dilation, n, l->dilation) != 0)
        return -1;
    if (stride.n <= 0) memcpy(l->stride, l->kernel, sizeof l->kernel);
    else if (spread(op, "stride", stride, n, l->stride) != 0) return -1;
    return 0;
}

/* The input with a batch dimension; *added says that it was put there. */
static msa_tensor *with_batch(const char *op, msa_tensor *self, int n, bool *added) {
    *added = self->ndim == n + 1;
    if (self->ndim != n + 1 && self->ndim != n + 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s: Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for input, but got:%s",
                             op, n + 1, n + 2, msa_sizes_text(msa_sizes(self)));
    return *added ? msa_unsqueeze(self, 0) : msa_tensor_retain(self);
}

static msa_tensor *without_batch(msa_tensor *t, bool added) { return !t ? NULL : added ? msa_squeeze_dim(t, 0) : msa_tensor_retain(t); }

/* results[1] is made only when `indices`. */
static int max_pool(const char *op, int n, msa_tensor *self, msa_ints kernel, msa_ints stride, msa_ints padding, msa_ints dilation,
                    bool ceil_mode, bool indices, msa_tensor **results) {
    lists l;
    bool added;
    if (spread_all(op, n, kernel, stride, padding, dilation, &l) != 0) return -1;
    msa_auto msa_tensor *x = with_batch(op, self, n, &added);
    msa_tensor *pair[2] = {NULL};
    if (!x || msa_max_pool_windows(x, (msa_ints){l.kernel, n}, (msa_ints){l.stride, n}, (msa_ints){l.padding, n}, (msa_ints){l.dilation, n}, ceil_mode, pair) != 0)
        return -1;
    msa_auto msa_tensor *values = pair[0], *places = pair[1], *flat = NULL;
    if (indices) {
        flat = msa_max_pool_indices(places, msa_sizes(x), (msa_ints){l.kernel, n}, (msa_ints){l.stride, n}, (msa_ints){l.padding, n}, (msa_ints){l.dilation, n});
        if (!flat || !(results[1] = without_batch(flat, added))) return -1;
    }
    results[0] = without_batch(values, added);
    return results[0] ? 0 : -1;
}

#define MAX_POOL(N) \
    msa_tensor *max_pool##N##d_values(msa_tensor *self, msa_ints kernel_size, msa_ints stride, msa_ints padding, msa_ints dilation, bool ceil_mode) { \
        msa_tensor *results[2] = {NULL}; \
        return max_pool("max_pool" #N "d", N, self, kernel_size, stride, padding, dilation, ceil_mode, false, results) == 0 ? results[0] : NULL; \
    } \
    int max_pool##N##d_indexed_values(msa_tensor *self, msa_ints kernel_size, msa_ints stride, msa_ints padding, msa_ints dilation, \
                                      bool ceil_mode, msa_tensor **results) { \
        results[0] = results[1] = NULL; \
        if (max_pool("max_pool" #N "d", N, self, kernel_size, stride, padding, dilation, ceil_mode, true, results) == 0) return 0; \
        msa_tensor_release(results[1]); \
        results[1] = NULL; \
        return -1; \
    }
MAX_POOL(1)
MAX_POOL(2)
MAX_POOL(3)

static msa_tensor *avg_pool(const char *op, int n, msa_tensor *self, msa_ints kernel, msa_ints stride, msa_ints padding, bool ceil_mode,
                            bool count_include_pad, msa_opt_int divisor_override) {
    lists l;
    bool added;
    if (spread_all(op, n, kernel, stride, padding, MSA_INTS(1), &l) != 0) return NULL;
    msa_auto msa_tensor *x = with_batch(op, self, n, &added);
    msa_auto msa_tensor *y = x ? msa_avg_pool_windows(x, (msa_ints){l.kernel, n}, (msa_ints){l.stride, n}, (msa_ints){l.padding, n}, ceil_mode,
                                                      count_include_pad, divisor_override)
                               : NULL;
    return without_batch(y, added);
}

msa_tensor *avg_pool1d_values(msa_tensor *self, msa_ints kernel_size, msa_ints stride, msa_ints padding, bool ceil_mode, bool count_include_pad) {
    return avg_pool("avg_pool1d", 1, self, kernel_size, stride, padding, ceil_mode, count_include_pad, (msa_opt_int){0});
}
msa_tensor *avg_pool2d_values(msa_tensor *self, msa_ints kernel_size, msa_ints stride, msa_ints padding, bool ceil_mode, bool count_include_pad,
                              msa_opt_int divisor_override) {
    return avg_pool("avg_pool2d", 2, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}
msa_tensor *avg_pool3d_values(msa_tensor *self, msa_ints kernel_size, msa_ints stride, msa_ints padding, bool ceil_mode, bool count_include_pad,
                              msa_opt_int divisor_override) {
    return avg_pool("avg_pool3d", 3, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}

static int adaptive_sizes(const char *op, int n, msa_tensor *self, msa_ints given, int64_t *sizes) {
    if (self->ndim != n + 1 && self->ndim != n + 2)
        return msa_fail(MSA_RUNTIME_ERROR, "%s(): Expected %dD or %dD tensor, but got %s", op, n + 1, n + 2, msa_sizes_text(msa_sizes(self)));
    if (given.n != 1 && given.n != n) return msa_fail(MSA_RUNTIME_ERROR, "%s: output_size must be %d", op, n);
    for (int i = 0; i < n; i++) sizes[i] = given.data[given.n == 1 ? 0 : i];
    for (int i = 0; i < n; i++)
        if (sizes[i] < 0) return msa_fail(MSA_RUNTIME_ERROR, "%s: elements of output_size must be greater than or equal to 0", op);
    return 0;
}

static msa_tensor *adaptive_avg(const char *op, int n, msa_tensor *self, msa_ints output_size) {
    int64_t sizes[3];
    bool added;
    if (adaptive_sizes(op, n, self, output_size, sizes) != 0) return NULL;
    msa_auto msa_tensor *x = with_batch(op, self, n, &added);
    msa_auto msa_tensor *y = x ? msa_adaptive_avg_pool_windows(x, (msa_ints){sizes, n}) : NULL;
    return without_batch(y, added);
}

static int adaptive_max(const char *op, int n, msa_tensor *self, msa_ints output_size, msa_tensor **results) {
    int64_t sizes[3];
    bool added;
    results[0] = results[1] = NULL;
    if (adaptive_sizes(op, n, self, output_size, sizes) != 0) return -1;
    msa_auto msa_tensor *x = with_batch(op, self, n, &added);
    msa_tensor *pair[2] = {NULL};
    if (!x || msa_adaptive_max_pool_windows(x, (msa_ints){sizes, n}, pair) != 0) return -1;
    msa_auto msa_tensor *values = pair[0], *indices = pair[1];
    results[0] = without_batch(values, added);
    results[1] = without_batch(indices, added);
    if (results[0] && results[1]) return 0;
    msa_tensor_release(msa_take(results[0]));
    msa_tensor_release(msa_take(results[1]));
    return -1;
}

#define ADAPTIVE(N) \
    msa_tensor *adaptive_avg_pool##N##d_values(msa_tensor *self, msa_ints output_size) { \
        return adaptive_avg("adaptive_avg_pool" #N "d", N, self, output_size); \
    } \
    int adaptive_max_pool##N##d_values(msa_tensor *self, msa_ints output_size, msa_tensor **results) { \
        return adaptive_max("adaptive_max_pool" #N "d", N, self, output_size, results); \
    }
ADAPTIVE(1)
ADAPTIVE(2)
ADAPTIVE(3)

/* The last `spatial` dimensions as one. */
static msa_tensor *flat_planes(msa_tensor *t, int64_t spatial) {
    int64_t sizes[MSA_MAX_DIMS];
    const int kept = t->ndim - (int)spatial;
    for (int i = 0; i < kept; i++) sizes[i] = t->sizes[i];
    sizes[kept] = msa_product((msa_ints){t->sizes + kept, spatial});
    return msa_reshape(t, (msa_ints){sizes, kept + 1});
}

static msa_tensor *zero_planes(msa_ints sizes, int64_t spatial, msa_dtype dtype) {
    int64_t flat[MSA_MAX_DIMS];
    const int64_t kept = sizes.n - spatial;
    for (int64_t i = 0; i < kept; i++) flat[i] = sizes.data[i];
    flat[kept] = msa_product((msa_ints){sizes.data + kept, spatial});
    return zeros_shaped((msa_ints){flat, kept + 1}, dtype);
}

msa_ints spatial_sizes(msa_ints sizes) { return (msa_ints){sizes.data + 2, sizes.n - 2}; }

msa_tensor *pooled_scatter(msa_tensor *grad, msa_tensor *indices, msa_ints sizes, int64_t spatial) {
    msa_auto msa_tensor *zeros = zero_planes(sizes, spatial, (msa_dtype)grad->dtype), *g = flat_planes(grad, spatial), *at = flat_planes(indices, spatial);
    msa_auto msa_tensor *sum = zeros && g && at ? msa_scatter_add(zeros, -1, at, g) : NULL;
    return sum ? msa_reshape(sum, sizes) : NULL;
}

/* Values put back where max pooling took them: `size` is the whole spatial size of the result. */
static msa_tensor *unpool(const char *op, int64_t n, msa_tensor *self, msa_tensor *indices, msa_ints size) {
    if (size.n != n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "There should be exactly %s elements in output_size, but got %lld", n == 2 ? "two" : "three", (long long)size.n);
    if (indices->dtype != MSA_INT64) return msa_fail_null(MSA_RUNTIME_ERROR, "elements in indices should be type int64 but got: %s", msa_dtype_type_name((msa_dtype)indices->dtype));
    if (self->ndim != n + 1 && self->ndim != n + 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Input to %s should be a %lldd or %lldd Tensor, but got a tensor with %d dimensions.", op, (long long)n + 1, (long long)n + 2, self->ndim);
    if (!msa_same_sizes(self, indices))
        return msa_fail_null(MSA_RUNTIME_ERROR, "Expected shape of indices to be same as that of the input tensor (%s) but got indices tensor with shape: %s",
                             msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(indices)));
    int64_t sizes[5];
    const int kept = self->ndim - (int)n;
    for (int i = 0; i < self->ndim; i++) sizes[i] = i < kept ? self->sizes[i] : size.data[i - kept];
    const int64_t plane = msa_product(size);
    msa_auto msa_tensor *whole = msa_contiguous_values(indices);
    const int64_t *at = whole ? msa_data(whole) : NULL;
    if (!whole || (!at && whole->numel)) return NULL;
    for (int64_t i = 0; i < whole->numel; i++)
        if (at[i] < 0 || at[i] >= plane)
            return msa_fail_null(MSA_RUNTIME_ERROR, "Found an invalid max index: %lld (output volumes are of size %s)", (long long)at[i], msa_sizes_text(size));
    msa_auto msa_tensor *zeros = zero_planes((msa_ints){sizes, self->ndim}, n, (msa_dtype)self->dtype), *values = flat_planes(self, n), *flat = flat_planes(whole, n);
    msa_auto msa_tensor *put = zeros && values && flat ? msa_scatter_src(zeros, -1, flat, values) : NULL;
    return put ? msa_reshape(put, (msa_ints){sizes, self->ndim}) : NULL;
}

msa_tensor *max_unpool2d_values(msa_tensor *self, msa_tensor *indices, msa_ints output_size) {
    return unpool("max_unpooling2d", 2, self, indices, output_size);
}

msa_tensor *max_unpool3d_values(msa_tensor *self, msa_tensor *indices, msa_ints output_size, msa_ints stride, msa_ints padding) {
    if (stride.n != 3) return msa_fail_null(MSA_RUNTIME_ERROR, "There should be exactly three elements (depth, height, width) in stride, but got: %lld elements.", (long long)stride.n);
    if (padding.n != 3) return msa_fail_null(MSA_RUNTIME_ERROR, "There should be exactly three elements (depth, height, width) in padding, but got: %lld elements.", (long long)padding.n);
    for (int i = 0; i < 3; i++)
        if (stride.data[i] <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "strides should be greater than zero, but got stride: %s", msa_sizes_text(stride));
    return unpool("max_unpooling3d", 3, self, indices, output_size);
}
