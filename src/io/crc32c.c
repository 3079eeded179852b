/* Four bits at a time: the table has 16 entries. */
#include "io/crc32c.h"

enum { NIBBLE = 4 };

uint32_t msa_crc32c(const void *data, size_t size) {
    static const uint32_t polynomial = 0x82f63b78; /* bits reversed */
    uint32_t table[1 << NIBBLE];
    for (uint32_t i = 0; i < 1 << NIBBLE; i++) {
        table[i] = i;
        for (int bit = 0; bit < NIBBLE; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? polynomial : 0);
    }
    uint32_t crc = UINT32_MAX;
    for (const uint8_t *p = data, *end = p + size; p < end; p++) {
        crc = crc >> NIBBLE ^ table[(crc ^ *p) & 15];
        crc = crc >> NIBBLE ^ table[(crc ^ *p >> NIBBLE) & 15];
    }
    return ~crc;
}
