"""L-BFGS (Liu and Nocedal, 1989), with a line search for the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, 3.5)."""

import math

from msadapter import pytorch as torch
from msadapter.pytorch.optim.optimizer import Optimizer

SUFFICIENT, CURVED = 1e-4, 0.9
"""c1 and c2 of the Wolfe conditions."""
MOST_TRIALS = 25


def interpolate(one, other, bounds=None):
    """Where the cubic through two points (position, value, gradient, slope) has its minimum, kept within the bounds."""
    (x1, f1, _, s1), (x2, f2, _, s2) = (one, other) if one[0] <= other[0] else (other, one)
    low, high = bounds or (x1, x2)
    bend = s1 + s2 - 3 * (f1 - f2) / (x1 - x2) if x1 != x2 else math.nan
    square = bend * bend - s1 * s2
    if not square >= 0:
        return (low + high) / 2
    root = math.sqrt(square)
    divisor = s2 - s1 + 2 * root
    if divisor == 0:
        return (low + high) / 2
    return min(max(x2 - (x2 - x1) * ((s2 + root - bend) / divisor), low), high)


def bracket_minimum(evaluate, start, t):
    """Walk on from t until a minimum lies between two points. -> (their list, or the one point that is good enough; trials made)."""
    _, f0, _, slope0 = start
    before, now = start, evaluate(t)
    for trial in range(MOST_TRIALS):
        t, f, _, slope = now
        if f > f0 + SUFFICIENT * t * slope0 or (trial > 1 and f >= before[1]):
            return [before, now], trial
        if abs(slope) <= -CURVED * slope0:
            return [now], trial
        if slope >= 0:
            return [before, now], trial
        further = interpolate(before, now, bounds=(t + 0.01 * (t - before[0]), t * 10))
        before, now = now, evaluate(further)
    return [start, now], MOST_TRIALS


def search(evaluate, start, t, reach, tolerance):
    """A point that fulfils the strong Wolfe conditions, or the best one found.

    evaluate(t) -> (t, value, flat gradient, slope); start is the point at 0; reach the largest component of the direction.
    """
    _, f0, _, slope0 = start
    points, trial = bracket_minimum(evaluate, start, t)
    low, high = (0, 1) if points[0][1] <= points[-1][1] else (1, 0)
    stuck, done = False, len(points) == 1
    while not done and trial < MOST_TRIALS:
        left, right = sorted(p[0] for p in points)
        if (right - left) * reach < tolerance:
            break
        t = interpolate(*points)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) >= margin:
            stuck = False
        elif stuck or not left < t < right:  # too near an end a second time, or at it: move inwards
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            stuck = False
        else:
            stuck = True
        now = evaluate(t)
        trial += 1
        if now[1] > f0 + SUFFICIENT * t * slope0 or now[1] >= points[low][1]:
            points[high] = now
            low, high = (0, 1) if points[0][1] <= points[1][1] else (1, 0)
            continue
        if abs(now[3]) <= -CURVED * slope0:
            done = True
        elif now[3] * (points[high][0] - points[low][0]) >= 0:
            points[high] = points[low]
        points[low] = now
    return points[low if len(points) > 1 else 0]


class LBFGS(Optimizer):
    """Steps along an estimate of Newton's direction, made from the last `history_size` steps. step() needs a closure that computes the loss
    and its gradients anew, and calls it up to `max_eval` times. Raises ValueError for more than one parameter group."""

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100,
                 line_search_fn=None):
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_eval, "tolerance_grad": tolerance_grad,
                                  "tolerance_change": tolerance_change, "history_size": history_size, "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def __call__(self, grads):
        raise NotImplementedError("LBFGS: a step with given gradients is not implemented; the method evaluates a closure several times")

    def _gradient(self):
        """All gradients in one vector; zeros where there is none."""
        return torch.cat([p.new_zeros(p.numel()) if p.grad is None else p.grad.reshape(-1) for p in self.parameters])

    def _move(self, direction, t):
        offset = 0
        for p in self.parameters:
            p.add_(direction[offset:offset + p.numel()].view(p.shape), alpha=t)
            offset += p.numel()

    def _search(self, closure, start, t, direction, tolerance):
        """-> (value, gradient, t, closures called) after a line search; the parameters are moved there."""
        kept = [p.clone() for p in self.parameters]
        calls = 0

        def go_to(t):
            for p, values in zip(self.parameters, kept):
                p.copy_(values)
            self._move(direction, t)

        def evaluate(t):
            nonlocal calls
            calls += 1
            go_to(t)
            loss, gradient = float(closure()), self._gradient()
            return t, loss, gradient, gradient.dot(direction).item()

        t, loss, gradient, _ = search(evaluate, start, t, direction.abs().max().item(), tolerance)
        go_to(t)
        return loss, gradient, t, calls

    @staticmethod
    def _direction(state, gradient, history_size):
        """Newton's direction by the two-loop recursion, after taking the last step into the history."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return gradient.neg()
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        change, step = gradient.sub(state["prev_flat_grad"]), state["d"].mul(state["t"])
        product = change.dot(step)
        if product > 1e-10:
            if len(changes) == history_size:
                for past in (changes, steps, inverses):
                    past.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / product)
            state["H_diag"] = product / change.dot(change)
        shares = state.setdefault("al", [None] * history_size)
        direction = gradient.neg()
        for i in reversed(range(len(changes))):
            shares[i] = steps[i].dot(direction) * inverses[i]
            direction.add_(changes[i], alpha=-shares[i].item())
        direction.mul_(state["H_diag"])
        for i in range(len(changes)):
            direction.add_(steps[i], alpha=(shares[i] - changes[i].dot(direction) * inverses[i]).item())
        return direction

    def step(self, closure):
        """Up to max_iter iterations. Returns what the closure gave at the start; raises RuntimeError for unknown line searches."""
        with torch.no_grad():
            return self._iterate(torch.enable_grad()(closure))

    def _iterate(self, closure):
        group = self.param_groups[0]
        lr, max_iter, tolerance = group["lr"], group["max_iter"], group["tolerance_change"]
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if gradient.abs().max() <= group["tolerance_grad"]:
            return first
        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            direction = state["d"] = self._direction(state, gradient, group["history_size"])
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
            t = min(1.0, (1.0 / gradient.abs().sum()).item()) * lr if state["n_iter"] == 1 else lr
            state["t"] = t
            slope = gradient.dot(direction).item()
            if slope > -tolerance:
                break
            calls = 0
            if group["line_search_fn"] is None:
                self._move(direction, t)
                if iteration != max_iter:  # the last gradient would be computed again by the next step
                    loss, gradient, calls = float(closure()), self._gradient(), 1
            elif group["line_search_fn"] == "strong_wolfe":
                # as in PyTorch, the search has a tolerance of its own
                loss, gradient, t, calls = self._search(closure, (0, loss, gradient, slope), t, direction, 1e-9)
            else:
                raise RuntimeError("only 'strong_wolfe' is supported")
            state["t"] = t
            evaluations += calls
            state["func_evals"] += calls
            if (iteration == max_iter or evaluations >= group["max_eval"] or gradient.abs().max() <= group["tolerance_grad"]
                    or direction.mul(t).abs().max() <= tolerance or abs(loss - state["prev_loss"]) < tolerance):
                break
        return first


__all__ = ["LBFGS"]
