/* The module msadapter._C: settings, errors as exceptions, and what the other files add. */
#include "base/memory.h"
#include "base/parallel.h"
#include "python/tensor.h"

static PyObject *this_module, *linalg_error;

PyObject *msa_python_helper(const char *name) { return PyObject_GetAttrString(this_module, name); }

PyObject *msa_python_raise(void) {
    PyObject *const exceptions[] = {
        [MSA_OK] = PyExc_SystemError, [MSA_RUNTIME_ERROR] = PyExc_RuntimeError, [MSA_TYPE_ERROR] = PyExc_TypeError,
        [MSA_VALUE_ERROR] = PyExc_ValueError, [MSA_INDEX_ERROR] = PyExc_IndexError,
        [MSA_NOT_IMPLEMENTED] = PyExc_NotImplementedError, [MSA_MEMORY_ERROR] = PyExc_MemoryError, [MSA_OS_ERROR] = PyExc_OSError,
        [MSA_LINALG_ERROR] = linalg_error, [MSA_FOREIGN_ERROR] = PyExc_RuntimeError,
        [MSA_PICKLE_ERROR] = NULL, [MSA_EOF_ERROR] = PyExc_EOFError,
    };
    msa_error_kind kind = msa_error_get();
    if (kind != MSA_FOREIGN_ERROR || !PyErr_Occurred()) {
        const char *message = msa_error_message();
        PyObject *pickle = kind == MSA_PICKLE_ERROR ? PyImport_ImportModule("_pickle") : NULL;
        PyObject *unpickling_error = pickle ? PyObject_GetAttrString(pickle, "UnpicklingError") : NULL;
        PyErr_Clear();
        PyObject *exception = unpickling_error ? unpickling_error : exceptions[kind] ? exceptions[kind] : PyExc_RuntimeError;
        PyErr_SetString(exception, message[0] ? message : "a call failed without saying why");
        Py_XDECREF(unpickling_error);
        Py_XDECREF(pickle);
    }
    msa_error_clear();
    return NULL;
}

static PyObject *set_num_threads(PyObject *module, PyObject *value) {
    int64_t n;
    int status = msa_python_as_int(value, &n);
    if (status == 0) return PyErr_Format(PyExc_TypeError, "set_num_threads expects an int, but got %.200s", Py_TYPE(value)->tp_name);
    if (status < 0) return NULL;
    if (n < 1 || n > 4096) return PyErr_Format(PyExc_RuntimeError, "set_num_threads expects a positive integer");
    msa_set_num_threads((int)n);
    Py_RETURN_NONE;
}

static PyObject *get_num_threads(PyObject *module, PyObject *unused) { return PyLong_FromLong(msa_get_num_threads()); }

static PyObject *set_default_dtype(PyObject *module, PyObject *value) {
    msa_dtype dtype;
    if (!msa_python_match_dtype(value, &dtype))
        return PyErr_Format(PyExc_TypeError, "invalid dtype object: only floating-point types are supported as the default type");
    if (msa_set_default_dtype(dtype) != 0) return msa_python_raise();
    Py_RETURN_NONE;
}

static PyObject *get_default_dtype(PyObject *module, PyObject *unused) { return msa_python_dtype(msa_default_dtype()); }

static int two_dtypes(PyObject *args, const char *format, msa_dtype *a, msa_dtype *b) {
    PyObject *first, *second;
    if (!PyArg_ParseTuple(args, format, &first, &second)) return -1;
    return msa_python_as_dtype(first, a) != 0 ? -1 : msa_python_as_dtype(second, b);
}

static PyObject *promote_types(PyObject *module, PyObject *args) {
    msa_dtype a, b;
    return two_dtypes(args, "OO:promote_types", &a, &b) == 0 ? msa_python_dtype(msa_dtype_promote(a, b)) : NULL;
}

static PyObject *can_cast(PyObject *module, PyObject *args) {
    msa_dtype a, b;
    return two_dtypes(args, "OO:can_cast", &a, &b) == 0 ? PyBool_FromLong(msa_dtype_can_cast(a, b)) : NULL;
}

static PyObject *result_type(PyObject *module, PyObject *args) {
    PyObject *objects[2];
    if (!PyArg_ParseTuple(args, "OO:result_type", &objects[0], &objects[1])) return NULL;
    msa_tensor *operands[2] = {NULL, NULL};
    PyObject *result = NULL;
    for (int i = 0; i < 2; i++) {
        msa_scalar number;
        if (msa_python_is_tensor(objects[i])) operands[i] = msa_tensor_retain(msa_python_tensor_of(objects[i]));
        else if (msa_python_scalar(objects[i], &number) != 0) goto done;
        else if (!(operands[i] = msa_python_number(number))) {
            msa_python_raise();
            goto done;
        }
    }
    result = msa_python_dtype(msa_result_type((msa_tensors){operands, 2}));
done:
    msa_tensor_release(operands[0]);
    msa_tensor_release(operands[1]);
    return result;
}

static PyObject *empty_cache(PyObject *module, PyObject *unused) {
    msa_data_trim();
    Py_RETURN_NONE;
}

/* _memory_in_use() -> (bytes of tensor data now, the most there were) */
static PyObject *memory_in_use(PyObject *module, PyObject *unused) {
    return Py_BuildValue("nn", (Py_ssize_t)msa_data_in_use(), (Py_ssize_t)msa_data_peak());
}

static PyObject *reset_peak_memory(PyObject *module, PyObject *unused) {
    msa_data_reset_peak();
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_memory_in_use", memory_in_use, METH_NOARGS, NULL},
    {"_reset_peak_memory", reset_peak_memory, METH_NOARGS, NULL},
    {"_empty_cache", empty_cache, METH_NOARGS, NULL},
    {"set_num_threads", set_num_threads, METH_O, "set_num_threads(int)\n\nHow many threads a kernel may use."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "get_num_threads() -> int"},
    {"set_default_dtype", set_default_dtype, METH_O, "set_default_dtype(d)\n\nThe floating-point type of new tensors. TypeError for other types."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "get_default_dtype() -> torch.dtype"},
    {"promote_types", promote_types, METH_VARARGS, "promote_types(type1, type2) -> dtype\n\nThe smallest type that holds both."},
    {"can_cast", can_cast, METH_VARARGS, "can_cast(from, to) -> bool\n"},
    {"result_type", result_type, METH_VARARGS, "result_type(tensor1, tensor2) -> dtype\n\nThe type of an operation on both, tensors or numbers."},
    {NULL, NULL, 0, NULL},
};

void msa_python_drop(void *object) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(state);
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "msadapter._C", .m_doc = "The engine, as Python calls it.", .m_size = -1, .m_methods = functions};

/* What other files register when the module is made. */
static int (*const parts[])(PyObject *) = {
    msa_python_add_types,  msa_python_add_tensor, msa_python_add_overrides,  msa_python_add_copies, msa_python_add_functions, msa_python_add_creation,
    msa_python_add_legacy, msa_python_add_numpy,   msa_python_add_dlpack, msa_python_add_storage,   msa_python_add_autograd, msa_python_add_graph_hooks, msa_python_add_profiler, msa_python_add_autocast,
    msa_python_add_module_base, msa_python_add_serialization, msa_python_add_optim, msa_python_add_parallel, msa_python_add_text,
};

PyMODINIT_FUNC PyInit__C(void) {
    PyObject *module = this_module = PyModule_Create(&definition);
    if (!module) return NULL;
    linalg_error = PyErr_NewException("torch.linalg.LinAlgError", PyExc_RuntimeError, NULL);
    if (!linalg_error || PyModule_AddObjectRef(module, "LinAlgError", linalg_error) != 0 ||
        PyModule_AddStringConstant(module, "__version__", MSA_VERSION) != 0)
        goto failed;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i](module) != 0) goto failed;
    return module;
failed:
    Py_DECREF(module);
    return NULL;
}
