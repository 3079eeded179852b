/* Process groups for torch.distributed: _C._ProcessGroup, made from a listening socket and the others' addresses, and
 * _C._Work. */
#include "parallel/group.h"

#include <unistd.h>

#include "python/tensor.h"

typedef struct {
    PyObject_HEAD msa_group *group; /* NULL: destroyed */
    int rank, size;
} python_group;

typedef struct {
    PyObject_HEAD msa_work *work;
    PyObject *group; /* kept as long as its works */
} python_work;

static PyTypeObject group_type, work_type;

/* listen(host) -> (descriptor, port) */
static PyObject *listen_on(PyObject *module, PyObject *args) {
    const char *host;
    int port, s;
    if (!PyArg_ParseTuple(args, "s:_mesh_listen", &host)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    s = msa_mesh_listen(host, &port);
    Py_END_ALLOW_THREADS;
    return s < 0 ? msa_python_raise() : Py_BuildValue("ii", s, port);
}

/* _ProcessGroup(descriptor, rank, [(host, port) of each rank], token, timeout in ms) */
static PyObject *group_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    int listener, rank;
    PyObject *addresses;
    unsigned long long token;
    long long timeout;
    if (!PyArg_ParseTuple(args, "iiO!KL:_ProcessGroup", &listener, &rank, &PyList_Type, &addresses, &token, &timeout))
        return NULL;
    Py_ssize_t size = PyList_GET_SIZE(addresses);
    if (rank < 0 || rank >= size || size > 65536) return PyErr_Format(PyExc_ValueError, "rank %d of %zd", rank, size);
    const char **hosts = PyMem_Calloc((size_t)size, sizeof *hosts);
    int *ports = PyMem_Calloc((size_t)size, sizeof *ports);
    python_group *self = NULL;
    if (!hosts || !ports) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < size; i++)
        if (!PyArg_ParseTuple(PyList_GET_ITEM(addresses, i), "si", &hosts[i], &ports[i])) goto done;
    self = (python_group *)type->tp_alloc(type, 0);
    if (!self) goto done;
    self->rank = rank;
    self->size = (int)size;
    Py_BEGIN_ALLOW_THREADS;
    msa_mesh *mesh = msa_mesh_connect(listener, rank, (int)size, hosts, ports, token, timeout);
    self->group = mesh ? msa_group_new(mesh, timeout) : NULL;
    Py_END_ALLOW_THREADS;
    if (!self->group) {
        Py_CLEAR(self);
        msa_python_raise();
    }
done:
    PyMem_Free(hosts);
    PyMem_Free(ports);
    return (PyObject *)self;
}

static PyObject *group_close(PyObject *self, PyObject *unused) {
    python_group *g = (python_group *)self;
    msa_group *group = msa_take(g->group);
    if (group) msa_group_release(group);
    Py_RETURN_NONE;
}

static void group_dealloc(PyObject *self) {
    python_group *g = (python_group *)self;
    if (g->group) msa_group_release(g->group);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *work_object(PyObject *group, msa_work *work) {
    if (!work) return msa_python_raise();
    python_work *w = PyObject_New(python_work, &work_type);
    if (!w) {
        msa_work_release(work);
        return NULL;
    }
    w->work = work;
    w->group = Py_NewRef(group);
    return (PyObject *)w;
}

static bool is_open(const python_group *g) {
    if (!g->group) PyErr_SetString(PyExc_RuntimeError, "the process group has been destroyed");
    return g->group != NULL;
}

/* A list of tensors, borrowed as long as the list lives unchanged: they are retained before Python code can run again.
 */
static msa_tensor **tensors_of(PyObject *list, int64_t *n) {
    *n = PyList_GET_SIZE(list);
    msa_tensor **tensors = PyMem_Calloc((size_t)*n + 1, sizeof *tensors);
    if (!tensors) PyErr_NoMemory();
    for (int64_t i = 0; tensors && i < *n; i++)
        if (!(tensors[i] = msa_python_unwrap(PyList_GET_ITEM(list, i)))) {
            PyMem_Free(tensors);
            return NULL;
        }
    return tensors;
}

/* start(what, op, root, outputs, inputs) -> work */
static PyObject *group_start(PyObject *self, PyObject *args) {
    python_group *g = (python_group *)self;
    int what, op, root;
    PyObject *outputs, *inputs;
    if (!PyArg_ParseTuple(args, "iiiO!O!:start", &what, &op, &root, &PyList_Type, &outputs, &PyList_Type, &inputs) ||
        !is_open(g))
        return NULL;
    msa_tensors out = {NULL, 0}, in = {NULL, 0};
    msa_tensor **out_data = tensors_of(outputs, &out.n), **in_data = out_data ? tensors_of(inputs, &in.n) : NULL;
    out.data = out_data;
    in.data = in_data;
    PyObject *result =
        in_data ? work_object(self, msa_group_start(g->group, (msa_collective)what, (msa_reduce_op)op, root, out, in))
                : NULL;
    PyMem_Free(out_data);
    PyMem_Free(in_data);
    return result;
}

static PyObject *message(PyObject *self, PyObject *args, bool sends) {
    python_group *g = (python_group *)self;
    PyObject *object;
    int peer;
    unsigned tag;
    if (!PyArg_ParseTuple(args, "OiI", &object, &peer, &tag) || !is_open(g)) return NULL;
    msa_tensor *t = msa_python_unwrap(object);
    return t ? work_object(self,
                           sends ? msa_group_send(g->group, peer, tag, t) : msa_group_receive(g->group, peer, tag, t))
             : NULL;
}
static PyObject *group_send(PyObject *self, PyObject *args) {
    return message(self, args, true);
}
static PyObject *group_receive(PyObject *self, PyObject *args) {
    return message(self, args, false);
}

static PyMethodDef group_methods[] = {
    {"start", group_start, METH_VARARGS, "start(what, op, root, outputs, inputs) -> work"},
    {"send", group_send, METH_VARARGS, "send(tensor, rank, tag) -> work"},
    {"receive", group_receive, METH_VARARGS, "receive(tensor, rank or -1, tag) -> work"},
    {"close", group_close, METH_NOARGS, "End it: what has not run fails."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject group_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msadapter._C._ProcessGroup",
    .tp_basicsize = sizeof(python_group),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "_ProcessGroup(listener, rank, addresses, token, timeout_ms)\n\nProcesses that are connected with each other.",
    .tp_new = group_new,
    .tp_dealloc = group_dealloc,
    .tp_methods = group_methods,
};

static void work_dealloc(PyObject *self) {
    python_work *w = (python_work *)self;
    msa_work_release(w->work);
    Py_DECREF(w->group);
    PyObject_Free(self);
}

static PyObject *work_done(PyObject *self, PyObject *unused) {
    return PyBool_FromLong(msa_work_done(((python_work *)self)->work));
}
static PyObject *work_source(PyObject *self, PyObject *unused) {
    return PyLong_FromLong(msa_work_source(((python_work *)self)->work));
}
static PyObject *work_cancel(PyObject *self, PyObject *unused) {
    msa_work_cancel(((python_work *)self)->work);
    Py_RETURN_NONE;
}

/* wait(ms, negative: forever) -> whether it is done; raises what went wrong. Signals are looked at all the while. */
static PyObject *work_wait(PyObject *self, PyObject *args) {
    long long timeout;
    if (!PyArg_ParseTuple(args, "L:wait", &timeout)) return NULL;
    int64_t deadline = msa_deadline(timeout);
    for (;;) {
        int64_t now = msa_now(), until = deadline - now > 100 ? now + 100 : deadline;
        int status;
        Py_BEGIN_ALLOW_THREADS;
        status = msa_work_wait(((python_work *)self)->work, until);
        Py_END_ALLOW_THREADS;
        if (status < 0) return msa_python_raise();
        if (status == 0) Py_RETURN_TRUE;
        if (PyErr_CheckSignals() != 0) return NULL;
        if (until == deadline) Py_RETURN_FALSE;
    }
}

static PyMethodDef work_methods[] = {
    {"done", work_done, METH_NOARGS, NULL},
    {"wait", work_wait, METH_VARARGS, NULL},
    {"source", work_source, METH_NOARGS, NULL},
    {"cancel", work_cancel, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject work_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msadapter._C._Work",
    .tp_basicsize = sizeof(python_work),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_dealloc = work_dealloc,
    .tp_methods = work_methods,
};

static PyMethodDef functions[] = {
    {"_mesh_listen", listen_on, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_parallel(PyObject *module) {
    if (PyType_Ready(&group_type) != 0 || PyType_Ready(&work_type) != 0 ||
        PyModule_AddObjectRef(module, "_ProcessGroup", (PyObject *)&group_type) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
