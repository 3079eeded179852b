/* Tensors: references, creation, and change of geometry. */
#include "tensor/internal.h"

#include <pthread.h>
#include <stdint.h>

/* Bare tensor structs are recycled per thread: making one is the fixed cost of every view and result. */
enum { FREE_LIMIT = 256 };
static _Thread_local msa_tensor *free_tensors;
static _Thread_local int free_count;
static _Thread_local bool watched; /* free_all runs when the thread ends */
static pthread_key_t thread_end;

static void free_all(void *unused) {
    (void)unused;
    watched = false;
    free_count = 0;
    for (msa_tensor *t = free_tensors, *next; t; t = next) next = (msa_tensor *)t->storage, free(t);
    free_tensors = NULL;
}

__attribute__((constructor)) static void make_thread_end(void) { pthread_key_create(&thread_end, free_all); }

_Thread_local bool msa_inference_mode;

static msa_tensor *allocate(int ndim) {
    msa_tensor *t = free_tensors;
    if (t) {
        free_tensors = (msa_tensor *)t->storage;
        free_count--;
    } else {
        t = malloc(sizeof *t);
        if (!t) return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate a tensor");
    }
    memset(t, 0, offsetof(msa_tensor, inline_dims));
    t->references = 1;
    t->ndim = (uint8_t)ndim;
    t->sizes = t->inline_dims;
    if (ndim > MSA_INLINE_DIMS) {
        t->sizes = malloc(sizeof(int64_t) * 2 * (size_t)ndim);
        if (!t->sizes) {
            free(t);
            return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate a tensor");
        }
    }
    t->strides = t->sizes + ndim;
    return t;
}

static void (*drop_python)(void *python);

void msa_tensor_on_python_release(void (*function)(void *python)) { drop_python = function; }

static void destroy(msa_tensor *t) {
    if (t->python_owned && drop_python) drop_python(t->python);
    if (t->autograd) msa_autograd_free(t->autograd);
    msa_storage_release(t->storage);
    if (t->sizes != t->inline_dims) free(t->sizes);
    if (free_count < FREE_LIMIT) {
        if (!watched) watched = pthread_setspecific(thread_end, &free_tensors) == 0;
        t->storage = (msa_storage *)free_tensors;
        free_tensors = t;
        free_count++;
    } else {
        free(t);
    }
}

msa_tensor *msa_tensor_retain(msa_tensor *t) {
    if (t) atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
    return t;
}

void msa_tensor_release(msa_tensor *t) {
    if (t && atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) == 1) destroy(t);
}

static void settle(msa_tensor *t) {
    int64_t numel = 1, expected = 1;
    /* Sparse tensors may be larger than what a count of elements holds. */
    for (int i = 0; i < t->ndim; i++) numel = (int64_t)((uint64_t)numel * (uint64_t)t->sizes[i]);
    bool contiguous = !t->layout;
    for (int i = t->ndim - 1; i >= 0 && numel && contiguous; i--) {
        if (t->sizes[i] != 1 && t->strides[i] != expected) {
            contiguous = false;
            break;
        }
        expected *= t->sizes[i];
    }
    t->numel = numel;
    t->contiguous = contiguous;
}

msa_tensor *msa_tensor_over(msa_storage *storage, msa_dtype dtype, int64_t offset, int ndim, const int64_t *sizes,
                            const int64_t *strides) {
    msa_tensor *t = allocate(ndim);
    if (!t) return NULL;
    memcpy(t->sizes, sizes, sizeof(int64_t) * (size_t)ndim);
    memcpy(t->strides, strides, sizeof(int64_t) * (size_t)ndim);
    t->storage = msa_storage_retain(storage);
    t->layout = storage->layout;
    t->dtype = (uint8_t)dtype;
    t->offset = offset;
    settle(t);
    return t;
}

msa_tensor *msa_tensor_alias(const msa_tensor *source) {
    msa_tensor *t = allocate(source->ndim);
    if (!t) return NULL;
    memcpy(t->sizes, source->sizes, sizeof(int64_t) * 2 * (size_t)source->ndim);
    t->storage = msa_storage_retain(source->storage);
    t->dtype = source->dtype;
    t->layout = source->layout;
    t->device = source->device;
    t->offset = source->offset;
    t->numel = source->numel;
    t->contiguous = source->contiguous;
    t->detached_data = source->detached_data;
    return t;
}

/* Elements spanned, or -1 with an error: negative sizes, too many dimensions, and products that overflow. */
static int64_t checked_numel(msa_ints sizes) {
    if (sizes.n > MSA_MAX_DIMS)
        return msa_fail(MSA_RUNTIME_ERROR, "a tensor can have at most %d dimensions, got %lld", MSA_MAX_DIMS,
                        (long long)sizes.n);
    int64_t numel = 1;
    bool empty = false;
    for (int64_t i = 0; i < sizes.n; i++) {
        if (sizes.data[i] < 0)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "Trying to create tensor with negative dimension %lld: %s", (long long)sizes.data[i],
                            msa_sizes_text(sizes));
        if (sizes.data[i] == 0) empty = true;
    }
    for (int64_t i = 0; i < sizes.n && !empty; i++)
        if (__builtin_mul_overflow(numel, sizes.data[i], &numel) || numel > INT64_MAX / 32)
            return msa_fail(MSA_RUNTIME_ERROR, "Storage size calculation overflowed with sizes=%s", msa_sizes_text(sizes));
    return empty ? 0 : numel;
}

static msa_tensor *new_contiguous(msa_ints sizes, msa_dtype dtype, int64_t numel) {
    msa_tensor *t = allocate((int)sizes.n);
    if (!t) return NULL;
    if (sizes.n > 0) memcpy(t->sizes, sizes.data, sizeof(int64_t) * (size_t)sizes.n); /* data may be NULL */
    msa_contiguous_strides((int)sizes.n, t->sizes, t->strides);
    t->dtype = (uint8_t)dtype;
    t->numel = numel;
    t->contiguous = true;
    t->inference = msa_inference_mode;
    t->storage = msa_storage_new((size_t)numel * msa_dtype_size(dtype));
    if (!t->storage) {
        t->references = 1;
        destroy(t);
        return NULL;
    }
    return t;
}

msa_tensor *msa_tensor_new(msa_ints sizes, msa_dtype dtype) {
    int64_t numel = checked_numel(sizes);
    return numel < 0 ? NULL : new_contiguous(sizes, dtype, numel);
}

/* Elements from the first to the last that sizes and strides reach, plus one. */
static int64_t span(int64_t n, const int64_t *sizes, const int64_t *strides) {
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        if (sizes[i] == 0) return 0;
        int64_t step;
        if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &step) || __builtin_add_overflow(last, step, &last)) return -1;
    }
    return last + 1;
}

msa_tensor *msa_tensor_new_strided(msa_ints sizes, msa_ints strides, msa_dtype dtype) {
    if (checked_numel(sizes) < 0) return NULL;
    if (sizes.n != strides.n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "mismatch in length of strides and shape: %s and %s",
                             msa_sizes_text(strides), msa_sizes_text(sizes));
    for (int64_t i = 0; i < strides.n; i++)
        if (strides.data[i] < 0)
            return msa_fail_null(MSA_RUNTIME_ERROR, "strides must be non-negative, got %s", msa_sizes_text(strides));
    int64_t elements = span(sizes.n, sizes.data, strides.data);
    if (elements < 0 || elements > INT64_MAX / 32)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Storage size calculation overflowed with sizes=%s and strides=%s",
                             msa_sizes_text(sizes), msa_sizes_text(strides));
    msa_storage *s = msa_storage_new((size_t)elements * msa_dtype_size(dtype));
    if (!s) return NULL;
    msa_tensor *t = msa_tensor_over(s, dtype, 0, (int)sizes.n, sizes.data, strides.data);
    msa_storage_release(s);
    return t;
}

msa_tensor *msa_tensor_new_hidden(int64_t n, int64_t c, int64_t h, int64_t w, msa_dtype dtype) {
    msa_tensor *t = msa_tensor_new(MSA_INTS(n, c, h, w), dtype);
    /* With one channel or one position both layouts are the same bytes. */
    if (t && t->numel && c > 1 && h * w > 1) {
        t->storage->hidden = (msa_hidden){true, n, c, h, w};
        t->storage->itemsize = (uint8_t)msa_dtype_size(dtype);
    }
    return t;
}

msa_tensor *msa_tensor_scalar(msa_scalar value, msa_dtype dtype) {
    msa_tensor *t = new_contiguous((msa_ints){NULL, 0}, dtype, 1);
    if (t && msa_fill_values(t, value) != 0) {
        msa_tensor_release(t);
        return NULL;
    }
    return t;
}

msa_tensor *msa_tensor_from_memory(void *data, msa_ints sizes, msa_ints strides, msa_dtype dtype,
                                   void (*release)(void *), void *context) {
    if (checked_numel(sizes) < 0) return NULL;
    msa_storage *s = calloc(1, sizeof *s);
    if (!s) return msa_fail_null(MSA_MEMORY_ERROR, "cannot allocate a storage");
    s->references = 1;
    s->data = data;
    s->bytes = (size_t)span(sizes.n, sizes.data, strides.data) * msa_dtype_size(dtype);
    msa_tensor *t = msa_tensor_over(s, dtype, 0, (int)sizes.n, sizes.data, strides.data);
    /* Only now does the storage own the memory: on failure the caller keeps it. */
    static void (*const nothing)(void *) = free;
    s->release = t ? (release ? release : nothing) : nothing;
    s->context = t && release ? context : NULL;
    msa_storage_release(s);
    return t;
}

int msa_tensor_ndim(const msa_tensor *t) { return t->ndim; }
int64_t msa_tensor_numel(const msa_tensor *t) { return t->numel; }
const int64_t *msa_tensor_sizes(const msa_tensor *t) { return t->sizes; }
const int64_t *msa_tensor_strides(const msa_tensor *t) { return t->strides; }
int64_t msa_tensor_offset(const msa_tensor *t) { return t->offset; }
msa_dtype msa_tensor_dtype(const msa_tensor *t) { return (msa_dtype)t->dtype; }
bool msa_tensor_is_contiguous(const msa_tensor *t) { return t->contiguous; }
void *msa_tensor_data(const msa_tensor *t) {
    t->storage->lent = true;
    return msa_data(t);
}

msa_tensor *msa_tensor_view_strided(msa_tensor *t, msa_ints sizes, msa_ints strides, int64_t offset) {
    if (checked_numel(sizes) < 0) return NULL;
    if (sizes.n != strides.n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "mismatch in length of strides and shape: %s and %s",
                             msa_sizes_text(strides), msa_sizes_text(sizes));
    for (int64_t i = 0; i < strides.n; i++)
        if (strides.data[i] < 0)
            return msa_fail_null(MSA_RUNTIME_ERROR,
                                 "as_strided: Negative strides are not supported at the moment, got strides: %s",
                                 msa_sizes_text(strides));
    if (offset < 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Tensor: invalid storage offset %lld", (long long)offset);
    if (t->layout) {
        msa_refuse_sparse("as_strided");
        return NULL;
    }
    int64_t elements = span(sizes.n, sizes.data, strides.data), last;
    if (elements < 0 || __builtin_add_overflow(elements, offset, &last) ||
        (elements && (uint64_t)last > t->storage->bytes / msa_dtype_size((msa_dtype)t->dtype)))
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "setStorage: sizes %s, strides %s, storage offset %lld, and itemsize %zu requiring a storage "
                             "size of more than %zu bytes are out of bounds for storage of that size",
                             msa_sizes_text(sizes), msa_sizes_text(strides), (long long)offset,
                             msa_dtype_size((msa_dtype)t->dtype), t->storage->bytes);
    if (t->storage->hidden.on && msa_storage_make_plain(t->storage) != 0) return NULL;
    msa_tensor *view = msa_tensor_over(t->storage, (msa_dtype)t->dtype, offset, (int)sizes.n, sizes.data, strides.data);
    if (view) {
        view->device = t->device;
        view->detached_data = t->detached_data;
    }
    return view;
}

int msa_tensor_set_geometry(msa_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset) {
    int64_t copy[2 * MSA_MAX_DIMS]; /* the arguments may point into t */
    memcpy(copy, sizes, sizeof(int64_t) * (size_t)ndim);
    memcpy(copy + ndim, strides, sizeof(int64_t) * (size_t)ndim);
    if (ndim > MSA_INLINE_DIMS && ndim > t->ndim) {
        int64_t *dims = malloc(sizeof(int64_t) * 2 * (size_t)ndim);
        if (!dims) return msa_fail(MSA_MEMORY_ERROR, "cannot allocate a tensor");
        if (t->sizes != t->inline_dims) free(t->sizes);
        t->sizes = dims;
    }
    t->ndim = (uint8_t)ndim;
    t->strides = t->sizes + ndim;
    memcpy(t->sizes, copy, sizeof(int64_t) * 2 * (size_t)ndim);
    t->offset = offset;
    settle(t);
    return 0;
}

void msa_tensor_set_storage(msa_tensor *t, msa_storage *storage, msa_dtype dtype) {
    msa_storage_retain(storage);
    msa_storage_release(t->storage);
    t->storage = storage;
    t->layout = storage->layout;
    t->dtype = (uint8_t)dtype;
}

int msa_tensor_resize(msa_tensor *t, msa_ints sizes) {
    int64_t numel = checked_numel(sizes);
    if (numel < 0) return -1;
    int64_t strides[MSA_MAX_DIMS];
    if (t->layout) return msa_refuse_sparse("resize_");
    msa_contiguous_strides((int)sizes.n, sizes.data, strides);
    if (msa_storage_make_plain(t->storage) != 0) return -1;
    size_t needed = (size_t)(numel ? t->offset + numel : 0) * msa_dtype_size((msa_dtype)t->dtype);
    if (needed > t->storage->bytes && msa_storage_resize(t->storage, needed) != 0) return -1;
    return msa_tensor_set_geometry(t, (int)sizes.n, sizes.data, strides, t->offset);
}

int msa_tensor_item(const msa_tensor *t, msa_scalar *value) {
    if (t->numel != 1)
        return t->numel == 0 ? msa_fail(MSA_RUNTIME_ERROR, "a Tensor with 0 elements cannot be converted to Scalar")
                             : msa_fail(MSA_VALUE_ERROR,
                                        "only one element tensors can be converted to Python scalars");
    if (t->layout) return msa_refuse_sparse("item");
    const void *p = msa_data(t);
    if (!p) return -1;
    switch ((msa_dtype)t->dtype) {
    case MSA_BOOL: *value = msa_bool_scalar(*(const uint8_t *)p != 0); break;
    case MSA_UINT8: *value = msa_int(*(const uint8_t *)p); break;
    case MSA_INT8: *value = msa_int(*(const int8_t *)p); break;
    case MSA_INT16: *value = msa_int(*(const int16_t *)p); break;
    case MSA_INT32: *value = msa_int(*(const int32_t *)p); break;
    case MSA_INT64: *value = msa_int(*(const int64_t *)p); break;
    case MSA_FLOAT16: *value = msa_float((double)*(const _Float16 *)p); break;
    case MSA_BFLOAT16: {
        uint32_t bits = (uint32_t) * (const uint16_t *)p << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        *value = msa_float(f);
        break;
    }
    case MSA_FLOAT32: *value = msa_float(*(const float *)p); break;
    case MSA_FLOAT64: *value = msa_float(*(const double *)p); break;
    case MSA_COMPLEX64: *value = msa_complex(((const float *)p)[0], ((const float *)p)[1]); break;
    default: *value = msa_complex(((const double *)p)[0], ((const double *)p)[1]); break;
    }
    return 0;
}

msa_list *msa_list_new(int64_t n) {
    msa_list *list = msa_calloc(1, sizeof *list + sizeof(msa_tensor *) * (size_t)n);
    if (list) list->n = n;
    return list;
}

void msa_list_release(msa_list *list) {
    if (!list) return;
    for (int64_t i = 0; i < list->n; i++) msa_tensor_release(list->items[i]);
    free(list);
}
