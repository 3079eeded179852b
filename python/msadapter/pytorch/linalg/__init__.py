"""torch.linalg: decompositions, solvers, norms and products of matrices, batched over leading dimensions."""

from msadapter import _C

LinAlgError = _C.LinAlgError
globals().update({name: value for name, value in vars(_C._linalg).items() if not name.startswith(("_", "linalg_"))})

from msadapter.pytorch.linalg._decompositions import (  # noqa: E402
    cholesky, det, eig, eigh, eigvals, eigvalsh, householder_product, inv, ldl_factor, lu, lu_factor, lu_solve, slogdet, solve, solve_ex, svd, svdvals)
from msadapter.pytorch.linalg._norms import cond, matrix_norm, matrix_rank, norm, pinv  # noqa: E402
from msadapter.pytorch.linalg._products import cross, diagonal, lstsq, matrix_exp, matrix_power, multi_dot, tensorinv, tensorsolve, vander, vecdot  # noqa: E402
