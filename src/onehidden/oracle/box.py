"""The caller's function with its budget, and the black box in normalised coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from onehidden.oracle.answers import LogOdds, finite
from onehidden.oracle.domain import EPS, Domain, Outputs, PerPoint, Points, UnitRows, Vector
from onehidden.run import Run

Places = Int[np.ndarray, " n"]


class BudgetExceeded(Exception):
    """The queries or the seconds allowed are used up; what was found until then stands."""


class Caller:
    """fn : (n, d) -> (n,) or (n, q), as one row of q numbers per query.

    ``queries`` counts the rows, ``outputs`` is q (0 before the first answer).
    """

    def __init__(self, fn: Callable[[np.ndarray], npt.ArrayLike], max_queries: int | None, run: Run) -> None:
        self._fn, self._most, self._run = fn, max_queries, run
        self.queries, self.outputs, self._reserved, self._timed = 0, 0, 0, True

    def reserve(self, count: int = 3400) -> None:
        """Keep some of the queries for the checks of the answer."""
        if self._most is not None:
            self._reserved = min(count, self._most // 4)
            self._most -= self._reserved

    def release(self) -> None:
        """Allow what was reserved, and let the checks end after the clock has run out."""
        self._most = None if self._most is None else self._most + self._reserved
        self._reserved, self._timed = 0, False

    @property
    def left(self) -> float:
        """Queries that may still be made."""
        return np.inf if self._most is None else self._most - self.queries

    def __call__(self, X: Points) -> Outputs:
        """Answers at rows of x; a row that fn does not understand is NaN, once it has answered others."""
        if self._most is not None and self.queries + len(X) > self._most:
            raise BudgetExceeded(f"the {self._most + self._reserved} queries allowed are used up")
        if self._timed and self._run.expired():
            allowed = self._run.max_seconds
            if allowed is None or self._run.seconds() < allowed:
                raise BudgetExceeded("the search was stopped by hand")
            raise BudgetExceeded(f"the {allowed:g} seconds allowed are used up")
        self.queries += len(X)
        try:
            answer = self._fn(X.copy())
        except Exception as error:
            # A failed connection says nothing about the rows; another failure, after earlier answers, means
            # that some of them lie outside of what fn understands.
            if not self.outputs or isinstance(error, OSError):
                raise ValueError(
                    f"fn failed on an array of shape {X.shape}: {type(error).__name__}: {error}"
                ) from error
            if len(X) == 1:
                return np.full((1, self.outputs), np.nan)
            half = len(X) // 2
            self.queries -= len(X)
            return np.concatenate([self(X[:half]), self(X[half:])])
        y = _numbers(answer, X)
        if self.outputs and y.shape[1] != self.outputs:
            raise ValueError(f"fn returned {self.outputs} outputs at first and {y.shape[1]} later")
        self.outputs = y.shape[1]
        return np.where(np.isfinite(y), y, np.nan)


def _numbers(answer: object, X: Points) -> Outputs:
    """What fn returned, as one row of numbers per query."""
    try:
        y = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"fn must return numbers, got {type(answer).__name__}") from None
    if y.shape == (len(X),):
        y = y[:, None]
    if y.ndim != 2 or len(y) != len(X) or y.shape[1] == 0:
        raise ValueError(
            f"fn must return one number per row, shape ({len(X)},), or one row of numbers, ({len(X)}, q); "
            f"got {y.shape} for an input of shape {X.shape}"
        )
    return y


@dataclass(frozen=True)
class OutputPrecision:
    """Standard error of an answer: a part in proportion to its size, and an absolute one.

    Single precision is the first kind, rounding to decimals or added noise the second.
    """

    relative: float = EPS
    absolute: float = 0.0

    def at(self, size: npt.ArrayLike) -> np.ndarray:
        """Standard error of answers of this size."""
        return np.hypot(self.relative * np.asarray(size, float), self.absolute)


class BlackBox:
    """A function of x seen through u = (x - center) / scale.

    A box of q outputs is searched through one mixture of them: a unit is silent there only if it is in all.
    Rows outside of what fn understands (NaN, or an error) are NaN here. Inputs are normalised by the centre
    and scale of typical x; queries stay in the domain, in calls of at most ``batch`` rows.
    """

    def __init__(
        self,
        fn: Callable[[np.ndarray], npt.ArrayLike],
        center: Vector,
        scale: Vector,
        domain: Domain | None = None,
        batch: int | None = None,
        max_queries: int | None = None,
        run: Run | None = None,
    ) -> None:
        self.run = Run() if run is None else run
        self.rng = self.run.rng("queries")
        self.caller, self.center, self.scale = Caller(fn, max_queries, self.run), center, scale
        everywhere = np.full(len(center), np.inf)
        self.domain = Domain(-everywhere, everywhere) if domain is None else domain
        most = max(1, (32 << 20) // (8 * len(center)))  # 32 MiB of inputs in one call
        self._batch = most if batch is None else min(batch, most)
        self.enclosed = len(self.domain.sides) > 0  # by bounds of the caller, not by a distance
        self.precision = OutputPrecision()  # of the mixture
        self.level = 1.0  # largest |mixture| over the typical region
        self.mix, self.units = np.ones(1), np.ones(1)  # weights of the mixture; scales of the outputs
        self.share = 1.0  # of typical queries that are answered
        self.reading: LogOdds | None = None  # of probabilities
        self.first: tuple[Points, Outputs] | None = None  # some first queries, asked again later
        # Subtracted from every answer, (n, d) -> (n, q), so that the remainder is searched alone.
        self.known: Callable[[np.ndarray], np.ndarray] | None = None
        self.known_error = 0.0  # of its mixture, for each scale of distance

    @property
    def reach(self) -> float:
        """Largest |u_j| that the domain allows in all directions, fixed inputs aside."""
        return float(self.margin(np.zeros((1, self.d)))[0])

    @property
    def d(self) -> int:
        return len(self.center)

    @property
    def q(self) -> int:
        return len(self.mix)

    @property
    def rounding(self) -> float:
        """Relative error of an answer of typical size, at least the rounding of float64."""
        return max(EPS, float(self.precision.at(self.level)) / max(self.level, np.finfo(float).tiny))

    @property
    def low_precision(self) -> bool:
        """Whether answers have fewer digits than a double."""
        return float(self.precision.at(self.level)) > 1e-12 * self.level

    @property
    def exact_far_away(self) -> float:
        """Factor of distance beyond which relative error dominates the absolute one; at least 1."""
        own = self.precision.relative * self.level
        return 1.0 if np.isfinite(self.reach) else max(1.0, min(1e8, self.precision.absolute / own))

    def error_at(self, U: Points, Y: Outputs | None = None) -> PerPoint:
        """Standard error of an answer at rows of u, whose size grows with the distance.

        With the answers Y the digits that probabilities lose are counted place by place.
        """
        size = self.level * np.maximum(1.0, np.linalg.norm(U, axis=-1) / np.sqrt(self.d))
        if self.reading is None or Y is None:
            return self.precision.at(size)
        lost = self.reading.error(Y * self.units) * np.max(np.abs(self.mix) / self.units)
        return np.hypot(self.precision.relative * size, lost)

    def keep_within(self, reach: float) -> None:
        """Bound the distance of queries from the centre, in scales."""
        around = reach * self.scale
        self.domain = self.domain.narrowed(self.center - around, self.center + around)

    def margin(self, U: Points) -> PerPoint:
        """How far every free coordinate of rows of u may move."""
        if not self.domain.bounded:
            return np.full(len(U), np.inf)
        X = self.inputs(U)
        room = np.minimum(self.domain.high - X, X - self.domain.low) / self.scale
        return np.min(room[:, self.domain.free], axis=1)

    def typical(self, count: int) -> Points:
        """Rows of u, normal around the centre; coordinates that leave the domain are redrawn inside it."""
        U = self.rng.standard_normal((count, self.d))
        if not self.domain.bounded and not self.domain.whole:
            return U
        low, high = ((end - self.center) / self.scale for end in (self.domain.low, self.domain.high))
        low, high = np.maximum(low, -3.0), np.minimum(high, 3.0)
        U = np.where((U < low) | (U > high), low + (high - low) * self.rng.random(U.shape), U)
        return (self.domain.within(self.inputs(U)) - self.center) / self.scale

    def answers_at(self, U: Points) -> tuple[Points, Outputs]:
        """The rows of u that were answered, and all outputs."""
        Y = self.outputs(U)
        good = finite(Y)
        return (U, Y) if good.all() else (U[good], Y[good])

    def answered(self, count: int, far: float = 1.0) -> tuple[Points, Outputs]:
        """Typical rows of u, ``far`` times as far from the centre, that were answered, and all outputs."""
        U, Y = np.zeros((0, self.d)), np.zeros((0, self.q))
        for _ in range(8 if self.share < 1 else 1):
            V, Z = self.answers_at(far * self.typical(count))
            U, Y = np.concatenate([U, V]), np.concatenate([Y, Z])
            if len(U) >= count:
                break
        return U[:count], Y[:count]

    def spread_out(self, count: int) -> Points:
        """Rows of u all over a bounded domain: its corners, all if they are few, its faces, and inside.

        A halfspace that meets a box holds a corner of it: no unit with a kink hides from all corners.
        """
        U, bounded, half = self.typical(count), self.domain.sides, count // 2
        ends = (self.domain.low, self.domain.high)
        low, high = (((end - self.center) / self.scale)[bounded] for end in ends)
        upper = self.rng.random((count, len(bounded))) < 0.5
        if 2 ** len(bounded) <= half:
            upper[: 2 ** len(bounded)] = list(product((False, True), repeat=len(bounded)))
        ends = np.where(upper, high, low)
        inside = (np.arange(count) >= half)[:, None] & (
            self.rng.random(ends.shape) < self.rng.random((count, 1))
        )
        U[:, bounded] = np.where(inside, low + (high - low) * self.rng.random(ends.shape), ends)
        return (self.domain.within(self.inputs(U)) - self.center) / self.scale

    def must_not_change(self) -> None:
        """Ask some first queries again, and refuse a function that answers them otherwise."""
        if self.first is None or self.caller.left < len(self.first[0]):
            return
        U, before = self.first
        error = np.maximum(self.error_at(U, before), 1e3 * EPS * self.level)
        # A change in the first queries is taken for low precision: no answer may move by more than noise may.
        allowed = np.minimum(12 * error, 3e-3 * float(np.std(before @ self.mix)))
        if np.any(np.abs((self.outputs(U) - before) @ self.mix) > allowed):
            raise ValueError(
                f"fn answers its first queries otherwise after {self.caller.queries} queries: it must be the "
                "same function from the first query to the last"
            )

    def mix_anew(self) -> None:
        """Draw another mixture of the outputs, of the same size."""
        if self.q > 1:
            other = np.where(self.mix != 0, self.rng.standard_normal(self.q), 0.0)
            self.mix = other * (np.linalg.norm(self.mix) / np.linalg.norm(other))

    def inputs(self, U: Points) -> Points:
        """Rows of u as rows of x."""
        return np.ascontiguousarray(U * self.scale + self.center)

    def mixture(self, U: np.ndarray) -> np.ndarray:
        """The mixture of the outputs at rows of u, (…, d) -> (…)."""
        return self.outputs(U) @ self.mix

    def outputs(self, U: np.ndarray) -> np.ndarray:
        """All outputs at rows of u, (…, d) -> (…, q)."""
        shape, flat = U.shape[:-1], U.reshape(-1, self.d)
        parts = [self._values(np.asarray(flat[part], float)) for part in self._parts(len(flat))]
        return np.concatenate(parts).reshape(*shape, -1)

    def star(
        self, base: UnitRows, i: Places, step: PerPoint, basis: Float[np.ndarray, "r d"], j: Places
    ) -> Outputs:
        """All outputs at base_i + step basis_j; the points are never held all at once."""
        parts = self._parts(len(i))
        return np.concatenate([self._values(base[i[p]] + step[p][:, None] * basis[j[p]]) for p in parts])

    def _parts(self, n: int) -> Iterator[slice]:
        for begin in range(0, n, self._batch):
            yield slice(begin, min(begin + self._batch, n))

    def _values(self, U: Points) -> Outputs:
        """Answers less what is known; NaN outside of the domain, where nothing is queried."""
        X = self.inputs(U)
        near = self.domain.near(X)
        nothing = np.zeros((0, self.caller.outputs or self.q))
        answers = self.caller(self.domain.within(X[near])) if near.any() else nothing
        y = np.full((len(X), answers.shape[1]), np.nan)
        y[near] = answers
        y = (y if self.reading is None else self.reading(y)) / self.units
        return y if self.known is None else y - self.known(U)
