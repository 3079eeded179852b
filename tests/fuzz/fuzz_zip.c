/* Fuzz target for the zip reader: every entry of a hostile archive is opened, and only what its size allows is allocated. */
#include "fuzz_input.h"
#include "io/zip.h"

#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const msa_source source = {.memory = data, .size = size};
    msa_zip zip;
    if (msa_zip_open(&zip, &source) != 0) return 0;
    for (size_t i = 0; i < zip.count; i++) {
        const msa_zip_entry *e = &zip.entries[i];
        if (e->size > (size + 2) * 1032) abort();
        if (!msa_zip_find(&zip, e->name, e->name_length)) abort();
        void *to = malloc(e->size ? e->size : 1);
        if (to) msa_zip_read(&zip, e, to);
        free(to);
    }
    msa_zip_close(&zip);
    return 0;
}

#ifndef MSA_LIBFUZZER
static void put(msa_bytes *b, int width, uint64_t value) {
    for (int i = 0; i < width; i++, value >>= 8) msa_bytes_add(b, &(char){(char)value}, 1);
}

/* One deflated entry, with zip64 records where `wide`. */
static void add_deflated(int wide) {
    static const char text[] = "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc";
    uint8_t packed[200];
    z_stream z = {.next_in = (uint8_t *)text, .avail_in = sizeof text, .next_out = packed, .avail_out = sizeof packed};
    deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    uint32_t n = (uint32_t)z.total_out, crc = (uint32_t)crc32(0, (const uint8_t *)text, sizeof text);
    deflateEnd(&z);
    msa_bytes b = {0};
    put(&b, 4, 0x04034b50), put(&b, 2, 20), put(&b, 2, 0), put(&b, 2, 8), put(&b, 4, 0), put(&b, 4, crc), put(&b, 4, n);
    put(&b, 4, sizeof text), put(&b, 2, 3), put(&b, 2, 0), msa_bytes_add(&b, "a/b", 3), msa_bytes_add(&b, packed, n);
    size_t directory = b.size;
    put(&b, 4, 0x02014b50), put(&b, 4, 0x00140014), put(&b, 2, 0), put(&b, 2, 8), put(&b, 4, 0), put(&b, 4, crc);
    put(&b, 4, wide ? 0xFFFFFFFF : n), put(&b, 4, wide ? 0xFFFFFFFF : sizeof text), put(&b, 2, 3), put(&b, 2, wide ? 20 : 0);
    put(&b, 2, 0), put(&b, 4, 0), put(&b, 4, 0), put(&b, 4, 0), msa_bytes_add(&b, "a/b", 3);
    if (wide) put(&b, 2, 1), put(&b, 2, 16), put(&b, 8, sizeof text), put(&b, 8, n);
    size_t end = b.size;
    if (wide) {
        put(&b, 4, 0x06064b50), put(&b, 8, 44), put(&b, 4, 0x002d002d), put(&b, 8, 0), put(&b, 8, 1), put(&b, 8, 1);
        put(&b, 8, end - directory), put(&b, 8, directory), put(&b, 4, 0x07064b50), put(&b, 4, 0), put(&b, 8, end), put(&b, 4, 1);
    }
    put(&b, 4, 0x06054b50), put(&b, 4, 0), put(&b, 2, wide ? 0xFFFF : 1), put(&b, 2, wide ? 0xFFFF : 1);
    put(&b, 4, wide ? 0xFFFFFFFF : end - directory), put(&b, 4, wide ? 0xFFFFFFFF : directory), put(&b, 2, 0);
    add_seed(b.data, b.size);
    free(b.data);
}

static void fuzz_seeds(void) {
    msa_bytes out = {0};
    const msa_sink sink = {msa_bytes_write, &out};
    msa_zip_writer w = {.sink = &sink};
    msa_zip_add(&w, "archive/data.pkl", "\x80\x02N.", 4);
    msa_zip_add(&w, "archive/data/0", "0123456789", 10);
    msa_zip_add(&w, "archive/version", "3\n", 2);
    msa_zip_finish(&w);
    add_seed(out.data, out.size);
    free(out.data);
    add_deflated(0);
    add_deflated(1);
}
#endif
