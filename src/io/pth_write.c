/* Writing .pth files: a zip archive as PyTorch 1.13 lays it out, or the format before it. */
#include "io/pth.h"
#include "io/zip.h"

#include <stdio.h>

/* Magic number, protocol 1001, and the machine: {protocol_version: 1001, little_endian, type_sizes: {short, int, long}}. */
static int put_preamble(msa_bytes *to) {
    static const char head[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.";
    static const char machine[] = "\x80\x02}(X\x10\0\0\0protocol_versionM\xe9\x03X\x0d\0\0\0little_endian";
    static const char sizes[] = "X\x0a\0\0\0type_sizes}(X\x05\0\0\0shortK\x02X\x03\0\0\0intK\x04X\x04\0\0\0longK\x04uu.";
    char endian = (char)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0x88 : 0x89);
    if (msa_bytes_add(to, head, sizeof head - 1) != 0 || msa_bytes_add(to, machine, sizeof machine - 1) != 0 ||
        msa_bytes_add(to, &endian, 1) != 0)
        return -1;
    return msa_bytes_add(to, sizes, sizeof sizes - 1);
}

/* The keys "0", "1", ... as a pickled list. */
static int put_keys(msa_bytes *to, size_t count) {
    if (msa_bytes_add(to, "\x80\x02](", 4) != 0) return -1;
    for (size_t i = 0; i < count; i++) {
        char text[40] = "X\0\0\0\0";
        int n = snprintf(text + 5, sizeof text - 5, "%zu", i);
        text[1] = (char)n;
        if (msa_bytes_add(to, text, 5 + (size_t)n) != 0) return -1;
    }
    return msa_bytes_add(to, "e.", 2);
}

static int write_legacy(const msa_sink *sink, const void *pickle, size_t size, const msa_storage_list *l) {
    msa_bytes head = {0}, keys = {0};
    int status = put_preamble(&head);
    if (status == 0) status = put_keys(&keys, l->count);
    if (status == 0) status = sink->write(sink->context, head.data, head.size);
    if (status == 0) status = sink->write(sink->context, pickle, size);
    if (status == 0) status = sink->write(sink->context, keys.data, keys.size);
    for (size_t i = 0; status == 0 && i < l->count; i++) {
        size_t bytes = l->storages[i]->bytes / msa_dtype_size(l->dtypes[i]) * msa_dtype_size(l->dtypes[i]);
        uint64_t numel = bytes / msa_dtype_size(l->dtypes[i]);
        status = sink->write(sink->context, &numel, sizeof numel);
        if (status == 0 && bytes) status = sink->write(sink->context, l->storages[i]->data, bytes);
    }
    free(head.data);
    free(keys.data);
    return status;
}

static int write_zip(const msa_sink *sink, const char *name, const void *pickle, size_t size, const msa_storage_list *l) {
    char entry[400];
    msa_zip_writer w = {.sink = sink};
    snprintf(entry, sizeof entry, "%.300s/data.pkl", name);
    int status = msa_zip_add(&w, entry, pickle, size);
    for (size_t i = 0; status == 0 && i < l->count; i++) {
        snprintf(entry, sizeof entry, "%.300s/data/%zu", name, i);
        status = msa_zip_add(&w, entry, l->storages[i]->bytes ? l->storages[i]->data : "", l->storages[i]->bytes);
    }
    snprintf(entry, sizeof entry, "%.300s/version", name);
    if (status == 0) status = msa_zip_add(&w, entry, "3\n", 2);
    if (status == 0) return msa_zip_finish(&w);
    free(w.directory.data);
    return -1;
}

int msa_pth_write_pickle(const msa_sink *sink, const char *name, const void *pickle, size_t size, const msa_storage_list *l, bool zip) {
    for (size_t i = 0; i < l->count; i++)
        if (msa_storage_make_plain(l->storages[i]) != 0) return -1;
    return zip ? write_zip(sink, name, pickle, size, l) : write_legacy(sink, pickle, size, l);
}

int msa_pth_write(const msa_sink *sink, const char *name, const msa_document *d, bool zip) {
    msa_bytes pickle = {0};
    msa_storage_list storages = {0};
    int status = msa_pickle_write(&pickle, d, &storages, !zip);
    if (status == 0) status = msa_pth_write_pickle(sink, name, pickle.data, pickle.size, &storages, zip);
    msa_storage_list_free(&storages);
    free(pickle.data);
    return status;
}

void msa_pth_archive_name(const char *path, char *name, size_t capacity) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    size_t n = dot && dot != base ? (size_t)(dot - base) : strlen(base);
    if (n == 0) base = "archive", n = 7;
    if (n >= capacity) n = capacity - 1;
    memcpy(name, base, n);
    name[n] = '\0';
}

typedef struct {
    const char *path;
    const msa_document *document;
    bool zip;
} saving;

static int save(void *argument, const msa_sink *sink) {
    const saving *s = argument;
    char name[300];
    msa_pth_archive_name(s->path, name, sizeof name);
    return msa_pth_write(sink, name, s->document, s->zip);
}

int msa_pth_save(const char *path, const msa_document *document, bool zip) {
    return msa_file_replace(path, save, &(saving){path, document, zip});
}
