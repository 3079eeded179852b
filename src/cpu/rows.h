/* A reduction seen as a matrix: one row for each result, its elements contiguous and of a working type.
 *
 * Reduced dimensions go last and the tensor is copied only where it does not lie so already. */
#ifndef MSA_CPU_ROWS_H
#define MSA_CPU_ROWS_H

#include "base/parallel.h"
#include "tensor/internal.h"

typedef struct {
    msa_tensor *matrix; /* contiguous, of the working type; release with msa_rows_close */
    int64_t outer, inner;
    int ndim; /* of a result */
    int64_t sizes[MSA_MAX_DIMS];
} msa_rows;

/* dims: none or empty means all. */
int msa_rows_open(msa_rows *rows, const char *op, msa_tensor *self, msa_ints dims, bool keepdim, msa_dtype working);
static inline void msa_rows_close(msa_rows *rows) { msa_tensor_release(rows->matrix); }
#define msa_auto_rows __attribute__((cleanup(msa_rows_close)))

/* A loop over the rows, `row` being the number, on as many threads as their elements are worth. */
#define MSA_FOR_ROWS(rows) \
    _Pragma("omp parallel for num_threads(msa_threads_for((rows).outer * (rows).inner, MSA_GRAIN)) schedule(static)") \
    for (int64_t row = 0; row < (rows).outer; row++)

/* int64 for integers and bool, float32 for the short floats, the type itself otherwise. */
static inline msa_dtype msa_working_type(msa_dtype d) {
    return msa_is_integral(d, true) ? MSA_INT64 : d == MSA_FLOAT16 || d == MSA_BFLOAT16 ? MSA_FLOAT32 : d;
}

/* A scan or sort along one dimension: the same with rows along `dim`, and results put back in self's shape. */
int msa_lines_open(msa_rows *rows, const char *op, msa_tensor *self, int64_t dim, msa_dtype working);
/* (outer, n) in rows' order -> self's shape with dimension `dim` of size n, as `dtype`. */
msa_tensor *msa_lines_result(const msa_tensor *self, int64_t dim, msa_tensor *matrix, msa_dtype dtype);

#endif
