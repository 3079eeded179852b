/* Frames put back over a signal, where they overlap added up: the adjoint of unfold along the last dimension. */
#include "base/parallel.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

/* self is (batch, frames, n), the result (batch, length); frame i begins at i * hop. */
#define OVERLAP_ADD(T) \
    _Pragma("omp parallel for num_threads(threads) schedule(static)") \
    for (int64_t b = 0; b < batch; b++) \
        for (int64_t f = 0; f < frames; f++) { \
            const T *restrict frame = (const T *)from + (b * frames + f) * n; \
            T *restrict signal = (T *)to + b * length + f * step; \
            for (int64_t k = 0; k < n; k++) signal[k] += frame[k]; \
        }

msa_tensor *overlap_add_cpu(msa_tensor *self, int64_t length, int64_t hop) {
    msa_dtype dtype = (msa_dtype)self->dtype, real = msa_dtype_real(dtype);
    if (real != MSA_FLOAT32 && real != MSA_FLOAT64)
        return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"overlap_add\" not implemented for '%s'", msa_dtype_type_name(dtype));
    if (self->ndim != 3) return msa_fail_null(MSA_RUNTIME_ERROR, "overlap_add: expected (batch, frames, n), got a %dD tensor", self->ndim);
    int64_t batch = self->sizes[0], frames = self->sizes[1], n = self->sizes[2];
    if (hop < 1 || (frames > 0 && (length < n || (frames - 1) > (length - n) / hop)))
        return msa_fail_null(MSA_RUNTIME_ERROR, "overlap_add: %lld frames of %lld every %lld do not fit into %lld", (long long)frames,
                             (long long)n, (long long)hop, (long long)length);
    msa_auto msa_tensor *plain = msa_contiguous_values(self);
    msa_auto msa_tensor *out = msa_tensor_new(MSA_INTS(batch, length), dtype);
    if (!plain || !out || msa_fill_values(out, msa_int(0)) != 0) return NULL;
    if (self->numel == 0) return msa_take(out);
    const void *from = msa_data(plain);
    void *to = out->storage->data;
    int threads = msa_threads_for(self->numel, MSA_GRAIN);
    int64_t parts = msa_is_complex(dtype) ? 2 : 1, step = hop * parts; /* complex numbers are added as pairs */
    n *= parts;
    length *= parts;
    if (real == MSA_FLOAT32) {
        OVERLAP_ADD(float)
    } else {
        OVERLAP_ADD(double)
    }
    return msa_take(out);
}
