"""A few extreme eigenpairs of large symmetric matrices."""

from msadapter import _C
from msadapter.pytorch.linalg._results import need_square

_linalg, _ops = _C._linalg, _C._ops


def _basis(S, B):
    """Columns that span those of S and are orthonormal with respect to B; directions that others hold already are dropped."""
    S = S / _ops.linalg_vector_norm(S, 2, [0], True).clamp_min(_C.finfo(S.dtype).tiny)
    L, V = _linalg._eigh(S.mT @ (S if B is None else B @ S), "L", True)
    kept = int((L > L[-1] * (_C.finfo(S.dtype).eps * S.size(-1) * 10)).sum())
    return S @ (V[:, -kept:] / L[-kept:].sqrt())


def _ritz(Q, A, width, largest):
    """The best `width` approximate eigenpairs of A in the span of Q."""
    values, V = _linalg._eigh(Q.mT @ (A @ Q), "L", True)
    if largest:
        values, V = values.flip(0), V.flip(1)
    return values[:width], Q @ V[:, :width]


def _iterate(A, B, X, k, iK, niter, tol, largest):
    """Knyazev's method (2001): Rayleigh-Ritz over the iterates, their preconditioned residuals, and the last step."""
    P, width = None, X.size(1)
    size = _ops.linalg_vector_norm(A)
    size_B = 1.0 if B is None else _ops.linalg_vector_norm(B)
    E, X = _ritz(_basis(X, B), A, width, largest)
    for i in range(niter + 1):
        R = A @ X - (X if B is None else B @ X) * E
        bound = _ops.linalg_vector_norm(X, 2, [0]) * (size + E.abs() * size_B)
        if i == niter or bool((_ops.linalg_vector_norm(R, 2, [0])[:k] <= tol * bound[:k]).all()):
            break
        W = R if iK is None else iK @ R
        last = X
        E, X = _ritz(_basis(_ops.cat([X, W] if P is None else [X, W, P], 1), B), A, width, largest)
        P = X - last @ (last.mT @ (X if B is None else B @ X))
    return E[:k], X[:, :k]


def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None, ortho_iparams=None,
           ortho_fparams=None, ortho_bparams=None):
    """The k largest (largest=False: smallest) eigenvalues (..., k) and eigenvectors (..., m, k) of A x = e B x.

    A is (..., m, m), symmetric, and m at least 3 k; X (..., m, n) is where to begin, iK a preconditioner. Raises ValueError where m is
    too small, NotImplementedError for trackers, and where A or B requires a gradient.
    """
    for name, value in (("tracker", tracker), ("ortho_iparams", ortho_iparams), ("ortho_fparams", ortho_fparams), ("ortho_bparams", ortho_bparams)):
        if value is not None:
            raise NotImplementedError(f"lobpcg: argument '{name}' is not implemented")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: unknown method {method!r}, expected 'basic' or 'ortho'")
    if _C.is_grad_enabled() and any(t is not None and t.requires_grad for t in (A, B, X, iK)):
        raise NotImplementedError("lobpcg: the derivative is not implemented; linalg.eigh has one")
    need_square("lobpcg", A)
    if not A.is_floating_point():
        raise RuntimeError(f"lobpcg: expected a real floating point matrix, got {A.dtype}")
    m = A.size(-1)
    k = (1 if X is None else X.size(-1)) if k is None else k
    n = (k if X is None else X.size(-1)) if n is None else n
    if m < 3 * n:
        raise ValueError(f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested eigenpairs (={n})")
    if not 0 < k <= n:
        raise ValueError(f"lobpcg: k must be positive and at most n, got k={k} and n={n}")
    batch = A.shape[:-2]
    if X is None:
        X = _ops.randn(*batch, m, n, dtype=A.dtype)
    tol = _C.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    niter = 1000 if niter is None or niter < 0 else niter

    def flat(t):
        return None if t is None else t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:])

    matrices = [flat(t) for t in (A, B, X, iK)]
    pairs = [_iterate(a, *(None if t is None else t[i] for t in matrices[1:3]), k, None if iK is None else matrices[3][i], niter, tol,
                      largest is None or bool(largest)) for i, a in enumerate(matrices[0])]
    if not pairs:
        return A.new_empty((*batch, k)), A.new_empty((*batch, m, k))
    return _ops.stack([e for e, _ in pairs]).reshape(*batch, k), _ops.stack([x for _, x in pairs]).reshape(*batch, m, k)
