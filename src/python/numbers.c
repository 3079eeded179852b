/* Operators of the language on tensors: +, -, *, /, @, comparisons, conversions to numbers.
 *
 * The common ones call their entry points at once; the others go through the operator of that name. An operand that is
 * neither a tensor nor a number gives NotImplemented, so that Python asks the other side. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "python/functions.h"
#include "python/override.h"
#include "python/tensor.h"

/* The tensor of an operand: 1 with a reference, 0 when it is no operand of ours, -1 with an exception. */
static inline int operand(PyObject *object, msa_tensor **t) {
    if (msa_python_is_tensor(object)) {
        *t = msa_tensor_retain(((python_tensor *)object)->tensor);
        return 1;
    }
    msa_scalar number;
    int status = msa_python_as_scalar(object, &number);
    if (status != 1) return status;
    *t = msa_python_number(number);
    if (*t) return 1;
    msa_python_raise();
    return -1;
}

static inline int operands(PyObject *a, PyObject *b, msa_tensor **x, msa_tensor **y) {
    int status = operand(a, x);
    if (status != 1) return status;
    status = operand(b, y);
    if (status != 1) msa_tensor_release(*x);
    return status;
}

static inline bool is_large(const msa_tensor *x, const msa_tensor *y) {
    return x->numel > MSA_PYTHON_GIL_NUMEL || y->numel > MSA_PYTHON_GIL_NUMEL;
}

static msa_tensor *add(msa_tensor *x, msa_tensor *y) { return msa_add(x, y, msa_int(1)); }
static msa_tensor *sub(msa_tensor *x, msa_tensor *y) { return msa_sub(x, y, msa_int(1)); }
static msa_tensor *add_in_place(msa_tensor *x, msa_tensor *y) { return msa_add_(x, y, msa_int(1)); }
static msa_tensor *sub_in_place(msa_tensor *x, msa_tensor *y) { return msa_sub_(x, y, msa_int(1)); }

static inline PyObject *binary(const char *name, PyObject *a, PyObject *b, msa_tensor *(*call)(msa_tensor *, msa_tensor *)) {
    msa_tensor *x, *y, *result;
    if (__builtin_expect(msa_python_override_of(a) != MSA_PLAIN || msa_python_override_of(b) != MSA_PLAIN, 0)) {
        PyObject *const args[2] = {a, b};
        return msa_python_call_operator(name, args, 2);
    }
    int status = operands(a, b, &x, &y);
    if (__builtin_expect(status != 1, 0)) {
        if (status < 0) return NULL;
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (__builtin_expect(is_large(x, y), 0)) {
        Py_BEGIN_ALLOW_THREADS
        result = call(x, y);
        Py_END_ALLOW_THREADS
    } else {
        result = call(x, y);
    }
    msa_tensor_release(x);
    msa_tensor_release(y);
    return msa_python_wrap(result);
}

#define BINARY(name, operator, call) \
    static PyObject *number_##name(PyObject *a, PyObject *b) { return binary(operator, a, b, call); }
BINARY(add, "add", add)
BINARY(subtract, "sub", sub)
BINARY(multiply, "mul", msa_mul)
BINARY(inplace_add, "add_", add_in_place)
BINARY(inplace_subtract, "sub_", sub_in_place)
BINARY(inplace_multiply, "mul_", msa_mul_)
BINARY(inplace_divide, "div_", msa_div_)

/* An operand as a tensor object, for operators called by name; NULL without an exception when it is none. */
static PyObject *operand_object(PyObject *object) {
    if (msa_python_is_tensor(object)) return Py_NewRef(object);
    msa_scalar number;
    int status = msa_python_as_scalar(object, &number);
    if (status != 1) return NULL;
    return msa_python_wrap(msa_tensor_scalar(number, number.kind));
}

static bool is_number(PyObject *object) { return PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object) || msa_python_is_numpy_scalar(object); }

static bool takes_part(PyObject *object) {
    return msa_python_is_tensor(object) || is_number(object) || msa_python_override_of(object) == MSA_OVERRIDDEN;
}

/* By name; `a` may be a number (a reflected operator). */
static PyObject *named(const char *name, PyObject *a, PyObject *b) {
    if (!takes_part(a) || !takes_part(b)) Py_RETURN_NOTIMPLEMENTED;
    if (!msa_python_is_tensor(a) && !is_number(a)) {
        PyObject *const given[2] = {a, b};
        return msa_python_call_operator(name, given, 2);
    }
    PyObject *args[2] = {operand_object(a), b};
    if (!args[0]) return NULL;
    if (!msa_python_is_tensor(a)) ((python_tensor *)args[0])->tensor->wrapped_number = true;
    PyObject *result = msa_python_call_operator(name, args, 2);
    Py_DECREF(args[0]);
    return result;
}

#define NAMED(slot, name) \
    static PyObject *number_##slot(PyObject *a, PyObject *b) { return named(name, a, b); }
NAMED(remainder, "remainder")
NAMED(floor_divide, "floor_divide")
NAMED(and, "bitwise_and")
NAMED(or, "bitwise_or")
NAMED(xor, "bitwise_xor")
NAMED(left_shift, "bitwise_left_shift")
NAMED(right_shift, "bitwise_right_shift")
NAMED(inplace_remainder, "remainder_")
NAMED(inplace_floor_divide, "floor_divide_")
NAMED(inplace_and, "bitwise_and_")
NAMED(inplace_or, "bitwise_or_")
NAMED(inplace_xor, "bitwise_xor_")
NAMED(inplace_left_shift, "bitwise_left_shift_")
NAMED(inplace_right_shift, "bitwise_right_shift_")

static PyObject *number_matrix_multiply(PyObject *a, PyObject *b) {
    if (!msa_python_is_tensor(a) || !msa_python_is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *args[2] = {a, b};
    return msa_python_call_operator("matmul", args, 2);
}

static PyObject *number_divide(PyObject *a, PyObject *b) {
    if (msa_python_is_tensor(a)) return binary("div", a, b, msa_div);
    /* number / tensor rounds as PyTorch's does: the reciprocal times the number. */
    if (!is_number(a)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *inverse = msa_python_call_operator("reciprocal", &b, 1);
    PyObject *result = inverse ? binary("mul", inverse, a, msa_mul) : NULL;
    Py_XDECREF(inverse);
    return result;
}

static PyObject *number_power(PyObject *a, PyObject *b, PyObject *modulus) {
    if (modulus != Py_None || (!msa_python_is_tensor(a) && !is_number(a)) || (!msa_python_is_tensor(b) && !is_number(b)))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *args[2] = {a, b};
    return msa_python_call_operator("pow", args, 2);
}

/* t.__rpow__(other): as PyTorch's, a value of `other` without its history. */
PyObject *msa_python_reflected_power(PyObject *self, PyObject *other) {
    if (!msa_python_is_tensor(other) && !is_number(other)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *base = msa_python_is_tensor(other) ? msa_python_call_operator("detach", &other, 1) : Py_NewRef(other);
    PyObject *args[2] = {base, self};
    PyObject *result = base ? msa_python_call_operator("pow", args, 2) : NULL;
    Py_XDECREF(base);
    return result;
}

static PyObject *number_inplace_power(PyObject *a, PyObject *b, PyObject *modulus) {
    if (modulus != Py_None || (!msa_python_is_tensor(b) && !is_number(b))) Py_RETURN_NOTIMPLEMENTED;
    PyObject *args[2] = {a, b};
    return msa_python_call_operator("pow_", args, 2);
}

static PyObject *number_negative(PyObject *a) {
    if (Py_TYPE(a) != msa_python_tensor_class) return msa_python_call_operator("neg", &a, 1);
    return msa_python_wrap(msa_neg(msa_python_tensor_of(a)));
}
static PyObject *number_positive(PyObject *a) { return msa_python_call_operator("positive", &a, 1); }
static PyObject *number_absolute(PyObject *a) { return msa_python_call_operator("abs", &a, 1); }
static PyObject *number_invert(PyObject *a) { return msa_python_call_operator("bitwise_not", &a, 1); }

/* Conversions. */

static int single_value(PyObject *self, msa_scalar *value) {
    msa_tensor *t = msa_python_tensor_of(self);
    if (t->numel != 1) {
        PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
        return -1;
    }
    if (msa_tensor_item(t, value) == 0) return 0;
    msa_python_raise();
    return -1;
}

static PyObject *number_int(PyObject *self) {
    msa_scalar value;
    if (single_value(self, &value) != 0) return NULL;
    PyObject *number = msa_python_from_scalar(value), *integer = number ? PyNumber_Long(number) : NULL;
    Py_XDECREF(number);
    return integer;
}

static PyObject *number_float(PyObject *self) {
    msa_scalar value;
    if (single_value(self, &value) != 0) return NULL;
    if (msa_is_complex(value.kind) && value.im != 0)
        return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type double without overflow");
    return PyFloat_FromDouble(msa_scalar_double(value));
}

static PyObject *number_index(PyObject *self) {
    msa_tensor *t = msa_python_tensor_of(self);
    msa_scalar value;
    if (!msa_is_integral((msa_dtype)t->dtype, true) || t->numel != 1)
        return PyErr_Format(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return single_value(self, &value) == 0 ? PyLong_FromLongLong(value.i) : NULL;
}

/* Comparisons: elementwise. None and other objects are unequal, and have no order. */
PyObject *msa_python_compare(PyObject *a, PyObject *b, int operation) {
    static msa_tensor *(*const calls[])(msa_tensor *, msa_tensor *) = {
        [Py_LT] = msa_lt, [Py_LE] = msa_le, [Py_EQ] = msa_eq, [Py_NE] = msa_ne, [Py_GT] = msa_gt, [Py_GE] = msa_ge};
    static const char *const names[] = {[Py_LT] = "lt", [Py_LE] = "le", [Py_EQ] = "eq", [Py_NE] = "ne", [Py_GT] = "gt", [Py_GE] = "ge"};
    return binary(names[operation], a, b, calls[operation]);
}

PyNumberMethods msa_python_number_methods = {
    .nb_add = number_add,
    .nb_subtract = number_subtract,
    .nb_multiply = number_multiply,
    .nb_true_divide = number_divide,
    .nb_floor_divide = number_floor_divide,
    .nb_remainder = number_remainder,
    .nb_power = number_power,
    .nb_matrix_multiply = number_matrix_multiply,
    .nb_negative = number_negative,
    .nb_positive = number_positive,
    .nb_absolute = number_absolute,
    .nb_invert = number_invert,
    .nb_bool = msa_python_truth,
    .nb_and = number_and,
    .nb_or = number_or,
    .nb_xor = number_xor,
    .nb_lshift = number_left_shift,
    .nb_rshift = number_right_shift,
    .nb_int = number_int,
    .nb_float = number_float,
    .nb_index = number_index,
    .nb_inplace_add = number_inplace_add,
    .nb_inplace_subtract = number_inplace_subtract,
    .nb_inplace_multiply = number_inplace_multiply,
    .nb_inplace_true_divide = number_inplace_divide,
    .nb_inplace_floor_divide = number_inplace_floor_divide,
    .nb_inplace_remainder = number_inplace_remainder,
    .nb_inplace_power = number_inplace_power,
    .nb_inplace_and = number_inplace_and,
    .nb_inplace_or = number_inplace_or,
    .nb_inplace_xor = number_inplace_xor,
    .nb_inplace_lshift = number_inplace_left_shift,
    .nb_inplace_rshift = number_inplace_right_shift,
};
