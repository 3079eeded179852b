/* The driver described in pointwise.h. */
#include "cpu/pointwise.h"

#include "base/parallel.h"
#include "tensor/convert.h"

enum { CHUNK = 1024, MAX_OPERANDS = MSA_POINTWISE_INPUTS + 1 };

static const msa_dtype storage_of[MSA_COMPUTE_TYPES] = {MSA_BOOL,    MSA_INT64,     MSA_FLOAT32,
                                                        MSA_FLOAT64, MSA_COMPLEX64, MSA_COMPLEX128};

static msa_compute compute_type(msa_dtype d, bool has_bool_loop) {
    switch (d) {
    case MSA_BOOL: return has_bool_loop ? MSA_C_BOOL : MSA_C_INT64;
    case MSA_FLOAT16:
    case MSA_BFLOAT16:
    case MSA_FLOAT32: return MSA_C_FLOAT32;
    case MSA_FLOAT64: return MSA_C_FLOAT64;
    case MSA_COMPLEX64: return MSA_C_COMPLEX64;
    case MSA_COMPLEX128: return MSA_C_COMPLEX128;
    default: return MSA_C_INT64;
    }
}

msa_dtype msa_pointwise_result_type(const msa_pointwise_row *row, msa_tensor *const *inputs,
                                    const msa_scalar *dtype_hints, int n_hints, msa_dtype *computing) {
    msa_dtype d;
    bool same = n_hints == 0;
    int first = -1;
    for (int i = 0; i < row->n_inputs; i++) {
        if (row->inputs[i] != MSA_IN_T && row->inputs[i] != MSA_IN_REAL) continue;
        if (first < 0) first = i;
        same = same && !inputs[i]->wrapped_number && inputs[i]->dtype == inputs[first]->dtype;
    }
    if (first < 0) d = MSA_BOOL;
    else if (same || row->promotion == MSA_PROMOTE_FIRST) d = (msa_dtype)inputs[first]->dtype;
    else {
        msa_tensor hints[4];
        msa_tensor *all[MSA_POINTWISE_INPUTS + 4];
        int n = 0;
        for (int i = 0; i < row->n_inputs; i++)
            if (row->inputs[i] == MSA_IN_T) all[n++] = inputs[i];
        for (int i = 0; i < n_hints; i++) {
            hints[i] = (msa_tensor){.dtype = (uint8_t)dtype_hints[i].kind, .wrapped_number = true};
            all[n++] = &hints[i];
        }
        d = msa_result_type((msa_tensors){all, n});
    }
    switch (row->promotion) {
    case MSA_PROMOTE_FLOAT:
    case MSA_PROMOTE_BOOL_FLOAT:
    case MSA_PROMOTE_REAL_FLOAT:
        if (!msa_is_inexact(d)) d = msa_default_dtype();
        break;
    default: break;
    }
    *computing = d;
    switch (row->promotion) {
    case MSA_PROMOTE_COMPARE:
    case MSA_PROMOTE_BOOL_FLOAT: return MSA_BOOL;
    case MSA_PROMOTE_REAL:
    case MSA_PROMOTE_REAL_FLOAT: return msa_dtype_real(d);
    default: return d;
    }
}

/* An operand as the loops see it: element type of the run, geometry over the iteration space. */
typedef struct {
    char *data;
    msa_dtype type;    /* in memory */
    msa_dtype working; /* in the loop */
    size_t size;
    int64_t stride[MSA_MAX_DIMS];
    bool direct;   /* contiguous over the whole space and of the working type */
    bool constant; /* one element for all */
} operand;

typedef struct {
    int n_operands, ndim; /* operand 0 is the output */
    int64_t size[MSA_MAX_DIMS];
    int64_t total;
    operand of[MAX_OPERANDS];
    msa_pointwise_loop loop;
    const msa_scalar *params;
} space;

/* Data and strides as they lie in memory, without ending the hidden layout. */
static char *physical(const msa_tensor *t, int64_t *strides) {
    if (msa_hidden_nhwc(t)) {
        int64_t c = t->sizes[1], h = t->sizes[2], w = t->sizes[3];
        strides[0] = h * w * c;
        strides[1] = 1;
        strides[2] = w * c;
        strides[3] = c;
        return t->storage->data;
    }
    char *data = msa_data(t);
    memcpy(strides, t->strides, sizeof(int64_t) * t->ndim);
    return data;
}

static int set_operand(operand *o, const msa_tensor *t, msa_dtype working, int ndim, const int64_t *sizes) {
    int64_t strides[MSA_MAX_DIMS];
    o->data = physical(t, strides);
    if (!o->data) return -1;
    o->type = (msa_dtype)t->dtype;
    o->size = msa_dtype_size(o->type);
    o->working = working;
    int missing = ndim - t->ndim;
    for (int i = 0; i < ndim; i++)
        o->stride[i] = i < missing || (t->sizes[i - missing] == 1 && sizes[i] != 1) ? 0 : strides[i - missing];
    return 0;
}

/* Sort dimensions by falling output stride, drop those of size 1, merge neighbours that are contiguous in all operands. */
static void coalesce(space *s) {
    int n = 0;
    for (int d = 0; d < s->ndim; d++) {
        if (s->size[d] == 1) continue;
        s->size[n] = s->size[d];
        for (int k = 0; k < s->n_operands; k++) s->of[k].stride[n] = s->of[k].stride[d];
        n++;
    }
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && s->of[0].stride[j - 1] < s->of[0].stride[j]; j--) {
            int64_t t = s->size[j];
            s->size[j] = s->size[j - 1];
            s->size[j - 1] = t;
            for (int k = 0; k < s->n_operands; k++) {
                t = s->of[k].stride[j];
                s->of[k].stride[j] = s->of[k].stride[j - 1];
                s->of[k].stride[j - 1] = t;
            }
        }
    int last = 0;
    for (int d = 1; d < n; d++) {
        bool merge = true;
        for (int k = 0; k < s->n_operands && merge; k++)
            merge = s->of[k].stride[last] == s->of[k].stride[d] * s->size[d];
        if (merge) s->size[last] *= s->size[d];
        else s->size[++last] = s->size[d];
        for (int k = 0; k < s->n_operands; k++) s->of[k].stride[last] = s->of[k].stride[d];
    }
    s->ndim = n ? last + 1 : 1;
    if (n == 0) {
        s->size[0] = 1;
        for (int k = 0; k < s->n_operands; k++) s->of[k].stride[0] = 1;
    }
    s->total = 1;
    for (int d = 0; d < s->ndim; d++) s->total *= s->size[d];
    for (int k = 0; k < s->n_operands; k++) {
        operand *o = &s->of[k];
        o->direct = s->ndim == 1 && (o->stride[0] == 1 || s->total == 1) && o->type == o->working;
        o->constant = true;
        for (int d = 0; d < s->ndim; d++) o->constant = o->constant && o->stride[d] == 0;
    }
}

/* Move n elements from linear position `at` between an operand's memory and a contiguous buffer of its working type. */
static void transfer(const space *s, const operand *o, int64_t at, int64_t n, char *buffer, bool out) {
    size_t width = msa_dtype_size(o->working);
    int last = s->ndim - 1;
    int64_t index[MSA_MAX_DIMS], rest = at, offset = 0;
    for (int d = last; d >= 0; d--) {
        index[d] = rest % s->size[d];
        rest /= s->size[d];
        offset += index[d] * o->stride[d];
    }
    for (int64_t done = 0; done < n;) {
        int64_t run = s->size[last] - index[last];
        if (run > n - done) run = n - done;
        char *there = o->data + offset * (int64_t)o->size, *here = buffer + done * (int64_t)width;
        if (out) msa_convert(o->type, there, o->stride[last], o->working, here, 1, run);
        else msa_convert(o->working, here, 1, o->type, there, o->stride[last], run);
        done += run;
        if (done == n) break;
        offset += run * o->stride[last];
        index[last] += run;
        for (int d = last; d > 0 && index[d] == s->size[d]; d--) {
            offset += o->stride[d - 1] - s->size[d] * o->stride[d];
            index[d] = 0;
            index[d - 1]++;
        }
    }
}

static void run_share(const space *s, int64_t begin, int64_t end) {
    _Alignas(64) char buffers[MAX_OPERANDS][CHUNK * 16];
    const void *in[MSA_POINTWISE_INPUTS];
    bool all_direct = true;
    for (int k = 0; k < s->n_operands; k++) all_direct = all_direct && s->of[k].direct;
    /* Nothing to gather: one call. */
    int64_t step = all_direct ? end - begin : CHUNK;
    for (int k = 1; k < s->n_operands; k++)
        if (s->of[k].constant && !s->of[k].direct) {
            int64_t n = end - begin < CHUNK ? end - begin : CHUNK;
            msa_convert(s->of[k].working, buffers[k], 1, s->of[k].type, s->of[k].data, 0, n);
            in[k - 1] = buffers[k];
        }
    for (int64_t at = begin; at < end; at += step) {
        int64_t n = end - at < step ? end - at : step;
        for (int k = 1; k < s->n_operands; k++) {
            const operand *o = &s->of[k];
            if (o->direct) in[k - 1] = o->data + at * (int64_t)o->size;
            else if (!o->constant) {
                transfer(s, o, at, n, buffers[k], false);
                in[k - 1] = buffers[k];
            }
        }
        const operand *out = &s->of[0];
        void *to = out->direct ? (void *)(out->data + at * (int64_t)out->size) : buffers[0];
        s->loop(n, to, in, s->params);
        if (!out->direct) transfer(s, out, at, n, buffers[0], true);
    }
}

static void run(const space *s) {
    int threads = msa_threads_for(s->total, MSA_GRAIN);
    if (threads == 1) {
        run_share(s, 0, s->total);
        return;
    }
#pragma omp parallel num_threads(threads)
    {
        int64_t begin, end;
        msa_share((s->total + 63) / 64, omp_get_num_threads(), omp_get_thread_num(), &begin, &end);
        begin *= 64;
        end = end * 64 < s->total ? end * 64 : s->total;
        if (begin < end) run_share(s, begin, end);
    }
}

static msa_dtype working_type(msa_input_type kind, msa_dtype compute) {
    switch (kind) {
    case MSA_IN_BOOL: return MSA_BOOL;
    case MSA_IN_INT64: return MSA_INT64;
    case MSA_IN_REAL: return msa_dtype_real(compute);
    default: return compute;
    }
}

/* Where results that are made new lie: as the inputs of full size do when they agree, contiguous otherwise. */
static msa_tensor *new_result(const msa_pointwise_row *row, msa_tensor *const *inputs, msa_ints sizes, msa_dtype dtype) {
    const msa_tensor *model = NULL;
    for (int i = 0; i < row->n_inputs; i++) {
        const msa_tensor *t = inputs[i];
        if (t->ndim != sizes.n || memcmp(t->sizes, sizes.data, sizeof(int64_t) * (size_t)sizes.n) != 0) continue;
        if (msa_hidden_nhwc(t)) return msa_tensor_new_hidden(t->sizes[0], t->sizes[1], t->sizes[2], t->sizes[3], dtype);
        if (!model) model = t;
        else if (memcmp(model->strides, t->strides, sizeof(int64_t) * (size_t)sizes.n) != 0 && model->contiguous == false)
            model = t->contiguous ? t : model;
    }
    return model ? msa_new_like_values(model, dtype) : msa_tensor_new(sizes, dtype);
}

static bool spans_overlap(const msa_tensor *a, const msa_tensor *b) {
    if (a->storage != b->storage || !a->numel || !b->numel) return false;
    int64_t a_last = a->offset, b_last = b->offset;
    for (int i = 0; i < a->ndim; i++) a_last += (a->sizes[i] - 1) * a->strides[i];
    for (int i = 0; i < b->ndim; i++) b_last += (b->sizes[i] - 1) * b->strides[i];
    int64_t sa = (int64_t)msa_dtype_size((msa_dtype)a->dtype), sb = (int64_t)msa_dtype_size((msa_dtype)b->dtype);
    return a->offset * sa < (b_last + 1) * sb && b->offset * sb < (a_last + 1) * sa;
}

static bool same_geometry(const msa_tensor *a, const msa_tensor *b) {
    return a->offset == b->offset && a->dtype == b->dtype && msa_same_sizes(a, b) &&
           memcmp(a->strides, b->strides, sizeof(int64_t) * a->ndim) == 0;
}

static int check_target(const msa_pointwise_row *row, const msa_tensor *target, msa_dtype result) {
    if (!msa_dtype_can_cast(result, (msa_dtype)target->dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "result type %s can't be cast to the desired output type %s",
                        msa_dtype_type_name(result), msa_dtype_type_name((msa_dtype)target->dtype));
    for (int i = 0; i < target->ndim; i++)
        if (target->strides[i] == 0 && target->sizes[i] > 1)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "unsupported operation: more than one element of the written-to tensor refers to a single "
                            "memory location. Please clone() the tensor before performing the operation.");
    return 0;
}

static int broadcast_all(const msa_pointwise_row *row, msa_tensor *const *inputs, int64_t *sizes, int *ndim) {
    *ndim = inputs[0]->ndim;
    memcpy(sizes, inputs[0]->sizes, sizeof(int64_t) * inputs[0]->ndim);
    for (int i = 1; i < row->n_inputs; i++) {
        if (inputs[i]->ndim == 0) continue;
        int64_t merged[MSA_MAX_DIMS];
        if (msa_broadcast_sizes(row->name, (msa_ints){sizes, *ndim}, msa_sizes(inputs[i]), merged, ndim) != 0) return -1;
        memcpy(sizes, merged, sizeof(int64_t) * (size_t)*ndim);
    }
    return 0;
}

static msa_tensor *execute(const msa_pointwise_row *row, msa_tensor *const *given, const msa_scalar *params,
                           const msa_scalar *hints, int n_hints, msa_tensor *target, bool resize) {
    msa_dtype computing;
    msa_dtype result = msa_pointwise_result_type(row, given, hints, n_hints, &computing);
    if (result == MSA_BOOL && row->no_bool && computing == MSA_BOOL) return msa_fail_null(MSA_RUNTIME_ERROR, "%s", row->no_bool);
    msa_compute compute = compute_type(computing, row->loops[MSA_C_BOOL] != NULL);
    msa_pointwise_loop loop = row->loops[compute];
    if (!loop)
        return msa_fail_null(MSA_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", row->name,
                             msa_dtype_type_name(computing));
    msa_dtype working = storage_of[compute];
    bool to_bool = row->promotion == MSA_PROMOTE_COMPARE || row->promotion == MSA_PROMOTE_BOOL_FLOAT;
    bool to_real = row->promotion == MSA_PROMOTE_REAL || row->promotion == MSA_PROMOTE_REAL_FLOAT;
    msa_dtype out_working = to_bool ? MSA_BOOL : to_real ? msa_dtype_real(working) : working;

    /* The commonest case first: everything alike, contiguous, of the loop's own type. */
    if (!target && result == out_working) {
        const msa_tensor *t = given[0];
        bool plain = t->contiguous && !t->storage->hidden.on;
        for (int i = 0; i < row->n_inputs && plain; i++) {
            const msa_tensor *o = given[i];
            plain = o->contiguous && (msa_dtype)o->dtype == working_type((msa_input_type)row->inputs[i], working) &&
                    !o->storage->hidden.on && (o == t || msa_same_sizes(o, t));
        }
        if (plain && t->numel < 2 * MSA_GRAIN) {
            msa_tensor *out = msa_tensor_new(msa_sizes(t), result);
            if (!out) return NULL;
            const void *in[MSA_POINTWISE_INPUTS];
            for (int i = 0; i < row->n_inputs; i++) in[i] = msa_data(given[i]);
            loop(t->numel, out->storage->data, in, params);
            return out;
        }
    }

    int64_t sizes[MSA_MAX_DIMS];
    int ndim;
    if (broadcast_all(row, given, sizes, &ndim) != 0) return NULL;
    msa_tensor *inputs[MSA_POINTWISE_INPUTS] = {NULL};
    msa_tensor *copies[MSA_POINTWISE_INPUTS] = {NULL}; /* inputs that overlap the target otherwise than exactly */
    msa_tensor *out = NULL;
    for (int i = 0; i < row->n_inputs; i++) inputs[i] = given[i];
    if (target) {
        if (check_target(row, target, result) != 0) return NULL;
        bool same = ndim == target->ndim && memcmp(sizes, target->sizes, sizeof(int64_t) * (size_t)ndim) == 0;
        if (!same && !resize)
            return msa_fail_null(MSA_RUNTIME_ERROR, "output with shape %s doesn't match the broadcast shape %s",
                                 msa_sizes_text(msa_sizes(target)), msa_sizes_text((msa_ints){sizes, ndim}));
        for (int i = 0; i < row->n_inputs; i++)
            if ((!same || !same_geometry(inputs[i], target)) && spans_overlap(inputs[i], target)) {
                copies[i] = msa_clone_values(inputs[i]);
                if (!copies[i]) goto done;
                inputs[i] = copies[i];
            }
        if (!same && msa_tensor_resize(target, (msa_ints){sizes, ndim}) != 0) goto done;
        out = msa_tensor_retain(target);
    } else {
        out = new_result(row, inputs, (msa_ints){sizes, ndim}, result);
        if (!out) goto done;
    }
    if (out->numel) {
        space s = {.n_operands = row->n_inputs + 1, .ndim = ndim, .loop = loop, .params = params};
        memcpy(s.size, sizes, sizeof(int64_t) * (size_t)ndim);
        bool ok = set_operand(&s.of[0], out, out_working, ndim, sizes) == 0;
        for (int i = 0; i < row->n_inputs && ok; i++)
            ok = set_operand(&s.of[i + 1], inputs[i], working_type((msa_input_type)row->inputs[i], working), ndim, sizes) == 0;
        if (!ok) {
            msa_tensor_release(msa_take(out));
            goto done;
        }
        coalesce(&s);
        run(&s);
    }
done:
    for (int i = 0; i < row->n_inputs; i++) msa_tensor_release(copies[i]);
    return out;
}

msa_tensor *msa_pointwise_run(const msa_pointwise_row *row, msa_tensor *const *inputs, const msa_scalar *params,
                              const msa_scalar *dtype_hints, int n_hints, msa_tensor *target) {
    return execute(row, inputs, params, dtype_hints, n_hints, target, false);
}

msa_tensor *msa_pointwise_out(const msa_pointwise_row *row, msa_tensor *const *inputs, const msa_scalar *params,
                              const msa_scalar *dtype_hints, int n_hints, msa_tensor *target) {
    return execute(row, inputs, params, dtype_hints, n_hints, target, true);
}
