/* The tape from C: gradients, accumulation, views written in place, second derivatives. */
#include "check.h"
#include "msadapter/autograd.h"
#include "msadapter/ops.h"

static msa_tensor *leaf(int64_t n, const float *values) {
    msa_tensor *t = msa_tensor_new(MSA_INTS(n), MSA_FLOAT32);
    float *p = msa_tensor_data(t);
    for (int64_t i = 0; i < n; i++) p[i] = values[i];
    msa_tensor_set_requires_grad(t, true);
    return t;
}

static float at(msa_tensor *t, int64_t i) { return ((float *)msa_tensor_data(t))[i]; }

static void product_rule(void) {
    msa_auto msa_tensor *a = leaf(2, (float[]){2, 3}), *b = leaf(2, (float[]){5, 7});
    msa_auto msa_tensor *product = msa_mul(a, b), *sum = msa_sum(product, MSA_NO_DTYPE);
    CHECK(msa_backward(MSA_TENSORS(sum), (msa_tensors){NULL, 0}, false, false, (msa_tensors){NULL, 0}) == 0);
    CHECK(at(msa_tensor_grad(a), 0) == 5 && at(msa_tensor_grad(a), 1) == 7);
    CHECK(at(msa_tensor_grad(b), 0) == 2 && at(msa_tensor_grad(b), 1) == 3);
    CHECK(msa_backward(MSA_TENSORS(sum), (msa_tensors){NULL, 0}, false, false, (msa_tensors){NULL, 0}) != 0);
    CHECK(msa_error_get() == MSA_RUNTIME_ERROR); /* the graph has been freed */
    msa_error_clear();
}

static void broadcast_sums(void) {
    msa_auto msa_tensor *a = leaf(1, (float[]){2}), *b = leaf(3, (float[]){1, 2, 3});
    msa_auto msa_tensor *sum2 = msa_add(a, b, msa_int(2)), *sum = msa_sum(sum2, MSA_NO_DTYPE);
    CHECK(msa_backward(MSA_TENSORS(sum), (msa_tensors){NULL, 0}, false, false, (msa_tensors){NULL, 0}) == 0);
    CHECK(at(msa_tensor_grad(a), 0) == 3 && at(msa_tensor_grad(b), 2) == 2);
}

static void view_written_in_place(void) {
    msa_auto msa_tensor *w = leaf(3, (float[]){1, 2, 3});
    msa_auto msa_tensor *base = msa_mul(w, w);
    msa_auto msa_tensor *slice = msa_slice_Tensor(base, 0, (msa_opt_int){true, 1}, (msa_opt_int){true, 3}, 1);
    msa_auto msa_tensor *copy = msa_clone(slice, -1), *again = msa_mul_(slice, copy); /* base = w0^2, w1^4, w2^4 */
    CHECK(again != NULL);
    CHECK(at(base, 2) == 81);
    msa_auto msa_tensor *sum = msa_sum(base, MSA_NO_DTYPE);
    CHECK(msa_backward(MSA_TENSORS(sum), (msa_tensors){NULL, 0}, false, false, (msa_tensors){NULL, 0}) == 0);
    CHECK(at(msa_tensor_grad(w), 0) == 2 && at(msa_tensor_grad(w), 1) == 32 && at(msa_tensor_grad(w), 2) == 108);
}

static void second_derivative(void) {
    msa_auto msa_tensor *x = leaf(1, (float[]){3});
    msa_auto msa_tensor *square = msa_mul(x, x), *cube = msa_mul(square, x);
    msa_tensor *first[1], *second[1];
    CHECK(msa_grad(MSA_TENSORS(cube), MSA_TENSORS(x), (msa_tensors){NULL, 0}, true, true, false, first) == 0);
    CHECK(at(first[0], 0) == 27);
    CHECK(msa_grad(MSA_TENSORS(first[0]), MSA_TENSORS(x), (msa_tensors){NULL, 0}, false, false, false, second) == 0);
    CHECK(at(second[0], 0) == 18);
    msa_tensor_release(first[0]);
    msa_tensor_release(second[0]);
}

static void saved_value_changed(void) {
    msa_auto msa_tensor *x = leaf(1, (float[]){3}), *two = leaf(1, (float[]){2});
    msa_auto msa_tensor *y = msa_mul(x, two), *z = msa_mul(y, y);
    msa_auto msa_tensor *changed = msa_add_(y, two, msa_int(1));
    CHECK(changed != NULL);
    CHECK(msa_backward(MSA_TENSORS(z), (msa_tensors){NULL, 0}, false, false, (msa_tensors){NULL, 0}) != 0);
    CHECK(msa_error_get() == MSA_RUNTIME_ERROR);
    msa_error_clear();
}

int main(void) {
    product_rule();
    broadcast_sums();
    view_written_in_place();
    second_derivative();
    saved_value_changed();
    return check_report();
}
