/* Reading .pth files: zip archives (PyTorch 1.6 and later), the format before (a row of pickles, then raw storages), and
 * pickles alone. Storages are read when the pickle first names them, or in the older format after it. */
#include "io/pth.h"
#include "io/zip.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* 0x1950a86a20f9469cfc6c, which begins files of the format before zip. */
static const char magic[] = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";

enum { PROTOCOL = 1001, MOST_LEVELS = 4 };

typedef struct {
    atomic_int references;
    void *base;
    size_t size;
} mapping;

typedef struct {
    msa_document *document;
    const msa_source *source;
    msa_zip zip;
    const char *prefix; /* "archive/" in a zip; what keeps keys of a nested file apart */
    size_t prefix_length;
    bool swap;         /* the file's byte order is not this machine's */
    mapping *map;
    uint64_t left;     /* bytes that storages may still take, in the format before zip */
} loader;

static void release_mapping(void *context) {
    mapping *m = context;
    if (atomic_fetch_sub(&m->references, 1) != 1) return;
    munmap(m->base, m->size);
    free(m);
}

static void swap_bytes(uint8_t *data, size_t bytes, msa_dtype dtype) {
    size_t width = msa_dtype_size(dtype) / (msa_is_complex(dtype) ? 2 : 1);
    for (size_t i = 0; width > 1 && i + width <= bytes; i += width)
        for (size_t j = 0; j < width / 2; j++) {
            uint8_t low = data[i + j];
            data[i + j] = data[i + width - 1 - j];
            data[i + width - 1 - j] = low;
        }
}

/* A storage over the mapped file, or NULL without an error when the entry cannot be used in place. */
static msa_storage *map_storage(loader *l, const msa_zip_entry *e, msa_dtype dtype) {
    uint64_t offset = 0;
    if (!l->map || l->swap || e->method != 0 || e->size == 0 || msa_zip_locate(&l->zip, e, &offset) != 0 || offset % msa_dtype_size(dtype)) return NULL;
    int64_t size = (int64_t)e->size, one = 1;
    l->map->references++;
    msa_tensor *t = msa_tensor_from_memory((char *)l->map->base + offset, (msa_ints){&size, 1}, (msa_ints){&one, 1}, MSA_UINT8,
                                           release_mapping, l->map);
    if (!t) {
        release_mapping(l->map);
        return NULL;
    }
    msa_storage *s = msa_storage_retain(t->storage);
    msa_tensor_release(t);
    return s;
}

/* The storage of an entry data/KEY. */
static msa_storage *read_storage(loader *l, const msa_object *key, msa_dtype dtype, uint64_t bytes) {
    msa_auto_free char *name = msa_malloc(l->prefix_length + 5 + key->length);
    if (!name) return NULL;
    memcpy(name, l->prefix, l->prefix_length);
    memcpy(name + l->prefix_length, "data/", 5);
    memcpy(name + l->prefix_length + 5, key->text, key->length);
    const msa_zip_entry *e = msa_zip_find(&l->zip, name, l->prefix_length + 5 + key->length);
    if (!e) return msa_fail_null(MSA_RUNTIME_ERROR, "failed reading zip archive: it has no entry data/%.100s", key->text);
    if (e->size < bytes)
        return msa_fail_null(MSA_RUNTIME_ERROR, "entry data/%.100s has %llu bytes, but a storage of %llu is expected", key->text,
                             (unsigned long long)e->size, (unsigned long long)bytes);
    msa_storage *s = map_storage(l, e, dtype);
    if (s) return s;
    s = msa_storage_new(e->size);
    if (s && msa_zip_read(&l->zip, e, s->data) != 0) {
        msa_storage_release(s);
        return NULL;
    }
    if (s && l->swap) swap_bytes(s->data, s->bytes, dtype);
    return s;
}

static msa_object *malformed(void) { return msa_fail_null(MSA_PICKLE_ERROR, "malformed persistent id in the pickle"); }

/* ("storage", type, key, location, numel[, None or (key, offset, numel) of a view]). */
static msa_object *load_persistent(void *context, msa_object *id) {
    loader *l = context;
    if (id->kind != MSA_OBJECT_TUPLE || id->count < 5 || id->count > 6 || !msa_object_says(id->items[0], "storage")) return malformed();
    const msa_object *type = id->items[1], *key = id->items[2], *location = id->items[3], *numel = id->items[4];
    if (type->kind != MSA_OBJECT_GLOBAL || type->integer != MSA_GLOBAL_STORAGE_TYPE || key->kind != MSA_OBJECT_STR || key->length > 1000 ||
        strlen(key->text) != key->length || location->kind != MSA_OBJECT_STR || numel->kind != MSA_OBJECT_INT || numel->integer < 0)
        return malformed();
    msa_dtype dtype = (msa_dtype)type->detail;
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)numel->integer, msa_dtype_size(dtype), &bytes) || bytes > INT64_MAX) return malformed();
    char known[1100];
    int length = snprintf(known, sizeof known, "%s%s", l->zip.source ? "" : l->prefix, key->text);
    msa_stored *stored = msa_document_find_stored(l->document, known, (size_t)length);
    if (!stored) {
        msa_storage *s;
        if (l->zip.source) {
            s = read_storage(l, key, dtype, bytes);
        } else {
            if (bytes > l->left) return msa_fail_null(MSA_RUNTIME_ERROR, "the file is too short for its storages: it is truncated or damaged");
            l->left -= bytes;
            s = msa_storage_new(bytes);
            if (s && bytes) memset(s->data, 0, bytes);
        }
        stored = msa_document_add_stored(l->document, s, dtype, known, (size_t)length, location->text);
        if (!stored) return NULL;
    }
    if (bytes > stored->storage->bytes) return malformed();
    int64_t offset = 0, count = numel->integer;
    if (id->count == 6 && id->items[5]->kind != MSA_OBJECT_NONE) {
        const msa_object *view = id->items[5];
        if (view->kind != MSA_OBJECT_TUPLE || view->count != 3 || view->items[1]->kind != MSA_OBJECT_INT ||
            view->items[2]->kind != MSA_OBJECT_INT)
            return malformed();
        offset = view->items[1]->integer;
        count = view->items[2]->integer;
        if (offset < 0 || count < 0 || offset > numel->integer || count > numel->integer - offset) return malformed();
    }
    return msa_object_new_storage(l->document, stored->storage, dtype, offset, count);
}

static msa_unpickle_options options_of(loader *l, const msa_unpickle_options *base) {
    return (msa_unpickle_options){load_persistent, l, base->encoding, base->level};
}

/* The folder in the archive: the first part of the shortest name that ends in /data.pkl. */
static const msa_zip_entry *find_pickle(loader *l) {
    static const char name[] = "/data.pkl";
    const msa_zip_entry *best = NULL;
    for (size_t i = 0; i < l->zip.count; i++) {
        const msa_zip_entry *e = &l->zip.entries[i];
        size_t n = e->name_length;
        if (n < sizeof name || memcmp(e->name + n - sizeof name + 1, name, sizeof name - 1) != 0) continue;
        if (!best || n < best->name_length) best = e;
    }
    if (!best) {
        msa_fail(MSA_RUNTIME_ERROR, "failed reading zip archive: it has no data.pkl, so it is no checkpoint of PyTorch");
        return NULL;
    }
    l->prefix = best->name;
    l->prefix_length = best->name_length - sizeof name + 2;
    return best;
}

static const msa_zip_entry *find_beside(loader *l, const char *name) {
    char full[70000];
    size_t n = strlen(name);
    memcpy(full, l->prefix, l->prefix_length);
    memcpy(full + l->prefix_length, name, n);
    return msa_zip_find(&l->zip, full, l->prefix_length + n);
}

static int open_mapping(loader *l) {
    l->map = msa_calloc(1, sizeof *l->map);
    if (!l->map) return -1;
    void *base = mmap(NULL, l->source->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, l->source->fd, 0);
    if (base == MAP_FAILED) {
        free(l->map);
        l->map = NULL;
        return msa_fail(MSA_OS_ERROR, "cannot map the file: %s", strerror(errno));
    }
    *l->map = (mapping){1, base, l->source->size};
    return 0;
}

static int read_zip(loader *l, bool map, const msa_unpickle_options *base) {
    if (msa_zip_open(&l->zip, l->source) != 0) return -1;
    const msa_zip_entry *pickle = find_pickle(l), *order = pickle ? find_beside(l, "byteorder") : NULL;
    if (!pickle) return -1;
    if (find_beside(l, "constants.pkl"))
        return msa_fail(MSA_RUNTIME_ERROR, "the file is an archive of TorchScript, which holds code; only checkpoints can be loaded");
    if (order) {
        char text[8] = "";
        if (order->size >= sizeof text) return msa_fail(MSA_RUNTIME_ERROR, "failed reading zip archive: unknown byte order");
        if (msa_zip_read(&l->zip, order, text) != 0) return -1;
        if (strcmp(text, "big") != 0 && strcmp(text, "little") != 0) return msa_fail(MSA_RUNTIME_ERROR, "failed reading zip archive: unknown byte order");
        l->swap = (text[0] == 'l') != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    }
    if (map && open_mapping(l) != 0) return -1;
    msa_auto_free char *data = msa_malloc(pickle->size);
    if (!data || msa_zip_read(&l->zip, pickle, data) != 0) return -1;
    msa_unpickle_options options = options_of(l, base);
    l->document->root = msa_unpickle(l->document, data, pickle->size, NULL, &options);
    return l->document->root ? 0 : -1;
}

/* Each storage, in the order of the list of keys: the number of elements, then the elements. */
static int read_raw_storages(loader *l, const msa_object *keys, const uint8_t *data, size_t size, size_t *at) {
    if (keys->kind != MSA_OBJECT_LIST) return msa_fail(MSA_PICKLE_ERROR, "malformed list of storages");
    for (size_t i = 0; i < keys->count; i++) {
        const msa_object *key = keys->items[i];
        char known[1100];
        if (key->kind != MSA_OBJECT_STR || key->length > 1000) return msa_fail(MSA_PICKLE_ERROR, "malformed list of storages");
        int length = snprintf(known, sizeof known, "%s%s", l->prefix, key->text);
        msa_stored *stored = msa_document_find_stored(l->document, known, (size_t)length);
        if (!stored) return msa_fail(MSA_PICKLE_ERROR, "the list of storages names one that no tensor has");
        if (size - *at < 8) return msa_fail(MSA_RUNTIME_ERROR, "unexpected EOF: the file is truncated before its storages end");
        uint64_t numel = 0;
        for (int b = 0; b < 8; b++) numel |= (uint64_t)data[*at + (size_t)(l->swap ? 7 - b : b)] << 8 * b;
        *at += 8;
        size_t bytes = stored->storage->bytes;
        if (numel != bytes / msa_dtype_size(stored->dtype)) return msa_fail(MSA_RUNTIME_ERROR, "a storage has another size than the pickle says");
        if (bytes > size - *at) return msa_fail(MSA_RUNTIME_ERROR, "unexpected EOF: the file is truncated before its storages end");
        if (bytes) memcpy(stored->storage->data, data + *at, bytes);
        if (l->swap) swap_bytes(stored->storage->data, bytes, stored->dtype);
        *at += bytes;
    }
    return 0;
}

/* The pickles that follow the magic number: version, machine, object, keys. */
static msa_object *read_legacy(loader *l, const uint8_t *data, size_t size, size_t *at, const msa_unpickle_options *base) {
    const msa_unpickle_options plain = {NULL, NULL, base->encoding, base->level};
    msa_unpickle_options options = options_of(l, base);
    size_t used = 0;
    msa_object *parts[4];
    for (int i = 0; i < 4; i++, *at += used) {
        parts[i] = msa_unpickle(l->document, data + *at, size - *at, &used, i == 2 ? &options : &plain);
        if (!parts[i]) return NULL;
        if (i == 0 && msa_object_int(parts[0]) != PROTOCOL)
            return msa_fail_null(MSA_RUNTIME_ERROR, "Invalid protocol version: %lld", (long long)msa_object_int(parts[0]));
        if (i == 1) {
            const msa_object *little = msa_object_get(parts[1], "little_endian");
            l->swap = little && (msa_object_int(little) != 0) != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
            l->left = size - *at;
        }
    }
    return read_raw_storages(l, parts[3], data, size, at) == 0 ? parts[2] : NULL;
}

static bool is_magic(const msa_object *o) { return o->kind == MSA_OBJECT_BIG_INT && o->length == 10 && memcmp(o->text, magic, 10) == 0; }

static int read_pickles(loader *l, const uint8_t *data, size_t size, const msa_unpickle_options *base) {
    const msa_unpickle_options plain = {NULL, NULL, base->encoding, base->level};
    size_t at = 0;
    if (size >= 262 && memcmp(data + 257, "ustar", 5) == 0)
        return msa_fail(MSA_RUNTIME_ERROR, "the file is a tar archive, as PyTorch wrote before version 0.1.10; these are not supported");
    msa_object *first = msa_unpickle(l->document, data, size, &at, &plain);
    if (!first) return -1;
    l->document->root = is_magic(first) ? read_legacy(l, data, size, &at, base) : first;
    l->document->consumed = at;
    return l->document->root ? 0 : -1;
}

msa_object *msa_pth_read_nested(msa_document *d, const char *data, size_t size, const msa_unpickle_options *outer) {
    if (outer->level >= MOST_LEVELS) return msa_fail_null(MSA_PICKLE_ERROR, "too many pickles within pickles");
    const msa_unpickle_options base = {NULL, NULL, outer->encoding, outer->level + 1};
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%u/", d->count); /* grows with every object, so no two files share it */
    loader l = {.document = d, .prefix = prefix, .prefix_length = strlen(prefix)};
    size_t at = 0, left = d->budget;
    msa_object *first = msa_unpickle(d, data, size, &at, &base);
    msa_object *result = first && is_magic(first) ? read_legacy(&l, (const uint8_t *)data, size, &at, &base) : NULL;
    if (d->budget > left) d->budget = left; /* its size was paid for already */
    return result || (first && !is_magic(first)) ? result ? result : msa_fail_null(MSA_PICKLE_ERROR, "malformed storage in the pickle") : NULL;
}

msa_document *msa_pth_read(const msa_source *source, const msa_pth_options *o) {
    msa_document *d = msa_document_new();
    if (!d) return NULL;
    d->budget = 1 << 20;
    loader l = {.document = d, .source = source, .prefix = ""};
    const msa_unpickle_options base = {NULL, NULL, o->encoding, 0};
    int status;
    if (msa_zip_is(source)) {
        status = read_zip(&l, o->map, &base);
        d->consumed = source->size;
    } else if (o->map) {
        status = msa_fail(MSA_RUNTIME_ERROR, "mmap can only be used with files saved with _use_new_zipfile_serialization=True");
    } else if (source->memory) {
        status = read_pickles(&l, source->memory, source->size, &base);
    } else {
        msa_auto_free uint8_t *data = msa_malloc(source->size);
        status = data ? msa_source_read(source, 0, data, source->size) : -1;
        if (status == 0) status = read_pickles(&l, data, source->size, &base);
    }
    if (status == 0) status = msa_document_check(d, NULL);
    msa_zip_close(&l.zip);
    if (l.map) release_mapping(l.map);
    if (status == 0) return d;
    msa_document_free(d);
    return NULL;
}

msa_document *msa_pth_load(const char *path, bool map) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return msa_fail_null(MSA_OS_ERROR, "cannot open %s: %s", path, strerror(errno));
    msa_source source;
    msa_document *d = msa_source_open(&source, fd) == 0 ? msa_pth_read(&source, &(msa_pth_options){.map = map}) : NULL;
    close(fd);
    return d;
}

msa_document *msa_pth_load_memory(const void *data, size_t size) {
    const msa_source source = {.memory = data ? data : (const void *)"", .size = size};
    return msa_pth_read(&source, &(msa_pth_options){0});
}
