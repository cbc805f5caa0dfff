"""Levenberg–Marquardt for least squares: one loop over normal equations or over a linear operator.

A problem offers ``loss(theta)`` and one of two linearisations r + J s of its residuals:

- ``normal_equations(theta)`` (``Dense``): J'J is factored by Cholesky, with more damping where it is too
  ill-conditioned; such a problem may have lower bounds ``lower`` (p,) of theta, and steps are projected;
- ``linearise(theta)`` (``MatrixFree``): products with J and J' only; a step is damped LSMR.

``init`` makes a state, ``step`` the next one, ``done`` says whether a state is the last. The caller drives
the loop, so that it can watch a clock and store states. The module knows nothing of networks.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from onehidden.solvers.linearised import TINY, MatrixFree, Model, NormalModel, OperatorModel, Problem, Vector

SINGLE = float(np.finfo(np.float32).eps)


class Status(enum.Enum):
    """How a solver ended."""

    EXACT = "residuals vanish to rounding"
    STATIONARY = "the gradient vanishes: a stationary point of the loss"
    NO_PROGRESS = "no step lowers the loss any more: rounding, or a kink of the loss"
    STALLED = "the loss falls too slowly to be worth going on"
    STEP_LIMIT = "the step limit was reached before convergence: allow more steps"
    NOT_FINITE = "the loss became infinite or NaN: rescale the data or start elsewhere"


@dataclass(frozen=True)
class State:
    """A point of the descent: parameters, the quadratic model there, and the damping.

    ``status`` is None until the descent has ended. ``trace`` has the losses of the first point and of all
    accepted steps. ``crawling`` and ``idle`` count steps in a row that gain little.
    """

    theta: Vector = field(repr=False)
    model: Model = field(repr=False)
    damping: float
    trace: tuple[float, ...] = field(repr=False)
    growth: float = 2.0
    crawling: int = 0
    idle: int = 0
    status: Status | None = None

    @property
    def loss(self) -> float:
        return self.trace[-1]

    @property
    def steps(self) -> int:
        """Accepted steps."""
        return len(self.trace) - 1

    def to_arrays(self) -> dict[str, npt.ArrayLike]:
        """All but what the problem computes again at ``theta``."""
        status = "" if self.status is None else self.status.name
        return {name: getattr(self, name) for name in ("theta", "trace", *_COUNTED)} | {"status": status}


_COUNTED = ("damping", "growth", "crawling", "idle")  # numbers of a ``State`` that are kept


@dataclass(frozen=True)
class LevenbergMarquardt:
    """Damped Gauss–Newton with Nielsen's update of the damping.

    Attributes
    ----------
    max_steps : int
        Accepted steps at most.
    floor : float
        Sum of squares at or below which residuals count as rounding. One more step is taken from there:
        convergence is quadratic.
    damping, least : float
        The first damping, relative to the diagonal of J'J, and the smallest. Above 1e-14 a direction without
        curvature, such as the scale of a homogeneous unit, leaves J'J well enough conditioned.
    patience : int
        Stop after this many steps in a row that each lower the loss by less than ``slow`` (relative); 0
        switches the rule off.
    slow : float
        See ``patience``.
    rtol : float
        Two steps in a row that each lower the loss by a smaller share end the descent. A share of e / n is a
        change of e in n log(loss), the scale on which a standard error is 1. Damped steps count as well: at
        the optimum of kinked units with noise the damping never falls.
    predicted_rtol : float
        A predicted decrease below this share of the loss, at little damping, ends the descent.
    inner : int
        Products with J in one step of a matrix-free problem.
    forcing : float
        Relative accuracy of such a step. 1e-3 takes 16 products where J is random with twice as many rows as
        columns.
    """

    max_steps: int = 200
    floor: float = 0.0
    damping: float = 1e-2
    least: float = 1e-15
    patience: int = 0
    slow: float = 1e-4
    rtol: float = 0.0
    predicted_rtol: float = 1e-13
    inner: int = 60
    forcing: float = 1e-3

    def init(self, problem: Problem, theta: Vector, kept: Mapping[str, np.ndarray] | None = None) -> State:
        """The first state at theta, or the state that ``State.to_arrays`` stored in ``kept``."""
        if kept is None:
            theta = np.array(theta, dtype=float)
            model = self._model(problem, theta, self.damping)
            return self._ended(State(theta, model, self.damping, (model.loss,)))
        numbers = {name: kept[name].item() for name in _COUNTED}
        model = self._model(problem, kept["theta"], numbers["damping"])
        state = State(kept["theta"], model, trace=tuple(kept["trace"].tolist()), **numbers)
        if str(kept["status"]):
            return replace(state, status=Status[str(kept["status"])])
        return self._ended(state)

    def done(self, state: State) -> bool:
        """Whether the state is the last."""
        return state.status is not None

    def step(self, problem: Problem, state: State) -> State:
        """The next state: a step taken, or refused with more damping."""
        model, loss, damping = state.model, state.loss, state.damping
        step = model.step(damping)
        if step is None:
            return self._more_damping(state)
        predicted = model.decrease(step)
        if damping < 1e-4 and 0 <= predicted < self.predicted_rtol * loss:
            return replace(state, status=Status.STATIONARY)
        trial = problem.loss(state.theta + step)
        if not (np.isfinite(trial) and trial < loss):
            if loss <= self.floor:
                return replace(state, status=Status.EXACT)
            if np.all(np.abs(step) <= 1e-16 * (1 + np.abs(state.theta))):
                return replace(state, status=Status.NO_PROGRESS)
            return self._more_damping(state)
        gain = (loss - trial) / predicted if predicted > 0 else -1.0
        drop = (loss - trial) / max(loss, TINY)
        taken = replace(
            state,
            theta=state.theta + step,
            trace=(*state.trace, trial),
            damping=float(max(damping * max(1 / 9, 1 - (2 * gain - 1) ** 3), self.least)),
            growth=2.0,
            crawling=0 if loss - trial >= self.slow * loss else state.crawling + 1,
            idle=0 if drop >= self.rtol else state.idle + 1,
        )
        if max(loss, trial) <= self.floor:  # nothing will read a model at the new point
            return replace(taken, status=Status.EXACT)
        moved = self._model(problem, taken.theta, taken.damping)
        return self._ended(replace(taken, model=moved, trace=(*state.trace, moved.loss)), drop)

    def solve(self, problem: Problem, theta: Vector) -> State:
        """Minimise from theta to the end."""
        state = self.init(problem, theta)
        while not self.done(state):
            state = self.step(problem, state)
        return state

    def _model(self, problem: Problem, theta: Vector, damping: float) -> Model:
        if isinstance(problem, MatrixFree):
            return OperatorModel(problem.linearise(theta), self.inner, self.forcing)
        # Such damping hides what single precision takes from J'J.
        lower = getattr(problem, "lower", None)
        room = None if lower is None else theta - lower
        return NormalModel(*problem.normal_equations(theta, rough=damping > 1e3 * SINGLE), room)

    def _more_damping(self, state: State) -> State:
        damping = max(state.damping, self.least) * state.growth
        status = Status.NO_PROGRESS if damping > 1e12 else None
        return replace(state, damping=damping, growth=2 * state.growth, status=status)

    def _ended(self, state: State, drop: float = 1.0) -> State:
        """The state with its status, if it is the last; ``drop`` is the share by which the loss just fell."""
        status = None
        if not np.isfinite(state.loss):
            status = Status.NOT_FINITE
        elif state.steps and max(state.trace[-2:]) <= self.floor:
            status = Status.EXACT
        elif state.idle > 1 or (self.patience and state.crawling >= self.patience):
            status = Status.STALLED
        elif state.steps and (_largest_cosine(state.model) < 1e-13 or drop < 1e-15):
            status = Status.STATIONARY
        elif state.steps >= self.max_steps:
            status = Status.STEP_LIMIT
        return replace(state, status=status)


def _largest_cosine(model: Model) -> float:
    """max_j |<J_j, r>| / (|J_j| |r|) over the columns of J: the gradient without units."""
    gradient = np.where(model.free, model.gradient, 0.0) if isinstance(model, NormalModel) else model.gradient
    return float(np.max(np.abs(gradient) / np.sqrt(model.squares * max(model.loss, TINY))))
