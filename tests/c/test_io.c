/* Checkpoints through the C interface: what is saved comes back, and damaged files give errors. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "msadapter/io.h"

static char path[] = "/tmp/msa-test-io-XXXXXX";

static msa_tensor *numbers(int64_t n) {
    msa_tensor *t = msa_tensor_new(MSA_INTS(n), MSA_FLOAT32);
    for (int64_t i = 0; t && i < n; i++) ((float *)msa_tensor_data(t))[i] = (float)i;
    return t;
}

/* {"weight": (2, 3) tensor, "view": its transpose, "epoch": 7, "list": [None, 1.5, "x"]} */
static msa_document *example(void) {
    msa_document *d = msa_document_new();
    msa_auto msa_tensor *base = numbers(6);
    msa_auto msa_tensor *weight = msa_tensor_view_strided(base, MSA_INTS(2, 3), MSA_INTS(3, 1), 0);
    msa_auto msa_tensor *view = msa_tensor_view_strided(base, MSA_INTS(3, 2), MSA_INTS(1, 3), 0);
    msa_object *root = msa_object_new_container(d, MSA_OBJECT_ORDERED_DICT), *list = msa_object_new_container(d, MSA_OBJECT_LIST);
    CHECK(msa_object_set_named(d, root, "weight", msa_object_new_tensor(d, weight, true)) == 0);
    CHECK(msa_object_set_named(d, root, "view", msa_object_new_tensor(d, view, false)) == 0);
    CHECK(msa_object_set_named(d, root, "epoch", msa_object_new_int(d, 7)) == 0);
    CHECK(msa_object_append(list, msa_object_new_none(d)) == 0);
    CHECK(msa_object_append(list, msa_object_new_float(d, 1.5)) == 0);
    CHECK(msa_object_append(list, msa_object_new_str(d, "x")) == 0);
    CHECK(msa_object_set_named(d, root, "list", list) == 0);
    CHECK(msa_object_set_named(d, root, "again", list) == 0);
    msa_document_set_root(d, root);
    return d;
}

static void check_example(const msa_document *d) {
    CHECK(d != NULL);
    if (!d) return;
    const msa_object *root = msa_document_root(d);
    CHECK(msa_object_kind_of(root) == MSA_OBJECT_ORDERED_DICT && msa_object_length(root) == 5);
    const msa_object *weight = msa_object_get(root, "weight"), *view = msa_object_get(root, "view"), *list = msa_object_get(root, "list");
    CHECK(weight && msa_object_is_parameter(weight) && view && !msa_object_is_parameter(view));
    if (!weight || !view || !list) return;
    const msa_tensor *w = msa_object_tensor(weight), *v = msa_object_tensor(view);
    CHECK(msa_tensor_ndim(w) == 2 && msa_tensor_sizes(w)[1] == 3 && msa_tensor_dtype(w) == MSA_FLOAT32);
    CHECK(((const float *)msa_tensor_data(w))[5] == 5.0f);
    CHECK(msa_tensor_data(w) == msa_tensor_data(v) && msa_tensor_strides(v)[0] == 1 && msa_tensor_strides(v)[1] == 3);
    CHECK(msa_object_int(msa_object_get(root, "epoch")) == 7);
    CHECK(msa_object_length(list) == 3 && msa_object_float(msa_object_at(list, 1)) == 1.5);
    CHECK(strcmp(msa_object_text(msa_object_at(list, 2), NULL), "x") == 0);
    CHECK(msa_object_get(root, "again") == list);
}

static uint8_t *slurp(size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*size);
    if (data && fread(data, 1, *size, f) != *size) *size = 0;
    fclose(f);
    return data;
}

static void round_trips(bool zip) {
    msa_document *d = example();
    CHECK(msa_pth_save(path, d, zip) == 0);
    msa_document_free(d);
    d = msa_pth_load(path, false);
    check_example(d);
    msa_document_free(d);
    d = msa_pth_load(path, true);
    CHECK((d != NULL) == zip);
    if (zip) check_example(d);
    msa_document_free(d);
    /* Every shorter file is refused, and a changed byte at worst changes a value. */
    size_t size = 0;
    uint8_t *data = slurp(&size);
    CHECK(size > 0);
    for (size_t n = 0; n < size; n++) {
        uint8_t *copy = malloc(n ? n : 1);
        memcpy(copy, data, n);
        msa_document *part = msa_pth_load_memory(copy, n);
        CHECK(part == NULL);
        msa_document_free(part);
        free(copy);
    }
    for (size_t i = 0; i < size; i++) {
        data[i] ^= (uint8_t)(1 << i % 8);
        msa_document_free(msa_pth_load_memory(data, size));
        data[i] ^= (uint8_t)(1 << i % 8);
    }
    free(data);
}

static void refuses(const char *pickle, size_t size, msa_error_kind kind, const char *part) {
    msa_error_clear();
    msa_document *d = msa_pth_load_memory(pickle, size);
    CHECK(d == NULL && msa_error_get() == kind && strstr(msa_error_message(), part));
    msa_document_free(d);
}
#define REFUSES(text, kind, part) refuses(text, sizeof(text) - 1, kind, part)

static void names_what_it_refuses(void) {
    REFUSES("cos\nsystem\n(S'true'\ntR.", MSA_PICKLE_ERROR, "os.system");
    REFUSES("\x80\x04\x8c\x08" "builtins\x8c\x04" "eval\x93.", MSA_PICKLE_ERROR, "builtins.eval");
    REFUSES("", MSA_EOF_ERROR, "Ran out of input");
    REFUSES("\x80\x02](", MSA_EOF_ERROR, "Ran out of input");
    REFUSES("\x80\x02X\xff\xff\xff\xff" "abc", MSA_PICKLE_ERROR, "truncated");
    REFUSES("]q\0h\0a.", MSA_PICKLE_ERROR, "contains itself");
    REFUSES("]r\xff\xff\xff\x7f.", MSA_PICKLE_ERROR, "memo place");
    REFUSES("e.", MSA_PICKLE_ERROR, "MARK");
    REFUSES("\xff", MSA_PICKLE_ERROR, "invalid load key");
    REFUSES("c_codecs\nencode\nX\x03\0\0\0abcX\x04\0\0\0utf8\x86R.", MSA_PICKLE_ERROR, "malformed");
    char *deep = malloc(20001);
    memset(deep, '(', 10000);
    memset(deep + 10000, 't', 10000);
    deep[20000] = '.';
    refuses(deep, 20001, MSA_PICKLE_ERROR, "nested");
    free(deep);
}

static void reads_protocol_0(void) {
    static const char pickle[] = "(dp0\nVk\\u00e9\np1\n(lp2\nI3\naI01\naL-123456789012345678901234567890L\naF2.5\naNas.";
    msa_document *d = msa_pth_load_memory(pickle, sizeof pickle - 1);
    CHECK(d != NULL);
    const msa_object *list = d ? msa_object_get(msa_document_root(d), "k\xc3\xa9") : NULL;
    CHECK(list && msa_object_length(list) == 5);
    if (list) {
        CHECK(msa_object_int(msa_object_at(list, 0)) == 3 && msa_object_kind_of(msa_object_at(list, 1)) == MSA_OBJECT_BOOL);
        size_t n;
        const char *big = msa_object_text(msa_object_at(list, 2), &n);
        /* -123456789012345678901234567890 */
        CHECK(n == 13 && (uint8_t)big[12] == 0xfe && (uint8_t)big[0] == 0x2e);
        CHECK(msa_object_float(msa_object_at(list, 3)) == 2.5);
    }
    msa_document_free(d);
}

static void keeps_an_old_file_when_saving_fails(void) {
    msa_document *d = msa_document_new();
    msa_object *list = msa_object_new_container(d, MSA_OBJECT_LIST);
    msa_document_set_root(d, list);
    CHECK(msa_object_append(list, list) == 0);
    size_t before = 0, after = 0;
    free(slurp(&before));
    CHECK(msa_pth_save(path, d, true) == -1);
    free(slurp(&after));
    CHECK(before == after && before > 0);
    CHECK(msa_pth_save("/nowhere/at/all.pth", d, true) == -1 && msa_error_get() == MSA_RUNTIME_ERROR);
    msa_document_free(d);
}

int main(void) {
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    close(fd);
    round_trips(true);
    round_trips(false);
    names_what_it_refuses();
    reads_protocol_0();
    keeps_an_old_file_when_saving_fails();
    unlink(path);
    return check_report();
}
