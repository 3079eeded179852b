/* The profiler as Python sees it: to start it, to stop it with a list of its events, and blocks of the user's own. */
#include "autograd/profile.h"

#include "python/internal.h"

static PyObject *stack_hook; /* () -> list of str */

/* A failure leaves the place out: a profile must not change what runs. */
static void *call_stack(void) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *where;
    PyErr_Fetch(&type, &value, &where);
    PyObject *lines = stack_hook ? PyObject_CallNoArgs(stack_hook) : NULL;
    if (!lines) PyErr_Clear();
    PyErr_Restore(type, value, where);
    PyGILState_Release(state);
    return lines;
}

static PyObject *start(PyObject *module, PyObject *args) {
    int shapes;
    PyObject *stack;
    if (!PyArg_ParseTuple(args, "pO:_profile_start", &shapes, &stack)) return NULL;
    if (msa_profile_start(shapes, stack == Py_None ? NULL : call_stack) != 0) return msa_python_raise();
    Py_XSETREF(stack_hook, Py_NewRef(stack));
    Py_RETURN_NONE;
}

static PyObject *shapes_of(const msa_profile_event *e) {
    if (e->n_inputs < 0) Py_RETURN_NONE;
    PyObject *list = PyList_New(e->n_inputs);
    const int64_t *at = e->shapes;
    for (int32_t i = 0; list && i < e->n_inputs; i++) {
        const int64_t n = *at++; /* -1: no tensor */
        PyObject *sizes = PyList_New(n > 0 ? (Py_ssize_t)n : 0);
        for (int64_t d = 0; sizes && d < n; d++) {
            PyObject *size = PyLong_FromLongLong(*at++);
            if (size) PyList_SET_ITEM(sizes, d, size);
            else Py_CLEAR(sizes);
        }
        if (sizes) PyList_SET_ITEM(list, i, sizes);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *stop(PyObject *module, PyObject *unused) {
    int64_t n;
    msa_profile_event *events = msa_profile_stop(&n);
    if (!events) return msa_python_raise();
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; list && i < n; i++) {
        const msa_profile_event *e = &events[i];
        PyObject *item = Py_BuildValue("(siLLLKLLNO)", e->name, (int)e->kind, (long long)e->start, (long long)e->end, (long long)e->parent,
                                       (unsigned long long)e->thread, (long long)e->bytes, (long long)e->sequence, shapes_of(e),
                                       e->stack ? (PyObject *)e->stack : Py_None);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    msa_profile_free(events, n, msa_python_drop);
    return list;
}

static PyObject *enter(PyObject *module, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    return text ? PyLong_FromLongLong(msa_profile_enter(MSA_PROFILE_USER, text, NULL, 0)) : NULL;
}

static PyObject *leave(PyObject *module, PyObject *number) {
    const long long n = PyLong_AsLongLong(number);
    if (n == -1 && PyErr_Occurred()) return NULL;
    msa_profile_leave(n);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_profile_start", start, METH_VARARGS, "_profile_start(shapes, stack): events of this thread from now on, with what stack(), if not None, says for each."},
    {"_profile_stop", stop, METH_NOARGS,
     "[(name, kind, start ns, end ns, index of the parent or -1, thread, bytes, number of the node or -1, shapes, stack)] in the order of their beginning."},
    {"_profile_enter", enter, METH_O, "A block of the user's begins; a number for _profile_leave."},
    {"_profile_leave", leave, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_profiler(PyObject *module) { return PyModule_AddFunctions(module, functions); }
