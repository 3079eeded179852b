/* The only file that calls LAPACK and BLAS, by their Fortran interface: integers are 32 bits, everything goes by address, and the
 * length of every character argument follows behind the others. */
#include "cpu/lapack.h"

#include <complex.h>
#include <string.h>

#include "base/memory.h"

typedef const char *text;
typedef const int *in;

#define DECLARE(P) \
    void P##potrf_(text, in, void *, in, int *, size_t); \
    void P##getrf_(in, in, void *, in, int *, int *); \
    void P##getrs_(text, in, in, const void *, in, in, void *, in, int *, size_t); \
    void P##trsm_(text, text, text, text, in, in, const void *, const void *, in, void *, in, size_t, size_t, size_t, size_t); \
    void P##getri_(in, void *, in, in, void *, in, int *); \
    void P##sytrf_(text, in, void *, in, int *, void *, in, int *, size_t); \
    void P##sytrs_(text, in, in, const void *, in, in, void *, in, int *, size_t); \
    void P##geqrf_(in, in, void *, in, void *, void *, in, int *); \
    void P##gels_(text, in, in, in, void *, in, void *, in, void *, in, int *, size_t);
DECLARE(s) DECLARE(d) DECLARE(c) DECLARE(z)

#define DECLARE_REAL(P) \
    void P##orgqr_(in, in, in, void *, in, const void *, void *, in, int *); \
    void P##ormqr_(text, text, in, in, in, const void *, in, const void *, void *, in, void *, in, int *, size_t, size_t); \
    void P##syevd_(text, text, in, void *, in, void *, void *, in, int *, in, int *, size_t, size_t); \
    void P##gesdd_(text, in, in, void *, in, void *, void *, in, void *, in, void *, in, int *, int *, size_t); \
    void P##geev_(text, text, in, void *, in, void *, void *, void *, in, void *, in, void *, in, int *, size_t, size_t); \
    void P##gelsy_(in, in, in, void *, in, void *, in, int *, const void *, int *, void *, in, int *); \
    void P##gelss_(in, in, in, void *, in, void *, in, void *, const void *, int *, void *, in, int *); \
    void P##gelsd_(in, in, in, void *, in, void *, in, void *, const void *, int *, void *, in, int *, int *);
DECLARE_REAL(s) DECLARE_REAL(d)

#define DECLARE_COMPLEX(P) \
    void P##hetrf_(text, in, void *, in, int *, void *, in, int *, size_t); \
    void P##hetrs_(text, in, in, const void *, in, in, void *, in, int *, size_t); \
    void P##ungqr_(in, in, in, void *, in, const void *, void *, in, int *); \
    void P##unmqr_(text, text, in, in, in, const void *, in, const void *, void *, in, void *, in, int *, size_t, size_t); \
    void P##heevd_(text, text, in, void *, in, void *, void *, in, void *, in, int *, in, int *, size_t, size_t); \
    void P##gesdd_(text, in, in, void *, in, void *, void *, in, void *, in, void *, in, void *, int *, int *, size_t); \
    void P##geev_(text, text, in, void *, in, void *, void *, in, void *, in, void *, in, void *, int *, size_t, size_t); \
    void P##gelsy_(in, in, in, void *, in, void *, in, int *, const void *, int *, void *, in, void *, int *); \
    void P##gelss_(in, in, in, void *, in, void *, in, void *, const void *, int *, void *, in, void *, int *); \
    void P##gelsd_(in, in, in, void *, in, void *, in, void *, const void *, int *, void *, in, void *, int *, int *);
DECLARE_COMPLEX(c) DECLARE_COMPLEX(z)

#define BY_TYPE(REAL, COMPLEX, ...) \
    switch (type) { \
    case MSA_FLOAT32: s##REAL##_(__VA_ARGS__); break; \
    case MSA_FLOAT64: d##REAL##_(__VA_ARGS__); break; \
    case MSA_COMPLEX64: c##COMPLEX##_(__VA_ARGS__); break; \
    default: z##COMPLEX##_(__VA_ARGS__); break; \
    }
/* The same where the complex routine takes a real workspace before info (and before the integers' one). */
#define BY_TYPE_RWORK(NAME, COMPLEX, COMMON, REST) \
    switch (type) { \
    case MSA_FLOAT32: s##NAME##_(UNPACK COMMON, UNPACK REST); break; \
    case MSA_FLOAT64: d##NAME##_(UNPACK COMMON, UNPACK REST); break; \
    case MSA_COMPLEX64: c##COMPLEX##_(UNPACK COMMON, rwork, UNPACK REST); break; \
    default: z##COMPLEX##_(UNPACK COMMON, rwork, UNPACK REST); break; \
    }
#define UNPACK(...) __VA_ARGS__

static int at_least_1(int n) { return n > 0 ? n : 1; }
static int larger(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

/* The size that a workspace query answered: a number of the routine's own type. A float may be rounded down. */
static int answered(msa_dtype type, const void *work) {
    double size = type == MSA_FLOAT32 || type == MSA_COMPLEX64 ? *(const float *)work : *(const double *)work;
    if (type == MSA_FLOAT32 || type == MSA_COMPLEX64) size *= 1 + 1e-6;
    return at_least_1((int)size + 1);
}

/* Runs CALL(work, &size) twice: for the size, then to work. */
#define WITH_WORK(CALL) \
    double query[2] = {0, 0}; \
    void *work = query; \
    int lwork = -1; \
    CALL; \
    if (*info != 0) return 0; \
    lwork = answered(type, query); \
    msa_auto_free void *memory = work = msa_malloc((size_t)lwork * msa_dtype_size(type)); \
    if (!memory) return -1; \
    CALL; \
    return 0

int msa_lapack_potrf(msa_dtype type, char uplo, int n, void *a) {
    int lda = at_least_1(n), info = 0;
    BY_TYPE(potrf, potrf, &uplo, &n, a, &lda, &info, 1)
    return info;
}

int msa_lapack_getrf(msa_dtype type, int m, int n, void *a, int *pivots) {
    int lda = at_least_1(m), info = 0;
    BY_TYPE(getrf, getrf, &m, &n, a, &lda, pivots, &info)
    return info;
}

int msa_lapack_getrs(msa_dtype type, char trans, int n, int columns, const void *a, const int *pivots, void *b) {
    int lda = at_least_1(n), info = 0;
    BY_TYPE(getrs, getrs, &trans, &n, &columns, a, &lda, pivots, b, &lda, &info, 1)
    return info;
}

int msa_lapack_sytrs(msa_dtype type, bool hermitian, int n, int columns, const void *a, const int *pivots, void *b) {
    int lda = at_least_1(n), info = 0;
    if (hermitian && type == MSA_COMPLEX64) chetrs_("L", &n, &columns, a, &lda, pivots, b, &lda, &info, 1);
    else if (hermitian && type == MSA_COMPLEX128) zhetrs_("L", &n, &columns, a, &lda, pivots, b, &lda, &info, 1);
    else BY_TYPE(sytrs, sytrs, "L", &n, &columns, a, &lda, pivots, b, &lda, &info, 1)
    return info;
}

void msa_blas_trsm(msa_dtype type, char side, char uplo, char diag, int m, int n, const void *a, void *b) {
    const float one_single[2] = {1, 0};
    const double one_double[2] = {1, 0};
    const void *one = type == MSA_FLOAT32 || type == MSA_COMPLEX64 ? (const void *)one_single : one_double;
    int lda = at_least_1(side == 'L' ? m : n), ldb = at_least_1(m);
    BY_TYPE(trsm, trsm, &side, &uplo, "N", &diag, &m, &n, one, a, &lda, b, &ldb, 1, 1, 1, 1)
}

int msa_lapack_getri(msa_dtype type, int n, void *a, const int *pivots, int *info) {
    int lda = at_least_1(n);
    WITH_WORK(BY_TYPE(getri, getri, &n, a, &lda, pivots, work, &lwork, info));
}

int msa_lapack_sytrf(msa_dtype type, bool hermitian, int n, void *a, int *pivots, int *info) {
    int lda = at_least_1(n);
    if (hermitian && msa_is_complex(type)) {
        WITH_WORK(if (type == MSA_COMPLEX64) chetrf_("L", &n, a, &lda, pivots, work, &lwork, info, 1);
                  else zhetrf_("L", &n, a, &lda, pivots, work, &lwork, info, 1));
    }
    WITH_WORK(BY_TYPE(sytrf, sytrf, "L", &n, a, &lda, pivots, work, &lwork, info, 1));
}

int msa_lapack_geqrf(msa_dtype type, int m, int n, void *a, void *tau, int *info) {
    int lda = at_least_1(m);
    WITH_WORK(BY_TYPE(geqrf, geqrf, &m, &n, a, &lda, tau, work, &lwork, info));
}

int msa_lapack_orgqr(msa_dtype type, int m, int n, int k, void *a, const void *tau, int *info) {
    int lda = at_least_1(m);
    WITH_WORK(BY_TYPE(orgqr, ungqr, &m, &n, &k, a, &lda, tau, work, &lwork, info));
}

int msa_lapack_ormqr(msa_dtype type, char side, bool adjoint, int m, int n, int k, const void *a, const void *tau, void *c, int *info) {
    int lda = at_least_1(side == 'L' ? m : n), ldc = at_least_1(m);
    text trans = !adjoint ? "N" : msa_is_complex(type) ? "C" : "T";
    WITH_WORK(BY_TYPE(ormqr, unmqr, &side, trans, &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, info, 1, 1));
}

int msa_lapack_syevd(msa_dtype type, bool vectors, char uplo, int n, void *a, void *w, int *info) {
    text job = vectors ? "V" : "N";
    int lda = at_least_1(n), lwork = -1, lrwork = -1, liwork = -1, iquery = 0;
    double query[2] = {0, 0}, rquery[2] = {0, 0};
    void *work = query, *rwork = rquery;
    int *iwork = &iquery;
    for (int pass = 0; pass < 2; pass++) {
        switch (type) {
        case MSA_FLOAT32: ssyevd_(job, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, info, 1, 1); break;
        case MSA_FLOAT64: dsyevd_(job, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork, info, 1, 1); break;
        case MSA_COMPLEX64: cheevd_(job, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1); break;
        default: zheevd_(job, &uplo, &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1); break;
        }
        if (pass == 1 || *info != 0) break;
        lwork = answered(type, query);
        lrwork = msa_is_complex(type) ? answered(msa_dtype_real(type), rquery) : 1;
        liwork = at_least_1(iquery);
        work = msa_malloc((size_t)lwork * 16);
        rwork = msa_malloc((size_t)lrwork * 8);
        iwork = msa_malloc((size_t)liwork * sizeof(int));
        if (!work || !rwork || !iwork) {
            free(work), free(rwork), free(iwork);
            return -1;
        }
    }
    if (work != query) free(work), free(rwork), free(iwork);
    return 0;
}

int msa_lapack_gesdd(msa_dtype type, char job, int m, int n, void *a, void *s, void *u, int ldu, void *vt, int ldvt, int *info) {
    int lda = at_least_1(m);
    const size_t low = (size_t)smaller(m, n), high = (size_t)larger(m, n);
    msa_auto_free int *iwork = msa_malloc(sizeof(int) * (8 * low + 1));
    msa_auto_free void *rwork = msa_malloc(8 * (low * (5 * low + 2 * high + 9) + 1)); /* the larger of what any job wants */
    if (!iwork || !rwork) return -1;
    ldu = at_least_1(ldu);
    ldvt = at_least_1(ldvt);
    WITH_WORK(BY_TYPE_RWORK(gesdd, gesdd, (&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork), (iwork, info, 1)));
}

/* wr and wi as complex numbers. */
static void paired(msa_dtype type, int n, const void *re, const void *im, void *w) {
    for (int i = 0; i < n; i++) {
        if (type == MSA_FLOAT32) ((float *)w)[2 * i] = ((const float *)re)[i], ((float *)w)[2 * i + 1] = ((const float *)im)[i];
        else ((double *)w)[2 * i] = ((const double *)re)[i], ((double *)w)[2 * i + 1] = ((const double *)im)[i];
    }
}

static int real_geev(msa_dtype type, text job, int n, void *a, void *parts, void *v, int *info) {
    int lda = at_least_1(n);
    void *re = parts, *im = (char *)parts + (size_t)n * msa_dtype_size(type);
    WITH_WORK(if (type == MSA_FLOAT32) sgeev_("N", job, &n, a, &lda, re, im, NULL, &lda, v, &lda, work, &lwork, info, 1, 1);
              else dgeev_("N", job, &n, a, &lda, re, im, NULL, &lda, v, &lda, work, &lwork, info, 1, 1));
}

int msa_lapack_geev(msa_dtype type, int n, void *a, void *w, void *v, int *info) {
    text job = v ? "V" : "N";
    msa_auto_free void *parts = msa_malloc((size_t)n * 16 + 16);
    if (!parts) return -1;
    if (!msa_is_complex(type)) {
        if (real_geev(type, job, n, a, parts, v, info) != 0) return -1;
        paired(type, n, parts, (char *)parts + (size_t)n * msa_dtype_size(type), w);
        return 0;
    }
    int lda = at_least_1(n);
    WITH_WORK(if (type == MSA_COMPLEX64) cgeev_("N", job, &n, a, &lda, w, NULL, &lda, v, &lda, work, &lwork, parts, info, 1, 1);
              else zgeev_("N", job, &n, a, &lda, w, NULL, &lda, v, &lda, work, &lwork, parts, info, 1, 1));
}

static int gels(msa_dtype type, int m, int n, int columns, void *a, void *b, int *info) {
    int lda = at_least_1(m), ldb = at_least_1(larger(m, n));
    WITH_WORK(BY_TYPE(gels, gels, "N", &m, &n, &columns, a, &lda, b, &ldb, work, &lwork, info, 1));
}

static int gelsy(msa_dtype type, int m, int n, int columns, void *a, void *b, const void *rcond, int *rank, int *info) {
    int lda = at_least_1(m), ldb = at_least_1(larger(m, n));
    msa_auto_free int *jpvt = msa_calloc((size_t)n + 1, sizeof(int));
    msa_auto_free void *rwork = msa_malloc((size_t)n * 16 + 16);
    if (!jpvt || !rwork) return -1;
    WITH_WORK(BY_TYPE_RWORK(gelsy, gelsy, (&m, &n, &columns, a, &lda, b, &ldb, jpvt, rcond, rank, work, &lwork), (info)));
}

static int gelss(msa_dtype type, int m, int n, int columns, void *a, void *b, const void *rcond, int *rank, void *s, int *info) {
    int lda = at_least_1(m), ldb = at_least_1(larger(m, n));
    msa_auto_free void *rwork = msa_malloc((size_t)smaller(m, n) * 40 + 40);
    if (!rwork) return -1;
    WITH_WORK(BY_TYPE_RWORK(gelss, gelss, (&m, &n, &columns, a, &lda, b, &ldb, s, rcond, rank, work, &lwork), (info)));
}

static int gelsd(msa_dtype type, int m, int n, int columns, void *a, void *b, const void *rcond, int *rank, void *s, int *info) {
    int lda = at_least_1(m), ldb = at_least_1(larger(m, n));
    /* Bounds of what the routine would answer for its smallest subproblems' size of 25 (SMLSIZ), with 32 levels. */
    const size_t low = (size_t)at_least_1(smaller(m, n)), smallest = 25, levels = 32, right = (size_t)columns;
    const size_t square = (smallest + 1) * (smallest + 1) > (size_t)larger(m, n) * (1 + right) + 2 * right
                              ? (smallest + 1) * (smallest + 1) : (size_t)larger(m, n) * (1 + right) + 2 * right;
    msa_auto_free int *iwork = msa_malloc(sizeof(int) * (3 * low * levels + 11 * low));
    msa_auto_free void *rwork = msa_malloc(8 * (10 * (size_t)larger(m, n) + 2 * low * smallest + 8 * low * levels + 3 * smallest * right + square));
    if (!iwork || !rwork) return -1;
    WITH_WORK(BY_TYPE_RWORK(gelsd, gelsd, (&m, &n, &columns, a, &lda, b, &ldb, s, rcond, rank, work, &lwork), (iwork, info)));
}

int msa_lapack_lstsq(msa_dtype type, char driver, int m, int n, int columns, void *a, void *b, double rcond, int *rank, void *s, int *info) {
    const float single = (float)rcond;
    const void *limit = type == MSA_FLOAT32 || type == MSA_COMPLEX64 ? (const void *)&single : &rcond;
    if (driver == 'l') return gels(type, m, n, columns, a, b, info);
    if (driver == 'y') return gelsy(type, m, n, columns, a, b, limit, rank, info);
    if (driver == 's') return gelss(type, m, n, columns, a, b, limit, rank, s, info);
    return gelsd(type, m, n, columns, a, b, limit, rank, s, info);
}
