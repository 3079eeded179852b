/* What torch.multiprocessing needs of storages: to share one, and to find what another process shares. Handles are what
 * PyTorch's are: (descriptor, bytes), or (manager, name, bytes), where the manager is empty, for nobody but the count
 * in the file watches it. */
#include "python/sharing.h"

#include <signal.h>
#include <sys/prctl.h>

#include "python/tensor.h"

msa_sharing msa_python_sharing = MSA_SHARED_BY_DESCRIPTOR;

static msa_storage *of(PyObject *self) {
    msa_dtype dtype;
    return msa_python_storage_of(self, &dtype);
}

/* Storages of elements are asked for without a type: they hold the default one, as the constructor's do. */
static PyObject *object(PyObject *type, msa_storage *owned) {
    return msa_python_new_storage(owned,
                                  type == (PyObject *)&msa_python_storage_type ? msa_default_dtype() : MSA_NO_DTYPE);
}

static PyObject *share_descriptor(PyObject *self, PyObject *unused) {
    msa_storage *s = of(self);
    if (msa_storage_share(s, MSA_SHARED_BY_DESCRIPTOR) != 0) return msa_python_raise();
    return Py_BuildValue("in", msa_storage_shared_descriptor(s), (Py_ssize_t)s->bytes);
}

static PyObject *share_name(PyObject *self, PyObject *unused) {
    msa_storage *s = of(self);
    if (msa_storage_share(s, MSA_SHARED_BY_NAME) != 0) return msa_python_raise();
    return Py_BuildValue("yyn", "", msa_storage_shared_name(s), (Py_ssize_t)s->bytes);
}

static PyObject *new_shared(PyObject *type, PyObject *size) {
    int64_t n;
    int status = msa_python_as_int(size, &n);
    if (status == 0) PyErr_Format(PyExc_TypeError, "_new_shared() expects an int, not %.200s", Py_TYPE(size)->tp_name);
    if (status != 1) return NULL;
    if (n < 0 || (uint64_t)n > (uint64_t)INT64_MAX / 32)
        return PyErr_Format(PyExc_RuntimeError, "invalid storage size %lld", (long long)n);
    size_t itemsize = type == (PyObject *)&msa_python_storage_type ? msa_dtype_size(msa_default_dtype()) : 1;
    return object(type, msa_storage_new_shared((size_t)n * itemsize, msa_python_sharing));
}

static PyObject *from_descriptor(PyObject *type, PyObject *args) {
    int descriptor;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "in:_new_shared_fd_cpu", &descriptor, &bytes)) return NULL;
    if (bytes < 0) return PyErr_Format(PyExc_RuntimeError, "invalid storage size %zd", bytes);
    return object(type, msa_storage_from_descriptor(descriptor, (size_t)bytes));
}

static PyObject *from_name(PyObject *type, PyObject *args) {
    const char *manager, *name;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "yyn:_new_shared_filename_cpu", &manager, &name, &bytes)) return NULL;
    if (bytes < 0) return PyErr_Format(PyExc_RuntimeError, "invalid storage size %zd", bytes);
    return object(type, msa_storage_from_name(name, (size_t)bytes));
}

static PyObject *count_up(PyObject *self, PyObject *unused) {
    msa_shared_count(of(self), 1);
    return Py_NewRef(self);
}

static PyObject *count_down(PyObject *self, PyObject *unused) {
    msa_shared_count(of(self), -1);
    return Py_NewRef(self);
}

static PyMethodDef methods[] = {
    {"_share_fd_cpu_", share_descriptor, METH_NOARGS,
     "_share_fd_cpu_() -> (int, int)\n\nShare by descriptor, which stays the storage's; and the bytes."},
    {"_share_filename_cpu_", share_name, METH_NOARGS,
     "_share_filename_cpu_() -> (bytes, bytes, int)\n\nShare by name: no manager, the name, the bytes."},
    {"_shared_incref", count_up, METH_NOARGS, "Count a message under way that names this memory."},
    {"_shared_decref", count_down, METH_NOARGS, "Count one less."},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef class_methods[] = {
    {"_new_shared", new_shared, METH_O, "_new_shared(size) -> storage\n\nShared from the start, filled with zeros."},
    {"_new_shared_fd_cpu", from_descriptor, METH_VARARGS, "_new_shared_fd_cpu(fd, bytes) -> storage"},
    {"_new_shared_filename_cpu", from_name, METH_VARARGS, "_new_shared_filename_cpu(manager, name, bytes) -> storage"},
    {NULL, NULL, 0, NULL},
};

static PyObject *set_sharing_by_name(PyObject *module, PyObject *yes) {
    int by_name = PyObject_IsTrue(yes);
    if (by_name < 0) return NULL;
    msa_python_sharing = by_name ? MSA_SHARED_BY_NAME : MSA_SHARED_BY_DESCRIPTOR;
    Py_RETURN_NONE;
}

static PyObject *leave_shared(PyObject *module, PyObject *unused) {
    msa_shared_leave();
    Py_RETURN_NONE;
}

static PyObject *die_with_parent(PyObject *module, PyObject *value) {
    int64_t number;
    int status = msa_python_as_int(value, &number);
    if (status == 0)
        PyErr_Format(PyExc_TypeError, "_prctl_pr_set_pdeathsig() expects an int, not %.200s", Py_TYPE(value)->tp_name);
    if (status != 1) return NULL;
    if (number < 0 || number > SIGRTMAX || prctl(PR_SET_PDEATHSIG, (unsigned long)number) != 0)
        return PyErr_Format(PyExc_ValueError, "there is no signal %lld", (long long)number);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_set_sharing_by_name", set_sharing_by_name, METH_O, NULL},
    {"_leave_shared_memory", leave_shared, METH_NOARGS, NULL},
    {"_prctl_pr_set_pdeathsig", die_with_parent, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_sharing(PyObject *module, PyTypeObject *type) {
    for (PyMethodDef *tables[] = {methods, class_methods}, **table = tables; table < tables + 2; table++)
        for (PyMethodDef *m = *table; m->ml_name; m++) {
            PyObject *descriptor = *table == methods ? PyDescr_NewMethod(type, m) : PyDescr_NewClassMethod(type, m);
            int status = descriptor ? PyDict_SetItemString(type->tp_dict, m->ml_name, descriptor) : -1;
            Py_XDECREF(descriptor);
            if (status != 0) return -1;
        }
    PyType_Modified(type);
    return PyModule_AddFunctions(module, functions);
}
