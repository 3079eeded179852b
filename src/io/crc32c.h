/* Castagnoli's cyclic redundancy check, which records of TensorBoard's files carry. */
#ifndef MSA_IO_CRC32C_H
#define MSA_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#include "msadapter/error.h"

MSA_API uint32_t msa_crc32c(const void *data, size_t size);

#endif
