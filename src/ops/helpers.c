/* The helpers of formulas. */
#include "ops/helpers.h"

#include "autograd/internal.h"
#include "msadapter/ops.h"

msa_tensor *msa_wrap_number(msa_scalar value) {
    static const msa_dtype as_tensor[] = {[MSA_BOOL] = MSA_BOOL, [MSA_INT64] = MSA_INT64, [MSA_FLOAT64] = MSA_FLOAT64,
                                          [MSA_COMPLEX128] = MSA_COMPLEX128};
    msa_tensor *t = msa_tensor_new((msa_ints){NULL, 0}, as_tensor[value.kind]);
    if (!t) return NULL;
    t->wrapped_number = true;
    void *data = t->storage->data;
    if (value.kind == MSA_BOOL) *(uint8_t *)data = value.i != 0;
    else if (value.kind == MSA_INT64) *(int64_t *)data = value.i;
    else ((double *)data)[0] = value.d;
    if (value.kind == MSA_COMPLEX128) ((double *)data)[1] = value.im;
    return t;
}

/* Arithmetic in the wider kind of the two. */
static msa_scalar widened(msa_scalar s, msa_dtype kind) {
    if (s.kind < MSA_FLOAT16 && kind >= MSA_FLOAT16) s = (msa_scalar){MSA_FLOAT64, {.d = (double)s.i}, 0};
    s.kind = kind;
    if (kind != MSA_COMPLEX128) s.im = 0;
    return s;
}

#define ARITHMETIC(NAME, ON_INTEGERS, RE, IM) \
    msa_scalar NAME(msa_scalar x, msa_scalar y) { \
        msa_dtype kind = x.kind > y.kind ? x.kind : y.kind; \
        if (kind == MSA_BOOL) kind = MSA_INT64; \
        msa_scalar a = widened(x, kind), b = widened(y, kind); \
        if (kind == MSA_INT64) return msa_int(ON_INTEGERS); \
        return (msa_scalar){kind, {.d = RE}, kind == MSA_COMPLEX128 ? IM : 0}; \
    }
ARITHMETIC(msa_scalar_added, a.i + b.i, a.d + b.d, a.im + b.im)
ARITHMETIC(msa_scalar_subtracted, a.i - b.i, a.d - b.d, a.im - b.im)
ARITHMETIC(msa_scalar_multiplied, a.i *b.i, a.d *b.d - a.im * b.im, a.d *b.im + a.im * b.d)

msa_scalar msa_scalar_divided(msa_scalar x, msa_scalar y) {
    msa_dtype kind = x.kind == MSA_COMPLEX128 || y.kind == MSA_COMPLEX128 ? MSA_COMPLEX128 : MSA_FLOAT64;
    msa_scalar a = widened(x, kind), b = widened(y, kind);
    if (kind == MSA_FLOAT64) return msa_float(a.d / b.d);
    double n = b.d * b.d + b.im * b.im;
    return msa_complex((a.d * b.d + a.im * b.im) / n, (a.im * b.d - a.d * b.im) / n);
}

msa_scalar msa_scalar_negated(msa_scalar value) { return msa_scalar_multiplied(msa_int(-1), value); }

msa_scalar msa_scalar_conjugated(msa_scalar value) {
    value.im = -value.im;
    return value;
}


msa_tensor *unreduced(msa_tensor *grad, msa_ints sizes, msa_ints dims, bool keepdim) {
    int64_t shape[MSA_MAX_DIMS];
    bool reduced[MSA_MAX_DIMS] = {false};
    bool all = dims.n <= 0;
    for (int64_t i = 0; i < dims.n; i++) reduced[dims.data[i] < 0 ? dims.data[i] + sizes.n : dims.data[i]] = sizes.n > 0;
    for (int64_t i = 0; i < sizes.n; i++) shape[i] = all || reduced[i] ? 1 : sizes.data[i];
    if (keepdim || sizes.n == 0) return msa_expand(grad, sizes, false);
    msa_auto msa_tensor *kept = msa_reshape(grad, (msa_ints){shape, sizes.n});
    return kept ? msa_expand(kept, sizes, false) : NULL;
}

int64_t reduced_count(msa_ints sizes, msa_ints dims) {
    if (dims.n <= 0) return msa_product(sizes);
    int64_t count = 1;
    for (int64_t i = 0; i < dims.n && sizes.n; i++)
        count *= sizes.data[dims.data[i] < 0 ? dims.data[i] + sizes.n : dims.data[i]];
    return count;
}

msa_tensor *permute_back(msa_tensor *grad, msa_ints dims) {
    int64_t inverse[MSA_MAX_DIMS];
    for (int64_t i = 0; i < dims.n; i++) inverse[dims.data[i] < 0 ? dims.data[i] + dims.n : dims.data[i]] = i;
    return msa_permute(grad, (msa_ints){inverse, dims.n});
}
