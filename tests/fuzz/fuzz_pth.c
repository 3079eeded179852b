/* Fuzz target for whole .pth files in both formats: hostile files give an error; what is loaded can be looked at and saved. */
#include "fuzz_input.h"
#include "io/pth.h"

static int swallow(void *context, const void *data, size_t n) {
    for (size_t i = 0; i < n; i++) *(uint8_t *)context ^= ((const uint8_t *)data)[i]; /* every byte has to be there */
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    msa_document *d = msa_pth_load_memory(data, size);
    if (!d) return 0;
    uint8_t sum = 0;
    msa_pth_write(&(msa_sink){swallow, &sum}, "archive", d, size % 2);
    for (size_t i = 0; i < d->stored_count; i++) swallow(&sum, d->stored[i].storage->data, d->stored[i].storage->bytes);
    msa_document_free(d);
    return 0;
}

#ifndef MSA_LIBFUZZER
static void fuzz_seeds(void) {
    msa_document *d = msa_document_new();
    msa_tensor *t = msa_tensor_new(MSA_INTS(2, 3), MSA_FLOAT32);
    msa_tensor *bytes = msa_tensor_new(MSA_INTS(4), MSA_UINT8);
    memset(msa_tensor_data(t), 1, 24);
    memset(msa_tensor_data(bytes), 2, 4);
    msa_tensor *view = msa_tensor_view_strided(t, MSA_INTS(3, 2), MSA_INTS(1, 3), 0);
    msa_object *root = msa_object_new_container(d, MSA_OBJECT_ORDERED_DICT), *list = msa_object_new_container(d, MSA_OBJECT_LIST);
    msa_object_set_named(d, root, "w", msa_object_new_tensor(d, t, true));
    msa_object_set_named(d, root, "v", msa_object_new_tensor(d, view, false));
    msa_object_set_named(d, root, "b", msa_object_new_tensor(d, bytes, false));
    msa_object_append(list, msa_object_new_int(d, 1 << 20));
    msa_object_append(list, msa_object_new_text(d, MSA_OBJECT_BYTES, "\xff\0", 2));
    msa_object_append(list, msa_object_new_dtype(d, MSA_BFLOAT16));
    msa_object_set_named(d, root, "l", list);
    msa_object *attributes = msa_object_new_container(d, MSA_OBJECT_DICT);
    msa_object_set_named(d, attributes, "_metadata", msa_object_new_container(d, MSA_OBJECT_ORDERED_DICT));
    msa_object_set_attributes(root, attributes);
    msa_document_set_root(d, root);
    for (int zip = 0; zip < 2; zip++) {
        msa_bytes out = {0};
        if (msa_pth_write(&(msa_sink){msa_bytes_write, &out}, "archive", d, zip) != 0) exit(1);
        add_seed(out.data, out.size);
        free(out.data);
    }
    msa_document_free(d);
    msa_tensor_release(t);
    msa_tensor_release(view);
    msa_tensor_release(bytes);
}
#endif
