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
TRANSPOSE(uint32_t, transpose_4)
TRANSPOSE(uint64_t, transpose_8)
TRANSPOSE(__uint128_t, transpose_16)

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
