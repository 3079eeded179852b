/* Composites and gradients of indexing and rearranging, and the tensors that sequences make. */
#include <math.h>
#include <stdlib.h>

#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"
#include "ops/kernels.h"
#include "tensor/convert.h"

msa_tensor *index_put_values(msa_tensor *self, msa_tensors indices, msa_tensor *values, bool accumulate) {
    msa_auto msa_tensor *copy = msa_clone(self, -1);
    return copy ? msa_index_put_(copy, indices, values, accumulate) : NULL;
}

msa_tensor *index_gradient(msa_tensor *grad, msa_ints sizes, msa_dtype dtype, msa_tensors indices) {
    msa_auto msa_tensor *zeros = zeros_shaped(sizes, (msa_dtype)grad->dtype);
    return zeros ? msa_index_put_(zeros, indices, grad, true) : NULL;
}

msa_tensor *zeros_of(msa_tensor *like) {
    return msa_tensor_scalar(msa_int(0), (msa_dtype)like->dtype);
}

msa_tensor *index_select_shaped(msa_tensor *grad, int64_t dim, msa_tensor *index, msa_ints sizes) {
    msa_auto msa_tensor *selected = msa_index_select(grad, dim, index);
    return selected ? msa_reshape(selected, sizes) : NULL;
}

msa_tensor *index_select_gradient(msa_tensor *grad, msa_ints sizes, int64_t dim, msa_tensor *index) {
    msa_auto msa_tensor *zeros = zeros_shaped(sizes, (msa_dtype)grad->dtype);
    return zeros ? msa_index_add(zeros, dim, index, grad, msa_int(1)) : NULL;
}

msa_tensor *masked_select_gradient(msa_tensor *grad, msa_ints sizes, msa_tensor *mask) {
    int64_t shape[MSA_MAX_DIMS];
    int ndim;
    if (msa_broadcast_sizes("masked_select", sizes, msa_sizes(mask), shape, &ndim) != 0) return NULL;
    msa_auto msa_tensor *zeros = zeros_shaped((msa_ints){shape, ndim}, (msa_dtype)grad->dtype);
    msa_auto msa_tensor *wide = msa_expand(mask, (msa_ints){shape, ndim}, false);
    msa_auto msa_tensor *flags = wide ? msa_to_dtype(wide, MSA_BOOL, false, false, -1) : NULL;
    if (ndim == 0) {
        msa_auto msa_tensor *one = msa_reshape(grad, MSA_INTS(grad->numel));
        return one ? msa_sum(one, MSA_NO_DTYPE) : NULL;
    }
    return zeros && flags ? msa_index_put_(zeros, MSA_TENSORS(flags), grad, false) : NULL;
}

msa_tensor *take_gradient(msa_tensor *grad, msa_ints sizes, msa_tensor *index) {
    int64_t numel = msa_product(sizes);
    msa_auto msa_tensor *zeros = zeros_shaped(MSA_INTS(numel), (msa_dtype)grad->dtype);
    msa_auto msa_tensor *places = msa_reshape(index, MSA_INTS(-1)), *values = msa_reshape(grad, MSA_INTS(-1));
    msa_auto msa_tensor *sum = zeros && places && values ? msa_index_put_(zeros, MSA_TENSORS(places), values, true) : NULL;
    return sum ? msa_reshape(sum, sizes) : NULL;
}

msa_tensor *take_along_dim_values(msa_tensor *self, msa_tensor *indices, msa_opt_int dim) {
    if (!dim.has) {
        msa_auto msa_tensor *flat = msa_reshape(self, MSA_INTS(-1)), *places = msa_reshape(indices, MSA_INTS(-1));
        return flat && places ? msa_gather(flat, 0, places, false) : NULL;
    }
    int d = msa_wrap_dim("take_along_dim", dim.v, self->ndim);
    if (d < 0) return NULL;
    if (indices->dtype != MSA_INT64)
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.take_along_dim(): dtype of indices should be Long but got %s", msa_dtype_type_name((msa_dtype)indices->dtype));
    if (self->ndim != indices->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR, "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d dimensions for input, and %d dimensions for indices",
                             self->ndim, indices->ndim);
    int64_t ours[MSA_MAX_DIMS], theirs[MSA_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) {
        int64_t a = self->sizes[i], b = indices->sizes[i];
        if (i != d && a != b && a != 1 && b != 1)
            return msa_fail_null(MSA_RUNTIME_ERROR, "torch.take_along_dim(): sizes %lld and %lld do not broadcast at dimension %d", (long long)a, (long long)b, i);
        ours[i] = i == d ? a : a == 1 ? b : a;
        theirs[i] = i == d ? b : ours[i];
    }
    msa_auto msa_tensor *values = msa_expand(self, (msa_ints){ours, self->ndim}, false);
    msa_auto msa_tensor *places = msa_expand(indices, (msa_ints){theirs, self->ndim}, false);
    return values && places ? msa_gather(values, d, places, false) : NULL;
}

/* Rearranging. */

#define REVERSE(T) \
    do { \
        for (int64_t j = 0; j < n; j++) ((T *)to)[j] = ((const T *)from)[(n - 1 - j) * step]; \
    } while (0)

typedef struct {
    uint64_t half[2];
} sixteen_bytes;

/* to[j] = from[(n - 1 - j) * step] */
static void reverse_row(char *to, const char *from, int64_t n, int64_t step, int64_t size) {
    switch (size) {
    case 1: REVERSE(uint8_t); break;
    case 2: REVERSE(uint16_t); break;
    case 4: REVERSE(uint32_t); break;
    case 8: REVERSE(uint64_t); break;
    default: REVERSE(sixteen_bytes); break;
    }
}

/* Negative strides exist in no tensor; here for one copy, row by row of the last dimension. */
static msa_tensor *flipped_view(msa_tensor *self, const bool *flip, msa_tensor *out) {
    const char *from = msa_data(self);
    if (!from || !out->numel) return out;
    const msa_dtype dtype = (msa_dtype)self->dtype;
    const int last = self->ndim - 1;
    const int64_t size = (int64_t)msa_dtype_size(dtype), n = self->ndim ? self->sizes[last] : 1, step = self->ndim ? self->strides[last] : 1;
    int64_t index[MSA_MAX_DIMS] = {0};
    char *to = out->storage->data;
    for (int64_t row = 0; row < out->numel / n; row++, to += n * size) {
        int64_t at = 0;
        for (int d = 0; d < last; d++) at += (flip[d] ? self->sizes[d] - 1 - index[d] : index[d]) * self->strides[d];
        if (self->ndim && flip[last]) reverse_row(to, from + at * size, n, step, size);
        else msa_convert(dtype, to, 1, dtype, from + at * size, step, n);
        for (int d = last - 1; d >= 0 && ++index[d] == self->sizes[d]; d--) index[d] = 0;
    }
    return out;
}

msa_tensor *flip_cpu(msa_tensor *self, msa_ints dims) {
    bool flip[MSA_MAX_DIMS] = {false};
    for (int64_t i = 0; i < dims.n; i++) {
        int d = msa_wrap_dim("flip", dims.data[i], self->ndim);
        if (d < 0) return NULL;
        if (flip[d]) return msa_fail_null(MSA_RUNTIME_ERROR, "dim %d appears multiple times in the list of dims", d);
        flip[d] = true;
    }
    msa_tensor *out = msa_tensor_new(msa_sizes(self), (msa_dtype)self->dtype);
    return out ? flipped_view(self, flip, out) : NULL;
}

msa_tensor *fliplr_values(msa_tensor *self) {
    if (self->ndim < 2) return msa_fail_null(MSA_RUNTIME_ERROR, "Input must be >= 2-d.");
    return msa_flip(self, MSA_INTS(1));
}

msa_tensor *flipud_values(msa_tensor *self) {
    if (self->ndim < 1) return msa_fail_null(MSA_RUNTIME_ERROR, "Input must be >= 1-d.");
    return msa_flip(self, MSA_INTS(0));
}

static msa_tensor *roll_one(msa_tensor *self, int64_t shift, int64_t dim) {
    int d = msa_wrap_dim("roll", dim, self->ndim);
    if (d < 0) return NULL;
    int64_t size = self->ndim ? self->sizes[d] : 1;
    if (self->numel == 0 || self->ndim == 0) return msa_clone_values(self);
    int64_t start = ((-shift) % size + size) % size;
    msa_auto msa_tensor *head = msa_narrow(self, d, 0, start), *tail = msa_narrow(self, d, start, size - start);
    return head && tail ? cat_cpu(MSA_TENSORS(tail, head), d) : NULL;
}

msa_tensor *roll_cpu(msa_tensor *self, msa_ints shifts, msa_ints dims) {
    if (shifts.n <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "`shifts` required");
    if (dims.n <= 0 && shifts.n == 1) {
        msa_auto msa_tensor *flat = msa_reshape(self, MSA_INTS(self->numel));
        msa_auto msa_tensor *rolled = flat ? roll_one(flat, shifts.data[0], 0) : NULL;
        return rolled ? msa_reshape(rolled, msa_sizes(self)) : NULL;
    }
    if (shifts.n != dims.n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "shifts and dimensions must align. shifts: %lld, dims:%lld", (long long)shifts.n, (long long)dims.n);
    msa_auto msa_tensor *t = msa_tensor_retain(self);
    for (int64_t i = 0; i < dims.n; i++) {
        msa_tensor *next = roll_one(t, shifts.data[i], dims.data[i]);
        if (!next) return NULL;
        msa_tensor_release(t);
        t = next;
    }
    return msa_take(t);
}

msa_tensor *roll_back(msa_tensor *grad, msa_ints shifts, msa_ints dims) {
    int64_t back[MSA_MAX_DIMS];
    for (int64_t i = 0; i < shifts.n && i < MSA_MAX_DIMS; i++) back[i] = -shifts.data[i];
    return msa_roll(grad, (msa_ints){back, shifts.n}, dims);
}

msa_tensor *repeat_cpu(msa_tensor *self, msa_ints repeats) {
    if (repeats.n < self->ndim)
        return msa_fail_null(MSA_RUNTIME_ERROR, "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    if (repeats.n > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "repeat: at most %d dimensions are supported", MSA_MAX_DIMS);
    int64_t sizes[MSA_MAX_DIMS], lead = repeats.n - self->ndim;
    for (int64_t i = 0; i < repeats.n; i++) {
        if (repeats.data[i] < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Trying to create tensor with negative dimension %lld", (long long)repeats.data[i]);
        sizes[i] = (i < lead ? 1 : self->sizes[i - lead]) * repeats.data[i];
    }
    msa_auto msa_tensor *out = msa_tensor_new((msa_ints){sizes, repeats.n}, (msa_dtype)self->dtype);
    if (!out || !out->numel) return msa_take(out);
    /* The result seen with a dimension for each repetition: self broadcast over those. */
    int64_t split[2 * MSA_MAX_DIMS], strides[2 * MSA_MAX_DIMS];
    int n = 0;
    for (int64_t i = 0; i < repeats.n; i++) {
        int64_t own = i < lead ? 1 : self->sizes[i - lead];
        if (repeats.data[i] != 1) {
            split[n] = repeats.data[i];
            strides[n++] = own * out->strides[i];
        }
        split[n] = own;
        strides[n++] = out->strides[i];
    }
    if (n > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "repeat: too many dimensions");
    int64_t from_strides[2 * MSA_MAX_DIMS];
    n = 0;
    for (int64_t i = 0; i < repeats.n; i++) {
        if (repeats.data[i] != 1) from_strides[n++] = 0;
        from_strides[n++] = i < lead ? 0 : self->strides[i - lead];
    }
    msa_auto msa_tensor *to = msa_tensor_over(out->storage, (msa_dtype)out->dtype, 0, n, split, strides);
    if (!to || !msa_data(self)) return NULL;
    msa_auto msa_tensor *from = msa_tensor_over(self->storage, (msa_dtype)self->dtype, self->offset, n, split, from_strides);
    return from && msa_copy_values(to, from) == 0 ? msa_take(out) : NULL;
}

msa_tensor *repeat_gradient(msa_tensor *grad, msa_ints sizes, msa_ints repeats) {
    int64_t split[2 * MSA_MAX_DIMS], reduced[MSA_MAX_DIMS], lead = repeats.n - sizes.n;
    int n = 0, k = 0;
    if (msa_product(repeats) == 0) return zeros_shaped(sizes, (msa_dtype)grad->dtype);
    for (int64_t i = 0; i < repeats.n; i++) {
        reduced[k++] = n;
        split[n++] = repeats.data[i];
        if (i >= lead) split[n++] = sizes.data[i - lead];
    }
    if (n > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "repeat: too many dimensions");
    msa_auto msa_tensor *wide = msa_reshape(grad, (msa_ints){split, n});
    return !wide ? NULL : k ? msa_sum_dim_IntList(wide, (msa_ints){reduced, k}, false, MSA_NO_DTYPE) : msa_take(wide);
}

msa_tensor *tile_values(msa_tensor *self, msa_ints dims) {
    int64_t repeats[MSA_MAX_DIMS], lead = self->ndim > dims.n ? self->ndim - dims.n : 0;
    if (dims.n + lead > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "tile: too many dimensions");
    for (int64_t i = 0; i < lead; i++) repeats[i] = 1;
    for (int64_t i = 0; i < dims.n; i++) repeats[lead + i] = dims.data[i];
    return msa_repeat(self, (msa_ints){repeats, dims.n + lead});
}

/* The part of every matrix on one side of a diagonal; the rest zero. */
static msa_tensor *triangle(const char *op, msa_tensor *self, int64_t diagonal, bool lower) {
    if (self->ndim < 2) return msa_fail_null(MSA_RUNTIME_ERROR, "%s: input tensor must have at least 2 dimensions", op);
    msa_auto msa_tensor *out = msa_tensor_new(msa_sizes(self), (msa_dtype)self->dtype);
    if (!out || msa_copy_values(out, self) != 0) return NULL;
    int64_t rows = self->sizes[self->ndim - 2], columns = self->sizes[self->ndim - 1], size = (int64_t)msa_dtype_size((msa_dtype)self->dtype);
    char *p = out->storage->data;
    int64_t each = rows * columns, matrices = each > 0 ? out->numel / each : 0;
    for (int64_t k = 0; k < matrices; k++)
        for (int64_t r = 0; r < rows; r++, p += columns * size) {
            int64_t edge = r + diagonal + (lower ? 1 : 0);
            edge = edge < 0 ? 0 : edge > columns ? columns : edge;
            if (lower) memset(p + edge * size, 0, (size_t)((columns - edge) * size));
            else memset(p, 0, (size_t)(edge * size));
        }
    return msa_take(out);
}

msa_tensor *tril_cpu(msa_tensor *self, int64_t diagonal) { return triangle("tril", self, diagonal, true); }
msa_tensor *triu_cpu(msa_tensor *self, int64_t diagonal) { return triangle("triu", self, diagonal, false); }

msa_tensor *diagonal_view(msa_tensor *self, int64_t offset, int64_t dim1, int64_t dim2) {
    int a = msa_wrap_dim("diagonal", dim1, self->ndim), b = msa_wrap_dim("diagonal", dim2, self->ndim);
    if (a < 0 || b < 0) return NULL;
    if (a == b) return msa_fail_null(MSA_RUNTIME_ERROR, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
    int64_t rows = self->sizes[a], columns = self->sizes[b], length = offset >= 0 ? columns - offset : rows + offset;
    int64_t limit = offset >= 0 ? rows : columns;
    if (length > limit) length = limit;
    if (length < 0) length = 0;
    int64_t start = self->offset + (length == 0 ? 0 : offset >= 0 ? offset * self->strides[b] : -offset * self->strides[a]);
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < self->ndim; d++)
        if (d != a && d != b) {
            sizes[n] = self->sizes[d];
            strides[n++] = self->strides[d];
        }
    sizes[n] = length;
    strides[n++] = self->strides[a] + self->strides[b];
    if (self->storage->hidden.on && msa_storage_make_plain(self->storage) != 0) return NULL;
    return msa_tensor_over(self->storage, (msa_dtype)self->dtype, start, n, sizes, strides);
}

msa_tensor *diagonal_gradient(msa_tensor *grad, msa_ints sizes, int64_t offset, int64_t dim1, int64_t dim2) {
    msa_auto msa_tensor *zeros = zeros_shaped(sizes, (msa_dtype)grad->dtype);
    msa_auto msa_tensor *line = zeros ? msa_diagonal(zeros, offset, dim1, dim2) : NULL;
    msa_auto msa_tensor *copied = line ? msa_copy_(line, grad, false) : NULL;
    return copied ? msa_take(zeros) : NULL;
}

msa_tensor *diag_embed_cpu(msa_tensor *self, int64_t offset, int64_t dim1, int64_t dim2) {
    int ndim = self->ndim + 1;
    int a = msa_wrap_dim("diag_embed", dim1, ndim), b = msa_wrap_dim("diag_embed", dim2, ndim);
    if (a < 0 || b < 0) return NULL;
    if (self->ndim == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "diag_embed: input must have at least one dimension");
    if (a == b) return msa_fail_null(MSA_RUNTIME_ERROR, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
    int64_t side = self->sizes[self->ndim - 1] + (offset < 0 ? -offset : offset), sizes[MSA_MAX_DIMS];
    for (int d = 0, k = 0; d < ndim; d++) sizes[d] = d == a || d == b ? side : self->sizes[k++];
    msa_auto msa_tensor *out = zeros_shaped((msa_ints){sizes, ndim}, (msa_dtype)self->dtype);
    msa_auto msa_tensor *line = out ? diagonal_view(out, offset, a, b) : NULL;
    return line && msa_copy_values(line, self) == 0 ? msa_take(out) : NULL;
}

msa_tensor *diag_values(msa_tensor *self, int64_t diagonal) {
    if (self->ndim == 1) return msa_diag_embed(self, diagonal, -2, -1);
    if (self->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "diag(): Supports 1D or 2D tensors. Got %dD", self->ndim);
    msa_auto msa_tensor *line = msa_diagonal(self, diagonal, 0, 1);
    return line ? msa_clone(line, 0) : NULL;
}

msa_tensor *trace_values(msa_tensor *self) {
    if (self->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "trace: expected a matrix, but got tensor with dim %d", self->ndim);
    msa_auto msa_tensor *line = msa_diagonal(self, 0, 0, 1);
    return line ? msa_sum(line, MSA_NO_DTYPE) : NULL;
}

/* unfold: windows of `size` along a dimension, `step` apart, as a view with a dimension more. */
static int unfolded(msa_ints sizes, int64_t dimension, int64_t size, int64_t step, int64_t *out) {
    int d = msa_wrap_dim("unfold", dimension, (int)sizes.n);
    if (d < 0) return -1;
    int64_t have = sizes.n ? sizes.data[d] : 1;
    if (size < 0 || size > have)
        return msa_fail(MSA_RUNTIME_ERROR, "maximum size for tensor at dimension %d is %lld but size is %lld", d, (long long)have, (long long)size);
    if (step <= 0) return msa_fail(MSA_RUNTIME_ERROR, "step is %lld but must be > 0", (long long)step);
    for (int64_t i = 0; i < sizes.n; i++) out[i] = sizes.data[i];
    if (sizes.n) out[d] = (have - size) / step + 1;
    out[sizes.n] = size;
    return d;
}

msa_tensor *unfold_view(msa_tensor *self, int64_t dimension, int64_t size, int64_t step) {
    int64_t sizes[MSA_MAX_DIMS + 1], strides[MSA_MAX_DIMS + 1];
    int d = unfolded(msa_sizes(self), dimension, size, step, sizes);
    if (d < 0) return NULL;
    if (self->ndim + 1 > MSA_MAX_DIMS) return msa_fail_null(MSA_RUNTIME_ERROR, "unfold: too many dimensions");
    memcpy(strides, self->strides, sizeof(int64_t) * self->ndim);
    strides[self->ndim] = self->ndim ? self->strides[d] : 1;
    if (self->ndim) strides[d] *= step;
    if (self->storage->hidden.on && msa_storage_make_plain(self->storage) != 0) return NULL;
    return msa_tensor_over(self->storage, (msa_dtype)self->dtype, self->offset, self->ndim + 1, sizes, strides);
}

static _Thread_local int64_t ints_ring[3][MSA_MAX_DIMS + 1]; /* what the next three live till the call that takes them */

msa_ints contiguous_strides_of(msa_ints sizes) {
    msa_contiguous_strides((int)sizes.n, sizes.data, ints_ring[0]);
    return (msa_ints){ints_ring[0], sizes.n};
}

msa_ints unfolded_sizes(msa_ints sizes, int64_t dimension, int64_t size, int64_t step) {
    unfolded(sizes, dimension, size, step, ints_ring[1]);
    return (msa_ints){ints_ring[1], sizes.n + 1};
}

msa_ints unfolded_strides(msa_ints sizes, int64_t dimension, int64_t size, int64_t step) {
    int d = msa_wrap_dim("unfold", dimension, (int)sizes.n);
    msa_contiguous_strides((int)sizes.n, sizes.data, ints_ring[2]);
    ints_ring[2][sizes.n] = sizes.n ? ints_ring[2][d] : 1;
    if (sizes.n) ints_ring[2][d] *= step;
    return (msa_ints){ints_ring[2], sizes.n + 1};
}

msa_tensor *movedim_list(msa_tensor *self, msa_ints source, msa_ints destination) {
    if (source.n != destination.n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "movedim: Invalid source or destination dims: source (%s dims) should contain the same number of dims as destination (%s dims)",
                             msa_sizes_text(source), msa_sizes_text(destination));
    int64_t order[MSA_MAX_DIMS];
    bool from[MSA_MAX_DIMS] = {false}, to[MSA_MAX_DIMS] = {false};
    for (int64_t i = 0; i < source.n; i++) {
        int s = msa_wrap_dim("movedim", source.data[i], self->ndim), t = msa_wrap_dim("movedim", destination.data[i], self->ndim);
        if (s < 0 || t < 0) return NULL;
        if (from[s]) return msa_fail_null(MSA_RUNTIME_ERROR, "movedim: repeated dim in `source` (%s)", msa_sizes_text(source));
        if (to[t]) return msa_fail_null(MSA_RUNTIME_ERROR, "movedim: repeated dim in `destination` (%s)", msa_sizes_text(destination));
        from[s] = to[t] = true;
        order[t] = s;
    }
    if (self->ndim == 0) return msa_alias(self);
    for (int t = 0, s = 0; t < self->ndim; t++) {
        if (to[t]) continue;
        while (from[s]) s++;
        order[t] = s++;
    }
    return msa_permute(self, (msa_ints){order, self->ndim});
}

msa_tensor *movedim_one(msa_tensor *self, int64_t source, int64_t destination) {
    return movedim_list(self, MSA_INTS(source), MSA_INTS(destination));
}

/* Each of 0..n-1 as often as "repeats", contiguous int64 with n elements or one, says. */
static msa_tensor *repeat_index(const msa_tensor *repeats, int64_t n, msa_opt_int output_size) {
    const int64_t *p = msa_data(repeats);
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t r = p[repeats->numel == 1 ? 0 : i];
        if (r < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "repeats can not be negative");
        if (__builtin_add_overflow(total, r, &total)) return msa_fail_null(MSA_RUNTIME_ERROR, "repeat_interleave: the repeats add up to too many elements");
    }
    if (output_size.has && output_size.v != total)
        return msa_fail_null(MSA_RUNTIME_ERROR, "repeat_interleave: allocated size does not match required size");
    msa_tensor *index = msa_tensor_new(MSA_INTS(total), MSA_INT64);
    int64_t *to = index ? index->storage->data : NULL;
    for (int64_t i = 0; to && i < n; i++)
        for (int64_t r = p[repeats->numel == 1 ? 0 : i]; r > 0; r--) *to++ = i;
    return index;
}

static msa_tensor *repeat_counts(msa_tensor *repeats) {
    if (repeats->dtype != MSA_INT64 && repeats->dtype != MSA_INT32)
        return msa_fail_null(MSA_RUNTIME_ERROR, "repeats has to be Long or Int tensor");
    if (repeats->ndim > 1) return msa_fail_null(MSA_RUNTIME_ERROR, "repeats must be 0-dim or 1-dim tensor");
    msa_auto msa_tensor *wide = msa_cast_values(repeats, MSA_INT64);
    return wide ? msa_contiguous_values(wide) : NULL;
}

msa_tensor *repeat_interleave_counts(msa_tensor *repeats, msa_opt_int output_size) {
    if (repeats->ndim != 1) return msa_fail_null(MSA_RUNTIME_ERROR, "repeat_interleave only accept 1D vector as repeat");
    msa_auto msa_tensor *counts = repeat_counts(repeats), *index = counts ? repeat_index(counts, counts->numel, output_size) : NULL;
    return index ? msa_cast_values(index, repeats->dtype) : NULL;
}

msa_tensor *repeat_interleave_tensor(msa_tensor *self, msa_tensor *repeats, msa_opt_int dim, msa_opt_int output_size) {
    msa_auto msa_tensor *counts = repeat_counts(repeats);
    msa_auto msa_tensor *source = !counts ? NULL : dim.has ? msa_tensor_retain(self) : msa_reshape(self, MSA_INTS(-1));
    if (!source) return NULL;
    int d = msa_wrap_dim("repeat_interleave", dim.has ? dim.v : 0, source->ndim);
    if (d < 0) return NULL;
    int64_t n = source->ndim ? source->sizes[d] : 1;
    if (counts->numel != 1 && counts->numel != n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "repeats must have the same size as input along dim, but got repeats.size(0) = %lld and input.size(%d) = %lld",
                             (long long)counts->numel, d, (long long)n);
    msa_auto msa_tensor *index = repeat_index(counts, n, output_size);
    if (!index) return NULL;
    if (source->ndim == 0) {
        msa_auto msa_tensor *line = msa_reshape(source, MSA_INTS(1));
        return line ? msa_index_select(line, 0, index) : NULL;
    }
    return msa_index_select(source, d, index);
}

msa_tensor *repeat_interleave_int(msa_tensor *self, int64_t repeats, msa_opt_int dim, msa_opt_int output_size) {
    msa_auto msa_tensor *count = msa_tensor_scalar(msa_int(repeats), MSA_INT64);
    return count ? repeat_interleave_tensor(self, count, dim, output_size) : NULL;
}

/* Sequences. */

static double number(msa_scalar s) { return msa_scalar_double(s); }

msa_tensor *arange_cpu(msa_scalar start, msa_scalar end, msa_scalar step, msa_dtype dtype) {
    bool integral = start.kind < MSA_FLOAT16 && end.kind < MSA_FLOAT16 && step.kind < MSA_FLOAT16;
    if (dtype == MSA_NO_DTYPE) dtype = integral ? MSA_INT64 : msa_default_dtype();
    double a = number(start), b = number(end), s = number(step);
    if (s == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "step must be nonzero");
    if (!isfinite(a) || !isfinite(b)) return msa_fail_null(MSA_RUNTIME_ERROR, "unsupported range: %g -> %g", a, b);
    if ((s > 0 && b < a) || (s < 0 && b > a)) return msa_fail_null(MSA_RUNTIME_ERROR, "upper bound and larger bound inconsistent with step sign");
    /* In int64 all three are made integers first; narrower results count the steps between the numbers as given. */
    if (dtype == MSA_INT64 && msa_scalar_int(step) == 0) return msa_fail_null(MSA_RUNTIME_ERROR, "step must be nonzero");
    double length = dtype == MSA_INT64 ? ceil((double)(msa_scalar_int(end) - msa_scalar_int(start)) / (double)msa_scalar_int(step)) : ceil((b - a) / s);
    if (!(length >= 0 && length < 9e15)) return msa_fail_null(MSA_RUNTIME_ERROR, "invalid size, possible overflow?");
    int64_t n = (int64_t)length;
    bool whole = msa_is_integral(dtype, true);
    msa_auto msa_tensor *wide = msa_tensor_new(MSA_INTS(n), whole ? MSA_INT64 : MSA_FLOAT64);
    if (!wide) return NULL;
    if (whole) {
        int64_t first = msa_scalar_int(start), by = msa_scalar_int(step);
        for (int64_t i = 0; i < n; i++) ((int64_t *)wide->storage->data)[i] = first + i * by;
    } else {
        for (int64_t i = 0; i < n; i++) ((double *)wide->storage->data)[i] = a + (double)i * s;
    }
    return msa_cast_values(wide, dtype);
}

msa_tensor *arange_end_cpu(msa_scalar end, msa_dtype dtype) { return arange_cpu(msa_int(0), end, msa_int(1), dtype); }

/* Values as PyTorch 1.12 and 1.13 make them with AVX2, on every machine: in vectors that begin at a value rounded to the type, two at a time,
 * and one by one at the end; from both ends, so that both are exact. p holds doubles; "dtype" says how they are rounded. */
static double linspace_value(double from, double step, double times, msa_dtype dtype) {
    if (dtype == MSA_FLOAT32) return (double)fmaf((float)step, (float)times, (float)from);
    return dtype == MSA_FLOAT64 ? fma(step, times, from) : trunc(from + step * times);
}

static double linspace_lane(double first, double step, int64_t k, msa_dtype dtype) {
    if (dtype == MSA_FLOAT32) {
        const float by = (float)step * (float)k;
        return (double)((float)first + by);
    }
    const double value = first + step * (double)k;
    return dtype == MSA_FLOAT64 ? value : trunc(value);
}

static void linspace_vectors(double *p, int64_t steps, double start, double end, double step, msa_dtype dtype) {
    const int64_t half = steps / 2, lanes = 32 / (int64_t)msa_dtype_size(dtype);
    int64_t i = 0;
    for (; i + 2 * lanes <= steps; i += lanes * 2)
        for (int64_t v = i; v < i + 2 * lanes; v += lanes) {
            const double first = v < half ? linspace_value(start, step, (double)v, dtype) : linspace_value(end, -step, (double)(steps - v - 1), dtype);
            for (int64_t k = 0; k < lanes; k++) p[v + k] = linspace_lane(first, step, k, dtype);
        }
    for (; i < steps; i++)
        p[i] = i < half || steps == 1 ? linspace_value(start, step, (double)i, dtype) : linspace_value(end, -step, (double)(steps - i - 1), dtype);
}

msa_tensor *linspace_cpu(msa_scalar start, msa_scalar end, int64_t steps, msa_dtype dtype) {
    if (steps < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "number of steps must be non-negative");
    bool complex = start.kind == MSA_COMPLEX128 || end.kind == MSA_COMPLEX128;
    if (dtype == MSA_NO_DTYPE) dtype = complex ? msa_dtype_complex(msa_default_dtype()) : msa_default_dtype();
    msa_auto msa_tensor *wide = msa_tensor_new(MSA_INTS(steps), complex ? MSA_COMPLEX128 : MSA_FLOAT64);
    if (!wide) return NULL;
    double re[2] = {number(start), number(end)}, im[2] = {start.kind == MSA_COMPLEX128 ? start.im : 0, end.kind == MSA_COMPLEX128 ? end.im : 0};
    double *p = wide->storage->data;
    int64_t half = steps / 2;
    double over = steps > 1 ? (double)(steps - 1) : 1;
    if (msa_is_integral(dtype, true)) { /* the ends are made integers first */
        re[0] = trunc(re[0]);
        re[1] = trunc(re[1]);
    }
    /* In float the step is a float's, as PyTorch has it. */
    double step = (re[1] - re[0]) / over, step_im = (im[1] - im[0]) / over;
    if (dtype == MSA_FLOAT32) step = (double)(((float)re[1] - (float)re[0]) / (float)over);
    if (!complex && (msa_is_integral(dtype, false) || dtype == MSA_FLOAT32 || dtype == MSA_FLOAT64)) {
        linspace_vectors(p, steps, re[0], re[1], step, dtype);
        return msa_cast_values(wide, dtype);
    }
    for (int64_t i = 0; i < steps; i++) {
        bool front = i < half || steps == 1;
        double x = front ? re[0] + step * (double)i : re[1] - step * (double)(steps - 1 - i);
        if (complex) {
            p[2 * i] = x;
            p[2 * i + 1] = front ? im[0] + step_im * (double)i : im[1] - step_im * (double)(steps - 1 - i);
        } else {
            p[i] = x;
        }
    }
    return msa_cast_values(wide, dtype);
}

msa_tensor *logspace_cpu(msa_scalar start, msa_scalar end, int64_t steps, double base, msa_dtype dtype) {
    if (steps < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "number of steps must be non-negative");
    if (dtype == MSA_NO_DTYPE) dtype = msa_default_dtype();
    if (msa_is_integral(dtype, true)) { /* as in linspace */
        start = msa_int(msa_scalar_int(start));
        end = msa_int(msa_scalar_int(end));
    }
    msa_auto msa_tensor *wide = linspace_cpu(start, end, steps, MSA_FLOAT64);
    if (!wide) return NULL;
    double *p = wide->storage->data;
    for (int64_t i = 0; i < steps; i++) p[i] = pow(base, p[i]);
    return msa_cast_values(wide, dtype);
}

msa_tensor *eye_cpu(int64_t n, int64_t m, msa_dtype dtype) {
    if (n < 0 || m < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "%s must be greater or equal to 0, got %lld", n < 0 ? "n" : "m", (long long)(n < 0 ? n : m));
    msa_auto msa_tensor *t = zeros_shaped(MSA_INTS(n, m), dtype == MSA_NO_DTYPE ? msa_default_dtype() : dtype);
    msa_auto msa_tensor *line = t ? diagonal_view(t, 0, 0, 1) : NULL;
    return line && msa_fill_values(line, msa_int(1)) == 0 ? msa_take(t) : NULL;
}

msa_tensor *eye_square_cpu(int64_t n, msa_dtype dtype) { return eye_cpu(n, n, dtype); }

static msa_tensor *triangle_indices(int64_t row, int64_t col, int64_t offset, msa_dtype dtype, bool lower) {
    if (row < 0 || col < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "row and col must be non-negative, got %lld and %lld", (long long)row, (long long)col);
    int64_t n = 0;
    for (int pass = 0;; pass++) {
        msa_auto msa_tensor *t = pass ? msa_tensor_new(MSA_INTS(2, n), MSA_INT64) : NULL;
        int64_t *p = t ? t->storage->data : NULL, k = 0;
        if (pass && !t) return NULL;
        for (int64_t r = 0; r < row; r++)
            for (int64_t c = 0; c < col; c++)
                if (lower ? c <= r + offset : c >= r + offset) {
                    if (p) {
                        p[k] = r;
                        p[n + k] = c;
                    }
                    k++;
                }
        n = k;
        if (pass) return msa_cast_values(t, dtype == MSA_NO_DTYPE ? MSA_INT64 : dtype);
    }
}

msa_tensor *tril_indices_cpu(int64_t row, int64_t col, int64_t offset, msa_dtype dtype) { return triangle_indices(row, col, offset, dtype, true); }
msa_tensor *triu_indices_cpu(int64_t row, int64_t col, int64_t offset, msa_dtype dtype) { return triangle_indices(row, col, offset, dtype, false); }

msa_tensor *bincount_cpu(msa_tensor *self, msa_tensor *weights, int64_t minlength) {
    if (minlength < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "minlength should be >= 0");
    if (self->ndim != 1 || !msa_is_integral((msa_dtype)self->dtype, false)) return msa_fail_null(MSA_RUNTIME_ERROR, "bincount only supports 1-d non-negative integral inputs.");
    if (weights && (weights->ndim != 1 || weights->sizes[0] != self->sizes[0])) return msa_fail_null(MSA_RUNTIME_ERROR, "weights should be 1-d and have the same length as input");
    msa_auto msa_tensor *wide = msa_cast_values(self, MSA_INT64), *plain = wide ? msa_contiguous_values(wide) : NULL;
    if (!plain) return NULL;
    const int64_t *p = msa_data(plain);
    int64_t n = minlength;
    for (int64_t i = 0; i < plain->numel; i++) {
        if (p[i] < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "bincount only supports 1-d non-negative integral inputs.");
        if (p[i] + 1 > n) n = p[i] + 1;
    }
    if (!weights) {
        msa_auto msa_tensor *counts = zeros_shaped(MSA_INTS(n), MSA_INT64);
        if (!counts) return NULL;
        for (int64_t i = 0; i < plain->numel; i++) ((int64_t *)counts->storage->data)[p[i]]++;
        return msa_take(counts);
    }
    msa_auto msa_tensor *heavy = msa_cast_values(weights, MSA_FLOAT64), *w = heavy ? msa_contiguous_values(heavy) : NULL;
    msa_auto msa_tensor *sums = w ? zeros_shaped(MSA_INTS(n), MSA_FLOAT64) : NULL;
    if (!sums) return NULL;
    const double *v = msa_data(w);
    for (int64_t i = 0; i < plain->numel; i++) ((double *)sums->storage->data)[p[i]] += v[i];
    return msa_cast_values(sums, weights->dtype == MSA_FLOAT32 ? MSA_FLOAT32 : MSA_FLOAT64);
}
