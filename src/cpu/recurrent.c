/* One layer of a recurrent network in one direction, forward and backward.
 *
 * The input's part of all gates is one product over all steps. Then each thread walks all steps of its own sequences, so that
 * threads need not wait for each other: a product with the weights of the hidden state, packed once, and one pass over the gates,
 * which are kept for backward. Backward walks the other way, keeps the gradients of the gates, and has the weights' gradients from
 * one product over all steps at the end.
 *
 * Rows are steps in order, each of as many sequences as still run: (steps * batch, features) where all are of one length. */
#include "base/parallel.h"
#include "cpu/gemm.h"
#include "cpu/sgemm.h"
#include "cpu/vector.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

enum { LSTM, GRU, RNN_TANH, RNN_RELU };

typedef struct {
    int mode;
    bool reverse;
    int64_t steps, batch, rows;
    int64_t inputs, hidden, out, gates; /* widths: out is hidden's unless projected, gates all gates together */
    int64_t width, state_at;            /* of a kept row: what backward needs of the gates, the cell state, then h before the step */
    int64_t *counts, *offsets;          /* of each step: sequences, first row */
} layer;

/* How many of the sequences [begin, end) run at step t. */
static int64_t rows_at(const layer *l, int64_t t, int64_t begin, int64_t end) {
    return (l->counts[t] < end ? l->counts[t] : end) - begin;
}

/* Threads that walk sequences of their own. */
static int threads_of(const layer *l) {
    const int most = msa_threads_for(l->rows * l->gates * l->out, 1 << 18);
    return most < l->batch ? most : (int)(l->batch ? l->batch : 1);
}

/* ---- products with one matrix b (k, n), many times ----------------------------------------------------------------- */

enum { DEPTH = 256, WIDE = 64 };

typedef struct {
    msa_dtype type;
    int64_t k, n, ld;
    msa_matrix b;
    float *panels; /* float32: b in panels, in blocks of `depth` rows */
    int64_t depth;
    bool row_by_row; /* single rows: panels of WIDE columns */
    int threads;     /* of each product: several where one sequence meets weights beyond the caches */
} product;

static void product_end(product *p) { msa_data_free(p->panels); }
#define msa_auto_product __attribute__((cleanup(product_end)))

static int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* c = a @ b for one panel of WIDE columns: as many sums as hide the latency of an addition. */
MSA_VECTOR static void panel_row(int64_t k, const float *a, const float *b, float *c) {
    msa_v8f sums[WIDE / 8]; /* in registers: indexed by constants alone once the loops are unrolled */
#pragma GCC unroll 8
    for (int i = 0; i < WIDE / 8; i++) sums[i] = (msa_v8f){0};
    for (int64_t p = 0; p < k; p++, b += WIDE) {
#pragma GCC unroll 8
        for (int i = 0; i < WIDE / 8; i++) {
            msa_v8f v;
            memcpy(&v, b + 8 * i, sizeof v);
            sums[i] += v * a[p];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < WIDE / 8; i++) memcpy(c + 8 * i, &sums[i], sizeof sums[i]);
}

static void pack_wide(int64_t n, int64_t k, const float *b, int64_t row, int64_t column, float *to) {
    for (int64_t p = 0; p < k; p++, to += WIDE)
        for (int64_t x = 0; x < WIDE; x++) to[x] = x < n ? b[p * row + x * column] : 0;
}

static int product_new(msa_dtype type, int64_t k, int64_t n, msa_matrix b, int64_t rows, bool alone, product *p) {
    *p = (product){type, k, n, n, b, NULL, 0, false, 1};
    if (type != MSA_FLOAT32 || k == 0) return 0;
    p->row_by_row = rows < 2;
    const int64_t columns = p->row_by_row ? WIDE : msa_sgemm->columns;
    p->ld = rounded_up(n, columns);
    p->depth = p->row_by_row ? k : least(k, DEPTH);
    p->threads = alone ? msa_threads_for(k * n, 1 << 20) : 1;
    p->panels = msa_data_alloc(sizeof(float) * (size_t)(p->ld * k));
    if (!p->panels) return -1;
    const int64_t blocks = p->ld / columns;
#pragma omp parallel for num_threads(msa_threads_for(n * k, MSA_GRAIN))
    for (int64_t j = 0; j < blocks; j++)
        for (int64_t at = 0; at < k; at += p->depth) {
            const int64_t deep = least(k - at, p->depth), valid = least(n - j * columns, columns);
            const float *from = (const float *)b.data + at * b.row + j * columns * b.column;
            (p->row_by_row ? pack_wide : msa_sgemm->pack_b)(valid, deep, from, b.row, b.column, p->panels + at * p->ld + j * columns * deep);
        }
    return 0;
}

/* Elements that a result of `rows` rows takes, with room to work in. */
static int64_t product_room(const product *p, int64_t rows) {
    if (p->type != MSA_FLOAT32) return rows * p->n;
    const int64_t full = rounded_up(rows, msa_sgemm->rows);
    return full * (p->ld + p->depth);
}

/* c = a @ b, rows of c `ld` apart; a dense. c: product_room elements. */
static int product_run(const product *p, int64_t rows, const void *a, void *c) {
    if (p->k == 0) {
        memset(c, 0, (size_t)(rows * p->ld) * msa_dtype_size(p->type));
        return 0;
    }
    if (p->type != MSA_FLOAT32)
        return msa_gemm(p->type, rows, p->n, p->k, msa_float(1), (msa_matrix){a, p->k, 1}, p->b, msa_float(0), c, p->ld);
    const msa_sgemm_tiles *t = msa_sgemm;
    if (p->row_by_row) {
#pragma omp parallel for num_threads(p->threads) if (p->threads > 1)
        for (int64_t j = 0; j < p->ld; j += WIDE)
            for (int64_t i = 0; i < rows; i++) panel_row(p->k, (const float *)a + i * p->k, p->panels + j * p->k, (float *)c + i * p->ld + j);
        return 0;
    }
    float *packed = (float *)c + rounded_up(rows, t->rows) * p->ld;
    for (int64_t at = 0; at < p->k; at += p->depth) {
        const int64_t deep = least(p->k - at, p->depth);
        t->pack_a(rows, deep, (const float *)a + at, p->k, 1, packed);
        for (int64_t j = 0; j < p->ld; j += t->columns)
            for (int64_t i = 0; i < rows; i += t->rows) /* full tiles: there is room behind the last row */
                t->packed(deep, packed + i * deep, p->panels + at * p->ld + j * deep, 1, at ? 1 : 0, (float *)c + i * p->ld + j, p->ld, t->rows,
                          t->columns);
    }
    return 0;
}

/* ---- the loops ----------------------------------------------------------------------------------------------------- */

#define T float
#define TYPE MSA_FLOAT32
#define N(name) f32_##name
#include "cpu/recurrent_loops.h"
#undef T
#undef TYPE
#undef N
#define T double
#define TYPE MSA_FLOAT64
#define N(name) f64_##name
#include "cpu/recurrent_loops.h"

/* ---- tensors ------------------------------------------------------------------------------------------------------- */

static void layer_end(layer *l) { free(l->counts); }
#define msa_auto_layer __attribute__((cleanup(layer_end)))

static int check_matrix(const char *name, const msa_tensor *t, int64_t rows, int64_t columns) {
    if (t->ndim == 2 && t->sizes[0] == rows && t->sizes[1] == columns) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "%s has inconsistent size: got %s, expected [%lld, %lld]", name, msa_sizes_text(msa_sizes(t)), (long long)rows,
                    (long long)columns);
}

static int check_bias(const char *name, const msa_tensor *t, int64_t n) {
    if (!t || (t->ndim == 1 && t->sizes[0] == n)) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "%s has inconsistent size: got %s, expected [%lld]", name, msa_sizes_text(msa_sizes(t)), (long long)n);
}

/* The steps' sequences and rows: all of the batch, or as batch_sizes says. */
static int layer_steps(layer *l, const msa_tensor *input, msa_ints batch_sizes) {
    const bool packed = batch_sizes.n >= 0;
    if (input->ndim != (packed ? 2 : 3))
        return msa_fail(MSA_RUNTIME_ERROR, "input must have %d dimensions, got %d", packed ? 2 : 3, input->ndim);
    l->inputs = input->sizes[input->ndim - 1];
    l->steps = packed ? batch_sizes.n : input->sizes[0];
    if (l->steps == 0) return msa_fail(MSA_RUNTIME_ERROR, "Expected sequence length to be larger than 0 in RNN");
    l->counts = msa_calloc((size_t)l->steps, 2 * sizeof *l->counts);
    if (!l->counts) return -1;
    l->offsets = l->counts + l->steps;
    for (int64_t t = 0; t < l->steps; t++) {
        l->counts[t] = packed ? batch_sizes.data[t] : input->sizes[1];
        if (packed && (l->counts[t] <= 0 || l->counts[t] > input->sizes[0]))
            return msa_fail(MSA_RUNTIME_ERROR, "batch_sizes must be positive and no more than the rows of data");
        if (t && l->counts[t] > l->counts[t - 1]) return msa_fail(MSA_RUNTIME_ERROR, "batch_sizes must not grow from step to step");
        l->offsets[t] = l->rows;
        l->rows += l->counts[t];
    }
    if (packed && l->rows != input->sizes[0])
        return msa_fail(MSA_RUNTIME_ERROR, "data has %lld rows, batch_sizes says %lld", (long long)input->sizes[0], (long long)l->rows);
    l->batch = l->counts[0];
    return 0;
}

static int layer_new(layer *l, msa_tensor *input, msa_tensor *hx, msa_tensor *cx, msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh,
                     msa_tensor *w_hr, msa_ints batch_sizes, int64_t mode, bool reverse) {
    static const int gates[] = {4, 3, 1, 1};
    if (mode < LSTM || mode > RNN_RELU || (mode == LSTM) != (cx != NULL) || (w_hr && mode != LSTM))
        return msa_fail(MSA_RUNTIME_ERROR, "recurrent_layer: no such mode, or arguments that do not belong to it");
    l->mode = (int)mode;
    l->reverse = reverse;
    if (layer_steps(l, input, batch_sizes) != 0) return -1;
    if (w_ih->ndim != 2 || w_ih->sizes[0] % gates[mode])
        return msa_fail(MSA_RUNTIME_ERROR, "w_ih has inconsistent size: got %s", msa_sizes_text(msa_sizes(w_ih)));
    l->gates = w_ih->sizes[0];
    l->hidden = l->gates / gates[mode];
    l->out = w_hr && w_hr->ndim == 2 ? w_hr->sizes[0] : l->hidden;
    if (w_ih->sizes[1] != l->inputs)
        return msa_fail(MSA_RUNTIME_ERROR, "input has inconsistent input_size: got %lld expected %lld", (long long)l->inputs, (long long)w_ih->sizes[1]);
    l->state_at = mode == LSTM ? 5 * l->hidden : mode == GRU ? 4 * l->hidden : l->hidden;
    l->width = l->state_at + l->out;
    msa_tensor *const all[] = {hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr};
    for (int i = 0; i < 7; i++)
        if (all[i] && all[i]->dtype != input->dtype)
            return msa_fail(MSA_RUNTIME_ERROR, "expected scalar type %s but found %s", msa_dtype_type_name((msa_dtype)input->dtype),
                            msa_dtype_type_name((msa_dtype)all[i]->dtype));
    if (check_matrix("w_hh", w_hh, l->gates, l->out) != 0 || (w_hr && check_matrix("w_hr", w_hr, l->out, l->hidden) != 0) ||
        check_matrix("hidden0", hx, l->batch, l->out) != 0 || (cx && check_matrix("cell0", cx, l->batch, l->hidden) != 0))
        return -1;
    return check_bias("b_ih", b_ih, l->gates) != 0 || check_bias("b_hh", b_hh, l->gates) != 0 ? -1 : 0;
}

static int computing_type(const msa_tensor *input, msa_dtype *type) {
    const msa_dtype d = (msa_dtype)input->dtype;
    if (!msa_is_floating(d)) return msa_fail(MSA_NOT_IMPLEMENTED, "\"recurrent_layer\" not implemented for '%s'", msa_dtype_type_name(d));
    *type = d == MSA_FLOAT64 ? d : MSA_FLOAT32;
    return 0;
}

/* t's values in the computing type, contiguous; NULL stays NULL. */
static int values_in(msa_tensor *t, msa_dtype type, msa_tensor **out) {
    if (!t) return 0;
    msa_auto msa_tensor *typed = msa_cast_values(t, type);
    *out = typed ? msa_contiguous_values(typed) : NULL;
    return *out && (msa_data(*out) || !t->numel) ? 0 : -1;
}
static void *data_of(const msa_tensor *t) { return t ? msa_data(t) : NULL; }

/* A copy of a state that can be written to; zeros of its shape when there is none. */
static int state_in(msa_tensor *t, msa_dtype type, int64_t rows, int64_t columns, msa_tensor **out) {
    *out = msa_tensor_new(MSA_INTS(rows, columns), type);
    if (!*out) return -1;
    return t ? msa_copy_values(*out, t) : msa_fill_values(*out, msa_float(0));
}

int recurrent_layer_cpu(msa_tensor *input, msa_tensor *hx, msa_tensor *cx, msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh,
                        msa_tensor *w_hr, msa_ints batch_sizes, int64_t mode, bool reverse, msa_tensor **results) {
    msa_auto_layer layer l = {0};
    msa_dtype type = MSA_NO_DTYPE;
    if (computing_type(input, &type) != 0 || layer_new(&l, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode, reverse) != 0) return -1;
    msa_auto msa_tensor *x = NULL, *wi = NULL, *wh = NULL, *bi = NULL, *bh = NULL, *wr = NULL, *h = NULL, *c = NULL;
    if (values_in(input, type, &x) != 0 || values_in(w_ih, type, &wi) != 0 || values_in(w_hh, type, &wh) != 0 || values_in(b_ih, type, &bi) != 0 ||
        values_in(b_hh, type, &bh) != 0 || values_in(w_hr, type, &wr) != 0 || state_in(hx, type, l.batch, l.out, &h) != 0 ||
        state_in(cx, type, cx ? l.batch : 0, l.hidden, &c) != 0)
        return -1;
    msa_auto msa_tensor *kept = msa_tensor_new(MSA_INTS(l.rows, l.width), type);
    msa_auto msa_tensor *out = input->ndim == 3 ? msa_tensor_new(MSA_INTS(l.steps, l.batch, l.out), type) : msa_tensor_new(MSA_INTS(l.rows, l.out), type);
    if (!kept || !out) return -1;
    const int status = type == MSA_FLOAT64 ? f64_forward(&l, msa_data(x), msa_data(wi), msa_data(wh), data_of(bi), data_of(bh), data_of(wr), msa_data(kept),
                                                         msa_data(out), msa_data(h), msa_data(c))
                                           : f32_forward(&l, msa_data(x), msa_data(wi), msa_data(wh), data_of(bi), data_of(bh), data_of(wr), msa_data(kept),
                                                         msa_data(out), msa_data(h), msa_data(c));
    if (status != 0) return msa_fail(MSA_MEMORY_ERROR, "recurrent layer: not enough memory");
    const msa_dtype given = (msa_dtype)input->dtype;
    results[0] = msa_cast_values(out, given);
    results[1] = msa_cast_values(h, given);
    results[2] = msa_cast_values(c, given);
    results[3] = msa_take(kept);
    return results[0] && results[1] && results[2] ? 0 : -1;
}

int recurrent_layer_backward_cpu(msa_tensor *grad_output, msa_tensor *grad_hn, msa_tensor *grad_cn, msa_tensor *input, msa_tensor *hx, msa_tensor *cx,
                                 msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh, msa_tensor *w_hr, msa_tensor *kept,
                                 msa_ints batch_sizes, int64_t mode, bool reverse, msa_ints output_mask, msa_tensor **results) {
    msa_auto_layer layer l = {0};
    msa_dtype type = MSA_NO_DTYPE;
    if (computing_type(input, &type) != 0 || layer_new(&l, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, batch_sizes, mode, reverse) != 0) return -1;
    if (output_mask.n != 8 || kept->numel != l.rows * l.width || (grad_output && grad_output->numel != l.rows * l.out) ||
        (grad_hn && grad_hn->numel != l.batch * l.out) || (cx && grad_cn && grad_cn->numel != l.batch * l.hidden))
        return msa_fail(MSA_RUNTIME_ERROR, "recurrent_layer_backward: arguments of other sizes");
    msa_auto msa_tensor *x = NULL, *wi = NULL, *wh = NULL, *wr = NULL, *g = NULL, *c0 = NULL, *k = NULL, *h = NULL, *c = NULL;
    if (values_in(input, type, &x) != 0 || values_in(w_ih, type, &wi) != 0 || values_in(w_hh, type, &wh) != 0 || values_in(w_hr, type, &wr) != 0 ||
        values_in(grad_output, type, &g) != 0 || values_in(cx, type, &c0) != 0 || values_in(kept, type, &k) != 0 ||
        state_in(grad_hn, type, l.batch, l.out, &h) != 0 || state_in(cx ? grad_cn : NULL, type, cx ? l.batch : 0, l.hidden, &c) != 0)
        return -1;
    msa_tensor *const like[] = {input, NULL, NULL, w_ih, w_hh, b_ih, b_hh, w_hr};
    msa_tensor *made[8] = {NULL};
    bool short_of_memory = false;
    for (int i = 0; i < 8; i++)
        if (like[i] && output_mask.data[i] && !(made[i] = msa_tensor_new(msa_sizes(like[i]), type))) short_of_memory = true;
    int status = short_of_memory ? -1
                 : type == MSA_FLOAT64
                     ? f64_backward(&l, msa_data(x), data_of(c0), msa_data(wi), msa_data(wh), data_of(wr), msa_data(k), data_of(g), msa_data(h), msa_data(c),
                                    data_of(made[0]), data_of(made[3]), data_of(made[4]), data_of(made[5]), data_of(made[6]), data_of(made[7]))
                     : f32_backward(&l, msa_data(x), data_of(c0), msa_data(wi), msa_data(wh), data_of(wr), msa_data(k), data_of(g), msa_data(h), msa_data(c),
                                    data_of(made[0]), data_of(made[3]), data_of(made[4]), data_of(made[5]), data_of(made[6]), data_of(made[7]));
    if (status != 0) msa_fail(MSA_MEMORY_ERROR, "recurrent layer: not enough memory");
    if (output_mask.data[1]) made[1] = msa_take(h);
    if (output_mask.data[2] && cx) made[2] = msa_take(c);
    for (int i = 0; i < 8; i++) {
        if (status == 0 && made[i] && !(results[i] = msa_cast_values(made[i], (msa_dtype)input->dtype))) status = -1;
        msa_tensor_release(made[i]);
    }
    return status;
}
