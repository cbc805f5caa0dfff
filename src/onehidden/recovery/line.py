"""Ridge regression with its strength chosen on rows left out: what every network has to better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

_STRENGTHS = np.logspace(-3, 3, 13)  # of the penalty, for standardised columns


@dataclass(frozen=True)
class Affine:
    """x -> <slope, x> + level."""

    slope: Float[np.ndarray, " d"]
    level: float

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        return X @ self.slope + self.level

    def on(self, columns: Int[np.ndarray, " m"], d: int) -> Affine:
        """The same function of d columns, of which these are its own."""
        slope = np.zeros(d)
        slope[columns] = self.slope
        return Affine(slope, self.level)


def ridge_line(
    X: Float[np.ndarray, "n d"], y: Float[np.ndarray, " n"], weight: Float[np.ndarray, " n"] | None = None
) -> tuple[Affine, Float[np.ndarray, " n"]]:
    """min sum_i v_i (y_i - <s, z_i> - c)² + strength |s|² over standardised columns z.

    The strength is the one whose errors on rows left out, r_i / (1 - h_i) with h the leverage, are least.

    Parameters
    ----------
    weight : (n,) v, how much each row counts.

    Returns
    -------
    The line, and (n,) y less the prediction of the line that was fitted without that row.
    """
    v = np.ones(len(y)) if weight is None else weight
    centre, middle = np.average(X, axis=0, weights=v), float(np.average(y, weights=v))
    spread = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=v))
    # A column that does not vary but for rounding has no slope.
    still = spread <= 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny)
    spread = np.where(still, 1.0, spread)
    root = np.sqrt(v)[:, None]
    Z = np.where(still, 0.0, (X - centre) / spread) * root
    target = (y - middle) * root[:, 0]
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    projected = U.T @ target
    best, least = None, np.inf
    for strength in _STRENGTHS:
        shrunk = s**2 / (s**2 + strength)
        leverage = np.minimum(v / v.sum() + np.einsum("nr,r,nr->n", U, shrunk, U), 1 - 1e-6)
        outside = (target - U @ (shrunk * projected)) / (1 - leverage)
        if float(outside @ outside) < least:
            slope = (Vt.T @ (s / (s**2 + strength) * projected)) / spread
            least = float(outside @ outside)
            best = Affine(slope, middle - float(slope @ centre)), outside / root[:, 0]
    assert best is not None
    return best


def measures(
    X: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n ..."], weight: Float[np.ndarray, " n"] | None = None
) -> dict[str, Any]:
    """Means and spreads of the rows, and the share of var(y) that a linear function explains on them.

    They are named as the record names them; ``weight`` says how much each row counts. Variances of several
    outputs, y (n, q), are added up.
    """
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    mean, level = share @ X, share @ y
    spread, target = np.sqrt(share @ (X - mean) ** 2), np.sqrt(share @ (y - level) ** 2)
    found = {"input_mean": mean, "input_spread": spread, "target_spread": target[()]}
    if np.all(target > 0):
        root = np.sqrt(share)
        Z = (X - mean) / np.where(spread > 0, spread, 1.0) * root[:, None]
        goal = ((y - level).T * root).T
        left = goal - Z @ np.linalg.lstsq(Z, goal, rcond=None)[0]
        found["linear_r_squared"] = 1 - float(np.sum(left**2)) / float(np.sum(target**2))
    return found
