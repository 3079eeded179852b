/* Products of matrices against the definition: all types, strides and sizes around the register blocks; gradients of matmul. */
#include <complex.h>
#include <stdlib.h>

#include "check.h"
#include "msadapter/autograd.h"
#include "msadapter/ops.h"

static double random_value(void) { return (rand() % 17 - 8) / 4.0; }

static void set(msa_tensor *t, int64_t i, double v) {
    void *p = msa_tensor_data(t);
    switch (msa_tensor_dtype(t)) {
    case MSA_FLOAT32: ((float *)p)[i] = (float)v; break;
    case MSA_FLOAT64: ((double *)p)[i] = v; break;
    case MSA_INT64: ((int64_t *)p)[i] = (int64_t)(v * 4); break;
    case MSA_COMPLEX64: ((float _Complex *)p)[i] = (float)v + (float)random_value() * I; break;
    default: break;
    }
}

static double _Complex get(msa_tensor *t, int64_t i) {
    void *p = msa_tensor_data(t);
    switch (msa_tensor_dtype(t)) {
    case MSA_FLOAT32: return ((float *)p)[i];
    case MSA_FLOAT64: return ((double *)p)[i];
    case MSA_INT64: return (double)((int64_t *)p)[i];
    case MSA_COMPLEX64: return ((float _Complex *)p)[i];
    default: return 0;
    }
}

/* A (b, rows, columns) tensor, stored transposed where asked. */
static msa_tensor *make(int64_t b, int64_t rows, int64_t columns, msa_dtype d, bool transposed) {
    msa_auto msa_tensor *t = msa_tensor_new(transposed ? MSA_INTS(b, columns, rows) : MSA_INTS(b, rows, columns), d);
    for (int64_t i = 0; i < msa_tensor_numel(t); i++) set(t, i, random_value());
    return transposed ? msa_transpose_int(t, 1, 2) : msa_take(t);
}

static void against_definition(int64_t b, int64_t m, int64_t n, int64_t k, msa_dtype d, bool ta, bool tb) {
    msa_auto msa_tensor *x = make(b, m, k, d, ta), *y = make(b, k, n, d, tb), *z = msa_bmm(x, y);
    CHECK(z != NULL);
    if (!z) return;
    msa_auto msa_tensor *xc = msa_contiguous(x, 0), *yc = msa_contiguous(y, 0);
    double worst = 0;
    for (int64_t t = 0; t < b; t++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double _Complex sum = 0;
                for (int64_t p = 0; p < k; p++) sum += get(xc, (t * m + i) * k + p) * get(yc, (t * k + p) * n + j);
                const double error = cabs(sum - get(z, (t * m + i) * n + j));
                if (error > worst) worst = error;
            }
    CHECK_NEAR(worst, 0, 1e-4 * (double)k);
}

static void addmm_scales(void) {
    msa_auto msa_tensor *bias = make(1, 1, 40, MSA_FLOAT32, false), *row = msa_reshape(bias, MSA_INTS(40));
    msa_auto msa_tensor *x3 = make(1, 50, 60, MSA_FLOAT32, false), *x = msa_reshape(x3, MSA_INTS(50, 60));
    msa_auto msa_tensor *y3 = make(1, 60, 40, MSA_FLOAT32, false), *y = msa_reshape(y3, MSA_INTS(60, 40));
    msa_auto msa_tensor *plain = msa_mm(x, y), *sum = msa_addmm(row, x, y, msa_float(0.5), msa_int(2));
    for (int64_t i = 0; i < 2000; i += 97) CHECK_NEAR(creal(get(sum, i)), 0.5 * creal(get(row, i % 40)) + 2 * creal(get(plain, i)), 1e-3);
    msa_auto msa_tensor *none = msa_tensor_new(MSA_INTS(50, 0), MSA_FLOAT32), *empty = msa_tensor_new(MSA_INTS(0, 40), MSA_FLOAT32);
    msa_auto msa_tensor *only_bias = msa_addmm(row, none, empty, msa_int(1), msa_int(1));
    CHECK(only_bias && creal(get(only_bias, 41)) == creal(get(row, 1)));
}

static void gradients(void) {
    msa_auto msa_tensor *x = make(2, 3, 4, MSA_FLOAT64, false), *w = make(1, 4, 5, MSA_FLOAT64, false);
    msa_tensor_set_requires_grad(x, true);
    msa_tensor_set_requires_grad(w, true);
    msa_auto msa_tensor *y = msa_matmul(x, w), *sum = msa_sum(y, MSA_NO_DTYPE);
    CHECK(msa_backward(MSA_TENSORS(sum), (msa_tensors){NULL, 0}, false, false, (msa_tensors){NULL, 0}) == 0);
    double want = 0;
    for (int64_t j = 0; j < 5; j++) want += creal(get(w, 5 + j)); /* d sum / d x[0, 0, 1] is the sum of w's second row */
    CHECK_NEAR(creal(get(msa_tensor_grad(x), 1)), want, 1e-12);
    want = 0;
    for (int64_t i = 0; i < 6; i++) want += creal(get(x, i * 4 + 2));
    CHECK_NEAR(creal(get(msa_tensor_grad(w), 2 * 5 + 3)), want, 1e-12);
    CHECK(msa_tensor_ndim(msa_tensor_grad(w)) == 3);
}

int main(void) {
    const msa_dtype types[] = {MSA_FLOAT32, MSA_FLOAT64, MSA_INT64, MSA_COMPLEX64};
    const int64_t sizes[][3] = {{1, 1, 1}, {8, 8, 8}, {6, 16, 5}, {7, 17, 3}, {5, 3, 33}, {1, 40, 20}, {40, 1, 20}, {61, 50, 70}, {13, 9, 300}};
    for (int t = 0; t < 4; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int flags = 0; flags < 4; flags++)
                against_definition(s % 2 ? 3 : 1, sizes[s][0], sizes[s][1], sizes[s][2], types[t], flags & 1, flags & 2);
    against_definition(1, 40, 600, 20, MSA_FLOAT64, false, true);
    against_definition(1, 300, 520, 10, MSA_FLOAT64, false, false);
    /* Large enough for our own blocked product: columns 2 KiB apart, edges of the tiles, more than one block of depth. */
    against_definition(1, 101, 83, 512, MSA_FLOAT32, false, false);
    against_definition(1, 512, 97, 130, MSA_FLOAT32, true, false);
    against_definition(1, 64, 512, 520, MSA_FLOAT32, false, false);
    against_definition(1, 1024, 40, 140, MSA_FLOAT32, true, true);
    addmm_scales();
    gradients();
    return check_report();
}
