/* Tensors exchanged through DLPack, version 0 of its structures (github.com/dmlc/dlpack, the array API's __dlpack__).
 *
 * A capsule named "dltensor" owns a managed tensor until a consumer renames it "used_dltensor" and calls the deleter itself. */
#include "autograd/internal.h"
#include "python/tensor.h"

typedef struct {
    int32_t device_type; /* 1: CPU */
    int32_t device_id;
} dl_device;
typedef struct {
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool */
    uint8_t bits;
    uint16_t lanes;
} dl_type;
typedef struct {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_type dtype;
    int64_t *shape;
    int64_t *strides; /* NULL: contiguous */
    uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *self);
} dl_managed;

enum { DL_CPU = 1 };
static const dl_type types[MSA_DTYPES] = {
    [MSA_BOOL] = {6, 8, 1}, [MSA_UINT8] = {1, 8, 1}, [MSA_INT8] = {0, 8, 1}, [MSA_INT16] = {0, 16, 1}, [MSA_INT32] = {0, 32, 1},
    [MSA_INT64] = {0, 64, 1}, [MSA_FLOAT16] = {2, 16, 1}, [MSA_BFLOAT16] = {4, 16, 1}, [MSA_FLOAT32] = {2, 32, 1},
    [MSA_FLOAT64] = {2, 64, 1}, [MSA_COMPLEX64] = {5, 64, 1}, [MSA_COMPLEX128] = {5, 128, 1},
};

typedef struct {
    dl_managed managed;
    msa_tensor *tensor;
    int64_t dims[2 * MSA_MAX_DIMS];
} exported;

static void delete_exported(dl_managed *managed) {
    exported *e = managed->context;
    msa_tensor_release(e->tensor);
    free(e);
}

static void delete_capsule(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor")) return; /* somebody has taken it */
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    if (managed && managed->deleter) managed->deleter(managed);
}

static PyObject *export_tensor(msa_tensor *t) {
    if (t->requires_grad)
        return PyErr_Format(PyExc_RuntimeError, "Can't export tensors that require gradient, use tensor.detach()");
    if (msa_python_check_strided("to_dlpack", t) != 0) return msa_python_raise();
    exported *e = calloc(1, sizeof *e);
    if (!e) return PyErr_NoMemory();
    void *data = t->numel ? msa_data(t) : NULL;
    t->storage->lent = true;
    e->tensor = msa_tensor_alias(t);
    if ((t->numel && !data) || !e->tensor) {
        msa_tensor_release(e->tensor);
        free(e);
        return msa_python_raise();
    }
    t->storage->resizable = false;
    memcpy(e->dims, t->sizes, sizeof(int64_t) * t->ndim);
    for (int i = 0; i < t->ndim; i++) e->dims[MSA_MAX_DIMS + i] = t->sizes[i] > 1 ? t->strides[i] : 1;
    e->managed = (dl_managed){{data, {DL_CPU, 0}, t->ndim, types[t->dtype], e->dims, e->dims + MSA_MAX_DIMS, 0}, e, delete_exported};
    PyObject *capsule = PyCapsule_New(&e->managed, "dltensor", delete_capsule);
    if (!capsule) delete_exported(&e->managed);
    return capsule;
}

static void delete_imported(void *context) {
    dl_managed *managed = context;
    if (!managed->deleter || !Py_IsInitialized()) return;
    /* The producer's deleter may be Python's. */
    PyGILState_STATE state = PyGILState_Ensure();
    managed->deleter(managed);
    PyGILState_Release(state);
}

static PyObject *import_capsule(PyObject *capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return PyErr_Format(PyExc_RuntimeError, "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
                            "once, so you might have already constructed a tensor from it once.");
    dl_managed *managed = PyCapsule_GetPointer(capsule, "dltensor");
    const dl_tensor *d = &managed->tensor;
    int dtype = 0;
    while (dtype < MSA_DTYPES && memcmp(&types[dtype], &d->dtype, sizeof d->dtype) != 0) dtype++;
    if (dtype == MSA_DTYPES)
        return PyErr_Format(PyExc_RuntimeError, "from_dlpack(): unsupported type of code %d with %d bits", d->dtype.code, d->dtype.bits);
    if (d->device.device_type != DL_CPU)
        return PyErr_Format(PyExc_RuntimeError, "from_dlpack(): the tensor is not in the CPU's memory");
    if (d->ndim < 0 || d->ndim > MSA_MAX_DIMS || (d->ndim && !d->shape))
        return PyErr_Format(PyExc_RuntimeError, "from_dlpack(): %d dimensions are not supported", (int)d->ndim);
    int64_t strides[MSA_MAX_DIMS];
    if (d->strides) memcpy(strides, d->strides, sizeof(int64_t) * (size_t)d->ndim);
    else msa_contiguous_strides(d->ndim, d->shape, strides);
    for (int i = 0; i < d->ndim; i++)
        if (strides[i] < 0) return PyErr_Format(PyExc_RuntimeError, "from_dlpack(): negative strides are not supported");
    msa_tensor *t = msa_tensor_from_memory((char *)d->data + d->byte_offset, (msa_ints){d->shape, d->ndim}, (msa_ints){strides, d->ndim},
                                           (msa_dtype)dtype, delete_imported, managed);
    if (!t) return msa_python_raise();
    PyCapsule_SetName(capsule, "used_dltensor");
    return msa_python_wrap(t);
}

static PyObject *from_dlpack(PyObject *module, PyObject *object) {
    if (PyCapsule_CheckExact(object)) return import_capsule(object);
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    if (!device) return NULL;
    long type = -1, id;
    int fits = PyArg_ParseTuple(device, "ll", &type, &id);
    Py_DECREF(device);
    if (!fits) return NULL;
    if (type != DL_CPU) return PyErr_Format(PyExc_RuntimeError, "from_dlpack(): the tensor is not in the CPU's memory");
    PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    PyObject *result = capsule ? import_capsule(capsule) : NULL;
    Py_XDECREF(capsule);
    return result;
}

static PyObject *to_dlpack(PyObject *module, PyObject *object) {
    msa_tensor *t = msa_python_unwrap(object);
    return t ? export_tensor(t) : NULL;
}

/* __dlpack__(stream=None), and the newer keywords of the array API where they ask for nothing else. */
static PyObject *dlpack(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$OOO:__dlpack__", names, &stream, &version, &device, &copy)) return NULL;
    if (stream != Py_None && !PyLong_Check(stream)) return PyErr_Format(PyExc_TypeError, "stream must be ``int`` or ``none``");
    if (device != Py_None) {
        long type, id;
        if (!PyTuple_Check(device) || !PyArg_ParseTuple(device, "ll", &type, &id)) {
            PyErr_Clear();
            return PyErr_Format(PyExc_TypeError, "dl_device must be a pair of ints");
        }
        if (type != DL_CPU) return PyErr_Format(PyExc_BufferError, "the tensor is in the CPU's memory");
    }
    msa_tensor *t = msa_python_tensor_of(self);
    if (copy != Py_True) return export_tensor(t);
    if (t->requires_grad) return export_tensor(t); /* refused there */
    msa_auto msa_tensor *own = msa_clone_values(t);
    return own ? export_tensor(own) : msa_python_raise();
}

static PyObject *dlpack_device(PyObject *self, PyObject *unused) { return Py_BuildValue("(ii)", DL_CPU, 0); }

PyMethodDef msa_python_dlpack_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_VARARGS | METH_KEYWORDS, "A DLPack capsule over the same memory."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, "(1, 0): the CPU."},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef functions[] = {
    {"from_dlpack", from_dlpack, METH_O, "from_dlpack(ext_tensor) -> Tensor\n\nA tensor over the memory of an object with __dlpack__, or of a capsule."},
    {"to_dlpack", to_dlpack, METH_O, "to_dlpack(tensor) -> PyCapsule\n\nA DLPack capsule over the tensor's memory."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_dlpack(PyObject *module) { return PyModule_AddFunctions(module, functions); }
