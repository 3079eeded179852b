/* Rows of softmax for the kernels of losses. */
#ifndef MSA_CPU_SOFTMAX_H
#define MSA_CPU_SOFTMAX_H

#include <stdint.h>

/* The logarithm of the sum of exponentials of a row, in *log_sum. */
float msa_softmax_row_f32(int64_t d, const float *x, float *log_sum);
double msa_softmax_row_f64(int64_t d, const double *x, double *log_sum);
/* out = softmax(x) * factor, given that logarithm. */
void msa_softmax_row_gradient_f32(int64_t d, const float *x, float log_sum, float factor, float *out);
void msa_softmax_row_gradient_f64(int64_t d, const double *x, double log_sum, double factor, double *out);

#endif
