"""Levenberg–Marquardt on normal equations accumulated over batches, QR when they are too ill-conditioned.

Knows nothing of networks, clocks or files: a problem is anything with ``normal_equations``, ``loss`` and
``triangle``; ``init`` makes a state, ``step`` the next one, ``done`` says that a state is the last. Whoever
drives the loop keeps the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.solvers.status import Status

_ROUGH = 1e-4  # damping above which the seventh digit of J'J makes no difference to a step
# Shares by which the loss must fall for J'J to be kept after a step that it was formed for, and after one of
# J'J that was kept already. d = k = 50, n = 16 384: J'r takes a thirtieth of the time of J'J.
_FAST, _KEPT_FAST = 0.99, 0.8
_LEAST_ROUGH = 1e-5  # damping of J'J in single precision: its scale directions are zero to 1e-7 only
# Rows of J'J scaled at a time, which stay in the cache. p = 2551: 5 ms of single precision, 16 of double;
# three passes over the whole of double took 25.
_BAND = 64
Vector = Float[np.ndarray, " p"]
Matrix = Float[np.ndarray, "p p"]


class LeastSquares(Protocol):
    """Sum of squared residuals, seen only through reductions over samples."""

    def loss(self, theta: Vector) -> float:
        """Sum of squared residuals at theta."""
        ...

    def normal_equations(self, theta: Vector, rough: bool = False) -> tuple[Matrix, Vector, float]:
        """J'J (p, p), J'r (p,) and r'r; ``rough``: six digits of the first, or single precision, do."""
        ...

    def triangle(self, theta: Vector) -> tuple[Matrix, Vector]:
        """R (p, p) and Q'r (p,) of the QR factors of J, accumulated over batches."""
        ...


@runtime_checkable
class WithGradient(Protocol):
    """A problem whose gradient may be had for less than J'J."""

    def gradient(self, theta: Vector) -> tuple[Vector, float] | None:
        """J'r (p,) and r'r; None where J'J costs little more."""
        ...


@dataclass(frozen=True)
class Solution:
    """Where a solver ended, and how."""

    theta: Vector
    loss: float
    status: Status
    steps: int
    trace: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Factor:
    """S L L' S = J'J + damping D, D = S^2 the diagonal of J'J: ``scale`` 1/S (p,), ``lower`` L (p, p)."""

    scale: Vector
    lower: Matrix

    @classmethod
    def of(cls, hessian: Matrix, damping: float, rough: bool) -> Factor | None:
        """None where J'J is too ill-conditioned for it; ``rough``: in single precision, as J'J is."""
        from scipy.linalg import LinAlgError, cho_factor

        scale = 1 / np.sqrt(_scaling(hessian))
        kind = np.float32 if rough else np.float64
        scaled, own = np.empty(hessian.shape, kind), scale.astype(kind)
        for at in range(0, len(own), _BAND):  # on and right of the diagonal: nothing else is read
            rows, rest = slice(at, at + _BAND), slice(at, None)
            np.multiply(hessian[rows, rest], own[rows, None], out=scaled[rows, rest], casting="same_kind")
            scaled[rows, rest] *= own[rest]
        scaled[np.diag_indices_from(scaled)] += damping
        try:  # the transpose, its lower half, is in LAPACK's order: nothing is copied
            lower = cho_factor(scaled.T, lower=True, overwrite_a=True, check_finite=False)[0]
        except LinAlgError:
            return None
        # J'J carries the square of J's condition: below eps^(1/2) in the factor its digits are gone.
        return cls(scale, lower) if np.min(np.abs(np.diag(lower))) > 1e-7 else None

    def solve(self, gradient: Vector) -> Vector:
        """(J'J + damping D)^-1 J'r."""
        from scipy.linalg import cho_solve

        right = self.scale * gradient
        size = max(float(np.max(np.abs(right))), np.finfo(float).tiny)  # far below what a single float holds
        solved = cho_solve((self.lower, True), (right / size).astype(self.lower.dtype), check_finite=False)
        return self.scale * solved * size


@dataclass(frozen=True)
class State:
    """A point of the descent: parameters, the normal equations there, and how the damping stands.

    ``status`` is None until the descent has ended; ``steps`` counts accepted steps, ``trace`` their losses.
    ``hessian`` was formed at ``formed``, or at theta where that is None; ``rough``: in single precision.
    ``factor`` is that of the damped J'J where both are kept.
    """

    theta: Vector = field(repr=False)
    hessian: Matrix = field(repr=False)
    gradient: Vector = field(repr=False)
    loss: float
    damping: float
    growth: float = 2.0
    steps: int = 0
    crawling: int = 0
    idle: int = 0
    polish: bool = False
    trace: tuple[float, ...] = field(default=(), repr=False)
    status: Status | None = None
    formed: Vector | None = field(default=None, repr=False)
    rough: bool = False
    factor: Factor | None = field(default=None, repr=False)

    def to_arrays(self) -> dict[str, npt.ArrayLike]:
        """All but what the problem tells again at ``theta``."""
        names = ("theta", "damping", "growth", "steps", "crawling", "idle", "polish", "trace", "rough")
        status = "" if self.status is None else self.status.name
        formed = np.zeros(0) if self.formed is None else self.formed
        return {name: getattr(self, name) for name in names} | {"status": status, "formed": formed}

    @property
    def approximate(self) -> bool:
        """Whether J'J is that of another point, or rough."""
        return self.formed is not None or self.rough


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss–Newton with Nielsen's update of the damping.

    Attributes
    ----------
    max_steps : accepted steps at most.
    floor : sum of squares at or below which residuals count as rounding.
    beyond : whether a step more is taken from there: convergence is quadratic.
    damping, least : the first damping, relative to the diagonal of J'J, and the smallest. Above 1e-14 a
        direction without curvature, such as the scale of a homogeneous unit, never asks for QR.
    patience : stop after this many steps in a row that each lower the loss by less than ``slow``
        (relative); 0 switches the rule off.
    slow : see ``patience``.
    enough : two steps in a row that each lower the loss by less than this share end the descent; a share of
        e / n is a change of e in n log(loss), the scale on which a standard error is 1. Damped steps count
        too: at the optimum of kinked units with noise the damping never falls.
    tiny : a predicted gain below this share of the loss, at little damping, ends the descent: with noise
        it is far below the square of a standard error.
    exact : whether theta is near a fit to rounding: then the first J'J is a rough one whatever the damping,
        and further steps with new gradients make up for it.
    """

    max_steps: int = 200
    floor: float = 0.0
    beyond: bool = True
    damping: float = 1e-2
    least: float = 1e-15
    patience: int = 0
    slow: float = 1e-4
    enough: float = 0.0
    tiny: float = 1e-13
    exact: bool = False

    def init(
        self, problem: LeastSquares, theta: Vector, kept: Mapping[str, np.ndarray] | None = None
    ) -> State:
        """The first state at theta; with ``kept``, from ``State.to_arrays``, the one that was kept."""
        if kept is None:
            theta, rough = np.array(theta, dtype=float), self.exact or self.damping > _ROUGH
            hessian, gradient, loss = problem.normal_equations(theta, rough)
            return self._ended(
                State(theta, hessian, gradient, loss, self.damping, trace=(loss,), rough=rough)
            )
        theta, rough, formed = kept["theta"], bool(kept["rough"]), kept["formed"]
        found = problem.gradient(theta) if len(formed) and isinstance(problem, WithGradient) else None
        if found is None:  # nothing was kept, or this machine has no use for it
            formed = formed[:0]
        hessian, gradient, loss = problem.normal_equations(formed if len(formed) else theta, rough)
        gradient, loss = (gradient, loss) if found is None else found
        state = State(
            theta,
            hessian,
            gradient,
            loss,
            float(kept["damping"]),
            float(kept["growth"]),
            int(kept["steps"]),
            int(kept["crawling"]),
            int(kept["idle"]),
            bool(kept["polish"]),
            tuple(kept["trace"].tolist()),
            formed=formed if len(formed) else None,
            rough=rough,
        )
        if str(kept["status"]):
            return replace(state, status=Status[str(kept["status"])])
        return self._ended(state)

    def done(self, state: State) -> bool:
        """Whether the state is the last."""
        return state.status is not None

    def step(self, problem: LeastSquares, state: State) -> State:
        """The next state: a step taken, or refused with more damping or with J'J formed again."""
        loss, polish = state.loss, state.loss <= self.floor
        damping = max(state.damping, _LEAST_ROUGH) if state.rough else state.damping
        factor = state.factor or Factor.of(state.hessian, damping, state.rough)
        if factor is None and state.approximate:
            return _formed_again(problem, state)
        step = _by_triangle(problem, state) if factor is None else -factor.solve(state.gradient)
        predicted = -(2 * state.gradient @ step + (step.astype(state.hessian.dtype) @ state.hessian) @ step)
        if loss > self.floor and damping < 1e-4 and 0 <= predicted < self.tiny * loss:
            if state.approximate:
                return _formed_again(problem, state)
            return replace(state, status=Status.STATIONARY)
        trial = problem.loss(state.theta + step)
        if not (np.isfinite(trial) and trial < loss):
            if polish:
                return replace(state, status=Status.EXACT)
            if state.formed is not None or (state.rough and damping <= _ROUGH):
                return _formed_again(problem, state)
            stuck = np.all(np.abs(step) <= 1e-16 * (1 + np.abs(state.theta)))
            damping *= state.growth
            status = Status.NO_PROGRESS if damping > 1e12 or stuck else None
            return replace(state, damping=damping, growth=2 * state.growth, polish=polish, status=status)
        gain = (loss - trial) / predicted if predicted > 0 else -1.0
        drop = (loss - trial) / max(loss, np.finfo(float).tiny)
        after = float(max(damping * max(1 / 9, 1 - (2 * gain - 1) ** 3), self.least))
        if self._at_the_end(trial, polish):  # the sums stay those of the point before: nobody asks for them
            theta, trace = state.theta + step, (*state.trace, trial)
            return replace(
                state, theta=theta, loss=trial, steps=state.steps + 1, trace=trace, status=Status.EXACT
            )
        own = state.formed is None  # a step of J'J from elsewhere says nothing of what the next one gains
        small = factor if damping <= _ROUGH else None  # of so little damping less makes no difference
        taken = _moved(problem, replace(state, factor=small), step, drop, after)
        taken = replace(
            taken,
            damping=after if taken.factor is None else damping,
            growth=2.0,
            steps=state.steps + 1,
            crawling=0 if loss - trial >= self.slow * loss else state.crawling + own,
            idle=0 if drop >= self.enough else state.idle + own,
            polish=polish,
        )
        return self._ended(replace(taken, trace=(*state.trace, taken.loss)), drop if own else np.inf)

    def states(self, problem: LeastSquares, state: State) -> Iterator[State]:
        """The states that follow, one for each step taken, the last one with its status."""
        while not self.done(state):
            before, state = state.steps, self.step(problem, state)
            if state.steps > before or self.done(state):
                yield state

    def solve(
        self, problem: LeastSquares, theta: Vector, report: Callable[[int, float], object] | None = None
    ) -> Solution:
        """Minimise from theta to the end; ``report(step, loss)`` is told after each step."""
        last = self.init(problem, theta)
        for last in self.states(problem, last):  # noqa: B020
            if report is not None:
                report(last.steps, last.loss)
        return solution(last)

    def _at_the_end(self, loss: float, polished: bool) -> bool:
        return loss <= self.floor and (polished or not self.beyond)

    def _ended(self, state: State, drop: float = 1.0) -> State:
        """The state with its status, if it is the last; ``drop`` is the share by which the loss just fell."""
        if not np.isfinite(state.loss):
            return replace(state, status=Status.NOT_FINITE)
        if self._at_the_end(state.loss, state.polish):
            return replace(state, status=Status.EXACT)
        if state.idle > 1 or (self.patience and state.crawling >= self.patience):
            return replace(state, status=Status.STALLED)
        # The gradient in units where a parameter moves the residuals by its own column's length.
        if state.steps and (_scaled_gradient(state) < 1e-13 or drop < 1e-15):
            return replace(state, status=Status.STATIONARY)
        if state.steps >= self.max_steps:
            return replace(state, status=Status.STEP_LIMIT)
        return state


def solution(state: State) -> Solution:
    """The end of a descent; one that was left before its end ran out of time."""
    status = Status.OUT_OF_TIME if state.status is None else state.status
    return Solution(state.theta, state.loss, status, state.steps, state.trace)


def _scaling(hessian: Matrix) -> Vector:
    diagonal = np.diag(hessian).astype(float)  # the others may be in single precision
    return np.maximum(diagonal, 1e-10 * max(diagonal.max(), np.finfo(float).tiny))


def _scaled_gradient(state: State) -> float:
    """max_j |<J_j, r>| / (|J_j| |r|): the largest cosine between a column of J and the residuals."""
    lengths = _scaling(state.hessian) * max(state.loss, np.finfo(float).tiny)
    return float(np.max(np.abs(state.gradient) / np.sqrt(lengths)))


def _moved(problem: LeastSquares, state: State, step: Vector, drop: float, damping: float) -> State:
    """The sums after a step. Where the loss fell fast, and would again with the same J'J, only J'r is new."""
    after = state.theta + step
    fast = drop >= (_FAST if state.formed is None else _KEPT_FAST)
    found = problem.gradient(after) if fast and isinstance(problem, WithGradient) else None
    if found is not None:
        formed = state.theta if state.formed is None else state.formed
        return replace(state, theta=after, gradient=found[0], loss=found[1], formed=formed)
    kept = state.rough and state.formed is not None
    return _formed_at(problem, state, after, kept or damping > _ROUGH)


def _formed_again(problem: LeastSquares, state: State) -> State:
    """The same point with J'J of its own, and with all digits where it was its own before."""
    return _formed_at(problem, state, state.theta, state.rough and state.formed is not None)


def _formed_at(problem: LeastSquares, state: State, theta: Vector, rough: bool) -> State:
    hessian, gradient, loss = problem.normal_equations(theta, rough)
    state = replace(state, theta=theta, hessian=hessian, gradient=gradient, loss=loss)
    return replace(state, formed=None, rough=rough, factor=None)


def _by_triangle(problem: LeastSquares, state: State) -> Vector:
    """The step by QR of [J; sqrt(damping D)]."""
    from scipy.linalg import lstsq

    scale = 1 / np.sqrt(_scaling(state.hessian))
    upper, projected = problem.triangle(state.theta)
    p = len(scale)
    stacked = np.vstack([upper * scale[None, :], np.sqrt(state.damping) * np.eye(p)])
    target = np.concatenate([-projected, np.zeros(p)])
    solved = lstsq(stacked, target, check_finite=False, lapack_driver="gelsy")
    assert solved is not None
    return scale * solved[0]
