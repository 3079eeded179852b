/* Autograd as Python sees it: attributes of tensors, backward and grad, grad modes, and nodes of the graph. */
#include "python/autograd.h"

#include "msadapter/autograd.h"

/* Sequences of tensors. */

int msa_python_tensors(PyObject *object, const char *what, bool none_allowed, tensor_items *items) {
    items->fast = PySequence_Fast(object, what);
    items->list = (msa_tensors){NULL, 0};
    items->data = NULL;
    if (!items->fast) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items->fast);
    items->data = PyMem_Calloc((size_t)(n ? n : 1), sizeof *items->data);
    if (!items->data) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items->fast, i);
        if (item == Py_None && none_allowed) continue;
        items->data[i] = msa_python_unwrap(item);
        if (!items->data[i]) return -1;
    }
    items->list = (msa_tensors){items->data, n};
    return 0;
}

void msa_python_tensors_clear(tensor_items *items) {
    Py_CLEAR(items->fast);
    PyMem_Free(items->data);
    items->data = NULL;
}

/* Attributes. */

static msa_tensor *tensor_of(PyObject *self) { return ((python_tensor *)self)->tensor; }

static PyObject *get_requires_grad(PyObject *self, void *unused) { return PyBool_FromLong(tensor_of(self)->requires_grad); }

static int set_requires_grad(PyObject *self, PyObject *value, void *unused) {
    if (!value || !PyBool_Check(value)) {
        PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool");
        return -1;
    }
    if (msa_tensor_set_requires_grad(tensor_of(self), value == Py_True) == 0) return 0;
    msa_python_raise();
    return -1;
}

static PyObject *get_grad(PyObject *self, void *unused) {
    msa_tensor *grad = msa_tensor_grad(tensor_of(self));
    if (!grad) Py_RETURN_NONE;
    return msa_python_wrap(msa_tensor_retain(grad));
}

static int set_grad(PyObject *self, PyObject *value, void *unused) {
    msa_tensor *grad = NULL;
    if (value && value != Py_None) {
        if (!msa_python_is_tensor(value)) {
            PyErr_Format(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
                         Py_TYPE(value)->tp_name);
            return -1;
        }
        grad = tensor_of(value);
    }
    if (msa_tensor_set_grad(tensor_of(self), grad) == 0) return 0;
    msa_python_raise();
    return -1;
}

static PyObject *get_grad_fn(PyObject *self, void *unused) {
    int status;
    msa_node *node = msa_tensor_grad_fn(tensor_of(self), &status);
    if (status != 0) return msa_python_raise();
    if (!node) Py_RETURN_NONE;
    return msa_python_node(node);
}

static PyObject *get_is_leaf(PyObject *self, void *unused) { return PyBool_FromLong(msa_tensor_is_leaf(tensor_of(self))); }

static PyObject *get_version(PyObject *self, void *unused) { return PyLong_FromUnsignedLong(msa_version(tensor_of(self))); }

static PyObject *get_output_nr(PyObject *self, void *unused) {
    struct msa_autograd *a = tensor_of(self)->autograd;
    return PyLong_FromUnsignedLong(a ? a->output : 0);
}

static PyObject *get_retains_grad(PyObject *self, void *unused) {
    struct msa_autograd *a = tensor_of(self)->autograd;
    return PyBool_FromLong(a && a->retains_grad);
}

static PyObject *get_base(PyObject *self, void *unused) {
    struct msa_autograd *a = tensor_of(self)->autograd;
    if (!a || !a->base) Py_RETURN_NONE;
    return msa_python_wrap(msa_tensor_retain(a->base));
}

PyGetSetDef msa_python_autograd_getset[] = {
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are wanted for this tensor.", NULL},
    {"grad", get_grad, set_grad, "The gradient that backward has accumulated, or None.", NULL},
    {"_grad", get_grad, set_grad, NULL, NULL},
    {"grad_fn", get_grad_fn, NULL, "The node of the graph that made this tensor; None for leaves.", NULL},
    {"is_leaf", get_is_leaf, NULL, "Whether no recorded operation made this tensor.", NULL},
    {"_version", get_version, NULL, "How many times the tensor's memory has been written in place.", NULL},
    {"output_nr", get_output_nr, NULL, "Which output of grad_fn this tensor is.", NULL},
    {"retains_grad", get_retains_grad, NULL, "Whether retain_grad() has been called on this non-leaf.", NULL},
    {"_base", get_base, NULL, "The tensor that this one is a view of, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* Hooks. */

static void release_hook(void *context) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)context);
    PyGILState_Release(state);
}

static int foreign_failure(void) { return msa_fail(MSA_FOREIGN_ERROR, "a Python exception was raised"); }

/* hook(grad) -> None or the replacement. */
static int call_tensor_hook(void *context, msa_tensor **grads, uint32_t n, msa_tensor **results, uint32_t m) {
    PyGILState_STATE state = PyGILState_Ensure();
    int status = -1;
    PyObject *grad = msa_python_wrap(msa_tensor_retain(grads[0]));
    PyObject *answer = grad ? PyObject_CallOneArg(context, grad) : NULL;
    if (answer == Py_None) status = 0;
    else if (answer) {
        msa_tensor *replacement = msa_python_unwrap(answer);
        if (replacement) {
            msa_tensor_retain(replacement);
            msa_tensor_release(grads[0]);
            grads[0] = replacement;
            status = 0;
        }
    }
    Py_XDECREF(answer);
    Py_XDECREF(grad);
    PyGILState_Release(state);
    return status == 0 ? 0 : foreign_failure();
}

static PyObject *tuple_of(msa_tensor **tensors, uint32_t n) {
    PyObject *tuple = PyTuple_New(n);
    for (uint32_t i = 0; tuple && i < n; i++) {
        PyObject *item = tensors[i] ? msa_python_wrap(msa_tensor_retain(tensors[i])) : Py_NewRef(Py_None);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

/* Replace tensors by what a hook has returned: a tuple of the same length, or one tensor for one. */
static int replace(PyObject *answer, msa_tensor **tensors, uint32_t n) {
    PyObject *tuple = PyTuple_Check(answer) ? Py_NewRef(answer) : PyTuple_Pack(1, answer);
    if (!tuple) return -1;
    int status = 0;
    if (PyTuple_GET_SIZE(tuple) != (Py_ssize_t)n) {
        PyErr_Format(PyExc_RuntimeError, "hook has returned an incorrect number of values (got %zd, but expected %u)",
                     PyTuple_GET_SIZE(tuple), n);
        status = -1;
    }
    for (uint32_t i = 0; status == 0 && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        msa_tensor *t = item == Py_None ? NULL : msa_python_unwrap(item);
        if (!t && item != Py_None) status = -1;
        else {
            msa_tensor_retain(t);
            msa_tensor_release(tensors[i]);
            tensors[i] = t;
        }
    }
    Py_DECREF(tuple);
    return status;
}

/* hook(grad_outputs) before a node, hook(grad_inputs, grad_outputs) after it. */
static int call_node_hook(void *context, msa_tensor **grads, uint32_t n, msa_tensor **results, uint32_t m) {
    PyGILState_STATE state = PyGILState_Ensure();
    int status = -1;
    PyObject *outputs = tuple_of(grads, n), *inputs = results ? tuple_of(results, m) : NULL, *answer = NULL;
    if (outputs && (inputs || !results))
        answer = results ? PyObject_CallFunctionObjArgs(context, inputs, outputs, NULL) : PyObject_CallOneArg(context, outputs);
    if (answer == Py_None) status = 0;
    else if (answer) status = results ? replace(answer, results, m) : replace(answer, grads, n);
    Py_XDECREF(answer);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    PyGILState_Release(state);
    return status == 0 ? 0 : foreign_failure();
}

/* A handle that takes a hook away again. */
typedef struct {
    PyObject_HEAD
    uint64_t id;
    PyObject *tensor; /* or */
    msa_node *node;
} removable;

static void removable_dealloc(removable *self) {
    Py_XDECREF(self->tensor);
    msa_node_release(self->node);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *removable_remove(removable *self, PyObject *unused) {
    if (self->id) {
        if (self->tensor) msa_tensor_remove_hook(tensor_of(self->tensor), self->id);
        else msa_hook_remove(&self->node->hooks, self->id);
        self->id = 0;
    }
    Py_RETURN_NONE;
}

static PyObject *removable_enter(PyObject *self, PyObject *unused) { return Py_NewRef(self); }

static PyObject *removable_exit(removable *self, PyObject *args) { return removable_remove(self, NULL); }

static PyMethodDef removable_methods[] = {
    {"remove", (PyCFunction)removable_remove, METH_NOARGS, "Take the hook away."},
    {"__enter__", removable_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)removable_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject removable_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.utils.hooks.RemovableHandle",
    .tp_basicsize = sizeof(removable),
    .tp_dealloc = (destructor)removable_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_methods = removable_methods,
};

static PyObject *handle(uint64_t id, PyObject *tensor, msa_node *node) {
    if (!id) return msa_python_raise();
    removable *h = PyObject_New(removable, &removable_type);
    if (!h) return NULL;
    h->id = id;
    h->tensor = Py_XNewRef(tensor);
    h->node = msa_node_retain(node);
    return (PyObject *)h;
}

static PyObject *register_hook(PyObject *self, PyObject *callable) {
    msa_hook hook = {.kind = MSA_TENSOR_HOOK, .call = call_tensor_hook, .release = release_hook, .context = callable};
    uint64_t id = msa_tensor_add_hook(tensor_of(self), hook);
    if (id) Py_INCREF(callable);
    return handle(id, self, NULL);
}

/* Methods. */

static PyObject *retain_grad(PyObject *self, PyObject *unused) {
    if (msa_tensor_retain_grad(tensor_of(self)) != 0) return msa_python_raise();
    Py_RETURN_NONE;
}

static PyObject *detach_in_place(PyObject *self, PyObject *unused) {
    if (msa_tensor_detach_(tensor_of(self)) != 0) return msa_python_raise();
    return Py_NewRef(self);
}

static PyObject *requires_grad_method(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"requires_grad", NULL};
    int on = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|p:requires_grad_", names, &on)) return NULL;
    if (msa_tensor_set_requires_grad(tensor_of(self), on) != 0) return msa_python_raise();
    return Py_NewRef(self);
}

static PyObject *is_inference(PyObject *self, PyObject *unused) { return PyBool_FromLong(tensor_of(self)->inference); }

static PyObject *run_backward(PyObject *outputs, PyObject *gradients, int retain, int create, PyObject *inputs) {
    tensor_items out = {0}, grads = {0}, in = {0};
    PyObject *result = NULL;
    if (msa_python_tensors(outputs, "tensors must be a sequence of Tensors", false, &out) != 0) goto done;
    if (gradients != Py_None && msa_python_tensors(gradients, "grad_tensors must be a sequence of Tensors", true, &grads) != 0) goto done;
    if (inputs != Py_None && msa_python_tensors(inputs, "inputs must be a sequence of Tensors", false, &in) != 0) goto done;
    if (msa_backward(out.list, grads.list, retain, create, in.list) != 0) {
        msa_python_raise();
        goto done;
    }
    result = Py_NewRef(Py_None);
done:
    msa_python_tensors_clear(&out);
    msa_python_tensors_clear(&grads);
    msa_python_tensors_clear(&in);
    return result;
}

/* A single tensor or a sequence as a new tuple; None stays. */
static PyObject *as_tuple(PyObject *value) {
    if (value == Py_None || PyTuple_Check(value) || PyList_Check(value)) return Py_NewRef(value);
    if (msa_python_is_tensor(value)) return PyTuple_Pack(1, value);
    return PySequence_Tuple(value);
}

static PyObject *backward(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"gradient", "retain_graph", "create_graph", "inputs", NULL};
    PyObject *gradient = Py_None, *retain = Py_None, *inputs = Py_None;
    int create = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOpO:backward", names, &gradient, &retain, &create, &inputs)) return NULL;
    int keep = retain == Py_None ? create : PyObject_IsTrue(retain);
    if (keep < 0) return NULL;
    if (inputs != Py_None && !msa_python_is_tensor(inputs) && PySequence_Check(inputs) && PySequence_Size(inputs) == 0) {
        PyErr_SetString(PyExc_RuntimeError, "'inputs' argument to backward() cannot be empty.");
        return NULL;
    }
    if (gradient != Py_None && !msa_python_is_tensor(gradient)) {
        PyErr_Format(PyExc_TypeError, "gradients can be either Tensors or None, but got %s", Py_TYPE(gradient)->tp_name);
        return NULL;
    }
    PyObject *outputs = PyTuple_Pack(1, self), *gradients = as_tuple(gradient), *leaves = as_tuple(inputs), *result = NULL;
    if (outputs && gradients && leaves) result = run_backward(outputs, gradients, keep, create, leaves);
    Py_XDECREF(outputs);
    Py_XDECREF(gradients);
    Py_XDECREF(leaves);
    return result;
}

PyMethodDef msa_python_autograd_methods[] = {
    {"backward", (PyCFunction)(void (*)(void))backward, METH_VARARGS | METH_KEYWORDS,
     "backward(gradient=None, retain_graph=None, create_graph=False, inputs=None)\n\nAdd the gradients of this tensor to the "
     "leaves' grad. `gradient` has this tensor's shape; it may be left out for one element."},
    {"register_hook", register_hook, METH_O, "register_hook(hook) -> handle\n\nCall hook(grad) whenever this tensor's gradient is known."},
    {"retain_grad", retain_grad, METH_NOARGS, "Keep the gradient of a non-leaf in grad."},
    {"detach_", detach_in_place, METH_NOARGS, "Cut this tensor from the graph that made it."},
    {"requires_grad_", (PyCFunction)(void (*)(void))requires_grad_method, METH_VARARGS | METH_KEYWORDS,
     "requires_grad_(requires_grad=True)\n\nChange the flag in place."},
    {"is_inference", is_inference, METH_NOARGS, "Whether the tensor was made in inference mode."},
    {NULL, NULL, 0, NULL},
};

/* Nodes. */

typedef struct {
    PyObject_HEAD
    msa_node *node;
    PyObject *metadata;
} python_node;

static PyTypeObject node_type;
static PyObject *node_types; /* name -> subclass */

static void node_dealloc(python_node *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->node && self->node->python == self) self->node->python = NULL;
    msa_node_release(self->node);
    Py_XDECREF(self->metadata);
    type->tp_free((PyObject *)self);
}

PyObject *msa_python_node(msa_node *node) {
    if (node->python) return Py_NewRef(node->python);
    PyObject *own = msa_python_context(node);
    if (own) return Py_NewRef(own);
    PyObject *type = PyDict_GetItemString(node_types, node->name);
    if (!type) {
        type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(O){ss}", node->name, &node_type, "__module__", "torch.autograd");
        if (!type || PyDict_SetItemString(node_types, node->name, type) != 0) return NULL;
        Py_DECREF(type);
    }
    python_node *object = (python_node *)((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    if (!object) return NULL;
    object->node = msa_node_retain(node);
    node->python = object;
    return (PyObject *)object;
}

static PyObject *node_repr(PyObject *self) { return PyUnicode_FromFormat("<%s object at %p>", ((python_node *)self)->node->name, self); }

static PyObject *node_name(PyObject *self, PyObject *unused) { return PyUnicode_FromString(((python_node *)self)->node->name); }

PyObject *msa_python_next_functions(msa_node *node) {
    PyObject *tuple = PyTuple_New(node->n_edges);
    for (uint32_t i = 0; tuple && i < node->n_edges; i++) {
        msa_edge edge = node->edges[i];
        PyObject *next = edge.node ? msa_python_node(edge.node) : Py_NewRef(Py_None);
        PyObject *pair = next ? Py_BuildValue("(NI)", next, edge.node ? edge.input : 0u) : NULL;
        if (!pair) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, pair);
    }
    return tuple;
}

static PyObject *node_next_functions(PyObject *self, void *unused) { return msa_python_next_functions(((python_node *)self)->node); }

static PyObject *node_variable(PyObject *self, void *unused) {
    msa_node *node = ((python_node *)self)->node;
    if (!msa_node_is_accumulator(node)) {
        PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", node->name);
        return NULL;
    }
    return msa_python_wrap(msa_tensor_retain(msa_node_leaf(node)));
}

static PyObject *node_metadata(PyObject *self, void *unused) {
    python_node *n = (python_node *)self;
    if (!n->metadata) n->metadata = PyDict_New();
    return Py_XNewRef(n->metadata);
}

PyObject *msa_python_add_node_hook(msa_node *node, PyObject *callable, bool before) {
    msa_hook hook = {.kind = before ? MSA_PRE_HOOK : MSA_POST_HOOK, .call = call_node_hook, .release = release_hook, .context = callable};
    uint64_t id = msa_hook_add(&node->hooks, hook);
    if (id) Py_INCREF(callable);
    return handle(id, NULL, node);
}

static PyObject *node_register_hook(PyObject *self, PyObject *callable) {
    return msa_python_add_node_hook(((python_node *)self)->node, callable, false);
}

static PyObject *node_register_prehook(PyObject *self, PyObject *callable) {
    return msa_python_add_node_hook(((python_node *)self)->node, callable, true);
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "The name of the operation."},
    {"register_hook", node_register_hook, METH_O, "Call hook(grad_inputs, grad_outputs) after this node has run."},
    {"register_prehook", node_register_prehook, METH_O, "Call hook(grad_outputs) before this node runs."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef node_getset[] = {
    {"next_functions", node_next_functions, NULL, "Pairs of node and output that gradients go on to.", NULL},
    {"variable", node_variable, NULL, "The leaf of an AccumulateGrad.", NULL},
    {"metadata", node_metadata, NULL, "A dictionary for the user.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject node_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.autograd.graph.Node",
    .tp_basicsize = sizeof(python_node),
    .tp_dealloc = (destructor)node_dealloc,
    .tp_repr = node_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_methods = node_methods,
    .tp_getset = node_getset,
};

/* Functions of the module. */

static PyObject *module_backward(PyObject *module, PyObject *args) {
    PyObject *outputs, *gradients, *inputs;
    int retain, create;
    if (!PyArg_ParseTuple(args, "OOppO:_backward", &outputs, &gradients, &retain, &create, &inputs)) return NULL;
    return run_backward(outputs, gradients, retain, create, inputs);
}

static PyObject *module_grad(PyObject *module, PyObject *args) {
    PyObject *outputs, *inputs, *gradients;
    int retain, create, unused;
    if (!PyArg_ParseTuple(args, "OOOppp:_grad", &outputs, &inputs, &gradients, &retain, &create, &unused)) return NULL;
    tensor_items out = {0}, in = {0}, grads = {0};
    PyObject *result = NULL;
    msa_tensor **found = NULL;
    if (msa_python_tensors(outputs, "outputs must be a sequence of Tensors", false, &out) != 0 ||
        msa_python_tensors(inputs, "inputs must be a sequence of Tensors", false, &in) != 0 ||
        (gradients != Py_None && msa_python_tensors(gradients, "grad_outputs must be a sequence of Tensors", true, &grads) != 0))
        goto done;
    found = PyMem_Calloc((size_t)(in.list.n ? in.list.n : 1), sizeof *found);
    if (!found) {
        PyErr_NoMemory();
        goto done;
    }
    if (msa_grad(out.list, in.list, grads.list, retain, create, unused, found) != 0) msa_python_raise();
    else result = tuple_of(found, (uint32_t)in.list.n);
    for (int64_t i = 0; i < in.list.n; i++) msa_tensor_release(found[i]);
done:
    PyMem_Free(found);
    msa_python_tensors_clear(&out);
    msa_python_tensors_clear(&in);
    msa_python_tensors_clear(&grads);
    return result;
}

static PyObject *is_grad_enabled(PyObject *module, PyObject *unused) { return PyBool_FromLong(msa_grad_mode); }

static PyObject *set_grad_enabled(PyObject *module, PyObject *value) {
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    return PyBool_FromLong(msa_set_grad_enabled(on));
}

static PyObject *is_inference_mode_enabled(PyObject *module, PyObject *unused) { return PyBool_FromLong(msa_inference_mode); }

static PyObject *set_inference_mode(PyObject *module, PyObject *value) {
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    bool before = msa_inference_mode;
    msa_inference_mode = on;
    return PyBool_FromLong(before);
}

static PyMethodDef functions[] = {
    {"_backward", module_backward, METH_VARARGS, NULL},
    {"_grad", module_grad, METH_VARARGS, NULL},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether operations are recorded."},
    {"_set_grad_enabled", set_grad_enabled, METH_O, "Switch recording; returns what it was."},
    {"is_inference_mode_enabled", is_inference_mode_enabled, METH_NOARGS, "Whether inference mode is on."},
    {"_set_inference_mode", set_inference_mode, METH_O, "Switch inference mode; returns what it was."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_autograd(PyObject *module) {
    node_types = PyDict_New();
    if (!node_types || PyType_Ready(&node_type) != 0 || PyType_Ready(&removable_type) != 0) return -1;
    if (PyModule_AddObjectRef(module, "Node", (PyObject *)&node_type) != 0 ||
        PyModule_AddObjectRef(module, "RemovableHandle", (PyObject *)&removable_type) != 0 ||
        PyModule_AddFunctions(module, functions) != 0)
        return -1;
    return msa_python_add_function_type(module);
}
