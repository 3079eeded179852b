/* Writing zip archives of stored entries, front to back: nothing is patched afterwards, so any sink will do. */
#include "io/zip.h"

#include <string.h>
#include <zlib.h>

enum { ALIGNMENT = 64, DATE = 0x21 /* 1980-01-01: the same input gives the same file */ };

static int put(msa_bytes *b, int bytes, uint64_t value) {
    uint8_t raw[8];
    for (int i = 0; i < bytes; i++) raw[i] = (uint8_t)(value >> 8 * i);
    return msa_bytes_add(b, raw, (size_t)bytes);
}

/* A row of little-endian numbers: pairs of width and value, ended by width 0. */
#define PUT_ALL(b, ...) put_all(b, (const uint64_t[]){__VA_ARGS__, 0})
static int put_all(msa_bytes *b, const uint64_t *pairs) {
    for (; *pairs; pairs += 2)
        if (put(b, (int)pairs[0], pairs[1]) != 0) return -1;
    return 0;
}

static int emit(msa_zip_writer *w, const void *data, size_t n) {
    w->at += n;
    return n ? w->sink->write(w->sink->context, data, n) : 0;
}

static uint32_t clip(uint64_t value, bool wide) { return wide ? 0xFFFFFFFF : (uint32_t)value; }

int msa_zip_add(msa_zip_writer *w, const char *name, const void *data, size_t size) {
    size_t length = strlen(name);
    if (length > 60000) return msa_fail(MSA_VALUE_ERROR, "the name of a zip entry is too long");
    bool wide = size >= 0xFFFFFFFFu, far = w->at >= 0xFFFFFFFFu;
    uint32_t crc = (uint32_t)crc32_z(0, data, size);
    uint64_t header = w->at;
    /* The field that moves the data to the next multiple of 64 has a header of 4 bytes itself. */
    uint64_t before = header + 30 + length + (wide ? 20 : 0) + 4;
    uint16_t padding = (uint16_t)((ALIGNMENT - before % ALIGNMENT) % ALIGNMENT);
    msa_bytes local = {0};
    static const char zeros[ALIGNMENT];
    int status = PUT_ALL(&local, 4, 0x04034b50, 2, wide ? 45 : 20, 2, 0x0800, 2, 0, 2, 0, 2, DATE, 4, crc, 4, clip(size, wide), 4,
                         clip(size, wide), 2, length, 2, (wide ? 20 : 0) + 4 + padding);
    if (status == 0) status = msa_bytes_add(&local, name, length);
    if (status == 0 && wide) status = PUT_ALL(&local, 2, 1, 2, 16, 8, size, 8, size);
    if (status == 0) status = PUT_ALL(&local, 2, 0x4246, 2, padding);
    if (status == 0) status = msa_bytes_add(&local, zeros, padding);
    if (status == 0) status = emit(w, local.data, local.size);
    if (status == 0) status = emit(w, data, size);
    free(local.data);
    if (status != 0) return -1;

    unsigned extra = (wide ? 16 : 0) + (far ? 8 : 0);
    msa_bytes *d = &w->directory;
    if (PUT_ALL(d, 4, 0x02014b50, 2, wide || far ? 45 : 20, 2, wide || far ? 45 : 20, 2, 0x0800, 2, 0, 2, 0, 2, DATE, 4, crc, 4,
                clip(size, wide), 4, clip(size, wide), 2, length, 2, extra ? extra + 4 : 0, 2, 0, 2, 0, 2, 0, 4, 0, 4,
                clip(header, far)) != 0 ||
        msa_bytes_add(d, name, length) != 0)
        return -1;
    if (extra && PUT_ALL(d, 2, 1, 2, extra) != 0) return -1;
    if (wide && PUT_ALL(d, 8, size, 8, size) != 0) return -1;
    if (far && put(d, 8, header) != 0) return -1;
    w->count++;
    return 0;
}

int msa_zip_finish(msa_zip_writer *w) {
    uint64_t start = w->at, size = w->directory.size, count = w->count;
    bool big = start >= 0xFFFFFFFFu || size >= 0xFFFFFFFFu || count >= 0xFFFF;
    msa_bytes *d = &w->directory;
    int status = 0;
    if (big)
        status = PUT_ALL(d, 4, 0x06064b50, 8, 44, 2, 45, 2, 45, 4, 0, 4, 0, 8, count, 8, count, 8, size, 8, start, 4, 0x07064b50, 4, 0, 8,
                         start + size, 4, 1);
    if (status == 0)
        status = PUT_ALL(d, 4, 0x06054b50, 2, 0, 2, 0, 2, big ? 0xFFFF : count, 2, big ? 0xFFFF : count, 4, clip(size, big), 4,
                         clip(start, big), 2, 0);
    if (status == 0) status = emit(w, d->data, d->size);
    free(d->data);
    *d = (msa_bytes){0};
    return status;
}
