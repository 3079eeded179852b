/* torch.fft: what stands between its functions and the three transforms of src/cpu/fft.c. */
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

enum { NO_SCALE, BY_ROOT, BY_N };

static int norm_mode(const char *norm, bool forward) {
    if (!norm || strcmp(norm, "backward") == 0) return forward ? NO_SCALE : BY_N;
    if (strcmp(norm, "forward") == 0) return forward ? BY_N : NO_SCALE;
    if (strcmp(norm, "ortho") == 0) return BY_ROOT;
    return msa_fail(MSA_RUNTIME_ERROR, "Invalid normalization mode: \"%s\"", norm);
}

/* self as float32, float64 or complex; complex whatever it was, where `complex`. */
static msa_tensor *promoted(msa_tensor *self, bool complex) {
    msa_dtype dtype = (msa_dtype)self->dtype;
    if (msa_is_integral(dtype, true)) dtype = msa_default_dtype();
    if (!msa_is_complex(dtype) && dtype != MSA_FLOAT32 && dtype != MSA_FLOAT64)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Unsupported dtype %s", msa_dtype_type_name(dtype));
    return msa_to_dtype(self, complex ? msa_dtype_complex(dtype) : dtype, false, false, -1);
}

static int no_points(int64_t n) { return msa_fail(MSA_RUNTIME_ERROR, "Invalid number of data points (%lld) specified", (long long)n); }

/* t with the sizes along dims cut or filled up with zeros. */
static msa_tensor *resized(msa_tensor *t, const int64_t *dims, const int64_t *sizes, int64_t n) {
    int64_t pad[2 * MSA_MAX_DIMS] = {0};
    bool longer = false;
    msa_auto msa_tensor *result = msa_tensor_retain(t);
    for (int64_t i = 0; i < n; i++) {
        int64_t have = t->sizes[dims[i]];
        if (sizes[i] > have) {
            longer = true;
            pad[2 * (t->ndim - 1 - dims[i]) + 1] = sizes[i] - have;
        } else if (sizes[i] < have) {
            msa_tensor *cut = msa_narrow(result, dims[i], 0, sizes[i]);
            if (!cut) return NULL;
            msa_tensor_release(result);
            result = cut;
        }
    }
    return longer ? msa_constant_pad_nd(result, (msa_ints){pad, 2 * t->ndim}, msa_int(0)) : msa_take(result);
}

/* The dimension of a 1-D transform, and its length: n, or what there is (twice less one for the way back to real lines). */
static int line_of(const char *name, msa_tensor *self, msa_opt_int n, int64_t dim, bool to_real, int64_t *length) {
    int d = msa_wrap_dim(name, dim, self->ndim);
    if (d < 0) return -1;
    int64_t have = self->ndim ? self->sizes[d] : 0;
    *length = n.has ? n.v : to_real ? 2 * (have - 1) : have;
    if (*length < 1) return no_points(*length);
    return self->ndim ? d : no_points(0);
}

static msa_tensor *complex_to_complex(const char *name, msa_tensor *input, msa_opt_int n, int64_t dim, const char *norm, bool forward) {
    int64_t length, d = line_of(name, input, n, dim, false, &length);
    msa_auto msa_tensor *x = d < 0 ? NULL : resized(input, &d, &length, 1);
    int mode = x ? norm_mode(norm, forward) : -1;
    return mode < 0 ? NULL : msa__fft_c2c(x, MSA_INTS(d), mode, forward);
}

/* The transform of real lines, its conjugate for the other sign. */
static msa_tensor *real_to_complex(const char *name, msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm, bool forward, bool onesided) {
    if (msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s expects a real input tensor, but got %s", name, msa_dtype_type_name((msa_dtype)self->dtype));
    msa_auto msa_tensor *input = promoted(self, false);
    int64_t length, d = input ? line_of(name, input, n, dim, false, &length) : -1;
    msa_auto msa_tensor *x = d < 0 ? NULL : resized(input, &d, &length, 1);
    int mode = x ? norm_mode(norm, forward) : -1;
    msa_auto msa_tensor *y = mode < 0 ? NULL : msa__fft_r2c(x, MSA_INTS(d), mode, onesided);
    return !y || forward ? msa_take(y) : msa_conj(y);
}

static msa_tensor *complex_to_real(const char *name, msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm, bool forward) {
    msa_auto msa_tensor *input = promoted(self, true);
    int64_t length, d = input ? line_of(name, input, n, dim, true, &length) : -1;
    int64_t half = d < 0 ? 0 : length / 2 + 1;
    msa_auto msa_tensor *x = d < 0 ? NULL : resized(input, &d, &half, 1);
    int mode = x ? norm_mode(norm, forward) : -1;
    msa_auto msa_tensor *y = mode < 0 ? NULL : forward ? msa_conj(x) : msa_tensor_retain(x);
    return y ? msa__fft_c2r(y, MSA_INTS(d), mode, length) : NULL;
}

msa_tensor *fft_fft_values(msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm) {
    return msa_is_complex((msa_dtype)self->dtype) ? complex_to_complex("fft", self, n, dim, norm, true)
                                                  : real_to_complex("fft", self, n, dim, norm, true, false);
}

msa_tensor *fft_ifft_values(msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm) {
    return msa_is_complex((msa_dtype)self->dtype) ? complex_to_complex("ifft", self, n, dim, norm, false)
                                                  : real_to_complex("ifft", self, n, dim, norm, false, false);
}

msa_tensor *fft_rfft_values(msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm) {
    return real_to_complex("rfft", self, n, dim, norm, true, true);
}

msa_tensor *fft_irfft_values(msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm) {
    return complex_to_real("irfft", self, n, dim, norm, false);
}

msa_tensor *fft_hfft_values(msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm) {
    return complex_to_real("hfft", self, n, dim, norm, true);
}

msa_tensor *fft_ihfft_values(msa_tensor *self, msa_opt_int n, int64_t dim, const char *norm) {
    return real_to_complex("ihfft", self, n, dim, norm, false, true);
}

/* The dimensions of a transform, and the sizes that its input gets along them. */
typedef struct {
    int64_t n;
    int64_t dims[MSA_MAX_DIMS], sizes[MSA_MAX_DIMS];
} extent;

static int read_extent(const char *name, const msa_tensor *self, msa_ints s, msa_ints dim, extent *e) {
    bool seen[MSA_MAX_DIMS] = {false};
    if (dim.n > MSA_MAX_DIMS) return msa_fail(MSA_RUNTIME_ERROR, "FFT dims must be unique");
    for (int64_t i = 0; i < dim.n; i++) {
        int d = msa_wrap_dim(name, dim.data[i], self->ndim);
        if (d < 0) return -1;
        e->dims[i] = d;
    }
    for (int64_t i = 0; i < dim.n; i++) {
        if (seen[e->dims[i]]) return msa_fail(MSA_RUNTIME_ERROR, "FFT dims must be unique");
        seen[e->dims[i]] = true;
    }
    if (s.n >= 0 && dim.n >= 0 && s.n != dim.n)
        return msa_fail(MSA_RUNTIME_ERROR, "When given, dim and shape arguments must have the same length");
    if (s.n > self->ndim)
        return msa_fail(MSA_RUNTIME_ERROR, "Got shape with %lld values but input tensor only has %d dimensions.", (long long)s.n, self->ndim);
    e->n = s.n >= 0 ? s.n : dim.n >= 0 ? dim.n : self->ndim;
    if (e->n > 0 && self->ndim == 0) return no_points(0);
    for (int64_t i = 0; i < e->n; i++) {
        if (dim.n < 0) e->dims[i] = self->ndim - e->n + i;
        e->sizes[i] = s.n >= 0 && s.data[i] != -1 ? s.data[i] : self->sizes[e->dims[i]];
    }
    for (int64_t i = 0; i < e->n; i++)
        if (e->sizes[i] < 1) return no_points(e->sizes[i]);
    return 0;
}

static int refuse_empty(const char *name, const extent *e) {
    return e->n ? 0 : msa_fail(MSA_RUNTIME_ERROR, "%s must transform at least one axis", name);
}

/* The same for transforms to real tensors: the last size becomes what the input needs, `length` is the result's. */
static int read_real_extent(const char *name, const msa_tensor *self, msa_ints s, msa_ints dim, extent *e, int64_t *length) {
    if (read_extent(name, self, s, dim, e) != 0 || refuse_empty(name, e) != 0) return -1;
    int64_t last = e->n - 1;
    *length = s.n < 0 || s.data[s.n - 1] == -1 ? 2 * (self->sizes[e->dims[last]] - 1) : e->sizes[last];
    if (*length < 1) return no_points(*length);
    e->sizes[last] = *length / 2 + 1;
    return 0;
}

static msa_tensor *complex_many(const char *name, msa_tensor *self, msa_ints s, msa_ints dim, const char *norm, bool forward) {
    extent e;
    if (self->ndim == 0 && dim.n < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "ndim must be >= 1");
    if (read_extent(name, self, s, dim, &e) != 0) return NULL;
    msa_auto msa_tensor *input = promoted(self, true);
    msa_auto msa_tensor *x = input ? resized(input, e.dims, e.sizes, e.n) : NULL;
    int mode = x ? norm_mode(norm, forward) : -1;
    return mode < 0 ? NULL : msa__fft_c2c(x, (msa_ints){e.dims, e.n}, mode, forward);
}

msa_tensor *fft_fftn_values(msa_tensor *self, msa_ints s, msa_ints dim, const char *norm) {
    return complex_many("fftn", self, s, dim, norm, true);
}

msa_tensor *fft_ifftn_values(msa_tensor *self, msa_ints s, msa_ints dim, const char *norm) {
    return complex_many("ifftn", self, s, dim, norm, false);
}

msa_tensor *fft_rfftn_values(msa_tensor *self, msa_ints s, msa_ints dim, const char *norm) {
    extent e;
    if (msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "rfftn expects a real-valued input tensor, but got %s", msa_dtype_type_name((msa_dtype)self->dtype));
    if (read_extent("rfftn", self, s, dim, &e) != 0 || refuse_empty("rfftn", &e) != 0) return NULL;
    msa_auto msa_tensor *input = promoted(self, false);
    msa_auto msa_tensor *x = input ? resized(input, e.dims, e.sizes, e.n) : NULL;
    int mode = x ? norm_mode(norm, true) : -1;
    return mode < 0 ? NULL : msa__fft_r2c(x, (msa_ints){e.dims, e.n}, mode, true);
}

msa_tensor *fft_irfftn_values(msa_tensor *self, msa_ints s, msa_ints dim, const char *norm) {
    extent e;
    int64_t length;
    if (read_real_extent("irfftn", self, s, dim, &e, &length) != 0) return NULL;
    msa_auto msa_tensor *input = promoted(self, true);
    msa_auto msa_tensor *x = input ? resized(input, e.dims, e.sizes, e.n) : NULL;
    int mode = x ? norm_mode(norm, false) : -1;
    return mode < 0 ? NULL : msa__fft_c2r(x, (msa_ints){e.dims, e.n}, mode, length);
}

/* Hermitian symmetry is along the last dimension; the others are transformed with the sign of `fft`. */
msa_tensor *fft_hfftn_values(msa_tensor *self, msa_ints s, msa_ints dim, const char *norm) {
    extent e;
    int64_t length;
    if (read_real_extent("hfftn", self, s, dim, &e, &length) != 0) return NULL;
    msa_auto msa_tensor *input = promoted(self, true);
    msa_auto msa_tensor *x = input ? resized(input, e.dims, e.sizes, e.n) : NULL;
    int mode = x ? norm_mode(norm, true) : -1;
    msa_auto msa_tensor *y = mode < 0 ? NULL : e.n > 1 ? msa__fft_c2c(x, (msa_ints){e.dims, e.n - 1}, mode, true) : msa_tensor_retain(x);
    msa_auto msa_tensor *z = y ? msa_conj(y) : NULL;
    return z ? msa__fft_c2r(z, MSA_INTS(e.dims[e.n - 1]), mode, length) : NULL;
}

msa_tensor *fft_ihfftn_values(msa_tensor *self, msa_ints s, msa_ints dim, const char *norm) {
    extent e;
    if (msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "ihfftn expects a real input tensor, but got %s", msa_dtype_type_name((msa_dtype)self->dtype));
    if (read_extent("ihfftn", self, s, dim, &e) != 0 || refuse_empty("ihfftn", &e) != 0) return NULL;
    msa_auto msa_tensor *input = promoted(self, false);
    msa_auto msa_tensor *x = input ? resized(input, e.dims, e.sizes, e.n) : NULL;
    int mode = x ? norm_mode(norm, false) : -1;
    msa_auto msa_tensor *y = mode < 0 ? NULL : msa__fft_r2c(x, MSA_INTS(e.dims[e.n - 1]), mode, true);
    msa_auto msa_tensor *z = y ? msa_conj(y) : NULL;
    return z && e.n > 1 ? msa__fft_c2c(z, (msa_ints){e.dims, e.n - 1}, mode, false) : msa_take(z);
}

/* The half spectrum t of real lines of `length` along dim, with the rows that stand for two multiplied by factor. */
static msa_tensor *weighted(msa_tensor *t, int64_t dim, int64_t length, double factor) {
    int64_t sizes[MSA_MAX_DIMS], rows = t->sizes[dim];
    for (int d = 0; d < t->ndim; d++) sizes[d] = d == dim ? rows : 1;
    msa_dtype dtype = msa_dtype_real((msa_dtype)t->dtype);
    msa_auto msa_tensor *weights = msa_tensor_new((msa_ints){sizes, t->ndim}, dtype);
    if (!weights) return NULL;
    for (int64_t k = 0; k < rows; k++) {
        double w = k >= 1 && k <= (length - 1) / 2 ? factor : 1;
        if (dtype == MSA_FLOAT64) ((double *)weights->storage->data)[k] = w;
        else ((float *)weights->storage->data)[k] = (float)w;
    }
    return msa_mul(t, weights);
}

/* The adjoint of a transform is the transform with the other sign. Real lines want the real part of that only: half of each
 * row that stands for two is then the half spectrum of the answer. */
msa_tensor *fft_r2c_gradient(msa_tensor *grad, msa_ints sizes, msa_ints dim, int64_t normalization, bool onesided) {
    if (!onesided) {
        msa_auto msa_tensor *back = msa__fft_c2c(grad, dim, normalization, false);
        return back ? msa_real(back) : NULL;
    }
    int last = msa_wrap_dim("_fft_r2c", dim.data[dim.n - 1], grad->ndim);
    if (last < 0) return NULL;
    msa_auto msa_tensor *half = weighted(grad, last, sizes.data[last], 0.5);
    return half ? msa__fft_c2r(half, dim, normalization, sizes.data[last]) : NULL;
}

msa_tensor *fft_c2r_gradient(msa_tensor *grad, msa_ints sizes, msa_ints dim, int64_t normalization) {
    int last = msa_wrap_dim("_fft_c2r", dim.data[dim.n - 1], grad->ndim);
    msa_auto msa_tensor *spectrum = last < 0 ? NULL : msa__fft_r2c(grad, dim, normalization, true);
    msa_auto msa_tensor *whole = spectrum ? weighted(spectrum, last, grad->sizes[last], 2) : NULL;
    return whole ? resized(whole, &(int64_t){last}, &sizes.data[last], 1) : NULL;
}

/* first, first + 1, ... and from `wrap` on lower by n, all over n d. */
static msa_tensor *frequencies(const char *name, int64_t n, int64_t count, int64_t wrap, double d, msa_dtype dtype) {
    if (dtype == MSA_NO_DTYPE) dtype = msa_default_dtype();
    if (!msa_is_inexact(dtype)) return msa_fail_null(MSA_RUNTIME_ERROR, "%s requires a floating point or complex dtype", name);
    if (msa_is_complex(dtype)) return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"arange_cpu\" not implemented for '%s'", msa_dtype_type_name(dtype));
    if (count < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Trying to create tensor with negative dimension %lld: [%lld]", (long long)count, (long long)count);
    bool wide = dtype == MSA_FLOAT64;
    msa_auto msa_tensor *t = msa_tensor_new(MSA_INTS(count), wide ? dtype : MSA_FLOAT32);
    if (!t) return NULL;
    double scale = 1 / ((double)n * d);
    for (int64_t k = 0; k < count; k++) {
        int64_t step = k < wrap ? k : k - n;
        if (wide) ((double *)t->storage->data)[k] = (double)step * scale;
        else ((float *)t->storage->data)[k] = (float)step * (float)scale;
    }
    return msa_cast_values(t, dtype);
}

msa_tensor *fft_fftfreq_cpu(int64_t n, double d, msa_dtype dtype) { return frequencies("fftfreq", n, n, n - n / 2, d, dtype); }

msa_tensor *fft_rfftfreq_cpu(int64_t n, double d, msa_dtype dtype) { return frequencies("rfftfreq", n, n / 2 + 1, n / 2 + 1, d, dtype); }

/* Rolls every dimension in dim (all without it) by half its size, rounded up with `up`. */
static msa_tensor *shifted(msa_tensor *self, msa_ints dim, bool up) {
    int64_t dims[MSA_MAX_DIMS], shifts[MSA_MAX_DIMS], n = dim.n < 0 ? self->ndim : dim.n;
    if (n == 0 && dim.n < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "`shifts` required");
    if (n > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "fftshift: too many dimensions in dim");
    for (int64_t i = 0; i < n; i++) {
        int d = msa_wrap_dim("fftshift", dim.n < 0 ? i : dim.data[i], self->ndim);
        if (d < 0) return NULL;
        dims[i] = d;
        shifts[i] = self->ndim ? (self->sizes[d] + up) / 2 : 0;
    }
    return msa_roll(self, (msa_ints){shifts, n}, (msa_ints){dims, n});
}

msa_tensor *fft_fftshift_values(msa_tensor *self, msa_ints dim) { return shifted(self, dim, false); }

msa_tensor *fft_ifftshift_values(msa_tensor *self, msa_ints dim) { return shifted(self, dim, true); }
