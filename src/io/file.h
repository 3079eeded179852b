/* Where bytes come from and go to: a file or memory to read at any place, and a sink that takes them in order. */
#ifndef MSA_IO_FILE_H
#define MSA_IO_FILE_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const uint8_t *memory; /* NULL: read from fd */
    int fd;
    uint64_t size;
} msa_source;

/* Exactly `n` bytes from `offset`; fails where the source ends before. */
int msa_source_read(const msa_source *source, uint64_t offset, void *to, size_t n);
/* A regular file's size; fails for others. */
int msa_source_open(msa_source *source, int fd);

typedef struct {
    int (*write)(void *context, const void *data, size_t n); /* 0, or -1 with an error */
    void *context;
} msa_sink;

/* Calls `body` with a sink into a new file that takes the place of `path` when all went well. */
int msa_file_replace(const char *path, int (*body)(void *argument, const msa_sink *sink), void *argument);

/* Bytes that grow. */
typedef struct {
    uint8_t *data;
    size_t size, capacity;
} msa_bytes;

int msa_bytes_add(msa_bytes *bytes, const void *data, size_t n);
int msa_bytes_write(void *bytes, const void *data, size_t n); /* as a sink */

#endif
