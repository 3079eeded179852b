/* The blocked single precision product over the tiles of sgemm_tiles.c.
 *
 * b's block (DEPTH rows, all columns up to WIDTH) is packed once by all threads; then each thread takes blocks of rows of a, packs
 * them and multiplies. A panel of b stays in the first cache, a block of a in the second. */
#include "cpu/sgemm.h"

#include "base/memory.h"
#include "base/parallel.h"

enum { DEPTH = 384, HEIGHT = 96, WIDTH = 3072 };

static int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows of a block: about HEIGHT, and as many blocks for one thread as for another. */
static int64_t block_height(int64_t m, int threads, int rows) {
    const int64_t blocks = rounded_up((m + HEIGHT - 1) / HEIGHT, threads);
    return rounded_up((m + blocks - 1) / blocks, rows);
}

int msa_sgemm_run(int64_t m, int64_t n, int64_t k, float alpha, msa_matrix a, msa_matrix b, float beta, float *c, int64_t ldc) {
    const msa_sgemm_tiles *t = msa_sgemm;
    const int threads = msa_threads_for(m * n * k, 1 << 18);
    const int64_t depth = least(k, DEPTH), width = least(rounded_up(n, t->columns), WIDTH), height = block_height(m, threads, t->rows);
    const int64_t panels = depth * width, block = depth * height;
    float *memory = msa_data_alloc(sizeof(float) * (size_t)(panels + threads * block));
    if (!memory) return -1;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float *rows = memory + panels + omp_get_thread_num() * block;
        for (int64_t j = 0; j < n; j += WIDTH)
            for (int64_t p = 0; p < k; p += DEPTH) {
                const int64_t w = least(n - j, WIDTH), d = least(k - p, DEPTH);
                const float *from = (const float *)b.data + p * b.row + j * b.column;
#pragma omp for schedule(static)
                for (int64_t x = 0; x < w; x += t->columns)
                    t->pack_b(least(w - x, t->columns), d, from + x * b.column, b.row, b.column, memory + x * d);
#pragma omp for schedule(dynamic)
                for (int64_t i = 0; i < m; i += height) {
                    const int64_t h = least(m - i, height);
                    t->pack_a(h, d, (const float *)a.data + i * a.row + p * a.column, a.row, a.column, rows);
                    for (int64_t x = 0; x < w; x += t->columns)
                        for (int64_t y = 0; y < h; y += t->rows)
                            t->packed(d, rows + y * d, memory + x * d, alpha, p ? 1 : beta, c + (i + y) * ldc + j + x, ldc,
                                      (int)least(h - y, t->rows), (int)least(w - x, t->columns));
                }
            }
    }
    msa_data_free(memory);
    return 0;
}
