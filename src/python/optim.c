/* The optimizers' steps as functions of the module. */
#include "msadapter/optim.h"

#include "python/autograd.h"

static int some(PyObject *object, tensor_items *items) {
    return msa_python_tensors(object, "a list of tensors is expected", false, items);
}

/* _sgd_step(params, grads, buffers, first, lr, momentum, dampening, weight_decay, nesterov, maximize) */
static PyObject *sgd_step(PyObject *module, PyObject *args) {
    PyObject *lists[4];
    msa_sgd_options o;
    int nesterov, maximize;
    if (!PyArg_ParseTuple(args, "OOOOddddpp:_sgd_step", &lists[0], &lists[1], &lists[2], &lists[3], &o.lr, &o.momentum, &o.dampening, &o.weight_decay,
                          &nesterov, &maximize))
        return NULL;
    o.nesterov = nesterov;
    o.maximize = maximize;
    tensor_items items[3] = {{0}};
    bool *first = NULL;
    int status = -1;
    for (int i = 0; i < 3; i++)
        if (some(lists[i], &items[i]) != 0) goto done;
    Py_ssize_t n = PyList_Check(lists[3]) ? PyList_GET_SIZE(lists[3]) : 0;
    first = PyMem_Calloc((size_t)(items[0].list.n ? items[0].list.n : 1), sizeof *first);
    if (!first) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t i = 0; i < n && i < items[0].list.n; i++) first[i] = PyList_GET_ITEM(lists[3], i) == Py_True;
    Py_BEGIN_ALLOW_THREADS
    status = msa_sgd_step(items[0].list, items[1].list, items[2].list, first, &o);
    Py_END_ALLOW_THREADS
    if (status != 0) msa_python_raise();
done:
    PyMem_Free(first);
    for (int i = 0; i < 3; i++) msa_python_tensors_clear(&items[i]);
    if (status != 0) return NULL;
    Py_RETURN_NONE;
}

/* _adam_step(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize) */
static PyObject *adam_step(PyObject *module, PyObject *args) {
    PyObject *lists[6];
    msa_adam_options o;
    int decoupled, amsgrad, maximize;
    if (!PyArg_ParseTuple(args, "OOOOOOdddddppp:_adam_step", &lists[0], &lists[1], &lists[2], &lists[3], &lists[4], &lists[5], &o.lr, &o.beta1, &o.beta2,
                          &o.eps, &o.weight_decay, &decoupled, &amsgrad, &maximize))
        return NULL;
    o.decoupled = decoupled;
    o.amsgrad = amsgrad;
    o.maximize = maximize;
    tensor_items items[5] = {{0}};
    double *steps = NULL;
    int status = -1;
    for (int i = 0; i < 5; i++)
        if (some(lists[i], &items[i]) != 0) goto done;
    PyObject *numbers = PySequence_Fast(lists[5], "steps must be a list of numbers");
    if (!numbers) goto done;
    steps = PyMem_Calloc((size_t)(items[0].list.n ? items[0].list.n : 1), sizeof *steps);
    for (Py_ssize_t i = 0; steps && i < PySequence_Fast_GET_SIZE(numbers) && i < items[0].list.n; i++)
        steps[i] = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(numbers, i));
    bool complete = PySequence_Fast_GET_SIZE(numbers) == items[0].list.n;
    Py_DECREF(numbers);
    if (!steps || PyErr_Occurred() || !complete) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "_adam_step: a step for each parameter is expected");
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS
    status = msa_adam_step(items[0].list, items[1].list, items[2].list, items[3].list, items[4].list, steps, &o);
    Py_END_ALLOW_THREADS
    if (status != 0) msa_python_raise();
done:
    PyMem_Free(steps);
    for (int i = 0; i < 5; i++) msa_python_tensors_clear(&items[i]);
    if (status != 0) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_sgd_step", sgd_step, METH_VARARGS, NULL},
    {"_adam_step", adam_step, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int msa_python_add_optim(PyObject *module) { return PyModule_AddFunctions(module, functions); }
