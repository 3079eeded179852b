/* torch.device, and what naming a device means here: memory of ours is the CPU's.
 *
 * "cuda", "npu" and other accelerators mean the CPU, with one warning; MSADAPTER_STRICT_DEVICE=1 makes that an error. */
#include "python/arguments.h"
#include "python/types.h"

#include <stdlib.h>

static const char *const kinds[] = {"cpu", "cuda", "npu", "ascend", "gpu", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep",
                                    "hip", "ve", "fpga", "ort", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "privateuseone"};
enum { CPU = 0, CUDA = 1, KINDS = sizeof kinds / sizeof *kinds };

PyObject *msa_python_device(int kind, int index) {
    python_device *d = PyObject_New(python_device, &msa_python_device_type);
    if (!d) return NULL;
    d->kind = kind;
    d->index = index;
    return (PyObject *)d;
}

/* "cuda:1" */
static int parse(const char *text, int *kind, int *index) {
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    *index = -1;
    for (*kind = 0; *kind < KINDS; (*kind)++)
        if (strlen(kinds[*kind]) == length && strncmp(kinds[*kind], text, length) == 0) break;
    if (*kind == KINDS) {
        PyErr_Format(PyExc_RuntimeError,
                     "Expected one of cpu, cuda, npu, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, ort, xla, lazy, "
                     "vulkan, mps, meta, hpu, privateuseone device type at start of device string: %.200s", text);
        return -1;
    }
    if (!colon) return 0;
    char *end;
    long value = colon[1] >= '0' && colon[1] <= '9' ? strtol(colon + 1, &end, 10) : -1;
    if (value < 0 || *end || value > 127) {
        PyErr_Format(PyExc_RuntimeError, "Invalid device string: '%.200s'", text);
        return -1;
    }
    *index = (int)value;
    return 0;
}

/* 1, 0 or -1. */
static int match(PyObject *object, int *kind, int *index) {
    if (Py_TYPE(object) == &msa_python_device_type) {
        *kind = ((python_device *)object)->kind;
        *index = ((python_device *)object)->index;
        return 1;
    }
    if (PyUnicode_Check(object)) {
        const char *text = PyUnicode_AsUTF8(object);
        return text && parse(text, kind, index) == 0 ? 1 : -1;
    }
    if (!PyLong_Check(object) || PyBool_Check(object)) return 0;
    long value = PyLong_AsLong(object);
    if (value == -1 && PyErr_Occurred()) return -1;
    if (value < 0 || value > 127) {
        PyErr_Format(PyExc_RuntimeError, "Device index must not be negative");
        return -1;
    }
    *kind = CUDA;
    *index = (int)value;
    return 1;
}

int msa_python_match_device(PyObject *object, int *device) {
    static bool warned;
    int kind, index;
    int status = match(object, &kind, &index);
    if (status != 1) return status;
    *device = 0;
    if (kind == CPU) return 1;
    if (strcmp(kinds[kind], "meta") == 0) {
        PyErr_SetString(PyExc_NotImplementedError, "device 'meta' is not implemented here");
        return -1;
    }
    const char *strict = getenv("MSADAPTER_STRICT_DEVICE");
    if (strict && strcmp(strict, "1") == 0) {
        PyErr_Format(PyExc_RuntimeError, "device '%s' is not available here", kinds[kind]);
        return -1;
    }
    if (warned) return 1;
    warned = true;
    return PyErr_WarnFormat(PyExc_UserWarning, 1, "device '%s' is not available here; the CPU stands for it", kinds[kind]) == 0 ? 1 : -1;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"type", "index", NULL};
    PyObject *what = NULL, *index_object = NULL;
    if (keywords && PyDict_GetItemString(keywords, "device")) names[0] = "device";
    else names[0] = "type";
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:device", names, &what, &index_object)) return NULL;
    int kind, index;
    int status = match(what, &kind, &index);
    if (status < 0) return NULL;
    if (status == 0)
        return PyErr_Format(PyExc_TypeError, "device(): argument 'type' must be str, not %.200s", Py_TYPE(what)->tp_name);
    if (index_object && index_object != Py_None) {
        int64_t given;
        status = msa_python_as_int(index_object, &given);
        if (status < 0) return NULL;
        if (status == 0 || !PyUnicode_Check(what))
            return PyErr_Format(PyExc_TypeError, "device(): argument 'index' must be int, not %.200s", Py_TYPE(index_object)->tp_name);
        if (index >= 0) return PyErr_Format(PyExc_RuntimeError, "type (string) must not include an index because index was passed explicitly");
        if (given < 0 || given > 127) return PyErr_Format(PyExc_RuntimeError, "Device index must not be negative");
        index = (int)given;
    }
    return msa_python_device(kind, index);
}

static PyObject *device_repr(PyObject *self) {
    python_device *d = (python_device *)self;
    return d->index < 0 ? PyUnicode_FromFormat("device(type='%s')", kinds[d->kind])
                        : PyUnicode_FromFormat("device(type='%s', index=%d)", kinds[d->kind], d->index);
}

static PyObject *device_str(PyObject *self) {
    python_device *d = (python_device *)self;
    return d->index < 0 ? PyUnicode_FromString(kinds[d->kind]) : PyUnicode_FromFormat("%s:%d", kinds[d->kind], d->index);
}

static Py_hash_t device_hash(PyObject *self) { return ((python_device *)self)->kind * 1000 + ((python_device *)self)->index + 1; }

static PyObject *device_compare(PyObject *a, PyObject *b, int operation) {
    if (Py_TYPE(b) != &msa_python_device_type || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    bool same = ((python_device *)a)->kind == ((python_device *)b)->kind && ((python_device *)a)->index == ((python_device *)b)->index;
    return PyBool_FromLong(same == (operation == Py_EQ));
}

static PyObject *device_type(PyObject *self, void *unused) { return PyUnicode_FromString(kinds[((python_device *)self)->kind]); }

static PyObject *device_index(PyObject *self, void *unused) {
    int index = ((python_device *)self)->index;
    if (index < 0) Py_RETURN_NONE;
    return PyLong_FromLong(index);
}

static PyObject *device_reduce(PyObject *self, PyObject *unused) {
    PyObject *text = device_str(self);
    return text ? Py_BuildValue("N(N)", msa_python_helper("_make_device"), text) : NULL;
}

/* What pickles call: the class's own name says "torch", which need not be importable. */
static PyObject *make_device(PyObject *module, PyObject *text) { return PyObject_CallOneArg((PyObject *)&msa_python_device_type, text); }
static PyMethodDef functions[] = {{"_make_device", make_device, METH_O, NULL}, {NULL, NULL, 0, NULL}};

static PyGetSetDef device_getset[] = {
    {"type", device_type, NULL, "The kind of device: 'cpu', 'cuda', 'npu'.", NULL},
    {"index", device_index, NULL, "Which one, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject msa_python_device_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.device",
    .tp_basicsize = sizeof(python_device),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "device(type, index=None)\n\nWhere a tensor's memory is: device('cpu'), device('cuda:0'), device('cuda', 0).",
    .tp_new = device_new,
    .tp_repr = device_repr,
    .tp_str = device_str,
    .tp_hash = device_hash,
    .tp_richcompare = device_compare,
    .tp_getset = device_getset,
    .tp_methods = device_methods,
};

int msa_python_add_devices(PyObject *module) {
    if (PyType_Ready(&msa_python_device_type) != 0) return -1;
    if (PyModule_AddFunctions(module, functions) != 0) return -1;
    return PyModule_AddObjectRef(module, "device", (PyObject *)&msa_python_device_type);
}
