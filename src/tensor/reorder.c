/* Batched matrix transposition in tiles that stay in the first-level cache. */
#include "tensor/reorder.h"

#include <string.h>

#include "base/parallel.h"

enum { TILE = 32 };

/* to is (columns, rows), from is (rows, columns). */
#define TRANSPOSE(T, NAME) \
    static void NAME(T *restrict to, const T *restrict from, int64_t rows, int64_t columns) { \
        if (rows == 3) { /* colour images, into channels last */ \
            for (int64_t j = 0; j < columns; j++) { \
                to[3 * j] = from[j]; \
                to[3 * j + 1] = from[columns + j]; \
                to[3 * j + 2] = from[2 * columns + j]; \
            } \
            return; \
        } \
        for (int64_t i0 = 0; i0 < rows; i0 += TILE) \
            for (int64_t j0 = 0; j0 < columns; j0 += TILE) { \
                int64_t i1 = i0 + TILE < rows ? i0 + TILE : rows, j1 = j0 + TILE < columns ? j0 + TILE : columns; \
                for (int64_t j = j0; j < j1; j++) \
                    for (int64_t i = i0; i < i1; i++) to[j * rows + i] = from[i * columns + j]; \
            } \
    }
TRANSPOSE(uint8_t, transpose_1)
TRANSPOSE(uint16_t, transpose_2)
TRANSPOSE(uint64_t, transpose_8)
TRANSPOSE(__uint128_t, transpose_16)

/* Four by four in registers, for floats: most of what networks reorder. */
typedef uint32_t four __attribute__((vector_size(16)));

static inline four load(const uint32_t *p) {
    four v;
    memcpy(&v, p, sizeof v);
    return v;
}
static inline void store(uint32_t *p, four v) { memcpy(p, &v, sizeof v); }

/* Three planes into triples; the number of columns that were done. */
static int64_t interleave(uint32_t *to, const uint32_t *from, int64_t columns) {
    int64_t j = 0;
    for (; j + 4 <= columns; j += 4, to += 12) {
        const four a = load(from + j), b = load(from + columns + j), c = load(from + 2 * columns + j);
        const four ab = __builtin_shuffle(a, b, (four){0, 4, 1, 5}), bc = __builtin_shuffle(b, c, (four){1, 5, 2, 6}),
                   ca = __builtin_shuffle(c, a, (four){2, 7, 3, 7});
        store(to, __builtin_shuffle(ab, c, (four){0, 1, 4, 2}));
        store(to + 4, __builtin_shuffle(bc, a, (four){0, 1, 6, 2}));
        store(to + 8, __builtin_shuffle(ca, b, (four){0, 1, 7, 2}));
    }
    return j;
}

static void transpose_4(uint32_t *restrict to, const uint32_t *restrict from, int64_t rows, int64_t columns) {
    if (rows == 3) {
        for (int64_t j = interleave(to, from, columns); j < columns; j++)
            for (int64_t i = 0; i < 3; i++) to[3 * j + i] = from[i * columns + j];
        return;
    }
    const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
    for (int64_t i0 = 0; i0 < whole_rows; i0 += TILE)
        for (int64_t j0 = 0; j0 < whole_columns; j0 += TILE) {
            const int64_t i1 = i0 + TILE < whole_rows ? i0 + TILE : whole_rows, j1 = j0 + TILE < whole_columns ? j0 + TILE : whole_columns;
            for (int64_t j = j0; j < j1; j += 4)
                for (int64_t i = i0; i < i1; i += 4) {
                    const uint32_t *f = from + i * columns + j;
                    const four a = load(f), b = load(f + columns), c = load(f + 2 * columns), d = load(f + 3 * columns);
                    const four ab = __builtin_shuffle(a, b, (four){0, 4, 1, 5}), cd = __builtin_shuffle(c, d, (four){0, 4, 1, 5}),
                               ab2 = __builtin_shuffle(a, b, (four){2, 6, 3, 7}), cd2 = __builtin_shuffle(c, d, (four){2, 6, 3, 7});
                    uint32_t *t = to + j * rows + i;
                    store(t, __builtin_shuffle(ab, cd, (four){0, 1, 4, 5}));
                    store(t + rows, __builtin_shuffle(ab, cd, (four){2, 3, 6, 7}));
                    store(t + 2 * rows, __builtin_shuffle(ab2, cd2, (four){0, 1, 4, 5}));
                    store(t + 3 * rows, __builtin_shuffle(ab2, cd2, (four){2, 3, 6, 7}));
                }
        }
    for (int64_t j = 0; j < columns; j++) /* the edges */
        for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; i++) to[j * rows + i] = from[i * columns + j];
}

static void batched(void *to, const void *from, int64_t n, int64_t rows, int64_t columns, size_t itemsize) {
    size_t step = (size_t)(rows * columns) * itemsize;
#pragma omp parallel for num_threads(msa_threads_for(n *rows *columns, MSA_GRAIN))
    for (int64_t i = 0; i < n; i++) {
        void *t = (char *)to + (size_t)i * step;
        const void *f = (const char *)from + (size_t)i * step;
        switch (itemsize) {
        case 1: transpose_1(t, f, rows, columns); break;
        case 2: transpose_2(t, f, rows, columns); break;
        case 4: transpose_4(t, f, rows, columns); break;
        case 8: transpose_8(t, f, rows, columns); break;
        default: transpose_16(t, f, rows, columns); break;
        }
    }
}

void msa_reorder_nhwc_to_nchw(void *to, const void *from, int64_t n, int64_t c, int64_t p, size_t itemsize) {
    batched(to, from, n, p, c, itemsize);
}

void msa_reorder_nchw_to_nhwc(void *to, const void *from, int64_t n, int64_t c, int64_t p, size_t itemsize) {
    batched(to, from, n, c, p, itemsize);
}
