/* Convolutions with 3 x 3 windows and stride 1 by Winograd's minimal filtering, F(4 x 4, 3 x 3): a quarter of the multiplications.
 *
 * Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015). With the matrices A, B, G of that paper, d a 6 x 6
 * patch of the input, g a window and * the product of elements, summed over channels:
 *   forward            y = A' [(G g G') * (B' d B)] A
 *   towards the input  the same with g turned by 180 degrees and its channels exchanged
 *   towards the weight g = G' [(B' d B) * (A y A')] G, summed over tiles */
#ifndef MSA_CPU_WINOGRAD_H
#define MSA_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu/onednn.h"

/* The transforms of one instruction set. Each treats `lanes` channels; elements of the 36 results are `step` floats apart. */
typedef struct {
    int lanes;
    /* B' d B of the patch whose corner is at (y, x) of an image (height, width, channels); what lies outside is zero. */
    void (*input)(const float *image, int64_t height, int64_t width, int64_t channels, int64_t y, int64_t x, float *to, int64_t step);
    /* A' m A, of which `rows` x `columns` results exist: element (i, j) goes to image + (i * width + j) * channels. */
    void (*output)(const float *from, int64_t step, float *image, int64_t width, int64_t channels, int rows, int columns, const float *bias);
    /* A y A' of the 4 x 4 patch at image, of which `rows` x `columns` exist. */
    void (*gradient)(const float *image, int64_t width, int64_t channels, int rows, int columns, float *to, int64_t step);
    /* G g G': g's nine elements are taken from `lanes` windows, `apart` floats between one's and the next one's. */
    void (*weight)(const float *window, int64_t apart, bool turned, float *to, int64_t step);
    /* G' u G into `lanes` windows. */
    void (*weight_gradient)(const float *from, int64_t step, float *window, int64_t apart);
} msa_winograd_tiles;

extern const msa_winograd_tiles *msa_winograd; /* for this processor */
extern const msa_winograd_tiles msa_winograd_baseline, msa_winograd_avx2, msa_winograd_avx512;

/* Whether it applies and pays. */
bool msa_winograd_fits(const msa_conv *c);

/* As in onednn.h, src, dst and their gradients channels last, the weight contiguous. -1 with an error when memory is short. */
int msa_winograd_forward(const msa_conv *c, const float *src, const float *weight, const float *bias, float *dst);
int msa_winograd_backward_data(const msa_conv *c, const float *diff_dst, const float *weight, float *diff_src);
int msa_winograd_backward_weights(const msa_conv *c, const float *src, const float *diff_dst, float *diff_weight);

#endif
