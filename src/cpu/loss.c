/* Losses over class indices: negative log likelihood of log probabilities (N, C, positions...), and cross entropy of scores
 * (N, C) in one pass over each row. Reductions: 0 none, 1 mean, 2 sum. */
#include <math.h>

#include "base/parallel.h"
#include "cpu/softmax.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

enum { NONE, MEAN, SUM };

typedef struct {
    int64_t n, c, p;
    msa_dtype type;
    int64_t ignored;
} problem;

static int check(msa_ints sizes, msa_dtype given, const msa_tensor *target, const msa_tensor *weight, int64_t ignore_index, const char *op, problem *q) {
    q->type = given == MSA_FLOAT64 ? given : MSA_FLOAT32;
    q->ignored = ignore_index;
    q->n = sizes.n == 1 ? 1 : sizes.n ? sizes.data[0] : 0;
    q->c = sizes.n == 1 ? sizes.data[0] : sizes.n ? sizes.data[1] : 0;
    q->p = sizes.n > 2 ? msa_product((msa_ints){sizes.data + 2, sizes.n - 2}) : 1;
    if (!msa_is_floating(given)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, msa_dtype_type_name(given));
    if (target->dtype != MSA_INT64 && target->dtype != MSA_UINT8)
        return msa_fail(MSA_RUNTIME_ERROR, "expected scalar type Long but found %s", msa_dtype_type_name((msa_dtype)target->dtype));
    if (sizes.n < 1) return msa_fail(MSA_RUNTIME_ERROR, "%s: expected an input of at least 1 dimension", op);
    if (target->numel != q->n * q->p || (sizes.n > 1 && target->ndim != sizes.n - 1))
        return msa_fail(MSA_RUNTIME_ERROR, "size mismatch (got input: %s , target: %s)", msa_sizes_text(sizes), msa_sizes_text(msa_sizes(target)));
    if (weight && (weight->ndim != 1 || weight->numel != q->c))
        return msa_fail(MSA_RUNTIME_ERROR, "weight tensor should be defined either for all %lld classes or no classes but got weight tensor of shape: %s",
                        (long long)q->c, msa_sizes_text(msa_sizes(weight)));
    if (weight && (msa_dtype)weight->dtype != given)
        return msa_fail(MSA_RUNTIME_ERROR, "expected scalar type %s but found %s", msa_dtype_type_name(given), msa_dtype_type_name((msa_dtype)weight->dtype));
    return 0;
}

static int take_values(msa_tensor *t, msa_dtype type, msa_tensor **out) {
    *out = NULL;
    if (!t) return 0;
    msa_auto msa_tensor *typed = msa_cast_values(t, type);
    *out = typed ? msa_contiguous_values(typed) : NULL;
    return *out && (msa_data(*out) || !t->numel) ? 0 : -1;
}
static void *values_of(const msa_tensor *t) { return t ? msa_data(t) : NULL; }

static int check_classes(const problem *q, const int64_t *target) {
    for (int64_t i = 0; i < q->n * q->p; i++)
        if (target[i] != q->ignored && (target[i] < 0 || target[i] >= q->c))
            return msa_fail(MSA_INDEX_ERROR, "Target %lld is out of bounds.", (long long)target[i]);
    return 0;
}

#define LOSS(NAME, T) \
    static void NAME##_nll(const problem *q, const T *x, const int64_t *target, const T *weight, int64_t reduction, T *out, T *total) { \
        double sum = 0, weights = 0; \
        for (int64_t n = 0; n < q->n; n++) \
            for (int64_t p = 0; p < q->p; p++) { \
                const int64_t at = n * q->p + p, t = target[at]; \
                const bool skip = t == q->ignored; \
                const T w = skip ? 0 : weight ? weight[t] : 1; \
                const T value = skip ? 0 : -x[(n * q->c + t) * q->p + p] * w; \
                if (reduction == NONE) out[at] = value; \
                sum += (double)value; \
                weights += (double)w; \
            } \
        if (reduction == SUM) *out = (T)sum; \
        if (reduction == MEAN) *out = (T)(sum / weights); \
        *total = (T)weights; \
    } \
    /* out, cleared before, gets -weight * grad at the targets. */ \
    static void NAME##_nll_back(const problem *q, const T *g, const int64_t *target, const T *weight, int64_t reduction, T total, T *out) { \
        for (int64_t n = 0; n < q->n; n++) \
            for (int64_t p = 0; p < q->p; p++) { \
                const int64_t at = n * q->p + p, t = target[at]; \
                if (t == q->ignored) continue; \
                const T w = weight ? weight[t] : 1; \
                out[(n * q->c + t) * q->p + p] = -w * (reduction == NONE ? g[at] : reduction == MEAN ? *g / total : *g); \
            } \
    } \
    static void NAME##_entropy(const problem *q, const T *x, const int64_t *target, const T *weight, int64_t reduction, T *out, T *log_sums, T *total) { \
        double sum = 0, weights = 0; \
        _Pragma("omp parallel for reduction(+ : sum, weights) num_threads(msa_threads_for(q->n * q->c, MSA_GRAIN / 4))") \
        for (int64_t n = 0; n < q->n; n++) { \
            msa_softmax_row_##NAME(q->c, x + n * q->c, &log_sums[n]); \
            const int64_t t = target[n]; \
            const bool skip = t == q->ignored; \
            const T w = skip ? 0 : weight ? weight[t] : 1; \
            const T value = skip ? 0 : (log_sums[n] - x[n * q->c + t]) * w; \
            if (reduction == NONE) out[n] = value; \
            sum += (double)value; \
            weights += (double)w; \
        } \
        if (reduction == SUM) *out = (T)sum; \
        if (reduction == MEAN) *out = (T)(sum / weights); \
        *total = (T)weights; \
    } \
    static void NAME##_entropy_back(const problem *q, const T *g, const T *x, const int64_t *target, const T *weight, int64_t reduction, \
                                    const T *log_sums, T total, T *out) { \
        _Pragma("omp parallel for num_threads(msa_threads_for(q->n * q->c, MSA_GRAIN / 4))") for (int64_t n = 0; n < q->n; n++) { \
            const int64_t t = target[n]; \
            T *row = out + n * q->c; \
            if (t == q->ignored) { \
                memset(row, 0, sizeof(T) * (size_t)q->c); \
                continue; \
            } \
            const T factor = (weight ? weight[t] : 1) * (reduction == NONE ? g[n] : reduction == MEAN ? *g / total : *g); \
            msa_softmax_row_gradient_##NAME(q->c, x + n * q->c, log_sums[n], factor, row); \
            row[t] -= factor; \
        } \
    }
LOSS(f32, float)
LOSS(f64, double)

static msa_tensor *new_output(const msa_tensor *target, int64_t reduction, msa_dtype type) {
    return reduction == NONE ? msa_tensor_new(msa_sizes(target), type) : msa_tensor_new((msa_ints){target->sizes, 0}, type);
}

static int check_reduction(int64_t reduction) {
    return reduction >= NONE && reduction <= SUM ? 0 : msa_fail(MSA_VALUE_ERROR, "%lld is not a valid value for reduction", (long long)reduction);
}

int nll_loss_forward_cpu(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index, msa_tensor **results) {
    problem q;
    if (check_reduction(reduction) != 0 || check(msa_sizes(self), (msa_dtype)self->dtype, target, weight, ignore_index, "nll_loss_out_frame", &q) != 0) return -1;
    msa_auto msa_tensor *x = NULL, *t = NULL, *w = NULL;
    msa_auto msa_tensor *out = new_output(target, reduction, q.type), *total = msa_tensor_new((msa_ints){target->sizes, 0}, q.type);
    if (!out || !total || take_values(self, q.type, &x) != 0 || take_values(target, MSA_INT64, &t) != 0 || take_values(weight, q.type, &w) != 0 ||
        check_classes(&q, msa_data(t)) != 0)
        return -1;
    if (q.type == MSA_FLOAT64) f64_nll(&q, msa_data(x), msa_data(t), values_of(w), reduction, out->storage->data, total->storage->data);
    else f32_nll(&q, msa_data(x), msa_data(t), values_of(w), reduction, out->storage->data, total->storage->data);
    results[0] = msa_cast_values(out, (msa_dtype)self->dtype);
    results[1] = msa_cast_values(total, (msa_dtype)self->dtype);
    return results[0] && results[1] ? 0 : -1;
}

msa_tensor *nll_loss_backward_cpu(msa_tensor *grad, msa_ints sizes, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index,
                                  msa_tensor *total_weight) {
    problem q;
    if (check_reduction(reduction) != 0 || check(sizes, (msa_dtype)grad->dtype, target, weight, ignore_index, "nll_loss_backward", &q) != 0) return NULL;
    if (grad->numel != (reduction == NONE ? target->numel : 1) || total_weight->numel != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "nll_loss_backward: grad of another size");
    msa_auto msa_tensor *g = NULL, *t = NULL, *w = NULL, *total = NULL, *out = msa_tensor_new(sizes, q.type);
    if (!out || msa_fill_values(out, msa_int(0)) != 0 || take_values(grad, q.type, &g) != 0 || take_values(target, MSA_INT64, &t) != 0 ||
        take_values(weight, q.type, &w) != 0 || take_values(total_weight, q.type, &total) != 0 || check_classes(&q, msa_data(t)) != 0)
        return NULL;
    if (q.type == MSA_FLOAT64) f64_nll_back(&q, msa_data(g), msa_data(t), values_of(w), reduction, *(double *)msa_data(total), out->storage->data);
    else f32_nll_back(&q, msa_data(g), msa_data(t), values_of(w), reduction, *(float *)msa_data(total), out->storage->data);
    return msa_cast_values(out, (msa_dtype)grad->dtype);
}

int cross_entropy_indexed_cpu(msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index, msa_tensor **results) {
    problem q;
    if (check_reduction(reduction) != 0 || check(msa_sizes(self), (msa_dtype)self->dtype, target, weight, ignore_index, "log_softmax_lastdim_kernel_impl", &q) != 0)
        return -1;
    if (q.p != 1) return msa_fail(MSA_RUNTIME_ERROR, "cross_entropy_indexed: scores are (N, C)");
    msa_auto msa_tensor *x = NULL, *t = NULL, *w = NULL;
    msa_auto msa_tensor *out = new_output(target, reduction, q.type), *sums = msa_tensor_new(MSA_INTS(q.n), q.type),
                        *total = msa_tensor_new((msa_ints){target->sizes, 0}, q.type);
    if (!out || !sums || !total || take_values(self, q.type, &x) != 0 || take_values(target, MSA_INT64, &t) != 0 || take_values(weight, q.type, &w) != 0 ||
        check_classes(&q, msa_data(t)) != 0)
        return -1;
    if (q.type == MSA_FLOAT64)
        f64_entropy(&q, msa_data(x), msa_data(t), values_of(w), reduction, out->storage->data, sums->storage->data, total->storage->data);
    else f32_entropy(&q, msa_data(x), msa_data(t), values_of(w), reduction, out->storage->data, sums->storage->data, total->storage->data);
    results[0] = msa_cast_values(out, (msa_dtype)self->dtype);
    results[1] = msa_take(sums);
    results[2] = msa_cast_values(total, (msa_dtype)self->dtype);
    return results[0] && results[2] ? 0 : -1;
}

msa_tensor *cross_entropy_backward_cpu(msa_tensor *grad, msa_tensor *self, msa_tensor *target, msa_tensor *weight, int64_t reduction, int64_t ignore_index,
                                       msa_tensor *log_sums, msa_tensor *total_weight) {
    problem q;
    if (check_reduction(reduction) != 0 || check(msa_sizes(self), (msa_dtype)self->dtype, target, weight, ignore_index, "cross_entropy_backward", &q) != 0) return NULL;
    if (q.p != 1 || grad->numel != (reduction == NONE ? target->numel : 1) || log_sums->numel != q.n || total_weight->numel != 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "cross_entropy_backward: arguments of other sizes");
    msa_auto msa_tensor *g = NULL, *x = NULL, *t = NULL, *w = NULL, *total = NULL, *sums = NULL, *out = msa_tensor_new(msa_sizes(self), q.type);
    if (!out || take_values(grad, q.type, &g) != 0 || take_values(self, q.type, &x) != 0 || take_values(target, MSA_INT64, &t) != 0 ||
        take_values(weight, q.type, &w) != 0 || take_values(total_weight, q.type, &total) != 0 || take_values(log_sums, q.type, &sums) != 0 ||
        check_classes(&q, msa_data(t)) != 0)
        return NULL;
    if (q.type == MSA_FLOAT64)
        f64_entropy_back(&q, msa_data(g), msa_data(x), msa_data(t), values_of(w), reduction, msa_data(sums), *(double *)msa_data(total), out->storage->data);
    else f32_entropy_back(&q, msa_data(g), msa_data(x), msa_data(t), values_of(w), reduction, msa_data(sums), *(float *)msa_data(total), out->storage->data);
    return msa_cast_values(out, (msa_dtype)self->dtype);
}
