/* main() of the fuzz targets where there is no libFuzzer: a short, repeatable round of mutations of seeds. A target fills
 * `seeds` in fuzz_seeds() and defines LLVMFuzzerTestOneInput. */
#ifndef MSA_FUZZ_INPUT_H
#define MSA_FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef MSA_LIBFUZZER
typedef struct {
    uint8_t *data;
    size_t size;
} fuzz_seed;

enum { FUZZ_SEEDS = 16, FUZZ_EXTRA = 64 };
static fuzz_seed seeds[FUZZ_SEEDS];
static int seed_count;
static void fuzz_seeds(void);

static void add_seed(const void *data, size_t size) {
    uint8_t *copy = malloc(size + 1);
    if (!copy || seed_count == FUZZ_SEEDS) exit(1);
    memcpy(copy, data, size);
    seeds[seed_count++] = (fuzz_seed){copy, size};
}

static uint64_t fuzz_state = 0x9E3779B97F4A7C15u;

static size_t random_below(size_t limit) {
    fuzz_state ^= fuzz_state << 13;
    fuzz_state ^= fuzz_state >> 7;
    fuzz_state ^= fuzz_state << 17;
    return limit ? (size_t)(fuzz_state % limit) : 0;
}

/* Flips a bit, writes a telling byte or number, removes, inserts or copies a run, or cuts the end. */
static size_t mutate(uint8_t *data, size_t size, size_t capacity) {
    static const uint8_t bytes[] = "\0\1\x7f\x80\xff()].}RbcQuestaqhj0N\x85\x86\x87\x8a\x93\x94";
    for (size_t n = 1 + random_below(5); n; n--) {
        size_t at = random_below(size), run = 1 + random_below(12);
        if (!size) return size;
        switch (random_below(7)) {
        case 0: data[at] ^= (uint8_t)(1u << random_below(8)); break;
        case 1: data[at] = bytes[random_below(sizeof bytes - 1)]; break;
        case 2:
            for (size_t i = at; i < size && i < at + 4; i++) data[i] = random_below(2) ? 0xff : (uint8_t)random_below(256);
            break;
        case 3:
            if (at + run > size) break;
            memmove(data + at, data + at + run, size - at - run);
            size -= run;
            break;
        case 4:
            if (size + run > capacity) break;
            memmove(data + at + run, data + at, size - at);
            size += run;
            break;
        case 5: {
            size_t from = random_below(size);
            if (run > size - from) run = size - from;
            if (run > size - at) run = size - at;
            memmove(data + at, data + from, run);
            break;
        }
        default:
            if (random_below(8) == 0) size = at;
        }
    }
    return size;
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 20000;
    fuzz_seeds();
    for (long i = 0; i < rounds; i++) {
        const fuzz_seed *s = &seeds[i % seed_count];
        uint8_t *data = malloc(s->size + FUZZ_EXTRA);
        if (!data) return 1;
        memcpy(data, s->data, s->size);
        size_t size = i < seed_count ? s->size : mutate(data, s->size, s->size + FUZZ_EXTRA);
        uint8_t *exact = malloc(size ? size : 1); /* so that the sanitizer sees a read past the end */
        if (!exact) return 1;
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        free(data);
    }
    for (int i = 0; i < seed_count; i++) free(seeds[i].data);
    return 0;
}
#endif
#endif
