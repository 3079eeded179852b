/* Binary search in sorted rows: searchsorted and bucketize. */
#include "base/parallel.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

/* The first place in the sorted row (in the order that `order` gives, where there is one) that does not come before x; with `right`,
 * that comes behind it. NaN comes behind everything. */
#define PLACE(T) \
    static int64_t place_##T(const T *row, const int64_t *order, int64_t n, T x, bool right) { \
        int64_t low = 0, high = n; \
        while (low < high) { \
            const int64_t middle = low + (high - low) / 2; \
            const T value = row[order ? order[middle] : middle]; \
            if (right ? value > x : value >= x) high = middle; \
            else low = middle + 1; \
        } \
        return low; \
    }
PLACE(int64_t)
PLACE(double)

static int check_sorter(const msa_tensor *sequence, const msa_tensor *sorter) {
    if (!msa_same_sizes(sequence, sorter))
        return msa_fail(MSA_RUNTIME_ERROR, "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor %s and got sorter tensor %s",
                        msa_sizes_text(msa_sizes(sequence)), msa_sizes_text(msa_sizes(sorter)));
    if (sorter->dtype != MSA_INT64)
        return msa_fail(MSA_RUNTIME_ERROR, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s", msa_dtype_type_name((msa_dtype)sorter->dtype));
    return 0;
}

static int check_shapes(const msa_tensor *sequence, const msa_tensor *values) {
    bool fits = sequence->ndim == 1 || (sequence->ndim && sequence->ndim == values->ndim);
    for (int i = 0; i + 1 < sequence->ndim && fits; i++) fits = sequence->sizes[i] == values->sizes[i];
    if (fits) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor %s and input value tensor %s",
                    msa_sizes_text(msa_sizes(sequence)), msa_sizes_text(msa_sizes(values)));
}

msa_tensor *searchsorted_cpu(msa_tensor *sequence, msa_tensor *values, bool out_int32, bool right, msa_tensor *sorter) {
    if (check_shapes(sequence, values) != 0 || (sorter && check_sorter(sequence, sorter) != 0)) return NULL;
    if (msa_is_complex((msa_dtype)sequence->dtype) || msa_is_complex((msa_dtype)values->dtype))
        return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"searchsorted_out_cpu\" not implemented for 'ComplexFloat'");
    /* Compared in the common type, as if both had been converted to it. */
    const msa_dtype common = msa_result_type(MSA_TENSORS(sequence, values));
    const bool floating = msa_is_inexact(common);
    msa_auto msa_tensor *near = msa_cast_values(sequence, common), *far = near ? msa_cast_values(values, common) : NULL;
    msa_auto msa_tensor *wide = far ? msa_cast_values(near, floating ? MSA_FLOAT64 : MSA_INT64) : NULL, *rows = wide ? msa_contiguous_values(wide) : NULL;
    msa_auto msa_tensor *wide_x = rows ? msa_cast_values(far, floating ? MSA_FLOAT64 : MSA_INT64) : NULL, *x = wide_x ? msa_contiguous_values(wide_x) : NULL;
    msa_auto msa_tensor *order = sorter ? msa_contiguous_values(sorter) : NULL;
    msa_auto msa_tensor *result = x && (order || !sorter) ? msa_tensor_new(msa_sizes(values), MSA_INT64) : NULL;
    if (!result) return NULL;
    const int64_t n = sequence->sizes[sequence->ndim - 1];
    const int64_t each = sequence->ndim == 1 ? result->numel : values->sizes[values->ndim - 1]; /* values that share a row */
    const int64_t *orders = order ? msa_data(order) : NULL;
    for (int64_t k = 0; orders && k < order->numel; k++)
        if (orders[k] < 0 || orders[k] >= n) return msa_fail_null(MSA_INDEX_ERROR, "torch.searchsorted(): sorter index out of range");
    const void *from = msa_data(rows), *wanted = msa_data(x);
    int64_t *to = result->storage->data;
#pragma omp parallel for num_threads(msa_threads_for(result->numel * 16, MSA_GRAIN)) schedule(static)
    for (int64_t k = 0; k < result->numel; k++) {
        const int64_t start = k / each * n, *row_order = orders ? orders + start : NULL;
        to[k] = floating ? place_double((const double *)from + start, row_order, n, ((const double *)wanted)[k], right)
                         : place_int64_t((const int64_t *)from + start, row_order, n, ((const int64_t *)wanted)[k], right);
    }
    return out_int32 ? msa_cast_values(result, MSA_INT32) : msa_take(result);
}
