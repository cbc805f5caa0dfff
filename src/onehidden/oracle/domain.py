"""Where a black box may be queried: bounds, whole numbers, and the region of typical inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float, Int

from onehidden import data

EPS = float(np.finfo(float).eps)
# Shapes of arrays in this package: points in u or x, outputs at points, one number a point or unit.
Points = Float[np.ndarray, "n d"]
Outputs = Float[np.ndarray, "n q"]
PerPoint = Float[np.ndarray, " n"]
PerUnit = Float[np.ndarray, " k"]
Vector = Float[np.ndarray, " d"]
UnitRows = Float[np.ndarray, "k d"]


@dataclass(frozen=True, eq=False)
class Domain:
    """low <= x <= high, (d,) each, infinite without a bound; ``whole`` allows whole numbers only."""

    low: Vector
    high: Vector
    whole: bool = False

    @property
    def bounded(self) -> bool:
        return bool(np.any(np.isfinite(self.low)) or np.any(np.isfinite(self.high)))

    @property
    def free(self) -> Bool[np.ndarray, " d"]:
        """Inputs that may vary."""
        return self.high > self.low

    @property
    def sides(self) -> Int[np.ndarray, " s"]:
        """Inputs that vary between two bounds."""
        return np.flatnonzero(self.free & np.isfinite(self.low) & np.isfinite(self.high))

    def narrowed(self, low: np.ndarray, high: np.ndarray) -> Domain:
        """The intersection with further bounds."""
        low, high = np.maximum(self.low, low), np.minimum(self.high, high)
        return Domain(np.ceil(low), np.floor(high), True) if self.whole else Domain(low, high)

    def near(self, X: Points) -> Bool[np.ndarray, " n"]:
        """Rows inside, up to the rounding of x = center + scale u; fixed inputs are ignored."""
        if not self.bounded:
            return np.ones(len(X), bool)
        X = np.rint(X) if self.whole else X
        width = self.high - self.low
        slack = 16 * EPS * (np.abs(X) + np.where(np.isfinite(width), width, 0.0))
        inside = (X >= self.low - slack) & (X <= self.high + slack)
        return np.all(inside[:, self.free], axis=1)

    def within(self, X: Points) -> Points:
        """Rows clipped to the bounds, and rounded where only whole numbers are allowed."""
        X = np.rint(X) if self.whole else X
        return np.clip(X, self.low, self.high) if self.bounded else X

    def contains(self, X: Points) -> Bool[np.ndarray, " n"]:
        """Rows that may be queried exactly as they are."""
        return np.all(self.within(X) == X, axis=1)


def checked_domain(domain: object, d: int) -> Domain:
    """A domain from None, (low, high), (low, high, "integer") or "integer"; bounds are numbers or rows."""
    shape = f'domain must be (low, high), each a number or {d} of them, and "integer" beside them if so'
    everywhere = (-np.inf, np.inf)
    ends: Any = everywhere if domain is None else (*everywhere, domain) if isinstance(domain, str) else domain
    try:
        low, high, *kind = ends
        low, high = (np.array(np.broadcast_to(np.asarray(end, float), (d,))) for end in (low, high))
        whole = kind == ["integer"]
        if (kind and not whole) or np.any(np.isnan(low) | np.isnan(high)):
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(f"{shape}, got {domain!r}") from None
    if whole:
        low, high = np.ceil(low), np.floor(high)
    if np.any(low > high):
        j = int(np.argmax(low - high))
        raise ValueError(f"the domain is empty: input {j} would lie between {low[j]:g} and {high[j]:g}")
    if np.all(low == high):
        raise ValueError("the domain has no volume: low and high agree in every input")
    return Domain(low, high, whole)


def typical_region(
    inputs: npt.ArrayLike | None, d: int, domain: Domain
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Centre and scale of each input, from rows of x or else from the domain, and the inputs' names."""
    names = tuple(f"x{j}" for j in range(d))
    if inputs is None:
        closed = np.isfinite(domain.low) & np.isfinite(domain.high)
        with np.errstate(invalid="ignore"):
            center = np.where(closed, 0.5 * (domain.low + domain.high), 0.0)
            scale = np.where(closed & domain.free, 0.25 * (domain.high - domain.low), 1.0)
        return _off_the_bounds(center, scale, domain), scale, names
    columns = getattr(inputs, "column_names", None)
    columns = getattr(inputs, "columns", None) if columns is None else columns
    names = names if columns is None else tuple(str(c) for c in columns)
    matrix = data.check_arrays(inputs, constant=True)[0]
    if matrix.shape[1] != d:
        raise ValueError(f"inputs has {matrix.shape[1]} columns, but fn takes n_inputs={d}")
    inside = domain.contains(matrix)
    if not inside.all():
        raise ValueError(f"row {int(np.argmin(inside))} of inputs lies outside the domain")
    spread = matrix.std(axis=0)
    # A column that never varies is still an input of the box: it is queried around its value.
    width = np.where(domain.free, 0.25 * (domain.high - domain.low), np.inf)
    scale = np.where(spread > 0, spread, np.minimum(1.0, width))
    return _off_the_bounds(matrix.mean(axis=0), scale, domain), scale, names


def _off_the_bounds(center: Vector, scale: Vector, domain: Domain) -> Vector:
    """The centre moved one scale inside the bounds, so that queries have room on both sides."""
    return np.where(domain.free, np.clip(center, domain.low + scale, domain.high - scale), domain.low)
