/* autograd.Function: operations whose forward and backward the user writes in Python.
 *
 * The context object that forward and backward get is also the graph's node as Python sees it. The C node owns the
 * context; the context points back without counting. Saved tensors are kept by the node, so that a saved output makes no cycle. */
#include "python/autograd.h"

#include <structmember.h>

#include "msadapter/ops.h"

typedef struct {
    PyObject_HEAD
    msa_node *node; /* not counted; NULL before forward has ended and after the node has gone */
    PyObject *to_save, *dirty, *non_differentiable, *needs_input_grad, *dict, *weak_references;
    char materialize;
    Py_ssize_t n_args;
    int32_t *edge_of; /* argument -> edge, -1 for arguments that are no tensors */
} context;

static PyTypeObject context_type;

static int context_traverse(context *self, visitproc visit, void *arg) {
    Py_VISIT(self->to_save);
    Py_VISIT(self->dirty);
    Py_VISIT(self->non_differentiable);
    Py_VISIT(self->dict);
    return 0;
}

static int context_clear(context *self) {
    Py_CLEAR(self->to_save);
    Py_CLEAR(self->dirty);
    Py_CLEAR(self->non_differentiable);
    Py_CLEAR(self->needs_input_grad);
    Py_CLEAR(self->dict);
    return 0;
}

static void context_dealloc(context *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak_references) PyObject_ClearWeakRefs((PyObject *)self);
    context_clear(self);
    PyMem_Free(self->edge_of);
    Py_TYPE(self)->tp_free((PyObject *)self); /* the classes below, whose dealloc calls this one, give the reference to the class back */
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    context *self = (context *)type->tp_alloc(type, 0);
    if (self) self->materialize = 1;
    return (PyObject *)self;
}

/* The node. */

static void release_context(msa_node *node) {
    if (!node->context) return;
    PyGILState_STATE state = PyGILState_Ensure();
    context *ctx = node->context;
    node->context = NULL;
    ctx->node = NULL;
    Py_DECREF(ctx);
    PyGILState_Release(state);
}

PyObject *msa_python_context(msa_node *node) { return node->cls->release == release_context ? node->context : NULL; }

static msa_tensor *zeros_like_output(const msa_node *node, uint32_t i) {
    const msa_output_shape *shape = &node->inputs[i];
    msa_tensor *t = msa_tensor_new((msa_ints){shape->sizes, shape->ndim}, (msa_dtype)shape->dtype);
    if (t && msa_fill_values(t, msa_int(0)) != 0) {
        msa_tensor_release(t);
        return NULL;
    }
    return t;
}

static int collect(context *ctx, PyObject *answer, msa_node *node, msa_tensor **results) {
    PyObject *tuple = PyTuple_Check(answer) ? Py_NewRef(answer) : PyTuple_Pack(1, answer);
    if (!tuple) return -1;
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    int status = 0;
    while (n > ctx->n_args && PyTuple_GET_ITEM(tuple, n - 1) == Py_None) n--;
    if (n != ctx->n_args) {
        PyErr_Format(PyExc_RuntimeError, "function %s returned an incorrect number of gradients (expected %zd, got %zd)",
                     Py_TYPE(ctx)->tp_name, ctx->n_args, n);
        status = -1;
    }
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        int32_t edge = ctx->edge_of[i];
        if (item == Py_None) continue;
        if (edge < 0) {
            PyErr_Format(PyExc_RuntimeError,
                         "function %s returned a gradient different from None at position %zd, but the corresponding forward "
                         "input was not a Variable", Py_TYPE(ctx)->tp_name, i + 1);
            status = -1;
            break;
        }
        msa_tensor *t = msa_python_unwrap(item);
        if (!t) status = -1;
        else results[edge] = msa_tensor_retain(t);
    }
    Py_DECREF(tuple);
    return status;
}

static int python_backward(msa_node *node, msa_tensor *const *grads, msa_tensor **results) {
    PyGILState_STATE state = PyGILState_Ensure();
    context *ctx = node->context;
    int status = -1;
    PyObject *answer = NULL, *args = NULL;
    PyObject *function = PyObject_GetAttrString((PyObject *)ctx, "_function_class");
    PyObject *method = function ? PyObject_GetAttrString(function, "backward") : NULL;
    args = method ? PyTuple_New((Py_ssize_t)node->n_inputs + 1) : NULL;
    if (!args) goto done;
    PyTuple_SET_ITEM(args, 0, Py_NewRef(ctx));
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        PyObject *item;
        if (grads[i]) item = msa_python_wrap(msa_tensor_retain(grads[i]));
        else if (ctx->materialize && node->inputs[i].defined) item = msa_python_wrap(zeros_like_output(node, i));
        else item = Py_NewRef(Py_None);
        if (!item) goto done;
        PyTuple_SET_ITEM(args, i + 1, item);
    }
    answer = PyObject_CallObject(method, args);
    if (answer) status = collect(ctx, answer, node, results);
done:
    Py_XDECREF(answer);
    Py_XDECREF(args);
    Py_XDECREF(method);
    Py_XDECREF(function);
    PyGILState_Release(state);
    return status == 0 ? 0 : msa_fail(MSA_FOREIGN_ERROR, "a Python exception was raised");
}

/* One class for each name, since nodes show it. They live as long as the process: there are as many as Function classes. */
typedef struct named_class {
    struct named_class *next;
    msa_node_class cls;
    char name[];
} named_class;

static const msa_node_class *class_named(const char *name) {
    static named_class *known;
    for (named_class *c = known; c; c = c->next)
        if (strcmp(c->name, name) == 0) return &c->cls;
    named_class *c = malloc(sizeof *c + strlen(name) + 1);
    if (!c) return NULL;
    memcpy(c->name, name, strlen(name) + 1);
    c->cls = (msa_node_class){c->name, python_backward, release_context, true};
    c->next = known;
    known = c;
    return &c->cls;
}

/* apply(cls, *args) */

static bool contains(PyObject *sequence, PyObject *item) {
    if (!sequence) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence); i++)
        if (PyTuple_GET_ITEM(sequence, i) == item) return true;
    return false;
}

static bool is_input(PyObject *args, PyObject *item) {
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(args); i++)
        if (PyTuple_GET_ITEM(args, i) == item) return true;
    return false;
}

static int save_tensors(context *ctx, msa_node *node) {
    for (Py_ssize_t i = 0; i < (Py_ssize_t)node->n_saved; i++) {
        PyObject *item = PyTuple_GET_ITEM(ctx->to_save, i);
        msa_tensor *t = item == Py_None ? NULL : ((python_tensor *)item)->tensor;
        bool output = t && t->autograd && t->autograd->grad_fn == node;
        int status = output ? msa_node_save_output(node, (uint32_t)i, t) : msa_node_save_tensor(node, (uint32_t)i, t);
        if (status != 0) return -1;
    }
    Py_CLEAR(ctx->to_save);
    return 0;
}

/* Give outputs their place in the graph; `outputs` is a tuple whose items may be replaced. */
static int attach_outputs(context *ctx, msa_node *node, PyObject *args, PyObject *outputs) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); i++) {
        PyObject *item = PyTuple_GET_ITEM(outputs, i);
        if (!msa_python_is_tensor(item)) {
            if (msa_node_skip(node, (uint32_t)i, NULL) != 0) return -1;
            continue;
        }
        msa_tensor *t = ((python_tensor *)item)->tensor;
        if (contains(ctx->non_differentiable, item)) {
            if (msa_node_skip(node, (uint32_t)i, t) != 0) return -1;
            continue;
        }
        if (contains(ctx->dirty, item)) {
            if (PyTuple_GET_SIZE(outputs) == 1 && t->autograd && t->autograd->is_view) {
                if (msa_node_rebase(node, t) != 0) return -1;
            } else if (msa_node_attach(node, (uint32_t)i, t) != 0) {
                return -1;
            }
            continue;
        }
        if (is_input(args, item) || t->requires_grad) {
            /* An input handed through: the output is a tensor of its own over the same memory. */
            msa_tensor *alias = msa_tensor_alias(t);
            PyObject *fresh = alias ? msa_python_wrap(alias) : NULL;
            if (!fresh) return -1;
            PyTuple_SET_ITEM(outputs, i, fresh);
            Py_DECREF(item);
            t = alias;
        }
        if (msa_node_attach(node, (uint32_t)i, t) != 0) return -1;
    }
    return 0;
}

static PyObject *apply(PyObject *cls, PyObject *const *given, Py_ssize_t n) {
    PyObject *result = NULL, *args = NULL, *forward = NULL, *outputs = NULL;
    context *ctx = NULL;
    msa_node *node = NULL;
    msa_edge *edges = NULL;
    uint32_t n_edges = 0;
    bool any = false;
    PyObject *context_class = PyObject_GetAttrString(cls, "_backward_cls");
    if (!context_class) return NULL;
    ctx = (context *)PyObject_CallNoArgs(context_class);
    Py_DECREF(context_class);
    if (!ctx) return NULL;
    ctx->n_args = n;
    ctx->edge_of = PyMem_Calloc((size_t)(n ? n : 1), sizeof *ctx->edge_of);
    ctx->needs_input_grad = PyTuple_New(n);
    edges = PyMem_Calloc((size_t)(n ? n : 1), sizeof *edges);
    args = PyTuple_New(n + 1);
    forward = PyObject_GetAttrString(cls, "forward");
    if (!ctx->edge_of || !ctx->needs_input_grad || !edges || !args || !forward) goto done;
    PyTuple_SET_ITEM(args, 0, Py_NewRef(ctx));
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SET_ITEM(args, i + 1, Py_NewRef(given[i]));
        bool needs = false;
        ctx->edge_of[i] = -1;
        if (msa_python_is_tensor(given[i])) {
            msa_tensor *t = ((python_tensor *)given[i])->tensor;
            needs = t->requires_grad;
            ctx->edge_of[i] = (int32_t)n_edges;
            if (needs && msa_grad_mode && msa_gradient_edge(t, &edges[n_edges]) != 0) {
                msa_python_raise();
                goto done;
            }
            n_edges++;
        }
        any = any || needs;
        PyTuple_SET_ITEM(ctx->needs_input_grad, i, Py_NewRef(needs ? Py_True : Py_False));
    }
    bool recording = msa_grad_mode;
    msa_grad_mode = false;
    result = PyObject_CallObject(forward, args);
    msa_grad_mode = recording;
    if (!result || !recording || !any) goto done;
    bool single = !PyTuple_Check(result);
    outputs = single ? PyTuple_Pack(1, result) : PySequence_Tuple(result);
    if (outputs && !single) {
        /* PySequence_Tuple gives the same object back, and items are going to be replaced. */
        PyObject *own = PyTuple_New(PyTuple_GET_SIZE(outputs));
        for (Py_ssize_t i = 0; own && i < PyTuple_GET_SIZE(outputs); i++)
            PyTuple_SET_ITEM(own, i, Py_NewRef(PyTuple_GET_ITEM(outputs, i)));
        Py_SETREF(outputs, own);
    }
    Py_CLEAR(result);
    if (!outputs) goto done;
    Py_ssize_t n_saved = ctx->to_save ? PyTuple_GET_SIZE(ctx->to_save) : 0;
    const char *dot = strrchr(Py_TYPE(ctx)->tp_name, '.');
    const msa_node_class *node_class = class_named(dot ? dot + 1 : Py_TYPE(ctx)->tp_name);
    node = node_class ? msa_node_new(node_class, n_edges, (uint32_t)n_saved) : NULL;
    if (!node) {
        msa_python_raise();
        goto done;
    }
    memcpy(node->edges, edges, sizeof *edges * n_edges);
    n_edges = 0; /* the node owns their references now */
    node->context = Py_NewRef(ctx);
    ctx->node = node;
    if (attach_outputs(ctx, node, args, outputs) != 0 || save_tensors(ctx, node) != 0) {
        if (!PyErr_Occurred()) msa_python_raise();
        goto done;
    }
    result = single ? Py_NewRef(PyTuple_GET_ITEM(outputs, 0)) : Py_NewRef(outputs);
done:
    for (uint32_t i = 0; i < n_edges; i++) msa_node_release(edges[i].node);
    msa_node_release(node);
    PyMem_Free(edges);
    Py_XDECREF(outputs);
    Py_XDECREF(args);
    Py_XDECREF(forward);
    Py_XDECREF(ctx);
    return result;
}

static PyObject *module_apply(PyObject *module, PyObject *const *args, Py_ssize_t n) { return apply(args[0], args + 1, n - 1); }

/* What forward and backward may do with the context. */

static int checked_tensors(PyObject *args, const char *what, bool none) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *item = PyTuple_GET_ITEM(args, i);
        if (msa_python_is_tensor(item) || (none && item == Py_None)) continue;
        PyErr_Format(PyExc_TypeError, "%s can only take variables, but argument %zd is of type %s", what, i, Py_TYPE(item)->tp_name);
        return -1;
    }
    return 0;
}

static PyObject *save_for_backward(PyObject *self, PyObject *args) {
    if (checked_tensors(args, "save_for_backward", true) != 0) return NULL;
    Py_XSETREF(((context *)self)->to_save, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *mark_dirty(PyObject *self, PyObject *args) {
    if (checked_tensors(args, "mark_dirty", false) != 0) return NULL;
    Py_XSETREF(((context *)self)->dirty, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *mark_non_differentiable(PyObject *self, PyObject *args) {
    if (checked_tensors(args, "mark_non_differentiable", false) != 0) return NULL;
    Py_XSETREF(((context *)self)->non_differentiable, Py_NewRef(args));
    Py_RETURN_NONE;
}

static PyObject *set_materialize_grads(PyObject *self, PyObject *value) {
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    ((context *)self)->materialize = (char)on;
    Py_RETURN_NONE;
}

static PyObject *saved_tensors(PyObject *self, void *unused) {
    context *ctx = (context *)self;
    if (ctx->to_save) return Py_NewRef(ctx->to_save);
    if (!ctx->node) return PyTuple_New(0);
    PyObject *tuple = PyTuple_New(ctx->node->n_saved);
    for (uint32_t i = 0; tuple && i < ctx->node->n_saved; i++) {
        msa_tensor *t;
        if (msa_node_load_tensor(ctx->node, i, &t) != 0) {
            msa_python_raise();
            Py_CLEAR(tuple);
            break;
        }
        PyObject *item = t ? msa_python_wrap(t) : Py_NewRef(Py_None);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *get_needs_input_grad(PyObject *self, void *unused) {
    PyObject *needs = ((context *)self)->needs_input_grad;
    return needs ? Py_NewRef(needs) : PyTuple_New(0);
}

static PyObject *get_next_functions(PyObject *self, void *unused) {
    context *ctx = (context *)self;
    return ctx->node ? msa_python_next_functions(ctx->node) : PyTuple_New(0);
}

static PyObject *context_name(PyObject *self, PyObject *unused) { return PyUnicode_FromString(Py_TYPE(self)->tp_name); }

static PyObject *context_register_hook(PyObject *self, PyObject *callable) {
    context *ctx = (context *)self;
    if (!ctx->node) {
        PyErr_SetString(PyExc_RuntimeError, "the graph that this function was part of is gone");
        return NULL;
    }
    return msa_python_add_node_hook(ctx->node, callable, false);
}

static PyMethodDef context_methods[] = {
    {"save_for_backward", save_for_backward, METH_VARARGS, "save_for_backward(*tensors)\n\nKeep inputs, outputs or None for backward."},
    {"mark_dirty", mark_dirty, METH_VARARGS, "mark_dirty(*tensors)\n\nSay which inputs forward has changed in place."},
    {"mark_non_differentiable", mark_non_differentiable, METH_VARARGS, "mark_non_differentiable(*outputs)"},
    {"set_materialize_grads", set_materialize_grads, METH_O, "Whether backward gets zeros (True) or None for gradients that did not arrive."},
    {"name", context_name, METH_NOARGS, NULL},
    {"register_hook", context_register_hook, METH_O, "Call hook(grad_inputs, grad_outputs) after backward."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef context_getset[] = {
    {"saved_tensors", saved_tensors, NULL, "What save_for_backward kept.", NULL},
    {"saved_variables", saved_tensors, NULL, "The old name of saved_tensors.", NULL},
    {"needs_input_grad", get_needs_input_grad, NULL, "Which arguments of forward want a gradient.", NULL},
    {"next_functions", get_next_functions, NULL, NULL, NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject context_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msadapter._C.FunctionContext",
    .tp_basicsize = sizeof(context),
    .tp_dealloc = (destructor)context_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = (traverseproc)context_traverse,
    .tp_clear = (inquiry)context_clear,
    .tp_methods = context_methods,
    .tp_getset = context_getset,
    .tp_new = context_new,
    .tp_dictoffset = offsetof(context, dict),
    .tp_weaklistoffset = offsetof(context, weak_references),
};

static PyMethodDef functions[] = {
    {"_function_apply", (PyCFunction)(void (*)(void))module_apply, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_function_type(PyObject *module) {
    if (PyType_Ready(&context_type) != 0) return -1;
    if (PyModule_AddObjectRef(module, "FunctionContext", (PyObject *)&context_type) != 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
