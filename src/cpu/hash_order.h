#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "msadapter/dtype.h"

/* The order in which libstdc++'s std::unordered_set lists `n` distinct values that were inserted as they stand in `values`
   (doubles if `floating`, else int64s), hashed as `dtype`. PyTorch shows it in unique(sorted=False). Writes to `order` the
   places of the values. -1 without memory. */
int msa_hash_order(int64_t *order, const char *values, bool floating, msa_dtype dtype, int64_t n);
