/* Reading zip archives. Every offset, size and count is checked against the archive before it is used or anything is
 * allocated for it: entries have to lie inside the archive, a deflated one cannot claim more than deflate can give, and
 * all entries together cannot be longer than the archive, so overlapping ones are found out. */
#include "io/zip.h"

#include <string.h>
#include <zlib.h>

enum {
    END_SIZE = 22,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    CENTRAL_SIZE = 46,
    LOCAL_SIZE = 30,
    DEFLATE_RATIO = 1032, /* what one byte can expand to */
    STORED = 0,
    DEFLATED = 8,
};

static uint16_t get16(const void *p) { return (uint16_t)(((const uint8_t *)p)[0] | ((const uint8_t *)p)[1] << 8); }
static uint32_t get32(const void *p) { return get16(p) | (uint32_t)get16((const char *)p + 2) << 16; }
static uint64_t get64(const void *p) { return get32(p) | (uint64_t)get32((const char *)p + 4) << 32; }

static int damaged(const char *what) {
    return msa_fail(MSA_RUNTIME_ERROR, "failed reading zip archive: %s (the file is truncated or damaged)", what);
}

bool msa_zip_is(const msa_source *s) {
    char magic[4];
    return s->size >= 4 && msa_source_read(s, 0, magic, 4) == 0 && memcmp(magic, "PK\3\4", 4) == 0;
}

/* Finds the central directory: where it is, its size and how many entries it has. */
static int find_directory(const msa_source *s, uint64_t *offset, uint64_t *size, uint64_t *count) {
    size_t length = s->size < 65535 + END_SIZE ? (size_t)s->size : 65535 + END_SIZE;
    if (length < END_SIZE) return damaged("failed finding central directory");
    msa_auto_free uint8_t *tail = msa_malloc(length);
    if (!tail || msa_source_read(s, s->size - length, tail, length) != 0) return -1;
    const uint8_t *end = NULL;
    for (size_t i = length - END_SIZE + 1; i-- > 0 && !end;)
        if (get32(tail + i) == 0x06054b50 && i + END_SIZE + get16(tail + i + 20) == length) end = tail + i;
    if (!end) return damaged("failed finding central directory");
    if (get16(end + 4) || get16(end + 6) || get16(end + 8) != get16(end + 10)) return damaged("it has several parts");
    *count = get16(end + 10);
    *size = get32(end + 12);
    *offset = get32(end + 16);
    uint64_t limit = s->size - length + (uint64_t)(end - tail); /* the directory lies before its end record */
    if (*count == 0xFFFF || *size == 0xFFFFFFFF || *offset == 0xFFFFFFFF) {
        uint8_t locator[LOCATOR_SIZE], end64[END64_SIZE];
        if (limit < LOCATOR_SIZE || msa_source_read(s, limit - LOCATOR_SIZE, locator, sizeof locator) != 0 ||
            get32(locator) != 0x07064b50)
            return damaged("its zip64 locator is missing");
        uint64_t at = get64(locator + 8);
        if (at > limit - LOCATOR_SIZE || limit - LOCATOR_SIZE - at < END64_SIZE) return damaged("its zip64 record is out of bounds");
        if (msa_source_read(s, at, end64, sizeof end64) != 0) return -1;
        if (get32(end64) != 0x06064b50) return damaged("its zip64 record is missing");
        *count = get64(end64 + 32);
        *size = get64(end64 + 40);
        *offset = get64(end64 + 48);
        limit = at;
    }
    if (*offset > limit || *size > limit - *offset || *count > *size / CENTRAL_SIZE) return damaged("its central directory is out of bounds");
    return 0;
}

/* Sizes and offset that do not fit 32 bits are in the zip64 extra field, in this order, each only where needed. */
static int read_zip64(msa_zip_entry *e, const char *extra, size_t length) {
    uint64_t *const fields[] = {&e->size, &e->compressed, &e->header};
    if (e->size != 0xFFFFFFFF && e->compressed != 0xFFFFFFFF && e->header != 0xFFFFFFFF) return 0;
    while (length >= 4) {
        size_t n = get16(extra + 2);
        if (n > length - 4) break;
        if (get16(extra) == 1) {
            const char *p = extra + 4;
            for (int i = 0; i < 3; i++) {
                if (*fields[i] != 0xFFFFFFFF) continue;
                if (n < 8) return damaged("an entry's zip64 field is too short");
                *fields[i] = get64(p);
                p += 8;
                n -= 8;
            }
            return 0;
        }
        extra += 4 + n;
        length -= 4 + n;
    }
    return 0; /* exactly 0xFFFFFFFF */
}

static int read_entry(msa_zip *zip, msa_zip_entry *e, const char *p, size_t left, size_t *used) {
    if (left < CENTRAL_SIZE || get32(p) != 0x02014b50) return damaged("an entry of its central directory is malformed");
    size_t name = get16(p + 28), extra = get16(p + 30), comment = get16(p + 32);
    if (name + extra + comment > left - CENTRAL_SIZE) return damaged("an entry of its central directory is too long");
    *e = (msa_zip_entry){
        .name = p + CENTRAL_SIZE, .name_length = (uint16_t)name, .flags = get16(p + 8), .method = get16(p + 10), .crc = get32(p + 16),
        .compressed = get32(p + 20), .size = get32(p + 24), .header = get32(p + 42)};
    *used = CENTRAL_SIZE + name + extra + comment;
    if (read_zip64(e, p + CENTRAL_SIZE + name, extra) != 0) return -1;
    uint64_t all = zip->source->size;
    if (e->header > all || all - e->header < LOCAL_SIZE || e->compressed > all - e->header - LOCAL_SIZE)
        return damaged("an entry is out of bounds");
    if (e->method == STORED ? e->size != e->compressed : e->size / DEFLATE_RATIO > e->compressed + 1)
        return damaged("an entry's size is impossible");
    return 0;
}

static int compare_names(const char *a, size_t a_length, const char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : a_length < b_length ? -1 : a_length > b_length;
}

static int compare_entries(const void *a, const void *b) {
    const msa_zip_entry *x = a, *y = b;
    return compare_names(x->name, x->name_length, y->name, y->name_length);
}

int msa_zip_open(msa_zip *zip, const msa_source *source) {
    uint64_t offset = 0, size = 0, count = 0;
    *zip = (msa_zip){.source = source, .unread = source->size};
    if (find_directory(source, &offset, &size, &count) != 0) return -1;
    zip->directory = msa_malloc(size);
    zip->entries = zip->directory ? msa_calloc(count, sizeof *zip->entries) : NULL;
    if (!zip->entries || msa_source_read(source, offset, zip->directory, size) != 0) goto failed;
    for (size_t at = 0, used = 0; zip->count < count; at += used, zip->count++)
        if (read_entry(zip, &zip->entries[zip->count], zip->directory + at, size - at, &used) != 0) goto failed;
    qsort(zip->entries, zip->count, sizeof *zip->entries, compare_entries);
    return 0;
failed:
    msa_zip_close(zip);
    return -1;
}

void msa_zip_close(msa_zip *zip) {
    free(zip->directory);
    free(zip->entries);
    *zip = (msa_zip){0};
}

const msa_zip_entry *msa_zip_find(const msa_zip *zip, const char *name, size_t length) {
    size_t low = 0, high = zip->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const msa_zip_entry *e = &zip->entries[middle];
        int order = compare_names(name, length, e->name, e->name_length);
        if (order == 0) return e;
        if (order < 0) high = middle;
        else low = middle + 1;
    }
    return NULL;
}

int msa_zip_locate(const msa_zip *zip, const msa_zip_entry *e, uint64_t *offset) {
    uint8_t local[LOCAL_SIZE];
    if (msa_source_read(zip->source, e->header, local, sizeof local) != 0) return -1;
    if (get32(local) != 0x04034b50) return damaged("an entry's header is missing");
    if (e->flags & 1) return msa_fail(MSA_RUNTIME_ERROR, "failed reading zip archive: an entry is encrypted");
    *offset = e->header + LOCAL_SIZE + get16(local + 26) + get16(local + 28);
    if (*offset > zip->source->size || e->compressed > zip->source->size - *offset) return damaged("an entry is out of bounds");
    return 0;
}

static int inflate_entry(const msa_zip *zip, const msa_zip_entry *e, uint64_t offset, uint8_t *to) {
    uint8_t in[16384];
    uint64_t left = e->compressed, made = 0;
    z_stream z = {0};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return msa_fail(MSA_MEMORY_ERROR, "cannot start zlib");
    int status = Z_OK;
    uint8_t spare; /* zlib wants a place even when nothing more may come */
    while (status == Z_OK) {
        if (!z.avail_in && left) {
            size_t n = left < sizeof in ? (size_t)left : sizeof in;
            if (msa_source_read(zip->source, offset, in, n) != 0) break;
            z.next_in = in;
            z.avail_in = (uInt)n;
            offset += n;
            left -= n;
        }
        uint64_t room = e->size - made;
        uInt n = room < 1u << 30 ? (uInt)room : 1u << 30;
        z.next_out = n ? to + made : &spare;
        z.avail_out = n ? n : 1;
        uInt before = z.avail_out;
        status = inflate(&z, Z_NO_FLUSH);
        if (!n && z.avail_out == 0) status = Z_DATA_ERROR; /* longer than it says */
        else if (n) made += before - z.avail_out;
        if (status == Z_BUF_ERROR && left) status = Z_OK;
    }
    inflateEnd(&z);
    return status == Z_STREAM_END && made == e->size ? 0 : damaged("an entry cannot be decompressed");
}

int msa_zip_read(msa_zip *zip, const msa_zip_entry *e, void *to) {
    uint64_t offset = 0;
    if (msa_zip_locate(zip, e, &offset) != 0) return -1;
    if (e->compressed > zip->unread) return damaged("its entries overlap");
    zip->unread -= e->compressed;
    if (e->method == STORED) {
        if (msa_source_read(zip->source, offset, to, e->size) != 0) return -1;
    } else if (e->method == DEFLATED) {
        if (inflate_entry(zip, e, offset, to) != 0) return -1;
    } else {
        return msa_fail(MSA_RUNTIME_ERROR, "failed reading zip archive: compression method %d is not supported", e->method);
    }
    if (crc32_z(0, to, e->size) != e->crc) return damaged("an entry's checksum is wrong");
    return 0;
}
