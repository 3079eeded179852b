/* Max pooling: the values and where each came from, in the order of the input's memory: channels last (hidden or visible) stays so,
 * vectorised over channels; anything else plain.
 *
 * "Places" are positions inside the window, one byte each unless the window is larger: that is all the gradient needs. */
#include "cpu/pooling.h"

#include "base/parallel.h"
#include "cpu/layout.h"
#include "cpu/vector.h"
#include "ops/kernels.h"

/* ---- geometry --------------------------------------------------------------------------------------------------- */

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
    const int64_t span = in + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    int64_t out = (span >= 0 ? span / stride : -((-span + stride - 1) / stride)) + 1;
    if (ceil_mode && (out - 1) * stride >= in + padding) out--; /* the last window starts inside the input or the left padding */
    return out;
}

int msa_pool_plan(const char *op, msa_ints sizes, msa_ints kernel, msa_ints stride, msa_ints padding, msa_ints dilation,
                  bool ceil_mode, msa_pool *p) {
    memset(p, 0, sizeof *p);
    const int s = p->spatial = (int)kernel.n, first = 3 - s;
    if (s < 1 || s > 3 || sizes.n != s + 2 || stride.n != s || padding.n != s || dilation.n != s)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: the window's lists do not fit an input of size %s", op, msa_sizes_text(sizes));
    p->n = sizes.data[0];
    p->c = sizes.data[1];
    for (int i = 0; i < 3; i++) p->in[i] = p->out[i] = p->kernel[i] = p->stride[i] = p->dilation[i] = 1;
    for (int i = 0; i < s; i++) {
        const int64_t k = kernel.data[i], pad = padding.data[i];
        if (k <= 0) return msa_fail(MSA_RUNTIME_ERROR, "kernel size should be greater than zero, but got %s", msa_sizes_text(kernel));
        if (stride.data[i] <= 0) return msa_fail(MSA_RUNTIME_ERROR, "stride should not be zero");
        if (dilation.data[i] <= 0) return msa_fail(MSA_RUNTIME_ERROR, "dilation should be greater than zero, but got %s", msa_sizes_text(dilation));
        if (pad < 0) return msa_fail(MSA_RUNTIME_ERROR, "pad must be non-negative, but got pad: %lld", (long long)pad);
        if (k > INT32_MAX || stride.data[i] > INT32_MAX || pad > INT32_MAX || dilation.data[i] > INT32_MAX)
            return msa_fail(MSA_RUNTIME_ERROR, "%s: kernel size, stride, padding or dilation is too large", op);
        if (pad > k / 2)
            return msa_fail(MSA_RUNTIME_ERROR, "pad should be at most half of kernel size, but got pad=%lld and kernel_size=%lld", (long long)pad, (long long)k);
        p->in[first + i] = sizes.data[2 + i];
        p->kernel[first + i] = k;
        p->stride[first + i] = stride.data[i];
        p->padding[first + i] = pad;
        p->dilation[first + i] = dilation.data[i];
        p->out[first + i] = out_size(sizes.data[2 + i], k, stride.data[i], pad, dilation.data[i], ceil_mode);
    }
    for (int i = 1; i < sizes.n; i++)
        if (sizes.data[i] == 0)
            return msa_fail(MSA_RUNTIME_ERROR, "%s: Expected input's non-batch dimensions to have positive length, but the input has shape %s", op, msa_sizes_text(sizes));
    for (int i = 0; i < 3; i++)
        if (p->out[i] < 1) {
            const int64_t planes = p->c;
            return msa_fail(MSA_RUNTIME_ERROR,
                            "Given input size: (%lldx%lldx%lldx%lld). Calculated output size: (%lldx%lldx%lldx%lld). Output size is too small",
                            (long long)planes, (long long)p->in[0], (long long)p->in[1], (long long)p->in[2], (long long)planes, (long long)p->out[0],
                            (long long)p->out[1], (long long)p->out[2]);
        }
    return 0;
}

void msa_pool_out_sizes(const msa_pool *p, int64_t *sizes) {
    sizes[0] = p->n;
    sizes[1] = p->c;
    for (int i = 0; i < p->spatial; i++) sizes[2 + i] = p->out[3 - p->spatial + i];
}

/* The part of a window that lies inside the input: positions [low, high) of the kernel in each dimension, and where position 0 is. */
typedef struct {
    int64_t start[3], low[3], high[3];
} window;

static void place_window(const msa_pool *p, const int64_t *out, window *w) {
    for (int i = 0; i < 3; i++) {
        const int64_t start = out[i] * p->stride[i] - p->padding[i], d = p->dilation[i];
        w->start[i] = start;
        w->low[i] = start < 0 ? (-start + d - 1) / d : 0;
        const int64_t fit = p->in[i] - start <= 0 ? 0 : (p->in[i] - start + d - 1) / d;
        w->high[i] = fit < p->kernel[i] ? fit : p->kernel[i];
    }
}

/* Flat input position of kernel position (0, 0, 0), and of every kernel position relative to it. */
static int64_t base_of(const msa_pool *p, const window *w) { return (w->start[0] * p->in[1] + w->start[1]) * p->in[2] + w->start[2]; }

static void fill_offsets(const msa_pool *p, int64_t *offsets) {
    for (int64_t d = 0; d < p->kernel[0]; d++)
        for (int64_t h = 0; h < p->kernel[1]; h++)
            for (int64_t w = 0; w < p->kernel[2]; w++)
                *offsets++ = (d * p->dilation[0] * p->in[1] + h * p->dilation[1]) * p->in[2] + w * p->dilation[2];
}

static void split_position(const msa_pool *p, int64_t at, int64_t *out) {
    out[2] = at % p->out[2];
    out[1] = at / p->out[2] % p->out[1];
    out[0] = at / p->out[2] / p->out[1];
}

/* A dilated window can step over the whole input. */
static int check_windows(const msa_pool *p) {
    for (int d = 0; d < 3; d++)
        for (int64_t o = 0; o < p->out[d]; o++) {
            const int64_t at[3] = {d == 0 ? o : 0, d == 1 ? o : 0, d == 2 ? o : 0};
            window w;
            place_window(p, at, &w);
            if (w.low[d] >= w.high[d]) return msa_fail(MSA_RUNTIME_ERROR, "max_pool: a window lies outside the input");
        }
    return 0;
}

/* Kernel positions inside the input, in order. */
static int inside(const msa_pool *p, const window *w, int32_t *positions) {
    int n = 0;
    for (int64_t d = w->low[0]; d < w->high[0]; d++)
        for (int64_t h = w->low[1]; h < w->high[1]; h++)
            for (int64_t x = w->low[2]; x < w->high[2]; x++) positions[n++] = (int32_t)((d * p->kernel[1] + h) * p->kernel[2] + x);
    return n;
}

/* ---- loops ------------------------------------------------------------------------------------------------------ */

typedef int32_t v8i __attribute__((vector_size(32)));
typedef int64_t v4l __attribute__((vector_size(32)));
typedef uint8_t v8b __attribute__((vector_size(8)));
typedef uint8_t v4b __attribute__((vector_size(4)));
typedef int32_t v4i __attribute__((vector_size(16)));

/* Channels last: one output position, all channels. Vectors by hand: the compiler does not keep the two running rows in
 * registers otherwise. V holds LANES of T, M integers as wide. */
#define LAST(NAME, T, P, LOWEST, V, M, LANES, B) \
    MSA_VECTOR static void NAME##_last(int64_t c, int n, const T *image, const int64_t *at, const int32_t *positions, T *best, P *place) { \
        int64_t i = 0; \
        for (; i + LANES <= c; i += LANES) { \
            V top; \
            M from; \
            memcpy(&top, image + at[0] + i, sizeof top); \
            for (int j = 0; j < LANES; j++) from[j] = positions[0]; \
            for (int k = 1; k < n; k++) { \
                V row; \
                memcpy(&row, image + at[k] + i, sizeof row); \
                const M take = (M)(row > top) | (M)(row != row), position = (M){0} + positions[k]; \
                top = (V)(((M)row & take) | ((M)top & ~take)); \
                from = (position & take) | (from & ~take); \
            } \
            const B places = __builtin_convertvector(from, B); \
            memcpy(best + i, &top, sizeof top); \
            memcpy(place + i, &places, sizeof places); \
        } \
        for (; i < c; i++) { \
            T top = image[at[0] + i]; \
            int32_t from = positions[0]; \
            for (int k = 1; k < n; k++) { \
                const T v = image[at[k] + i]; \
                if (v > top || v != v) { \
                    top = v; \
                    from = positions[k]; \
                } \
            } \
            best[i] = top; \
            place[i] = (P)from; \
        } \
    } \
    MSA_VECTOR static void NAME##_last_back(int64_t c, int n, T *image, const int64_t *at, const int32_t *positions, const T *grad, \
                                            const P *place) { \
        for (int k = 0; k < n; k++) { \
            T *row = image + at[k]; \
            const int32_t position = positions[k]; \
            for (int64_t i = 0; i < c; i++) row[i] += (int32_t)place[i] == position ? grad[i] : 0; \
        } \
    } \
    /* One (n, c) plane. */ \
    static void NAME##_plain(const msa_pool *p, const int64_t *offsets, const T *plane, T *best, P *place) { \
        int64_t o[3]; \
        window w; \
        for (o[0] = 0; o[0] < p->out[0]; o[0]++) \
            for (o[1] = 0; o[1] < p->out[1]; o[1]++) \
                for (o[2] = 0; o[2] < p->out[2]; o[2]++) { \
                    place_window(p, o, &w); \
                    const T *base = plane + base_of(p, &w); \
                    T top = LOWEST; \
                    int64_t from = (w.low[0] * p->kernel[1] + w.low[1]) * p->kernel[2] + w.low[2]; \
                    for (int64_t d = w.low[0]; d < w.high[0]; d++) \
                        for (int64_t h = w.low[1]; h < w.high[1]; h++) \
                            for (int64_t x = w.low[2]; x < w.high[2]; x++) { \
                                const int64_t k = (d * p->kernel[1] + h) * p->kernel[2] + x; \
                                const T v = base[offsets[k]]; \
                                if (v > top || v != v) { \
                                    top = v; \
                                    from = k; \
                                } \
                            } \
                    *best++ = top; \
                    *place++ = (P)from; \
                } \
    } \
    static void NAME##_run(const msa_pool *p, const int64_t *offsets, bool last, const T *in, T *best, P *place) { \
        const int64_t outs = msa_volume(p->out), ins = msa_volume(p->in), window_size = msa_volume(p->kernel); \
        const int threads = msa_threads_for(p->n * p->c * outs * window_size, MSA_GRAIN); \
        if (!last) { \
            _Pragma("omp parallel for num_threads(threads)") for (int64_t t = 0; t < p->n * p->c; t++) \
                NAME##_plain(p, offsets, in + t * ins, best + t * outs, place + t * outs); \
            return; \
        } \
        _Pragma("omp parallel for num_threads(threads)") for (int64_t t = 0; t < p->n * p->out[0] * p->out[1]; t++) { \
            int64_t at_stack[64], o[3]; \
            int32_t positions_stack[64]; \
            int64_t *at = window_size <= 64 ? at_stack : malloc(sizeof *at * (size_t)window_size); \
            int32_t *positions = window_size <= 64 ? positions_stack : malloc(sizeof *positions * (size_t)window_size); \
            const int64_t image = t / (p->out[0] * p->out[1]), first = t * p->out[2]; \
            for (int64_t x = 0; x < p->out[2] && at && positions; x++) { \
                window w; \
                split_position(p, first + x - image * outs, o); \
                place_window(p, o, &w); \
                const int n = inside(p, &w, positions); \
                for (int k = 0; k < n; k++) at[k] = (base_of(p, &w) + offsets[positions[k]]) * p->c; \
                NAME##_last(p->c, n, in + image * ins * p->c, at, positions, best + (first + x) * p->c, place + (first + x) * p->c); \
            } \
            if (window_size > 64) { \
                free(at); \
                free(positions); \
            } \
        } \
    } \
    /* grad_in is cleared here. */ \
    static void NAME##_back(const msa_pool *p, const int64_t *offsets, bool last, const T *grad, const P *place, T *grad_in) { \
        const int64_t outs = msa_volume(p->out), ins = msa_volume(p->in), window_size = msa_volume(p->kernel); \
        const int threads = msa_threads_for(p->n * p->c * ins, MSA_GRAIN / 4); \
        _Pragma("omp parallel for num_threads(threads)") for (int64_t t = 0; t < (last ? p->n : p->n * p->c); t++) { \
            const int64_t wide = last ? p->c : 1; \
            T *image = grad_in + t * ins * wide; \
            memset(image, 0, sizeof(T) * (size_t)(ins * wide)); \
            int64_t at_stack[64], o[3]; \
            int32_t positions_stack[64]; \
            int64_t *at = window_size <= 64 ? at_stack : malloc(sizeof *at * (size_t)window_size); \
            int32_t *positions = window_size <= 64 ? positions_stack : malloc(sizeof *positions * (size_t)window_size); \
            for (int64_t x = 0; x < outs && at && positions; x++) { \
                window w; \
                split_position(p, x, o); \
                place_window(p, o, &w); \
                const int64_t out = (t * outs + x) * wide; \
                if (!last) { \
                    image[base_of(p, &w) + offsets[place[out]]] += grad[out]; \
                    continue; \
                } \
                const int n = inside(p, &w, positions); \
                for (int k = 0; k < n; k++) at[k] = (base_of(p, &w) + offsets[positions[k]]) * p->c; \
                NAME##_last_back(p->c, n, image, at, positions, grad + out, place + out); \
            } \
            if (window_size > 64) { \
                free(at); \
                free(positions); \
            } \
        } \
    } \
    static void NAME##_gather(const msa_pool *p, const int64_t *offsets, bool last, const T *in, const P *place, T *out) { \
        const int64_t outs = msa_volume(p->out), ins = msa_volume(p->in), wide = last ? p->c : 1; \
        for (int64_t t = 0; t < (last ? p->n : p->n * p->c); t++) \
            for (int64_t x = 0; x < outs; x++) { \
                window w; \
                int64_t o[3]; \
                split_position(p, x, o); \
                place_window(p, o, &w); \
                for (int64_t i = 0; i < wide; i++) { \
                    const int64_t at = (t * outs + x) * wide + i; \
                    out[at] = in[(t * ins + base_of(p, &w) + offsets[place[at]]) * wide + i]; \
                } \
            } \
    }
LAST(f32_u8, float, uint8_t, -INFINITY, msa_v8f, v8i, 8, v8b)
LAST(f64_u8, double, uint8_t, -INFINITY, msa_v4d, v4l, 4, v4b)
LAST(i64_u8, int64_t, uint8_t, INT64_MIN, v4l, v4l, 4, v4b)
LAST(f32_i32, float, int32_t, -INFINITY, msa_v8f, v8i, 8, v8i)
LAST(f64_i32, double, int32_t, -INFINITY, msa_v4d, v4l, 4, v4i)
LAST(i64_i32, int64_t, int32_t, INT64_MIN, v4l, v4l, 4, v4i)

#define DISPATCH(STEP, TYPE, BYTES, ...) \
    do { \
        if (BYTES) { \
            if (TYPE == MSA_FLOAT32) f32_u8_##STEP(__VA_ARGS__); \
            else if (TYPE == MSA_FLOAT64) f64_u8_##STEP(__VA_ARGS__); \
            else i64_u8_##STEP(__VA_ARGS__); \
        } else if (TYPE == MSA_FLOAT32) f32_i32_##STEP(__VA_ARGS__); \
        else if (TYPE == MSA_FLOAT64) f64_i32_##STEP(__VA_ARGS__); \
        else i64_i32_##STEP(__VA_ARGS__); \
    } while (0)

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

static int computing_type(const char *op, msa_dtype d, msa_dtype *type) {
    if (d == MSA_BOOL || msa_is_complex(d)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, msa_dtype_type_name(d));
    *type = d == MSA_FLOAT16 || d == MSA_BFLOAT16 ? MSA_FLOAT32 : msa_is_integral(d, false) ? MSA_INT64 : d;
    return 0;
}

static bool is_last(const msa_tensor *t) { return msa_hidden_nhwc(t) || (t->ndim == 4 && msa_visibly_channels_last(t)); }

static msa_tensor *new_in_order(msa_ints sizes, msa_dtype dtype, const msa_tensor *like, bool last) {
    if (!last) return msa_tensor_new(sizes, dtype);
    msa_image_out out;
    if (msa_image_out_new(sizes, dtype, !msa_hidden_nhwc(like), &out) != 0) return NULL;
    return out.result;
}

/* t's values in an order: borrowed in `image` where they lie so already. */
static int in_order(const msa_tensor *t, bool last, msa_image *image) {
    if (last) return msa_image_channels_last(t, image);
    *image = (msa_image){NULL, NULL};
    if (t->contiguous) {
        image->data = msa_data(t);
        return image->data || !t->numel ? 0 : -1;
    }
    const size_t bytes = (size_t)t->numel * msa_dtype_size((msa_dtype)t->dtype);
    msa_auto msa_tensor *plain = msa_contiguous_values((msa_tensor *)(uintptr_t)t);
    image->owned = plain ? msa_data_alloc(bytes) : NULL;
    if (!image->owned) return -1;
    memcpy(image->owned, msa_data(plain), bytes);
    image->data = image->owned;
    return 0;
}

static int64_t *offsets_of(const msa_pool *p) {
    const int64_t n = msa_volume(p->kernel);
    if (n > INT32_MAX / 4) return msa_fail_null(MSA_RUNTIME_ERROR, "max_pool: the window is too large");
    int64_t *offsets = msa_malloc(sizeof *offsets * (size_t)n);
    if (offsets) fill_offsets(p, offsets);
    return offsets;
}

int max_pool_windows_cpu(msa_tensor *self, msa_ints kernel_size, msa_ints stride, msa_ints padding, msa_ints dilation, bool ceil_mode,
                         msa_tensor **results) {
    msa_pool p;
    msa_dtype type = MSA_NO_DTYPE;
    const char *const name = kernel_size.n == 3 ? "max_pool3d" : kernel_size.n == 2 ? "max_pool2d" : "max_pool1d";
    if (msa_pool_plan(name, msa_sizes(self), kernel_size, stride, padding, dilation, ceil_mode, &p) != 0 ||
        computing_type(name, (msa_dtype)self->dtype, &type) != 0 || check_windows(&p) != 0)
        return -1;
    msa_auto_free int64_t *offsets = offsets_of(&p);
    if (!offsets) return -1;
    const bool last = is_last(self), bytes = msa_volume(p.kernel) <= 256;
    int64_t sizes[5];
    msa_pool_out_sizes(&p, sizes);
    const msa_ints shape = {sizes, p.spatial + 2};
    msa_auto msa_tensor *x = msa_cast_values(self, type), *values = new_in_order(shape, type, self, last),
                        *places = new_in_order(shape, bytes ? MSA_UINT8 : MSA_INT32, self, last);
    if (!x || !values || !places) return -1;
    if (values->numel) {
        msa_auto_image in = {NULL, NULL};
        if (in_order(x, last, &in) != 0) return -1;
        DISPATCH(run, type, bytes, &p, offsets, last, in.data, values->storage->data, places->storage->data);
    }
    results[0] = msa_cast_values(values, (msa_dtype)self->dtype);
    results[1] = msa_take(places);
    return results[0] ? 0 : -1;
}

/* Geometry again, from the places' sizes. */
static int plan_back(msa_ints sizes, const msa_tensor *places, msa_ints kernel_size, msa_ints stride, msa_ints padding, msa_ints dilation,
                     msa_pool *p) {
    if (msa_pool_plan("max_pool_backward", sizes, kernel_size, stride, padding, dilation, false, p) != 0) return -1;
    if (places->dtype != MSA_UINT8 && places->dtype != MSA_INT32) return msa_fail(MSA_RUNTIME_ERROR, "max_pool_backward: places of another type");
    if (places->ndim != sizes.n || places->sizes[0] != p->n || places->sizes[1] != p->c) return msa_fail(MSA_RUNTIME_ERROR, "max_pool_backward: places of another size");
    for (int i = 0; i < p->spatial; i++) p->out[3 - p->spatial + i] = places->sizes[2 + i]; /* ceil_mode may have added one */
    return check_windows(p);
}

msa_tensor *max_pool_windows_backward_cpu(msa_tensor *grad, msa_tensor *places, msa_ints sizes, msa_ints kernel_size, msa_ints stride,
                                          msa_ints padding, msa_ints dilation) {
    msa_pool p;
    msa_dtype type = MSA_NO_DTYPE;
    if (plan_back(sizes, places, kernel_size, stride, padding, dilation, &p) != 0 || computing_type("max_pool", (msa_dtype)grad->dtype, &type) != 0)
        return NULL;
    if (!msa_same_sizes(grad, places)) return msa_fail_null(MSA_RUNTIME_ERROR, "max_pool_backward: grad of another size");
    msa_auto_free int64_t *offsets = offsets_of(&p);
    const bool last = is_last(places), bytes = places->dtype == MSA_UINT8;
    msa_auto msa_tensor *g = msa_cast_values(grad, type), *out = new_in_order(sizes, type, places, last);
    if (!offsets || !g || !out) return NULL;
    if (grad->numel) {
        msa_auto_image from = {NULL, NULL};
        if (in_order(g, last, &from) != 0) return NULL;
        DISPATCH(back, type, bytes, &p, offsets, last, from.data, places->storage->data, out->storage->data);
    }
    return msa_cast_values(out, (msa_dtype)grad->dtype);
}

msa_tensor *max_pool_windows_gather_cpu(msa_tensor *input, msa_tensor *places, msa_ints kernel_size, msa_ints stride, msa_ints padding,
                                        msa_ints dilation) {
    msa_pool p;
    msa_dtype type = MSA_NO_DTYPE;
    if (plan_back(msa_sizes(input), places, kernel_size, stride, padding, dilation, &p) != 0 ||
        computing_type("max_pool", (msa_dtype)input->dtype, &type) != 0)
        return NULL;
    msa_auto_free int64_t *offsets = offsets_of(&p);
    const bool last = is_last(places), bytes = places->dtype == MSA_UINT8;
    msa_auto msa_tensor *x = msa_cast_values(input, type), *out = new_in_order(msa_sizes(places), type, places, last);
    if (!offsets || !x || !out) return NULL;
    if (out->numel) {
        msa_auto_image from = {NULL, NULL};
        if (in_order(x, last, &from) != 0) return NULL;
        DISPATCH(gather, type, bytes, &p, offsets, last, from.data, places->storage->data, out->storage->data);
    }
    return msa_cast_values(out, (msa_dtype)input->dtype);
}

/* Places as flat positions in the input's (spatial...) block: the user's indices. */
msa_tensor *max_pool_indices_cpu(msa_tensor *places, msa_ints sizes, msa_ints kernel_size, msa_ints stride, msa_ints padding, msa_ints dilation) {
    msa_pool p;
    if (plan_back(sizes, places, kernel_size, stride, padding, dilation, &p) != 0) return NULL;
    msa_auto_free int64_t *offsets = offsets_of(&p);
    const bool last = is_last(places);
    msa_auto msa_tensor *out = new_in_order(msa_sizes(places), MSA_INT64, places, last);
    if (!offsets || !out) return NULL;
    int64_t *to = out->storage->data;
    const int64_t outs = msa_volume(p.out), wide = last ? p.c : 1;
    for (int64_t t = 0; t < (last ? p.n : p.n * p.c); t++)
        for (int64_t x = 0; x < outs; x++) {
            window w;
            int64_t o[3];
            split_position(&p, x, o);
            place_window(&p, o, &w);
            for (int64_t i = 0; i < wide; i++) {
                const int64_t at = (t * outs + x) * wide + i;
                const int64_t place = places->dtype == MSA_UINT8 ? ((uint8_t *)places->storage->data)[at] : ((int32_t *)places->storage->data)[at];
                to[at] = base_of(&p, &w) + offsets[place];
            }
        }
    return msa_take(out);
}
