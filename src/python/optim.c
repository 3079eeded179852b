/* The optimizers' steps as functions of the module.
 *
 * All are called alike: lists of tensors, where the method wants them a list of numbers for each parameter, then the
 * options, all numbers. */
#include "msadapter/optim.h"

#include "python/autograd.h"

enum { MAX_LISTS = 5, MAX_OPTIONS = 9 };

/* What a step is called with, taken from Python. */
typedef struct {
    tensor_items items[MAX_LISTS];
    msa_tensors lists[MAX_LISTS];
    double *numbers; /* NULL where none are given */
    double options[MAX_OPTIONS];
} arguments;

typedef struct {
    const char *name;
    int n_lists;
    int n_numbers; /* for each parameter; 0: there is no such list */
    bool numbers_optional;
    int n_options;
    int (*run)(const arguments *a);
} method;

static int take_numbers(const method *m, PyObject *object, arguments *a) {
    PyObject *fast = PySequence_Fast(object, "a list of numbers is expected");
    if (!fast) return -1;
    const Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    int status = 0;
    if (n != a->lists[0].n * m->n_numbers && !(n == 0 && m->numbers_optional)) {
        PyErr_Format(PyExc_ValueError, "%s: %lld numbers expected, one parameter takes %d, got %zd", m->name,
                     (long long)(a->lists[0].n * m->n_numbers), m->n_numbers, n);
        status = -1;
    } else if (n) {
        a->numbers = PyMem_Calloc((size_t)n, sizeof *a->numbers);
        if (!a->numbers) PyErr_NoMemory();
        for (Py_ssize_t i = 0; a->numbers && i < n; i++)
            a->numbers[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(fast, i));
        if (PyErr_Occurred()) status = -1;
    }
    Py_DECREF(fast);
    return status;
}

static int take(const method *m, PyObject *args, arguments *a) {
    const Py_ssize_t expected = m->n_lists + (m->n_numbers ? 1 : 0) + m->n_options;
    if (PyTuple_GET_SIZE(args) != expected) {
        PyErr_Format(PyExc_TypeError, "%s: %zd arguments expected, got %zd", m->name, expected, PyTuple_GET_SIZE(args));
        return -1;
    }
    Py_ssize_t at = 0;
    for (int k = 0; k < m->n_lists; k++) {
        if (msa_python_tensors(PyTuple_GET_ITEM(args, at++), "a list of tensors is expected", false, &a->items[k]) != 0)
            return -1;
        a->lists[k] = a->items[k].list;
    }
    if (m->n_numbers && take_numbers(m, PyTuple_GET_ITEM(args, at++), a) != 0) return -1;
    for (int k = 0; k < m->n_options; k++) {
        a->options[k] = PyFloat_AsDouble(PyTuple_GET_ITEM(args, at++));
        if (PyErr_Occurred()) return -1;
    }
    return 0;
}

static PyObject *call(const method *m, PyObject *args) {
    arguments a = {0};
    int status = take(m, args, &a);
    if (status == 0) {
        Py_BEGIN_ALLOW_THREADS status = m->run(&a);
        Py_END_ALLOW_THREADS if (status != 0) msa_python_raise();
    }
    PyMem_Free(a.numbers);
    for (int k = 0; k < m->n_lists; k++) msa_python_tensors_clear(&a.items[k]);
    if (status != 0) return NULL;
    Py_RETURN_NONE;
}

/* (params, grads, buffers, first, lr, momentum, dampening, weight_decay, nesterov, maximize) */
static int sgd(const arguments *a) {
    const double *o = a->options;
    const msa_sgd_options options = {o[0], o[1], o[2], o[3], o[4] != 0, o[5] != 0};
    msa_auto_free bool *first = msa_calloc((size_t)(a->lists[0].n ? a->lists[0].n : 1), sizeof *first);
    if (!first) return -1;
    for (int64_t i = 0; a->numbers && i < a->lists[0].n; i++) first[i] = a->numbers[i] != 0;
    return msa_sgd_step(a->lists[0], a->lists[1], a->lists[2], first, &options);
}

/* (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled,
 * amsgrad, maximize) */
static int adam(const arguments *a) {
    const double *o = a->options;
    const msa_adam_options options = {o[0], o[1], o[2], o[3], o[4], o[5] != 0, o[6] != 0, o[7] != 0};
    return msa_adam_step(a->lists[0], a->lists[1], a->lists[2], a->lists[3], a->lists[4], a->numbers, &options);
}

/* (params, grads, sums, steps, lr, lr_decay, weight_decay, eps, maximize) */
static int adagrad(const arguments *a) {
    const double *o = a->options;
    const msa_adagrad_options options = {o[0], o[1], o[2], o[3], o[4] != 0};
    return msa_adagrad_step(a->lists[0], a->lists[1], a->lists[2], a->numbers, &options);
}

/* (params, grads, square_avgs, grad_avgs, buffers, lr, alpha, eps, weight_decay, momentum, centered, maximize) */
static int rmsprop(const arguments *a) {
    const double *o = a->options;
    const msa_rmsprop_options options = {o[0], o[1], o[2], o[3], o[4], o[5] != 0, o[6] != 0};
    return msa_rmsprop_step(a->lists[0], a->lists[1], a->lists[2], a->lists[3], a->lists[4], &options);
}

/* (params, grads, square_avgs, acc_deltas, lr, rho, eps, weight_decay, maximize) */
static int adadelta(const arguments *a) {
    const double *o = a->options;
    const msa_adadelta_options options = {o[0], o[1], o[2], o[3], o[4] != 0};
    return msa_adadelta_step(a->lists[0], a->lists[1], a->lists[2], a->lists[3], &options);
}

/* (params, grads, exp_avgs, exp_infs, steps, lr, beta1, beta2, eps, weight_decay, maximize) */
static int adamax(const arguments *a) {
    const double *o = a->options;
    const msa_adamax_options options = {o[0], o[1], o[2], o[3], o[4], o[5] != 0};
    return msa_adamax_step(a->lists[0], a->lists[1], a->lists[2], a->lists[3], a->numbers, &options);
}

/* (params, grads, exp_avgs, exp_avg_sqs, steps and products of momenta, lr, beta1, beta2, eps, weight_decay,
 * momentum_decay) */
static int nadam(const arguments *a) {
    const double *o = a->options;
    const msa_nadam_options options = {o[0], o[1], o[2], o[3], o[4], o[5]};
    return msa_nadam_step(a->lists[0], a->lists[1], a->lists[2], a->lists[3], a->numbers, &options);
}

/* (params, grads, exp_avgs, exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay) */
static int radam(const arguments *a) {
    const double *o = a->options;
    const msa_radam_options options = {o[0], o[1], o[2], o[3], o[4]};
    return msa_radam_step(a->lists[0], a->lists[1], a->lists[2], a->lists[3], a->numbers, &options);
}

/* (params, grads, prevs, step_sizes, eta_minus, eta_plus, step_min, step_max, maximize) */
static int rprop(const arguments *a) {
    const double *o = a->options;
    const msa_rprop_options options = {o[0], o[1], o[2], o[3], o[4] != 0};
    return msa_rprop_step(a->lists[0], a->lists[1], a->lists[2], a->lists[3], &options);
}

/* (params, grads, means, etas and mus, lambd, weight_decay, maximize) */
static int asgd(const arguments *a) {
    const double *o = a->options;
    const msa_asgd_options options = {o[0], o[1], o[2] != 0};
    return msa_asgd_step(a->lists[0], a->lists[1], a->lists[2], a->numbers, &options);
}

#define STEP(NAME, LISTS, NUMBERS, OPTIONAL, OPTIONS)                                                                  \
    static PyObject *NAME##_step(PyObject *module, PyObject *args) {                                                   \
        return call(&(const method){"_" #NAME "_step", LISTS, NUMBERS, OPTIONAL, OPTIONS, NAME}, args);                \
    }
STEP(sgd, 3, 1, true, 6)
STEP(adam, 5, 1, false, 8)
STEP(adagrad, 3, 1, false, 5)
STEP(rmsprop, 5, 0, false, 7)
STEP(adadelta, 4, 0, false, 5)
STEP(adamax, 4, 1, false, 6)
STEP(nadam, 4, 2, false, 6)
STEP(radam, 4, 1, false, 5)
STEP(rprop, 4, 0, false, 5)
STEP(asgd, 3, 2, false, 3)

/* _unscale_gradients(grads, factor) -> whether one of them was not finite. */
static PyObject *unscale_gradients(PyObject *module, PyObject *args) {
    PyObject *object;
    double factor;
    if (!PyArg_ParseTuple(args, "Od:_unscale_gradients", &object, &factor)) return NULL;
    tensor_items items = {0};
    bool found = false;
    int status = msa_python_tensors(object, "a list of tensors is expected", false, &items);
    if (status == 0 && msa_unscale_gradients(items.list, factor, &found) != 0) {
        msa_python_raise();
        status = -1;
    }
    for (int64_t i = 0; status == 0 && i < items.list.n; i++) msa_bump_version(items.list.data[i]);
    msa_python_tensors_clear(&items);
    return status == 0 ? PyBool_FromLong(found) : NULL;
}

/* _count_steps(counters) -> list of floats: adds one to each of the 0-dim tensors, and tells what they are then. */
static PyObject *count_steps(PyObject *module, PyObject *object) {
    tensor_items items = {0};
    PyObject *result = NULL;
    if (msa_python_tensors(object, "a list of tensors is expected", false, &items) != 0) goto done;
    result = PyList_New(items.list.n);
    for (int64_t i = 0; result && i < items.list.n; i++) {
        msa_tensor *counter = items.list.data[i];
        msa_scalar value;
        if (msa_tensor_item(counter, &value) != 0 ||
            msa_fill_values(counter, msa_float(msa_scalar_double(value) + 1)) != 0) {
            msa_python_raise();
            Py_CLEAR(result);
            break;
        }
        msa_bump_version(counter);
        PyList_SET_ITEM(result, i, PyFloat_FromDouble(msa_scalar_double(value) + 1));
    }
done:
    msa_python_tensors_clear(&items);
    return result;
}

static PyMethodDef functions[] = {
    {"_sgd_step", sgd_step, METH_VARARGS, NULL},           {"_adam_step", adam_step, METH_VARARGS, NULL},
    {"_adagrad_step", adagrad_step, METH_VARARGS, NULL},   {"_rmsprop_step", rmsprop_step, METH_VARARGS, NULL},
    {"_adadelta_step", adadelta_step, METH_VARARGS, NULL}, {"_adamax_step", adamax_step, METH_VARARGS, NULL},
    {"_nadam_step", nadam_step, METH_VARARGS, NULL},       {"_radam_step", radam_step, METH_VARARGS, NULL},
    {"_rprop_step", rprop_step, METH_VARARGS, NULL},       {"_asgd_step", asgd_step, METH_VARARGS, NULL},
    {"_unscale_gradients", unscale_gradients, METH_VARARGS, NULL},
    {"_count_steps", count_steps, METH_O, NULL},           {NULL, NULL, 0, NULL},
};

int msa_python_add_optim(PyObject *module) {
    return PyModule_AddFunctions(module, functions);
}
