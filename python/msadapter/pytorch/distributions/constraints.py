"""Constraints: sets of values, as the supports of distributions and the domains of their parameters and of transforms.

`constraint.check(value)` tells for each event of `value` whether it lies in the set; an event has `event_dim` dimensions. A dependent constraint
is a property of a class whose set depends on the instance. Constraints of one family are equal when they print alike.
"""

import msadapter.pytorch as torch

__all__ = ["Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq", "independent",
           "integer_interval", "interval", "half_open_interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial",
           "nonnegative_integer", "one_hot", "positive", "positive_semidefinite", "positive_definite", "positive_integer", "real", "real_vector",
           "simplex", "square", "stack", "symmetric", "unit_interval"]


class Constraint:
    """A set of values. `is_discrete` tells of integers, `event_dim` how many trailing dimensions one element has."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """A bool tensor of value's batch shape, True where the event lies in the set."""
        raise NotImplementedError(f"{type(self).__name__}.check() is not implemented")

    def __repr__(self):
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A set that other variables decide."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """The same with more known about it."""
        return _Dependent(is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
                          event_dim=self._event_dim if event_dim is NotImplemented else event_dim)

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Whether the set depends on other variables."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives the instance's constraint, and on the class is a dependent constraint itself."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """The last dimensions of a constraint taken together as one event."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        if not isinstance(base_constraint, Constraint) or not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError("independent: expected a Constraint and a number of dimensions of at least 0")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return result.reshape(result.shape[:result.dim() - self.reinterpreted_batch_ndims] + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Range(Constraint):
    """Values between bounds; subclasses name the bounds that they have, the text and the comparison."""

    _names = ("lower_bound", "upper_bound")

    def __init__(self, *bounds):
        for name, bound in zip(self._names, bounds, strict=True):
            setattr(self, name, bound)

    def __repr__(self):
        return type(self).__name__[1:] + "(" + ", ".join(f"{name}={getattr(self, name)}" for name in self._names) + ")"


class _IntegerInterval(_Range):
    is_discrete = True

    def __init__(self, lower_bound, upper_bound):
        super().__init__(lower_bound, upper_bound)

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Range):
    is_discrete = True
    _names = ("lower_bound",)

    def __init__(self, lower_bound):
        super().__init__(lower_bound)

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value):
        return value == value  # False for nan


class _GreaterThan(_Range):
    _names = ("lower_bound",)

    def __init__(self, lower_bound):
        super().__init__(lower_bound)

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Range):
    _names = ("upper_bound",)

    def __init__(self, upper_bound):
        super().__init__(upper_bound)

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Range):
    def __init__(self, lower_bound, upper_bound):
        super().__init__(lower_bound, upper_bound)

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of non-negative numbers that sum to 1."""

    event_dim = 1

    def check(self, value):
        return torch.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of counts that sum to upper_bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return (value.tril() == value).view(value.shape[:-2] + (-1,)).min(-1)[0]


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value):
        triangular = (value.tril() == value).view(value.shape[:-2] + (-1,)).min(-1)[0]
        return triangular & (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: lower Cholesky, rows of unit length."""

    event_dim = 2

    def check(self, value):
        tolerance = torch.finfo(value.dtype).eps * value.size(-1) * 10  # rounding of a row's length
        lengths = torch.linalg.norm(value.detach(), dim=-1)
        return _LowerCholesky().check(value) & (lengths - 1).abs().le(tolerance).all(dim=-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return torch.full(size=value.shape[:-2], fill_value=value.shape[-2] == value.shape[-1], dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        return square if not square.all() else torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return symmetric if not symmetric.all() else torch.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        symmetric = super().check(value)
        return symmetric if not symmetric.all() else torch.linalg.cholesky_ex(value).info.eq(0)


class _Joined(Constraint):
    """Constraints side by side along one dimension."""

    def __init__(self, cseq, dim):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError(f"{type(self).__name__[1:].lower()}: expected constraints")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self):
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"{type(self).__name__[1:].lower()}: value has no dimension {self.dim}")


class _Cat(_Joined):
    """Submatrices of `lengths` along `dim`, each in its own set."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError("cat: expected as many lengths as constraints")

    def check(self, value):
        self._check_dim(value)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        parts = [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]
        return torch.cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class _Stack(_Joined):
    """Submatrices at the places of `dim`, each in its own set."""

    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self):
        return max(c.event_dim for c in self.cseq) + (1 if self.dim + max(c.event_dim for c in self.cseq) < 0 else 0)

    def check(self, value):
        self._check_dim(value)
        return torch.stack([c.check(value.select(self.dim, i)) for i, c in zip(range(value.size(self.dim)), self.cseq)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
