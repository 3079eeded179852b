/* numpy's scalars, arrays and dtypes in pickles: plain numbers, truth values and fixed-width text only. They stay descriptions
 * here (dtype, shape, bytes), all sizes checked; the Python extension makes numpy objects of them. */
#include "io/pickle.h"

#include <stdio.h>

static msa_object *malformed(void) { return msa_fail_null(MSA_PICKLE_ERROR, "malformed numpy object in the pickle"); }

/* Bytes of an element of a dtype "<f8", or 0 where its text is not understood. */
static size_t item_size(const msa_object *dtype) {
    const char *p = dtype->text;
    if (dtype->kind != MSA_OBJECT_NUMPY_DTYPE || dtype->length < 3 || !strchr("<>|=", *p) || !strchr("biufcSUV", p[1]) || p[1] == 'V') return 0;
    uint64_t n = 0;
    for (const char *q = p + 2; *q; q++) {
        if (*q < '0' || *q > '9' || q - p > 9) return 0;
        n = 10 * n + (uint64_t)(*q - '0');
    }
    if (p[1] == 'U') n *= 4;
    return n <= 1u << 30 ? n : 0;
}

/* dtype("f8", align, copy); the byte order comes with BUILD. */
static msa_object *new_dtype(msa_document *d, const msa_object *a) {
    if (a->count != 3 || a->items[0]->kind != MSA_OBJECT_STR || a->items[0]->length < 2 || a->items[0]->length > 12) return malformed();
    char text[16];
    snprintf(text, sizeof text, "|%s", a->items[0]->text);
    msa_object *o = msa_object_new_text(d, MSA_OBJECT_NUMPY_DTYPE, text, strlen(text));
    if (!o || item_size(o)) return o;
    return msa_fail_null(MSA_PICKLE_ERROR, "numpy arrays of dtype %.12s are not loaded safely: only numbers and fixed-width text are", text + 1);
}

msa_object *msa_pickle_numpy_call(msa_document *d, msa_global function, msa_object *a) {
    if (function == MSA_GLOBAL_NUMPY_DTYPE) return new_dtype(d, a);
    if (function == MSA_GLOBAL_NUMPY_SCALAR) {
        if (a->count != 2 || a->items[1]->kind != MSA_OBJECT_BYTES || !item_size(a->items[0]) || item_size(a->items[0]) != a->items[1]->length)
            return malformed();
        return msa_object_new_view(d, MSA_OBJECT_NUMPY_SCALAR, a->items, 2);
    }
    /* _reconstruct(ndarray, (0,), b"b"), filled by BUILD. */
    if (a->count != 3 || a->items[0]->kind != MSA_OBJECT_GLOBAL || a->items[0]->integer != MSA_GLOBAL_NUMPY_ARRAY) return malformed();
    return msa_object_new(d, MSA_OBJECT_NUMPY_ARRAY);
}

/* (3, "<", None, None, None, -1, -1, 0): byte order; names, fields and shape have to be absent. */
static int build_dtype(msa_object *o, const msa_object *s) {
    if (s->kind != MSA_OBJECT_TUPLE || s->count < 5 || s->items[1]->kind != MSA_OBJECT_STR || s->items[1]->length != 1 ||
        !strchr("<>|=", s->items[1]->text[0]))
        return malformed(), -1;
    for (int i = 2; i < 5; i++)
        if (s->items[i]->kind != MSA_OBJECT_NONE) return malformed(), -1;
    o->text[0] = s->items[1]->text[0];
    return 0;
}

/* (version, shape, dtype, is_fortran, bytes). */
static int build_array(msa_document *d, msa_object *o, const msa_object *s) {
    if (o->count || s->kind != MSA_OBJECT_TUPLE || s->count != 5 || s->items[1]->kind != MSA_OBJECT_TUPLE || s->items[1]->count > 32 ||
        s->items[4]->kind != MSA_OBJECT_BYTES || (s->items[3]->kind != MSA_OBJECT_BOOL && s->items[3]->kind != MSA_OBJECT_INT))
        return malformed(), -1;
    uint64_t bytes = item_size(s->items[2]);
    if (!bytes) return malformed(), -1;
    for (size_t i = 0; i < s->items[1]->count; i++) {
        const msa_object *n = s->items[1]->items[i];
        if (n->kind != MSA_OBJECT_INT || n->integer < 0 || __builtin_mul_overflow(bytes, (uint64_t)n->integer, &bytes)) return malformed(), -1;
    }
    if (bytes != s->items[4]->length) return malformed(), -1;
    if (msa_pickle_charge(d, bytes) != 0) return -1;
    msa_object *const parts[] = {s->items[2], s->items[1], s->items[4], s->items[3]};
    for (int i = 0; i < 4; i++)
        if (msa_object_append(o, parts[i]) != 0) return -1;
    return 0;
}

int msa_pickle_numpy_build(msa_document *d, msa_object *o, msa_object *state) {
    return o->kind == MSA_OBJECT_NUMPY_DTYPE ? build_dtype(o, state) : build_array(d, o, state);
}
