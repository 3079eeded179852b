/* Histograms over one or several dimensions: how many points, or how much of their weight, lie in each bin. */
#include <math.h>
#include <stdlib.h>

#include "msadapter/ops.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

/* A tensor as contiguous float64, which holds every value of the narrower types. */
static msa_tensor *doubles_of(msa_tensor *t) {
    msa_auto msa_tensor *wide = msa_cast_values(t, MSA_FLOAT64);
    return wide ? msa_contiguous_values(wide) : NULL;
}

/* The bin of x between n + 1 rising edges, the last bin closed; -1 outside. */
static int64_t bin_of(const double *edges, int64_t n, double x) {
    if (!(x >= edges[0] && x <= edges[n])) return -1;
    int64_t first = 0, count = n + 1; /* of the edges, the first beyond x */
    while (count > 0) {
        const int64_t half = count / 2;
        if (x < edges[first + half]) {
            count = half;
        } else {
            first += half + 1;
            count -= half + 1;
        }
    }
    const int64_t bin = first - 1;
    return bin < 0 ? 0 : bin < n ? bin : n - 1;
}

/* Each count made a density: divided by the sum of all and by the volume of its bin. */
static void make_density(double *counts, int64_t total, msa_tensor *const *edges, int64_t dims, const int64_t *sizes) {
    double sum = 0;
    for (int64_t i = 0; i < total; i++) sum += counts[i];
    for (int64_t i = 0; i < total; i++) {
        double volume = sum;
        int64_t rest = i;
        for (int64_t d = dims - 1; d >= 0; d--) {
            const double *e = (const double *)msa_data(edges[d]) + rest % sizes[d];
            volume *= e[1] - e[0];
            rest /= sizes[d];
        }
        counts[i] /= volume;
    }
}

static int check_edges(const msa_tensor *self, msa_tensors edges, int64_t *sizes) {
    for (int64_t d = 0; d < edges.n; d++) {
        if (edges.data[d]->dtype != self->dtype)
            return msa_fail(MSA_RUNTIME_ERROR, "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype %s and bins for dimension %lld with dtype %s",
                            msa_dtype_type_name((msa_dtype)self->dtype), (long long)d, msa_dtype_type_name((msa_dtype)edges.data[d]->dtype));
        if (edges.data[d]->ndim != 1)
            return msa_fail(MSA_RUNTIME_ERROR, "torch.histogramdd: bins tensor should have one dimension, but got %d dimensions in the bins tensor for dimension %lld", edges.data[d]->ndim,
                            (long long)d);
        if (edges.data[d]->numel < 2)
            return msa_fail(MSA_RUNTIME_ERROR, "torch.histogramdd: bins tensor should have at least 2 elements, but got %lld elements in the bins tensor for dimension %lld",
                            (long long)edges.data[d]->numel, (long long)d);
        sizes[d] = edges.data[d]->numel - 1;
    }
    return 0;
}

static int check_input(const msa_tensor *self, const msa_tensor *weight, int64_t points) {
    if (self->dtype != MSA_FLOAT32 && self->dtype != MSA_FLOAT64)
        return msa_fail(MSA_NOT_IMPLEMENTED, "\"histogram_cpu\" not implemented for '%s'", msa_dtype_type_name((msa_dtype)self->dtype));
    if (!weight) return 0;
    if (weight->dtype != self->dtype)
        return msa_fail(MSA_RUNTIME_ERROR, "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input(dtype %s), and weight(dtype %s)",
                        msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name((msa_dtype)weight->dtype));
    if (weight->numel != points)
        return msa_fail(MSA_RUNTIME_ERROR, "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension, but got weight with shape %s",
                        msa_sizes_text(msa_sizes(weight)));
    return 0;
}

/* self: points (..., D); edges: D vectors; the result has a dimension of bins for each. */
msa_tensor *histogram_counts_cpu(msa_tensor *self, msa_tensors edges, msa_tensor *weight, bool density) {
    const int64_t dims = edges.n;
    if (self->ndim < 1 || self->sizes[self->ndim - 1] != dims || dims < 1 || dims > MSA_MAX_DIMS)
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histogramdd: expected as many sequences of bins as the innermost dimension of input has elements, got %lld for shape %s",
                             (long long)dims, msa_sizes_text(msa_sizes(self)));
    int64_t points = 1, sizes[MSA_MAX_DIMS];
    for (int i = 0; i < self->ndim - 1; i++) points *= self->sizes[i];
    if (check_input(self, weight, points) != 0 || check_edges(self, edges, sizes) != 0) return NULL;
    msa_auto_list msa_list *wide_edges = msa_list_new(dims);
    msa_auto msa_tensor *values = doubles_of(self), *weights = weight ? doubles_of(weight) : NULL;
    msa_auto msa_tensor *counts = msa_tensor_new((msa_ints){sizes, dims}, MSA_FLOAT64);
    if (!wide_edges || !values || !counts || (weight && !weights) || msa_fill_values(counts, msa_int(0)) != 0) return NULL;
    for (int64_t d = 0; d < dims; d++)
        if (!(wide_edges->items[d] = doubles_of(edges.data[d]))) return NULL;
    double *to = counts->storage->data;
    const double *from = msa_data(values), *w = weights ? msa_data(weights) : NULL;
    for (int64_t k = 0; k < points; k++) {
        int64_t place = 0;
        for (int64_t d = 0; d < dims && place >= 0; d++) {
            const int64_t bin = bin_of(msa_data(wide_edges->items[d]), sizes[d], from[k * dims + d]);
            place = bin < 0 ? -1 : place * sizes[d] + bin;
        }
        if (place >= 0) to[place] += w ? w[k] : 1;
    }
    if (density) make_density(to, counts->numel, wide_edges->items, dims, sizes);
    return msa_cast_values(counts, (msa_dtype)self->dtype);
}

static msa_tensor *as_points(msa_tensor *self) {
    msa_auto msa_tensor *plain = msa_contiguous_values(self);
    return plain ? msa_reshape(plain, MSA_INTS(plain->numel, 1)) : NULL;
}

int histogram_tensor_cpu(msa_tensor *self, msa_tensor *bins, msa_tensor *weight, bool density, msa_tensor **results) {
    msa_auto msa_tensor *points = as_points(self);
    results[0] = points ? histogram_counts_cpu(points, MSA_TENSORS(bins), weight, density) : NULL;
    results[1] = results[0] ? msa_clone_values(bins) : NULL;
    return results[1] ? 0 : -1;
}

/* bins + 1 even edges over the range, or from the least to the largest of column `dim` of the points. */
msa_tensor *histogram_edges_cpu(msa_tensor *self, int64_t dim, int64_t bins, msa_doubles range) {
    if (check_input(self, NULL, 0) != 0) return NULL;
    if (bins <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histogramdd(): bins must be > 0, but got %lld for dimension %lld", (long long)bins, (long long)dim);
    const int64_t dims = self->ndim ? self->sizes[self->ndim - 1] : 1;
    if (dim < 0 || dim >= dims) return msa_fail_null(MSA_INDEX_ERROR, "histogram: no dimension %lld in points of %lld", (long long)dim, (long long)dims);
    double low = 0, high = 1;
    if (range.n >= 0) {
        if (range.n != 2 * dims)
            return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histogramdd: for a %lld-dimensional histogram range should have %lld elements, but got %lld", (long long)dims, (long long)(2 * dims),
                                 (long long)range.n);
        low = range.data[2 * dim];
        high = range.data[2 * dim + 1];
    } else if (self->numel) {
        msa_auto msa_tensor *values = doubles_of(self);
        if (!values) return NULL;
        const double *p = msa_data(values);
        low = high = p[dim];
        for (int64_t k = dim; k < values->numel; k += dims) {
            if (p[k] != p[k]) low = high = p[k];
            if (p[k] < low) low = p[k];
            if (p[k] > high) high = p[k];
        }
    }
    if (!isfinite(low) || !isfinite(high)) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histogramdd: dimension %lld's range [%g, %g] is not finite", (long long)dim, low, high);
    if (low > high) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histogramdd: min should not exceed max, but got min %g max %g for dimension %lld", low, high, (long long)dim);
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    return linspace_cpu(msa_float(low), msa_float(high), bins + 1, (msa_dtype)self->dtype);
}

int histogram_count_cpu(msa_tensor *self, int64_t bins, msa_doubles range, msa_tensor *weight, bool density, msa_tensor **results) {
    msa_auto msa_tensor *points = as_points(self);
    msa_auto msa_tensor *edges = points ? histogram_edges_cpu(points, 0, bins, range) : NULL;
    results[0] = edges ? histogram_counts_cpu(points, MSA_TENSORS(edges), weight, density) : NULL;
    results[1] = results[0] ? msa_take(edges) : NULL;
    return results[1] ? 0 : -1;
}

/* Even bins by division, as fast as can be; the last one closed. `from` to `to` is not empty. */
#define COUNT(T) \
    do { \
        const T low = (T)from, high = (T)to; \
        const T *p = msa_data(plain); \
        for (int64_t k = 0; k < plain->numel; k++) { \
            if (!(p[k] >= low && p[k] <= high)) continue; \
            int64_t bin = (int64_t)((p[k] - low) * (T)bins / (high - low)); \
            counts[bin < bins ? bin : bins - 1]++; \
        } \
    } while (0)

msa_tensor *histc_cpu(msa_tensor *self, int64_t bins, msa_scalar min, msa_scalar max) {
    if (check_input(self, NULL, 0) != 0) return NULL;
    if (bins <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histc(): bins must be > 0, but got %lld", (long long)bins);
    msa_auto msa_tensor *plain = msa_contiguous_values(self);
    double from = msa_scalar_double(min), to = msa_scalar_double(max);
    if (plain && from == to && plain->numel) {
        msa_auto msa_tensor *least = msa_min(plain), *most = least ? msa_max(plain) : NULL;
        msa_scalar low, high;
        if (!most || msa_tensor_item(least, &low) != 0 || msa_tensor_item(most, &high) != 0) return NULL;
        from = low.d;
        to = high.d;
    }
    if (from == to) {
        from -= 1;
        to += 1;
    }
    if (!isfinite(from) || !isfinite(to)) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histc: range of [%g, %g] is not finite", from, to);
    if (from > to) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.histc: max must be larger than min");
    msa_auto msa_tensor *result = plain ? msa_tensor_new(MSA_INTS(bins), MSA_INT64) : NULL;
    if (!result || msa_fill_values(result, msa_int(0)) != 0) return NULL;
    int64_t *counts = result->storage->data;
    if (self->dtype == MSA_FLOAT32) COUNT(float);
    else COUNT(double);
    return msa_cast_values(result, (msa_dtype)self->dtype);
}
