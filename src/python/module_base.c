/* ModuleBase: the C part of nn.Module. Calls go straight to forward while no hooks are there, and attributes that are not
 * found are looked for among parameters, buffers and submodules. It stores nothing but the instance dictionary. */
#include "python/internal.h"

typedef struct {
    PyObject_HEAD
    PyObject *dict;
    vectorcallfunc vectorcall;
} python_module;

static bool global_hooks;
static PyObject *forward_name, *with_hooks_name, *stores[3], *hook_names[4], *getattr_name;
static PyObject *own_getattr; /* the descriptor of __getattr__ below */

static bool has_hooks(const python_module *m) {
    if (global_hooks) return true;
    for (size_t i = 0; m->dict && i < sizeof hook_names / sizeof *hook_names; i++) {
        PyObject *hooks = PyDict_GetItemWithError(m->dict, hook_names[i]);
        if (hooks && PyDict_Check(hooks) && PyDict_GET_SIZE(hooks)) return true;
    }
    return false;
}

static PyObject *module_call(PyObject *self, PyObject *args, PyObject *keywords);

static PyObject *module_vectorcall(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    python_module *m = (python_module *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), total = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    if (Py_TYPE(self)->tp_call != module_call) {
        /* The class has got a __call__ of its own since the object was made. */
        PyObject *tuple = PyTuple_New(n), *dict = keywords ? PyDict_New() : NULL, *result = NULL;
        for (Py_ssize_t i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
        bool ready = tuple && (dict || !keywords);
        for (Py_ssize_t i = n; ready && i < total; i++) ready = PyDict_SetItem(dict, PyTuple_GET_ITEM(keywords, i - n), args[i]) == 0;
        if (ready) result = Py_TYPE(self)->tp_call(self, tuple, dict);
        Py_XDECREF(tuple);
        Py_XDECREF(dict);
        return result;
    }
    PyObject *name = has_hooks(m) ? with_hooks_name : forward_name;
    if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {
        PyObject **slots = (PyObject **)args - 1, *before = slots[0];
        slots[0] = self;
        PyObject *result = PyObject_VectorcallMethod(name, slots, (size_t)n + 1, keywords);
        slots[0] = before;
        return result;
    }
    PyObject *few[9], **slots = total < 9 ? few : PyMem_Malloc(sizeof(PyObject *) * (size_t)(total + 1));
    if (!slots) return PyErr_NoMemory();
    slots[0] = self;
    memcpy(slots + 1, args, sizeof(PyObject *) * (size_t)total);
    PyObject *result = PyObject_VectorcallMethod(name, slots, (size_t)n + 1, keywords);
    if (slots != few) PyMem_Free(slots);
    return result;
}

static PyObject *module_call(PyObject *self, PyObject *args, PyObject *keywords) {
    PyObject *method = PyObject_GetAttr(self, has_hooks((python_module *)self) ? with_hooks_name : forward_name);
    PyObject *result = method ? PyObject_Call(method, args, keywords) : NULL;
    Py_XDECREF(method);
    return result;
}

/* Attributes. */

static PyObject *from_stores(PyObject *self, PyObject *name) {
    python_module *m = (python_module *)self;
    for (size_t i = 0; m->dict && i < sizeof stores / sizeof *stores; i++) {
        PyObject *store = PyDict_GetItemWithError(m->dict, stores[i]);
        if (!store || !PyDict_Check(store)) continue;
        PyObject *found = PyDict_GetItemWithError(store, name);
        if (found) return Py_NewRef(found);
        if (PyErr_Occurred()) return NULL;
    }
    return NULL;
}

static PyObject *no_attribute(PyObject *self, PyObject *name) {
    return PyErr_Format(PyExc_AttributeError, "'%.200s' object has no attribute '%U'", Py_TYPE(self)->tp_name, name);
}

/* Parameters and submodules are looked up as often as methods: none of that goes through a raised exception. */
static PyObject *module_getattro(PyObject *self, PyObject *name) {
    PyObject *found = _PyObject_GenericGetAttrWithDict(self, name, NULL, 1);
    if (found || PyErr_Occurred()) return found;
    found = from_stores(self, name);
    if (found || PyErr_Occurred()) return found;
    return no_attribute(self, name);
}

static PyObject *module_getattr(PyObject *self, PyObject *name) {
    if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'", Py_TYPE(name)->tp_name);
    PyObject *found = from_stores(self, name);
    return found || PyErr_Occurred() ? found : no_attribute(self, name);
}

/* A __getattr__ in a base class makes Python give subclasses a slow slot. Where the one found is ours, ours is put back. */
static PyObject *init_subclass(PyObject *cls, PyObject *args, PyObject *keywords) {
    PyTypeObject *type = (PyTypeObject *)cls;
    PyObject *getattribute = PyObject_GetAttrString(cls, "__getattribute__");
    PyObject *base = PyObject_GetAttrString((PyObject *)type->tp_base, "__getattribute__");
    if (!getattribute || !base) {
        Py_XDECREF(getattribute);
        Py_XDECREF(base);
        return NULL;
    }
    if (getattribute == base && _PyType_Lookup(type, getattr_name) == own_getattr) type->tp_getattro = module_getattro;
#if PY_VERSION_HEX < 0x030C0000
    /* Older Pythons do not hand vectorcall on to subclasses. */
    if (type->tp_call == module_call && type->tp_vectorcall_offset) type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
#endif
    Py_DECREF(getattribute);
    Py_DECREF(base);
    PyType_Modified(type);
    PyObject *object_init = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__init_subclass__");
    PyObject *result = object_init ? PyObject_Call(object_init, args, keywords) : NULL;
    Py_XDECREF(object_init);
    return result;
}

static PyObject *module_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    python_module *m = (python_module *)type->tp_alloc(type, 0);
    if (m) m->vectorcall = module_vectorcall;
    return (PyObject *)m;
}

static void module_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((python_module *)self)->dict);
    type->tp_free(self);
    /* subtype_dealloc gives the type's reference back. */
}

static int module_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((python_module *)self)->dict);
    return 0;
}

static int module_clear(PyObject *self) {
    Py_CLEAR(((python_module *)self)->dict);
    return 0;
}

static PyMethodDef methods[] = {
    {"__getattr__", module_getattr, METH_O, NULL},
    {"__init_subclass__", (PyCFunction)(void (*)(void))init_subclass, METH_VARARGS | METH_KEYWORDS | METH_CLASS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject module_base_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "msadapter._C.ModuleBase",
    .tp_basicsize = sizeof(python_module),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "What nn.Module is derived from.",
    .tp_new = module_new,
    .tp_dealloc = module_dealloc,
    .tp_traverse = module_traverse,
    .tp_clear = module_clear,
    .tp_call = module_call,
    .tp_vectorcall_offset = offsetof(python_module, vectorcall),
    .tp_getattro = module_getattro,
    .tp_dictoffset = offsetof(python_module, dict),
    .tp_methods = methods,
    .tp_getset = getset,
};

static PyObject *set_global_hooks(PyObject *module, PyObject *value) {
    int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    global_hooks = on;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"set_global_hooks", set_global_hooks, METH_O, "Whether hooks of all modules are there: calls then go through _call_with_hooks."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_module_base(PyObject *module) {
    static const char *const names[] = {"_parameters", "_buffers", "_modules"};
    static const char *const hooks[] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"};
    for (int i = 0; i < 3; i++)
        if (!(stores[i] = PyUnicode_InternFromString(names[i]))) return -1;
    for (int i = 0; i < 4; i++)
        if (!(hook_names[i] = PyUnicode_InternFromString(hooks[i]))) return -1;
    forward_name = PyUnicode_InternFromString("forward");
    with_hooks_name = PyUnicode_InternFromString("_call_with_hooks");
    getattr_name = PyUnicode_InternFromString("__getattr__");
    if (!forward_name || !with_hooks_name || !getattr_name || PyType_Ready(&module_base_type) != 0) return -1;
    own_getattr = PyDict_GetItem(module_base_type.tp_dict, getattr_name);
    if (PyModule_AddObjectRef(module, "ModuleBase", (PyObject *)&module_base_type) != 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
