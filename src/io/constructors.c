/* What a pickle may name, and what calling it gives. This list is the whole of it: a name that is not here is refused
 * where it appears, before anything of it is looked at. */
#include "autograd/internal.h"
#include "io/pickle.h"
#include "io/pth.h"

#include <stdio.h>

static const struct {
    const char *module, *name;
    msa_global code;
} globals[] = {
    {"torch._utils", "_rebuild_tensor", MSA_GLOBAL_REBUILD_TENSOR},
    {"torch._utils", "_rebuild_tensor_v2", MSA_GLOBAL_REBUILD_TENSOR_V2},
    {"torch._utils", "_rebuild_sparse_tensor", MSA_GLOBAL_REBUILD_SPARSE},
    {"torch._utils", "_rebuild_sparse_csr_tensor", MSA_GLOBAL_REBUILD_SPARSE},
    {"torch._utils", "_rebuild_parameter", MSA_GLOBAL_REBUILD_PARAMETER},
    {"torch._utils", "_rebuild_parameter_with_state", MSA_GLOBAL_REBUILD_PARAMETER_STATE},
    {"torch._tensor", "_rebuild_from_type_v2", MSA_GLOBAL_REBUILD_FROM_TYPE},
    {"torch.storage", "_load_from_bytes", MSA_GLOBAL_LOAD_FROM_BYTES},
    {"torch", "Tensor", MSA_GLOBAL_TENSOR_TYPE},
    {"torch._tensor", "Tensor", MSA_GLOBAL_TENSOR_TYPE},
    {"torch.nn.parameter", "Parameter", MSA_GLOBAL_PARAMETER_TYPE},
    {"torch", "Size", MSA_GLOBAL_SIZE},
    {"torch", "device", MSA_GLOBAL_DEVICE},
    {"torch.serialization", "_get_layout", MSA_GLOBAL_GET_LAYOUT},
    {"collections", "OrderedDict", MSA_GLOBAL_ORDERED_DICT},
    {"collections", "defaultdict", MSA_GLOBAL_DEFAULT_DICT},
    {"collections", "Counter", MSA_GLOBAL_COUNTER},
    {"builtins", "set", MSA_GLOBAL_SET},
    {"builtins", "frozenset", MSA_GLOBAL_FROZEN_SET},
    {"builtins", "complex", MSA_GLOBAL_COMPLEX},
    {"builtins", "bytearray", MSA_GLOBAL_BYTE_ARRAY},
    {"builtins", "bytes", MSA_GLOBAL_BYTES},
    {"builtins", "slice", MSA_GLOBAL_SLICE},
    {"builtins", "range", MSA_GLOBAL_RANGE},
    {"builtins", "xrange", MSA_GLOBAL_RANGE},
    {"builtins", "list", MSA_GLOBAL_LIST},
    {"builtins", "dict", MSA_GLOBAL_DICT},
    {"builtins", "int", MSA_GLOBAL_INT},
    {"builtins", "float", MSA_GLOBAL_FLOAT},
    {"builtins", "str", MSA_GLOBAL_STR},
    {"_codecs", "encode", MSA_GLOBAL_ENCODE},
    {"numpy.core.multiarray", "scalar", MSA_GLOBAL_NUMPY_SCALAR},
    {"numpy.core.multiarray", "_reconstruct", MSA_GLOBAL_NUMPY_RECONSTRUCT},
    {"numpy", "ndarray", MSA_GLOBAL_NUMPY_ARRAY},
    {"numpy", "dtype", MSA_GLOBAL_NUMPY_DTYPE},
};

static const char *const storage_types[MSA_DTYPES] = {
    [MSA_BOOL] = "BoolStorage",       [MSA_UINT8] = "ByteStorage",          [MSA_INT8] = "CharStorage",
    [MSA_INT16] = "ShortStorage",     [MSA_INT32] = "IntStorage",           [MSA_INT64] = "LongStorage",
    [MSA_FLOAT16] = "HalfStorage",    [MSA_BFLOAT16] = "BFloat16Storage",   [MSA_FLOAT32] = "FloatStorage",
    [MSA_FLOAT64] = "DoubleStorage",  [MSA_COMPLEX64] = "ComplexFloatStorage",
    [MSA_COMPLEX128] = "ComplexDoubleStorage",
};
const char *msa_storage_type_name(msa_dtype dtype) { return storage_types[dtype]; }

static bool same(const char *a, size_t length, const char *b) { return strlen(b) == length && memcmp(a, b, length) == 0; }

int msa_pickle_charge(msa_document *d, size_t amount) {
    if (amount > d->budget) return msa_fail(MSA_PICKLE_ERROR, "the pickle asks for more memory than its size accounts for");
    d->budget -= amount;
    return 0;
}

msa_object *msa_pickle_global(msa_document *d, const char *module, size_t module_length, const char *name, size_t name_length) {
    const char *m = module;
    size_t n = module_length;
    /* Our own names for PyTorch's things: msadapter.pytorch.nn.parameter is torch.nn.parameter. */
    static const char own[] = "msadapter.py";
    if (n >= sizeof own + 4 && memcmp(m, "msadapter.pytorch", sizeof own + 4) == 0 && (n == sizeof own + 4 || m[sizeof own + 4] == '.'))
        m += sizeof own - 1, n -= sizeof own - 1;
    if (same(m, n, "__builtin__")) m = "builtins", n = 8;
    if (same(m, n, "numpy._core.multiarray")) m = "numpy.core.multiarray", n = 21;
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (same(m, n, globals[i].module) && same(name, name_length, globals[i].name))
            return msa_object_new_global(d, globals[i].code, MSA_BOOL);
    bool torch = same(m, n, "torch"), storage = same(m, n, "torch.storage");
    for (int i = 0; torch && i < MSA_DTYPES; i++) {
        if (same(name, name_length, msa_dtype_name((msa_dtype)i))) return msa_object_new_dtype(d, (msa_dtype)i);
        if (same(name, name_length, storage_types[i])) return msa_object_new_global(d, MSA_GLOBAL_STORAGE_TYPE, i);
    }
    if ((torch || storage) && (same(name, name_length, "UntypedStorage") || same(name, name_length, "_UntypedStorage")))
        return msa_object_new_global(d, MSA_GLOBAL_STORAGE_TYPE, MSA_NO_DTYPE);
    return msa_fail_null(MSA_PICKLE_ERROR,
                         "%.*s.%.*s is not among the types and functions that a file may name, so the file was not loaded. "
                         "Where you trust its source, load(..., weights_only=False) imports what it names, which can run any code",
                         module_length > 200 ? 200 : (int)module_length, module, name_length > 200 ? 200 : (int)name_length, name);
}

static msa_object *malformed(const char *function) {
    return msa_fail_null(MSA_PICKLE_ERROR, "malformed arguments of %s in the pickle", function);
}

static bool is_int(const msa_object *o) { return o->kind == MSA_OBJECT_INT; }
static bool is_flag(const msa_object *o) { return o->kind == MSA_OBJECT_BOOL || o->kind == MSA_OBJECT_INT; }

/* Sizes or strides out of a tuple of integers. */
static int ints(const msa_object *o, int64_t *values) {
    if ((o->kind != MSA_OBJECT_TUPLE && o->kind != MSA_OBJECT_SIZE && o->kind != MSA_OBJECT_LIST) || o->count > MSA_MAX_DIMS) return -1;
    for (size_t i = 0; i < o->count; i++) {
        if (!is_int(o->items[i])) return -1;
        values[i] = o->items[i]->integer;
    }
    return (int)o->count;
}

/* (storage, offset, sizes, strides[, requires_grad, backward_hooks[, metadata]]). */
static msa_object *rebuild_tensor(msa_document *d, const msa_object *a) {
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    if ((a->count != 4 && a->count != 6 && a->count != 7) || a->items[0]->kind != MSA_OBJECT_STORAGE || !is_int(a->items[1]))
        return malformed("_rebuild_tensor_v2");
    int n = ints(a->items[2], sizes);
    if (n < 0 || ints(a->items[3], strides) != n || (a->count >= 6 && !is_flag(a->items[4]))) return malformed("_rebuild_tensor_v2");
    const msa_object *s = a->items[0];
    int64_t zero = 0, offset;
    if (a->items[1]->integer < 0 || __builtin_add_overflow(s->offset, a->items[1]->integer, &offset)) return malformed("_rebuild_tensor_v2");
    msa_auto msa_tensor *empty = msa_tensor_over(s->storage, (msa_dtype)s->detail, 0, 1, &zero, &zero);
    msa_auto msa_tensor *t = empty ? msa_tensor_view_strided(empty, (msa_ints){sizes, n}, (msa_ints){strides, n}, offset) : NULL;
    if (!t || (a->count >= 6 && a->items[4]->integer && msa_tensor_set_requires_grad(t, true) != 0)) return NULL;
    return msa_object_new_tensor(d, t, false);
}

/* (layout, (indices, values, size)), for CSR (layout, (crow_indices, col_indices, values, size)): put together when everything has been read. */
static msa_object *rebuild_sparse(msa_document *d, const msa_object *a) {
    if (a->count != 2 || a->items[0]->kind != MSA_OBJECT_LAYOUT || a->items[1]->kind != MSA_OBJECT_TUPLE) return malformed("_rebuild_sparse_tensor");
    const msa_object *data = a->items[1];
    if (data->count != (msa_object_says(a->items[0], "sparse_csr") ? 4 : 3)) return malformed("_rebuild_sparse_tensor");
    for (size_t i = 0; i + 1 < data->count; i++)
        if (data->items[i]->kind != MSA_OBJECT_TENSOR) return malformed("_rebuild_sparse_tensor");
    if (data->items[data->count - 1]->kind != MSA_OBJECT_SIZE && data->items[data->count - 1]->kind != MSA_OBJECT_TUPLE) return malformed("_rebuild_sparse_tensor");
    return msa_object_new_view(d, MSA_OBJECT_SPARSE, a->items, 2);
}

/* (data, requires_grad, backward_hooks[, state]). */
static msa_object *rebuild_parameter(msa_document *d, const msa_object *a, bool with_state) {
    if (a->count != (with_state ? 4 : 3) || a->items[0]->kind != MSA_OBJECT_TENSOR || !is_flag(a->items[1])) return malformed("_rebuild_parameter");
    msa_auto msa_tensor *t = msa_tensor_alias(a->items[0]->tensor);
    if (!t || (a->items[1]->integer && msa_tensor_set_requires_grad(t, true) != 0)) return NULL;
    msa_object *o = msa_object_new_tensor(d, t, true);
    if (o && with_state && msa_object_is_dict(a->items[3])) o->attributes = a->items[3];
    else if (o && with_state && a->items[3]->kind != MSA_OBJECT_NONE) return malformed("_rebuild_parameter_with_state");
    return o;
}

/* (function, type, arguments, state): a tensor with attributes. */
static msa_object *rebuild_from_type(msa_document *d, const msa_object *a, const msa_unpickle_options *options) {
    if (a->count != 4 || a->items[0]->kind != MSA_OBJECT_GLOBAL || a->items[1]->kind != MSA_OBJECT_GLOBAL ||
        a->items[2]->kind != MSA_OBJECT_TUPLE)
        return malformed("_rebuild_from_type_v2");
    int64_t function = a->items[0]->integer, type = a->items[1]->integer;
    bool parameter = type == MSA_GLOBAL_PARAMETER_TYPE;
    if ((function != MSA_GLOBAL_REBUILD_TENSOR_V2 && function != MSA_GLOBAL_REBUILD_PARAMETER) || (!parameter && type != MSA_GLOBAL_TENSOR_TYPE))
        return malformed("_rebuild_from_type_v2");
    msa_object *o = msa_pickle_call(d, a->items[0], a->items[2], options);
    if (!o) return NULL;
    o->detail = parameter;
    if (msa_object_is_dict(a->items[3])) o->attributes = a->items[3];
    else if (a->items[3]->kind != MSA_OBJECT_NONE) return malformed("_rebuild_from_type_v2");
    return o;
}

/* Calls without arguments, or with what to fill it with. */
static msa_object *collection(msa_document *d, msa_object_kind kind, const msa_object *a) {
    if (a->count == 0) return msa_object_new(d, kind);
    const msa_object *from = a->items[0];
    if (a->count != 1 || !msa_object_is_container(from) || from->kind > MSA_OBJECT_FROZEN_SET) return malformed("a collection");
    if (msa_pickle_charge(d, from->count) != 0) return NULL;
    if (kind == MSA_OBJECT_COUNTER || (kind == MSA_OBJECT_ORDERED_DICT && msa_object_is_dict(from)))
        return msa_object_is_dict(from) ? msa_object_new_view(d, kind, from->items, from->count) : malformed("Counter");
    if (msa_object_is_dict(from)) return malformed("a collection");
    if (kind != MSA_OBJECT_ORDERED_DICT) return msa_object_new_view(d, kind, from->items, from->count);
    msa_object *o = msa_object_new(d, kind); /* of pairs, as Python 2 wrote it */
    for (size_t i = 0; o && i < from->count; i++) {
        const msa_object *pair = from->items[i];
        if ((pair->kind != MSA_OBJECT_TUPLE && pair->kind != MSA_OBJECT_LIST) || pair->count != 2) return malformed("OrderedDict");
        if (msa_object_set(o, pair->items[0], pair->items[1]) != 0) return NULL;
    }
    return o;
}

static msa_object *default_dict(msa_document *d, msa_object *a) {
    if (a->count > 1) return malformed("defaultdict");
    msa_object *factory = a->count && a->items[0]->kind != MSA_OBJECT_NONE ? a->items[0] : NULL;
    if (factory) {
        if (factory->kind != MSA_OBJECT_GLOBAL) return malformed("defaultdict");
        switch (factory->integer) {
        case MSA_GLOBAL_LIST: case MSA_GLOBAL_DICT: case MSA_GLOBAL_SET: case MSA_GLOBAL_INT: case MSA_GLOBAL_FLOAT: case MSA_GLOBAL_STR: break;
        default: return malformed("defaultdict");
        }
    }
    msa_object *o = msa_object_new(d, MSA_OBJECT_DEFAULT_DICT);
    if (o) o->attributes = factory;
    return o;
}

/* Bytes of text whose characters are all below 256; protocol 2 writes bytes so. */
static msa_object *latin1_bytes(msa_document *d, msa_object_kind kind, const msa_object *text) {
    if (msa_pickle_charge(d, text->length) != 0) return NULL;
    msa_auto_free char *bytes = msa_malloc(text->length);
    if (!bytes) return NULL;
    size_t made = 0;
    for (size_t i = 0; i < text->length; i++) {
        uint8_t c = (uint8_t)text->text[i];
        if (c >= 0x80) {
            uint8_t next = i + 1 < text->length ? (uint8_t)text->text[++i] : 0;
            if ((c != 0xC2 && c != 0xC3) || (next & 0xC0) != 0x80) return malformed("encode");
            c = (uint8_t)(c << 6 | (next & 0x3F));
        }
        bytes[made++] = (char)c;
    }
    return msa_object_new_text(d, kind, bytes, made);
}

/* bytes() and bytearray(), of nothing, of bytes, or of text and "latin-1". */
static msa_object *bytes(msa_document *d, msa_object_kind kind, const msa_object *a) {
    if (a->count == 0) return msa_object_new_text(d, kind, "", 0);
    const msa_object *from = a->items[0];
    if (from->kind == MSA_OBJECT_STR && a->count == 2 && (msa_object_says(a->items[1], "latin-1") || msa_object_says(a->items[1], "latin1")))
        return latin1_bytes(d, kind, from);
    if (a->count != 1 || (from->kind != MSA_OBJECT_BYTES && from->kind != MSA_OBJECT_BYTE_ARRAY)) return malformed("bytes");
    return msa_pickle_charge(d, from->length) == 0 ? msa_object_new_text(d, kind, from->text, from->length) : NULL;
}

static msa_object *size(msa_document *d, const msa_object *a) {
    int64_t values[MSA_MAX_DIMS];
    if (a->count != 1 || ints(a->items[0], values) < 0) return malformed("torch.Size");
    return msa_object_new_view(d, MSA_OBJECT_SIZE, a->items[0]->items, a->items[0]->count);
}

static msa_object *device(msa_document *d, const msa_object *a) {
    char text[64];
    if ((a->count != 1 && a->count != 2) || a->items[0]->kind != MSA_OBJECT_STR || a->items[0]->length > 40) return malformed("torch.device");
    if (a->count == 1) return msa_object_new_text(d, MSA_OBJECT_DEVICE, a->items[0]->text, a->items[0]->length);
    if (!is_int(a->items[1])) return malformed("torch.device");
    snprintf(text, sizeof text, "%s:%lld", a->items[0]->text, (long long)a->items[1]->integer);
    return msa_object_new_text(d, MSA_OBJECT_DEVICE, text, strlen(text));
}

/* slice and range: three integers or None, the first ones of range optional. */
static msa_object *slice(msa_document *d, msa_object_kind kind, const msa_object *a) {
    bool range = kind == MSA_OBJECT_RANGE;
    for (size_t i = 0; i < a->count; i++)
        if (!is_int(a->items[i]) && (range || a->items[i]->kind != MSA_OBJECT_NONE)) return malformed(range ? "range" : "slice");
    if (a->count != 3 || (range && a->items[2]->integer == 0)) return malformed(range ? "range" : "slice");
    return msa_object_new_view(d, kind, a->items, 3);
}

static msa_object *complex_number(msa_document *d, const msa_object *a) {
    for (size_t i = 0; i < a->count; i++)
        if (a->items[i]->kind != MSA_OBJECT_FLOAT && !is_int(a->items[i])) return malformed("complex");
    if (a->count != 2) return malformed("complex");
    return msa_object_new_complex(d, msa_object_float(a->items[0]), msa_object_float(a->items[1]));
}

msa_object *msa_pickle_call(msa_document *d, const msa_object *function, msa_object *a, const msa_unpickle_options *options) {
    switch ((msa_global)function->integer) {
    case MSA_GLOBAL_REBUILD_TENSOR:
    case MSA_GLOBAL_REBUILD_TENSOR_V2: return rebuild_tensor(d, a);
    case MSA_GLOBAL_REBUILD_SPARSE: return rebuild_sparse(d, a);
    case MSA_GLOBAL_REBUILD_PARAMETER: return rebuild_parameter(d, a, false);
    case MSA_GLOBAL_REBUILD_PARAMETER_STATE: return rebuild_parameter(d, a, true);
    case MSA_GLOBAL_REBUILD_FROM_TYPE: return rebuild_from_type(d, a, options);
    case MSA_GLOBAL_LOAD_FROM_BYTES:
        if (a->count != 1 || a->items[0]->kind != MSA_OBJECT_BYTES) return malformed("_load_from_bytes");
        if (msa_pickle_charge(d, a->items[0]->length) != 0) return NULL;
        return msa_pth_read_nested(d, a->items[0]->text, a->items[0]->length, options);
    case MSA_GLOBAL_SIZE: return size(d, a);
    case MSA_GLOBAL_DEVICE: return device(d, a);
    case MSA_GLOBAL_GET_LAYOUT:
        if (a->count == 1 && msa_object_says(a->items[0], "torch.sparse_coo")) return msa_object_new_text(d, MSA_OBJECT_LAYOUT, "sparse_coo", 10);
        if (a->count == 1 && msa_object_says(a->items[0], "torch.sparse_csr")) return msa_object_new_text(d, MSA_OBJECT_LAYOUT, "sparse_csr", 10);
        if (a->count != 1 || !msa_object_says(a->items[0], "torch.strided")) return malformed("_get_layout");
        return msa_object_new_text(d, MSA_OBJECT_LAYOUT, "strided", 7);
    case MSA_GLOBAL_ORDERED_DICT: return collection(d, MSA_OBJECT_ORDERED_DICT, a);
    case MSA_GLOBAL_COUNTER: return collection(d, MSA_OBJECT_COUNTER, a);
    case MSA_GLOBAL_SET: return collection(d, MSA_OBJECT_SET, a);
    case MSA_GLOBAL_FROZEN_SET: return collection(d, MSA_OBJECT_FROZEN_SET, a);
    case MSA_GLOBAL_DEFAULT_DICT: return default_dict(d, a);
    case MSA_GLOBAL_COMPLEX: return complex_number(d, a);
    case MSA_GLOBAL_BYTE_ARRAY: return bytes(d, MSA_OBJECT_BYTE_ARRAY, a);
    case MSA_GLOBAL_BYTES: return bytes(d, MSA_OBJECT_BYTES, a);
    case MSA_GLOBAL_ENCODE:
        if (a->count != 2 || a->items[0]->kind != MSA_OBJECT_STR) return malformed("encode");
        return bytes(d, MSA_OBJECT_BYTES, a);
    case MSA_GLOBAL_SLICE: return slice(d, MSA_OBJECT_SLICE, a);
    case MSA_GLOBAL_RANGE: return slice(d, MSA_OBJECT_RANGE, a);
    case MSA_GLOBAL_NUMPY_SCALAR:
    case MSA_GLOBAL_NUMPY_RECONSTRUCT:
    case MSA_GLOBAL_NUMPY_DTYPE: return msa_pickle_numpy_call(d, (msa_global)function->integer, a);
    default: return msa_fail_null(MSA_PICKLE_ERROR, "the pickle calls a type that it may only name");
    }
}

int msa_pickle_build(msa_document *d, msa_object *o, msa_object *state) {
    if (o->kind == MSA_OBJECT_NUMPY_ARRAY || o->kind == MSA_OBJECT_NUMPY_DTYPE) return msa_pickle_numpy_build(d, o, state);
    /* torch.Tensor's oldest form and other states are not dictionaries of attributes. */
    if ((o->kind == MSA_OBJECT_ORDERED_DICT || o->kind == MSA_OBJECT_TENSOR) && msa_object_is_dict(state)) {
        o->attributes = state;
        return 0;
    }
    return msa_fail(MSA_PICKLE_ERROR, "the pickle sets the state of an object that has none");
}
