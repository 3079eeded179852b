/* What Python does with the graph while it is made: hooks that take saved tensors over, and the search for anomalies. */
#include "python/autograd.h"

#include "msadapter/autograd.h"

/* Saved tensors. Hooks lie on a stack of the thread; the topmost ones pack. A packed value is a tuple (unpack, what pack returned). */

typedef struct saved_hooks {
    struct saved_hooks *below;
    PyObject *pack, *unpack;
    msa_packer packer;
} saved_hooks;

static _Thread_local saved_hooks *top;

static void *pack(void *context, msa_tensor *t) {
    const saved_hooks *hooks = context;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *argument = msa_python_wrap(msa_tensor_retain(t));
    PyObject *value = argument ? PyObject_CallOneArg(hooks->pack, argument) : NULL;
    PyObject *packed = value ? PyTuple_Pack(2, hooks->unpack, value) : NULL;
    Py_XDECREF(argument);
    Py_XDECREF(value);
    PyGILState_Release(state);
    return packed ? packed : msa_fail_null(MSA_FOREIGN_ERROR, "a Python exception was raised");
}

static msa_tensor *unpack(void *packed) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *value = PyObject_CallOneArg(PyTuple_GET_ITEM(packed, 0), PyTuple_GET_ITEM(packed, 1));
    msa_tensor *t = NULL;
    if (value && !msa_python_is_tensor(value))
        PyErr_Format(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s", Py_TYPE(value)->tp_name);
    else if (value)
        t = msa_tensor_retain(((python_tensor *)value)->tensor);
    Py_XDECREF(value);
    PyGILState_Release(state);
    return t ? t : msa_fail_null(MSA_FOREIGN_ERROR, "a Python exception was raised");
}

static PyObject *push_saved_hooks(PyObject *module, PyObject *args) {
    PyObject *pack_hook, *unpack_hook;
    if (!PyArg_ParseTuple(args, "OO", &pack_hook, &unpack_hook)) return NULL;
    saved_hooks *hooks = PyMem_Calloc(1, sizeof *hooks);
    if (!hooks) return PyErr_NoMemory();
    *hooks = (saved_hooks){top, Py_NewRef(pack_hook), Py_NewRef(unpack_hook), {pack, unpack, msa_python_drop, hooks}};
    top = hooks;
    msa_packer_now = &hooks->packer;
    Py_RETURN_NONE;
}

static PyObject *pop_saved_hooks(PyObject *module, PyObject *unused) {
    saved_hooks *hooks = top;
    if (!hooks) {
        PyErr_SetString(PyExc_RuntimeError, "saved_tensors_hooks: there are no hooks to take away");
        return NULL;
    }
    top = hooks->below;
    msa_packer_now = top ? &top->packer : NULL;
    Py_DECREF(hooks->pack);
    Py_DECREF(hooks->unpack);
    PyMem_Free(hooks);
    Py_RETURN_NONE;
}

/* Anomalies. */

static PyObject *note_hook, *report_hook;
static msa_anomaly_watch watch;

static void *note(void) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *trace = note_hook ? PyObject_CallNoArgs(note_hook) : NULL;
    if (!trace) PyErr_Clear(); /* without a trace the search goes on */
    PyGILState_Release(state);
    return trace;
}

static void report(const char *name, const void *trace) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *where;
    PyErr_Fetch(&type, &value, &where); /* the error itself, which goes on when this has been told */
    PyObject *done = report_hook ? PyObject_CallFunction(report_hook, "sO", name, trace ? (PyObject *)trace : Py_None) : NULL;
    if (!done) PyErr_Clear();
    Py_XDECREF(done);
    PyErr_Restore(type, value, where);
    PyGILState_Release(state);
}

static PyObject *set_anomaly_watch(PyObject *module, PyObject *args) {
    int on, check_nan;
    PyObject *on_note, *on_report;
    if (!PyArg_ParseTuple(args, "ppOO", &on, &check_nan, &on_note, &on_report)) return NULL;
    Py_XSETREF(note_hook, Py_NewRef(on_note));
    Py_XSETREF(report_hook, Py_NewRef(on_report));
    watch = (msa_anomaly_watch){note, report, msa_python_drop, check_nan};
    msa_watch_anomalies(on ? &watch : NULL);
    Py_RETURN_NONE;
}

static PyObject *is_checkpoint_valid(PyObject *module, PyObject *unused) { return PyBool_FromLong(!msa_backward_selective); }

static PyMethodDef functions[] = {
    {"_is_checkpoint_valid", is_checkpoint_valid, METH_NOARGS, "False while a backward runs that gives gradients to certain tensors only."},
    {"_push_saved_tensors_hooks", push_saved_hooks, METH_VARARGS, "Tensors saved from now on go through pack(tensor), and come back by unpack(value)."},
    {"_pop_saved_tensors_hooks", pop_saved_hooks, METH_NOARGS, "Take the topmost hooks away."},
    {"_set_anomaly_watch", set_anomaly_watch, METH_VARARGS, "Whether anomalies are looked for, nan among them, and who notes and reports."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_graph_hooks(PyObject *module) { return PyModule_AddFunctions(module, functions); }
