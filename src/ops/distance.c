/* The gradient of all distances between rows. */
#include "autograd/internal.h"
#include "msadapter/ops.h"
#include "ops/helpers.h"

/* By x1; by x2 with the operands exchanged. While it is being recorded it is made of operators, which takes an array of all
 * differences; otherwise by a kernel that does not. */
msa_tensor *cdist_gradient(msa_tensor *grad, msa_tensor *x1, msa_tensor *x2, double p, msa_tensor *distances, bool exchanged) {
    msa_auto msa_tensor *g = exchanged ? msa_transpose_int(grad, 1, 2) : msa_tensor_retain(grad);
    msa_auto msa_tensor *r = exchanged ? msa_transpose_int(distances, 1, 2) : msa_tensor_retain(distances);
    if (!g || !r) return NULL;
    if (!msa_grad_mode || !(grad->requires_grad || x1->requires_grad || x2->requires_grad)) return msa_cdist_backward(g, x1, x2, p, r);
    msa_auto msa_tensor *rows = msa_unsqueeze(x1, 2), *columns = msa_unsqueeze(x2, 1);
    msa_auto msa_tensor *differences = rows && columns ? msa_sub(rows, columns, msa_int(1)) : NULL;
    msa_auto msa_tensor *norms = differences ? msa_linalg_vector_norm(differences, msa_float(p), MSA_INTS(3), false, MSA_NO_DTYPE) : NULL;
    msa_auto msa_tensor *pulls = norms ? vector_norm_gradient(g, differences, msa_float(p), norms, MSA_INTS(3), false) : NULL;
    return pulls ? msa_sum_dim_IntList(pulls, MSA_INTS(2), false, MSA_NO_DTYPE) : NULL;
}
