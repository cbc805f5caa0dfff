"""The caller's black box: asked in normalised coordinates, every row counted, every answer checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

EPS = float(np.finfo(float).eps)


class BlackBox:
    """A function of x seen through u = (x - center) / scale.

    Parameters
    ----------
    fn : (n, d) -> (n,).
    center, scale : (d,) the region of typical x.
    reach : largest |u_j| that may be asked for.

    Attributes
    ----------
    queries : rows asked so far.
    rounding : relative size of the function's own rounding, at least that of float64.
    """

    def __init__(
        self, fn: Callable[[np.ndarray], Any], center: np.ndarray, scale: np.ndarray, reach: float = np.inf
    ) -> None:
        self._fn, self.center, self.scale, self.reach = fn, center, scale, reach
        self.queries, self.rounding = 0, EPS

    @property
    def d(self) -> int:
        return len(self.center)

    def inputs(self, U: np.ndarray) -> np.ndarray:
        """Rows of u as rows of x."""
        return np.ascontiguousarray(U * self.scale + self.center)

    def ask(self, U: np.ndarray) -> np.ndarray:
        """The function at rows of u, (…, d) -> (…).

        A point beyond reach is answered at the nearest one within: what is made of it will not fit, and is
        thrown away.
        """
        shape = U.shape[:-1]
        U = np.clip(U.reshape(-1, self.d), -self.reach, self.reach)
        return self.ask_at(self.inputs(U)).reshape(shape)

    def ask_at(self, X: np.ndarray) -> np.ndarray:
        """The function at rows of x, (n, d) -> (n,)."""
        self.queries += len(X)
        try:
            answer = self._fn(X.copy())
        except Exception as error:
            raise ValueError(
                f"fn failed on an array of shape {X.shape}: {type(error).__name__}: {error}"
            ) from error
        try:
            y = np.asarray(answer, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"fn must return numbers, got {type(answer).__name__}") from None
        if y.shape == (len(X), 1):
            y = y[:, 0]
        if y.shape != (len(X),):
            raise ValueError(
                f"fn must return one number a row, shape ({len(X)},), got {y.shape} for an input of "
                f"shape {X.shape}"
            )
        if not np.all(np.isfinite(y)):
            far = float(np.max(np.abs((X[~np.isfinite(y)] - self.center) / self.scale)))
            raise ValueError(
                f"fn returned NaN or infinity at a query {far:.3g} scales from the centre; if it is only "
                "defined near its data, set reach= to a smaller distance"
            )
        return y

    def examine(self, rng: np.random.Generator) -> float:
        """Refuse a function that is random or constant; measure its rounding; return std in the region."""
        U = rng.standard_normal((256, self.d))
        y = self.ask(U)
        level, spread = float(np.max(np.abs(y))), float(y.std())
        again = self.ask(U[::-1])[::-1]
        if np.max(np.abs(again - y)) > 1e-4 * spread and spread > 0:
            raise ValueError(
                "fn gives different answers to the same question: it must be deterministic (sample a noisy "
                "function once and use recover(X, y))"
            )
        if spread <= 1e-13 * level or level == 0:
            raise ValueError(f"fn is constant ({y[0]:g}) on its region: there is nothing to recover from it")
        noise = max(float(np.median(self.noise(U[:32], rng))), float(np.max(np.abs(again - y))) / 4)
        self.rounding = max(EPS, noise / max(level, np.finfo(float).tiny))
        return spread

    def noise(self, U: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """(n,) rounding error around the rows of U, from third differences over a tiny step."""
        v = rng.standard_normal(U.shape)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        # Third differences of anything smooth are h³ = 1e-15: what is left is rounding, variance 1+9+9+1.
        step = 1e-5 * np.maximum(np.linalg.norm(U, axis=1, keepdims=True) * 1e-3, 1.0)
        y = self.ask(np.stack([U + j * step * v for j in range(16)]))
        third = np.diff(y, n=3, axis=0)
        return np.sqrt(np.mean(third**2, axis=0) / 20)
