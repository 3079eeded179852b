/* Integers over a range, and permutations. */
#include "random/internal.h"

#include <string.h>

/* What the checks need of a type: its range, as far as int64 holds it, and the name that PyTorch's messages give it. */
typedef struct {
    const char *name;
    int64_t low, high;
} bounds;

static bounds bounds_of(msa_dtype dtype) {
    switch (dtype) {
    case MSA_BOOL:
        return (bounds){"bool", 0, 1};
    case MSA_UINT8:
        return (bounds){"unsigned char", 0, UINT8_MAX};
    case MSA_INT8:
        return (bounds){"signed char", INT8_MIN, INT8_MAX};
    case MSA_INT16:
        return (bounds){"short int", INT16_MIN, INT16_MAX};
    case MSA_INT32:
        return (bounds){"int", INT32_MIN, INT32_MAX};
    case MSA_FLOAT16:
        return (bounds){"c10::Half", -65504, 65504};
    case MSA_BFLOAT16:
        return (bounds){"c10::BFloat16", INT64_MIN, INT64_MAX};
    case MSA_FLOAT32:
        return (bounds){"float", INT64_MIN, INT64_MAX};
    case MSA_FLOAT64:
        return (bounds){"double", INT64_MIN, INT64_MAX};
    default:
        return (bounds){"long int", INT64_MIN, INT64_MAX};
    }
}

static int check_range(msa_dtype dtype, int64_t from, int64_t last) {
    bounds b = bounds_of(dtype);
    if (from < b.low || from > b.high) return msa_fail(MSA_RUNTIME_ERROR, "from is out of bounds for %s", b.name);
    if (last < b.low || last > b.high) return msa_fail(MSA_RUNTIME_ERROR, "to - 1 is out of bounds for %s", b.name);
    return 0;
}

static int check_type(msa_dtype dtype) {
    if (!msa_is_complex(dtype)) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "check_random_bounds handles only integral, floating-point and boolean types");
}

/* An integer as the floating type holds it; saturated, because the nearest float may be 2^63. */
static int64_t as_held(msa_dtype dtype, int64_t v) {
    double held = round_to(dtype, dtype == MSA_FLOAT64 ? (double)v : (double)(float)v);
    return held >= 0x1p63 ? INT64_MIN /* what x86 makes of it, and so PyTorch */ : (int64_t)held;
}

/* The distance of neighbours of the floating type near v. */
static int64_t spacing(msa_dtype dtype, int64_t v) {
    uint64_t size = v < 0 ? -(uint64_t)v : (uint64_t)v;
    int exponent = size ? 63 - __builtin_clzll(size) : 0, shift = exponent - significand_bits(dtype) + 1;
    return shift >= 0 && shift < 63 ? (int64_t)1 << shift : 0;
}

/* The bounds moved inwards to where rounding to the type cannot leave them. */
static int64_t lower_bound(msa_dtype dtype, int64_t from) {
    int64_t next = (int64_t)((uint64_t)from + 1), held = as_held(dtype, next);
    return held < from ? (int64_t)((uint64_t)held + (uint64_t)spacing(dtype, next)) : from;
}

static int64_t upper_bound(msa_dtype dtype, int64_t to) {
    int64_t previous = (int64_t)((uint64_t)to - 1), held = as_held(dtype, previous);
    return held >= to ? (int64_t)((uint64_t)held - (uint64_t)spacing(dtype, previous)) : to;
}

static inline void store_integers(void *data, msa_dtype dtype, int64_t first, const int64_t *from, int64_t n) {
    msa_convert(dtype, element(data, dtype, first), 1, MSA_INT64, from, 1, n);
}

/* base + draw % range, in n elements; range 0 stands for 2^64. The loops are separate for their modulus's sake. */
static void fill_range(msa_generator *g, void *data, int64_t n, msa_dtype dtype, uint64_t range, uint64_t base,
                       bool wide) {
    int64_t draws[DRAWS];
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t count = n - first < DRAWS ? n - first : DRAWS;
        if (!range)
            for (int64_t i = 0; i < count; i++) draws[i] = (int64_t)(draw64(g) + base);
        else if (wide)
            for (int64_t i = 0; i < count; i++) draws[i] = (int64_t)(draw64(g) % range + base);
        else if (range < 1ull << 32)
            for (int64_t i = 0; i < count; i++) draws[i] = (int64_t)(draw32(g) % (uint32_t)range + base);
        else
            for (int64_t i = 0; i < count; i++) draws[i] = (int64_t)(draw32(g) % range + base);
        store_integers(data, dtype, first, draws, count);
    }
}

int msa_random_integers(msa_generator *g, void *data, int64_t n, msa_dtype dtype) {
    if (msa_is_complex(dtype)) return not_implemented("random_kernel_cpu", dtype);
    uint64_t range =
        msa_is_floating(dtype) ? (1ull << significand_bits(dtype)) + 1 : (uint64_t)bounds_of(dtype).high + 1;
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    fill_range(locked, data, n, dtype, range, 0, dtype == MSA_INT64 || dtype == MSA_FLOAT64);
    return 0;
}

int msa_random_integers_between(msa_generator *g, void *data, int64_t n, msa_dtype dtype, int64_t from, int64_t to) {
    if (check_type(dtype)) return -1;
    if (from >= to)
        return msa_fail(MSA_RUNTIME_ERROR, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                        (long long)from, (long long)to);
    if (msa_is_floating(dtype)) {
        from = lower_bound(dtype, from);
        to = upper_bound(dtype, to);
        if (from >= to)
            return msa_fail(
                MSA_RUNTIME_ERROR,
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%lld "
                ">= to=%lld",
                (long long)from, (long long)to);
    }
    if (check_range(dtype, from, to - 1)) return -1;
    uint64_t range = (uint64_t)to - (uint64_t)from;
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    fill_range(locked, data, n, dtype, range, (uint64_t)from, range >= 1ull << 32);
    return 0;
}

int msa_random_integers_from(msa_generator *g, void *data, int64_t n, msa_dtype dtype, int64_t from) {
    if (check_type(dtype)) return -1;
    uint64_t range = 0;
    if (from == INT64_MIN) {
        if (dtype == MSA_FLOAT16 || dtype == MSA_BOOL)
            return not_implemented("random_full_64_bits_range_kernel_cpu", dtype);
        if (dtype < MSA_INT64)
            return msa_fail(MSA_RUNTIME_ERROR, "random_full_64_bits_range_kernel_cpu handles only int64, double, float "
                                               "and bfloat16");
        auto_unlock msa_generator *locked = msa_generator_lock(g);
        fill_range(locked, data, n, dtype, 0, 0, true);
        return 0;
    }
    int64_t last = bounds_of(dtype).high;
    if (msa_is_floating(dtype)) {
        last = (int64_t)1 << significand_bits(dtype);
        from = lower_bound(dtype, from);
        if (from >= last)
            return msa_fail(
                MSA_RUNTIME_ERROR,
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                "from=%lld > to_inc=%lld",
                (long long)from, (long long)last);
    }
    if (check_range(dtype, from, last)) return -1;
    range = (uint64_t)last - (uint64_t)from + 1;
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    fill_range(locked, data, n, dtype, range, (uint64_t)from, range >= 1ull << 32);
    return 0;
}

/* The elements are of type T. A draw is of 32 bits however many elements there are, as in PyTorch 1.13. */
#define SHUFFLE(T)                                                                                                     \
    do {                                                                                                               \
        T *p = data;                                                                                                   \
        for (int64_t i = 0; i < n - 1; i++) {                                                                          \
            int64_t j = i + (int64_t)(draw32(locked) % (uint64_t)(n - i));                                             \
            T kept = p[i];                                                                                             \
            p[i] = p[j];                                                                                               \
            p[j] = kept;                                                                                               \
        }                                                                                                              \
    } while (0)

static int check_permutation(int64_t n, msa_dtype dtype) {
    static const char *const c_names[] = {"bool", "uint8_t", "int8_t", "int16_t", "int"};
    if (dtype == MSA_BOOL || msa_is_complex(dtype)) return not_implemented("randperm", dtype);
    if (n < 0)
        return msa_fail(MSA_RUNTIME_ERROR, "Trying to create tensor with negative dimension %lld: [%lld]", (long long)n,
                        (long long)n);
    if (dtype < MSA_INT64 && n > bounds_of(dtype).high)
        return msa_fail(MSA_RUNTIME_ERROR, "value cannot be converted to type %s without overflow", c_names[dtype]);
    if (dtype == MSA_FLOAT16 && n > 2049)
        return msa_fail(MSA_RUNTIME_ERROR, "n cannot be greater than 2049 for Half type.");
    if (dtype == MSA_FLOAT32 && n > (1ll << 24) + 1)
        return msa_fail(MSA_RUNTIME_ERROR, "n cannot be greater than 2^24+1 for Float type.");
    if (dtype == MSA_FLOAT64 && n > (1ll << 53) + 1)
        return msa_fail(MSA_RUNTIME_ERROR, "n cannot be greater than 2^53+1 for Double type.");
    return 0;
}

int msa_random_permutation(msa_generator *g, void *data, int64_t n, msa_dtype dtype) {
    if (check_permutation(n, dtype)) return -1;
    int64_t values[DRAWS];
    for (int64_t first = 0; first < n; first += DRAWS) {
        int64_t count = n - first < DRAWS ? n - first : DRAWS;
        for (int64_t i = 0; i < count; i++) values[i] = first + i;
        store_integers(data, dtype, first, values, count);
    }
    auto_unlock msa_generator *locked = msa_generator_lock(g);
    switch (msa_dtype_size(dtype)) {
    case 1:
        SHUFFLE(uint8_t);
        break;
    case 2:
        SHUFFLE(uint16_t);
        break;
    case 4:
        SHUFFLE(uint32_t);
        break;
    default:
        SHUFFLE(uint64_t);
    }
    return 0;
}
