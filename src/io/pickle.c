/* The pickle writer, protocol 2: what PyTorch's own load(), its safe mode too, understands.
 *
 * Objects that are referred to more than once go through the memo, so sharing survives; the names of functions and types are
 * remembered too. It recurses, after the document has been checked for cycles and depth. */
#include "io/pickle.h"

#include <stdio.h>

typedef struct {
    msa_bytes *to;
    const msa_document *document;
    msa_storage_list *storages;
    bool legacy;
    uint32_t *uses;
    uint32_t *places; /* of objects in the memo, plus one */
    uint32_t memo_count;
    struct {
        char text[80];
        uint32_t place;
    } names[48];
    int name_count;
} writer;

static int put(writer *w, const void *data, size_t n) { return msa_bytes_add(w->to, data, n); }
static int put_op(writer *w, uint8_t op) { return put(w, &op, 1); }

static int put_number(writer *w, uint8_t op, int width, uint64_t value) {
    uint8_t raw[9] = {op};
    for (int i = 0; i < width; i++) raw[1 + i] = (uint8_t)(value >> 8 * i);
    return put(w, raw, 1 + (size_t)width);
}

static int put_memo(writer *w, uint32_t place) {
    return place < 256 ? put_number(w, 'q', 1, place) : put_number(w, 'r', 4, place);
}
static int get_memo(writer *w, uint32_t place) {
    return place < 256 ? put_number(w, 'h', 1, place) : put_number(w, 'j', 4, place);
}

static int put_int(writer *w, int64_t v) {
    if (v >= 0 && v < 256) return put_number(w, 'K', 1, (uint64_t)v);
    if (v >= 0 && v < 65536) return put_number(w, 'M', 2, (uint64_t)v);
    if (v >= INT32_MIN && v <= INT32_MAX) return put_number(w, 'J', 4, (uint64_t)v);
    uint8_t raw[10] = {0x8a, 8};
    for (int i = 0; i < 8; i++) raw[2 + i] = (uint8_t)((uint64_t)v >> 8 * i);
    return put(w, raw, sizeof raw);
}

static int put_float(writer *w, double v) {
    uint64_t bits;
    uint8_t raw[9] = {'G'};
    memcpy(&bits, &v, sizeof bits);
    for (int i = 0; i < 8; i++) raw[1 + i] = (uint8_t)(bits >> (56 - 8 * i));
    return put(w, raw, sizeof raw);
}

static int put_text(writer *w, const char *text, size_t n) {
    if (n > UINT32_MAX) return msa_fail(MSA_VALUE_ERROR, "a string of %zu bytes is too long for a pickle of protocol 2", n);
    return put_number(w, 'X', 4, n) != 0 ? -1 : put(w, text, n);
}
static int put_string(writer *w, const char *text) { return put_text(w, text, strlen(text)); }

/* "module\nname". */
static int put_name(writer *w, const char *text) {
    for (int i = 0; i < w->name_count; i++)
        if (strcmp(w->names[i].text, text) == 0) return get_memo(w, w->names[i].place);
    if (put_op(w, 'c') != 0 || put(w, text, strlen(text)) != 0 || put_op(w, '\n') != 0) return -1;
    if (w->name_count == sizeof w->names / sizeof *w->names || strlen(text) >= sizeof w->names->text) return 0;
    strcpy(w->names[w->name_count].text, text);
    w->names[w->name_count++].place = w->memo_count;
    return put_memo(w, w->memo_count++);
}

/* Bytes as the call that makes them of Latin-1 text: protocol 2 has no bytes of its own. */
static int put_bytes(writer *w, const char *name, const msa_object *o) {
    msa_auto_free char *text = msa_malloc(2 * o->length);
    size_t made = 0;
    if (!text || put_name(w, name) != 0) return -1;
    for (size_t i = 0; i < o->length; i++) {
        uint8_t c = (uint8_t)o->text[i];
        if (c >= 0x80) text[made++] = (char)(0xC0 | c >> 6);
        text[made++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3F));
    }
    return put_text(w, text, made) != 0 || put_string(w, "latin1") != 0 ? -1 : put(w, "\x86R", 2);
}

static int put_big_int(writer *w, const msa_object *o) {
    int status = o->length < 256 ? put_number(w, 0x8a, 1, o->length) : put_number(w, 0x8b, 4, o->length);
    return status != 0 ? -1 : put(w, o->text, o->length);
}

static int put_object(writer *w, const msa_object *o);

static int put_items(writer *w, msa_object *const *items, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (put_object(w, items[i]) != 0) return -1;
    return 0;
}

/* Items between a mark and the opcode that takes them, in batches as Python's pickler does. */
static int put_batches(writer *w, const msa_object *o, uint8_t op) {
    enum { BATCH = 2000 };
    for (size_t i = 0; i < o->count; i += BATCH)
        if (put_op(w, '(') != 0 || put_items(w, o->items + i, o->count - i < BATCH ? o->count - i : BATCH) != 0 || put_op(w, op) != 0) return -1;
    return 0;
}

static int put_tuple(writer *w, msa_object *const *items, size_t n) {
    if (n == 0) return put_op(w, ')');
    if (n > 3 && put_op(w, '(') != 0) return -1;
    return put_items(w, items, n) != 0 ? -1 : put_op(w, n > 3 ? 't' : (uint8_t)(0x84 + n));
}

/* The call of a type with the list of its items: sets. */
static int put_set(writer *w, const char *name, const msa_object *o) {
    if (put_name(w, name) != 0 || put_op(w, ']') != 0 || put_batches(w, o, 'e') != 0) return -1;
    return put(w, "\x85R", 2);
}

static int put_call(writer *w, const char *name, const msa_object *o) {
    return put_name(w, name) != 0 || put_tuple(w, o->items, o->count) != 0 ? -1 : put_op(w, 'R');
}

/* ('storage', type, key, location, numel), and None for the view in the format before zip. */
static int put_storage(writer *w, msa_storage *storage, msa_dtype dtype) {
    char name[64], key[32];
    size_t position;
    if (msa_storage_list_find(w->storages, storage, dtype, &position) != 0) return -1;
    snprintf(name, sizeof name, "torch\n%s", msa_storage_type_name(dtype));
    snprintf(key, sizeof key, "%zu", position);
    int64_t numel = (int64_t)(storage->bytes / msa_dtype_size(dtype));
    if (put_op(w, '(') != 0 || put_string(w, "storage") != 0 || put_name(w, name) != 0 || put_string(w, key) != 0 ||
        put_string(w, "cpu") != 0 || put_int(w, numel) != 0)
        return -1;
    return put(w, "NtQ" + !w->legacy, w->legacy ? 3 : 2);
}

static int put_ints(writer *w, int n, const int64_t *values) {
    if (n == 0) return put_op(w, ')');
    if (n > 3 && put_op(w, '(') != 0) return -1;
    for (int i = 0; i < n; i++)
        if (put_int(w, values[i]) != 0) return -1;
    return put_op(w, n > 3 ? 't' : (uint8_t)(0x84 + n));
}

static int put_empty_hooks(writer *w) { return put_name(w, "collections\nOrderedDict") != 0 ? -1 : put(w, ")R", 2); }

static int put_tensor(writer *w, const msa_object *o) {
    const msa_tensor *t = o->tensor;
    if (t->layout) return msa_refuse_sparse("saving of a document");
    if (msa_storage_make_plain(t->storage) != 0) return -1;
    bool attributes = o->attributes && o->attributes->count;
    if (attributes) {
        if (put_name(w, "torch._tensor\n_rebuild_from_type_v2") != 0 || put_op(w, '(') != 0 ||
            put_name(w, o->detail ? "torch._utils\n_rebuild_parameter" : "torch._utils\n_rebuild_tensor_v2") != 0 ||
            put_name(w, o->detail ? "torch.nn.parameter\nParameter" : "torch\nTensor") != 0)
            return -1;
    } else if (o->detail && put_name(w, "torch._utils\n_rebuild_parameter") != 0) {
        return -1;
    }
    if ((o->detail || !attributes) && put_name(w, "torch._utils\n_rebuild_tensor_v2") != 0) return -1;
    if (put_op(w, '(') != 0 || put_storage(w, t->storage, (msa_dtype)t->dtype) != 0 || put_int(w, t->offset) != 0 ||
        put_ints(w, t->ndim, t->sizes) != 0 || put_ints(w, t->ndim, t->strides) != 0 ||
        put_op(w, t->requires_grad && !o->detail ? 0x88 : 0x89) != 0 || put_empty_hooks(w) != 0 || put_op(w, 't') != 0)
        return -1;
    /* The tuple just written is the argument of _rebuild_tensor_v2; a parameter wraps its result. */
    if ((o->detail || !attributes) && put_op(w, 'R') != 0) return -1;
    if (o->detail && (put_op(w, t->requires_grad ? 0x88 : 0x89) != 0 || put_empty_hooks(w) != 0 || put_op(w, 0x87) != 0)) return -1;
    if (o->detail && !attributes && put_op(w, 'R') != 0) return -1;
    return attributes ? put_object(w, o->attributes) != 0 ? -1 : put(w, "tR", 2) : 0;
}

static int put_numpy_dtype(writer *w, const msa_object *o) {
    char order[2] = {o->text[0], 0};
    if (put_name(w, "numpy\ndtype") != 0 || put_string(w, o->text + 1) != 0 || put(w, "\x89\x88\x87R(K\x03", 7) != 0 ||
        put_string(w, order) != 0)
        return -1;
    return put(w, "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb", 17);
}

static int put_numpy_array(writer *w, const msa_object *o) {
    if (o->count != 4) return msa_fail(MSA_PICKLE_ERROR, "an unfinished numpy array");
    if (put_name(w, "numpy.core.multiarray\n_reconstruct") != 0 || put_name(w, "numpy\nndarray") != 0 || put(w, "K\x00\x85", 3) != 0 ||
        put_name(w, "_codecs\nencode") != 0 || put_string(w, "b") != 0 || put_string(w, "latin1") != 0 || put(w, "\x86R\x87R(K\x01", 7) != 0)
        return -1;
    if (put_object(w, o->items[1]) != 0 || put_object(w, o->items[0]) != 0 || put_object(w, o->items[3]) != 0 || put_object(w, o->items[2]) != 0)
        return -1;
    return put(w, "tb", 2);
}

static int put_factory(writer *w, const msa_object *factory) {
    if (!factory) return put_op(w, 'N');
    switch (factory->integer) {
    case MSA_GLOBAL_LIST: return put_name(w, "__builtin__\nlist");
    case MSA_GLOBAL_DICT: return put_name(w, "__builtin__\ndict");
    case MSA_GLOBAL_SET: return put_name(w, "__builtin__\nset");
    case MSA_GLOBAL_INT: return put_name(w, "__builtin__\nint");
    case MSA_GLOBAL_FLOAT: return put_name(w, "__builtin__\nfloat");
    default: return put_name(w, "__builtin__\nunicode");
    }
}

/* All but the pairs of a dictionary, and none of the memo's business. */
static int put_value(writer *w, const msa_object *o) {
    char name[64];
    switch ((msa_object_kind)o->kind) {
    case MSA_OBJECT_NONE: return put_op(w, 'N');
    case MSA_OBJECT_BOOL: return put_op(w, o->integer ? 0x88 : 0x89);
    case MSA_OBJECT_INT: return put_int(w, o->integer);
    case MSA_OBJECT_BIG_INT: return put_big_int(w, o);
    case MSA_OBJECT_FLOAT: return put_float(w, o->real[0]);
    case MSA_OBJECT_COMPLEX:
        if (put_name(w, "__builtin__\ncomplex") != 0 || put_float(w, o->real[0]) != 0 || put_float(w, o->real[1]) != 0) return -1;
        return put(w, "\x86R", 2);
    case MSA_OBJECT_STR: return put_text(w, o->text, o->length);
    case MSA_OBJECT_BYTES: return put_bytes(w, "_codecs\nencode", o);
    case MSA_OBJECT_BYTE_ARRAY: return put_bytes(w, "__builtin__\nbytearray", o);
    case MSA_OBJECT_LIST: return put_op(w, ']');
    case MSA_OBJECT_DICT: return put_op(w, '}');
    case MSA_OBJECT_TUPLE: return put_tuple(w, o->items, o->count);
    case MSA_OBJECT_ORDERED_DICT: return put_empty_hooks(w);
    case MSA_OBJECT_COUNTER:
        if (put_name(w, "collections\nCounter") != 0 || put_op(w, '}') != 0 || put_batches(w, o, 'u') != 0) return -1;
        return put(w, "\x85R", 2);
    case MSA_OBJECT_DEFAULT_DICT:
        return put_name(w, "collections\ndefaultdict") != 0 || put_factory(w, o->attributes) != 0 ? -1 : put(w, "\x85R", 2);
    case MSA_OBJECT_SET: return put_set(w, "__builtin__\nset", o);
    case MSA_OBJECT_FROZEN_SET: return put_set(w, "__builtin__\nfrozenset", o);
    case MSA_OBJECT_SLICE: return put_call(w, "__builtin__\nslice", o);
    case MSA_OBJECT_RANGE: return put_call(w, "__builtin__\nxrange", o);
    case MSA_OBJECT_SIZE:
        return put_name(w, "torch\nSize") != 0 || put_tuple(w, o->items, o->count) != 0 ? -1 : put(w, "\x85R", 2);
    case MSA_OBJECT_DEVICE: return put_name(w, "torch\ndevice") != 0 || put_text(w, o->text, o->length) != 0 ? -1 : put(w, "\x85R", 2);
    case MSA_OBJECT_LAYOUT:
        if (put_name(w, "torch.serialization\n_get_layout") != 0 || put_string(w, msa_object_says(o, "sparse_coo") ? "torch.sparse_coo" : msa_object_says(o, "sparse_csr") ? "torch.sparse_csr" : "torch.strided") != 0)
            return -1;
        return put(w, "\x85R", 2);
    case MSA_OBJECT_DTYPE:
        snprintf(name, sizeof name, "torch\n%s", msa_dtype_name((msa_dtype)o->detail));
        return put_name(w, name);
    case MSA_OBJECT_TENSOR: return put_tensor(w, o);
    case MSA_OBJECT_STORAGE:
        if (o->offset || msa_storage_make_plain(o->storage) != 0) return msa_fail(MSA_NOT_IMPLEMENTED, "views of storages cannot be saved");
        return put_storage(w, o->storage, (msa_dtype)o->detail);
    case MSA_OBJECT_NUMPY_DTYPE: return put_numpy_dtype(w, o);
    case MSA_OBJECT_NUMPY_SCALAR: return put_call(w, "numpy.core.multiarray\nscalar", o);
    case MSA_OBJECT_NUMPY_ARRAY: return put_numpy_array(w, o);
    default: return msa_fail(MSA_PICKLE_ERROR, "an object of this kind cannot be saved by itself");
    }
}

static int put_object(writer *w, const msa_object *o) {
    if (w->places[o->index]) return get_memo(w, w->places[o->index] - 1);
    if (put_value(w, o) != 0) return -1;
    bool shared = w->uses[o->index] > 1 && o->kind > MSA_OBJECT_FLOAT && o->kind != MSA_OBJECT_DTYPE;
    if (shared) {
        if (put_memo(w, w->memo_count) != 0) return -1;
        w->places[o->index] = ++w->memo_count;
    }
    if (o->kind == MSA_OBJECT_LIST) return put_batches(w, o, 'e');
    if (o->kind == MSA_OBJECT_COUNTER || !msa_object_is_dict(o)) return 0;
    if (put_batches(w, o, 'u') != 0) return -1;
    if (o->kind != MSA_OBJECT_ORDERED_DICT || !o->attributes || !o->attributes->count) return 0;
    return put_object(w, o->attributes) != 0 ? -1 : put_op(w, 'b');
}

int msa_pickle_write(msa_bytes *to, const msa_document *d, msa_storage_list *storages, bool legacy) {
    msa_auto_free uint32_t *uses = msa_calloc(d->count, sizeof *uses);
    msa_auto_free uint32_t *places = uses ? msa_calloc(d->count, sizeof *places) : NULL;
    msa_auto_free writer *w = places ? msa_calloc(1, sizeof *w) : NULL;
    if (!w || msa_document_check(d, uses) != 0) return -1;
    w->to = to;
    w->document = d;
    w->storages = storages;
    w->legacy = legacy;
    w->uses = uses;
    w->places = places;
    if (put(w, "\x80\x02", 2) != 0 || put_object(w, d->root) != 0) return -1;
    return put_op(w, '.');
}

static uint32_t *slot_of(const msa_storage_list *l, const msa_storage *s) {
    uint64_t h = (uint64_t)(uintptr_t)s * 0x9E3779B97F4A7C15u;
    for (size_t i = (h >> 32) & (l->slots - 1);; i = (i + 1) & (l->slots - 1))
        if (!l->table[i] || l->storages[l->table[i] - 1] == s) return &l->table[i];
}

static int grow(msa_storage_list *l) {
    size_t capacity = l->capacity ? 2 * l->capacity : 32;
    msa_storage **storages = realloc(l->storages, sizeof(*storages) * capacity);
    if (storages) l->storages = storages;
    msa_dtype *dtypes = realloc(l->dtypes, sizeof(*dtypes) * capacity);
    if (dtypes) l->dtypes = dtypes;
    uint32_t *table = msa_calloc(2 * capacity, sizeof *table);
    if (!storages || !dtypes || !table) {
        free(table);
        return msa_fail(MSA_MEMORY_ERROR, "cannot allocate the list of storages");
    }
    free(l->table);
    l->table = table;
    l->slots = 2 * capacity;
    l->capacity = capacity;
    for (size_t i = 0; i < l->count; i++) *slot_of(l, l->storages[i]) = (uint32_t)i + 1;
    return 0;
}

int msa_storage_list_find(msa_storage_list *l, msa_storage *s, msa_dtype dtype, size_t *position) {
    if (l->count == l->capacity && grow(l) != 0) return -1;
    uint32_t *slot = slot_of(l, s);
    if (!*slot) {
        l->storages[l->count] = msa_storage_retain(s);
        l->dtypes[l->count] = dtype;
        *slot = (uint32_t)++l->count;
    }
    *position = *slot - 1;
    if (l->dtypes[*position] == dtype) return 0;
    return msa_fail(MSA_RUNTIME_ERROR, "Cannot save multiple tensors or storages that view the same data as different types");
}

void msa_storage_list_free(msa_storage_list *l) {
    for (size_t i = 0; i < l->count; i++) msa_storage_release(l->storages[i]);
    free(l->storages);
    free(l->dtypes);
    free(l->table);
    *l = (msa_storage_list){0};
}
