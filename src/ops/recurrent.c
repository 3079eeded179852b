/* Recurrent networks of several layers and directions, made of recurrent_layer; the same layer made of ordinary operators, for complex
 * types and for gradients of gradients; cells. */
#include <stdlib.h>

#include "autograd/autocast.h"
#include "autograd/internal.h"
#include "msadapter/autograd.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

enum { LSTM, GRU, RNN_TANH, RNN_RELU };

/* What one layer in one direction takes, but its input and place in time. */
typedef struct {
    int64_t mode;
    msa_tensor *w_ih, *w_hh, *b_ih, *b_hh, *w_hr;
} weights;

/* ---- a layer of ordinary operators --------------------------------------------------------------------------------- */

static msa_tensor *gate(msa_tensor *gates, int64_t index, int64_t hidden) { return msa_narrow(gates, -1, index * hidden, hidden); }

/* The state after one step for all rows of from_input (m, gates); *c moves on. NULL with an error. */
static msa_tensor *step(const weights *w, msa_tensor *from_input, msa_tensor *h, msa_tensor **c) {
    msa_auto msa_tensor *from_state = msa_linear(h, w->w_hh, w->b_hh);
    if (w->mode == GRU) {
        const int64_t n = w->w_hh->sizes[0] / 3;
        msa_auto msa_tensor *rx = gate(from_input, 0, n), *zx = gate(from_input, 1, n), *nx = gate(from_input, 2, n);
        msa_auto msa_tensor *rh = gate(from_state, 0, n), *zh = gate(from_state, 1, n), *nh = gate(from_state, 2, n);
        msa_auto msa_tensor *r_in = msa_add(rx, rh, msa_int(1)), *z_in = msa_add(zx, zh, msa_int(1));
        msa_auto msa_tensor *r = msa_sigmoid(r_in), *z = msa_sigmoid(z_in), *part = msa_mul(r, nh), *n_in = msa_add(nx, part, msa_int(1));
        msa_auto msa_tensor *new = msa_tanh(n_in), *away = msa_sub(h, new, msa_int(1)), *kept = msa_mul(z, away);
        return msa_add(new, kept, msa_int(1));
    }
    msa_auto msa_tensor *gates = msa_add(from_input, from_state, msa_int(1));
    if (w->mode == RNN_TANH) return msa_tanh(gates);
    if (w->mode == RNN_RELU) return msa_relu(gates);
    const int64_t n = w->w_hh->sizes[0] / 4;
    msa_auto msa_tensor *i_in = gate(gates, 0, n), *f_in = gate(gates, 1, n), *g_in = gate(gates, 2, n), *o_in = gate(gates, 3, n);
    msa_auto msa_tensor *i = msa_sigmoid(i_in), *f = msa_sigmoid(f_in), *g = msa_tanh(g_in), *o = msa_sigmoid(o_in);
    msa_auto msa_tensor *old = msa_mul(f, *c), *fresh = msa_mul(i, g), *cell = msa_add(old, fresh, msa_int(1)), *shown = msa_tanh(cell);
    msa_auto msa_tensor *out = msa_mul(o, shown);
    msa_tensor_release(*c);
    *c = msa_take(cell);
    return w->w_hr ? msa_linear(out, w->w_hr, NULL) : msa_take(out);
}

/* The first rows of a state replaced by those of part. */
static msa_tensor *with_rows(msa_tensor *state, msa_tensor *part) {
    if (!state || !part || part->sizes[0] == state->sizes[0]) return msa_tensor_retain(part);
    msa_auto msa_tensor *rest = msa_narrow(state, 0, part->sizes[0], state->sizes[0] - part->sizes[0]);
    return rest ? msa_cat(MSA_TENSORS(part, rest), 0) : NULL;
}

static msa_tensor *first_rows(msa_tensor *state, int64_t n) {
    return state->sizes[0] == n ? msa_tensor_retain(state) : msa_narrow(state, 0, 0, n);
}

static int composed_layer(const weights *w, msa_tensor *input, msa_tensor *hx, msa_tensor *cx, msa_ints batch_sizes, bool reverse, msa_tensor **results) {
    const bool packed = batch_sizes.n >= 0;
    const int64_t steps = packed ? batch_sizes.n : input->sizes[0];
    msa_auto msa_tensor *from_input = msa_linear(input, w->w_ih, w->b_ih), *h = msa_tensor_retain(hx), *c = msa_tensor_retain(cx);
    msa_auto_list msa_list *outputs = msa_list_new(steps);
    if (!outputs || !from_input) return -1;
    int64_t row = 0;
    for (int64_t t = 0; packed && reverse && t < steps; t++) row += batch_sizes.data[t];
    for (int64_t s = 0; s < steps; s++) {
        const int64_t t = reverse ? steps - 1 - s : s, n = packed ? batch_sizes.data[t] : hx->sizes[0];
        if (reverse) row -= n;
        msa_auto msa_tensor *x = packed ? msa_narrow(from_input, 0, row, n) : msa_select_int(from_input, 0, t);
        msa_auto msa_tensor *here = first_rows(h, n), *cell = c ? first_rows(c, n) : NULL;
        if (!x || !here || (c && !cell) || !(outputs->items[t] = step(w, x, here, &cell))) return -1;
        msa_auto msa_tensor *next_h = with_rows(h, outputs->items[t]), *next_c = c ? with_rows(c, cell) : NULL;
        if (!next_h || (c && !next_c)) return -1;
        msa_tensor_release(h);
        h = msa_take(next_h);
        msa_tensor_release(c);
        c = msa_take(next_c);
        if (!reverse) row += n;
    }
    results[0] = packed ? msa_cat(msa_list_view(outputs), 0) : msa_stack(msa_list_view(outputs), 0);
    results[1] = msa_take(h);
    results[2] = msa_take(c);
    return results[0] ? 0 : -1;
}

/* By the kernel; or, where this pass is recorded, the gradients of the layer made of ordinary operators, which have gradients too. */
int recurrent_layer_gradients(msa_tensor *grad_output, msa_tensor *grad_hn, msa_tensor *grad_cn, msa_tensor *input, msa_tensor *hx, msa_tensor *cx,
                              msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh, msa_tensor *w_hr, msa_tensor *kept,
                              msa_ints batch_sizes, int64_t mode, bool reverse, msa_ints needs, msa_tensor **results) {
    if (!msa_grad_mode)
        return msa_recurrent_layer_backward(grad_output, grad_hn, grad_cn, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, kept, batch_sizes, mode, reverse,
                                            needs, results);
    msa_tensor *const given[] = {input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr};
    msa_auto_list msa_list *own = msa_list_new(8), *outs = msa_list_new(3); /* own: views, where this differentiation ends */
    if (!own || !outs) return -1;
    msa_tensor *wanted[8], *found[8] = {NULL}, *ends[3], *cotangents[3];
    int places[8], n = 0, m = 0;
    for (int i = 0; i < 8; i++) {
        if (!given[i]) continue;
        if (!(own->items[i] = msa_alias(given[i]))) return -1;
        if (!needs.data[i]) continue;
        wanted[n] = own->items[i];
        places[n++] = i;
    }
    msa_tensor *const *o = own->items;
    const weights w = {mode, o[3], o[4], o[5], o[6], o[7]};
    if (composed_layer(&w, o[0], o[1], o[2], batch_sizes, reverse, outs->items) != 0) return -1;
    msa_tensor *const grads[] = {grad_output, grad_hn, grad_cn};
    for (int i = 0; i < 3; i++)
        if (grads[i] && outs->items[i]) {
            ends[m] = outs->items[i];
            cotangents[m++] = grads[i];
        }
    if (!n || !m) return 0;
    if (msa_grad((msa_tensors){ends, m}, (msa_tensors){wanted, n}, (msa_tensors){cotangents, m}, true, true, true, found) != 0) return -1;
    for (int i = 0; i < n; i++) results[places[i]] = found[i];
    return 0;
}

/* ---- networks ------------------------------------------------------------------------------------------------------ */

static void drop(msa_tensor **tensors, int n) {
    for (int i = 0; i < n; i++) msa_tensor_release(tensors[i]);
}

/* Under autocast the layer computes in float32, and its results have the type that its equations would give them: the lower one, unless
 * a wider state is mixed in. */
static int lowered(int64_t mode, msa_tensor *hx, msa_tensor *cx, msa_tensor **results) {
    const msa_dtype lower = msa_autocast_target(MSA_AUTOCAST_LOWER, MSA_TENSORS(results[0]));
    const msa_tensor *state = cx ? cx : hx;
    if (lower == MSA_NO_DTYPE || ((mode == LSTM || mode == GRU) && state->dtype != lower)) return 0;
    for (int i = 0; i < 3; i++) {
        msa_tensor *converted = msa_to_dtype(results[i], lower, false, false, -1);
        if (!converted) return -1;
        msa_tensor_release(results[i]);
        results[i] = converted;
    }
    return 0;
}

static int one_layer(const weights *w, msa_tensor *input, msa_tensor *hx, msa_tensor *cx, msa_ints batch_sizes, bool reverse, msa_tensor **results) {
    if (!msa_is_floating((msa_dtype)input->dtype)) return composed_layer(w, input, hx, cx, batch_sizes, reverse, results);
    msa_tensor *four[4] = {NULL};
    if (msa_recurrent_layer(input, hx, cx, w->w_ih, w->w_hh, w->b_ih, w->b_hh, w->w_hr, batch_sizes, w->mode, reverse, four) != 0) return -1;
    msa_tensor_release(four[3]);
    memcpy(results, four, 3 * sizeof *four);
    return msa_autocast_on ? lowered(w->mode, hx, cx, results) : 0;
}

typedef struct {
    const char *name;
    int64_t mode;
    bool has_biases;
    int64_t layers;
    double dropout;
    bool train, bidirectional, batch_first;
} network;

/* Both directions' outputs side by side, and dropped out between layers. */
static msa_tensor *joined(const network *net, msa_tensor *forward, msa_tensor *backward, bool last) {
    msa_auto msa_tensor *both = backward ? msa_cat(MSA_TENSORS(forward, backward), -1) : msa_tensor_retain(forward);
    return both && net->dropout > 0 && net->train && !last ? msa_dropout(both, net->dropout, true) : msa_take(both);
}

/* input: steps first, or packed. hx: (layers * directions, N, *). results: outputs, last h and, for LSTM, last c. */
static int run(const network *net, msa_tensor *input, msa_tensor *hx, msa_tensor *cx, msa_tensors params, msa_ints batch_sizes, msa_tensor **results) {
    const int64_t directions = net->bidirectional ? 2 : 1, places = net->layers * directions, basic = net->has_biases ? 4 : 2;
    if (net->layers <= 0) return msa_fail(MSA_RUNTIME_ERROR, "%s: num_layers must be positive, got %lld", net->name, (long long)net->layers);
    const int64_t each = params.n % places ? 0 : params.n / places;
    if (each != basic && !(net->mode == LSTM && each == basic + 1))
        return msa_fail(MSA_RUNTIME_ERROR, "%s: got an incorrect number of parameters: %lld for %lld layers and directions", net->name,
                        (long long)params.n, (long long)places);
    if (hx->ndim != 3 || hx->sizes[0] != places || (cx && (cx->ndim != 3 || cx->sizes[0] != places)))
        return msa_fail(MSA_RUNTIME_ERROR, "%s: expected states of size (%lld, batch, hidden), got %s", net->name, (long long)places,
                        msa_sizes_text(msa_sizes(hx)));
    msa_auto_list msa_list *hs = msa_list_new(places), *cs = msa_list_new(places);
    if (!hs || !cs) return -1;
    msa_auto msa_tensor *at = net->batch_first ? msa_transpose_int(input, 0, 1) : msa_tensor_retain(input);
    for (int64_t layer = 0; layer < net->layers && at; layer++) {
        msa_tensor *out[2] = {NULL, NULL};
        for (int64_t d = 0; d < directions; d++) {
            const int64_t place = layer * directions + d;
            msa_tensor *const *p = params.data + place * each;
            const weights w = {net->mode, p[0], p[1], net->has_biases ? p[2] : NULL, net->has_biases ? p[3] : NULL, each > basic ? p[basic] : NULL};
            msa_auto msa_tensor *h = msa_select_int(hx, 0, place), *c = cx ? msa_select_int(cx, 0, place) : NULL;
            msa_tensor *three[3] = {NULL};
            if (!h || (cx && !c) || one_layer(&w, at, h, c, batch_sizes, d == 1, three) != 0) {
                drop(three, 3);
                drop(out, 2);
                return -1;
            }
            out[d] = three[0];
            hs->items[place] = three[1];
            cs->items[place] = three[2];
        }
        msa_tensor *next = joined(net, out[0], out[1], layer == net->layers - 1);
        drop(out, 2);
        msa_tensor_release(at);
        at = next;
    }
    if (!at) return -1;
    results[0] = net->batch_first ? msa_transpose_int(at, 0, 1) : msa_take(at);
    results[1] = msa_stack(msa_list_view(hs), 0);
    if (net->mode == LSTM) results[2] = msa_stack(msa_list_view(cs), 0);
    return results[0] && results[1] && (net->mode != LSTM || results[2]) ? 0 : -1;
}

static int run_batch(const network *net, msa_tensor *input, msa_tensor *hx, msa_tensor *cx, msa_tensors params, msa_tensor **results) {
    if (input->ndim != 3) return msa_fail(MSA_RUNTIME_ERROR, "%s: expected an input of 3 dimensions, got %d", net->name, input->ndim);
    if (input->sizes[net->batch_first ? 1 : 0] == 0) return msa_fail(MSA_RUNTIME_ERROR, "Expected sequence length to be larger than 0 in RNN");
    return run(net, input, hx, cx, params, MSA_NO_INTS, results);
}

static int run_packed(const network *net, msa_tensor *data, msa_tensor *batch_sizes, msa_tensor *hx, msa_tensor *cx, msa_tensors params,
                      msa_tensor **results) {
    if (batch_sizes->ndim != 1 || batch_sizes->dtype != MSA_INT64 || batch_sizes->numel == 0)
        return msa_fail(MSA_RUNTIME_ERROR, "%s: batch_sizes must be one-dimensional, of int64 and not empty", net->name);
    if (data->ndim != 2) return msa_fail(MSA_RUNTIME_ERROR, "%s: expected packed data of 2 dimensions, got %d", net->name, data->ndim);
    msa_auto msa_tensor *sizes = msa_contiguous_values(batch_sizes);
    const int64_t *counts = sizes ? msa_data(sizes) : NULL;
    if (!counts) return -1;
    int64_t rows = 0;
    for (int64_t t = 0; t < sizes->numel; t++) {
        if (counts[t] <= 0 || counts[t] > data->sizes[0] - rows || (t && counts[t] > counts[t - 1]))
            return msa_fail(MSA_RUNTIME_ERROR, "%s: batch_sizes must be positive, not grow, and add up to the %lld rows of data", net->name,
                            (long long)data->sizes[0]);
        rows += counts[t];
    }
    return run(net, data, hx, cx, params, (msa_ints){counts, sizes->numel}, results);
}

static int check_pair(const char *name, msa_tensors hx) {
    return hx.n == 2 ? 0 : msa_fail(MSA_RUNTIME_ERROR, "%s expects two hidden states", name);
}

int lstm_values(msa_tensor *input, msa_tensors hx, msa_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional,
                bool batch_first, msa_tensor **results) {
    const network net = {"lstm", LSTM, has_biases, num_layers, dropout, train, bidirectional, batch_first};
    return check_pair("lstm", hx) != 0 ? -1 : run_batch(&net, input, hx.data[0], hx.data[1], params, results);
}
int lstm_packed_values(msa_tensor *data, msa_tensor *batch_sizes, msa_tensors hx, msa_tensors params, bool has_biases, int64_t num_layers,
                       double dropout, bool train, bool bidirectional, msa_tensor **results) {
    const network net = {"lstm", LSTM, has_biases, num_layers, dropout, train, bidirectional, false};
    return check_pair("lstm", hx) != 0 ? -1 : run_packed(&net, data, batch_sizes, hx.data[0], hx.data[1], params, results);
}

/* ---- cells --------------------------------------------------------------------------------------------------------- */

static int cell(int64_t mode, msa_tensor *input, msa_tensor *hx, msa_tensor *cx, msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh,
                msa_tensor **results) {
    if (input->ndim != 2 || hx->ndim != 2 || w_hh->ndim != 2)
        return msa_fail(MSA_RUNTIME_ERROR, "a recurrent cell takes input, state and weights of 2 dimensions");
    if (input->sizes[0] != hx->sizes[0])
        return msa_fail(MSA_RUNTIME_ERROR, "Input batch size %lld doesn't match hidden0 batch size %lld", (long long)input->sizes[0],
                        (long long)hx->sizes[0]);
    if (hx->sizes[1] != w_hh->sizes[1])
        return msa_fail(MSA_RUNTIME_ERROR, "hidden0 has inconsistent hidden_size: got %lld, expected %lld", (long long)hx->sizes[1],
                        (long long)w_hh->sizes[1]);
    const weights w = {mode, w_ih, w_hh, b_ih, b_hh, NULL};
    msa_auto msa_tensor *step_of_one = msa_unsqueeze(input, 0);
    msa_tensor *three[3] = {NULL};
    if (!step_of_one || one_layer(&w, step_of_one, hx, cx, MSA_NO_INTS, false, three) != 0) {
        drop(three, 3);
        return -1;
    }
    msa_tensor_release(three[0]);
    results[0] = three[1];
    if (mode == LSTM) results[1] = three[2];
    else msa_tensor_release(three[2]);
    return 0;
}

int lstm_cell_values(msa_tensor *input, msa_tensors hx, msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh, msa_tensor **results) {
    return check_pair("lstm_cell", hx) != 0 ? -1 : cell(LSTM, input, hx.data[0], hx.data[1], w_ih, w_hh, b_ih, b_hh, results);
}

#define OF_ONE_STATE(NAME, MODE) \
    int NAME##_values(msa_tensor *input, msa_tensor *hx, msa_tensors params, bool has_biases, int64_t num_layers, double dropout, bool train, \
                      bool bidirectional, bool batch_first, msa_tensor **results) { \
        const network net = {#NAME, MODE, has_biases, num_layers, dropout, train, bidirectional, batch_first}; \
        return run_batch(&net, input, hx, NULL, params, results); \
    } \
    int NAME##_packed_values(msa_tensor *data, msa_tensor *batch_sizes, msa_tensor *hx, msa_tensors params, bool has_biases, int64_t num_layers, \
                             double dropout, bool train, bool bidirectional, msa_tensor **results) { \
        const network net = {#NAME, MODE, has_biases, num_layers, dropout, train, bidirectional, false}; \
        return run_packed(&net, data, batch_sizes, hx, NULL, params, results); \
    } \
    msa_tensor *NAME##_cell_values(msa_tensor *input, msa_tensor *hx, msa_tensor *w_ih, msa_tensor *w_hh, msa_tensor *b_ih, msa_tensor *b_hh) { \
        msa_tensor *result = NULL; \
        return cell(MODE, input, hx, NULL, w_ih, w_hh, b_ih, b_hh, &result) == 0 ? result : NULL; \
    }
OF_ONE_STATE(gru, GRU)
OF_ONE_STATE(rnn_tanh, RNN_TANH)
OF_ONE_STATE(rnn_relu, RNN_RELU)
