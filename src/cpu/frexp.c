/* frexp: floating point numbers taken apart into mantissa and exponent. */
#include <math.h>

#include "cpu/layout.h"
#include "msadapter/ops.h"
#include "ops/kernels.h"

int frexp_cpu(msa_tensor *self, msa_tensor **results) {
    const msa_dtype dtype = (msa_dtype)self->dtype;
    if (!msa_is_floating(dtype)) return msa_fail(MSA_RUNTIME_ERROR, "torch.frexp() only supports floating-point dtypes");
    /* float64 holds every value of the narrower types, and gives the same parts. */
    msa_auto msa_tensor *wide = msa_cast_values(self, MSA_FLOAT64);
    msa_auto msa_tensor *plain = wide ? msa_contiguous_values(wide) : NULL;
    msa_auto msa_tensor *mantissa = plain ? msa_tensor_new(msa_sizes(self), MSA_FLOAT64) : NULL;
    msa_auto msa_tensor *exponent = mantissa ? msa_tensor_new(msa_sizes(self), MSA_INT32) : NULL;
    if (!exponent) return -1;
    const double *from = msa_data(plain);
    double *to = mantissa->storage->data;
    int32_t *power = exponent->storage->data;
    for (int64_t i = 0; i < plain->numel; i++) {
        int e = 0;
        to[i] = frexp(from[i], &e);
        power[i] = isfinite(from[i]) ? e : 0;
    }
    results[0] = msa_cast_values(mantissa, dtype);
    results[1] = msa_take(exponent);
    return results[0] ? 0 : -1;
}
