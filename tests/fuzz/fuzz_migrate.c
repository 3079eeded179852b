/* Fuzz target for the lexer, the rewriter and the diff behind `msadapter migrate`: hostile bytes never crash them, a
 * rewritten source is stable, and no byte outside the edits is lost. With libFuzzer, define MSA_LIBFUZZER; else main()
 * runs a short, repeatable round of mutations of the seeds below. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "migrate.h"

static FILE *sink;

static void require(int condition, const char *what) {
    if (condition) return;
    fprintf(stderr, "property violated: %s\n", what);
    abort();
}

static size_t count_lines(const char *text, size_t length) {
    size_t lines = 0;
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!sink) sink = fopen("/dev/null", "w");
    char *source = malloc(size ? size : 1); /* an exact copy, so that the sanitizer sees a read past the end */
    if (!source || !sink) return 0;
    memcpy(source, data, size);
    msa_migration first, second;
    int status = msa_migrate_source(source, size, &first);
    require(status == 0 || (first.error[0] && first.error_line > 0 && !first.text),
            "a refusal names a line and gives no text");
    if (status == 0 && first.text) {
        require(count_lines(source, size) == count_lines(first.text, first.length), "lines are kept");
        require(msa_migrate_source(first.text, first.length, &second) == 0, "the result can be read");
        require(!second.text, "a second run changes nothing");
        msa_migration_free(&second);
        msa_diff_print(sink, "a.py", source, size, first.text, first.length);
    }
    msa_migration_free(&first);
    free(source);
    return 0;
}

#ifndef MSA_LIBFUZZER
static const char *const seeds[] = {
    "import torch, torch.nn as nn, os\nfrom torch.utils import (data,\n  x as y,)\n",
    "\xEF\xBB\xBF# -*- coding: utf-8 -*-\nif x:\n\timport torchvision; y = f'{a!r:>{w}}' f\"{d[\"k\"]}\"\n",
    "x = rb'''\n\\''' + '\\\n' ; from torch import *\r\nimport \\\n torch\r",
    "def f():\n    x = f'''{ {1: [2, (3)]} # c\n:{y}z}\\N{DASH}{{''' 0x1fif 1_0e-5j\n  \f\n    import torch\n",
    "# coding: gbk\nx = '\xB1\x5C'\n__import__('torch'); importlib.import_module(name=f'torch.{x}')\n",
    "match x:\n case _: from ...torch import a; import torch.nn, torchvision.models\nclass 模: pass\n",
};

static uint64_t state = 0x9E3779B97F4A7C15u;

static size_t random_below(size_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit ? (size_t)(state % limit) : 0;
}

/* Overwrites, inserts, removes or repeats a few bytes. */
static size_t mutate(uint8_t *data, size_t size, size_t capacity) {
    static const char alphabet[] = "'\"{}()[]\\\n\r\t\f #:;,.=!frbutNaz09_\x80\xE4\xFF\0import torch as from";
    for (size_t n = 1 + random_below(6); n; n--) {
        size_t at = random_below(size + 1), run = random_below(8);
        uint8_t byte = (uint8_t)alphabet[random_below(sizeof alphabet)];
        switch (random_below(3)) {
        case 0:
            if (at < size) data[at] = byte;
            break;
        case 1:
            if (size + run > capacity) break;
            memmove(data + at + run, data + at, size - at);
            memset(data + at, byte, run);
            size += run;
            break;
        default:
            if (at + run > size) break;
            memmove(data + at, data + at + run, size - at - run);
            size -= run;
        }
    }
    return size;
}

int main(int argc, char **argv) {
    enum { capacity = 1024 };
    uint8_t data[capacity];
    long rounds = argc > 1 ? atol(argv[1]) : 20000;
    for (long i = 0; i < rounds; i++) {
        const char *seed = seeds[(size_t)i % (sizeof seeds / sizeof *seeds)];
        size_t size = strlen(seed);
        memcpy(data, seed, size);
        LLVMFuzzerTestOneInput(data, i < 6 ? size : mutate(data, size, capacity));
    }
    return 0;
}
#endif
