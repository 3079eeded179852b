/* LAPACK and BLAS over one column-major matrix at a time, by element type. Pointers are to elements of `type`, which is one of the two
 * floating and the two complex types; real results (w, s) are of its real type. `info` is LAPACK's: 0, or what went wrong where. */
#ifndef MSA_CPU_LAPACK_H
#define MSA_CPU_LAPACK_H

#include "msadapter/dtype.h"

/* Those that need no workspace return info. */
int msa_lapack_potrf(msa_dtype type, char uplo, int n, void *a);
int msa_lapack_getrf(msa_dtype type, int m, int n, void *a, int *pivots);
int msa_lapack_getrs(msa_dtype type, char trans, int n, int columns, const void *a, const int *pivots, void *b);
int msa_lapack_sytrs(msa_dtype type, bool hermitian, int n, int columns, const void *a, const int *pivots, void *b);
/* a (n,n) or, from the right, of b's columns; b (m,n) = op(a)^-1 b or b op(a)^-1. */
void msa_blas_trsm(msa_dtype type, char side, char uplo, char diag, int m, int n, const void *a, void *b);

/* The others allocate: -1 when that fails. */
int msa_lapack_getri(msa_dtype type, int n, void *a, const int *pivots, int *info);
int msa_lapack_sytrf(msa_dtype type, bool hermitian, int n, void *a, int *pivots, int *info);
int msa_lapack_geqrf(msa_dtype type, int m, int n, void *a, void *tau, int *info);
int msa_lapack_orgqr(msa_dtype type, int m, int n, int k, void *a, const void *tau, int *info);
int msa_lapack_ormqr(msa_dtype type, char side, bool adjoint, int m, int n, int k, const void *a, const void *tau, void *c, int *info);
int msa_lapack_syevd(msa_dtype type, bool vectors, char uplo, int n, void *a, void *w, int *info);
int msa_lapack_gesdd(msa_dtype type, char job, int m, int n, void *a, void *s, void *u, int ldu, void *vt, int ldvt, int *info);
/* w: n complex values; for a real type v holds LAPACK's pairs of columns. v NULL: no vectors. */
int msa_lapack_geev(msa_dtype type, int n, void *a, void *w, void *v, int *info);
/* driver: 'l' gels, 'y' gelsy, 'd' gelsd, 's' gelss. b is (max(m,n), columns). s NULL where the driver has no singular values. */
int msa_lapack_lstsq(msa_dtype type, char driver, int m, int n, int columns, void *a, void *b, double rcond, int *rank, void *s, int *info);

#endif
