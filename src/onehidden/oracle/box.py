"""The black box in normalised coordinates: mixture, domain, and how coarsely it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from onehidden.oracle.answers import finite
from onehidden.oracle.caller import Caller
from onehidden.oracle.domain import Domain
from onehidden.oracle.grain import COARSE, EPS, Grain, third_differences
from onehidden.oracle.probabilities import LogOdds
from onehidden.run import Run

_CHUNK = 32 << 20  # bytes of one array handed to fn where the caller sets no batch


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
    caller : the function itself, with what it may be asked.
    grain : how coarsely it answers; level : largest |mixture| over the typical region.
    mix : (q,) the weights of the mixture. units : (q,) what the outputs are measured in.
    reading : of probabilities, which become log-odds; None where answers are values.
    share : of typical questions that are answered.
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
        self.caller, self.center, self.scale = Caller(fn, max_queries, run), center, scale
        self.domain = Domain.everywhere(len(center)) if domain is None else domain
        self._batch = batch
        self.grain, self.level, self.mix, self.units = Grain(), 1.0, np.ones(1), np.ones(1)
        self.reading: LogOdds | None = None
        self.share = 1.0
        self.reach = self._reach()
        self.known: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def queries(self) -> int:
        """Rows asked so far."""
        return self.caller.queries

    @property
    def left(self) -> float:
        """Queries that may still be asked."""
        return self.caller.left

    @property
    def d(self) -> int:
        return len(self.center)

    @property
    def q(self) -> int:
        return len(self.mix)

    @property
    def rounding(self) -> float:
        """Relative size of the error of an answer of typical size, at least the rounding of float64."""
        return max(EPS, float(self.error(self.level)) / max(self.level, np.finfo(float).tiny))

    @property
    def blunt(self) -> float:
        """The largest error that the reading of probabilities adds."""
        if self.reading is None:
            return 0.0
        return self.reading.blunt * float(np.max(np.abs(self.mix) / self.units))

    @property
    def coarse(self) -> bool:
        """Whether answers have fewer digits than a double."""
        return float(self.error(self.level)) > COARSE * self.level

    def error(self, size: npt.ArrayLike) -> np.ndarray:
        """Standard error of an answer of this size, wherever it was asked."""
        return np.hypot(self.grain.at(size), self.blunt)

    def _reach(self) -> float:
        """How far every u_j may go in both directions."""
        room = np.minimum(self.domain.high - self.center, self.center - self.domain.low) / self.scale
        return float(np.min(room[self.domain.free]))

    def keep_within(self, reach: float) -> None:
        """No question farther than this from the centre, in scales."""
        around = reach * self.scale
        self.domain = self.domain.narrowed(self.center - around, self.center + around)
        self.reach = self._reach()

    def noise_at(
        self, U: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"] | None = None
    ) -> Float[np.ndarray, " n"]:
        """Standard error of an answer at rows of u: answers grow with the distance.

        With the answers Y the digits that probabilities lose are counted place by place.
        """
        own = self.grain.at(self.level * np.maximum(1.0, np.linalg.norm(U, axis=-1) / np.sqrt(self.d)))
        if self.reading is None or Y is None:
            return np.hypot(own, self.blunt)
        return np.hypot(own, self.reading.blur(Y * self.units) * np.max(np.abs(self.mix) / self.units))

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

    def answered(
        self, count: int, rng: np.random.Generator, far: float = 1.0
    ) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, "n q"]]:
        """Typical rows of u that were answered, ``count`` of them if one in eight is, and all outputs.

        ``far`` times as far from the centre.
        """
        U, Y = np.zeros((0, self.d)), np.zeros((0, self.q))
        for _ in range(8 if self.share < 1 else 1):
            more = far * self.typical(count, rng)
            told = self.answers(more)
            good = finite(told)
            U, Y = np.concatenate([U, more[good]]), np.concatenate([Y, told[good]])
            if len(U) >= count:
                break
        return U[:count], Y[:count]

    def mix_anew(self, rng: np.random.Generator) -> None:
        """Another mixture of the outputs, as large."""
        if self.q > 1:
            other = np.where(self.mix != 0, rng.standard_normal(self.q), 0.0)
            self.mix = other * (np.linalg.norm(self.mix) / np.linalg.norm(other))

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
            return self.caller(self.domain.within(X))
        y = np.full((len(X), self.caller.outputs or self.q), np.nan)
        if near.any():
            told = self.caller(self.domain.within(X[near]))
            y = np.full((len(X), told.shape[1]), np.nan)
            y[near] = told
        return y

    def noise(self, U: Float[np.ndarray, "n d"], rng: np.random.Generator) -> Float[np.ndarray, " n"]:
        """(n,) rounding error around the rows of U, from third differences over a tiny step."""
        v = rng.standard_normal(U.shape)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        step = 1e-5 * np.maximum(np.linalg.norm(U, axis=1, keepdims=True) * 1e-3, 1.0)
        return third_differences(self.ask(np.stack([U + j * step * v for j in range(16)])))

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
