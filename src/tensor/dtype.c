/* What is known about each element type, and PyTorch's promotion of types. */
#include "msadapter/dtype.h"

static const struct {
    const char *name, *type_name;
    size_t size;
} table[MSA_DTYPES] = {
    [MSA_BOOL] = {"bool", "Bool", 1},
    [MSA_UINT8] = {"uint8", "Byte", 1},
    [MSA_INT8] = {"int8", "Char", 1},
    [MSA_INT16] = {"int16", "Short", 2},
    [MSA_INT32] = {"int32", "Int", 4},
    [MSA_INT64] = {"int64", "Long", 8},
    [MSA_FLOAT16] = {"float16", "Half", 2},
    [MSA_BFLOAT16] = {"bfloat16", "BFloat16", 2},
    [MSA_FLOAT32] = {"float32", "Float", 4},
    [MSA_FLOAT64] = {"float64", "Double", 8},
    [MSA_COMPLEX64] = {"complex64", "ComplexFloat", 8},
    [MSA_COMPLEX128] = {"complex128", "ComplexDouble", 16},
};

static msa_dtype default_dtype = MSA_FLOAT32;

size_t msa_dtype_size(msa_dtype d) { return table[d].size; }

const char *msa_dtype_name(msa_dtype d) { return d == MSA_NO_DTYPE ? "None" : table[d].name; }

const char *msa_dtype_type_name(msa_dtype d) { return d == MSA_NO_DTYPE ? "None" : table[d].type_name; }

msa_dtype msa_dtype_promote(msa_dtype a, msa_dtype b) {
    if (a == b) return a;
    msa_dtype high = a > b ? a : b, low = a > b ? b : a;
    if (high <= MSA_INT64 && low == MSA_UINT8) return high == MSA_INT8 ? MSA_INT16 : high;
    if (low == MSA_FLOAT16 && high == MSA_BFLOAT16) return MSA_FLOAT32;
    if (high == MSA_COMPLEX64 && low == MSA_FLOAT64) return MSA_COMPLEX128;
    return high;
}

bool msa_dtype_can_cast(msa_dtype from, msa_dtype to) {
    if (msa_is_complex(from) && !msa_is_complex(to)) return false;
    if (msa_is_inexact(from) && msa_is_integral(to, true)) return false;
    return to != MSA_BOOL || from == MSA_BOOL;
}

msa_dtype msa_dtype_real(msa_dtype d) {
    return d == MSA_COMPLEX64 ? MSA_FLOAT32 : d == MSA_COMPLEX128 ? MSA_FLOAT64 : d;
}

msa_dtype msa_dtype_complex(msa_dtype d) {
    if (msa_is_complex(d)) return d;
    return d == MSA_FLOAT64 ? MSA_COMPLEX128 : MSA_COMPLEX64;
}

msa_dtype msa_default_dtype(void) { return default_dtype; }

int msa_set_default_dtype(msa_dtype d) {
    if (!msa_is_floating(d)) return msa_fail(MSA_TYPE_ERROR, "only floating-point types are supported as the default type");
    default_dtype = d;
    return 0;
}
