/* The two container formats of .pth files, for the C interface and for the Python extension. */
#ifndef MSA_IO_PTH_H
#define MSA_IO_PTH_H

#include "io/pickle.h"

typedef struct {
    bool map; /* leave the data of storages in the file */
    msa_encoding encoding;
} msa_pth_options;

MSA_API msa_document *msa_pth_read(const msa_source *source, const msa_pth_options *options);
MSA_API int msa_source_open(msa_source *source, int fd);
/* What torch.storage._load_from_bytes gets: a file in the format before zip. */
msa_object *msa_pth_read_nested(msa_document *document, const char *data, size_t size, const msa_unpickle_options *options);

/* `name` is the folder inside a zip archive. */
MSA_API int msa_pth_write(const msa_sink *sink, const char *name, const msa_document *document, bool zip);
/* The same around a pickle made elsewhere, whose persistent ids number the storages. */
MSA_API int msa_pth_write_pickle(const msa_sink *sink, const char *name, const void *pickle, size_t size,
                                 const msa_storage_list *storages, bool zip);
MSA_API int msa_file_replace(const char *path, int (*body)(void *argument, const msa_sink *sink), void *argument);
/* The folder's name PyTorch gives the archive at `path`: its name without the extension. */
MSA_API void msa_pth_archive_name(const char *path, char *name, size_t capacity);

#endif
