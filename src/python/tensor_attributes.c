/* Attributes of tensors: shape, dtype, device, views such as T, and `data`. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "python/override.h"
#include "python/tensor.h"

static msa_tensor *of(PyObject *self) { return msa_python_tensor_of(self); }

static PyObject *get_shape(PyObject *self, void *unused) { return msa_python_size(msa_sizes(of(self))); }
static PyObject *get_dtype(PyObject *self, void *unused) { return msa_python_dtype((msa_dtype)of(self)->dtype); }
static PyObject *get_device(PyObject *self, void *unused) { return msa_python_device(0, -1); }
static PyObject *get_layout(PyObject *self, void *unused) { return msa_python_layout(of(self)->layout); }
static PyObject *get_ndim(PyObject *self, void *unused) { return PyLong_FromLong(of(self)->ndim); }
static PyObject *get_itemsize(PyObject *self, void *unused) { return PyLong_FromSize_t(msa_dtype_size((msa_dtype)of(self)->dtype)); }
static PyObject *get_nbytes(PyObject *self, void *unused) {
    return PyLong_FromLongLong((long long)of(self)->numel * (long long)msa_dtype_size((msa_dtype)of(self)->dtype));
}
static PyObject *get_true(PyObject *self, void *unused) { Py_RETURN_TRUE; }
static PyObject *get_false(PyObject *self, void *unused) { Py_RETURN_FALSE; }
static PyObject *get_is_sparse(PyObject *self, void *unused) { return PyBool_FromLong(of(self)->layout == MSA_SPARSE_COO); }
static PyObject *get_is_sparse_csr(PyObject *self, void *unused) { return PyBool_FromLong(of(self)->layout == MSA_SPARSE_CSR); }
static PyObject *get_none(PyObject *self, void *unused) { Py_RETURN_NONE; }

static PyObject *get_data(PyObject *self, void *unused) {
    msa_tensor *t = msa_tensor_alias(of(self));
    if (t) t->detached_data = true;
    return msa_python_wrap_like(self, t);
}

/* t.data = u: t becomes what u is, and keeps what it knows about gradients. */
static int set_data(PyObject *self, PyObject *value, void *unused) {
    if (!value || !msa_python_is_tensor(value)) {
        PyErr_Format(PyExc_TypeError, "Variable data has to be a tensor, but got %.200s", value ? Py_TYPE(value)->tp_name : "nothing");
        return -1;
    }
    msa_tensor *t = of(self), *source = of(value);
    if (t == source) return 0;
    if (t->requires_grad && !msa_is_inexact((msa_dtype)source->dtype)) {
        PyErr_SetString(PyExc_RuntimeError, "data set to a tensor that requires gradients must be floating point or complex dtype");
        return -1;
    }
    msa_tensor_set_storage(t, source->storage, (msa_dtype)source->dtype);
    if (msa_tensor_set_geometry(t, source->ndim, source->sizes, source->strides, source->offset) == 0) return 0;
    msa_python_raise();
    return -1;
}

static PyObject *swapped(PyObject *self, const char *name, bool batched, bool conjugate) {
    msa_tensor *t = of(self);
    if (t->ndim == 0) return conjugate && msa_is_complex((msa_dtype)t->dtype) ? msa_python_wrap_like(self, msa_conj(t)) : msa_python_wrap_like(self, msa_alias(t));
    if (t->ndim < 2 || (!batched && t->ndim != 2))
        return PyErr_Format(PyExc_RuntimeError, batched ? "tensor.%s is only supported on matrices or batches of matrices. Got %d-D tensor."
                                                        : "tensor.%s is only supported on matrices (2-D tensors). Got %d-D tensor.",
                            name, t->ndim);
    msa_auto msa_tensor *view = msa_transpose_int(t, -2, -1);
    if (!view) return msa_python_raise();
    return msa_python_wrap_like(self, conjugate && msa_is_complex((msa_dtype)t->dtype) ? msa_conj(view) : msa_take(view));
}

static PyObject *get_T(PyObject *self, void *unused) {
    msa_tensor *t = of(self);
    if (t->ndim == 2) return msa_python_wrap_like(self, msa_transpose_int(t, 0, 1));
    int64_t dims[MSA_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++) dims[i] = t->ndim - 1 - i;
    return msa_python_wrap_like(self, msa_permute(t, (msa_ints){dims, t->ndim}));
}
static PyObject *get_mT(PyObject *self, void *unused) { return swapped(self, "mT", true, false); }
static PyObject *get_mH(PyObject *self, void *unused) { return swapped(self, "mH", true, true); }
static PyObject *get_H(PyObject *self, void *unused) { return swapped(self, "H", false, true); }

static PyObject *get_real(PyObject *self, void *unused) { return msa_python_wrap_like(self, msa_real(of(self))); }
static PyObject *get_imag(PyObject *self, void *unused) { return msa_python_wrap_like(self, msa_imag(of(self))); }

static int set_part(msa_tensor *part, PyObject *value) {
    msa_auto msa_tensor *view = part;
    msa_scalar number;
    msa_auto msa_tensor *source = NULL;
    if (!view) {
        msa_python_raise();
        return -1;
    }
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "the parts of a tensor cannot be deleted");
        return -1;
    }
    if (msa_python_is_tensor(value)) source = msa_tensor_retain(of(value));
    else if (msa_python_scalar(value, &number) != 0) return -1;
    else source = msa_python_number(number);
    msa_auto msa_tensor *written = source ? msa_copy_(view, source, false) : NULL;
    if (written) return 0;
    msa_python_raise();
    return -1;
}
static int set_real(PyObject *self, PyObject *value, void *unused) { return set_part(msa_real(of(self)), value); }
static int set_imag(PyObject *self, PyObject *value, void *unused) { return set_part(msa_imag(of(self)), value); }

PyGetSetDef msa_python_tensor_getset[] = {
    {"shape", get_shape, NULL, "The sizes of the dimensions, a torch.Size.", NULL},
    {"dtype", get_dtype, NULL, "The type of the elements.", NULL},
    {"device", get_device, NULL, "Where the memory is.", NULL},
    {"layout", get_layout, NULL, "torch.strided, torch.sparse_coo or torch.sparse_csr.", NULL},
    {"ndim", get_ndim, NULL, "The number of dimensions.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"data", get_data, set_data, "The same memory without gradient.", NULL},
    {"T", get_T, NULL, "The view with the dimensions in reverse.", NULL},
    {"mT", get_mT, NULL, "The view with the last two dimensions swapped.", NULL},
    {"H", get_H, NULL, "The conjugate transpose of a matrix.", NULL},
    {"mH", get_mH, NULL, "The conjugate transpose of the last two dimensions.", NULL},
    {"real", get_real, set_real, "The real part, a view.", NULL},
    {"imag", get_imag, set_imag, "The imaginary part, a view; RuntimeError for real tensors.", NULL},
    {"names", get_none, NULL, "None: dimensions have no names here.", NULL},
    {"name", get_none, NULL, NULL, NULL},
    {"is_cpu", get_true, NULL, NULL, NULL},
    {"is_cuda", get_false, NULL, NULL, NULL},
    {"is_npu", get_false, NULL, NULL, NULL},
    {"is_xpu", get_false, NULL, NULL, NULL},
    {"is_ipu", get_false, NULL, NULL, NULL},
    {"is_mps", get_false, NULL, NULL, NULL},
    {"is_xla", get_false, NULL, NULL, NULL},
    {"is_ort", get_false, NULL, NULL, NULL},
    {"is_vulkan", get_false, NULL, NULL, NULL},
    {"is_meta", get_false, NULL, NULL, NULL},
    {"is_mkldnn", get_false, NULL, NULL, NULL},
    {"is_sparse", get_is_sparse, NULL, "Whether the layout is torch.sparse_coo.", NULL},
    {"is_sparse_csr", get_is_sparse_csr, NULL, "Whether the layout is torch.sparse_csr.", NULL},
    {"is_quantized", get_false, NULL, NULL, NULL},
    {"is_nested", get_false, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
