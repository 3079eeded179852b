/* Register tiles of the single precision product, compiled once for each instruction set (MSA_ISA names it).
 *
 * A tile keeps `ROWS` x two vectors of sums in registers while it walks the depth: 6 x 16 with AVX2's sixteen registers, 14 x 32
 * with AVX-512's thirty-two (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication"). */
#include <string.h>

#include "cpu/sgemm.h"

#define MSA_INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
enum { LANES = 16, ROWS = 14 };
#elif defined(__AVX__)
enum { LANES = 8, ROWS = 6 };
#else
enum { LANES = 4, ROWS = 6 };
#endif
enum { COLUMNS = 2 * LANES };
typedef float vector __attribute__((vector_size(4 * LANES)));

MSA_INLINE vector load(const float *p) {
    vector v;
    memcpy(&v, p, sizeof v);
    return v;
}
MSA_INLINE void store(float *p, vector v) { memcpy(p, &v, sizeof v); }

/* sum = a @ b, a(i, p) at a[i * row + p * column], row p of b at b + p * ldb. */
MSA_INLINE void multiply(int64_t k, const float *a, int64_t row, int64_t column, const float *b, int64_t ldb, vector sum[ROWS][2]) {
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) sum[i][0] = sum[i][1] = (vector){0};
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; p++) {
        const vector b0 = load(b + p * ldb), b1 = load(b + p * ldb + LANES);
#pragma GCC unroll 16
        for (int i = 0; i < ROWS; i++) {
            const float x = a[i * row + p * column];
            sum[i][0] += b0 * x;
            sum[i][1] += b1 * x;
        }
    }
}

/* An edge of the result, row by row; the compiler keeps `sum` in registers only if nobody indexes it by a variable. */
MSA_INLINE void store_edge(vector sum[ROWS][2], float alpha, float beta, float *c, int64_t ldc, int m, int n) {
    float rows[ROWS * COLUMNS];
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
        store(rows + i * COLUMNS, sum[i][0]);
        store(rows + i * COLUMNS + LANES, sum[i][1]);
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            const float value = alpha * rows[i * COLUMNS + j];
            c[i * ldc + j] = beta == 0 ? value : value + beta * c[i * ldc + j];
        }
}

static void packed(int64_t k, const float *a, const float *b, float alpha, float beta, float *c, int64_t ldc, int m, int n) {
    vector sum[ROWS][2];
    multiply(k, a, 1, ROWS, b, COLUMNS, sum);
    if (m < ROWS || n < COLUMNS) {
        store_edge(sum, alpha, beta, c, ldc, m, n);
        return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
        float *to = c + i * ldc;
        if (beta == 0) {
            store(to, sum[i][0] * alpha);
            store(to + LANES, sum[i][1] * alpha);
        } else {
            store(to, sum[i][0] * alpha + load(to) * beta);
            store(to + LANES, sum[i][1] * alpha + load(to + LANES) * beta);
        }
    }
}

static void by_rows(int64_t k, const float *a, int64_t lda, const float *b, float *c, int64_t ldc, int m) {
    vector sum[ROWS][2];
    if (m < ROWS) { /* row by row: the rows behind a's last don't exist */
        for (int i = 0; i < m; i++) {
            vector s0 = {0}, s1 = {0};
            for (int64_t p = 0; p < k; p++) {
                s0 += load(b + p * COLUMNS) * a[i * lda + p];
                s1 += load(b + p * COLUMNS + LANES) * a[i * lda + p];
            }
            store(c + i * ldc, s0);
            store(c + i * ldc + LANES, s1);
        }
        return;
    }
    multiply(k, a, lda, 1, b, COLUMNS, sum);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
        store(c + i * ldc, sum[i][0]);
        store(c + i * ldc + LANES, sum[i][1]);
    }
}

static void by_columns(int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, bool add, float *c, int64_t ldc, int m) {
    vector sum[ROWS][2];
    multiply(k, a, 1, lda, b, ldb, sum);
    if (m < ROWS) {
        store_edge(sum, 1, add, c, ldc, m, COLUMNS);
        return;
    }
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
        float *to = c + i * ldc;
        store(to, add ? sum[i][0] + load(to) : sum[i][0]);
        store(to + LANES, add ? sum[i][1] + load(to + LANES) : sum[i][1]);
    }
}

static void pack_a(int64_t m, int64_t k, const float *a, int64_t row, int64_t column, float *to) {
    for (int64_t i = 0; i < m; i += ROWS, a += ROWS * row) {
        const int64_t valid = m - i < ROWS ? m - i : ROWS;
        if (valid == ROWS && row == 1) {
            for (int64_t p = 0; p < k; p++, to += ROWS) memcpy(to, a + p * column, sizeof(float) * ROWS);
        } else if (valid == ROWS) {
            for (int64_t p = 0; p < k; p++, to += ROWS)
#pragma GCC unroll 16
                for (int x = 0; x < ROWS; x++) to[x] = a[x * row + p * column];
        } else {
            for (int64_t p = 0; p < k; p++, to += ROWS) {
                for (int64_t x = 0; x < valid; x++) to[x] = a[x * row + p * column];
                for (int64_t x = valid; x < ROWS; x++) to[x] = 0;
            }
        }
    }
}

static void pack_b(int64_t n, int64_t k, const float *b, int64_t row, int64_t column, float *to) {
    if (column == 1 && n >= COLUMNS) {
        for (int64_t p = 0; p < k; p++, to += COLUMNS) memcpy(to, b + p * row, sizeof(float) * COLUMNS);
        return;
    }
    for (int64_t p = 0; p < k; p++, to += COLUMNS) {
        int64_t x = 0;
        for (; x < n && x < COLUMNS; x++) to[x] = b[p * row + x * column];
        for (; x < COLUMNS; x++) to[x] = 0;
    }
}

#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)
#define TEXT(a) #a
#define AS_TEXT(a) TEXT(a)
const msa_sgemm_tiles NAMED(msa_sgemm_, MSA_ISA) = {AS_TEXT(MSA_ISA), ROWS, COLUMNS, packed, by_rows, by_columns, pack_a, pack_b};
