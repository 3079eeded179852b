/* Zip archives: reading entries by name, stored or deflated, and writing stored ones. Both know zip64. */
#ifndef MSA_IO_ZIP_H
#define MSA_IO_ZIP_H

#include "io/file.h"

typedef struct {
    const char *name; /* not ended by NUL */
    uint16_t name_length, method, flags;
    uint32_t crc;
    uint64_t compressed, size;
    uint64_t header; /* where its local header begins */
} msa_zip_entry;

typedef struct {
    const msa_source *source;
    char *directory; /* the central directory's bytes: the names are in it */
    msa_zip_entry *entries; /* by name */
    size_t count;
    uint64_t unread; /* bytes of the archive not yet handed out: entries that overlap would need more */
} msa_zip;

/* Archives begin with this. */
bool msa_zip_is(const msa_source *source);
int msa_zip_open(msa_zip *zip, const msa_source *source);
void msa_zip_close(msa_zip *zip);
const msa_zip_entry *msa_zip_find(const msa_zip *zip, const char *name, size_t length);
/* Where the entry's bytes begin; they are all inside the source. */
int msa_zip_locate(const msa_zip *zip, const msa_zip_entry *entry, uint64_t *offset);
/* All of an entry, decompressed and checked, into `to`, which has entry->size bytes. */
int msa_zip_read(msa_zip *zip, const msa_zip_entry *entry, void *to);

typedef struct {
    const msa_sink *sink;
    uint64_t at;
    msa_bytes directory;
    uint64_t count;
} msa_zip_writer;

/* An entry whose bytes begin at a multiple of 64, as PyTorch writes them. */
int msa_zip_add(msa_zip_writer *writer, const char *name, const void *data, size_t size);
int msa_zip_finish(msa_zip_writer *writer);

#endif
