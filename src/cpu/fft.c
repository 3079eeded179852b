/* Discrete Fourier transforms over dimensions of tensors: complex, from real lines, and to real lines.
 *
 * A transform over several dimensions is one pass for each. A pass takes the lines along its dimension in groups, copies them
 * into planes, transforms them (fft_transform.h) and writes them to the result, which may be what it read. */
#include <math.h>
#include <pthread.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "cpu/vector.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

enum {
    MSA_FFT_STAGES = 64, /* more than factors of an int64 */
    MSA_FFT_PRIME = 31,  /* the largest prime factor that has a stage of its own */
    MSA_FFT_BLOCK = 16,  /* elements of a line copied at a time, for lines far apart and for neighbours alike */
    MSA_FFT_LANES = 16,  /* lines in a group at most */
    MSA_FFT_PLANS = 32,  /* plans kept */
};

typedef enum { MSA_FFT_COMPLEX, MSA_FFT_REAL_IN, MSA_FFT_REAL_OUT } msa_fft_kind;

typedef struct {
    msa_fft_kind kind;
    bool forward;              /* the sign, of complex lines */
    bool whole;                /* from real lines: also the half that follows by symmetry */
    double scale;              /* multiplies the result */
    int64_t in_step, out_step; /* between elements of a line */
} msa_fft_pass;

/* exp(-2 pi i k / n), 0 <= k < n, from angles of at most pi / 4. */
static void unit_root(int64_t k, int64_t n, double *re, double *im) {
    int64_t turns = 2 * k; /* in units of pi / n */
    double sign_re = 1, sign_im = -1;
    if (turns > n) {
        turns = 2 * n - turns;
        sign_im = 1;
    }
    if (2 * turns > n) {
        turns = n - turns;
        sign_re = -1;
    }
    double c, s;
    if (4 * turns > n) {
        double angle = M_PI * (double)(n - 2 * turns) / (double)(2 * n);
        c = sin(angle);
        s = cos(angle);
    } else {
        double angle = M_PI * (double)turns / (double)n;
        c = cos(angle);
        s = sin(angle);
    }
    *re = sign_re * c;
    *im = sign_im * s;
}

static bool is_smooth(int64_t n) {
    for (int r = 2; r <= MSA_FFT_PRIME; r++)
        while (n % r == 0) n /= r;
    return n == 1;
}

/* The least number of at least n with factors 2, 3 and 5 only. */
static int64_t smooth_length(int64_t n) {
    int64_t best = 1;
    while (best < n) best *= 2;
    for (int64_t five = 1; five < best; five *= 5)
        for (int64_t three = five; three < best; three *= 3) {
            int64_t length = three;
            while (length < n) length *= 2;
            if (length < best) best = length;
        }
    return best;
}

#define REAL float
#define NAME(x) x##_float
#include "cpu/fft_transform.h"
#undef REAL
#undef NAME
#define REAL double
#define NAME(x) x##_double
#include "cpu/fft_transform.h"
#undef REAL
#undef NAME

/* Plans used lately; one in use by a running transform is not thrown away. */
typedef struct {
    int64_t n;
    bool real, wide; /* wide: double */
    int users;
    uint64_t used; /* when, for the choice of what to drop */
    void *plan;
} plan_slot;
static plan_slot plans[MSA_FFT_PLANS];
static uint64_t plan_clock;
static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;

static void plan_drop(void *plan, bool wide) { wide ? plan_free_double(plan) : plan_free_float(plan); }

static void *plan_make(int64_t n, bool real, bool wide) {
    if (wide) return real ? plan_real_double(n) : plan_new_double(n);
    return real ? plan_real_float(n) : plan_new_float(n);
}

/* A plan, and the slot that holds it or -1 when it is the caller's own. */
static void *plan_borrow(int64_t n, bool real, bool wide, int *slot) {
    void *plan = NULL;
    *slot = -1;
    pthread_mutex_lock(&plan_lock);
    for (int i = 0; i < MSA_FFT_PLANS && !plan; i++)
        if (plans[i].plan && plans[i].n == n && plans[i].real == real && plans[i].wide == wide) {
            plans[i].users++;
            plans[i].used = ++plan_clock;
            plan = plans[i].plan;
            *slot = i;
        }
    pthread_mutex_unlock(&plan_lock);
    return plan ? plan : plan_make(n, real, wide);
}

/* Gives a plan back; one that has no slot takes the place of the longest unused. */
static void plan_return(void *plan, int64_t n, bool real, bool wide, int slot) {
    void *drop = slot < 0 ? plan : NULL;
    bool drop_wide = wide;
    pthread_mutex_lock(&plan_lock);
    if (slot >= 0) plans[slot].users--;
    else {
        int oldest = -1;
        bool known = false;
        for (int i = 0; i < MSA_FFT_PLANS; i++) {
            if (plans[i].plan && plans[i].n == n && plans[i].real == real && plans[i].wide == wide) known = true;
            if (plans[i].users == 0 && (oldest < 0 || plans[i].used < plans[oldest].used)) oldest = i;
        }
        if (!known && oldest >= 0) {
            drop = plans[oldest].plan;
            drop_wide = plans[oldest].wide;
            plans[oldest] = (plan_slot){n, real, wide, 0, ++plan_clock, plan};
        }
    }
    pthread_mutex_unlock(&plan_lock);
    if (drop) plan_drop(drop, drop_wide);
}

/* Where lines number first, first + 1, ... begin in both tensors; lines are counted over all dimensions but `dim`. */
static void line_starts(const msa_tensor *in, const msa_tensor *out, int dim, int64_t first, int64_t count, int64_t *from, int64_t *to) {
    int64_t index[MSA_MAX_DIMS] = {0}, a = 0, b = 0;
    for (int d = in->ndim - 1; d >= 0; d--) {
        if (d == dim) continue;
        index[d] = first % in->sizes[d];
        first /= in->sizes[d];
        a += index[d] * in->strides[d];
        b += index[d] * out->strides[d];
    }
    for (int64_t l = 0; l < count; l++) {
        from[l] = a;
        to[l] = b;
        for (int d = in->ndim - 1; d >= 0; d--) {
            if (d == dim) continue;
            a += in->strides[d];
            b += out->strides[d];
            if (++index[d] < in->sizes[d]) break;
            a -= in->sizes[d] * in->strides[d];
            b -= in->sizes[d] * out->strides[d];
            index[d] = 0;
        }
    }
}

/* One pass along `dim` over lines of n elements, from `in` to `out` (which may be the same tensor). */
static int transform(const msa_tensor *in, msa_tensor *out, int dim, int64_t n, msa_fft_pass pass) {
    int64_t lines = 1;
    for (int d = 0; d < in->ndim; d++)
        if (d != dim) lines *= in->sizes[d];
    if (lines == 0) return 0;
    const void *from = msa_data(in);
    void *to = msa_data(out);
    if (!from || !to) return -1;
    pass.in_step = in->strides[dim];
    pass.out_step = out->strides[dim];
    bool wide = msa_dtype_real((msa_dtype)in->dtype) == MSA_FLOAT64, real = pass.kind != MSA_FFT_COMPLEX;
    int slot;
    void *plan = plan_borrow(n, real, wide, &slot);
    if (!plan) return -1;
    int64_t lanes = MSA_FFT_LANES, per_lane = wide ? pass_work_double(plan, pass.kind) : pass_work_float(plan, pass.kind);
    while (lanes > 4 && lanes * n > 16384) lanes /= 2;
    if (lanes > lines) lanes = lines;
    int64_t groups = (lines + lanes - 1) / lanes;
    int threads = msa_threads_for(lines * n * 8, MSA_GRAIN);
    if (threads > groups) threads = (int)groups;
    size_t bytes = (size_t)(per_lane * lanes) * (wide ? sizeof(double) : sizeof(float)) + 64;
    bytes = (bytes + 63) / 64 * 64;
    char *memory = msa_data_alloc(bytes * (size_t)threads);
    if (memory) {
#pragma omp parallel num_threads(threads)
        {
            int64_t begin, end, starts[MSA_FFT_LANES], ends[MSA_FFT_LANES];
            msa_share(groups, omp_get_num_threads(), omp_get_thread_num(), &begin, &end);
            void *own = memory + bytes * (size_t)omp_get_thread_num();
            for (int64_t g = begin; g < end; g++) {
                int64_t first = g * lanes, count = lines - first < lanes ? lines - first : lanes;
                line_starts(in, out, dim, first, count, starts, ends);
                if (wide) group_double(plan, &pass, from, to, starts, ends, count, own);
                else group_float(plan, &pass, from, to, starts, ends, count, own);
            }
        }
    }
    msa_data_free(memory);
    plan_return(plan, n, real, wide, slot);
    return memory ? 0 : -1;
}

/* Normalisation modes of the entry points: nothing, 1 / sqrt(N), 1 / N, where N is the number of points transformed. */
static double scale_of(int64_t mode, double points) { return mode == 1 ? 1 / sqrt(points) : mode == 2 ? 1 / points : 1; }

/* `dim` wrapped into dims, all different. */
static int read_dims(const char *op, const msa_tensor *self, msa_ints dim, int *dims) {
    bool seen[MSA_MAX_DIMS] = {false};
    for (int64_t i = 0; i < dim.n; i++) {
        int d = self->ndim ? msa_wrap_dim(op, dim.data[i], self->ndim) : msa_fail(MSA_INDEX_ERROR, "%s: a tensor without dimensions", op);
        if (d < 0) return -1;
        if (seen[d]) return msa_fail(MSA_RUNTIME_ERROR, "FFT dims must be unique");
        if (self->sizes[d] == 0) return msa_fail(MSA_RUNTIME_ERROR, "Invalid number of data points (0) specified");
        seen[d] = true;
        dims[i] = d;
    }
    return 0;
}

static double points_of(const msa_tensor *t, const int *dims, int64_t n) {
    double points = 1;
    for (int64_t i = 0; i < n; i++) points *= (double)t->sizes[dims[i]];
    return points;
}

msa_tensor *fft_c2c_cpu(msa_tensor *self, msa_ints dim, int64_t normalization, bool forward) {
    int dims[MSA_MAX_DIMS];
    if (!msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "_fft_c2c expects a complex input tensor, but got %s", msa_dtype_type_name((msa_dtype)self->dtype));
    if (read_dims("_fft_c2c", self, dim, dims) != 0) return NULL;
    if (dim.n == 0) return msa_clone_values(self);
    msa_auto msa_tensor *out = msa_tensor_new(msa_sizes(self), (msa_dtype)self->dtype);
    if (!out) return NULL;
    double scale = scale_of(normalization, points_of(self, dims, dim.n));
    for (int64_t i = dim.n - 1; i >= 0; i--) {
        msa_fft_pass pass = {MSA_FFT_COMPLEX, .forward = forward, .scale = i == 0 ? scale : 1};
        if (transform(i == dim.n - 1 ? self : out, out, dims[i], out->sizes[dims[i]], pass) != 0) return NULL;
    }
    return msa_take(out);
}

msa_tensor *fft_r2c_cpu(msa_tensor *self, msa_ints dim, int64_t normalization, bool onesided) {
    int dims[MSA_MAX_DIMS];
    msa_dtype dtype = (msa_dtype)self->dtype;
    if (dtype != MSA_FLOAT32 && dtype != MSA_FLOAT64)
        return msa_fail_null(MSA_RUNTIME_ERROR, "_fft_r2c expects a real input tensor, but got %s", msa_dtype_type_name(dtype));
    if (dim.n < 1) return msa_fail_null(MSA_RUNTIME_ERROR, "_fft_r2c must transform at least one axis");
    if (read_dims("_fft_r2c", self, dim, dims) != 0) return NULL;
    int64_t sizes[MSA_MAX_DIMS], n = self->sizes[dims[dim.n - 1]];
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    if (onesided) sizes[dims[dim.n - 1]] = n / 2 + 1;
    msa_auto msa_tensor *out = msa_tensor_new((msa_ints){sizes, self->ndim}, msa_dtype_complex(dtype));
    if (!out) return NULL;
    double scale = scale_of(normalization, points_of(self, dims, dim.n));
    msa_fft_pass pass = {MSA_FFT_REAL_IN, .whole = !onesided, .scale = dim.n == 1 ? scale : 1};
    if (transform(self, out, dims[dim.n - 1], n, pass) != 0) return NULL;
    for (int64_t i = dim.n - 2; i >= 0; i--) {
        pass = (msa_fft_pass){MSA_FFT_COMPLEX, .forward = true, .scale = i == 0 ? scale : 1};
        if (transform(out, out, dims[i], out->sizes[dims[i]], pass) != 0) return NULL;
    }
    return msa_take(out);
}

msa_tensor *fft_c2r_cpu(msa_tensor *self, msa_ints dim, int64_t normalization, int64_t last_dim_size) {
    int dims[MSA_MAX_DIMS];
    msa_dtype dtype = (msa_dtype)self->dtype;
    if (!msa_is_complex(dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "_fft_c2r expects a complex input tensor, but got %s", msa_dtype_type_name(dtype));
    if (dim.n < 1) return msa_fail_null(MSA_RUNTIME_ERROR, "_fft_c2r must transform at least one axis");
    if (read_dims("_fft_c2r", self, dim, dims) != 0) return NULL;
    int last = dims[dim.n - 1];
    if (last_dim_size < 1 || self->sizes[last] < last_dim_size / 2 + 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Invalid number of data points (%lld) specified", (long long)last_dim_size);
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    sizes[last] = last_dim_size;
    msa_auto msa_tensor *out = msa_tensor_new((msa_ints){sizes, self->ndim}, msa_dtype_real(dtype));
    msa_auto msa_tensor *spectrum = NULL;
    if (!out) return NULL;
    double scale = scale_of(normalization, points_of(out, dims, dim.n));
    for (int64_t i = 0; i < dim.n - 1; i++) {
        if (!spectrum && !(spectrum = msa_tensor_new(msa_sizes(self), dtype))) return NULL;
        msa_fft_pass pass = {MSA_FFT_COMPLEX, .scale = 1};
        if (transform(i == 0 ? self : spectrum, spectrum, dims[i], self->sizes[dims[i]], pass) != 0) return NULL;
    }
    msa_fft_pass pass = {MSA_FFT_REAL_OUT, .scale = scale};
    return transform(spectrum ? spectrum : self, out, last, last_dim_size, pass) == 0 ? msa_take(out) : NULL;
}
