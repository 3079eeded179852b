/* Chooses, when the library is loaded, the loops and tiles for the instruction sets that this processor has. */
#include "cpu/pointwise.h"
#include "cpu/sgemm.h"
#include "cpu/winograd.h"

extern const msa_pointwise_row msa_pointwise_rows_baseline[];
#ifdef __x86_64__
extern const msa_pointwise_row msa_pointwise_rows_avx2[], msa_pointwise_rows_avx512[];
#endif

const msa_pointwise_row *msa_pointwise_rows = msa_pointwise_rows_baseline;
const msa_sgemm_tiles *msa_sgemm = &msa_sgemm_baseline;
const msa_winograd_tiles *msa_winograd = &msa_winograd_baseline;

__attribute__((constructor)) static void choose(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        msa_pointwise_rows = msa_pointwise_rows_avx2;
        msa_sgemm = &msa_sgemm_avx2;
        msa_winograd = &msa_winograd_avx2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl")) {
            msa_pointwise_rows = msa_pointwise_rows_avx512;
            msa_sgemm = &msa_sgemm_avx512;
            msa_winograd = &msa_winograd_avx512;
        }
    }
#endif
}
