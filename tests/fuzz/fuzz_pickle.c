/* Fuzz target for the unpickling machine and the pickle writer: hostile pickles give an error, and what is loaded can be
 * written and read again. */
#include "fuzz_input.h"
#include "io/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    msa_document *d = msa_document_new();
    const msa_unpickle_options options = {.encoding = size ? (msa_encoding)(data[size - 1] % 3) : MSA_ENCODING_UTF8};
    if (!d) return 0;
    d->budget = 1 << 16;
    d->root = msa_unpickle(d, data, size, NULL, &options);
    msa_bytes out = {0};
    msa_storage_list storages = {0};
    if (d->root && msa_document_check(d, NULL) == 0 && msa_pickle_write(&out, d, &storages, false) == 0) {
        msa_document *again = msa_document_new();
        if (again) again->budget = 1 << 20;
        if (again && storages.count == 0 && !msa_unpickle(again, out.data, out.size, NULL, &options)) {
            fprintf(stderr, "what was written cannot be read: %s\n", msa_error_message());
            abort();
        }
        msa_document_free(again);
    }
    msa_storage_list_free(&storages);
    free(out.data);
    msa_document_free(d);
    return 0;
}

#ifndef MSA_LIBFUZZER
#define SEED(text) add_seed(text, sizeof(text) - 1)
static void fuzz_seeds(void) {
    SEED("(dp0\nVk\\u00e9\np1\n(lp2\nI3\naI01\naL-123456789012345678901234567890L\naF2.5\naS'a\\x41'\naNas.");
    SEED("\x80\x02}q\x00(X\x01\0\0\0aq\x01K\x01X\x01\0\0\0b](K\x02G?\xf0\0\0\0\0\0\0M\x01\x02J\xff\xff\xff\xff\x8a\x09\0\0\0\0\0\0\0\0\x01"
         "h\x01" "eu.");
    SEED("\x80\x02" "ccollections\nOrderedDict\nq\x00)Rq\x01X\x01\0\0\0kK\x05s}X\x09\0\0\0_metadata}sb.");
    SEED("\x80\x04\x95\x20\0\0\0\0\0\0\0\x8f(K\x01K\x02\x90\x94(K\x03\x91\x94\x86\x94\x8c\x02hi\x94" "C\x02xy\x87.");
    SEED("\x80\x02" "c__builtin__\nset\n](K\x01K\x02" "e\x85R" "c__builtin__\ncomplex\nG?\xf0\0\0\0\0\0\0G@\0\0\0\0\0\0\0\x86R"
         "ctorch\nSize\nK\x02K\x03\x86\x85R\x87.");
    SEED("\x80\x02" "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85" "c_codecs\nencode\nX\x01\0\0\0bX\x06\0\0\0latin1\x86R\x87"
         "R(K\x01K\x02\x85" "cnumpy\ndtype\nX\x02\0\0\0u1\x89\x88\x87R(K\x03X\x01\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb\x89"
         "c_codecs\nencode\nX\x02\0\0\0abX\x06\0\0\0latin1\x86Rtb.");
    SEED("\x80\x02" "ccollections\ndefaultdict\nc__builtin__\nlist\n\x85RK\x01]s" "ccollections\nCounter\n}K\x05K\x01s\x85R"
         "c__builtin__\nslice\nNK\x01N\x87R\x87.");
}
#endif
