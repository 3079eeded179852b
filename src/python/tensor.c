/* The tensor type, TensorBase, and the objects of tensors.
 *
 * A tensor has at most one Python object, msa_tensor.python. Usually the object owns a reference to the tensor. An object
 * that carries attributes, or is of a subclass, must not be lost while the library still holds the tensor (a parameter
 * that only the graph knows): when the last Python reference goes, ownership turns around, and the tensor keeps the object
 * (python_owned) until it is asked for again or dies.
 *
 * Objects without attributes are not tracked by the garbage collector: they refer to no Python object. */
#include "python/tensor.h"

#include "msadapter/ops.h"
#include "python/autograd.h"
#include "python/override.h"

PyTypeObject *msa_python_tensor_class = &msa_python_tensor_type;

/* Memory of plain objects, used again. */
enum { FREE_LIMIT = 128 };
static python_tensor *free_objects[FREE_LIMIT];
static int free_count;

static PyObject *new_object(PyTypeObject *type) {
    python_tensor *p;
    if (type == msa_python_tensor_class && free_count) {
        p = free_objects[--free_count];
        (void)PyObject_Init((PyObject *)p, type);
    } else if (type->tp_basicsize == sizeof(python_tensor)) {
        p = PyObject_GC_New(python_tensor, type);
        if (!p) return NULL;
    } else {
        /* A subclass with slots of its own. */
        p = (python_tensor *)PyType_GenericAlloc(type, 0);
        if (!p) return NULL;
    }
    p->tensor = NULL;
    p->dict = NULL;
    p->weak_references = NULL;
    return (PyObject *)p;
}

PyObject *msa_python_wrap_as(PyTypeObject *type, msa_tensor *owned) {
    PyObject *object = new_object(type);
    if (!object) {
        msa_tensor_release(owned);
        return NULL;
    }
    ((python_tensor *)object)->tensor = owned;
    owned->python = object;
    return object;
}

PyObject *msa_python_wrap(msa_tensor *owned) {
    if (__builtin_expect(!owned, 0)) return msa_python_raise();
    if (!owned->python) return msa_python_wrap_as(msa_python_result_class, owned);
    PyObject *object = owned->python;
    if (owned->python_owned) {
        /* The object's one reference goes to the caller, and the caller's reference to the tensor to the object. */
        owned->python_owned = false;
        return object;
    }
    Py_INCREF(object);
    msa_tensor_release(owned);
    return object;
}

msa_tensor *msa_python_unwrap(PyObject *object) {
    if (msa_python_is_tensor(object)) return ((python_tensor *)object)->tensor;
    PyErr_Format(PyExc_TypeError, "expected Tensor, got %.200s", Py_TYPE(object)->tp_name);
    return NULL;
}

/* The tensor dies while it owns its object. */
static void drop_object(void *python) {
    if (!Py_IsInitialized()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    ((python_tensor *)python)->tensor = NULL;
    Py_DECREF((PyObject *)python);
    PyGILState_Release(state);
}

static bool worth_keeping(const python_tensor *p) {
    return (p->dict && PyDict_GET_SIZE(p->dict)) || p->weak_references || Py_TYPE(p) != msa_python_tensor_class;
}

static void dealloc(PyObject *self) {
    python_tensor *p = (python_tensor *)self;
    msa_tensor *t = p->tensor;
    PyTypeObject *type = Py_TYPE(self);
    /* For Tensor and below it this function has the last word on the object and on the reference to its class. */
    bool ours = msa_python_tensor_class != &msa_python_tensor_type && PyType_IsSubtype(type, msa_python_tensor_class);
    if (ours && t && t->references > 1 && worth_keeping(p)) {
        Py_SET_REFCNT(self, 1);
        t->python_owned = true;
        msa_tensor_release(t);
        return;
    }
    PyObject_GC_UnTrack(self);
    if (p->weak_references) PyObject_ClearWeakRefs(self);
    Py_CLEAR(p->dict);
    p->tensor = NULL;
    if (t) {
        t->python = NULL;
        msa_tensor_release(t);
    }
    if (ours && type == msa_python_tensor_class && free_count < FREE_LIMIT) {
        free_objects[free_count++] = p;
    } else {
        PyObject_GC_Del(self);
    }
    if (ours) Py_DECREF(type);
}

/* The class, which every instance refers to, is visited by the traverse function that Python gives to subclasses. */
static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((python_tensor *)self)->dict);
    return 0;
}

static int clear(PyObject *self) {
    Py_CLEAR(((python_tensor *)self)->dict);
    return 0;
}

static void track(PyObject *self) {
    if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
}

static int set_attribute(PyObject *self, PyObject *name, PyObject *value) {
    int status = PyObject_GenericSetAttr(self, name, value);
    if (((python_tensor *)self)->dict) track(self);
    return status;
}

static PyObject *get_dict(PyObject *self, void *unused) {
    python_tensor *p = (python_tensor *)self;
    if (!p->dict && !(p->dict = PyDict_New())) return NULL;
    track(self);
    return Py_NewRef(p->dict);
}

static int set_dict(PyObject *self, PyObject *value, void *unused) {
    if (!value || !PyDict_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "__dict__ must be set to a dictionary");
        return -1;
    }
    Py_XSETREF(((python_tensor *)self)->dict, Py_NewRef(value));
    track(self);
    return 0;
}

static PyGetSetDef dict_getset[] = {{"__dict__", get_dict, set_dict, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static Py_hash_t hash(PyObject *self) { return _Py_HashPointer(self); }

static PyObject *format(PyObject *self, PyObject *spec) {
    if (!PyUnicode_Check(spec)) return PyErr_Format(PyExc_TypeError, "__format__() argument must be str, not %.200s", Py_TYPE(spec)->tp_name);
    if (msa_python_tensor_of(self)->ndim == 0) {
        msa_scalar value;
        if (msa_tensor_item(msa_python_tensor_of(self), &value) != 0) return msa_python_raise();
        PyObject *number = msa_python_from_scalar(value), *text = number ? PyObject_Format(number, spec) : NULL;
        Py_XDECREF(number);
        return text;
    }
    if (PyUnicode_GET_LENGTH(spec) == 0) return PyObject_Str(self);
    return PyErr_Format(PyExc_TypeError, "unsupported format string passed to %s.__format__", Py_TYPE(self)->tp_name);
}

/* _make_subclass(cls, data, require_grad=False): data's memory as an object of cls. */
static PyObject *make_subclass(PyObject *cls, PyObject *args, PyObject *keywords) {
    static char *names[] = {"cls", "data", "require_grad", NULL};
    PyObject *type, *data;
    int requires_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|p:_make_subclass", names, &type, &data, &requires_grad)) return NULL;
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &msa_python_tensor_type))
        return PyErr_Format(PyExc_TypeError, "cls must be a type derived from Tensor");
    msa_tensor *source = msa_python_unwrap(data);
    if (!source) return NULL;
    msa_tensor *t = msa_tensor_alias(source);
    if (!t) return msa_python_raise();
    PyObject *object = msa_python_wrap_as((PyTypeObject *)type, t);
    if (object && requires_grad && msa_tensor_set_requires_grad(t, true) != 0) {
        Py_DECREF(object);
        return msa_python_raise();
    }
    return object;
}

static PyObject *as_subclass(PyObject *self, PyObject *type) {
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, &msa_python_tensor_type))
        return PyErr_Format(PyExc_TypeError, "cls must be a type derived from Tensor");
    msa_tensor *t = msa_alias(msa_python_tensor_of(self));
    return t ? msa_python_wrap_as((PyTypeObject *)type, t) : msa_python_raise();
}

static PyMethodDef own_methods[] = {
    {"__format__", format, METH_O, NULL},
    {"__rpow__", msa_python_reflected_power, METH_O | METH_COEXIST, NULL}, /* the slot's own would keep the history */
    {"_make_subclass", (PyCFunction)(void (*)(void))make_subclass, METH_VARARGS | METH_KEYWORDS | METH_STATIC, NULL},
    {"as_subclass", as_subclass, METH_O, "as_subclass(cls)\n\nThe same memory as an object of a subclass of Tensor."},
    {NULL, NULL, 0, NULL},
};

static PyMappingMethods mapping = {
    .mp_length = msa_python_length,
    .mp_subscript = msa_python_get_item,
    .mp_ass_subscript = msa_python_set_item,
};
static PySequenceMethods sequence = {.sq_contains = msa_python_contains};

PyTypeObject msa_python_tensor_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch._C._TensorBase",
    .tp_basicsize = sizeof(python_tensor),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "What Tensor is derived from.",
    .tp_new = msa_python_legacy_new,
    .tp_dealloc = dealloc,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_hash = hash,
    .tp_repr = msa_python_repr,
    .tp_setattro = set_attribute,
    .tp_richcompare = msa_python_compare,
    .tp_iter = msa_python_iterate,
    .tp_as_number = &msa_python_number_methods,
    .tp_as_mapping = &mapping,
    .tp_as_sequence = &sequence,
    .tp_dictoffset = offsetof(python_tensor, dict),
    .tp_weaklistoffset = offsetof(python_tensor, weak_references),
    .tp_methods = own_methods,
    .tp_getset = dict_getset,
};

static int add_methods(PyTypeObject *type, PyMethodDef *methods) {
    for (PyMethodDef *m = methods; m->ml_name; m++) {
        PyObject *object = m->ml_flags & METH_STATIC  ? PyCFunction_NewEx(m, NULL, NULL)
                           : m->ml_flags & METH_CLASS ? PyDescr_NewClassMethod(type, m)
                                                      : PyDescr_NewMethod(type, m);
        if (object && (m->ml_flags & METH_STATIC)) Py_SETREF(object, PyStaticMethod_New(object));
        int status = object ? PyDict_SetItemString(type->tp_dict, m->ml_name, object) : -1;
        Py_XDECREF(object);
        if (status != 0) return -1;
    }
    return 0;
}

static int add_getset(PyTypeObject *type, PyGetSetDef *attributes) {
    for (PyGetSetDef *a = attributes; a->name; a++) {
        PyObject *object = PyDescr_NewGetSet(type, a);
        int status = object ? PyDict_SetItemString(type->tp_dict, a->name, object) : -1;
        Py_XDECREF(object);
        if (status != 0) return -1;
    }
    return 0;
}

/* The class that results are made as: it must add nothing to the layout of TensorBase. */
static PyObject *set_tensor_class(PyObject *module, PyObject *cls) {
    PyTypeObject *type = (PyTypeObject *)cls;
    if (msa_python_tensor_class != &msa_python_tensor_type) return PyErr_Format(PyExc_RuntimeError, "the tensor class is set already");
    if (!PyType_Check(cls) || type->tp_base != &msa_python_tensor_type || type->tp_basicsize != sizeof(python_tensor))
        return PyErr_Format(PyExc_TypeError, "set_tensor_class() takes a direct subclass of TensorBase without slots");
    msa_python_tensor_class = msa_python_result_class = (PyTypeObject *)Py_NewRef(cls);
    /* Objects of it and of its subclasses end in our dealloc, where they may be kept. */
    type->tp_dealloc = dealloc;
    Py_RETURN_NONE;
}

static PyObject *is_tensor(PyObject *module, PyObject *object) { return PyBool_FromLong(msa_python_is_tensor(object)); }

static PyMethodDef functions[] = {
    {"set_tensor_class", set_tensor_class, METH_O, "Results are objects of this subclass of TensorBase from now on."},
    {"is_tensor", is_tensor, METH_O, "is_tensor(obj) -> bool"},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_tensor(PyObject *module) {
    PyTypeObject *type = &msa_python_tensor_type;
    msa_tensor_on_python_release(drop_object);
    if (PyType_Ready(type) != 0) return -1;
    PyMethodDef *const methods[] = {msa_python_tensor_methods, msa_python_override_methods, msa_python_geometry_methods, msa_python_conversion_methods, msa_python_copy_methods,
                                    msa_python_numpy_methods, msa_python_dlpack_methods, msa_python_storage_methods,
                                    msa_python_autograd_methods};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (add_methods(type, methods[i]) != 0) return -1;
    if (add_getset(type, msa_python_tensor_getset) != 0 || add_getset(type, msa_python_autograd_getset) != 0) return -1;
    PyObject *priority = PyLong_FromLong(1000); /* numpy leaves operators with our tensors to us */
    int status = priority ? PyDict_SetItemString(type->tp_dict, "__array_priority__", priority) : -1;
    Py_XDECREF(priority);
    if (status != 0) return -1;
    PyType_Modified(type);
    if (PyModule_AddObjectRef(module, "TensorBase", (PyObject *)type) != 0) return -1;
    return PyModule_AddFunctions(module, functions);
}
