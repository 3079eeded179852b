/* Gamma and Dirichlet numbers. */
#include "random/internal.h"

#include "base/memory.h"

/* Marsaglia and Tsang's squeeze for alpha >= 1; below, a number for alpha + 1 times u^(1/alpha). As in PyTorch the
 * third is one of single precision, and for float32 so is the arithmetic on alpha. */
static double draw_gamma(msa_generator *g, double alpha, bool single) {
    double scale = 1;
    if (!(alpha > 0 && alpha < INFINITY)) return alpha <= 0 ? 0 : alpha; /* the loop would not end on them */
    if (alpha < 1) {
        scale = pow(1 - draw_double(g), single ? (double)(1 / (float)alpha) : 1 / alpha);
        alpha = single ? (double)((float)alpha + 1) : alpha + 1;
    }
    double d = single ? (double)((float)alpha - (float)(1.0 / 3)) : alpha - (float)(1.0 / 3), c = 1 / sqrt(9 * d);
    for (;;) {
        double x, y;
        do {
            x = msa_draw_normal(g);
            y = 1 + c * x;
        } while (y <= 0);
        double v = y * y * y, u = 1 - draw_double(g), xx = x * x;
        if (u < 1 - 0.0331 * xx * xx) return scale * d * v;
        if (log(u) < 0.5 * xx + d * (1 - v + log(v))) return scale * d * v;
    }
}

int msa_random_gamma(msa_generator *g, void *out, const void *alpha, int64_t n, msa_dtype dtype) {
    if (!msa_is_floating(dtype)) return not_implemented("gamma_cpu", dtype);
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    double values[DRAWS], smallest = smallest_normal_of(dtype);
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t count = n - first < DRAWS ? n - first : DRAWS;
        load_doubles(values, alpha, dtype, first, count);
        for (int64_t i = 0; i < count; i++) {
            double drawn = draw_gamma(locked, values[i], dtype != MSA_FLOAT64);
            values[i] = drawn < smallest ? smallest : drawn;
        }
        store_doubles(out, dtype, first, values, count);
    }
    return 0;
}

int msa_random_dirichlet(msa_generator *g, void *out, const void *alpha, int64_t rows, int64_t columns,
                         msa_dtype dtype) {
    if (!msa_is_floating(dtype)) return not_implemented("dirichlet", dtype);
    if (rows <= 0 || columns <= 0) return 0;
    msa_auto_free double *row = msa_malloc((size_t)columns * sizeof *row);
    if (!row) return -1;
    /* PyTorch keeps the result off 0 and 1, where the density's logarithm is not finite. */
    double low = smallest_normal_of(dtype), high = 1 - ldexp(1, -significand_bits(dtype));
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    for (int64_t i = 0; i < rows; i++) {
        load_doubles(row, alpha, dtype, i * columns, columns);
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) sum += row[j] = draw_gamma(locked, row[j], false);
        for (int64_t j = 0; j < columns; j++) {
            row[j] /= sum;
            row[j] = row[j] < low ? low : row[j] > high ? high : row[j];
        }
        store_doubles(out, dtype, i * columns, row, columns);
    }
    return 0;
}
