/* The generator's insides: single draws, inlined into the loops that fill buffers. The caller holds the lock. */
#ifndef MSA_RANDOM_INTERNAL_H
#define MSA_RANDOM_INTERNAL_H

#include <math.h>
#include <pthread.h>

#include "msadapter/random.h"
#include "tensor/convert.h"

enum { MT_SIZE = 624, MT_MIDDLE = 397, DRAWS = 256 /* elements drawn before they are converted */ };

struct msa_generator {
    pthread_mutex_t lock;
    uint64_t initial_seed;
    uint32_t state[MT_SIZE];
    int left;      /* numbers of the state not given out yet, plus one */
    uint32_t next; /* index of the next one */
    bool has_double, has_float;
    double next_double; /* the second half of a pair of normal numbers */
    float next_float;   /* part of the saved state; nothing on the CPU draws it */
};

/* Lock g, or the default generator for NULL. Never NULL. */
msa_generator *msa_generator_lock(msa_generator *g);
void msa_generator_unlock(msa_generator *g);
void msa_generator_refill(msa_generator *g);

static inline void unlock_generator(msa_generator **g) {
    msa_generator_unlock(*g);
}
/* `msa_generator *locked = ...` released at the end of its scope. */
#define auto_unlock __attribute__((cleanup(unlock_generator)))

static inline uint32_t draw32(msa_generator *g) {
    if (--g->left == 0) msa_generator_refill(g);
    uint32_t y = g->state[g->next++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

static inline uint64_t draw64(msa_generator *g) {
    uint64_t high = draw32(g);
    return high << 32 | draw32(g);
}

/* Uniform in [0, 1). */
static inline double draw_double(msa_generator *g) {
    return (double)(draw64(g) & ((1ull << 53) - 1)) * 0x1p-53;
}
static inline float draw_float(msa_generator *g) {
    return (float)(draw32(g) & 0xffffffu) * 0x1p-24f;
}

double msa_draw_normal(msa_generator *g);      /* standard, in pairs */
double msa_draw_exponential(msa_generator *g); /* with lambda = 1 */

/* The value as `dtype` holds it. */
static inline double round_to(msa_dtype dtype, double v) {
    switch (dtype) {
    case MSA_FLOAT32:
        return (float)v;
    case MSA_FLOAT16:
        return (float)(_Float16)(float)v;
    case MSA_BFLOAT16:
        return msa_from_bfloat16(msa_to_bfloat16((float)v));
    default:
        return v;
    }
}

/* Bits of the significand, the hidden one counted; 0 for other types. */
static inline int significand_bits(msa_dtype dtype) {
    return dtype == MSA_FLOAT64    ? 53
           : dtype == MSA_FLOAT32  ? 24
           : dtype == MSA_FLOAT16  ? 11
           : dtype == MSA_BFLOAT16 ? 8
                                   : 0;
}

static inline double largest_of(msa_dtype dtype) {
    return dtype == MSA_FLOAT64   ? 0x1.fffffffffffffp1023
           : dtype == MSA_FLOAT32 ? 0x1.fffffep127
           : dtype == MSA_FLOAT16 ? 65504
                                  : 0x1.fep127;
}

static inline double smallest_normal_of(msa_dtype dtype) {
    return dtype == MSA_FLOAT64 ? 0x1p-1022 : dtype == MSA_FLOAT16 ? 0x1p-14 : 0x1p-126;
}

static inline char *element(void *data, msa_dtype dtype, int64_t i) {
    return (char *)data + (size_t)i * msa_dtype_size(dtype);
}

static inline void load_doubles(double *to, const void *data, msa_dtype dtype, int64_t first, int64_t n) {
    msa_convert(MSA_FLOAT64, to, 1, dtype, (const char *)data + (size_t)first * msa_dtype_size(dtype), 1, n);
}

static inline void store_doubles(void *data, msa_dtype dtype, int64_t first, const double *from, int64_t n) {
    if (dtype != MSA_FLOAT16) {
        msa_convert(dtype, element(data, dtype, first), 1, MSA_FLOAT64, from, 1, n);
        return;
    }
    /* PyTorch's half takes a double by way of float. */
    _Float16 *to = (_Float16 *)data + first;
    for (int64_t i = 0; i < n; i++) to[i] = (_Float16)(float)from[i];
}

/* Fill n elements with the double expression `draw`, evaluated in order with the generator `locked`. */
#define FILL_DOUBLES(data, n, dtype, draw)                                                                             \
    do {                                                                                                               \
        double draws_[DRAWS];                                                                                          \
        for (int64_t first_ = 0; first_ < (n); first_ += DRAWS) {                                                      \
            int64_t count_ = (n)-first_ < DRAWS ? (n)-first_ : DRAWS;                                                  \
            for (int64_t i_ = 0; i_ < count_; i_++) draws_[i_] = (draw);                                               \
            store_doubles((data), (dtype), first_, draws_, count_);                                                    \
        }                                                                                                              \
    } while (0)

static inline int not_implemented(const char *kernel, msa_dtype dtype) {
    return msa_fail(MSA_RUNTIME_ERROR, "\"%s\" not implemented for '%s'", kernel, msa_dtype_type_name(dtype));
}

#endif
