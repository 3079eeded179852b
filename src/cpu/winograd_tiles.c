/* The transforms of Winograd's convolution, compiled once for each instruction set (MSA_ISA names it); see winograd.h.
 *
 * A vector holds neighbouring channels. Each transform is its one-dimensional form over the rows, then over the columns. The points of
 * interpolation are 0, +-5/8, +-3/2 and infinity: of those with exact powers they lose the fewest digits, a third as much as the usual
 * 0, +-1, +-2 (Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2018). */
#include <string.h>

#include "cpu/winograd.h"

#define MSA_INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
enum { LANES = 16 };
#elif defined(__AVX__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
typedef float vector __attribute__((vector_size(4 * LANES)));

MSA_INLINE vector load(const float *p) {
    vector v;
    memcpy(&v, p, sizeof v);
    return v;
}
MSA_INLINE void store(float *p, vector v) { memcpy(p, &v, sizeof v); }

#define P 0.625f
#define Q 1.5f
#define P2 (P * P)
#define Q2 (Q * Q)
#define P3 (P2 * P)
#define Q3 (Q2 * Q)
#define SCALE_0 (1.0f / (P2 * Q2))
#define SCALE_P (1.0f / (2 * P2 * (P2 - Q2)))
#define SCALE_Q (1.0f / (2 * Q2 * (Q2 - P2)))

/* B' d */
#define INPUT(d0, d1, d2, d3, d4, d5, to, step) \
    do { \
        const vector a_ = d4 - Q2 * d2, b_ = P * (d3 - Q2 * d1), c_ = d4 - P2 * d2, e_ = Q * (d3 - P2 * d1); \
        (to)[0] = (P2 * Q2) * d0 - (P2 + Q2) * d2 + d4; \
        (to)[step] = a_ + b_; \
        (to)[2 * (step)] = a_ - b_; \
        (to)[3 * (step)] = c_ + e_; \
        (to)[4 * (step)] = c_ - e_; \
        (to)[5 * (step)] = (P2 * Q2) * d1 - (P2 + Q2) * d3 + d5; \
    } while (0)

static void input(const float *image, int64_t height, int64_t width, int64_t channels, int64_t y, int64_t x, float *to, int64_t step) {
    vector rows[36];
    if (y >= 0 && x >= 0 && y + 6 <= height && x + 6 <= width) {
        const float *at = image + (y * width + x) * channels;
        for (int j = 0; j < 6; j++, at += channels) {
            const int64_t down = width * channels;
            const vector d0 = load(at), d1 = load(at + down), d2 = load(at + 2 * down), d3 = load(at + 3 * down), d4 = load(at + 4 * down),
                         d5 = load(at + 5 * down);
            INPUT(d0, d1, d2, d3, d4, d5, rows + j, 6);
        }
    } else {
        for (int j = 0; j < 6; j++) {
            vector d[6];
            for (int i = 0; i < 6; i++) {
                const bool inside = y + i >= 0 && y + i < height && x + j >= 0 && x + j < width;
                d[i] = inside ? load(image + ((y + i) * width + x + j) * channels) : (vector){0};
            }
            INPUT(d[0], d[1], d[2], d[3], d[4], d[5], rows + j, 6);
        }
    }
    for (int i = 0; i < 6; i++, to += 6 * step) {
        const vector *r = rows + 6 * i;
        vector out[6];
        INPUT(r[0], r[1], r[2], r[3], r[4], r[5], out, 1);
        for (int j = 0; j < 6; j++) store(to + j * step, out[j]);
    }
}

/* A' m */
#define OUTPUT(m0, m1, m2, m3, m4, m5, to, step) \
    do { \
        const vector a_ = m1 + m2, b_ = m1 - m2, c_ = m3 + m4, e_ = m3 - m4; \
        (to)[0] = m0 + a_ + c_; \
        (to)[step] = P * b_ + Q * e_; \
        (to)[2 * (step)] = P2 * a_ + Q2 * c_; \
        (to)[3 * (step)] = P3 * b_ + Q3 * e_ + m5; \
    } while (0)

static void output(const float *from, int64_t step, float *image, int64_t width, int64_t channels, int rows, int columns, const float *bias) {
    vector part[24];
    for (int j = 0; j < 6; j++) {
        const float *at = from + j * step;
        const int64_t down = 6 * step;
        const vector m0 = load(at), m1 = load(at + down), m2 = load(at + 2 * down), m3 = load(at + 3 * down), m4 = load(at + 4 * down),
                     m5 = load(at + 5 * down);
        OUTPUT(m0, m1, m2, m3, m4, m5, part + j, 6);
    }
    const vector more = bias ? load(bias) : (vector){0};
    for (int i = 0; i < rows; i++) {
        const vector *r = part + 6 * i;
        vector out[4];
        OUTPUT(r[0], r[1], r[2], r[3], r[4], r[5], out, 1);
        for (int j = 0; j < columns; j++) store(image + (i * width + j) * channels, out[j] + more);
    }
}

/* A y */
#define GRADIENT(y0, y1, y2, y3, to, step) \
    do { \
        const vector a_ = y0 + P2 * y2, b_ = P * y1 + P3 * y3, c_ = y0 + Q2 * y2, e_ = Q * y1 + Q3 * y3; \
        (to)[0] = y0; \
        (to)[step] = a_ + b_; \
        (to)[2 * (step)] = a_ - b_; \
        (to)[3 * (step)] = c_ + e_; \
        (to)[4 * (step)] = c_ - e_; \
        (to)[5 * (step)] = y3; \
    } while (0)

static void gradient(const float *image, int64_t width, int64_t channels, int rows, int columns, float *to, int64_t step) {
    vector part[24];
    for (int j = 0; j < 4; j++) {
        vector y[4];
        for (int i = 0; i < 4; i++) y[i] = i < rows && j < columns ? load(image + (i * width + j) * channels) : (vector){0};
        GRADIENT(y[0], y[1], y[2], y[3], part + j, 4);
    }
    for (int i = 0; i < 6; i++, to += 6 * step) {
        const vector *r = part + 4 * i;
        vector out[6];
        GRADIENT(r[0], r[1], r[2], r[3], out, 1);
        for (int j = 0; j < 6; j++) store(to + j * step, out[j]);
    }
}

/* G g */
#define WEIGHT(g0, g1, g2, to, step) \
    do { \
        const vector a_ = (g0 + P2 * g2) * SCALE_P, b_ = g1 * (P * SCALE_P), c_ = (g0 + Q2 * g2) * SCALE_Q, e_ = g1 * (Q * SCALE_Q); \
        (to)[0] = g0 * SCALE_0; \
        (to)[step] = a_ + b_; \
        (to)[2 * (step)] = a_ - b_; \
        (to)[3 * (step)] = c_ + e_; \
        (to)[4 * (step)] = c_ - e_; \
        (to)[5 * (step)] = g2; \
    } while (0)

static void weight(const float *window, int64_t apart, bool turned, float *to, int64_t step) {
    vector g[9], part[18];
    for (int i = 0; i < 9; i++)
        for (int l = 0; l < LANES; l++) g[i][l] = window[l * apart + (turned ? 8 - i : i)];
    for (int j = 0; j < 3; j++) WEIGHT(g[j], g[3 + j], g[6 + j], part + j, 3);
    for (int i = 0; i < 6; i++, to += 6 * step) {
        const vector *r = part + 3 * i;
        vector out[6];
        WEIGHT(r[0], r[1], r[2], out, 1);
        for (int j = 0; j < 6; j++) store(to + j * step, out[j]);
    }
}

/* G' u */
#define WEIGHT_GRADIENT(u0, u1, u2, u3, u4, u5, to, step) \
    do { \
        const vector a_ = (u1 + u2) * SCALE_P, b_ = (u1 - u2) * (P * SCALE_P), c_ = (u3 + u4) * SCALE_Q, e_ = (u3 - u4) * (Q * SCALE_Q); \
        (to)[0] = u0 * SCALE_0 + a_ + c_; \
        (to)[step] = b_ + e_; \
        (to)[2 * (step)] = P2 * a_ + Q2 * c_ + u5; \
    } while (0)

static void weight_gradient(const float *from, int64_t step, float *window, int64_t apart) {
    vector part[18];
    for (int j = 0; j < 6; j++) {
        const float *at = from + j * step;
        const int64_t down = 6 * step;
        const vector u0 = load(at), u1 = load(at + down), u2 = load(at + 2 * down), u3 = load(at + 3 * down), u4 = load(at + 4 * down),
                     u5 = load(at + 5 * down);
        WEIGHT_GRADIENT(u0, u1, u2, u3, u4, u5, part + j, 6);
    }
    vector out[9];
    for (int i = 0; i < 3; i++) {
        const vector *r = part + 6 * i;
        WEIGHT_GRADIENT(r[0], r[1], r[2], r[3], r[4], r[5], out + 3 * i, 1);
    }
    for (int l = 0; l < LANES; l++)
        for (int i = 0; i < 9; i++) window[l * apart + i] = out[i][l];
}

#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)
const msa_winograd_tiles NAMED(msa_winograd_, MSA_ISA) = {LANES, input, output, gradient, weight, weight_gradient};
