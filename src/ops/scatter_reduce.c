/* Gradients of scatter_reduce, index_reduce and put. The first two differ only in how places are named. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

typedef struct {
    bool scatter; /* index has self's dimensions; otherwise it is a vector along dim */
    int64_t dim;
    msa_tensor *index;
    const char *reduce;
    bool include_self;
} fold_call;

/* What lies at each element's place. */
static msa_tensor *at_places(const fold_call *c, msa_tensor *t) {
    return c->scatter ? msa_gather(t, c->dim, c->index, false) : msa_index_select(t, c->dim, c->index);
}

static msa_tensor *added_to(const fold_call *c, msa_tensor *base, msa_tensor *values) {
    return c->scatter ? msa_scatter_add(base, c->dim, c->index, values) : msa_index_add(base, c->dim, c->index, values, msa_int(1));
}

static msa_tensor *folded(const fold_call *c, msa_tensor *self, msa_tensor *source) {
    return c->scatter ? msa_scatter_reduce_two(self, c->dim, c->index, source, c->reduce, c->include_self)
                      : msa_index_reduce(self, c->dim, c->index, source, c->reduce, c->include_self);
}

static msa_tensor *filled(msa_tensor *like, double value) {
    msa_auto msa_tensor *t = msa_tensor_new(msa_sizes(like), (msa_dtype)like->dtype);
    return t && msa_fill_values(t, msa_float(value)) == 0 ? msa_take(t) : NULL;
}

static msa_tensor *equals(msa_tensor *a, double value) {
    msa_auto msa_tensor *number = msa_wrap_number(msa_float(value));
    return number ? msa_eq(a, number) : NULL;
}

/* t with ones where the mask holds. */
static msa_tensor *ones_where(msa_tensor *t, msa_tensor *mask) {
    msa_auto msa_tensor *one = msa_wrap_number(msa_int(1));
    return one ? msa_where(mask, one, t) : NULL;
}

/* Each place's number of elements in the mean, at least one. */
static msa_tensor *place_counts(const fold_call *c, msa_tensor *self, msa_tensor *source) {
    msa_auto msa_tensor *own = filled(self, c->include_self ? 1 : 0), *ones = filled(source, 1);
    msa_auto msa_tensor *counts = own && ones ? added_to(c, own, ones) : NULL;
    msa_auto msa_tensor *none = counts ? equals(counts, 0) : NULL;
    return none ? ones_where(counts, none) : NULL;
}

/* Where elements are the extreme of their place: `mine` for self, `theirs` for the source; and each one's share of grad. */
static int extreme_shares(const fold_call *c, msa_tensor *grad, msa_tensor *self, msa_tensor *source, msa_tensor *result, msa_tensor **share,
                          msa_tensor **mine, msa_tensor **theirs) {
    msa_auto msa_tensor *value = at_places(c, result);
    msa_auto msa_tensor *self_mask = msa_eq(self, result), *source_mask = value ? msa_eq(source, value) : NULL;
    *mine = self_mask ? msa_to_dtype(self_mask, (msa_dtype)grad->dtype, false, false, -1) : NULL;
    *theirs = source_mask ? msa_to_dtype(source_mask, (msa_dtype)grad->dtype, false, false, -1) : NULL;
    msa_auto msa_tensor *counts = *mine && *theirs ? added_to(c, *mine, *theirs) : NULL;
    *share = counts ? msa_div(grad, counts) : NULL;
    return *share ? 0 : -1;
}

static msa_tensor *self_gradient(const fold_call *c, msa_tensor *grad, msa_tensor *self, msa_tensor *source, msa_tensor *result) {
    msa_auto msa_tensor *g = NULL;
    if (strcmp(c->reduce, "sum") == 0) g = msa_tensor_retain(grad);
    else if (strcmp(c->reduce, "prod") == 0) {
        msa_auto msa_tensor *zero = equals(self, 0);
        msa_auto msa_tensor *masked = zero ? ones_where(self, zero) : NULL;
        msa_auto msa_tensor *product = masked ? folded(c, masked, source) : NULL;
        msa_auto msa_tensor *scaled_grad = product ? msa_mul(grad, product) : NULL;
        g = scaled_grad ? msa_div(scaled_grad, masked) : NULL;
    } else if (strcmp(c->reduce, "mean") == 0) {
        msa_auto msa_tensor *counts = place_counts(c, self, source);
        g = counts ? msa_div(grad, counts) : NULL;
    } else {
        msa_auto msa_tensor *share = NULL, *mine = NULL, *theirs = NULL;
        if (extreme_shares(c, grad, self, source, result, &share, &mine, &theirs) == 0) g = msa_mul(mine, share);
    }
    if (!g || c->include_self) return msa_take(g);
    return c->scatter ? msa_scatter_value(g, c->dim, c->index, msa_int(0)) : msa_index_fill_int_Scalar(g, c->dim, c->index, msa_int(0));
}

/* The product of the others at an element's place is product / element, but for a single zero the product without it. */
static msa_tensor *source_gradient_of_product(const fold_call *c, msa_tensor *grad, msa_tensor *self, msa_tensor *source, msa_tensor *result) {
    msa_auto msa_tensor *zero = equals(source, 0);
    msa_auto msa_tensor *ones = zero ? msa_to_dtype(zero, (msa_dtype)self->dtype, false, false, -1) : NULL;
    msa_auto msa_tensor *none = filled(self, 0);
    msa_auto msa_tensor *zeros = ones && none ? added_to(c, none, ones) : NULL;
    msa_auto msa_tensor *counts = zeros ? at_places(c, zeros) : NULL;
    msa_auto msa_tensor *one = counts ? equals(counts, 1) : NULL;
    msa_auto msa_tensor *single = one ? msa_logical_and(zero, one) : NULL;
    msa_auto msa_tensor *without = single ? ones_where(source, single) : NULL, *divisor = single ? ones_where(source, zero) : NULL;
    msa_auto msa_tensor *product = without ? folded(c, self, without) : NULL;
    msa_auto msa_tensor *for_single = product ? msa_mul(grad, product) : NULL, *for_others = msa_mul(grad, result);
    msa_auto msa_tensor *a = for_single ? at_places(c, for_single) : NULL, *b = for_others ? at_places(c, for_others) : NULL;
    msa_auto msa_tensor *quotient = b && divisor ? msa_div(b, divisor) : NULL;
    return a && quotient ? msa_where(single, a, quotient) : NULL;
}

static msa_tensor *source_gradient(const fold_call *c, msa_tensor *grad, msa_tensor *self, msa_tensor *source, msa_tensor *result) {
    if (strcmp(c->reduce, "sum") == 0) return at_places(c, grad);
    if (strcmp(c->reduce, "prod") == 0) return source_gradient_of_product(c, grad, self, source, result);
    if (strcmp(c->reduce, "mean") == 0) {
        msa_auto msa_tensor *counts = place_counts(c, self, source);
        msa_auto msa_tensor *share = counts ? msa_div(grad, counts) : NULL;
        return share ? at_places(c, share) : NULL;
    }
    msa_auto msa_tensor *share = NULL, *mine = NULL, *theirs = NULL;
    if (extreme_shares(c, grad, self, source, result, &share, &mine, &theirs) != 0) return NULL;
    msa_auto msa_tensor *wide = at_places(c, share);
    return wide ? msa_mul(theirs, wide) : NULL;
}

msa_tensor *scatter_reduce_self_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, const char *reduce,
                                         bool include_self, msa_tensor *result) {
    return self_gradient(&(fold_call){true, dim, index, reduce, include_self}, grad, self, src, result);
}

msa_tensor *scatter_reduce_src_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, const char *reduce,
                                        bool include_self, msa_tensor *result) {
    return source_gradient(&(fold_call){true, dim, index, reduce, include_self}, grad, self, src, result);
}

msa_tensor *index_reduce_self_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, const char *reduce,
                                       bool include_self, msa_tensor *result) {
    return self_gradient(&(fold_call){false, dim, index, reduce, include_self}, grad, self, source, result);
}

msa_tensor *index_reduce_source_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, const char *reduce,
                                         bool include_self, msa_tensor *result) {
    msa_auto msa_tensor *g = source_gradient(&(fold_call){false, dim, index, reduce, include_self}, grad, self, source, result);
    return g ? msa_reshape(g, msa_sizes(source)) : NULL;
}

msa_tensor *put_self_gradient(msa_tensor *grad, msa_tensor *index, bool accumulate) {
    if (accumulate) return msa_tensor_retain(grad);
    msa_auto msa_tensor *zeros = zeros_shaped(msa_sizes(index), (msa_dtype)grad->dtype);
    return zeros ? msa_put(grad, index, zeros, false) : NULL;
}

msa_tensor *put_source_gradient(msa_tensor *grad, msa_tensor *index, msa_ints sizes) {
    msa_auto msa_tensor *taken = msa_take_elements(grad, index);
    return taken ? msa_reshape(taken, sizes) : NULL;
}
