/* Helpers of the formulas of matrix decompositions (linalg.c). Gradients that are NULL count as zero. */
#ifndef MSA_OPS_HELPERS_LINALG_H
#define MSA_OPS_HELPERS_LINALG_H

#include "ops/internal.h"

msa_tensor *cholesky_gradient(msa_tensor *grad, msa_tensor *L, bool upper);
msa_tensor *lu_factor_gradient(msa_tensor *grad, msa_tensor *LU, msa_tensor *pivots);
msa_tensor *inverse_gradient(msa_tensor *grad, msa_tensor *inverse);
int solve_gradients(msa_tensor *grad, msa_tensor *A, msa_tensor *X, msa_ints needs, msa_tensor **results);
int lu_solve_gradients(msa_tensor *grad, msa_tensor *LU, msa_tensor *pivots, msa_tensor *B, msa_tensor *X, bool adjoint, msa_ints needs, msa_tensor **results);
int triangular_gradients(msa_tensor *grad, msa_tensor *A, msa_tensor *X, bool upper, bool left, bool unitriangular, msa_ints needs, msa_tensor **results);
msa_tensor *det_gradient(msa_tensor *grad, msa_tensor *A, msa_tensor *result, msa_tensor *LU, msa_tensor *pivots);
msa_tensor *slogdet_gradient(msa_tensor *grad_sign, msa_tensor *grad_logarithm, msa_tensor *A, msa_tensor *sign, msa_tensor *LU, msa_tensor *pivots);
msa_tensor *qr_gradient(msa_tensor *grad_Q, msa_tensor *grad_R, msa_tensor *Q, msa_tensor *R, const char *mode);
msa_tensor *eigh_gradient(msa_tensor *grad_L, msa_tensor *grad_V, msa_tensor *L, msa_tensor *V);
msa_tensor *eig_gradient(msa_tensor *grad_L, msa_tensor *grad_V, msa_tensor *L, msa_tensor *V);
msa_tensor *svd_gradient(msa_tensor *grad_U, msa_tensor *grad_S, msa_tensor *grad_Vh, msa_tensor *U, msa_tensor *S, msa_tensor *Vh);
msa_tensor *pinv_gradient(msa_tensor *grad, msa_tensor *A, msa_tensor *P);

#endif
