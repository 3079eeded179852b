/* The loops of recurrent layers for one type: recurrent.c includes this file once with T, TYPE (its msa_dtype) and N(name) for each. */

/* ---- pointwise passes over one row: `x` holds what comes from the input and receives what backward needs ------------- */

/* x, hidden, bias: the gates i f g o. Leaves them activated in x; cell moves on. */
MSA_VECTOR static void N(lstm_row)(int64_t n, T *restrict x, const T *restrict hidden, const T *restrict bias, T *restrict cell,
                                   T *restrict kept_cell, T *restrict out) {
    for (int64_t j = 0; j < n; j++) {
        const T i = N(sigmoid)(x[j] + hidden[j] + bias[j]), f = N(sigmoid)(x[n + j] + hidden[n + j] + bias[n + j]);
        const T g = N(tanh)(x[2 * n + j] + hidden[2 * n + j] + bias[2 * n + j]);
        const T o = N(sigmoid)(x[3 * n + j] + hidden[3 * n + j] + bias[3 * n + j]);
        const T c = f * cell[j] + i * g;
        x[j] = i;
        x[n + j] = f;
        x[2 * n + j] = g;
        x[3 * n + j] = o;
        cell[j] = c;
        kept_cell[j] = c;
        out[j] = o * N(tanh)(c);
    }
}

/* x: r z n, and room for n's hidden part; bias: r z n, then that part's. */
MSA_VECTOR static void N(gru_row)(int64_t n, T *restrict x, const T *restrict hidden, const T *restrict bias, T *restrict state,
                                  T *restrict out) {
    for (int64_t j = 0; j < n; j++) {
        const T r = N(sigmoid)(x[j] + hidden[j] + bias[j]), z = N(sigmoid)(x[n + j] + hidden[n + j] + bias[n + j]);
        const T part = hidden[2 * n + j] + bias[3 * n + j];
        const T m = N(tanh)(x[2 * n + j] + bias[2 * n + j] + r * part);
        x[j] = r;
        x[n + j] = z;
        x[2 * n + j] = m;
        x[3 * n + j] = part;
        out[j] = state[j] = m + z * (state[j] - m);
    }
}

MSA_VECTOR static void N(tanh_row)(int64_t n, T *restrict x, const T *restrict hidden, const T *restrict bias, T *restrict state,
                                   T *restrict out) {
    for (int64_t j = 0; j < n; j++) x[j] = out[j] = state[j] = N(tanh)(x[j] + hidden[j] + bias[j]);
}

MSA_VECTOR static void N(relu_row)(int64_t n, T *restrict x, const T *restrict hidden, const T *restrict bias, T *restrict state,
                                   T *restrict out) {
    for (int64_t j = 0; j < n; j++) {
        const T v = x[j] + hidden[j] + bias[j];
        x[j] = out[j] = state[j] = v < 0 ? 0 : v; /* nan stays */
    }
}

/* grad: of h. Gradients of the gates' inputs into d; grad_cell moves back. */
MSA_VECTOR static void N(lstm_row_back)(int64_t n, const T *restrict kept, const T *restrict before, const T *restrict grad,
                                        T *restrict grad_cell, T *restrict d) {
    for (int64_t j = 0; j < n; j++) {
        const T i = kept[j], f = kept[n + j], g = kept[2 * n + j], o = kept[3 * n + j], c = N(tanh)(kept[4 * n + j]);
        const T dc = grad_cell[j] + grad[j] * o * (1 - c * c);
        d[j] = dc * g * i * (1 - i);
        d[n + j] = dc * before[j] * f * (1 - f);
        d[2 * n + j] = dc * i * (1 - g * g);
        d[3 * n + j] = grad[j] * c * o * (1 - o);
        grad_cell[j] = dc * f;
    }
}

/* grad becomes what reaches the state directly. d: of the input's part, dh: of the hidden part. */
MSA_VECTOR static void N(gru_row_back)(int64_t n, const T *restrict kept, const T *restrict before, T *restrict grad, T *restrict d,
                                       T *restrict dh) {
    for (int64_t j = 0; j < n; j++) {
        const T r = kept[j], z = kept[n + j], m = kept[2 * n + j], part = kept[3 * n + j];
        const T dm = grad[j] * (1 - z) * (1 - m * m);
        const T dr = dm * part * r * (1 - r), dz = grad[j] * (before[j] - m) * z * (1 - z);
        d[j] = dh[j] = dr;
        d[n + j] = dh[n + j] = dz;
        d[2 * n + j] = dm;
        dh[2 * n + j] = dm * r;
        grad[j] *= z;
    }
}

MSA_VECTOR static void N(rnn_row_back)(int64_t n, bool relu, const T *restrict kept, const T *restrict grad, T *restrict d) {
    if (relu)
        for (int64_t j = 0; j < n; j++) d[j] = kept[j] > 0 ? grad[j] : 0;
    else
        for (int64_t j = 0; j < n; j++) d[j] = grad[j] * (1 - kept[j] * kept[j]);
}

/* out = tanh(c) * o, the output before its projection. */
MSA_VECTOR static void N(lstm_output_row)(int64_t n, const T *restrict o, const T *restrict c, T *restrict out) {
    for (int64_t j = 0; j < n; j++) out[j] = o[j] * N(tanh)(c[j]);
}

MSA_VECTOR static void N(add_row)(int64_t n, const T *restrict x, T *restrict to) {
    for (int64_t j = 0; j < n; j++) to[j] += x[j];
}

/* sums of `width` columns of m (rows, ld). */
MSA_VECTOR static void N(column_sums)(int64_t rows, int64_t width, const T *restrict m, int64_t ld, T *restrict sums) {
    for (int64_t j = 0; j < width; j++) sums[j] = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < width; j++) sums[j] += m[r * ld + j];
}

/* ---- walks --------------------------------------------------------------------------------------------------------- */

static int N(bias)(const layer *l, const T *b_ih, const T *b_hh, T *bias) {
    const int64_t n = l->gates;
    for (int64_t j = 0; j < n; j++) bias[j] = (b_ih ? b_ih[j] : 0) + (b_hh ? b_hh[j] : 0);
    if (l->mode == GRU)
        for (int64_t j = 0; j < l->hidden; j++) {
            bias[2 * l->hidden + j] = b_ih ? b_ih[2 * l->hidden + j] : 0;
            bias[3 * l->hidden + j] = b_hh ? b_hh[2 * l->hidden + j] : 0;
        }
    return 0;
}

/* Sequences [begin, end), all steps. h (…, out) and c (…, hidden) hold their states and move on. */
static int N(walk)(const layer *l, int64_t begin, int64_t end, const product *by_hidden, const product *by_projection, const T *bias,
                   T *kept, T *out, T *h, T *c) {
    const int64_t n = end - begin, hidden = l->hidden, width = l->width;
    T *memory = msa_data_alloc(sizeof(T) * (size_t)(product_room(by_hidden, n) + product_room(by_projection, n) + n * hidden));
    if (!memory) return -1;
    T *gates = memory, *projected = gates + product_room(by_hidden, n), *raw = projected + product_room(by_projection, n);
    int failed = 0;
    for (int64_t s = 0; s < l->steps && !failed; s++) {
        const int64_t t = l->reverse ? l->steps - 1 - s : s, m = rows_at(l, t, begin, end);
        if (m <= 0) continue;
        T *keep = kept + (l->offsets[t] + begin) * width, *to = out + (l->offsets[t] + begin) * l->out;
        for (int64_t i = 0; i < m; i++) memcpy(keep + i * width + l->state_at, h + i * l->out, sizeof(T) * (size_t)l->out);
        failed |= product_run(by_hidden, m, h, gates);
        for (int64_t i = 0; i < m; i++) {
            T *x = keep + i * width, *state = h + i * l->out, *result = by_projection->k ? raw + i * hidden : to + i * l->out;
            const T *from = gates + i * by_hidden->ld;
            switch (l->mode) {
            case LSTM: N(lstm_row)(hidden, x, from, bias, c + i * hidden, x + 4 * hidden, result); break;
            case GRU: N(gru_row)(hidden, x, from, bias, state, result); break;
            case RNN_TANH: N(tanh_row)(hidden, x, from, bias, state, result); break;
            default: N(relu_row)(hidden, x, from, bias, state, result);
            }
        }
        if (by_projection->k) {
            failed |= product_run(by_projection, m, raw, projected);
            for (int64_t i = 0; i < m; i++) memcpy(to + i * l->out, projected + i * by_projection->ld, sizeof(T) * (size_t)l->out);
        }
        if (l->mode == LSTM) memcpy(h, to, sizeof(T) * (size_t)(m * l->out));
    }
    msa_data_free(memory);
    return failed ? -1 : 0;
}

/* The same backwards. h and c hold the gradients of the last states and become those of the first. d (rows, gates) and, for GRU,
 * dh receive the gradients of the gates' inputs; grad_out (rows, out), perhaps NULL, and with a projection the gradients of the
 * outputs in full into projected. */
static int N(walk_back)(const layer *l, int64_t begin, int64_t end, const product *by_hidden, const product *by_projection, const T *kept,
                        const T *c0, const T *grad_out, T *projected, T *d, T *dh, T *h, T *c) {
    const int64_t n = end - begin, hidden = l->hidden, width = l->width;
    T *memory = msa_data_alloc(sizeof(T) * (size_t)(product_room(by_hidden, n) + product_room(by_projection, n)));
    if (!memory) return -1;
    T *back = memory, *raw = back + product_room(by_hidden, n);
    int failed = 0;
    for (int64_t s = 0; s < l->steps && !failed; s++) {
        const int64_t t = l->reverse ? s : l->steps - 1 - s, m = rows_at(l, t, begin, end), before_t = l->reverse ? t + 1 : t - 1;
        if (m <= 0) continue;
        const int64_t row = l->offsets[t] + begin, earlier = before_t < 0 || before_t >= l->steps ? 0 : rows_at(l, before_t, begin, end);
        if (grad_out) N(add_row)(m * l->out, grad_out + row * l->out, h);
        const T *grad = h;
        int64_t ld = l->out;
        if (by_projection->k) {
            memcpy(projected + row * l->out, h, sizeof(T) * (size_t)(m * l->out));
            failed |= product_run(by_projection, m, h, raw);
            grad = raw;
            ld = by_projection->ld;
        }
        for (int64_t i = 0; i < m; i++) {
            const T *keep = kept + (row + i) * width;
            const T *before = l->mode != LSTM ? keep + l->state_at
                              : i < earlier   ? kept + (l->offsets[before_t] + begin + i) * width + 4 * hidden
                                              : c0 + (begin + i) * hidden;
            T *to = d + (row + i) * l->gates;
            if (l->mode == LSTM) N(lstm_row_back)(hidden, keep, before, grad + i * ld, c + i * hidden, to);
            else if (l->mode == GRU) N(gru_row_back)(hidden, keep, before, h + i * ld, to, dh + (row + i) * l->gates);
            else N(rnn_row_back)(hidden, l->mode == RNN_RELU, keep, grad + i * ld, to);
        }
        failed |= product_run(by_hidden, m, (l->mode == GRU ? dh : d) + row * l->gates, back);
        for (int64_t i = 0; i < m; i++) {
            if (l->mode == GRU) N(add_row)(l->out, back + i * by_hidden->ld, h + i * l->out);
            else memcpy(h + i * l->out, back + i * by_hidden->ld, sizeof(T) * (size_t)l->out);
        }
    }
    msa_data_free(memory);
    return failed ? -1 : 0;
}

/* kept receives the gates, out the outputs; h and c hold the first states and become the last. */
static int N(forward)(const layer *l, const T *x, const T *w_ih, const T *w_hh, const T *b_ih, const T *b_hh, const T *w_hr, T *kept, T *out,
                      T *h, T *c) {
    const int threads = threads_of(l);
    const int64_t share = (l->batch + threads - 1) / threads;
    msa_auto_product product by_hidden = {0}, by_projection = {0};
    T *bias = msa_data_alloc(sizeof(T) * (size_t)(l->gates + l->hidden));
    int failed = !bias ||
                 msa_gemm(TYPE, l->rows, l->gates, l->inputs, msa_float(1), (msa_matrix){x, l->inputs, 1}, (msa_matrix){w_ih, 1, l->inputs},
                          msa_float(0), kept, l->width) != 0 ||
                 product_new(TYPE, l->out, l->gates, (msa_matrix){w_hh, 1, l->out}, share, l->batch == 1, &by_hidden) != 0 ||
                 (w_hr && product_new(TYPE, l->hidden, l->out, (msa_matrix){w_hr, 1, l->hidden}, share, l->batch == 1, &by_projection) != 0);
    if (!failed) {
        N(bias)(l, b_ih, b_hh, bias);
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(| : failed)
        for (int i = 0; i < threads; i++) {
            int64_t begin, end;
            msa_share(l->batch, threads, i, &begin, &end);
            if (N(walk)(l, begin, end, &by_hidden, &by_projection, bias, kept, out, h + begin * l->out, c ? c + begin * l->hidden : NULL) != 0)
                failed = 1;
        }
    }
    msa_data_free(bias);
    return failed ? -1 : 0;
}

/* Gradients of weights and inputs where there is a place for them; h and c as walk_back has them. */
static int N(backward)(const layer *l, const T *x, const T *c0, const T *w_ih, const T *w_hh, const T *w_hr, const T *kept, const T *grad_out, T *h,
                       T *c, T *grad_x, T *grad_w_ih, T *grad_w_hh, T *grad_b_ih, T *grad_b_hh, T *grad_w_hr) {
    const int threads = threads_of(l);
    const int64_t share = (l->batch + threads - 1) / threads, gates = l->gates, rows = l->rows;
    const bool twice = l->mode == GRU, raw_wanted = w_hr && grad_w_hr;
    msa_auto_product product by_hidden = {0}, by_projection = {0};
    T *memory = msa_data_alloc(sizeof(T) * (size_t)(rows * gates * (twice ? 2 : 1) + (w_hr ? rows * l->out : 0) + (raw_wanted ? rows * l->hidden : 0)));
    if (!memory) return -1;
    T *d = memory, *dh = twice ? d + rows * gates : d, *projected = dh + rows * gates, *raw = projected + rows * l->out;
    int failed = product_new(TYPE, gates, l->out, (msa_matrix){w_hh, l->out, 1}, share, l->batch == 1, &by_hidden) != 0 ||
                 (w_hr && product_new(TYPE, l->out, l->hidden, (msa_matrix){w_hr, l->hidden, 1}, share, l->batch == 1, &by_projection) != 0);
    if (!failed) {
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(| : failed)
        for (int i = 0; i < threads; i++) {
            int64_t begin, end;
            msa_share(l->batch, threads, i, &begin, &end);
            if (N(walk_back)(l, begin, end, &by_hidden, &by_projection, kept, c0, grad_out, projected, d, dh, h + begin * l->out,
                             c ? c + begin * l->hidden : NULL) != 0)
                failed = 1;
        }
    }
    const msa_scalar one = msa_float(1), zero = msa_float(0);
    if (!failed && grad_x)
        failed |= msa_gemm(TYPE, rows, l->inputs, gates, one, (msa_matrix){d, gates, 1}, (msa_matrix){w_ih, l->inputs, 1}, zero, grad_x, l->inputs);
    if (!failed && grad_w_ih)
        failed |= msa_gemm(TYPE, gates, l->inputs, rows, one, (msa_matrix){d, 1, gates}, (msa_matrix){x, l->inputs, 1}, zero, grad_w_ih, l->inputs);
    if (!failed && grad_w_hh)
        failed |= msa_gemm(TYPE, gates, l->out, rows, one, (msa_matrix){dh, 1, gates}, (msa_matrix){kept + l->state_at, l->width, 1}, zero,
                           grad_w_hh, l->out);
    if (!failed && raw_wanted) {
        for (int64_t r = 0; r < rows; r++)
            N(lstm_output_row)(l->hidden, kept + r * l->width + 3 * l->hidden, kept + r * l->width + 4 * l->hidden, raw + r * l->hidden);
        failed |= msa_gemm(TYPE, l->out, l->hidden, rows, one, (msa_matrix){projected, 1, l->out}, (msa_matrix){raw, l->hidden, 1}, zero, grad_w_hr,
                           l->hidden);
    }
    if (!failed && grad_b_ih) N(column_sums)(rows, gates, d, gates, grad_b_ih);
    if (!failed && grad_b_hh) N(column_sums)(rows, gates, dh, gates, grad_b_hh);
    msa_data_free(memory);
    return failed ? -1 : 0;
}
