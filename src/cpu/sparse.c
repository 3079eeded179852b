/* Sparse tensors: COO with indices (sparse dims, nnz) and values (nnz, dense sizes), CSR with one compressed dimension.
 *
 * Values are moved by index_select and added up by index_add, so every type works; what is written here are the loops over indices. */
#include <stdlib.h>

#include "ops/helpers.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

static msa_tensor *indices_of(const msa_tensor *t) { return msa_sparse_of(t)->indices; }
static msa_tensor *values_of(const msa_tensor *t) { return msa_sparse_of(t)->values; }
static int64_t count(const msa_tensor *t) { return t->layout == MSA_SPARSE_COO ? indices_of(t)->sizes[1] : msa_sparse_of(t)->columns->sizes[0]; }
static int sparse_dims(const msa_tensor *t) { return t->layout == MSA_SPARSE_COO ? (int)indices_of(t)->sizes[0] : 2; }

static msa_tensor *with_values(const msa_tensor *t, msa_tensor *values) {
    const msa_sparse *s = msa_sparse_of(t);
    return values ? msa_sparse_new((msa_layout)t->layout, msa_sizes(t), s->indices, s->columns, values, s->coalesced) : NULL;
}

static int check_layout(const char *op, const msa_tensor *t, bool fits, const char *wanted) {
    return fits ? 0 : msa_fail(t->layout ? MSA_RUNTIME_ERROR : MSA_NOT_IMPLEMENTED, "%s expected a %s tensor but got a %s one", op, wanted,
                               t->layout == MSA_SPARSE_COO ? "sparse COO" : t->layout ? "sparse CSR" : "strided");
}

/* A CSR tensor, or a COO one, as COO. */
static msa_tensor *as_coo(msa_tensor *t) {
    if (t->layout != MSA_SPARSE_CSR) return msa_tensor_retain(t);
    const msa_sparse *s = msa_sparse_of(t);
    const int64_t n = count(t);
    msa_auto msa_tensor *crow = msa_cast_values(s->indices, MSA_INT64), *col = msa_cast_values(s->columns, MSA_INT64);
    msa_auto msa_tensor *rows = crow ? msa_contiguous_values(crow) : NULL, *columns = col ? msa_contiguous_values(col) : NULL;
    msa_auto msa_tensor *indices = msa_tensor_new(MSA_INTS(2, n), MSA_INT64);
    if (!rows || !columns || !indices) return NULL;
    const int64_t *begin = msa_data(rows), *c = msa_data(columns);
    int64_t *to = msa_data(indices);
    for (int64_t r = 0; r < t->sizes[0]; r++)
        for (int64_t k = begin[r]; k < begin[r + 1]; k++)
            if (k >= 0 && k < n) {
                to[k] = r;
                to[n + k] = c[k];
            }
    return msa_sparse_new(MSA_SPARSE_COO, msa_sizes(t), indices, NULL, s->values, true);
}

/* Columns of a matrix of indices in lexicographic order. */
typedef struct {
    const int64_t *at;
    int64_t n;
    int dims;
} columns_of;

static int compare_columns(const columns_of *a, int64_t x, const columns_of *b, int64_t y) {
    for (int d = 0; d < a->dims; d++) {
        const int64_t p = a->at[d * a->n + x], q = b->at[d * b->n + y];
        if (p != q) return p < q ? -1 : 1;
    }
    return 0;
}

static int by_column(const void *a, const void *b, void *context) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    const int order = compare_columns(context, x, context, y);
    return order ? order : x < y ? -1 : x > y; /* stable: sums are made in the given order */
}

msa_tensor *coalesce_strided(msa_tensor *self) { return check_layout("coalesce", self, false, "sparse COO") == 0 ? self : NULL; }

msa_tensor *coalesce_sparse(msa_tensor *self) {
    if (check_layout("coalesce", self, self->layout == MSA_SPARSE_COO, "sparse COO") != 0) return NULL;
    const int64_t n = count(self);
    const int dims = sparse_dims(self);
    if (n < 2) return msa_sparse_new(MSA_SPARSE_COO, msa_sizes(self), indices_of(self), NULL, values_of(self), true);
    msa_auto msa_tensor *given = msa_contiguous_values(indices_of(self));
    msa_auto msa_tensor *order = msa_tensor_new(MSA_INTS(n), MSA_INT64), *group = msa_tensor_new(MSA_INTS(n), MSA_INT64);
    if (!given || !order || !group) return NULL;
    const columns_of columns = {msa_data(given), n, dims};
    int64_t *o = msa_data(order), *g = msa_data(group), groups = 0;
    for (int64_t i = 0; i < n; i++) o[i] = i;
    qsort_r(o, (size_t)n, sizeof *o, by_column, (void *)(uintptr_t)&columns);
    for (int64_t i = 0; i < n; i++) {
        if (i && compare_columns(&columns, o[i - 1], &columns, o[i]) != 0) groups++;
        g[i] = groups;
    }
    groups++;
    msa_auto msa_tensor *indices = msa_tensor_new(MSA_INTS(dims, groups), MSA_INT64);
    if (!indices) return NULL;
    int64_t *to = msa_data(indices);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < dims; d++) to[d * groups + g[i]] = columns.at[d * n + o[i]];
    msa_auto msa_tensor *sorted = msa_index_select(values_of(self), 0, order), *sums = NULL;
    if (!sorted) return NULL;
    if (groups == n) {
        sums = msa_tensor_retain(sorted);
    } else {
        int64_t sizes[MSA_MAX_DIMS];
        memcpy(sizes, sorted->sizes, sizeof(int64_t) * sorted->ndim);
        sizes[0] = groups;
        msa_auto msa_tensor *zeros = msa_tensor_new((msa_ints){sizes, sorted->ndim}, (msa_dtype)sorted->dtype);
        if (!zeros || msa_fill_values(zeros, msa_int(0)) != 0) return NULL;
        sums = msa_index_add(zeros, 0, group, sorted, msa_int(1));
    }
    return sums ? msa_sparse_new(MSA_SPARSE_COO, msa_sizes(self), indices, NULL, sums, true) : NULL;
}

/* As COO with unique, ascending indices. */
static msa_tensor *coalesced(msa_tensor *t) {
    if (t->layout == MSA_SPARSE_COO) return msa_sparse_of(t)->coalesced ? msa_tensor_retain(t) : coalesce_sparse(t);
    msa_auto msa_tensor *coo = as_coo(t);
    return coo ? coalesce_sparse(coo) : NULL;
}

/* ---- making --------------------------------------------------------------------------------------------------------- */

msa_tensor *sparse_coo_cpu(msa_tensor *indices, msa_tensor *values, msa_ints size, bool is_coalesced) {
    if (indices->dtype != MSA_INT64) return msa_fail_null(MSA_RUNTIME_ERROR, "indices must be an int64 tensor");
    if (indices->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "indices must be sparse_dim x nnz, but got: %s", msa_sizes_text(msa_sizes(indices)));
    if (values->ndim < 1 || values->sizes[0] != indices->sizes[1])
        return msa_fail_null(MSA_RUNTIME_ERROR, "indices and values must have same nnz, but got nnz from indices: %lld, nnz from values: %lld",
                             (long long)indices->sizes[1], (long long)(values->ndim ? values->sizes[0] : 1));
    const int64_t sparse = indices->sizes[0], n = indices->sizes[1];
    if (sparse + values->ndim - 1 != size.n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "number of dimensions must be sparse_dim (%lld) + dense_dim (%d), but got %lld", (long long)sparse,
                             values->ndim - 1, (long long)size.n);
    for (int64_t d = 0; d < size.n; d++)
        if (size.data[d] < 0) return msa_fail_null(MSA_RUNTIME_ERROR, "Trying to create tensor with negative dimension %lld: %s", (long long)size.data[d], msa_sizes_text(size));
    for (int d = 1; d < values->ndim; d++)
        if (values->sizes[d] != size.data[sparse + d - 1])
            return msa_fail_null(MSA_RUNTIME_ERROR, "values has incorrect size, expected the dense part of %s, got %s", msa_sizes_text(size), msa_sizes_text(msa_sizes(values)));
    /* A copy: once checked nobody may change them. */
    msa_auto msa_tensor *given = msa_contiguous_values(indices), *plain = given ? msa_clone_values(given) : NULL;
    if (!plain) return NULL;
    const int64_t *at = msa_data(plain);
    for (int64_t d = 0; d < sparse && n; d++)
        for (int64_t k = 0; k < n; k++) {
            if (at[d * n + k] < 0)
                return msa_fail_null(MSA_RUNTIME_ERROR, "found negative index %lld for dim %lld", (long long)at[d * n + k], (long long)d);
            if (at[d * n + k] >= size.data[d])
                return msa_fail_null(MSA_RUNTIME_ERROR, "size is inconsistent with indices: for dim %lld, size is %lld but found index %lld", (long long)d,
                                     (long long)size.data[d], (long long)at[d * n + k]);
        }
    return msa_sparse_new(MSA_SPARSE_COO, size, plain, NULL, values, is_coalesced);
}

msa_tensor *sparse_csr_cpu(msa_tensor *crow_indices, msa_tensor *col_indices, msa_tensor *values, msa_ints size) {
    if (size.n != 2 || crow_indices->ndim != 1 || col_indices->ndim != 1 || values->ndim != 1)
        return msa_fail_null(size.n > 2 ? MSA_NOT_IMPLEMENTED : MSA_RUNTIME_ERROR, "sparse_csr_tensor: only matrices without batch or dense dimensions are there, got size %s",
                             msa_sizes_text(size));
    if ((crow_indices->dtype != MSA_INT64 && crow_indices->dtype != MSA_INT32) || crow_indices->dtype != col_indices->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "crow_indices and col_indices must both be int32 or int64");
    if (size.data[0] < 0 || size.data[1] < 0 || crow_indices->sizes[0] != size.data[0] + 1)
        return msa_fail_null(MSA_RUNTIME_ERROR, "crow_indices.numel() must be size(0) + 1, but got: %lld", (long long)crow_indices->sizes[0]);
    if (col_indices->sizes[0] != values->sizes[0])
        return msa_fail_null(MSA_RUNTIME_ERROR, "col_indices and values must have the same number of elements, but got sizes: %lld, %lld",
                             (long long)col_indices->sizes[0], (long long)values->sizes[0]);
    msa_auto msa_tensor *crow = msa_cast_values(crow_indices, MSA_INT64), *col = msa_cast_values(col_indices, MSA_INT64);
    msa_auto msa_tensor *rows = crow ? msa_contiguous_values(crow) : NULL, *columns = col ? msa_contiguous_values(col) : NULL;
    if (!rows || !columns) return NULL;
    const int64_t *begin = msa_data(rows), *c = msa_data(columns), n = columns->numel;
    if (begin[0] != 0) return msa_fail_null(MSA_RUNTIME_ERROR, "0th value of crow_indices must be 0.");
    if (begin[size.data[0]] != n)
        return msa_fail_null(MSA_RUNTIME_ERROR, "last value of crow_indices should be equal to the length of col_indices.");
    for (int64_t r = 0; r < size.data[0]; r++)
        if (begin[r + 1] < begin[r] || begin[r + 1] - begin[r] > size.data[1])
            return msa_fail_null(MSA_RUNTIME_ERROR, "crow_indices: 0 <= crow_indices[i + 1] - crow_indices[i] <= size(1) does not hold at i = %lld", (long long)r);
    for (int64_t k = 0; k < n; k++)
        if (c[k] < 0 || c[k] >= size.data[1])
            return msa_fail_null(MSA_RUNTIME_ERROR, c[k] < 0 ? "col_indices.min() should be greater or equal to zero" : "size(1) should be greater than col_indices.max()");
    /* Copies: once checked nobody may change them. */
    msa_auto msa_tensor *own_rows = msa_clone_values(crow_indices), *own_columns = msa_clone_values(col_indices);
    return own_rows && own_columns ? msa_sparse_new(MSA_SPARSE_CSR, size, own_rows, own_columns, values, true) : NULL;
}

/* Positions in a dense tensor of the sparse dimensions' sizes, row by row. */
static msa_tensor *flat_indices(const msa_tensor *t) {
    const int64_t n = count(t);
    msa_auto msa_tensor *given = msa_contiguous_values(indices_of(t)), *flat = msa_tensor_new(MSA_INTS(n), MSA_INT64);
    if (!given || !flat) return NULL;
    const int64_t *at = msa_data(given);
    int64_t *to = msa_data(flat);
    memset(to, 0, sizeof *to * (size_t)n);
    for (int d = 0; d < sparse_dims(t); d++)
        for (int64_t k = 0; k < n; k++) to[k] = to[k] * t->sizes[d] + at[d * n + k];
    return msa_take(flat);
}

/* A dense tensor of t's sizes with the sparse dimensions made one. */
static msa_tensor *with_flat_rows(const msa_tensor *t, msa_tensor *dense) {
    const int sparse = sparse_dims(t);
    int64_t sizes[MSA_MAX_DIMS + 1];
    sizes[0] = msa_product((msa_ints){t->sizes, sparse});
    memcpy(sizes + 1, t->sizes + sparse, sizeof(int64_t) * (size_t)(t->ndim - sparse));
    return msa_reshape(dense, (msa_ints){sizes, t->ndim - sparse + 1});
}

/* dense + alpha * t, in place where dense is contiguous. */
static int add_into(msa_tensor *dense, msa_tensor *t, msa_scalar alpha) {
    msa_auto msa_tensor *coo = as_coo(t);
    msa_auto msa_tensor *flat = coo ? flat_indices(coo) : NULL;
    if (!flat) return -1;
    if (!count(coo) || !dense->numel) return 0;
    msa_auto msa_tensor *values = msa_cast_values(values_of(coo), (msa_dtype)dense->dtype);
    msa_auto msa_tensor *plain = msa_contiguous_values(dense), *rows = plain ? with_flat_rows(coo, plain) : NULL;
    msa_auto msa_tensor *added = rows && values ? msa_index_add_(rows, 0, flat, values, alpha) : NULL;
    if (!added) return -1;
    return plain == dense ? 0 : msa_copy_values(dense, plain);
}

msa_tensor *to_dense_strided(msa_tensor *self, msa_dtype dtype) { return dtype == MSA_NO_DTYPE ? msa_tensor_alias(self) : msa_cast_values(self, dtype); }

msa_tensor *to_dense_sparse(msa_tensor *self, msa_dtype dtype) {
    msa_auto msa_tensor *dense = msa_tensor_new(msa_sizes(self), dtype == MSA_NO_DTYPE ? (msa_dtype)self->dtype : dtype);
    return dense && msa_fill_values(dense, msa_int(0)) == 0 && add_into(dense, self, msa_int(1)) == 0 ? msa_take(dense) : NULL;
}

msa_tensor *to_sparse_cpu(msa_tensor *self, int64_t sparse_dim) {
    if (self->layout == MSA_SPARSE_CSR && sparse_dim == 2) return as_coo(self);
    if (self->layout) return sparse_dim == sparse_dims(self) ? msa_tensor_alias(self) : msa_fail_null(MSA_NOT_IMPLEMENTED, "to_sparse: other sparse_dim of a sparse tensor");
    if (self->ndim ? sparse_dim < 1 || sparse_dim > self->ndim : sparse_dim != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "sparse_dim argument must be in [1,%d] range, but %lld is given", self->ndim, (long long)sparse_dim);
    msa_auto msa_tensor *found = NULL; /* which rows hold anything but zeros, (n, sparse_dim) */
    if (sparse_dim < self->ndim) {
        int64_t dims[MSA_MAX_DIMS];
        for (int64_t d = sparse_dim; d < self->ndim; d++) dims[d - sparse_dim] = d;
        msa_auto msa_tensor *zero = msa_wrap_number(msa_int(0)), *filled = zero ? msa_ne(self, zero) : NULL;
        msa_auto msa_tensor *counted = filled ? msa_sum_dim_IntList(filled, (msa_ints){dims, self->ndim - sparse_dim}, false, MSA_NO_DTYPE) : NULL;
        found = counted ? msa_nonzero(counted) : NULL;
    } else {
        found = msa_nonzero(self);
    }
    msa_auto msa_tensor *turned = found ? msa_t(found) : NULL, *indices = turned ? msa_contiguous_values(turned) : NULL;
    if (!indices) return NULL;
    int64_t sizes[MSA_MAX_DIMS + 1];
    sizes[0] = msa_product((msa_ints){self->sizes, sparse_dim});
    memcpy(sizes + 1, self->sizes + sparse_dim, sizeof(int64_t) * (size_t)(self->ndim - sparse_dim));
    msa_auto msa_tensor *rows = msa_reshape(self, (msa_ints){sizes, self->ndim - sparse_dim + 1});
    msa_auto msa_tensor *shape = rows ? msa_sparse_new(MSA_SPARSE_COO, msa_sizes(self), indices, NULL, rows, true) : NULL;
    msa_auto msa_tensor *flat = shape ? flat_indices(shape) : NULL, *values = flat ? msa_index_select(rows, 0, flat) : NULL;
    return values ? msa_sparse_new(MSA_SPARSE_COO, msa_sizes(self), indices, NULL, values, true) : NULL;
}

msa_tensor *to_sparse_csr_cpu(msa_tensor *self) {
    if (self->layout == MSA_SPARSE_CSR) return msa_tensor_alias(self);
    if (self->ndim != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "to_sparse_csr: only matrices can be converted, got a %d-D tensor", self->ndim);
    msa_auto msa_tensor *coo = self->layout ? coalesced(self) : to_sparse_cpu(self, 2);
    if (!coo) return NULL;
    if (sparse_dims(coo) != 2) return msa_fail_null(MSA_RUNTIME_ERROR, "to_sparse_csr: tensors with dense dimensions cannot be converted");
    const int64_t n = count(coo), m = self->sizes[0];
    msa_auto msa_tensor *given = msa_contiguous_values(indices_of(coo)), *crow = msa_tensor_new(MSA_INTS(m + 1), MSA_INT64);
    msa_auto msa_tensor *col = msa_tensor_new(MSA_INTS(n), MSA_INT64);
    if (!given || !crow || !col) return NULL;
    const int64_t *at = msa_data(given);
    int64_t *begin = msa_data(crow);
    memset(begin, 0, sizeof *begin * (size_t)(m + 1));
    for (int64_t k = 0; k < n; k++) begin[at[k] + 1]++;
    for (int64_t r = 0; r < m; r++) begin[r + 1] += begin[r];
    if (n) memcpy(msa_data(col), at + n, sizeof *at * (size_t)n);
    return msa_sparse_new(MSA_SPARSE_CSR, msa_sizes(self), crow, col, values_of(coo), true);
}

/* ---- asking --------------------------------------------------------------------------------------------------------- */

static int check_coo(const char *op, const msa_tensor *t) { return check_layout(op, t, t->layout == MSA_SPARSE_COO, "sparse COO"); }

int is_coalesced_cpu(msa_tensor *self, msa_scalar *result) {
    if (check_coo("is_coalesced", self) != 0) return -1;
    *result = msa_bool_scalar(msa_sparse_of(self)->coalesced);
    return 0;
}
int nnz_cpu(msa_tensor *self, msa_scalar *result) {
    if (check_layout("_nnz", self, self->layout, "sparse") != 0) return -1;
    *result = msa_int(count(self));
    return 0;
}
int sparse_dim_cpu(msa_tensor *self, msa_scalar *result) {
    if (check_layout("sparse_dim", self, self->layout, "sparse") != 0) return -1;
    *result = msa_int(sparse_dims(self));
    return 0;
}
int dense_dim_cpu(msa_tensor *self, msa_scalar *result) {
    if (check_layout("dense_dim", self, self->layout, "sparse") != 0) return -1;
    *result = msa_int(self->ndim - sparse_dims(self));
    return 0;
}
/* Copies of indices: kernels trust what was checked when the tensor was made. */
msa_tensor *indices_as_they_are(msa_tensor *self) { return check_coo("_indices", self) == 0 ? msa_clone_values(indices_of(self)) : NULL; }
msa_tensor *values_as_they_are(msa_tensor *self) { return check_layout("_values", self, self->layout, "sparse") == 0 ? msa_tensor_alias(values_of(self)) : NULL; }
static int check_coalesced(const char *what, const msa_tensor *t) {
    return msa_sparse_of(t)->coalesced ? 0 : msa_fail(MSA_RUNTIME_ERROR, "Cannot get %s on an uncoalesced tensor, please call .coalesce() first", what);
}
msa_tensor *indices_cpu(msa_tensor *self) {
    return check_coo("indices", self) == 0 && check_coalesced("indices", self) == 0 ? msa_clone_values(indices_of(self)) : NULL;
}
msa_tensor *values_cpu(msa_tensor *self) {
    return check_layout("values", self, self->layout, "sparse") == 0 && check_coalesced("values", self) == 0 ? msa_tensor_alias(values_of(self)) : NULL;
}
msa_tensor *crow_indices_cpu(msa_tensor *self) {
    return check_layout("crow_indices", self, self->layout == MSA_SPARSE_CSR, "sparse CSR") == 0 ? msa_clone_values(indices_of(self)) : NULL;
}
msa_tensor *col_indices_cpu(msa_tensor *self) {
    return check_layout("col_indices", self, self->layout == MSA_SPARSE_CSR, "sparse CSR") == 0 ? msa_clone_values(msa_sparse_of(self)->columns) : NULL;
}
int set_coalesced(msa_tensor *self, bool is_coalesced) {
    if (check_coo("_coalesced_", self) != 0) return -1;
    msa_sparse_of(self)->coalesced = is_coalesced;
    return 0;
}

/* ---- where another has elements ---------------------------------------------------------------------------------------- */

/* Values of the sparse `from` at the indices of `like`, zero where it has none. */
static msa_tensor *looked_up(msa_tensor *from, msa_tensor *like) {
    msa_auto msa_tensor *source = coalesced(from), *a = source ? msa_contiguous_values(indices_of(source)) : NULL, *b = msa_contiguous_values(indices_of(like));
    const int64_t n = count(like), m = source ? count(source) : 0;
    msa_auto msa_tensor *where = msa_tensor_new(MSA_INTS(n), MSA_INT64), *values = NULL;
    if (!a || !b || !where) return NULL;
    if (sparse_dims(source) != sparse_dims(like)) return msa_fail_null(MSA_RUNTIME_ERROR, "sparse_mask: the sparse dimensions differ");
    const columns_of in = {msa_data(a), m, sparse_dims(source)}, of = {msa_data(b), n, sparse_dims(like)};
    int64_t *to = msa_data(where);
    for (int64_t k = 0; k < n; k++) {
        int64_t low = 0, high = m;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (compare_columns(&in, middle, &of, k) < 0) low = middle + 1;
            else high = middle;
        }
        to[k] = low < m && compare_columns(&in, low, &of, k) == 0 ? low : m;
    }
    /* One more row, of zeros, for what was not found. */
    int64_t sizes[MSA_MAX_DIMS];
    msa_tensor *given = values_of(source);
    memcpy(sizes, given->sizes, sizeof(int64_t) * given->ndim);
    sizes[0] = 1;
    msa_auto msa_tensor *zero = msa_tensor_new((msa_ints){sizes, given->ndim}, (msa_dtype)given->dtype);
    if (!zero || msa_fill_values(zero, msa_int(0)) != 0) return NULL;
    msa_auto msa_tensor *all = msa_cat(MSA_TENSORS(given, zero), 0);
    return all ? msa_index_select(all, 0, where) : NULL;
}

/* Values of `from`, dense or sparse, where `like` has elements. */
static msa_tensor *values_at(msa_tensor *from, msa_tensor *like) {
    if (!msa_same_sizes(from, like))
        return msa_fail_null(MSA_RUNTIME_ERROR, "sparse_mask(): operands have incompatible sizes; self has size %s but mask has size %s",
                             msa_sizes_text(msa_sizes(from)), msa_sizes_text(msa_sizes(like)));
    msa_auto msa_tensor *coo = as_coo(like);
    if (!coo) return NULL;
    if (from->layout) return looked_up(from, coo);
    msa_auto msa_tensor *flat = flat_indices(coo), *rows = flat ? with_flat_rows(coo, from) : NULL;
    return rows ? msa_index_select(rows, 0, flat) : NULL;
}

msa_tensor *sparse_gradient_values(msa_tensor *grad, msa_tensor *like) { return values_at(grad, like); }

msa_tensor *sparse_mask_cpu(msa_tensor *self, msa_tensor *mask) {
    if (check_layout("sparse_mask", mask, mask->layout, "sparse") != 0) return NULL;
    msa_auto msa_tensor *values = values_at(self, mask);
    return with_values(mask, values);
}

msa_tensor *sparse_gradient_like(msa_tensor *grad, msa_tensor *like) {
    if (!like->layout) return msa_tensor_retain(grad);
    if (like->layout == MSA_SPARSE_CSR) return sparse_mask_cpu(grad, like);
    msa_auto msa_tensor *mask = coalesced(like);
    return mask ? sparse_mask_cpu(grad, mask) : NULL;
}

msa_tensor *sparse_with_values(msa_tensor *like, msa_tensor *values) { return with_values(like, values); }
msa_tensor *sparse_dense_gradient(msa_tensor *grad) { return grad->layout ? to_dense_sparse(grad, MSA_NO_DTYPE) : msa_tensor_retain(grad); }

/* ---- changing ------------------------------------------------------------------------------------------------------------ */

/* A sparse tensor of `size` without elements. */
static msa_tensor *empty_coo(msa_ints size, int64_t sparse_dim, msa_dtype dtype) {
    int64_t sizes[MSA_MAX_DIMS + 1];
    sizes[0] = 0;
    for (int64_t d = sparse_dim; d < size.n; d++) sizes[d - sparse_dim + 1] = size.data[d];
    msa_auto msa_tensor *indices = msa_tensor_new(MSA_INTS(sparse_dim, 0), MSA_INT64), *values = msa_tensor_new((msa_ints){sizes, size.n - sparse_dim + 1}, dtype);
    return indices && values ? msa_sparse_new(MSA_SPARSE_COO, size, indices, NULL, values, true) : NULL;
}

static int check_resize(const msa_tensor *self, msa_ints size, int64_t sparse_dim, int64_t dense_dim) {
    if (check_coo("sparse_resize_", self) != 0) return -1;
    for (int64_t d = 0; d < size.n; d++)
        if (size.data[d] < 0) return msa_fail(MSA_RUNTIME_ERROR, "sparse_resize_: sizes must not be negative, got %s", msa_sizes_text(size));
    if (sparse_dim < 0 || dense_dim < 0 || sparse_dim + dense_dim != size.n)
        return msa_fail(MSA_RUNTIME_ERROR, "number of dimensions must be sparse_dim (%lld) + dense_dim (%lld), but got %lld", (long long)sparse_dim, (long long)dense_dim,
                        (long long)size.n);
    return 0;
}

int sparse_resize_and_clear(msa_tensor *self, msa_ints size, int64_t sparse_dim, int64_t dense_dim) {
    if (check_resize(self, size, sparse_dim, dense_dim) != 0) return -1;
    msa_auto msa_tensor *empty = empty_coo(size, sparse_dim, (msa_dtype)self->dtype);
    return empty ? msa_sparse_assign(self, empty) : -1;
}

int sparse_resize(msa_tensor *self, msa_ints size, int64_t sparse_dim, int64_t dense_dim) {
    if (check_resize(self, size, sparse_dim, dense_dim) != 0) return -1;
    if (count(self) == 0) return sparse_resize_and_clear(self, size, sparse_dim, dense_dim);
    if (sparse_dim != sparse_dims(self))
        return msa_fail(MSA_RUNTIME_ERROR, "changing the number of sparse dimensions (from %d to %lld) on a non-empty sparse tensor is not supported.", sparse_dims(self), (long long)sparse_dim);
    if (dense_dim != self->ndim - sparse_dims(self))
        return msa_fail(MSA_RUNTIME_ERROR, "changing the number of dense dimensions (from %d to %lld) on a non-empty sparse tensor is not supported.", self->ndim - sparse_dims(self),
                        (long long)dense_dim);
    for (int64_t d = 0; d < size.n; d++)
        if (size.data[d] < self->sizes[d])
            return msa_fail(MSA_RUNTIME_ERROR, "shrinking the size of %s dimensions (from %s to %s) on a non-empty sparse tensor is not supported.", d < sparse_dim ? "sparse" : "dense",
                            msa_sizes_text(msa_sizes(self)), msa_sizes_text(size));
        else if (d >= sparse_dim && size.data[d] != self->sizes[d])
            return msa_fail(MSA_NOT_IMPLEMENTED, "sparse_resize_: growing dense dimensions of a sparse tensor with elements is not implemented");
    const msa_sparse *s = msa_sparse_of(self);
    msa_auto msa_tensor *grown = msa_sparse_new(MSA_SPARSE_COO, size, s->indices, NULL, s->values, s->coalesced);
    return grown ? msa_sparse_assign(self, grown) : -1;
}

int zero_sparse(msa_tensor *self) {
    if (self->layout == MSA_SPARSE_CSR) return msa_fill_values(values_of(self), msa_int(0));
    return sparse_resize_and_clear(self, msa_sizes(self), sparse_dims(self), self->ndim - sparse_dims(self));
}

msa_tensor *zeros_like_sparse(msa_tensor *self, msa_dtype dtype, int memory_format) {
    const msa_dtype type = dtype == MSA_NO_DTYPE ? (msa_dtype)self->dtype : dtype;
    if (self->layout == MSA_SPARSE_COO) return empty_coo(msa_sizes(self), sparse_dims(self), type);
    msa_auto msa_tensor *values = msa_tensor_new(msa_sizes(values_of(self)), type);
    return values && msa_fill_values(values, msa_int(0)) == 0 ? with_values(self, values) : NULL;
}

msa_tensor *clone_sparse(msa_tensor *self, int memory_format) {
    const msa_sparse *s = msa_sparse_of(self);
    msa_auto msa_tensor *indices = msa_clone_values(s->indices), *columns = s->columns ? msa_clone_values(s->columns) : NULL, *values = msa_clone_values(s->values);
    return indices && values && (columns || !s->columns) ? msa_sparse_new((msa_layout)self->layout, msa_sizes(self), indices, columns, values, s->coalesced) : NULL;
}

int copy_sparse(msa_tensor *self, msa_tensor *src, bool non_blocking) {
    if (self->layout != src->layout)
        return msa_fail(MSA_RUNTIME_ERROR, "copy_() between dense and sparse Tensors is not implemented! Found self type = %s and src type = %s",
                        self->layout ? "sparse" : "dense", src->layout ? "sparse" : "dense");
    msa_auto msa_tensor *copy = clone_sparse(src, -1), *cast = copy ? msa_cast_values(values_of(copy), (msa_dtype)self->dtype) : NULL;
    msa_auto msa_tensor *typed = with_values(copy ? copy : src, cast);
    return typed ? msa_sparse_assign(self, typed) : -1;
}

msa_tensor *to_copy_sparse(msa_tensor *self, msa_dtype dtype, int memory_format) {
    msa_auto msa_tensor *copy = clone_sparse(self, -1), *values = copy ? msa_cast_values(values_of(copy), dtype) : NULL;
    return copy ? with_values(copy, values) : NULL;
}

msa_tensor *transpose_sparse(msa_tensor *self, int64_t dim0, int64_t dim1) {
    if (self->layout == MSA_SPARSE_CSR) {
        msa_auto msa_tensor *coo = as_coo(self), *turned = coo ? transpose_sparse(coo, dim0, dim1) : NULL;
        return turned ? to_sparse_csr_cpu(turned) : NULL;
    }
    const int a = msa_wrap_dim("transpose", dim0, self->ndim), b = a < 0 ? -1 : msa_wrap_dim("transpose", dim1, self->ndim), sparse = sparse_dims(self);
    if (b < 0) return NULL;
    if (a == b) return msa_tensor_alias(self);
    int64_t sizes[MSA_MAX_DIMS];
    memcpy(sizes, self->sizes, sizeof(int64_t) * self->ndim);
    sizes[a] = self->sizes[b];
    sizes[b] = self->sizes[a];
    const msa_sparse *s = msa_sparse_of(self);
    const msa_ints size = {sizes, self->ndim};
    if (a >= sparse && b >= sparse) {
        msa_auto msa_tensor *values = msa_transpose_int(s->values, a - sparse + 1, b - sparse + 1);
        return values ? msa_sparse_new(MSA_SPARSE_COO, size, s->indices, NULL, values, s->coalesced) : NULL;
    }
    if (a >= sparse || b >= sparse)
        return msa_fail_null(MSA_RUNTIME_ERROR, "transpose(%lld, %lld): a sparse and a dense dimension cannot be swapped", (long long)dim0, (long long)dim1);
    msa_auto msa_tensor *order = msa_tensor_new(MSA_INTS(sparse), MSA_INT64);
    if (!order) return NULL;
    int64_t *o = msa_data(order);
    for (int d = 0; d < sparse; d++) o[d] = d == a ? b : d == b ? a : d;
    msa_auto msa_tensor *indices = msa_index_select(s->indices, 0, order);
    return indices ? msa_sparse_new(MSA_SPARSE_COO, size, indices, NULL, s->values, false) : NULL;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------------------ */

msa_tensor *neg_sparse(msa_tensor *self) {
    msa_auto msa_tensor *values = msa_neg(values_of(self));
    return with_values(self, values);
}
msa_tensor *conj_sparse(msa_tensor *self) {
    msa_auto msa_tensor *values = msa_conj_physical(values_of(self));
    return with_values(self, values);
}
msa_tensor *abs_sparse(msa_tensor *self) {
    msa_auto msa_tensor *sums = coalesced(self), *values = sums ? msa_abs(values_of(sums)) : NULL; /* not linear */
    return values ? with_values(sums, values) : NULL;
}

int add_sparse_into(msa_tensor *self, msa_tensor *other, msa_scalar alpha) {
    if (!msa_same_sizes(self, other))
        return msa_fail(MSA_RUNTIME_ERROR, "add: expected 'self' and 'other' to have same size, but self has size %s while other has size %s (a sparse tensor is not broadcast)",
                        msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(other)));
    if (!msa_dtype_can_cast((msa_dtype)other->dtype, (msa_dtype)self->dtype))
        return msa_fail(MSA_RUNTIME_ERROR, "Can't convert result type %s to output %s", msa_dtype_type_name((msa_dtype)other->dtype), msa_dtype_type_name((msa_dtype)self->dtype));
    return add_into(self, other, alpha);
}
int sub_sparse_into(msa_tensor *self, msa_tensor *other, msa_scalar alpha) { return add_sparse_into(self, other, msa_scalar_negated(alpha)); }

msa_tensor *add_sparse(msa_tensor *self, msa_tensor *other, msa_scalar alpha) {
    const msa_dtype type = msa_result_type(MSA_TENSORS(self, other));
    if (!self->layout) {
        msa_auto msa_tensor *cast = msa_cast_values(self, type), *sum = cast ? msa_clone_values(cast) : NULL;
        return sum && add_sparse_into(sum, other, alpha) == 0 ? msa_take(sum) : NULL;
    }
    if (!other->layout) return msa_fail_null(MSA_RUNTIME_ERROR, "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
    if (!msa_same_sizes(self, other))
        return msa_fail_null(MSA_RUNTIME_ERROR, "add: expected sizes of 'self' and 'other' to match, but %s != %s", msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(other)));
    msa_auto msa_tensor *a = as_coo(self), *b = as_coo(other);
    if (!a || !b) return NULL;
    if (sparse_dims(a) != sparse_dims(b)) return msa_fail_null(MSA_RUNTIME_ERROR, "add: expected 'self' and 'other' to have the same number of sparse dimensions");
    msa_auto msa_tensor *left = msa_cast_values(values_of(a), type), *plain = msa_cast_values(values_of(b), type);
    msa_auto msa_tensor *factor = msa_wrap_number(alpha), *right = plain && factor ? msa_mul(plain, factor) : NULL;
    if (!left || !right) return NULL;
    msa_auto msa_tensor *indices = msa_cat(MSA_TENSORS(indices_of(a), indices_of(b)), 1), *values = msa_cat(MSA_TENSORS(left, right), 0);
    msa_auto msa_tensor *sum = indices && values ? msa_sparse_new(MSA_SPARSE_COO, msa_sizes(self), indices, NULL, values, false) : NULL;
    if (!sum) return NULL;
    if (self->layout == MSA_SPARSE_COO) /* two coalesced tensors have a coalesced sum */
        return msa_sparse_of(a)->coalesced && msa_sparse_of(b)->coalesced ? coalesce_sparse(sum) : msa_take(sum);
    msa_auto msa_tensor *merged = coalesce_sparse(sum);
    return merged ? to_sparse_csr_cpu(merged) : NULL;
}
msa_tensor *sub_sparse(msa_tensor *self, msa_tensor *other, msa_scalar alpha) { return add_sparse(self, other, msa_scalar_negated(alpha)); }

msa_tensor *mul_sparse(msa_tensor *self, msa_tensor *other) {
    if (!self->layout) return mul_sparse(other, self);
    if (other->ndim == 0 && !other->layout) {
        msa_auto msa_tensor *values = msa_mul(values_of(self), other);
        return with_values(self, values);
    }
    if (!msa_same_sizes(self, other))
        return msa_fail_null(MSA_RUNTIME_ERROR, "mul operands have incompatible sizes %s and %s (a sparse tensor is not broadcast)", msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(other)));
    msa_auto msa_tensor *left = other->layout || self->layout == MSA_SPARSE_CSR ? coalesced(self) : msa_tensor_retain(self);
    msa_auto msa_tensor *right = left ? values_at(other, left) : NULL, *values = right ? msa_mul(values_of(left), right) : NULL;
    msa_auto msa_tensor *product = values ? with_values(left, values) : NULL;
    if (!product) return NULL;
    if (self->layout == MSA_SPARSE_CSR) return to_sparse_csr_cpu(product);
    return msa_take(product);
}

msa_tensor *div_sparse(msa_tensor *self, msa_tensor *other) {
    if (other->layout || !self->layout || other->ndim != 0)
        return msa_fail_null(MSA_RUNTIME_ERROR, "div: a sparse tensor can only be divided by a scalar (got %s / %s)", msa_sizes_text(msa_sizes(self)), msa_sizes_text(msa_sizes(other)));
    msa_auto msa_tensor *values = msa_div(values_of(self), other);
    return with_values(self, values);
}

/* ---- products ---------------------------------------------------------------------------------------------------------------- */

static msa_tensor *row_of(const msa_tensor *indices, int64_t d) { return msa_select_int((msa_tensor *)(uintptr_t)indices, 0, d); }

/* sparse (m,k) @ dense (k,n): rows of the dense, scaled, added up. */
static msa_tensor *times_dense(msa_tensor *sparse, msa_tensor *dense) {
    msa_auto msa_tensor *out = msa_tensor_new(MSA_INTS(sparse->sizes[0], dense->sizes[1]), (msa_dtype)dense->dtype);
    msa_auto msa_tensor *index = msa_contiguous_values(indices_of(sparse)), *plain = msa_contiguous_values(dense), *values = msa_contiguous_values(values_of(sparse));
    if (!out || !index || !plain || !values || msa_fill_values(out, msa_int(0)) != 0) return NULL;
    const int64_t n = count(sparse), width = dense->sizes[1], *at = msa_data(index);
    if (!n || !width) return msa_take(out);
#define ADD_ROWS(T) { \
        const T *v = msa_data(values), *from = msa_data(plain); \
        T *to = msa_data(out); \
        for (int64_t k = 0; k < n; k++) { \
            T *row = to + at[k] * width; \
            const T *other = from + at[n + k] * width, factor = v[k]; \
            for (int64_t j = 0; j < width; j++) row[j] += factor * other[j]; \
        } \
        return msa_take(out); \
    }
    if (dense->dtype == MSA_FLOAT32) ADD_ROWS(float)
    if (dense->dtype == MSA_FLOAT64) ADD_ROWS(double)
    msa_auto msa_tensor *rows = row_of(index, 0), *columns = row_of(index, 1), *picked = columns ? msa_index_select(plain, 0, columns) : NULL;
    msa_auto msa_tensor *factors = msa_unsqueeze(values, 1), *parts = factors && picked ? msa_mul(picked, factors) : NULL;
    return rows && parts ? msa_index_add(out, 0, rows, parts, msa_int(1)) : NULL;
}

/* sparse (m,k) @ sparse (k,n): Gustavson, ACM TOMS 4 (1978): for each element of a, the row of b that it meets. */
static msa_tensor *times_sparse(msa_tensor *a, msa_tensor *b) {
    msa_auto msa_tensor *right = coalesced(b), *rows = right ? to_sparse_csr_cpu(right) : NULL, *ai = msa_contiguous_values(indices_of(a));
    if (!rows || !ai) return NULL;
    const int64_t *begin = msa_data(msa_sparse_of(rows)->indices), *column = msa_data(msa_sparse_of(rows)->columns), *at = msa_data(ai), n = count(a);
    int64_t total = 0;
    for (int64_t k = 0; k < n; k++) total += begin[at[n + k] + 1] - begin[at[n + k]];
    msa_auto msa_tensor *indices = msa_tensor_new(MSA_INTS(2, total), MSA_INT64), *of_a = msa_tensor_new(MSA_INTS(total), MSA_INT64), *of_b = msa_tensor_new(MSA_INTS(total), MSA_INT64);
    if (!indices || !of_a || !of_b) return NULL;
    int64_t *to = msa_data(indices), *pa = msa_data(of_a), *pb = msa_data(of_b), i = 0;
    for (int64_t k = 0; k < n; k++)
        for (int64_t j = begin[at[n + k]]; j < begin[at[n + k] + 1]; j++, i++) {
            to[i] = at[k];
            to[total + i] = column[j];
            pa[i] = k;
            pb[i] = j;
        }
    msa_auto msa_tensor *va = msa_index_select(values_of(a), 0, of_a), *vb = msa_index_select(values_of(rows), 0, of_b), *values = va && vb ? msa_mul(va, vb) : NULL;
    msa_auto msa_tensor *product = values ? msa_sparse_new(MSA_SPARSE_COO, MSA_INTS(a->sizes[0], b->sizes[1]), indices, NULL, values, false) : NULL;
    return product ? coalesce_sparse(product) : NULL;
}

msa_tensor *sparse_mm_cpu(msa_tensor *self, msa_tensor *mat2) {
    if (self->ndim != 2 || mat2->ndim != 2)
        return msa_fail_null(MSA_RUNTIME_ERROR, "addmm: matrices expected, got %dD and %dD tensors", self->ndim, mat2->ndim);
    if (self->sizes[1] != mat2->sizes[0])
        return msa_fail_null(MSA_RUNTIME_ERROR, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", (long long)self->sizes[0], (long long)self->sizes[1],
                             (long long)mat2->sizes[0], (long long)mat2->sizes[1]);
    if (self->dtype != mat2->dtype)
        return msa_fail_null(MSA_RUNTIME_ERROR, "expected mat1 and mat2 to have the same dtype, but got: %s != %s", msa_dtype_name((msa_dtype)self->dtype), msa_dtype_name((msa_dtype)mat2->dtype));
    msa_auto msa_tensor *a = as_coo(self), *b = as_coo(mat2);
    if (!a || !b) return NULL;
    if ((a->layout && sparse_dims(a) != 2) || (b->layout && sparse_dims(b) != 2))
        return msa_fail_null(MSA_RUNTIME_ERROR, "mm: sparse matrices with dense dimensions cannot be multiplied");
    if (!b->layout) return times_dense(a, b);
    if (a->layout) {
        msa_auto msa_tensor *product = times_sparse(a, b);
        return !product || self->layout == MSA_SPARSE_COO ? msa_take(product) : to_sparse_csr_cpu(product);
    }
    msa_auto msa_tensor *left = msa_t(a), *right = transpose_sparse(b, 0, 1), *product = left && right ? times_dense(right, left) : NULL;
    return product ? msa_t(product) : NULL;
}

msa_tensor *sampled_addmm_cpu(msa_tensor *self, msa_tensor *mat1, msa_tensor *mat2, msa_scalar beta, msa_scalar alpha) {
    if (self->layout != MSA_SPARSE_CSR) return msa_fail_null(MSA_NOT_IMPLEMENTED, "sampled_addmm expected a sparse CSR tensor but got another");
    if (mat1->layout | mat2->layout) return msa_fail_null(MSA_RUNTIME_ERROR, "sampled_addmm: Expected mat1 and mat2 to have strided layout");
    if (mat1->ndim != 2 || mat2->ndim != 2 || mat1->sizes[1] != mat2->sizes[0] || mat1->sizes[0] != self->sizes[0] || mat2->sizes[1] != self->sizes[1])
        return msa_fail_null(MSA_RUNTIME_ERROR, "sampled_addmm: mat1 %s and mat2 %s cannot be multiplied into self %s", msa_sizes_text(msa_sizes(mat1)), msa_sizes_text(msa_sizes(mat2)),
                             msa_sizes_text(msa_sizes(self)));
    if (mat1->dtype != mat2->dtype || mat1->dtype != self->dtype) return msa_fail_null(MSA_RUNTIME_ERROR, "sampled_addmm: Expected self, mat1 and mat2 to have the same dtype");
    msa_auto msa_tensor *coo = as_coo(self), *rows = coo ? row_of(indices_of(coo), 0) : NULL, *columns = coo ? row_of(indices_of(coo), 1) : NULL, *turned = msa_t(mat2);
    msa_auto msa_tensor *a = rows ? msa_index_select(mat1, 0, rows) : NULL, *b = columns && turned ? msa_index_select(turned, 0, columns) : NULL;
    msa_auto msa_tensor *parts = a && b ? msa_mul(a, b) : NULL, *dots = parts ? msa_sum_dim_IntList(parts, MSA_INTS(1), false, MSA_NO_DTYPE) : NULL;
    msa_auto msa_tensor *scaled_dots = dots ? multiplied(dots, alpha) : NULL, *old = multiplied(values_of(self), beta);
    msa_auto msa_tensor *values = scaled_dots && old ? msa_add(scaled_dots, old, msa_int(1)) : NULL;
    return with_values(self, values);
}
