/* __torch_function__: subclasses of Tensor, and other objects, that take the place of operators they are given to.
 *
 * The classmethod that Tensor itself has runs the operator with overriding switched off and gives results the subclass. That case is
 * done in place, without a call. _disabled_torch_function_impl, which Parameter uses, keeps results plain. */
#include "python/override.h"

#include "python/tensor.h"

static _Thread_local int disabled; /* depth of DisableTorchFunction */
static PyObject *attribute_name, *default_function, *disabled_function;

PyTypeObject *msa_python_result_class;

msa_override msa_python_override_slow(PyTypeObject *type) {
    if (disabled || type == &PyTuple_Type || type == &PyList_Type || type == &PyBool_Type || type == Py_TYPE(Py_None) ||
        type == &PyUnicode_Type || type == &msa_python_dtype_type)
        return MSA_PLAIN;
    PyObject *found = _PyType_Lookup(type, attribute_name);
    if (!found || found == disabled_function) return MSA_PLAIN;
    return found == default_function ? MSA_PRESERVED : MSA_OVERRIDDEN;
}

static void strongest(PyObject *object, msa_override *most, PyTypeObject **type) {
    msa_override o = msa_python_override_of(object);
    if (o == MSA_PLAIN) return;
    if (o > *most || (o == *most && PyType_IsSubtype(Py_TYPE(object), *type))) {
        *most = o;
        *type = Py_TYPE(object);
    }
}

msa_override msa_python_override_among(PyObject *const *args, Py_ssize_t n, PyTypeObject **type) {
    msa_override most = MSA_PLAIN;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = args[i];
        if (Py_TYPE(a) == msa_python_tensor_class) continue;
        if (PyTuple_CheckExact(a) || PyList_CheckExact(a))
            for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(a); k++) strongest(PySequence_Fast_GET_ITEM(a, k), &most, type);
        else strongest(a, &most, type);
    }
    return most;
}

/* Add an object to the list of those asked: once for each type, subclasses before their bases. */
static int collect(PyObject *asked, PyObject *object) {
    if (msa_python_override_of(object) == MSA_PLAIN) return 0;
    Py_ssize_t at = PyList_GET_SIZE(asked);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(asked); i++) {
        PyTypeObject *other = Py_TYPE(PyList_GET_ITEM(asked, i));
        if (other == Py_TYPE(object)) return 0;
        if (at == PyList_GET_SIZE(asked) && PyType_IsSubtype(Py_TYPE(object), other)) at = i;
    }
    return PyList_Insert(asked, at, object);
}

PyObject *msa_python_call_override(PyObject *callable, const char *name, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    Py_ssize_t total = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    PyObject *asked = PyList_New(0), *tuple = PyTuple_New(n), *dict = PyDict_New(), *types = NULL, *result = NULL;
    if (!asked || !tuple || !dict) goto done;
    for (Py_ssize_t i = 0; i < total; i++) {
        if (i < n) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
        else if (PyDict_SetItem(dict, PyTuple_GET_ITEM(keywords, i - n), args[i]) != 0) goto done;
        if (PyTuple_CheckExact(args[i]) || PyList_CheckExact(args[i])) {
            for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(args[i]); k++)
                if (collect(asked, PySequence_Fast_GET_ITEM(args[i], k)) != 0) goto done;
        } else if (collect(asked, args[i]) != 0) {
            goto done;
        }
    }
    types = PyTuple_New(PyList_GET_SIZE(asked));
    if (!types) goto done;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++) PyTuple_SET_ITEM(types, i, Py_NewRef(Py_TYPE(PyList_GET_ITEM(asked, i))));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++) {
        PyObject *function = PyObject_GetAttr(PyList_GET_ITEM(asked, i), attribute_name);
        Py_XSETREF(result, function ? PyObject_CallFunctionObjArgs(function, callable, types, tuple, dict, NULL) : NULL);
        Py_XDECREF(function);
        if (result != Py_NotImplemented) goto done;
    }
    Py_CLEAR(result);
    PyErr_Format(PyExc_TypeError, "no implementation found for 'torch.%s' on types that implement __torch_function__: %R", name, types);
done:
    Py_XDECREF(asked);
    Py_XDECREF(tuple);
    Py_XDECREF(dict);
    Py_XDECREF(types);
    return result;
}

PyObject *msa_python_wrap_like(PyObject *self, msa_tensor *owned) {
    if (__builtin_expect(Py_TYPE(self) == msa_python_tensor_class, 1) || msa_python_override_of(self) == MSA_PLAIN) return msa_python_wrap(owned);
    msa_python_result_class = Py_TYPE(self);
    PyObject *object = msa_python_wrap(owned);
    msa_python_result_class = msa_python_tensor_class;
    return object;
}

/* Results as objects of `cls`; steals. */
static PyObject *as_class(PyObject *result, PyTypeObject *cls) {
    if (!result) return NULL;
    if (msa_python_is_tensor(result) && !PyType_IsSubtype(Py_TYPE(result), cls)) {
        msa_tensor *t = msa_python_tensor_of(result);
        /* Only the result's own object changes its class: nobody else has it, and it carries nothing. */
        if (Py_REFCNT(result) == 1 && Py_TYPE(result) == msa_python_tensor_class) {
            msa_tensor_retain(t);
            t->python = NULL;
            ((python_tensor *)result)->tensor = NULL;
            Py_DECREF(result);
            msa_tensor_release(t);
            return msa_python_wrap_as(cls, t);
        }
        return result;
    }
    if (PyTuple_CheckExact(result) || PyList_CheckExact(result)) {
        Py_ssize_t n = PySequence_Fast_GET_SIZE(result);
        PyObject *copy = PyTuple_CheckExact(result) ? PyTuple_New(n) : PyList_New(n);
        for (Py_ssize_t i = 0; copy && i < n; i++) {
            PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(result, i));
            /* Give the old container's reference up first, so that the item is ours alone. */
            if (Py_REFCNT(result) == 1) {
                Py_INCREF(Py_None);
                if (PyTuple_CheckExact(result)) PyTuple_SET_ITEM(result, i, Py_None);
                else PyList_SET_ITEM(result, i, Py_None);
                Py_DECREF(item);
            }
            item = as_class(item, cls);
            if (!item) Py_CLEAR(copy);
            else if (PyTuple_CheckExact(copy)) PyTuple_SET_ITEM(copy, i, item);
            else PyList_SET_ITEM(copy, i, item);
        }
        Py_DECREF(result);
        return copy;
    }
    return result;
}

/* The function that the innermost __torch_function__ is running. */
static PyObject *running;

/* Our function for one of a real torch, which asks our tensors instead of computing with them: the one of the same name. */
static PyObject *own_function(PyObject *function) {
    PyObject *module = PyObject_GetAttrString(function, "__module__"), *name = module ? PyObject_GetAttrString(function, "__name__") : NULL;
    PyObject *found = NULL;
    const char *text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL;
    if (text && name && PyUnicode_Check(name) && (strcmp(text, "torch") == 0 || strncmp(text, "torch.", 6) == 0)) {
        PyObject *path = PyUnicode_FromFormat("msadapter.py%s", text);
        PyObject *ours = path ? PyImport_Import(path) : NULL;
        found = ours ? PyObject_GetAttr(ours, name) : NULL;
        Py_XDECREF(path);
        Py_XDECREF(ours);
    }
    Py_XDECREF(module);
    Py_XDECREF(name);
    if (!found || found == function) {
        Py_XDECREF(found);
        PyErr_Format(PyExc_TypeError, "%R belongs to another library, which cannot compute with msadapter's tensors", function);
        return NULL;
    }
    return found;
}

/* Tensor.__torch_function__(func, types, args=(), kwargs=None) */
static PyObject *tensor_torch_function(PyObject *cls, PyObject *args, PyObject *keywords) {
    static char *names[] = {"func", "types", "args", "kwargs", NULL};
    PyObject *function, *types, *arguments = NULL, *options = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|OO:__torch_function__", names, &function, &types, &arguments, &options)) return NULL;
    PyObject *list = PySequence_Fast(types, "types must be a sequence");
    if (!list) return NULL;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++) {
        int fits = PyObject_IsSubclass(cls, PySequence_Fast_GET_ITEM(list, i));
        if (fits == 1) continue;
        Py_DECREF(list);
        return fits < 0 ? NULL : Py_NewRef(Py_NotImplemented);
    }
    Py_DECREF(list);
    PyObject *tuple = arguments ? PySequence_Tuple(arguments) : PyTuple_New(0);
    if (!tuple) return NULL;
    PyObject *ours = NULL, *outer = running;
    if (function == running && !(function = ours = own_function(function))) {
        Py_DECREF(tuple);
        return NULL;
    }
    running = function;
    disabled++;
    PyObject *result = PyObject_Call(function, tuple, options == Py_None ? NULL : options);
    disabled--;
    running = outer;
    Py_XDECREF(ours);
    Py_DECREF(tuple);
    return PyType_IsSubtype((PyTypeObject *)cls, &msa_python_tensor_type) && (PyTypeObject *)cls != &msa_python_tensor_type
               ? as_class(result, (PyTypeObject *)cls)
               : result;
}

PyMethodDef msa_python_override_methods[] = {
    {"__torch_function__", (PyCFunction)(void (*)(void))tensor_torch_function, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "__torch_function__(func, types, args=(), kwargs=None)\n\nRun func on the arguments and give results this class."},
    {NULL, NULL, 0, NULL},
};

/* _disabled_torch_function_impl(func, types, args=(), kwargs=None): func's plain results. */
static PyObject *disabled_implementation(PyObject *module, PyObject *args, PyObject *keywords) {
    PyObject *function, *types, *arguments = NULL, *options = Py_None;
    static char *names[] = {"func", "types", "args", "kwargs", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|OO", names, &function, &types, &arguments, &options)) return NULL;
    PyObject *tuple = arguments ? PySequence_Tuple(arguments) : PyTuple_New(0);
    if (!tuple) return NULL;
    disabled++;
    PyObject *result = PyObject_Call(function, tuple, options == Py_None ? NULL : options);
    disabled--;
    Py_DECREF(tuple);
    return result;
}

/* with DisableTorchFunction(): operators are plain. */
typedef struct {
    PyObject_HEAD
} guard;
static PyObject *guard_enter(PyObject *self, PyObject *unused) {
    disabled++;
    return Py_NewRef(self);
}
static PyObject *guard_exit(PyObject *self, PyObject *unused) {
    if (disabled) disabled--;
    Py_RETURN_NONE;
}
static PyMethodDef guard_methods[] = {
    {"__enter__", guard_enter, METH_NOARGS, NULL},
    {"__exit__", guard_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyTypeObject guard_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch._C.DisableTorchFunction",
    .tp_basicsize = sizeof(guard),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_methods = guard_methods,
};

static PyObject *has_torch_function(PyObject *module, PyObject *args) {
    PyTypeObject *type = NULL;
    if (!PyTuple_Check(args) && !PyList_Check(args)) return PyErr_Format(PyExc_TypeError, "_has_torch_function() takes a tuple or list");
    PyObject *const *items = PySequence_Fast_ITEMS(args);
    return PyBool_FromLong(msa_python_override_among(items, PySequence_Fast_GET_SIZE(args), &type) != MSA_PLAIN);
}

static PyMethodDef functions[] = {
    {"_disabled_torch_function_impl", (PyCFunction)(void (*)(void))disabled_implementation, METH_VARARGS | METH_KEYWORDS, NULL},
    {"_has_torch_function", has_torch_function, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_overrides(PyObject *module) {
    attribute_name = PyUnicode_InternFromString("__torch_function__");
    msa_python_result_class = msa_python_tensor_class;
    if (!attribute_name || PyType_Ready(&guard_type) != 0 || PyModule_AddFunctions(module, functions) != 0) return -1;
    default_function = PyDict_GetItem(msa_python_tensor_type.tp_dict, attribute_name);
    disabled_function = PyDict_GetItemString(PyModule_GetDict(module), "_disabled_torch_function_impl");
    if (!default_function || !disabled_function) return -1;
    return PyModule_AddObjectRef(module, "DisableTorchFunction", (PyObject *)&guard_type);
}
