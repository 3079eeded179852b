/* Creation of tensors and filling. */
#include "msadapter/ops.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

static msa_dtype or_default(msa_dtype dtype) { return dtype == MSA_NO_DTYPE ? msa_default_dtype() : dtype; }

static msa_tensor *filled(msa_tensor *t, msa_scalar value) {
    if (t && msa_fill_values(t, value) == 0) return t;
    msa_tensor_release(t);
    return NULL;
}

msa_tensor *empty_cpu(msa_ints size, int memory_format, msa_dtype dtype) {
    msa_auto msa_tensor *t = msa_tensor_new(size, or_default(dtype));
    if (!t || memory_format != 2) return msa_take(t);
    return clone_cpu(t, memory_format);
}

msa_tensor *empty_strided_cpu(msa_ints size, msa_ints stride, msa_dtype dtype) {
    if (size.n != stride.n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "mismatch in length of strides and shape: %lld strides for %lld sizes", (long long)stride.n, (long long)size.n);
    return msa_tensor_new_strided(size, stride, or_default(dtype));
}

msa_tensor *zeros_cpu(msa_ints size, msa_dtype dtype) { return filled(msa_tensor_new(size, or_default(dtype)), msa_int(0)); }

msa_tensor *ones_cpu(msa_ints size, msa_dtype dtype) { return filled(msa_tensor_new(size, or_default(dtype)), msa_int(1)); }

msa_tensor *full_cpu(msa_ints size, msa_scalar fill_value, msa_dtype dtype) {
    if (dtype == MSA_NO_DTYPE)
        dtype = fill_value.kind == MSA_FLOAT64      ? msa_default_dtype()
                : fill_value.kind == MSA_COMPLEX128 ? msa_dtype_complex(msa_default_dtype())
                                                    : fill_value.kind;
    return filled(msa_tensor_new(size, dtype), fill_value);
}

static msa_tensor *like(msa_tensor *self, int memory_format, msa_dtype dtype) {
    if (dtype == MSA_NO_DTYPE) dtype = (msa_dtype)self->dtype;
    if (memory_format == 0) return msa_tensor_new(msa_sizes(self), dtype);
    if (memory_format == 2) {
        msa_auto msa_tensor *plain = msa_tensor_new(msa_sizes(self), dtype);
        return plain ? clone_cpu(plain, memory_format) : NULL;
    }
    return msa_new_like_values(self, dtype);
}

msa_tensor *empty_like_cpu(msa_tensor *self, int memory_format, msa_dtype dtype) { return like(self, memory_format, dtype); }

msa_tensor *zeros_like_cpu(msa_tensor *self, int memory_format, msa_dtype dtype) {
    return filled(like(self, memory_format, dtype), msa_int(0));
}

msa_tensor *ones_like_cpu(msa_tensor *self, int memory_format, msa_dtype dtype) {
    return filled(like(self, memory_format, dtype), msa_int(1));
}

msa_tensor *full_like_cpu(msa_tensor *self, msa_scalar fill_value, int memory_format, msa_dtype dtype) {
    return filled(like(self, memory_format, dtype), fill_value);
}

int zero_cpu(msa_tensor *self) { return msa_fill_values(self, msa_int(0)); }

int fill_cpu(msa_tensor *self, msa_scalar value) { return msa_fill_values(self, value); }

int fill_tensor_cpu(msa_tensor *self, msa_tensor *value) {
    if (value->ndim != 0)
        return msa_fail(MSA_RUNTIME_ERROR, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    return msa_copy_values(self, value);
}

msa_tensor *filled_cpu(msa_tensor *self, msa_scalar value) { return filled(msa_new_like_values(self, (msa_dtype)self->dtype), value); }

msa_tensor *filled_tensor_cpu(msa_tensor *self, msa_tensor *value) {
    msa_auto msa_tensor *t = msa_new_like_values(self, (msa_dtype)self->dtype);
    return t && fill_tensor_cpu(t, value) == 0 ? msa_take(t) : NULL;
}

int resize_values(msa_tensor *self, msa_ints size, int memory_format) {
    if (self->requires_grad) return msa_fail(MSA_RUNTIME_ERROR, "cannot resize variables that require grad");
    if (memory_format > 1) return msa_fail(MSA_NOT_IMPLEMENTED, "resize_: argument 'memory_format' is not implemented for channels_last");
    if (msa_product(size) == self->numel && size.n == self->ndim && memcmp(size.data, self->sizes, sizeof(int64_t) * self->ndim) == 0) return 0;
    return msa_tensor_resize(self, size);
}

int resize_as_values(msa_tensor *self, msa_tensor *the_template, int memory_format) {
    return resize_values(self, msa_sizes(the_template), memory_format);
}
