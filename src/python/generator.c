/* torch.Generator, the global seed functions, and finfo and iinfo. */
#include "msadapter/random.h"
#include "python/arguments.h"
#include "python/types.h"

#include <float.h>

typedef struct {
    PyObject_HEAD
    msa_generator *generator;
} python_generator;

static msa_generator *generator_of(PyObject *self) { return ((python_generator *)self)->generator; }

int msa_python_match_generator(PyObject *object, msa_generator **generator) {
    if (!PyObject_TypeCheck(object, &msa_python_generator_type)) return 0;
    *generator = generator_of(object);
    return 1;
}

msa_generator *msa_python_as_generator(PyObject *object) {
    msa_generator *g = NULL;
    if (object == Py_None) return msa_generator_default();
    if (msa_python_match_generator(object, &g)) return g;
    PyErr_Format(PyExc_TypeError, "expected a torch.Generator, got %.200s", Py_TYPE(object)->tp_name);
    return NULL;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    static char *names[] = {"device", NULL};
    PyObject *device = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:Generator", names, &device)) return NULL;
    int code;
    if (device != Py_None) {
        int status = msa_python_match_device(device, &code);
        if (status == 0) PyErr_Format(PyExc_TypeError, "Generator(): argument 'device' must be torch.device, not %.200s", Py_TYPE(device)->tp_name);
        if (status != 1) return NULL;
    }
    python_generator *g = (python_generator *)type->tp_alloc(type, 0);
    if (!g) return NULL;
    g->generator = msa_generator_new(MSA_GENERATOR_DEFAULT_SEED);
    if (g->generator) return (PyObject *)g;
    Py_DECREF(g);
    return msa_python_raise();
}

static void generator_dealloc(PyObject *self) {
    msa_generator_free(generator_of(self));
    Py_TYPE(self)->tp_free(self);
}

/* Negative seeds count from the top, as in PyTorch. */
static int seed_value(PyObject *object, uint64_t *seed) {
    PyObject *index = PyFloat_Check(object) ? PyNumber_Long(object) : PyNumber_Index(object);
    if (!index) return -1;
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(index, &overflow);
    if (overflow > 0) {
        unsigned long long u = PyLong_AsUnsignedLongLong(index);
        if (!PyErr_Occurred()) {
            *seed = u;
            Py_DECREF(index);
            return 0;
        }
        PyErr_Clear();
    }
    Py_DECREF(index);
    if (overflow) {
        PyErr_SetString(PyExc_RuntimeError, "Overflow when unpacking long");
        return -1;
    }
    *seed = (uint64_t)v;
    return 0;
}

static PyObject *state_tensor(msa_generator *g) {
    msa_tensor *t = msa_tensor_new(MSA_INTS(MSA_GENERATOR_STATE_BYTES), MSA_UINT8);
    if (!t) return msa_python_raise();
    msa_generator_get_state(g, msa_data(t));
    return msa_python_wrap(t);
}

static int load_state(msa_generator *g, PyObject *object) {
    msa_tensor *t = msa_python_unwrap(object);
    if (!t) return -1;
    if (t->dtype != MSA_UINT8) {
        PyErr_SetString(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
        return -1;
    }
    msa_auto msa_tensor *plain = msa_contiguous_values(t);
    if (plain && msa_generator_set_state(g, msa_data(plain), (size_t)plain->numel) == 0) return 0;
    msa_python_raise();
    return -1;
}

static PyObject *generator_manual_seed(PyObject *self, PyObject *value) {
    uint64_t seed;
    if (seed_value(value, &seed) != 0) return NULL;
    msa_generator_manual_seed(generator_of(self), seed);
    return Py_NewRef(self);
}
static PyObject *generator_seed(PyObject *self, PyObject *unused) { return PyLong_FromUnsignedLongLong(msa_generator_seed(generator_of(self))); }
static PyObject *generator_initial_seed(PyObject *self, PyObject *unused) {
    return PyLong_FromUnsignedLongLong(msa_generator_initial_seed(generator_of(self)));
}
static PyObject *generator_get_state(PyObject *self, PyObject *unused) { return state_tensor(generator_of(self)); }
static PyObject *generator_set_state(PyObject *self, PyObject *state) {
    return load_state(generator_of(self), state) == 0 ? Py_NewRef(self) : NULL;
}
static PyObject *generator_device(PyObject *self, void *unused) { return msa_python_device(0, -1); }

static PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O, "manual_seed(seed) -> Generator\n\nStart the numbers anew from a seed."},
    {"seed", generator_seed, METH_NOARGS, "seed() -> int\n\nStart from a seed that the system gives, and return it."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "initial_seed() -> int"},
    {"get_state", generator_get_state, METH_NOARGS, "get_state() -> Tensor\n\nThe state as a ByteTensor."},
    {"set_state", generator_set_state, METH_O, "set_state(new_state)\n\nTake a state of get_state() over."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef generator_getset[] = {
    {"device", generator_device, NULL, "Where the numbers are made.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject msa_python_generator_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "torch.Generator",
    .tp_basicsize = sizeof(python_generator),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "Generator(device='cpu')\n\nA source of random numbers with a state of its own.",
    .tp_new = generator_new,
    .tp_dealloc = generator_dealloc,
    .tp_methods = generator_methods,
    .tp_getset = generator_getset,
};

static PyObject *default_generator;

static PyObject *manual_seed(PyObject *module, PyObject *value) { return generator_manual_seed(default_generator, value); }
static PyObject *seed(PyObject *module, PyObject *unused) { return generator_seed(default_generator, NULL); }
static PyObject *initial_seed(PyObject *module, PyObject *unused) { return generator_initial_seed(default_generator, NULL); }
static PyObject *get_rng_state(PyObject *module, PyObject *unused) { return state_tensor(msa_generator_default()); }
static PyObject *set_rng_state(PyObject *module, PyObject *state) {
    if (load_state(msa_generator_default(), state) != 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"manual_seed", manual_seed, METH_O, "manual_seed(seed) -> Generator\n\nStart the default generator anew from a seed."},
    {"seed", seed, METH_NOARGS, "seed() -> int\n\nStart the default generator from a seed that the system gives, and return it."},
    {"initial_seed", initial_seed, METH_NOARGS, "initial_seed() -> int\n\nThe seed that the default generator started from."},
    {"get_rng_state", get_rng_state, METH_NOARGS, "get_rng_state() -> Tensor\n\nThe default generator's state as a ByteTensor."},
    {"set_rng_state", set_rng_state, METH_O, "set_rng_state(new_state)"},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_generators(PyObject *module) {
    if (PyType_Ready(&msa_python_generator_type) != 0) return -1;
    python_generator *g = PyObject_New(python_generator, &msa_python_generator_type);
    if (!g) return -1;
    g->generator = msa_generator_default();
    default_generator = (PyObject *)g;
    if (PyModule_AddObjectRef(module, "Generator", (PyObject *)&msa_python_generator_type) != 0 ||
        PyModule_AddObjectRef(module, "default_generator", default_generator) != 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
