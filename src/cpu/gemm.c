/* Matrix products: float32 goes to oneDNN or sgemm.c unless it is tiny; float64 and what is tiny to the register-blocked loops
 * below; integers and complex numbers to plain loops.
 *
 * The blocked loops follow Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication": B is packed in panels
 * as wide as the register block, A is read where it lies. */
#include "cpu/gemm.h"

#include "base/memory.h"
#include "base/parallel.h"
#include "cpu/onednn.h"
#include "cpu/sgemm.h"
#include "cpu/vector.h"

enum { DEPTH = 256, WIDTH = 512, TINY = 32 * 32 * 32, STACK_PANEL = 4096 };

/* MR rows by two vectors of columns, accumulated over k, then c = alpha * sum + beta * c. `edge` columns are valid. */
#define MICRO(NAME, T, V, LANES) \
    MSA_INLINE void NAME##_store(T *c, V value, T alpha, T beta) { \
        V old; \
        memcpy(&old, c, sizeof old); \
        value = beta == 0 ? value * alpha : value * alpha + old * beta; \
        memcpy(c, &value, sizeof value); \
    } \
    MSA_INLINE void NAME##_micro(const int MR, int64_t k, const T *a, int64_t ar, int64_t ac, const T *panel, T alpha, T beta, \
                                 T *c, int64_t ldc, int64_t edge) { \
        V sum[6][2]; \
        for (int i = 0; i < MR; i++) sum[i][0] = sum[i][1] = (V){0}; \
        for (int64_t p = 0; p < k; p++) { \
            V b0, b1; \
            memcpy(&b0, panel + p * 2 * LANES, sizeof b0); \
            memcpy(&b1, panel + p * 2 * LANES + LANES, sizeof b1); \
            for (int i = 0; i < MR; i++) { \
                const T x = a[i * ar + p * ac]; \
                sum[i][0] += b0 * x; \
                sum[i][1] += b1 * x; \
            } \
        } \
        if (edge == 2 * LANES) { \
            for (int i = 0; i < MR; i++) { \
                NAME##_store(c + i * ldc, sum[i][0], alpha, beta); \
                NAME##_store(c + i * ldc + LANES, sum[i][1], alpha, beta); \
            } \
            return; \
        } \
        for (int i = 0; i < MR; i++) { \
            T row[2 * LANES]; \
            memcpy(row, sum[i], sizeof row); \
            for (int64_t j = 0; j < edge; j++) \
                c[i * ldc + j] = beta == 0 ? alpha * row[j] : alpha * row[j] + beta * c[i * ldc + j]; \
        } \
    } \
    /* c (m, n) += a (m, k) @ packed panels of b (k, n). */ \
    MSA_VECTOR static void NAME##_panels(int64_t m, int64_t n, int64_t k, const T *a, int64_t ar, int64_t ac, const T *packed, \
                                         T alpha, T beta, T *c, int64_t ldc) { \
        for (int64_t j = 0; j < n; j += 2 * LANES) { \
            const T *panel = packed + j * k; \
            const int64_t edge = n - j < 2 * LANES ? n - j : 2 * LANES; \
            int64_t i = 0; \
            for (; i + 6 <= m; i += 6) NAME##_micro(6, k, a + i * ar, ar, ac, panel, alpha, beta, c + i * ldc + j, ldc, edge); \
            switch (m - i) { \
            case 5: NAME##_micro(5, k, a + i * ar, ar, ac, panel, alpha, beta, c + i * ldc + j, ldc, edge); break; \
            case 4: NAME##_micro(4, k, a + i * ar, ar, ac, panel, alpha, beta, c + i * ldc + j, ldc, edge); break; \
            case 3: NAME##_micro(3, k, a + i * ar, ar, ac, panel, alpha, beta, c + i * ldc + j, ldc, edge); break; \
            case 2: NAME##_micro(2, k, a + i * ar, ar, ac, panel, alpha, beta, c + i * ldc + j, ldc, edge); break; \
            case 1: NAME##_micro(1, k, a + i * ar, ar, ac, panel, alpha, beta, c + i * ldc + j, ldc, edge); break; \
            default: break; \
            } \
        } \
    } \
    static void NAME##_pack(int64_t k, int64_t n, const T *b, int64_t br, int64_t bc, T *packed) { \
        for (int64_t j = 0; j < n; j += 2 * LANES) { \
            const int64_t edge = n - j < 2 * LANES ? n - j : 2 * LANES; \
            T *to = packed + j * k; \
            for (int64_t p = 0; p < k; p++, to += 2 * LANES) { \
                const T *from = b + p * br + j * bc; \
                if (bc == 1 && edge == 2 * LANES) memcpy(to, from, sizeof(T) * 2 * LANES); \
                else { \
                    for (int64_t x = 0; x < edge; x++) to[x] = from[x * bc]; \
                    for (int64_t x = edge; x < 2 * LANES; x++) to[x] = 0; \
                } \
            } \
        } \
    } \
    /* One thread's product; `packed` holds min(k, DEPTH) x (min(n, WIDTH) rounded up) elements. */ \
    static void NAME##_blocked(int64_t m, int64_t n, int64_t k, T alpha, const T *a, int64_t ar, int64_t ac, const T *b, \
                               int64_t br, int64_t bc, T beta, T *c, int64_t ldc, T *packed) { \
        for (int64_t j = 0; j < n; j += WIDTH) { \
            const int64_t width = n - j < WIDTH ? n - j : WIDTH; \
            for (int64_t p = 0; p == 0 || p < k; p += DEPTH) { /* once for k == 0: c = beta * c */ \
                const int64_t depth = k - p < DEPTH ? k - p : DEPTH; \
                NAME##_pack(depth, width, b + p * br + j * bc, br, bc, packed); \
                NAME##_panels(m, width, depth, a + p * ac, ar, ac, packed, alpha, p == 0 ? beta : 1, c + j, ldc); \
            } \
        } \
    } \
    static int NAME##_own(int64_t m, int64_t n, int64_t k, T alpha, msa_matrix a, msa_matrix b, T beta, T *c, int64_t ldc) { \
        const int64_t depth = k < DEPTH ? k : DEPTH, wide = (n + 2 * LANES - 1) / (2 * LANES) * (2 * LANES), \
                      panel = depth * (wide < WIDTH ? wide : WIDTH); \
        if (panel <= STACK_PANEL) { \
            T packed[STACK_PANEL]; \
            NAME##_blocked(m, n, k, alpha, a.data, a.row, a.column, b.data, b.row, b.column, beta, c, ldc, packed); \
            return 0; \
        } \
        const int threads = m >= 12 ? msa_threads_for(m * n * k, 65536) : 1; \
        T *packed = msa_data_alloc(sizeof(T) * (size_t)panel * (size_t)threads); \
        if (!packed) return -1; \
        _Pragma("omp parallel for num_threads(threads)") for (int t = 0; t < threads; t++) { \
            int64_t begin, end; \
            msa_share(m, threads, t, &begin, &end); \
            NAME##_blocked(end - begin, n, k, alpha, (const T *)a.data + begin * a.row, a.row, a.column, b.data, b.row, b.column, \
                           beta, c + begin * ldc, ldc, packed + t * panel); \
        } \
        msa_data_free(packed); \
        return 0; \
    }
MICRO(f32, float, msa_v8f, 8)
MICRO(f64, double, msa_v4d, 4)

/* Products with a vector: n == 1. Rows of a that are contiguous give dot products, otherwise columns are added up. */
#define VECTOR_PRODUCT(NAME, T) \
    MSA_VECTOR static T NAME##_dot_run(int64_t k, const T *a, const T *b) { \
        T sum = 0; \
        _Pragma("omp simd reduction(+ : sum)") for (int64_t p = 0; p < k; p++) sum += a[p] * b[p]; \
        return sum; \
    } \
    static void NAME##_gemv(int64_t m, int64_t k, T alpha, const T *a, int64_t ar, int64_t ac, const T *x, int64_t xs, T beta, T *c, \
                            int64_t ldc) { \
        for (int64_t i = 0; i < m; i++) { \
            T sum = 0; \
            if (ac == 1 && xs == 1) sum = NAME##_dot_run(k, a + i * ar, x); \
            else \
                for (int64_t p = 0; p < k; p++) sum += a[i * ar + p * ac] * x[p * xs]; \
            c[i * ldc] = beta == 0 ? alpha * sum : alpha * sum + beta * c[i * ldc]; \
        } \
    }
VECTOR_PRODUCT(f32, float)
VECTOR_PRODUCT(f64, double)

#define PLAIN(NAME, T, SUM, ALPHA, BETA) \
    static void NAME##_plain(int64_t m, int64_t n, int64_t k, msa_scalar alpha_, msa_matrix a_, msa_matrix b_, msa_scalar beta_, \
                             T *c, int64_t ldc) { \
        const T *a = a_.data, *b = b_.data; \
        const SUM alpha = ALPHA, beta = BETA; \
        for (int64_t i = 0; i < m; i++) \
            for (int64_t j = 0; j < n; j++) { \
                SUM sum = 0; \
                for (int64_t p = 0; p < k; p++) sum += (SUM)a[i * a_.row + p * a_.column] * (SUM)b[p * b_.row + j * b_.column]; \
                c[i * ldc + j] = (T)(beta == 0 ? alpha * sum : alpha * sum + beta * (SUM)c[i * ldc + j]); \
            } \
    }
#define AS_COMPLEX(s) ((s).kind >= MSA_FLOAT16 ? (s).d + (s).im * I : (double)(s).i)
PLAIN(u8, uint8_t, uint64_t, (uint64_t)msa_scalar_int(alpha_), (uint64_t)msa_scalar_int(beta_))
PLAIN(i8, int8_t, uint64_t, (uint64_t)msa_scalar_int(alpha_), (uint64_t)msa_scalar_int(beta_))
PLAIN(i16, int16_t, uint64_t, (uint64_t)msa_scalar_int(alpha_), (uint64_t)msa_scalar_int(beta_))
PLAIN(i32, int32_t, uint64_t, (uint64_t)msa_scalar_int(alpha_), (uint64_t)msa_scalar_int(beta_))
PLAIN(i64, int64_t, uint64_t, (uint64_t)msa_scalar_int(alpha_), (uint64_t)msa_scalar_int(beta_))
PLAIN(c64, c64, c128, AS_COMPLEX(alpha_), AS_COMPLEX(beta_))
PLAIN(c128, c128, c128, AS_COMPLEX(alpha_), AS_COMPLEX(beta_))

/* Whether BLAS can take the matrix: one stride is 1 and the other leaps over a whole row. */
static bool blas_form(msa_matrix a, int64_t rows, int64_t columns, char *transposed, int64_t *leading) {
    if ((a.column == 1 || columns == 1) && (a.row >= columns || rows == 1)) {
        *transposed = 'N';
        *leading = a.row >= columns && rows > 1 ? a.row : columns;
        return true;
    }
    if ((a.row == 1 || rows == 1) && (a.column >= rows || columns == 1)) {
        *transposed = 'T';
        *leading = a.column >= rows && columns > 1 ? a.column : rows;
        return true;
    }
    return false;
}

/* oneDNN 2.6's AVX2 product falls to half its speed where it walks columns that are a multiple of 2 KiB apart, which share few
 * cache sets: mostly the gradients of weights whose sizes are powers of two. Ours copies such operands first. */
static bool own_is_faster(int64_t m, int64_t n, int64_t k, char ta, int64_t lda, char tb, int64_t ldb) {
    if (msa_sgemm != &msa_sgemm_avx2 || m < 48 || n < 32 || m * n * k < 1 << 22) return false;
    return (ta == 'T' && lda % 512 == 0) || (tb == 'N' && ldb % 512 == 0 && k >= 512);
}

static int f32_large(int64_t m, int64_t n, int64_t k, float alpha, msa_matrix a, msa_matrix b, float beta, float *c, int64_t ldc) {
    char ta, tb;
    int64_t lda, ldb;
    if (!blas_form(a, m, k, &ta, &lda) || !blas_form(b, k, n, &tb, &ldb) || own_is_faster(m, n, k, ta, lda, tb, ldb))
        return m * n * k < 1 << 18 ? f32_own(m, n, k, alpha, a, b, beta, c, ldc) : msa_sgemm_run(m, n, k, alpha, a, b, beta, c, ldc);
    return msa_onednn_sgemm(ta, tb, m, n, k, alpha, a.data, lda, b.data, ldb, beta, c, ldc);
}

int msa_gemm(msa_dtype dtype, int64_t m, int64_t n, int64_t k, msa_scalar alpha, msa_matrix a, msa_matrix b,
             msa_scalar beta, void *c, int64_t ldc) {
    if (m <= 0 || n <= 0) return 0;
    const double al = dtype == MSA_FLOAT32 || dtype == MSA_FLOAT64 ? msa_scalar_double(alpha) : 1, be = msa_scalar_double(beta);
    switch (dtype) {
    case MSA_FLOAT32:
        if (n == 1 && m * k < (1 << 20)) f32_gemv(m, k, (float)al, a.data, a.row, a.column, b.data, b.row, (float)be, c, ldc);
        else if (m * n * k <= TINY || k == 0) return f32_own(m, n, k, (float)al, a, b, (float)be, c, ldc);
        else return f32_large(m, n, k, (float)al, a, b, (float)be, c, ldc);
        return 0;
    case MSA_FLOAT64:
        if (n == 1) f64_gemv(m, k, al, a.data, a.row, a.column, b.data, b.row, be, c, ldc);
        else return f64_own(m, n, k, al, a, b, be, c, ldc);
        return 0;
    case MSA_COMPLEX64: c64_plain(m, n, k, alpha, a, b, beta, c, ldc); return 0;
    case MSA_COMPLEX128: c128_plain(m, n, k, alpha, a, b, beta, c, ldc); return 0;
    case MSA_UINT8: u8_plain(m, n, k, alpha, a, b, beta, c, ldc); return 0;
    case MSA_INT8: i8_plain(m, n, k, alpha, a, b, beta, c, ldc); return 0;
    case MSA_INT16: i16_plain(m, n, k, alpha, a, b, beta, c, ldc); return 0;
    case MSA_INT32: i32_plain(m, n, k, alpha, a, b, beta, c, ldc); return 0;
    case MSA_INT64: i64_plain(m, n, k, alpha, a, b, beta, c, ldc); return 0;
    default: return msa_fail(MSA_NOT_IMPLEMENTED, "matrix product not implemented for '%s'", msa_dtype_type_name(dtype));
    }
}

static msa_matrix moved(msa_matrix m, int64_t elements, size_t size) {
    m.data = (const char *)m.data + elements * (int64_t)size;
    return m;
}

int msa_gemm_batched(msa_dtype dtype, int64_t batch, msa_batch_steps steps, int64_t m, int64_t n, int64_t k, msa_scalar alpha,
                     msa_matrix a, msa_matrix b, msa_scalar beta, void *c, int64_t ldc) {
    const size_t size = msa_dtype_size(dtype);
    const int threads = batch > 1 ? msa_threads_for(batch * m * n * (k ? k : 1), 32768) : 1;
    int failed = 0;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t t = 0; t < batch; t++)
        if (msa_gemm(dtype, m, n, k, alpha, moved(a, t * steps.a, size), moved(b, t * steps.b, size), beta,
                     (char *)c + t * steps.c * (int64_t)size, ldc) != 0)
            failed = 1;
    return failed ? msa_fail(MSA_RUNTIME_ERROR, "matrix product failed: out of memory or oneDNN refused it") : 0;
}
