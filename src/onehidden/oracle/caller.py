"""The caller's function: every row counted, every answer checked, what may be spent kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.run import Run

_LAST = 3400  # queries of the last look
_TOLD = 1 << 16  # queries between two lines of progress


class Spent(Exception):
    """The queries or the seconds that a caller allowed are used up; what was found until then stands."""


class Caller:
    """fn : (n, d) -> (n,) or (n, q), as one array of q numbers a row.

    Parameters
    ----------
    fn : the function.
    max_queries : rows that may be asked in all.
    run : the clock, and who is told of progress.

    Attributes
    ----------
    queries : rows asked so far. outputs : q, 0 before the first answer.
    """

    def __init__(
        self,
        fn: Callable[[np.ndarray], npt.ArrayLike],
        max_queries: int | None = None,
        run: Run | None = None,
    ) -> None:
        self._fn, self._most, self._run = fn, max_queries, run
        self.queries, self.outputs, self._told = 0, 0, 0
        self._held, self._timed = 0, True

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

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n q"]:
        """Answers at rows of x; a row that fn does not understand is NaN, once it has answered others."""
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
                self.outputs and len(X) > 1 and not lost
            ):  # it has answered before: some of these rows are outside
                half = len(X) // 2
                self.queries -= len(X)
                return np.concatenate([self(X[:half]), self(X[half:])])
            if self.outputs and not lost:
                return np.full((1, self.outputs), np.nan)
            raise ValueError(
                f"fn failed on an array of shape {X.shape}: {type(error).__name__}: {error}"
            ) from error
        y = _numbers(answer, X)
        if self.outputs and y.shape[1] != self.outputs:
            raise ValueError(f"fn returned {self.outputs} outputs at first and {y.shape[1]} later")
        self.outputs = y.shape[1]
        return np.where(np.isfinite(y), y, np.nan)

    @staticmethod
    def _why_ended(run: Run) -> str:
        """A run ends with its budget, or when somebody asks it to, with a budget or without."""
        if run.max_seconds is None or run.seconds() < run.max_seconds:
            return "the search was stopped by hand"
        return f"the {run.max_seconds:g} seconds allowed are used up"


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
