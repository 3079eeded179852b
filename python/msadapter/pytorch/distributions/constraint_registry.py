"""From a constraint to a transform of unconstrained numbers into it: `biject_to` and `transform_to`.

`biject_to(constraint)` is bijective, which samplers want; `transform_to(constraint)` may be over-parametrised but computes faster, which
optimisers want. `register` adds a factory for a constraint or for all of its class.
"""

from msadapter.pytorch.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Constraint classes with the functions that make a transform for a constraint of the class."""

    def __init__(self):
        self._registry = {}
        super().__init__()

    def register(self, constraint, factory=None):
        """Makes `factory` answer for the class of constraint (an instance or a class); a decorator without factory. TypeError for other types."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        """The transform onto `constraint`; NotImplementedError where none is registered."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _in_both(*which):
    def register(factory):
        for constraint in which:
            biject_to.register(constraint, factory)
            transform_to.register(constraint, factory)
        return factory

    return register


def _independent_of(registry):
    def factory(constraint):
        return transforms.IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)

    return factory


def _joined_of(registry):
    def cat(constraint):
        return transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)

    def stack(constraint):
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    return cat, stack


for _registry in (biject_to, transform_to):
    _registry.register(constraints.independent, _independent_of(_registry))
    for _constraint, _factory in zip((constraints.cat, constraints.stack), _joined_of(_registry)):
        _registry.register(_constraint, _factory)


@_in_both(constraints.real)
def _real(constraint):
    return transforms.identity_transform


@_in_both(constraints.positive, constraints.nonnegative)
def _positive(constraint):
    return transforms.ExpTransform()


@_in_both(constraints.greater_than, constraints.greater_than_eq)
def _greater(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_in_both(constraints.less_than)
def _less(constraint):
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_in_both(constraints.interval, constraints.half_open_interval)
def _interval(constraint):
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and lower == 0 and upper == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)])


@biject_to.register(constraints.simplex)
def _simplex_bijection(constraint):
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _simplex(constraint):
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@_in_both(constraints.corr_cholesky)
def _corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()
