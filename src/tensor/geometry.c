/* Arithmetic on sizes and strides, and the result type of operands. */
#include <stdio.h>

#include "tensor/internal.h"

void msa_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides) {
    int64_t step = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= sizes[i] > 1 ? sizes[i] : 1;
    }
}

int64_t msa_product(msa_ints sizes) {
    int64_t p = 1;
    for (int64_t i = 0; i < sizes.n; i++) p *= sizes.data[i];
    return p;
}

bool msa_is_channels_last(const msa_tensor *t) {
    if (t->ndim != 4 && t->ndim != 5) return false;
    int64_t expected = 1;
    static const int order4[] = {1, 3, 2, 0}, order5[] = {1, 4, 3, 2, 0};
    const int *order = t->ndim == 4 ? order4 : order5;
    for (int i = 0; i < t->ndim; i++) {
        int64_t size = t->sizes[order[i]];
        if (size != 1 && t->strides[order[i]] != expected) return false;
        expected *= size;
    }
    return true;
}

bool msa_same_sizes(const msa_tensor *a, const msa_tensor *b) {
    return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, sizeof(int64_t) * a->ndim) == 0;
}

bool msa_view_strides(const msa_tensor *t, msa_ints sizes, int64_t *strides) {
    if (t->numel == 0 || t->contiguous) {
        msa_contiguous_strides((int)sizes.n, sizes.data, strides);
        return true;
    }
    /* Each run of source dimensions that is contiguous in itself must be covered by whole target dimensions. */
    int64_t d = sizes.n - 1, chunk_base = t->strides[t->ndim - 1], source = 1, target = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        source *= t->sizes[i];
        bool ends = i == 0 || (t->sizes[i - 1] != 1 && t->strides[i - 1] != source * chunk_base);
        if (!ends) continue;
        while (d >= 0 && (target < source || sizes.data[d] == 1)) {
            strides[d] = target * chunk_base;
            target *= sizes.data[d];
            d--;
        }
        if (target != source) return false;
        if (i > 0) {
            chunk_base = t->strides[i - 1];
            source = target = 1;
        }
    }
    return d == -1;
}

int msa_broadcast_sizes(const char *op, msa_ints a, msa_ints b, int64_t *out, int *ndim) {
    int64_t n = a.n > b.n ? a.n : b.n;
    for (int64_t i = 0; i < n; i++) {
        int64_t x = i < a.n ? a.data[a.n - 1 - i] : 1, y = i < b.n ? b.data[b.n - 1 - i] : 1;
        if (x != y && x != 1 && y != 1)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "%s: The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
                            "dimension %lld",
                            op, (long long)x, (long long)y, (long long)(n - 1 - i));
        out[n - 1 - i] = x == 1 ? y : x;
    }
    *ndim = (int)n;
    return 0;
}

int msa_wrap_dim(const char *op, int64_t dim, int ndim) {
    int64_t n = ndim > 0 ? ndim : 1;
    if (dim < -n || dim >= n)
        return msa_fail(MSA_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                        op, (long long)-n, (long long)(n - 1), (long long)dim);
    return (int)(dim < 0 ? dim + n : dim);
}

const char *msa_sizes_text(msa_ints sizes) {
    enum { RING = 8, LENGTH = 256 };
    static _Thread_local char ring[RING][LENGTH];
    static _Thread_local int next;
    char *text = ring[next = (next + 1) % RING];
    size_t used = (size_t)snprintf(text, LENGTH, "[");
    for (int64_t i = 0; i < sizes.n && used < LENGTH - 32; i++)
        used += (size_t)snprintf(text + used, LENGTH - used, i ? ", %lld" : "%lld", (long long)sizes.data[i]);
    snprintf(text + used, LENGTH - used, "]");
    return text;
}

/* What a lower-priority operand's type does to a higher one's: only a higher kind of number changes it. */
static msa_dtype combine(msa_dtype higher, msa_dtype lower) {
    if (higher == MSA_NO_DTYPE) return lower;
    if (lower == MSA_NO_DTYPE || msa_is_complex(higher)) return higher;
    if (msa_is_floating(higher)) return msa_is_complex(lower) ? msa_dtype_complex(higher) : higher;
    return higher == MSA_BOOL || msa_is_inexact(lower) ? msa_dtype_promote(higher, lower) : higher;
}

msa_dtype msa_result_type(msa_tensors operands) {
    /* Priorities: tensors with dimensions, then 0-dim tensors, then numbers. */
    msa_dtype of[3] = {MSA_NO_DTYPE, MSA_NO_DTYPE, MSA_NO_DTYPE};
    for (int64_t i = 0; i < operands.n; i++) {
        const msa_tensor *t = operands.data[i];
        if (!t) continue;
        int priority = t->wrapped_number ? 2 : t->ndim == 0 ? 1 : 0;
        msa_dtype d = (msa_dtype)t->dtype;
        if (priority == 2 && msa_is_complex(d)) d = msa_dtype_complex(msa_default_dtype());
        else if (priority == 2 && msa_is_floating(d)) d = msa_default_dtype();
        of[priority] = of[priority] == MSA_NO_DTYPE ? d : msa_dtype_promote(of[priority], d);
    }
    msa_dtype result = combine(of[0], combine(of[1], of[2]));
    return result == MSA_NO_DTYPE ? msa_default_dtype() : result;
}
