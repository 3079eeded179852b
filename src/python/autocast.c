/* Mixed precision's settings, as Python reads and changes them; device 0 is "cpu", 1 is "cuda". */
#include "msadapter/autograd.h"
#include "python/internal.h"

static PyObject *enabled(PyObject *module, PyObject *device) {
    const long d = PyLong_AsLong(device);
    return d == -1 && PyErr_Occurred() ? NULL : PyBool_FromLong(msa_autocast_enabled((int)d));
}

static PyObject *set_enabled(PyObject *module, PyObject *args) {
    int device, on;
    if (!PyArg_ParseTuple(args, "ip:_set_autocast_enabled", &device, &on)) return NULL;
    msa_set_autocast_enabled(device, on);
    Py_RETURN_NONE;
}

static PyObject *dtype(PyObject *module, PyObject *device) {
    const long d = PyLong_AsLong(device);
    if (d == -1 && PyErr_Occurred()) return NULL;
    if (d != 0 && d != 1) return PyErr_Format(PyExc_ValueError, "_autocast_dtype: device is 0 or 1, not %ld", d);
    return msa_python_dtype(msa_autocast_dtype((int)d));
}

static PyObject *set_dtype(PyObject *module, PyObject *args) {
    int device;
    PyObject *object;
    msa_dtype to;
    if (!PyArg_ParseTuple(args, "iO:_set_autocast_dtype", &device, &object)) return NULL;
    if (msa_python_as_dtype(object, &to) != 0) return NULL;
    msa_set_autocast_dtype(device, to);
    Py_RETURN_NONE;
}

static PyObject *cache_enabled(PyObject *module, PyObject *unused) { return PyBool_FromLong(msa_autocast_cache_enabled()); }

static PyObject *set_cache_enabled(PyObject *module, PyObject *value) {
    const int on = PyObject_IsTrue(value);
    if (on < 0) return NULL;
    msa_set_autocast_cache_enabled(on);
    Py_RETURN_NONE;
}

static PyObject *increment(PyObject *module, PyObject *unused) { return PyLong_FromLong(msa_autocast_nest(1)); }
static PyObject *decrement(PyObject *module, PyObject *unused) { return PyLong_FromLong(msa_autocast_nest(-1)); }

static PyObject *clear(PyObject *module, PyObject *unused) {
    msa_clear_autocast_cache();
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"_autocast_enabled", enabled, METH_O, NULL},
    {"_set_autocast_enabled", set_enabled, METH_VARARGS, NULL},
    {"_autocast_dtype", dtype, METH_O, NULL},
    {"_set_autocast_dtype", set_dtype, METH_VARARGS, NULL},
    {"is_autocast_cache_enabled", cache_enabled, METH_NOARGS, "Whether autocast keeps converted weights until its outermost block ends."},
    {"set_autocast_cache_enabled", set_cache_enabled, METH_O, "Switch the keeping of converted weights."},
    {"autocast_increment_nesting", increment, METH_NOARGS, "Enter one more autocast block; returns how many there are."},
    {"autocast_decrement_nesting", decrement, METH_NOARGS, "Leave an autocast block; returns how many there are."},
    {"clear_autocast_cache", clear, METH_NOARGS, "Forget the converted weights."},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_autocast(PyObject *module) { return PyModule_AddFunctions(module, methods); }
