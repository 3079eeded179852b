/* Views and the operators that only move values. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"

enum { CONTIGUOUS_FORMAT, PRESERVE_FORMAT, CHANNELS_LAST };

static msa_tensor *view_of(msa_tensor *self, int64_t offset, int ndim, const int64_t *sizes, const int64_t *strides) {
    /* A view that is not the whole in its own shape would have to know the hidden layout: end it. */
    if (self->storage->hidden.on && msa_storage_make_plain(self->storage) != 0) return NULL;
    msa_tensor *v = msa_tensor_over(self->storage, (msa_dtype)self->dtype, offset, ndim, sizes, strides);
    if (v) v->detached_data = self->detached_data;
    return v;
}

msa_tensor *alias_view(msa_tensor *self) { return msa_tensor_alias(self); }

msa_tensor *detach_values(msa_tensor *self) {
    msa_tensor *t = msa_tensor_alias(self);
    if (t) t->inference = self->inference;
    return t;
}

/* Strides of N,H,W,C (N,D,H,W,C) order for a 4-D (5-D) shape. */
static int channels_last_strides(const msa_tensor *t, int64_t *strides) {
    if (t->ndim != 4 && t->ndim != 5)
        return msa_fail(MSA_RUNTIME_ERROR, "required rank 4 tensor to use channels_last format");
    int64_t step = 1;
    strides[1] = step;
    step *= t->sizes[1] > 1 ? t->sizes[1] : 1;
    for (int i = t->ndim - 1; i >= 2; i--) {
        strides[i] = step;
        step *= t->sizes[i] > 1 ? t->sizes[i] : 1;
    }
    strides[0] = step;
    return 0;
}

/* A new tensor like t in a memory format. */
static msa_tensor *new_in_format(msa_tensor *t, msa_dtype dtype, int format) {
    if (format == CONTIGUOUS_FORMAT) return msa_tensor_new(msa_sizes(t), dtype);
    if (format == CHANNELS_LAST) {
        int64_t strides[MSA_MAX_DIMS];
        if (channels_last_strides(t, strides) != 0) return NULL;
        return msa_tensor_new_strided(msa_sizes(t), (msa_ints){strides, t->ndim}, dtype);
    }
    return msa_new_like_values(t, dtype);
}

msa_tensor *to_copy_cpu(msa_tensor *self, msa_dtype dtype, int memory_format) {
    msa_auto msa_tensor *copy = new_in_format(self, dtype, memory_format);
    return copy && msa_copy_values(copy, self) == 0 ? msa_take(copy) : NULL;
}

msa_tensor *clone_cpu(msa_tensor *self, int memory_format) { return to_copy_cpu(self, (msa_dtype)self->dtype, memory_format); }

msa_tensor *contiguous_values(msa_tensor *self, int memory_format) {
    if (memory_format == PRESERVE_FORMAT)
        return msa_fail_null(MSA_RUNTIME_ERROR, "preserve memory format is unsupported by the contiguous operator");
    if (memory_format == CHANNELS_LAST ? msa_is_channels_last(self) : self->contiguous) return msa_tensor_retain(self);
    return msa_clone(self, memory_format);
}

int copy_cpu(msa_tensor *self, msa_tensor *src, bool non_blocking) { return msa_copy_values(self, src); }

msa_tensor *to_dtype_values(msa_tensor *self, msa_dtype dtype, bool non_blocking, bool copy, int memory_format) {
    bool laid_out = memory_format < 0 || memory_format == PRESERVE_FORMAT ||
                    (memory_format == CHANNELS_LAST ? msa_is_channels_last(self) : self->contiguous);
    if ((msa_dtype)self->dtype == dtype && !copy && laid_out) return msa_tensor_retain(self);
    return msa__to_copy(self, dtype, memory_format);
}

msa_tensor *as_strided_view(msa_tensor *self, msa_ints size, msa_ints stride, msa_opt_int storage_offset) {
    return msa_tensor_view_strided(self, size, stride, storage_offset.has ? storage_offset.v : self->offset);
}

/* The storage that a dense tensor of these sizes and strides spans, in elements. */
static int64_t span(msa_ints sizes, msa_ints strides) {
    int64_t last = 0;
    for (int64_t i = 0; i < sizes.n; i++) {
        if (sizes.data[i] == 0) return 0;
        last += (sizes.data[i] - 1) * strides.data[i];
    }
    return last + 1;
}

/* Adds grad, laid out as the view was, into a flat buffer over the base, and reads the base's layout out of it. Elements
 * that the view shows several times add up; an overlapping base divides what arrives at an element among its readers. */
msa_tensor *as_strided_backward_cpu(msa_tensor *grad, msa_ints base_sizes, msa_ints base_strides, msa_ints sizes,
                                    msa_ints strides, int64_t offset) {
    int64_t low = offset < 0 ? -offset : 0;
    int64_t base_span = span(base_sizes, base_strides) + low, view_span = span(sizes, strides) + offset + low;
    int64_t length = base_span > view_span ? base_span : view_span;
    if (length < 1) length = 1;
    msa_auto msa_tensor *flat = msa_tensor_new(MSA_INTS(length), (msa_dtype)grad->dtype);
    if (!flat || msa_fill_values(flat, msa_int(0)) != 0) return NULL;
    /* One slice of the outermost dimension at a time does not overlap itself unless strides say so: add element rows. */
    int ndim = (int)sizes.n;
    int64_t index[MSA_MAX_DIMS] = {0};
    if (msa_product(sizes) > 0) {
        int64_t inner = ndim ? sizes.data[ndim - 1] : 1, inner_stride = ndim ? strides.data[ndim - 1] : 1;
        for (bool more = true; more;) {
            int64_t at = offset + low, from = grad->offset;
            for (int d = 0; d < ndim - 1; d++) {
                at += index[d] * strides.data[d];
                from += index[d] * grad->strides[d];
            }
            if (inner_stride != 0) {
                msa_auto msa_tensor *to = msa_tensor_view_strided(flat, MSA_INTS(inner), MSA_INTS(inner_stride), at);
                msa_auto msa_tensor *row = ndim ? msa_tensor_view_strided(grad, MSA_INTS(inner), MSA_INTS(grad->strides[ndim - 1]), from)
                                                : msa_tensor_view_strided(grad, MSA_INTS(1), MSA_INTS(1), from);
                msa_auto msa_tensor *sum = to && row ? msa_add_(to, row, msa_int(1)) : NULL;
                if (!sum) return NULL;
            } else {
                msa_auto msa_tensor *to = msa_tensor_view_strided(flat, MSA_INTS(1), MSA_INTS(1), at);
                msa_auto msa_tensor *row = msa_tensor_view_strided(grad, MSA_INTS(inner), MSA_INTS(grad->strides[ndim - 1]), from);
                msa_auto msa_tensor *total = row ? msa_sum(row, MSA_NO_DTYPE) : NULL;
                msa_auto msa_tensor *sum = to && total ? msa_add_(to, total, msa_int(1)) : NULL;
                if (!sum) return NULL;
            }
            more = false;
            for (int d = ndim - 2; d >= 0; d--) {
                if (++index[d] < sizes.data[d]) {
                    more = true;
                    break;
                }
                index[d] = 0;
            }
        }
    }
    return msa_tensor_view_strided(flat, base_sizes, base_strides, low);
}

msa_tensor *as_strided_gradient(msa_tensor *grad, msa_tensor *self, msa_ints size, msa_ints stride, msa_opt_int offset) {
    int64_t relative = offset.has ? offset.v - self->offset : 0;
    return msa_as_strided_backward(grad, msa_sizes(self), msa_strides(self), size, stride, relative);
}

msa_tensor *as_strided_of_dense(msa_tensor *grad, msa_ints base_sizes, msa_ints base_strides, msa_ints sizes,
                                msa_ints strides, int64_t offset) {
    msa_auto msa_tensor *zeros = msa_tensor_new_strided(base_sizes, base_strides, (msa_dtype)grad->dtype);
    msa_auto msa_tensor *whole = zeros ? msa_copy_(zeros, grad, false) : NULL;
    return whole ? msa_as_strided(whole, sizes, strides, (msa_opt_int){true, offset}) : NULL;
}

/* `size` with its -1 worked out. */
static int inferred(const char *op, const msa_tensor *self, msa_ints size, int64_t *out) {
    int64_t known = 1;
    int at = -1;
    if (size.n > MSA_MAX_DIMS) return msa_fail(MSA_RUNTIME_ERROR, "%s: at most %d dimensions are supported", op, MSA_MAX_DIMS);
    for (int64_t i = 0; i < size.n; i++) {
        if (size.data[i] == -1) {
            if (at >= 0) return msa_fail(MSA_RUNTIME_ERROR, "only one dimension can be inferred");
            at = (int)i;
        } else if (size.data[i] < 0) {
            return msa_fail(MSA_RUNTIME_ERROR, "invalid shape dimension %lld", (long long)size.data[i]);
        } else {
            known *= size.data[i];
        }
        out[i] = size.data[i];
    }
    if (at >= 0) {
        if (known == 0 && self->numel == 0)
            return msa_fail(MSA_RUNTIME_ERROR,
                            "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 can "
                            "be any value and is ambiguous", msa_sizes_text(size));
        if (known != 0 && self->numel % known == 0) {
            out[at] = self->numel / known;
            return 0;
        }
    } else if (known == self->numel) {
        return 0;
    }
    return msa_fail(MSA_RUNTIME_ERROR, "shape '%s' is invalid for input of size %lld", msa_sizes_text(size), (long long)self->numel);
}

msa_tensor *view_view(msa_tensor *self, msa_ints size) {
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    if (inferred("view", self, size, sizes) != 0) return NULL;
    if (!msa_view_strides(self, (msa_ints){sizes, size.n}, strides))
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "view size is not compatible with input tensor's size and stride (at least one dimension spans "
                             "across two contiguous subspaces). Use .reshape(...) instead.");
    return view_of(self, self->offset, (int)size.n, sizes, strides);
}

msa_tensor *view_dtype(msa_tensor *self, msa_dtype dtype) {
    size_t from = msa_dtype_size((msa_dtype)self->dtype), to = msa_dtype_size(dtype);
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS], offset = self->offset;
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    memcpy(strides, self->strides, sizeof(int64_t) * self->ndim);
    int last = self->ndim - 1;
    if (from != to) {
        if (self->ndim == 0)
            return msa_fail_null(MSA_RUNTIME_ERROR, "self.dim() cannot be 0 to view %s as %s (different element sizes)",
                                 msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name(dtype));
        if (strides[last] != 1)
            return msa_fail_null(MSA_RUNTIME_ERROR, "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
                                 msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name(dtype), (long long)strides[last]);
        if (from > to) {
            int64_t ratio = (int64_t)(from / to);
            sizes[last] *= ratio;
            offset *= ratio;
            for (int i = 0; i < last; i++) strides[i] *= ratio;
        } else {
            int64_t ratio = (int64_t)(to / from);
            bool fits = sizes[last] % ratio == 0 && offset % ratio == 0;
            for (int i = 0; i < last; i++) fits = fits && strides[i] % ratio == 0;
            if (!fits)
                return msa_fail_null(MSA_RUNTIME_ERROR, "sizes, strides and offset must be divisible by %lld to view %s as %s",
                                     (long long)ratio, msa_dtype_type_name((msa_dtype)self->dtype), msa_dtype_type_name(dtype));
            sizes[last] /= ratio;
            offset /= ratio;
            for (int i = 0; i < last; i++) strides[i] /= ratio;
        }
    }
    if (self->storage->hidden.on && msa_storage_make_plain(self->storage) != 0) return NULL;
    return msa_tensor_over(self->storage, dtype, offset, self->ndim, sizes, strides);
}

msa_tensor *reshape_values(msa_tensor *self, msa_ints shape) {
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    if (inferred("reshape", self, shape, sizes) != 0) return NULL;
    msa_ints wanted = {sizes, shape.n};
    if (msa_view_strides(self, wanted, strides)) return msa_view(self, wanted);
    msa_auto msa_tensor *copy = msa_clone(self, CONTIGUOUS_FORMAT);
    return copy ? msa_view(copy, wanted) : NULL;
}

msa_tensor *expand_view(msa_tensor *self, msa_ints size, bool implicit) {
    if (size.n < self->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "expand(torch.%sTensor{%s}, size=%s): the number of sizes provided (%lld) must be greater or equal "
                             "to the number of dimensions in the tensor (%d)", msa_dtype_type_name((msa_dtype)self->dtype),
                             msa_sizes_text(msa_sizes(self)), msa_sizes_text(size), (long long)size.n, self->ndim);
    if (size.n > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "expand: at most %d dimensions are supported", MSA_MAX_DIMS);
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    int64_t missing = size.n - self->ndim;
    for (int64_t i = 0; i < size.n; i++) {
        int64_t have = i < missing ? 1 : self->sizes[i - missing], want = size.data[i];
        if (want == -1) {
            if (i < missing)
                return msa_fail_null(MSA_RUNTIME_ERROR,
                                     "The expanded size of the tensor (%lld) isn't allowed in a leading, non-existing "
                                     "dimension %lld", (long long)want, (long long)i);
            want = have;
        }
        if (want < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "expand: invalid size %lld", (long long)want);
        if (have != want && have != 1)
            return msa_fail_null(MSA_RUNTIME_ERROR,
                                 "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
                                 "dimension %lld.  Target sizes: %s.  Tensor sizes: %s", (long long)want, (long long)have,
                                 (long long)i, msa_sizes_text(size), msa_sizes_text(msa_sizes(self)));
        sizes[i] = want;
        strides[i] = i < missing || have != want ? 0 : self->strides[i - missing];
    }
    for (int64_t i = missing - 1; i >= 0; i--)
        if (sizes[i] == 1) strides[i] = i + 1 < size.n ? sizes[i + 1] * strides[i + 1] : 1;
    return view_of(self, self->offset, (int)size.n, sizes, strides);
}

msa_tensor *permute_view(msa_tensor *self, msa_ints dims) {
    if (dims.n != self->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                             "desired ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %lld",
                             self->ndim, (long long)dims.n);
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    bool seen[MSA_MAX_DIMS] = {false};
    for (int64_t i = 0; i < dims.n; i++) {
        int d = msa_wrap_dim("permute", dims.data[i], self->ndim);
        if (d < 0) return NULL;
        if (seen[d]) return msa_fail_null(MSA_RUNTIME_ERROR, "permute(): duplicate dims are not allowed.");
        seen[d] = true;
        sizes[i] = self->sizes[d];
        strides[i] = self->strides[d];
    }
    return view_of(self, self->offset, self->ndim, sizes, strides);
}

msa_tensor *transpose_view(msa_tensor *self, int64_t dim0, int64_t dim1) {
    int a = msa_wrap_dim("transpose", dim0, self->ndim), b = msa_wrap_dim("transpose", dim1, self->ndim);
    if (a < 0 || b < 0) return NULL;
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    memcpy(strides, self->strides, sizeof(int64_t) * self->ndim);
    if (self->ndim) {
        sizes[a] = self->sizes[b];
        strides[a] = self->strides[b];
        sizes[b] = self->sizes[a];
        strides[b] = self->strides[a];
    }
    return view_of(self, self->offset, self->ndim, sizes, strides);
}

msa_tensor *t_values(msa_tensor *self) {
    if (self->ndim > 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    return msa_transpose_int(self, 0, self->ndim < 2 ? 0 : 1);
}

msa_tensor *select_view(msa_tensor *self, int64_t dim, int64_t index) {
    if (self->ndim == 0) return msa_fail_null(MSA_INDEX_ERROR, "select() cannot be applied to a 0-dim tensor.");
    int d = msa_wrap_dim("select", dim, self->ndim);
    if (d < 0) return NULL;
    int64_t size = self->sizes[d];
    if (index < -size || index >= size)
        return msa_fail_null(MSA_INDEX_ERROR, "select(): index %lld out of range for tensor of size %s at dimension %lld",
                             (long long)index, msa_sizes_text(msa_sizes(self)), (long long)dim);
    if (index < 0) index += size;
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    for (int i = 0, j = 0; i < self->ndim; i++)
        if (i != d) {
            sizes[j] = self->sizes[i];
            strides[j++] = self->strides[i];
        }
    return view_of(self, self->offset + index * self->strides[d], self->ndim - 1, sizes, strides);
}

msa_tensor *select_backward_cpu(msa_tensor *grad, msa_ints sizes, int64_t dim, int64_t index) {
    msa_auto msa_tensor *whole = zeros_shaped(sizes, (msa_dtype)grad->dtype);
    msa_auto msa_tensor *part = whole ? select_view(whole, dim, index) : NULL;
    return part && msa_copy_values(part, grad) == 0 ? msa_take(whole) : NULL;
}

msa_tensor *slice_view(msa_tensor *self, int64_t dim, msa_opt_int start, msa_opt_int end, int64_t step) {
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "slice() cannot be applied to a 0-dim tensor.");
    int d = msa_wrap_dim("slice", dim, self->ndim);
    if (d < 0) return NULL;
    if (step <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "slice step must be positive");
    int64_t size = self->sizes[d], from = start.has ? start.v : 0, to = end.has ? end.v : size;
    if (from < 0) from += size;
    if (to < 0) to += size;
    if (from < 0) from = 0;
    if (from > size) from = size;
    if (to < from) to = from;
    if (to > size) to = size;
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    memcpy(strides, self->strides, sizeof(int64_t) * self->ndim);
    int64_t length = to - from;
    sizes[d] = length ? 1 + (length - 1) / step : 0;
    strides[d] *= step;
    return view_of(self, self->offset + from * self->strides[d], self->ndim, sizes, strides);
}

msa_tensor *slice_backward_cpu(msa_tensor *grad, msa_ints sizes, int64_t dim, msa_opt_int start, msa_opt_int end, int64_t step) {
    msa_auto msa_tensor *whole = zeros_shaped(sizes, (msa_dtype)grad->dtype);
    msa_auto msa_tensor *part = whole ? slice_view(whole, dim, start, end, step) : NULL;
    return part && msa_copy_values(part, grad) == 0 ? msa_take(whole) : NULL;
}

msa_tensor *narrow_values(msa_tensor *self, int64_t dim, int64_t start, int64_t length) {
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "narrow() cannot be applied to a 0-dim tensor.");
    int d = msa_wrap_dim("narrow", dim, self->ndim);
    if (d < 0) return NULL;
    int64_t size = self->sizes[d];
    if (length < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "narrow(): length must be non-negative.");
    if (start < -size || start > size)
        return msa_fail_null(MSA_INDEX_ERROR, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                             (long long)-size, (long long)size, (long long)start);
    if (start < 0) start += size;
    if (start > size - length)
        return msa_fail_null(MSA_RUNTIME_ERROR, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start,
                             (long long)length, (long long)size);
    return msa_slice_Tensor(self, d, (msa_opt_int){true, start}, (msa_opt_int){true, start + length}, 1);
}

msa_tensor *unsqueeze_view(msa_tensor *self, int64_t dim) {
    int d = msa_wrap_dim("unsqueeze", dim, self->ndim + 1);
    if (d < 0) return NULL;
    if (self->ndim == MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "unsqueeze: at most %d dimensions are supported", MSA_MAX_DIMS);
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    for (int i = 0; i < d; i++) {
        sizes[i] = self->sizes[i];
        strides[i] = self->strides[i];
    }
    sizes[d] = 1;
    strides[d] = d < self->ndim ? self->sizes[d] * self->strides[d] : 1;
    for (int i = d; i < self->ndim; i++) {
        sizes[i + 1] = self->sizes[i];
        strides[i + 1] = self->strides[i];
    }
    return view_of(self, self->offset, self->ndim + 1, sizes, strides);
}

static msa_tensor *squeezed(msa_tensor *self, const bool *drop) {
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < self->ndim; i++)
        if (self->sizes[i] != 1 || !drop[i]) {
            sizes[n] = self->sizes[i];
            strides[n++] = self->strides[i];
        }
    return view_of(self, self->offset, n, sizes, strides);
}

msa_tensor *squeeze_view(msa_tensor *self) {
    bool drop[MSA_MAX_DIMS];
    memset(drop, true, sizeof drop);
    return squeezed(self, drop);
}

msa_tensor *squeeze_dim_view(msa_tensor *self, int64_t dim) {
    int d = msa_wrap_dim("squeeze", dim, self->ndim);
    if (d < 0) return NULL;
    bool drop[MSA_MAX_DIMS] = {false};
    drop[d] = true;
    return squeezed(self, drop);
}

msa_tensor *flatten_values(msa_tensor *self, int64_t start_dim, int64_t end_dim) {
    int from = msa_wrap_dim("flatten", start_dim, self->ndim), to = msa_wrap_dim("flatten", end_dim, self->ndim);
    if (from < 0 || to < 0) return NULL;
    if (from > to) return msa_fail_null(MSA_RUNTIME_ERROR, "flatten() has invalid args: start_dim cannot come after end_dim");
    if (self->ndim == 0) return msa_reshape(self, MSA_INTS(1));
    if (from == to) return msa_tensor_retain(self);
    int64_t sizes[MSA_MAX_DIMS], n = 0;
    for (int i = 0; i < from; i++) sizes[n++] = self->sizes[i];
    int64_t joined = 1;
    for (int i = from; i <= to; i++) joined *= self->sizes[i];
    sizes[n++] = joined;
    for (int i = to + 1; i < self->ndim; i++) sizes[n++] = self->sizes[i];
    return msa_reshape(self, (msa_ints){sizes, n});
}

msa_list *unbind_views(msa_tensor *self, int64_t dim) {
    if (self->ndim == 0) return msa_fail_null(MSA_INDEX_ERROR, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    int d = msa_wrap_dim("unbind", dim, self->ndim);
    if (d < 0) return NULL;
    msa_auto_list msa_list *list = msa_list_new(self->sizes[d]);
    if (!list) return NULL;
    for (int64_t i = 0; i < list->n; i++)
        if (!(list->items[i] = select_view(self, d, i))) return NULL;
    return msa_take(list);
}

static msa_list *pieces(msa_tensor *self, int d, int64_t n, const int64_t *lengths, int64_t each) {
    msa_auto_list msa_list *list = msa_list_new(n);
    if (!list) return NULL;
    for (int64_t i = 0, at = 0; i < n; i++) {
        int64_t length = lengths ? lengths[i] : each;
        list->items[i] = slice_view(self, d, (msa_opt_int){true, at}, (msa_opt_int){true, at + length}, 1);
        if (!list->items[i]) return NULL;
        at += length;
    }
    return msa_take(list);
}

msa_list *split_views(msa_tensor *self, int64_t split_size, int64_t dim) {
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "split expects at least a 1-dimensional tensor");
    int d = msa_wrap_dim("split", dim, self->ndim);
    if (d < 0) return NULL;
    if (split_size < 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "split expects split_size be non-negative, but got split_size=%lld", (long long)split_size);
    int64_t size = self->sizes[d];
    if (split_size == 0 && size != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "split_size can only be 0 if dimension size is 0, but got dimension size of %lld", (long long)size);
    int64_t n = split_size == 0 || size == 0 ? 1 : (size + split_size - 1) / split_size;
    return pieces(self, d, n, NULL, split_size);
}

msa_list *split_sizes_views(msa_tensor *self, msa_ints split_sizes, int64_t dim) {
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "split expects at least a 1-dimensional tensor");
    int d = msa_wrap_dim("split_with_sizes", dim, self->ndim);
    if (d < 0) return NULL;
    int64_t total = 0;
    for (int64_t i = 0; i < split_sizes.n; i++) {
        if (split_sizes.data[i] < 0)
            return msa_fail_null(MSA_RUNTIME_ERROR, "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes=%s",
                                 msa_sizes_text(split_sizes));
        total += split_sizes.data[i];
    }
    if (total != self->sizes[d])
        return msa_fail_null(MSA_RUNTIME_ERROR,
                             "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension %d), "
                             "but got split_sizes=%s", (long long)self->sizes[d], d, msa_sizes_text(split_sizes));
    return pieces(self, d, split_sizes.n, split_sizes.data, 0);
}

msa_list *chunk_values(msa_tensor *self, int64_t chunks, int64_t dim) {
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "chunk expects at least a 1-dimensional tensor");
    if (chunks <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "chunk expects `chunks` to be greater than 0, got: %lld", (long long)chunks);
    int d = msa_wrap_dim("chunk", dim, self->ndim);
    if (d < 0) return NULL;
    int64_t size = self->sizes[d], each = (size + chunks - 1) / chunks;
    if (each == 0) {
        msa_auto_list msa_list *list = msa_list_new(0);
        int64_t *zeros = msa_calloc((size_t)chunks, sizeof *zeros);
        if (!zeros || !list) return NULL;
        msa_list *empty = msa_split_with_sizes(self, (msa_ints){zeros, chunks}, d);
        free(zeros);
        return empty;
    }
    return msa_split_Tensor(self, each, d);
}

/* One gradient over the whole from those of its pieces along d; absent ones are zero. */
msa_tensor *split_gradient(msa_tensors grads, msa_ints sizes, msa_dtype dtype, int64_t dim) {
    int d = msa_wrap_dim("split", dim, (int)sizes.n);
    int64_t missing = sizes.data[d], absent = 0;
    for (int64_t i = 0; i < grads.n; i++) {
        if (grads.data[i]) missing -= grads.data[i]->sizes[d];
        else absent++;
    }
    if (absent == 0) return msa_cat(grads, d);
    /* Piece sizes of absent gradients are all alike but perhaps the last: lay out what is there one by one. */
    msa_auto msa_tensor *whole = zeros_shaped(sizes, dtype);
    if (!whole) return NULL;
    int64_t each = 0;
    for (int64_t i = 0; i + 1 < grads.n; i++)
        if (grads.data[i]) each = grads.data[i]->sizes[d];
    if (!each) each = grads.n > 1 ? (grads.data[grads.n - 1] ? missing / absent : (missing + absent - 1) / absent) : missing;
    for (int64_t i = 0, at = 0; i < grads.n; i++) {
        int64_t length = grads.data[i] ? grads.data[i]->sizes[d] : i + 1 < grads.n ? each : sizes.data[d] - at;
        if (grads.data[i]) {
            msa_auto msa_tensor *part = msa_slice_Tensor(whole, d, (msa_opt_int){true, at}, (msa_opt_int){true, at + length}, 1);
            msa_auto msa_tensor *copied = part ? msa_copy_(part, grads.data[i], false) : NULL;
            if (!copied) return NULL;
        }
        at += length;
    }
    return msa_take(whole);
}

msa_tensor *unbind_gradient(msa_tensors grads, msa_ints sizes, msa_dtype dtype, int64_t dim) {
    int d = msa_wrap_dim("unbind", dim, (int)sizes.n);
    bool all = true;
    for (int64_t i = 0; i < grads.n; i++) all = all && grads.data[i];
    if (all) return msa_stack(grads, d);
    msa_auto msa_tensor *whole = zeros_shaped(sizes, dtype);
    if (!whole) return NULL;
    for (int64_t i = 0; i < grads.n; i++) {
        if (!grads.data[i]) continue;
        msa_auto msa_tensor *part = msa_select_int(whole, d, i);
        msa_auto msa_tensor *copied = part ? msa_copy_(part, grads.data[i], false) : NULL;
        if (!copied) return NULL;
    }
    return msa_take(whole);
}

msa_tensor *view_as_real_view(msa_tensor *self) {
    if (!msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "view_as_real is only supported for complex tensors");
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) {
        sizes[i] = self->sizes[i];
        strides[i] = 2 * self->strides[i];
    }
    sizes[self->ndim] = 2;
    strides[self->ndim] = 1;
    return msa_tensor_over(self->storage, msa_dtype_real((msa_dtype)self->dtype), 2 * self->offset, self->ndim + 1, sizes, strides);
}

msa_tensor *view_as_complex_view(msa_tensor *self) {
    if (self->dtype != MSA_FLOAT32 && self->dtype != MSA_FLOAT64)
        return msa_fail_null(MSA_RUNTIME_ERROR, "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s",
                             msa_dtype_type_name((msa_dtype)self->dtype));
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Input tensor must have one or more dimensions");
    int last = self->ndim - 1;
    if (self->sizes[last] != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "Tensor must have a last dimension of size 2");
    if (self->strides[last] != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "Tensor must have a last dimension with stride 1");
    int64_t strides[MSA_MAX_DIMS];
    for (int i = 0; i < last; i++) {
        if (self->strides[i] % 2 != 0)
            return msa_fail_null(MSA_RUNTIME_ERROR, "Tensor must have a stride divisible by 2 for all but last dimension");
        strides[i] = self->strides[i] / 2;
    }
    if (self->offset % 2 != 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Tensor must have a storage_offset divisible by 2");
    if (self->storage->hidden.on && msa_storage_make_plain(self->storage) != 0) return NULL;
    return msa_tensor_over(self->storage, msa_dtype_complex((msa_dtype)self->dtype), self->offset / 2, last, self->sizes, strides);
}

msa_tensor *real_values(msa_tensor *self) {
    if (!msa_is_complex((msa_dtype)self->dtype)) return msa_tensor_retain(self);
    msa_auto msa_tensor *pairs = msa_view_as_real(self);
    return pairs ? msa_select_int(pairs, -1, 0) : NULL;
}

msa_tensor *imag_values(msa_tensor *self) {
    if (!msa_is_complex((msa_dtype)self->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "imag is not implemented for tensors with non-complex dtypes.");
    msa_auto msa_tensor *pairs = msa_view_as_real(self);
    return pairs ? msa_select_int(pairs, -1, 1) : NULL;
}

msa_tensor *conj_values(msa_tensor *self) {
    return msa_is_complex((msa_dtype)self->dtype) ? msa_conj_physical(self) : msa_tensor_retain(self);
}

/* 1-D tensors without elements are passed over, whatever the others' shapes, as old scripts expect. */
static bool skipped(const msa_tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

msa_tensor *cat_cpu(msa_tensors tensors, int64_t dim) {
    if (tensors.n == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "torch.cat(): expected a non-empty list of Tensors");
    const msa_tensor *model = NULL;
    for (int64_t i = 0; i < tensors.n; i++) {
        if (tensors.data[i]->ndim == 0)
            return msa_fail_null(MSA_RUNTIME_ERROR, "zero-dimensional tensor (at position %lld) cannot be concatenated", (long long)i);
        if (!model && !skipped(tensors.data[i])) model = tensors.data[i];
    }
    msa_dtype dtype = msa_result_type(tensors);
    if (!model) return msa_tensor_new(MSA_INTS(0), dtype);
    int d = msa_wrap_dim("cat", dim, model->ndim);
    if (d < 0) return NULL;
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, model->sizes, sizeof(int64_t) * model->ndim);
    sizes[d] = 0;
    for (int64_t i = 0; i < tensors.n; i++) {
        const msa_tensor *t = tensors.data[i];
        if (skipped(t)) continue;
        if (t->ndim != model->ndim)
            return msa_fail_null(MSA_RUNTIME_ERROR, "Tensors must have same number of dimensions: got %d and %d", model->ndim, t->ndim);
        for (int k = 0; k < t->ndim; k++)
            if (k != d && t->sizes[k] != model->sizes[k])
                return msa_fail_null(MSA_RUNTIME_ERROR,
                                     "Sizes of tensors must match except in dimension %d. Expected size %lld but got size %lld for "
                                     "tensor number %lld in the list.", d, (long long)model->sizes[k], (long long)t->sizes[k], (long long)i);
        sizes[d] += t->sizes[d];
    }
    msa_auto msa_tensor *whole = msa_tensor_new((msa_ints){sizes, model->ndim}, dtype);
    if (!whole) return NULL;
    int64_t at = 0;
    for (int64_t i = 0; i < tensors.n; i++) {
        const msa_tensor *t = tensors.data[i];
        if (skipped(t)) continue;
        sizes[d] = t->sizes[d];
        msa_auto msa_tensor *part = msa_tensor_over(whole->storage, dtype, at * whole->strides[d], t->ndim, sizes, whole->strides);
        if (!part || msa_copy_values(part, t) != 0) return NULL;
        at += t->sizes[d];
    }
    return msa_take(whole);
}

msa_list *cat_gradient(msa_tensor *grad, msa_tensors parts, int64_t dim) {
    msa_auto_list msa_list *list = msa_list_new(parts.n);
    int d = msa_wrap_dim("cat", dim, grad->ndim);
    if (!list || d < 0) return NULL;
    for (int64_t i = 0, at = 0; i < parts.n; i++) {
        const msa_tensor *t = parts.data[i];
        if (skipped(t)) {
            list->items[i] = zeros_shaped(msa_sizes(t), (msa_dtype)t->dtype);
        } else {
            list->items[i] = msa_slice_Tensor(grad, d, (msa_opt_int){true, at}, (msa_opt_int){true, at + t->sizes[d]}, 1);
            at += t->sizes[d];
        }
        if (!list->items[i]) return NULL;
    }
    return msa_take(list);
}

msa_tensor *stack_cpu(msa_tensors tensors, int64_t dim) {
    if (tensors.n == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "stack expects a non-empty TensorList");
    const msa_tensor *first = tensors.data[0];
    int d = msa_wrap_dim("stack", dim, first->ndim + 1);
    if (d < 0) return NULL;
    for (int64_t i = 1; i < tensors.n; i++)
        if (!msa_same_sizes(tensors.data[i], first))
            return msa_fail_null(MSA_RUNTIME_ERROR, "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %lld",
                                 msa_sizes_text(msa_sizes(first)), msa_sizes_text(msa_sizes(tensors.data[i])), (long long)i);
    int64_t sizes[MSA_MAX_DIMS];
    if (first->ndim >= MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "stack: too many dimensions");
    for (int i = 0; i < first->ndim; i++) sizes[i < d ? i : i + 1] = first->sizes[i];
    sizes[d] = tensors.n;
    msa_auto msa_tensor *whole = msa_tensor_new((msa_ints){sizes, first->ndim + 1}, msa_result_type(tensors));
    if (!whole) return NULL;
    for (int64_t i = 0; i < tensors.n; i++) {
        msa_auto msa_tensor *part = select_view(whole, d, i);
        if (!part || msa_copy_values(part, tensors.data[i]) != 0) return NULL;
    }
    return msa_take(whole);
}

msa_tensor *sum_to_size_values(msa_tensor *self, msa_ints size) {
    int64_t dims[MSA_MAX_DIMS], n = 0;
    int64_t missing = self->ndim - size.n;
    bool possible = missing >= 0;
    for (int64_t i = 0; i < self->ndim && possible; i++) {
        int64_t want = i < missing ? 1 : size.data[i - missing];
        possible = want == self->sizes[i] || want == 1;
        if (i < missing || (want == 1 && self->sizes[i] != 1)) dims[n++] = i;
    }
    if (!possible)
        return msa_fail_null(MSA_RUNTIME_ERROR, "size {%s} is not expandable to size {%s}.", msa_sizes_text(size), msa_sizes_text(msa_sizes(self)));
    if (size.n == 0) return msa_sum(self, MSA_NO_DTYPE);
    if (n == 0) return msa_tensor_retain(self);
    msa_auto msa_tensor *sum = msa_sum_dim_IntList(self, (msa_ints){dims, n}, true, MSA_NO_DTYPE);
    if (!sum) return NULL;
    return missing ? msa_reshape(sum, size) : msa_take(sum);
}

msa_tensor *scaled(msa_tensor *grad, msa_scalar alpha) { return multiplied(grad, msa_scalar_conjugated(alpha)); }

msa_tensor *multiplied(msa_tensor *t, msa_scalar alpha) {
    if (msa_scalar_is_one(alpha)) return msa_tensor_retain(t);
    msa_auto msa_tensor *number = msa_wrap_number(alpha);
    return number ? msa_mul(t, number) : NULL;
}
