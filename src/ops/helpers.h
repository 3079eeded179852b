/* What formulas of the table call that is not an operator itself. opgen reads the prototypes of this file. */
#ifndef MSA_OPS_HELPERS_H
#define MSA_OPS_HELPERS_H

#include "ops/internal.h"

/* A number as a 0-dim operand that is weak in type promotion. */
msa_tensor *msa_wrap_number(msa_scalar value);
msa_scalar msa_scalar_negated(msa_scalar value);
msa_scalar msa_scalar_added(msa_scalar a, msa_scalar b);
msa_scalar msa_scalar_subtracted(msa_scalar a, msa_scalar b);
msa_scalar msa_scalar_multiplied(msa_scalar a, msa_scalar b);
msa_scalar msa_scalar_divided(msa_scalar a, msa_scalar b);
msa_scalar msa_scalar_conjugated(msa_scalar value);
/* Refuses a zero among integer divisors. */
int check_divisor(msa_tensor *self, msa_tensor *other);

/* The gradient of a reduction laid out over the shape that was reduced: dims come back as size 1 unless kept. */
msa_tensor *unreduced(msa_tensor *grad, msa_ints sizes, msa_ints dims, bool keepdim);
/* Elements that a reduction over dims (none: all) puts together. */
int64_t reduced_count(msa_ints sizes, msa_ints dims);
/* The gradient through a multiplication by alpha: grad * conj(alpha), grad itself for 1. */
msa_tensor *scaled(msa_tensor *grad, msa_scalar alpha);
msa_tensor *multiplied(msa_tensor *t, msa_scalar alpha); /* t * alpha, t itself for 1 */
/* Gradients with conditions (pointwise.c). A tie between two operands gives each half. */
msa_tensor *share_of_extreme(msa_tensor *grad, msa_tensor *wins, msa_tensor *ties);
msa_tensor *masked_grad(msa_tensor *grad, msa_tensor *mask);
msa_tensor *pow_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *exponent);
msa_tensor *pow_exponent_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *exponent, msa_tensor *result);
msa_tensor *copysign_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result);
msa_tensor *abs_gradient(msa_tensor *grad, msa_tensor *self);
msa_tensor *sgn_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result);
msa_tensor *angle_gradient(msa_tensor *grad, msa_tensor *self);
/* Gradients of reductions (reduce.c). `scattered` puts a gradient back where the values were taken from. */
msa_tensor *extreme_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result, msa_ints dim, bool keepdim);
msa_tensor *scattered(msa_tensor *grad, msa_ints sizes, int64_t dim, msa_tensor *indices, bool keepdim);
msa_tensor *scatter_added(msa_tensor *grad, msa_ints sizes, int64_t dim, msa_tensor *indices);
msa_tensor *logcumsumexp_gradient(msa_tensor *grad, msa_tensor *self, msa_tensor *result, int64_t dim);
msa_tensor *reversed_cumsum(msa_tensor *grad, int64_t dim);
msa_tensor *var_gradient(msa_tensor *grad, msa_tensor *self, msa_ints dim, int64_t correction, bool keepdim);
msa_tensor *vector_norm_gradient(msa_tensor *grad, msa_tensor *self, msa_scalar ord, msa_tensor *result, msa_ints dim, bool keepdim);
/* Gradients of indexing (index.c). */
msa_tensor *index_gradient(msa_tensor *grad, msa_ints sizes, msa_dtype dtype, msa_tensors indices);
msa_tensor *repeat_gradient(msa_tensor *grad, msa_ints sizes, msa_ints repeats);
msa_tensor *masked_select_gradient(msa_tensor *grad, msa_ints sizes, msa_tensor *mask);
msa_tensor *take_gradient(msa_tensor *grad, msa_ints sizes, msa_tensor *index);
msa_tensor *index_select_gradient(msa_tensor *grad, msa_ints sizes, int64_t dim, msa_tensor *index);
msa_tensor *zeros_of(msa_tensor *like); /* a 0-dim zero of its type */
msa_tensor *index_select_shaped(msa_tensor *grad, int64_t dim, msa_tensor *index, msa_ints sizes);
msa_tensor *roll_back(msa_tensor *grad, msa_ints shifts, msa_ints dims);
msa_tensor *diagonal_gradient(msa_tensor *grad, msa_ints sizes, int64_t offset, int64_t dim1, int64_t dim2);
msa_ints contiguous_strides_of(msa_ints sizes);
msa_ints unfolded_sizes(msa_ints sizes, int64_t dimension, int64_t size, int64_t step);
msa_ints unfolded_strides(msa_ints sizes, int64_t dimension, int64_t size, int64_t step);
msa_tensor *zeros_shaped(msa_ints sizes, msa_dtype dtype);
/* Gradients of views that come as lists, and of lists that were put together. */
msa_tensor *as_strided_gradient(msa_tensor *grad, msa_tensor *self, msa_ints size, msa_ints stride, msa_opt_int offset);
msa_tensor *as_strided_of_dense(msa_tensor *grad, msa_ints base_sizes, msa_ints base_strides, msa_ints sizes, msa_ints strides, int64_t offset);
msa_tensor *unbind_gradient(msa_tensors grads, msa_ints sizes, msa_dtype dtype, int64_t dim);
msa_tensor *split_gradient(msa_tensors grads, msa_ints sizes, msa_dtype dtype, int64_t dim);
msa_list *cat_gradient(msa_tensor *grad, msa_tensors parts, int64_t dim);
/* The permutation that undoes `dims`. */
msa_tensor *permute_back(msa_tensor *grad, msa_ints dims);

/* Gradients of folds by index (scatter_reduce.c). */
msa_tensor *scatter_reduce_self_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, const char *reduce, bool include_self, msa_tensor *result);
msa_tensor *scatter_reduce_src_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *src, const char *reduce, bool include_self, msa_tensor *result);
msa_tensor *index_reduce_self_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, const char *reduce, bool include_self, msa_tensor *result);
msa_tensor *index_reduce_source_gradient(msa_tensor *grad, msa_tensor *self, int64_t dim, msa_tensor *index, msa_tensor *source, const char *reduce, bool include_self, msa_tensor *result);
msa_tensor *put_self_gradient(msa_tensor *grad, msa_tensor *index, bool accumulate);
msa_tensor *put_source_gradient(msa_tensor *grad, msa_tensor *index, msa_ints sizes);

/* The gradient of a Dirichlet sample x by its concentrations (random.c). */
msa_tensor *sample_dirichlet_gradient(msa_tensor *grad, msa_tensor *alpha, msa_tensor *x);

/* The gradient of cdist by its first operand, or with them exchanged by the second (distance.c). */
msa_tensor *cdist_gradient(msa_tensor *grad, msa_tensor *x1, msa_tensor *x2, double p, msa_tensor *distances, bool exchanged);

/* Gradients of transforms from and to real lines (fft.c). */
msa_tensor *fft_r2c_gradient(msa_tensor *grad, msa_ints sizes, msa_ints dim, int64_t normalization, bool onesided);
msa_tensor *fft_c2r_gradient(msa_tensor *grad, msa_ints sizes, msa_ints dim, int64_t normalization);

#include "ops/helpers_linalg.h"
#include "ops/helpers_nn.h"

#endif
