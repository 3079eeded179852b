/* Documents: arenas of objects. Nothing here walks a tree by recursion, because files decide how deep it is. */
#include "io/object.h"

enum { OBJECT_CHUNK = 256, OBJECT_LIMIT = 1 << 25 };

msa_document *msa_document_new(void) { return msa_calloc(1, sizeof(msa_document)); }

static void clear(msa_object *o) {
    if (msa_object_is_text(o)) free(o->text);
    else if (msa_object_is_container(o)) free(o->items);
    else if (o->kind == MSA_OBJECT_TENSOR) msa_tensor_release(o->tensor);
    else if (o->kind == MSA_OBJECT_STORAGE && o->storage) msa_storage_release(o->storage);
}

void msa_document_free(msa_document *d) {
    if (!d) return;
    for (uint32_t i = 0; i < d->count; i++) clear(&d->chunks[i / OBJECT_CHUNK][i % OBJECT_CHUNK]);
    for (uint32_t i = 0; i < d->count; i += OBJECT_CHUNK) free(d->chunks[i / OBJECT_CHUNK]);
    free(d->chunks);
    for (size_t i = 0; i < d->stored_count; i++) {
        msa_storage_release(d->stored[i].storage);
        free(d->stored[i].key);
        free(d->stored[i].location);
    }
    free(d->stored);
    free(d->stored_table);
    free(d);
}

msa_object *msa_document_root(const msa_document *d) { return d->root; }
void msa_document_set_root(msa_document *d, msa_object *root) { d->root = root; }

msa_object *msa_object_new(msa_document *d, msa_object_kind kind) {
    if (d->count >= OBJECT_LIMIT) return msa_fail_null(MSA_PICKLE_ERROR, "the pickle holds more than %d objects", OBJECT_LIMIT);
    uint32_t chunk = d->count / OBJECT_CHUNK, at = d->count % OBJECT_CHUNK;
    if (at == 0) {
        if ((chunk & (chunk - 1)) == 0) { /* room for twice as many */
            msa_object **more = realloc(d->chunks, sizeof(*more) * (chunk ? 2 * (size_t)chunk : 1));
            if (!more) return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate objects");
            d->chunks = more;
        }
        d->chunks[chunk] = msa_malloc(sizeof(msa_object) * OBJECT_CHUNK);
        if (!d->chunks[chunk]) return NULL;
    }
    msa_object *o = &d->chunks[chunk][at];
    memset(o, 0, sizeof *o);
    o->kind = (uint8_t)kind;
    o->index = d->count++;
    o->weight = 1;
    return o;
}

msa_object *msa_object_new_none(msa_document *d) {
    if (!d->none) d->none = msa_object_new(d, MSA_OBJECT_NONE);
    return d->none;
}

msa_object *msa_object_new_bool(msa_document *d, bool value) {
    if (!d->truth[value]) {
        d->truth[value] = msa_object_new(d, MSA_OBJECT_BOOL);
        if (d->truth[value]) d->truth[value]->integer = value;
    }
    return d->truth[value];
}

msa_object *msa_object_new_int(msa_document *d, int64_t value) {
    msa_object *o = msa_object_new(d, MSA_OBJECT_INT);
    if (o) o->integer = value;
    return o;
}

msa_object *msa_object_new_float(msa_document *d, double value) {
    msa_object *o = msa_object_new(d, MSA_OBJECT_FLOAT);
    if (o) o->real[0] = value;
    return o;
}

msa_object *msa_object_new_complex(msa_document *d, double re, double im) {
    msa_object *o = msa_object_new(d, MSA_OBJECT_COMPLEX);
    if (o) o->real[0] = re, o->real[1] = im;
    return o;
}

msa_object *msa_object_new_text(msa_document *d, msa_object_kind kind, const char *text, size_t length) {
    char *copy = length < SIZE_MAX ? msa_malloc(length + 1) : NULL;
    if (!copy) return NULL;
    msa_object *o = msa_object_new(d, kind);
    if (!o) {
        free(copy);
        return NULL;
    }
    if (length) memcpy(copy, text, length);
    copy[length] = '\0';
    o->text = copy;
    o->length = length;
    return o;
}

msa_object *msa_object_new_str(msa_document *d, const char *text) {
    return msa_object_new_text(d, MSA_OBJECT_STR, text, strlen(text));
}

msa_object *msa_object_new_container(msa_document *d, msa_object_kind kind) { return msa_object_new(d, kind); }

/* A container with a copy of these items. */
msa_object *msa_object_new_view(msa_document *d, msa_object_kind kind, msa_object *const *items, size_t count) {
    msa_object *o = msa_object_new(d, kind);
    if (!o || !count) return o;
    msa_object **copy = msa_malloc(sizeof(*copy) * count);
    if (!copy) return NULL;
    memcpy(copy, items, sizeof(*copy) * count);
    o->items = copy;
    o->count = o->capacity = count;
    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(o->weight, items[i]->weight, &o->weight)) o->weight = UINT32_MAX;
    return o;
}

msa_object *msa_object_new_dtype(msa_document *d, msa_dtype dtype) {
    msa_object *o = msa_object_new(d, MSA_OBJECT_DTYPE);
    if (o) o->detail = (uint8_t)dtype;
    return o;
}

msa_object *msa_object_new_global(msa_document *d, msa_global code, int dtype) {
    msa_object *o = msa_object_new(d, MSA_OBJECT_GLOBAL);
    if (!o) return NULL;
    o->integer = code;
    o->untyped = dtype == MSA_NO_DTYPE;
    o->detail = (uint8_t)(dtype == MSA_NO_DTYPE ? MSA_UINT8 : dtype);
    return o;
}

msa_object *msa_object_new_tensor(msa_document *d, msa_tensor *tensor, bool parameter) {
    if (!tensor) return NULL;
    msa_object *o = msa_object_new(d, MSA_OBJECT_TENSOR);
    if (!o) return NULL;
    o->tensor = msa_tensor_retain(tensor);
    o->detail = parameter;
    return o;
}

msa_object *msa_object_new_storage(msa_document *d, msa_storage *storage, msa_dtype dtype, int64_t offset, int64_t numel) {
    if (!storage) return NULL;
    msa_object *o = msa_object_new(d, MSA_OBJECT_STORAGE);
    if (!o) return NULL;
    o->storage = msa_storage_retain(storage);
    o->detail = (uint8_t)dtype;
    o->offset = offset;
    o->numel = numel;
    return o;
}

static int push(msa_object *o, msa_object *const *items, size_t n) {
    if (o->count + n > o->capacity) {
        size_t capacity = o->capacity ? 2 * o->capacity : 4;
        if (capacity < o->count + n) capacity = o->count + n;
        msa_object **more = realloc(o->items, sizeof(*more) * capacity);
        if (!more) return msa_fail(MSA_MEMORY_ERROR, "cannot allocate %zu items", capacity);
        o->items = more;
        o->capacity = capacity;
    }
    for (size_t i = 0; i < n; i++) {
        o->items[o->count++] = items[i];
        if (__builtin_add_overflow(o->weight, items[i]->weight, &o->weight)) o->weight = UINT32_MAX;
    }
    return 0;
}

int msa_object_append(msa_object *o, msa_object *item) {
    if (!o || !item) return -1;
    if (!msa_object_is_container(o) || msa_object_is_dict(o)) return msa_fail(MSA_TYPE_ERROR, "append: the object holds no items");
    return push(o, &item, 1);
}

int msa_object_set(msa_object *o, msa_object *key, msa_object *value) {
    if (!o || !key || !value) return -1;
    if (!msa_object_is_dict(o)) return msa_fail(MSA_TYPE_ERROR, "set: the object is no dictionary");
    return push(o, (msa_object *[]){key, value}, 2);
}

int msa_object_set_named(msa_document *d, msa_object *o, const char *key, msa_object *value) {
    return value ? msa_object_set(o, msa_object_new_str(d, key), value) : -1;
}

int msa_object_set_attributes(msa_object *o, msa_object *dict) {
    if (!o || !dict) return -1;
    if (!msa_object_is_dict(dict) || (o->kind != MSA_OBJECT_ORDERED_DICT && o->kind != MSA_OBJECT_TENSOR))
        return msa_fail(MSA_TYPE_ERROR, "set_attributes: only tensors and ordered dictionaries have attributes");
    o->attributes = dict;
    return 0;
}

msa_object_kind msa_object_kind_of(const msa_object *o) { return (msa_object_kind)o->kind; }
int64_t msa_object_int(const msa_object *o) { return o->kind == MSA_OBJECT_INT || o->kind == MSA_OBJECT_BOOL ? o->integer : 0; }
double msa_object_float(const msa_object *o) {
    if (o->kind == MSA_OBJECT_FLOAT || o->kind == MSA_OBJECT_COMPLEX) return o->real[0];
    return (double)msa_object_int(o);
}
const char *msa_object_text(const msa_object *o, size_t *length) {
    bool is = msa_object_is_text(o);
    if (length) *length = is ? o->length : 0;
    return is ? o->text : NULL;
}
size_t msa_object_length(const msa_object *o) {
    return !msa_object_is_container(o) ? 0 : msa_object_is_dict(o) ? o->count / 2 : o->count;
}
msa_object *msa_object_at(const msa_object *o, size_t i) {
    if (i >= msa_object_length(o)) return NULL;
    return o->items[msa_object_is_dict(o) ? 2 * i + 1 : i];
}
msa_object *msa_object_key_at(const msa_object *o, size_t i) {
    return msa_object_is_dict(o) && i < o->count / 2 ? o->items[2 * i] : NULL;
}
msa_object *msa_object_get(const msa_object *o, const char *key) {
    for (size_t i = msa_object_length(o); msa_object_is_dict(o) && i-- > 0;)
        if (o->items[2 * i]->kind == MSA_OBJECT_STR && msa_object_says(o->items[2 * i], key)) return o->items[2 * i + 1];
    return NULL;
}
msa_tensor *msa_object_tensor(const msa_object *o) { return o->kind == MSA_OBJECT_TENSOR ? o->tensor : NULL; }
bool msa_object_is_parameter(const msa_object *o) { return o->kind == MSA_OBJECT_TENSOR && o->detail; }
msa_dtype msa_object_dtype(const msa_object *o) {
    return o->kind == MSA_OBJECT_DTYPE || o->kind == MSA_OBJECT_STORAGE ? (msa_dtype)o->detail : MSA_NO_DTYPE;
}
msa_object *msa_object_attributes(const msa_object *o) { return o->kind == MSA_OBJECT_DEFAULT_DICT ? NULL : o->attributes; }
msa_object *msa_object_factory(const msa_object *o) { return o->kind == MSA_OBJECT_DEFAULT_DICT ? o->attributes : NULL; }

bool msa_object_says(const msa_object *o, const char *text) {
    return msa_object_is_text(o) && o->length == strlen(text) && memcmp(o->text, text, o->length) == 0;
}

/* The walk keeps its own stack: an object, and the next of its children to look at. */
typedef struct {
    const msa_object *object;
    size_t next;
} step;

static const msa_object *child(const msa_object *o, size_t i) {
    size_t count = msa_object_is_container(o) ? o->count : 0;
    return i < count ? o->items[i] : i == count ? o->attributes : NULL;
}

int msa_document_check(const msa_document *d, uint32_t *uses) {
    enum { NEW, OPEN, DONE };
    if (!d->root) return msa_fail(MSA_VALUE_ERROR, "the document has no root");
    msa_auto_free uint8_t *state = msa_calloc(d->count, 1);
    /* The depth of what hangs below a finished object counts again at every place it is referred to. */
    msa_auto_free uint16_t *height = msa_calloc(d->count, sizeof *height);
    if (!state || !height) return -1;
    step stack[MSA_OBJECT_DEPTH + 1];
    int top = 0;
    stack[0] = (step){d->root, 0};
    state[d->root->index] = OPEN;
    if (uses) uses[d->root->index]++;
    while (top >= 0) {
        step *s = &stack[top];
        const msa_object *next = child(s->object, s->next);
        if (!next) { /* no child here: the last place, or there are no attributes */
            state[s->object->index] = DONE;
            uint16_t h = height[s->object->index];
            if (--top >= 0 && height[stack[top].object->index] < h + 1) height[stack[top].object->index] = (uint16_t)(h + 1);
            continue;
        }
        s->next++;
        if (uses) uses[next->index]++;
        if (state[next->index] == OPEN) return msa_fail(MSA_PICKLE_ERROR, "an object contains itself, which is not supported");
        if (state[next->index] == DONE) {
            uint16_t h = height[next->index];
            if (height[s->object->index] < h + 1) height[s->object->index] = (uint16_t)(h + 1);
            if (top + h + 1 > MSA_OBJECT_DEPTH) goto deep;
            continue;
        }
        if (top == MSA_OBJECT_DEPTH) goto deep;
        state[next->index] = OPEN;
        stack[++top] = (step){next, 0};
    }
    return 0;
deep:
    return msa_fail(MSA_PICKLE_ERROR, "objects are nested deeper than %d levels", MSA_OBJECT_DEPTH);
}

static uint64_t hash(const char *key, size_t length) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) h = (h ^ (uint8_t)key[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static uint32_t *slot_of(const msa_document *d, const char *key, size_t length) {
    for (size_t i = hash(key, length) & (d->stored_slots - 1);; i = (i + 1) & (d->stored_slots - 1)) {
        uint32_t *slot = &d->stored_table[i];
        if (!*slot) return slot;
        const char *other = d->stored[*slot - 1].key;
        if (strlen(other) == length && memcmp(other, key, length) == 0) return slot;
    }
}

msa_stored *msa_document_find_stored(const msa_document *d, const char *key, size_t length) {
    if (!d->stored_slots) return NULL;
    uint32_t *slot = slot_of(d, key, length);
    return *slot ? &d->stored[*slot - 1] : NULL;
}

msa_stored *msa_document_add_stored(msa_document *d, msa_storage *storage, msa_dtype dtype, const char *key, size_t length,
                                    const char *location) {
    if (!storage) return NULL;
    char *key_copy = strndup(key, length), *location_copy = strdup(location);
    if (!key_copy || !location_copy) goto failed;
    if (d->stored_count == d->stored_capacity) {
        size_t capacity = d->stored_capacity ? 2 * d->stored_capacity : 16;
        msa_stored *more = realloc(d->stored, sizeof(*more) * capacity);
        if (more) d->stored = more;
        uint32_t *table = more ? calloc(2 * capacity, sizeof *table) : NULL;
        if (!table) goto failed;
        free(d->stored_table);
        d->stored_table = table;
        d->stored_slots = 2 * capacity;
        d->stored_capacity = capacity;
        for (size_t i = 0; i < d->stored_count; i++)
            *slot_of(d, d->stored[i].key, strlen(d->stored[i].key)) = (uint32_t)i + 1;
    }
    d->stored[d->stored_count] = (msa_stored){storage, dtype, key_copy, location_copy};
    *slot_of(d, key_copy, strlen(key_copy)) = (uint32_t)++d->stored_count;
    return &d->stored[d->stored_count - 1];
failed:
    free(key_copy);
    free(location_copy);
    msa_storage_release(storage);
    return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate the list of storages");
}
