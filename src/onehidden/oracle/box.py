"""The caller's black box: asked in normalised coordinates, every row counted, every answer checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from onehidden.oracle.answers import finite
from onehidden.oracle.domain import Domain
from onehidden.oracle.grain import EPS, Grain, third_differences
from onehidden.run import Run

_CHUNK = 32 << 20  # bytes of one array handed to fn where the caller sets no batch
_LAST = 3400  # queries of the last look
_TOLD = 1 << 16  # queries between two lines of progress


class Spent(Exception):
    """The queries or the seconds that a caller allowed are used up; what was found until then stands."""


class BlackBox:
    """A function of x seen through u = (x - center) / scale.

    A box of q outputs is looked at through one mixture of them, in which no unit is silent unless it is in
    all; ``answers`` gives them all. Rows outside of what fn understands (NaN, or an error) are NaN here.

    Parameters
    ----------
    fn : (n, d) -> (n,) or (n, q).
    center, scale : (d,) the region of typical x.
    domain : where questions may lie; anywhere when None.
    batch : most rows of one call of fn.
    max_queries : rows that may be asked in all.
    run : the clock, and who is told of progress.

    Attributes
    ----------
    queries : rows asked so far.
    grain : how coarsely it answers; level : largest |mixture| over the typical region.
    mix : (q,) the weights of the mixture. units : (q,) what the outputs are measured in.
    reading : from what fn returns to values (probabilities become log-odds); blunt : the error that adds.
    reach : largest |u_j| that the domain allows in all directions, but for inputs that it holds fixed.
    known : a function of u, (n, d) -> (n, q), taken off every answer: what is left is looked at alone.
    """

    def __init__(
        self,
        fn: Callable[[np.ndarray], npt.ArrayLike],
        center: Float[np.ndarray, " d"],
        scale: Float[np.ndarray, " d"],
        domain: Domain | None = None,
        batch: int | None = None,
        max_queries: int | None = None,
        run: Run | None = None,
    ) -> None:
        self._fn, self.center, self.scale = fn, center, scale
        self.domain = Domain.everywhere(len(center)) if domain is None else domain
        self._batch, self._most, self._run = batch, max_queries, run
        self.queries, self._told, self._outputs = 0, 0, 0
        self.grain, self.level, self.mix, self.units = Grain(), 1.0, np.ones(1), np.ones(1)
        self.blunt = 0.0
        self.reading: Callable[[np.ndarray], np.ndarray] | None = None
        self.reach = self._reach()
        self._held, self._timed = 0, True
        self.known: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def d(self) -> int:
        return len(self.center)

    @property
    def q(self) -> int:
        return len(self.mix)

    @property
    def rounding(self) -> float:
        """Relative size of the error of an answer of typical size, at least the rounding of float64."""
        return max(EPS, float(self.grain.at(self.level)) / max(self.level, np.finfo(float).tiny))

    def _reach(self) -> float:
        """How far every u_j may go in both directions."""
        room = np.minimum(self.domain.high - self.center, self.center - self.domain.low) / self.scale
        return float(np.min(room[self.domain.free]))

    def keep_within(self, reach: float) -> None:
        """No question farther than this from the centre, in scales."""
        around = reach * self.scale
        self.domain = self.domain.narrowed(self.center - around, self.center + around)
        self.reach = self._reach()

    def noise_at(self, U: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Standard error of an answer at rows of u: answers grow with the distance."""
        return self.grain.at(self.level * np.maximum(1.0, np.linalg.norm(U, axis=-1) / np.sqrt(self.d)))

    @property
    def farther(self) -> float:
        """How many times farther away answers are as coarse in proportion as they ever get; 1 at least."""
        own = self.grain.relative * self.level
        return 1.0 if np.isfinite(self.reach) else max(1.0, min(1e8, self.grain.absolute / own))

    def margin(self, U: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """How far every coordinate of rows of u may move, but for those that the domain holds fixed."""
        if not self.domain.bounded:
            return np.full(len(U), np.inf)
        X = self.inputs(U)
        room = np.minimum(self.domain.high - X, X - self.domain.low) / self.scale
        return np.min(room[:, self.domain.free], axis=1)

    def typical(self, count: int, rng: np.random.Generator, spread: float = 1.0) -> Float[np.ndarray, "n d"]:
        """Rows of u, normal around the centre; what would leave the domain lies anywhere inside it."""
        U = spread * rng.standard_normal((count, self.d))
        if not self.domain.bounded and not self.domain.whole:
            return U
        low, high = (
            (self.domain.low - self.center) / self.scale,
            (self.domain.high - self.center) / self.scale,
        )
        low, high = np.maximum(low, -3.0 * spread), np.minimum(high, 3.0 * spread)
        U = np.where((U < low) | (U > high), low + (high - low) * rng.random(U.shape), U)
        return (self.domain.within(self.inputs(U)) - self.center) / self.scale

    def inputs(self, U: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        """Rows of u as rows of x."""
        return np.ascontiguousarray(U * self.scale + self.center)

    def ask(self, U: np.ndarray) -> np.ndarray:
        """The mixture of the outputs at rows of u, (…, d) -> (…)."""
        return self.answers(U) @ self.mix

    def answers(self, U: np.ndarray) -> np.ndarray:
        """All outputs at rows of u, (…, d) -> (…, q)."""
        shape, flat = U.shape[:-1], U.reshape(-1, self.d)
        parts = [self._values(np.asarray(flat[part], float)) for part in self._parts(len(flat))]
        return np.concatenate(parts).reshape(*shape, -1)

    def star(
        self,
        base: Float[np.ndarray, "m d"],
        i: Int[np.ndarray, " n"],
        step: Float[np.ndarray, " n"],
        basis: Float[np.ndarray, "r d"],
        j: Int[np.ndarray, " n"],
    ) -> Float[np.ndarray, "n q"]:
        """All outputs at base_i + step basis_j; the points are never held all at once."""
        found = np.empty((len(i), self.q))
        for part in self._parts(len(i)):
            found[part] = self._values(base[i[part]] + step[part][:, None] * basis[j[part]])
        return found

    def _parts(self, n: int) -> Iterator[slice]:
        rows = max(1, _CHUNK // (8 * self.d))
        rows = rows if self._batch is None else min(rows, self._batch)
        for begin in range(0, n, rows):
            yield slice(begin, min(begin + rows, n))

    def _values(self, U: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n q"]:
        y = self._inside(self.inputs(U))
        y = (y if self.reading is None else self.reading(y)) / self.units
        return y if self.known is None else y - self.known(U)

    def _inside(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n q"]:
        """Answers at rows of x, NaN outside of the domain, where nothing is asked."""
        near = self.domain.near(X)
        if near.all():
            return self._raw(self.domain.within(X))
        y = np.full((len(X), self._outputs or self.q), np.nan)
        if near.any():
            told = self._raw(self.domain.within(X[near]))
            y = np.full((len(X), told.shape[1]), np.nan)
            y[near] = told
        return y

    def hold_back(self) -> None:
        """Keep some of the queries, and the clock, for a last look at the answer."""
        if self._most is not None:
            self._held = min(_LAST, self._most // 4)
            self._most -= self._held

    def let_go(self) -> None:
        """What was kept may be used, and the clock no longer ends it: a few questions remain."""
        self._most = None if self._most is None else self._most + self._held
        self._held, self._timed = 0, False

    @property
    def left(self) -> float:
        """Queries that may still be asked."""
        return np.inf if self._most is None else self._most - self.queries

    def noise(self, U: Float[np.ndarray, "n d"], rng: np.random.Generator) -> Float[np.ndarray, " n"]:
        """(n,) rounding error around the rows of U, from third differences over a tiny step."""
        v = rng.standard_normal(U.shape)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        step = 1e-5 * np.maximum(np.linalg.norm(U, axis=1, keepdims=True) * 1e-3, 1.0)
        return third_differences(self.ask(np.stack([U + j * step * v for j in range(16)])))

    def _raw(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n q"]:
        if self._most is not None and self.queries + len(X) > self._most:
            raise Spent(f"the {self._most + self._held} queries allowed are used up")
        if self._run is not None and self._timed and self._run.expired():
            raise Spent(self._why_ended(self._run))
        self.queries += len(X)
        if self._run is not None and self.queries - self._told >= _TOLD:
            self._told = self.queries
            self._run.report(f"{self.queries} queries", self.queries, float("nan"))
        try:
            answer = self._fn(X.copy())
        except Spent:
            raise
        except Exception as error:
            lost = isinstance(error, OSError)  # a connection: nothing is said about these rows
            if (
                self._outputs and len(X) > 1 and not lost
            ):  # it has answered before: some of these rows are outside
                half = len(X) // 2
                self.queries -= len(X)
                return np.concatenate([self._raw(X[:half]), self._raw(X[half:])])
            if self._outputs and not lost:
                return np.full((1, self._outputs), np.nan)
            raise ValueError(
                f"fn failed on an array of shape {X.shape}: {type(error).__name__}: {error}"
            ) from error
        y = _numbers(answer, X)
        if self._outputs and y.shape[1] != self._outputs:
            raise ValueError(f"fn returned {self._outputs} outputs at first and {y.shape[1]} later")
        self._outputs = y.shape[1]
        return np.where(np.isfinite(y), y, np.nan)

    @staticmethod
    def _why_ended(run: Run) -> str:
        """A run ends with its budget, or when somebody asks it to, with a budget or without."""
        if run.max_seconds is None or run.seconds() < run.max_seconds:
            return "the search was stopped by hand"
        return f"the {run.max_seconds:g} seconds allowed are used up"

    def must_answer(self, U: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n q"]) -> None:
        """Refuse answers that are not finite, where no question may fail."""
        lost = ~finite(y)
        if lost.any():
            far = float(np.max(np.abs(U[lost])))
            raise ValueError(
                f"fn returned NaN or infinity, or failed, at a query {far:.3g} scales from the centre; if it "
                "is only defined near its data, set inputs= to typical rows, reach= to a smaller distance or "
                "domain= to its bounds"
            )


def _numbers(answer: object, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n q"]:
    """What fn returned, as one row of numbers a question."""
    try:
        y = np.asarray(answer, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"fn must return numbers, got {type(answer).__name__}") from None
    if y.shape == (len(X),):
        y = y[:, None]
    if y.ndim != 2 or len(y) != len(X) or y.shape[1] == 0:
        raise ValueError(
            f"fn must return one number a row, shape ({len(X)},), or one row of numbers, ({len(X)}, q); got "
            f"{y.shape} for an input of shape {X.shape}"
        )
    return y
