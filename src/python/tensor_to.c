/* Conversions of tensors: to(), float(), cpu(), type(), and tensors like this one (new_zeros and so on). */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "python/functions.h"
#include "python/override.h"
#include "python/tensor.h"

static msa_tensor *of(PyObject *self) { return msa_python_tensor_of(self); }

static PyObject *converted(PyObject *self, msa_dtype dtype, bool non_blocking, bool copy, int format) {
    msa_tensor *t = of(self);
    if (dtype == MSA_NO_DTYPE) dtype = (msa_dtype)t->dtype;
    if (dtype == t->dtype && !copy && format < 0) return Py_NewRef(self);
    msa_tensor *result;
    if (t->numel > MSA_PYTHON_GIL_NUMEL) {
        Py_BEGIN_ALLOW_THREADS
        result = msa_to_dtype(t, dtype, non_blocking, copy, format);
        Py_END_ALLOW_THREADS
    } else {
        result = msa_to_dtype(t, dtype, non_blocking, copy, format);
    }
    return msa_python_wrap_like(self, result);
}

static PyObject *wrong(const char *function, const char *name, const char *expected, PyObject *got) {
    return PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %.200s", function, name, expected, Py_TYPE(got)->tp_name);
}

static int flag(const char *function, const char *name, PyObject *object, bool *value) {
    if (!PyBool_Check(object)) {
        wrong(function, name, "bool", object);
        return -1;
    }
    *value = object == Py_True;
    return 0;
}

/* to(dtype, non_blocking, copy), to(device, dtype, non_blocking, copy), to(other, non_blocking, copy), with memory_format. */
static PyObject *to(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    msa_dtype dtype = MSA_NO_DTYPE;
    bool flags[2] = {false, false};
    int format = -1, device, next_flag = 0;
    bool dtype_may_follow = false, anything = n > 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *a = args[i];
        if (i == 0) {
            if (msa_python_match_dtype(a, &dtype)) continue;
            if (msa_python_is_tensor(a)) {
                dtype = (msa_dtype)of(a)->dtype;
                continue;
            }
            int status = a == Py_None ? 1 : msa_python_match_device(a, &device);
            if (status < 0) return NULL;
            if (status == 0)
                return PyErr_Format(PyExc_TypeError, "to() received an invalid combination of arguments - got (%.200s), but expected one of:\n"
                                    " * (torch.device device, torch.dtype dtype, bool non_blocking, bool copy, *, torch.memory_format memory_format)\n"
                                    " * (torch.dtype dtype, bool non_blocking, bool copy, *, torch.memory_format memory_format)\n"
                                    " * (Tensor tensor, bool non_blocking, bool copy, *, torch.memory_format memory_format)\n", Py_TYPE(a)->tp_name);
            dtype_may_follow = true;
            continue;
        }
        if (i == 1 && dtype_may_follow && (a == Py_None || msa_python_match_dtype(a, &dtype))) continue;
        if (next_flag == 2) return PyErr_Format(PyExc_TypeError, "to() received too many arguments");
        if (flag("to", next_flag ? "copy" : "non_blocking", a, &flags[next_flag]) != 0) return NULL;
        next_flag++;
    }
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); k++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, k));
        PyObject *a = args[n + k];
        if (!name) return NULL;
        anything = true;
        if (strcmp(name, "dtype") == 0) {
            if (a != Py_None && !msa_python_match_dtype(a, &dtype)) return wrong("to", name, "torch.dtype", a);
        } else if (strcmp(name, "device") == 0) {
            int status = a == Py_None ? 1 : msa_python_match_device(a, &device);
            if (status < 0) return NULL;
            if (status == 0) return wrong("to", name, "torch.device", a);
        } else if (strcmp(name, "memory_format") == 0) {
            if (a != Py_None && msa_python_match_memory_format(a, &format) != 1) return wrong("to", name, "torch.memory_format", a);
        } else if (strcmp(name, "non_blocking") == 0 || strcmp(name, "copy") == 0) {
            if (flag("to", name, a, &flags[name[0] == 'c']) != 0) return NULL;
        } else if (strcmp(name, "other") == 0 || strcmp(name, "tensor") == 0) {
            if (!msa_python_is_tensor(a)) return wrong("to", name, "Tensor", a);
            dtype = (msa_dtype)of(a)->dtype;
        } else {
            return PyErr_Format(PyExc_TypeError, "to() got an unexpected keyword argument '%s'", name);
        }
    }
    if (!anything) return PyErr_Format(PyExc_TypeError, "to() received an invalid combination of arguments - got ()");
    return converted(self, dtype, flags[0], flags[1], format);
}

/* float(), half(), cpu(), cuda(): an optional memory format and flags. */
static PyObject *simple(const char *function, PyObject *self, msa_dtype dtype, PyObject *const *args, Py_ssize_t n, PyObject *keywords,
                        bool takes_device) {
    int format = -1, device;
    bool ignored;
    Py_ssize_t total = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
    for (Py_ssize_t i = 0; i < total; i++) {
        const char *name = i < n ? "" : PyUnicode_AsUTF8(PyTuple_GET_ITEM(keywords, i - n));
        if (!name) return NULL;
        if (msa_python_match_memory_format(args[i], &format)) continue;
        if (takes_device && strcmp(name, "memory_format") != 0) {
            if (args[i] == Py_None) continue;
            if (PyBool_Check(args[i])) {
                if (flag(function, "non_blocking", args[i], &ignored) != 0) return NULL;
                continue;
            }
            int status = msa_python_match_device(args[i], &device);
            if (status < 0) return NULL;
            if (status == 1) continue;
        }
        if (strcmp(name, "memory_format") == 0 && args[i] == Py_None) continue;
        return PyErr_Format(PyExc_TypeError, "%s() received an invalid argument of type %.200s", function, Py_TYPE(args[i])->tp_name);
    }
    return converted(self, dtype, false, false, format);
}

#define TO_DTYPE(name, dtype) \
    static PyObject *to_##name(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) { \
        return simple(#name, self, dtype, args, n, keywords, false); \
    }
TO_DTYPE(float, MSA_FLOAT32)
TO_DTYPE(double, MSA_FLOAT64)
TO_DTYPE(half, MSA_FLOAT16)
TO_DTYPE(bfloat16, MSA_BFLOAT16)
TO_DTYPE(int, MSA_INT32)
TO_DTYPE(long, MSA_INT64)
TO_DTYPE(short, MSA_INT16)
TO_DTYPE(char, MSA_INT8)
TO_DTYPE(byte, MSA_UINT8)
TO_DTYPE(bool, MSA_BOOL)
TO_DTYPE(cfloat, MSA_COMPLEX64)
TO_DTYPE(cdouble, MSA_COMPLEX128)

static PyObject *cpu(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    return simple("cpu", self, MSA_NO_DTYPE, args, n, keywords, false);
}

/* cuda(device=None), npu(device=None): the CPU stands for them. */
static PyObject *accelerator(const char *name, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    int device;
    PyObject *text = PyUnicode_FromString(name);
    int status = text ? msa_python_match_device(text, &device) : -1;
    Py_XDECREF(text);
    return status < 0 ? NULL : simple(name, self, MSA_NO_DTYPE, args, n, keywords, true);
}
static PyObject *cuda(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    return accelerator("cuda", self, args, n, keywords);
}
static PyObject *npu(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    return accelerator("npu", self, args, n, keywords);
}

/* "torch.FloatTensor", "torch.cuda.HalfTensor" */
static const struct {
    const char *name;
    msa_dtype dtype;
} type_names[] = {{"Bool", MSA_BOOL}, {"Byte", MSA_UINT8}, {"Char", MSA_INT8}, {"Short", MSA_INT16}, {"Int", MSA_INT32},
                  {"Long", MSA_INT64}, {"Half", MSA_FLOAT16}, {"BFloat16", MSA_BFLOAT16}, {"Float", MSA_FLOAT32},
                  {"Double", MSA_FLOAT64}, {"ComplexFloat", MSA_COMPLEX64}, {"ComplexDouble", MSA_COMPLEX128}};

static int dtype_of_name(const char *text, msa_dtype *dtype) {
    const char *name = strncmp(text, "torch.", 6) == 0 ? text + 6 : NULL;
    if (name && strncmp(name, "cuda.", 5) == 0) name += 5;
    for (size_t i = 0; name && i < sizeof type_names / sizeof *type_names; i++) {
        size_t length = strlen(type_names[i].name);
        if (strncmp(name, type_names[i].name, length) == 0 && strcmp(name + length, "Tensor") == 0) {
            *dtype = type_names[i].dtype;
            return 0;
        }
    }
    if (name && strcmp(name, "Tensor") == 0) {
        *dtype = msa_default_dtype();
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "invalid type: '%.200s'", text);
    return -1;
}

static PyObject *type(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"dtype", "non_blocking", NULL};
    PyObject *what = Py_None;
    int non_blocking = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|Op:type", names, &what, &non_blocking)) return NULL;
    msa_dtype dtype;
    if (what == Py_None) return PyUnicode_FromFormat("torch.%sTensor", msa_dtype_type_name((msa_dtype)of(self)->dtype));
    if (!msa_python_match_dtype(what, &dtype)) {
        /* A name, or an object such as torch.FloatTensor that tells its own dtype. */
        PyObject *attribute = PyUnicode_Check(what) ? NULL : PyObject_GetAttrString(what, "dtype");
        if (attribute) {
            int status = msa_python_as_dtype(attribute, &dtype);
            Py_DECREF(attribute);
            if (status != 0) return PyErr_Format(PyExc_TypeError, "dtype must be a type, str, or dtype object");
        } else {
            PyErr_Clear();
            if (what == (PyObject *)msa_python_tensor_class) dtype = msa_default_dtype();
            else if (!PyUnicode_Check(what)) return PyErr_Format(PyExc_TypeError, "dtype must be a type, str, or dtype object");
            else if (dtype_of_name(PyUnicode_AsUTF8(what), &dtype) != 0) return NULL;
        }
    }
    return converted(self, dtype, non_blocking, false, -1);
}

/* Tensors of this one's dtype. The parameters are those of the functions with the same end. */

static const char *const option_names[] = {"dtype", "device", "requires_grad", "layout", "pin_memory"};

/* new_zeros(*size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None), new_full(size, fill_value, ...) */
static PyObject *new_like(const char *function, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    bool full = strcmp(function, "new_full") == 0;
    PyObject *options[5] = {NULL}, *size = NULL, *fill = NULL;
    for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); k++) {
        PyObject *name = PyTuple_GET_ITEM(keywords, k);
        int at = 0;
        while (at < 5 && PyUnicode_CompareWithASCIIString(name, option_names[at]) != 0) at++;
        if (at < 5) options[at] = args[n + k];
        else if (PyUnicode_CompareWithASCIIString(name, "size") == 0) size = args[n + k];
        else if (full && PyUnicode_CompareWithASCIIString(name, "fill_value") == 0) fill = args[n + k];
        else return PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, name);
    }
    int64_t sizes[MSA_MAX_DIMS];
    int count = 0, status = 1, device, layout;
    bool single = n == 1 || full;
    if (full && n > 1) fill = args[1];
    if (size || (single && n && (PyTuple_Check(args[0]) || PyList_Check(args[0])))) {
        status = msa_python_as_ints(size ? size : args[0], sizes, MSA_MAX_DIMS, &count);
    } else {
        if (n == 0 || n > MSA_MAX_DIMS || full) return PyErr_Format(PyExc_TypeError, "%s(): argument 'size' must be tuple of ints", function);
        for (count = 0; count < n && status == 1; count++) status = msa_python_as_int(args[count], &sizes[count]);
    }
    if (status == 0) PyErr_Format(PyExc_TypeError, "%s(): argument 'size' must be tuple of ints", function);
    if (status != 1) return NULL;
    msa_dtype dtype = (msa_dtype)of(self)->dtype;
    if (options[0] && options[0] != Py_None && msa_python_as_dtype(options[0], &dtype) != 0) return NULL;
    if (options[1] && options[1] != Py_None && (status = msa_python_match_device(options[1], &device)) != 1)
        return status == 0 ? wrong(function, "device", "torch.device", options[1]) : NULL;
    if (options[3] && options[3] != Py_None && (status = msa_python_match_layout(options[3], &layout)) != 1)
        return status == 0 ? wrong(function, "layout", "torch.layout", options[3]) : NULL;
    bool requires_grad = false;
    if (options[2] && flag(function, "requires_grad", options[2], &requires_grad) != 0) return NULL;
    msa_scalar value = msa_int(strcmp(function, "new_ones") == 0);
    if (full) {
        if (!fill) return PyErr_Format(PyExc_TypeError, "new_full() missing 1 required positional arguments: \"fill_value\"");
        status = msa_python_as_scalar(fill, &value);
        if (status == 0) wrong(function, "fill_value", "Number", fill);
        if (status != 1) return NULL;
    }
    msa_tensor *t = msa_tensor_new((msa_ints){sizes, count}, dtype);
    if (t && strcmp(function, "new_empty") != 0 && msa_fill_values(t, value) != 0) {
        msa_tensor_release(t);
        return msa_python_raise();
    }
    if (t && requires_grad && msa_tensor_set_requires_grad(t, true) != 0) {
        msa_tensor_release(t);
        return msa_python_raise();
    }
    return msa_python_wrap(t);
}

#define NEW(name) \
    static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) { \
        return new_like(#name, self, args, n, keywords); \
    }
NEW(new_empty)
NEW(new_zeros)
NEW(new_ones)
NEW(new_full)

static PyObject *new_empty_strided(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"size", "stride", "dtype", "device", "requires_grad", "layout", "pin_memory", NULL};
    PyObject *size, *stride, *dtype_object = Py_None, *device = Py_None, *layout = Py_None, *pin_memory = Py_None;
    int requires_grad = 0, code, n, m;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|OOpOO:new_empty_strided", names, &size, &stride, &dtype_object, &device, &requires_grad,
                                     &layout, &pin_memory))
        return NULL;
    int64_t sizes[MSA_MAX_DIMS], strides[MSA_MAX_DIMS];
    msa_dtype dtype = (msa_dtype)of(self)->dtype;
    if (msa_python_as_ints(size, sizes, MSA_MAX_DIMS, &n) != 1) return PyErr_Occurred() ? NULL : wrong("new_empty_strided", "size", "tuple of ints", size);
    if (msa_python_as_ints(stride, strides, MSA_MAX_DIMS, &m) != 1)
        return PyErr_Occurred() ? NULL : wrong("new_empty_strided", "stride", "tuple of ints", stride);
    if (dtype_object != Py_None && msa_python_as_dtype(dtype_object, &dtype) != 0) return NULL;
    if (device != Py_None && msa_python_match_device(device, &code) != 1)
        return PyErr_Occurred() ? NULL : wrong("new_empty_strided", "device", "torch.device", device);
    if (layout != Py_None && msa_python_match_layout(layout, &code) != 1)
        return PyErr_Occurred() ? NULL : wrong("new_empty_strided", "layout", "torch.layout", layout);
    msa_tensor *t = msa_tensor_new_strided((msa_ints){sizes, n}, (msa_ints){strides, m}, dtype);
    if (t && requires_grad && msa_tensor_set_requires_grad(t, true) != 0) {
        msa_tensor_release(t);
        t = NULL;
    }
    return msa_python_wrap(t);
}

static PyObject *new_tensor(PyObject *self, PyObject *args, PyObject *keywords) {
    static char *names[] = {"data", "dtype", "device", "requires_grad", "layout", "pin_memory", NULL};
    PyObject *data, *dtype_object = Py_None, *device_object = Py_None, *layout = Py_None;
    int requires_grad = 0, pin_memory = 0, device, status, code;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OOpOp:new_tensor", names, &data, &dtype_object, &device_object, &requires_grad, &layout,
                                     &pin_memory))
        return NULL;
    if (layout != Py_None && msa_python_match_layout(layout, &code) != 1)
        return PyErr_Occurred() ? NULL : wrong("new_tensor", "layout", "torch.layout", layout);
    msa_dtype dtype = (msa_dtype)of(self)->dtype;
    if (dtype_object != Py_None && msa_python_as_dtype(dtype_object, &dtype) != 0) return NULL;
    if (device_object != Py_None && (status = msa_python_match_device(device_object, &device)) != 1)
        return status == 0 ? wrong("new_tensor", "device", "torch.device", device_object) : NULL;
    msa_tensor *t = msa_python_new_tensor(data, dtype);
    if (t && requires_grad && msa_tensor_set_requires_grad(t, true) != 0) {
        msa_tensor_release(t);
        t = NULL;
    }
    if (!t) return PyErr_Occurred() ? NULL : msa_python_raise();
    return msa_python_wrap(t);
}

/* The old new(*sizes) and new(data). */
static PyObject *legacy_new(PyObject *self, PyObject *args, PyObject *keywords) {
    PyObject *t = msa_python_legacy_new(msa_python_tensor_class, args, NULL);
    if (!t) return NULL;
    PyObject *result = converted(t, (msa_dtype)of(self)->dtype, false, false, -1);
    Py_DECREF(t);
    return result;
}

#define FAST(f) (PyCFunction)(void (*)(void))f, METH_FASTCALL | METH_KEYWORDS
#define KEYWORDS(f) (PyCFunction)(void (*)(void))f, METH_VARARGS | METH_KEYWORDS
#define SIMPLE_DOC(name, dtype) #name "(memory_format=torch.preserve_format) -> Tensor\n\nThis tensor as torch." dtype "; itself when it is that."
PyMethodDef msa_python_conversion_methods[] = {
    {"to", FAST(to), "to(dtype, non_blocking=False, copy=False, memory_format=torch.preserve_format) -> Tensor\n"
     "to(device=None, dtype=None, non_blocking=False, copy=False, memory_format=torch.preserve_format) -> Tensor\n"
     "to(other, non_blocking=False, copy=False) -> Tensor\n\nThe tensor as another dtype; itself when nothing changes."},
    {"type", KEYWORDS(type), "type(dtype=None, non_blocking=False) -> str or Tensor\n\nThe type's name, or the tensor as another type."},
    {"float", FAST(to_float), SIMPLE_DOC(float, "float32")},
    {"double", FAST(to_double), SIMPLE_DOC(double, "float64")},
    {"half", FAST(to_half), SIMPLE_DOC(half, "float16")},
    {"bfloat16", FAST(to_bfloat16), SIMPLE_DOC(bfloat16, "bfloat16")},
    {"int", FAST(to_int), SIMPLE_DOC(int, "int32")},
    {"long", FAST(to_long), SIMPLE_DOC(long, "int64")},
    {"short", FAST(to_short), SIMPLE_DOC(short, "int16")},
    {"char", FAST(to_char), SIMPLE_DOC(char, "int8")},
    {"byte", FAST(to_byte), SIMPLE_DOC(byte, "uint8")},
    {"bool", FAST(to_bool), SIMPLE_DOC(bool, "bool")},
    {"cfloat", FAST(to_cfloat), SIMPLE_DOC(cfloat, "complex64")},
    {"cdouble", FAST(to_cdouble), SIMPLE_DOC(cdouble, "complex128")},
    {"cpu", FAST(cpu), "cpu(memory_format=torch.preserve_format) -> Tensor\n\nThe tensor itself."},
    {"cuda", FAST(cuda), "cuda(device=None, non_blocking=False, memory_format=torch.preserve_format) -> Tensor\n\nThe CPU stands for the device."},
    {"npu", FAST(npu), "npu(device=None, non_blocking=False) -> Tensor\n\nThe CPU stands for the device."},
    {"new_empty", FAST(new_empty), "new_empty(size, dtype=None, device=None, requires_grad=False, layout=torch.strided, pin_memory=False) -> Tensor"},
    {"new_zeros", FAST(new_zeros), "new_zeros(size, dtype=None, device=None, requires_grad=False, layout=torch.strided, pin_memory=False) -> Tensor"},
    {"new_ones", FAST(new_ones), "new_ones(size, dtype=None, device=None, requires_grad=False, layout=torch.strided, pin_memory=False) -> Tensor"},
    {"new_full", FAST(new_full), "new_full(size, fill_value, dtype=None, device=None, requires_grad=False, layout=torch.strided, pin_memory=False) -> Tensor"},
    {"new_empty_strided", KEYWORDS(new_empty_strided),
     "new_empty_strided(size, stride, dtype=None, device=None, requires_grad=False, layout=torch.strided, pin_memory=False) -> Tensor"},
    {"new_tensor", KEYWORDS(new_tensor), "new_tensor(data, *, dtype=None, device=None, requires_grad=False, layout=torch.strided, pin_memory=False) -> Tensor\n\nA copy of data in this tensor's dtype."},
    {"new", KEYWORDS(legacy_new), "new(*sizes) -> Tensor\n\nThe old way to make a tensor of this one's dtype."},
    {NULL, NULL, 0, NULL},
};
