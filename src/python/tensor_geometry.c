/* Methods that change a tensor's geometry in place: unsqueeze_, squeeze_, transpose_ and their names.
 *
 * The view is made by the operator of the same name, which records its gradient; then the tensor becomes that view: it takes the
 * view's sizes and strides and its place in the graph over. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "python/functions.h"
#include "python/tensor.h"

static PyObject *become(PyObject *self, PyObject *view_object) {
    if (!view_object) return NULL;
    msa_tensor *t = msa_python_tensor_of(self), *view = msa_python_tensor_of(view_object);
    PyObject *result = NULL;
    int status = msa_python_check_strided("a change of geometry in place", t);
    if (status != 0) {
        msa_python_raise();
        goto done;
    }
    msa_node *node = msa_grad_enabled() && t->requires_grad ? msa_tensor_grad_fn(view, &status) : NULL;
    struct msa_autograd *a = node ? msa_autograd_of(t) : NULL;
    if (status != 0 || (node && !a) || msa_tensor_set_geometry(t, view->ndim, view->sizes, view->strides, view->offset) != 0) {
        msa_python_raise();
        goto done;
    }
    if (node) {
        msa_node *before = a->grad_fn;
        a->grad_fn = msa_node_retain(node);
        a->output = view->autograd->output;
        msa_node_release(before);
    }
    result = Py_NewRef(self);
done:
    Py_DECREF(view_object);
    return result;
}

static PyObject *changed(const char *name, const char *own_name, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    if (msa_check_inplace(own_name, msa_python_tensor_of(self), false) != 0) return msa_python_raise();
    PyObject *method = PyObject_GetAttrString((PyObject *)&msa_python_tensor_type, name);
    Py_ssize_t total = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    /* Of an alias: what the operator saves for backward must not change with the tensor. */
    PyObject *slots[9], *view = NULL, *alias = method ? msa_python_wrap(msa_alias(msa_python_tensor_of(self))) : NULL;
    if (!alias) Py_CLEAR(method);
    if (method && total > 8) PyErr_Format(PyExc_TypeError, "%s() received too many arguments", own_name);
    else if (method) {
        slots[0] = alias;
        memcpy(slots + 1, args, sizeof(PyObject *) * (size_t)total);
        view = PyObject_Vectorcall(method, slots, (size_t)n + 1, keywords);
    }
    Py_XDECREF(method);
    Py_XDECREF(alias);
    return become(self, view);
}

#define IN_PLACE(name) \
    static PyObject *name##_(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) { \
        return changed(#name, #name "_", self, args, n, keywords); \
    }
IN_PLACE(unsqueeze)
IN_PLACE(squeeze)
IN_PLACE(transpose)
IN_PLACE(swapaxes)
IN_PLACE(swapdims)
IN_PLACE(t)
IN_PLACE(as_strided)

#define FAST(f) (PyCFunction)(void (*)(void))f, METH_FASTCALL | METH_KEYWORDS
PyMethodDef msa_python_geometry_methods[] = {
    {"unsqueeze_", FAST(unsqueeze_), "unsqueeze_(dim) -> Tensor\n\nunsqueeze() in place."},
    {"squeeze_", FAST(squeeze_), "squeeze_(dim=None) -> Tensor\n\nsqueeze() in place."},
    {"transpose_", FAST(transpose_), "transpose_(dim0, dim1) -> Tensor\n\ntranspose() in place."},
    {"swapaxes_", FAST(swapaxes_), "swapaxes_(axis0, axis1) -> Tensor\n\nswapaxes() in place."},
    {"swapdims_", FAST(swapdims_), "swapdims_(dim0, dim1) -> Tensor\n\nswapdims() in place."},
    {"t_", FAST(t_), "t_() -> Tensor\n\nt() in place."},
    {"as_strided_", FAST(as_strided_), "as_strided_(size, stride, storage_offset=None) -> Tensor\n\nas_strided() in place."},
    {NULL, NULL, 0, NULL},
};
