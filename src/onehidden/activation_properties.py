"""P1, P2, P3 of [ZSJBD] decided from values of g' alone, with the tolerances written down here.

P1  0 <= g'(z) <= L |z|^p for some p >= 0.
P2  rho(sigma) > 0 for every sigma > 0.
P3  (a) |g''| <= L everywhere, or (b) g'' = 0 except at finitely many points.

A claim about all z is decided on grids that reach from ``SMALLEST`` to ``LARGEST``; a claim about a limit
(bounded, finitely many) by whether the measured quantity still grows when the grid is refined or extended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onehidden.quadrature import standard_normal_nodes

SMALLEST, LARGEST = 1e-6, 1e6
ROUNDING = 1e-12  # of g', relative to its size nearby
GROWTH = 1.05  # what bounded quantities may gain from one more decade or a finer grid
SIGMAS = tuple(np.geomspace(0.1, 10, 9))
POWERS = range(5)
BLOCK = 1 << 13

Slope = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class SlopeProperties:
    """The verdicts; ``power`` is the smallest p of P1, ``kinks`` the number of cells where g' changes."""

    p1: bool
    p2: bool
    p3a: bool
    p3b: bool
    power: int | None
    kinks: int | None


def rho_terms(slope: Slope, sigma: float) -> tuple[float, float, float]:
    """The three quantities whose minimum is rho(sigma), Property 3.2 of [ZSJBD].

    With s = g'(sigma z), alpha_q = E[s z^q], beta_q = E[s² z^q]: the first two are written as the squares
    they are, E[(s - alpha_0 - alpha_1 z)²] and E[(s z - alpha_1 - alpha_2 z)²], so that nothing cancels.
    """
    if not (np.isfinite(sigma) and sigma > 0):
        raise ValueError(f"rho needs a finite sigma > 0, got {sigma}")
    z, weight = standard_normal_nodes()
    s = slope(sigma * z)
    a0, a1, a2 = (float(np.sum(weight * s * z**q)) for q in range(3))
    first = float(np.sum(weight * (s - a0 - a1 * z) ** 2))  # beta_0 - alpha_0² - alpha_1²
    second = float(np.sum(weight * (s * z - a1 - a2 * z) ** 2))  # beta_2 - alpha_1² - alpha_2²
    return first, second, a0 * a2 - a1**2


def decide(slope: Slope) -> SlopeProperties:
    """P1, P2, P3(a) and P3(b) of the activation with this derivative."""
    slope = _in_blocks(slope)
    power = _homogeneous_bound(slope)
    kinks = _piecewise_linear(slope)
    return SlopeProperties(
        p1=power is not None and _non_negative(slope),
        p2=all(_rho_is_positive(slope, s) for s in SIGMAS),
        p3a=_bounded_curvature(slope),
        p3b=kinks is not None,
        power=power,
        kinks=kinks,
    )


def _in_blocks(slope: Slope) -> Slope:
    """The same function asked in blocks of one length: a compiled slope is then compiled once."""

    def blocked(z: np.ndarray) -> np.ndarray:
        padded = np.zeros(-(-len(z) // BLOCK) * BLOCK)
        padded[: len(z)] = z
        return np.concatenate([slope(part) for part in padded.reshape(-1, BLOCK)])[: len(z)]

    return blocked


def _sizes(per_decade: int = 200) -> np.ndarray:
    decades = round(np.log10(LARGEST / SMALLEST))
    return np.geomspace(SMALLEST, LARGEST, decades * per_decade + 1)


def _non_negative(slope: Slope) -> bool:
    size = _sizes()
    values = np.concatenate([slope(size), slope(-size), slope(np.zeros(1))])
    return bool(np.min(values) >= -ROUNDING)


def _homogeneous_bound(slope: Slope) -> int | None:
    """The smallest p for which g'(z)/|z|^p grows neither towards infinity nor towards zero."""
    size = _sizes()
    value = np.maximum(np.abs(slope(size)), np.abs(slope(-size)))
    for p in POWERS:
        ratio = value / size**p
        inside = np.max(ratio[(size >= 10 * SMALLEST) & (size <= LARGEST / 10)])
        if np.max(ratio) <= GROWTH * inside:
            return p
    return None


def _rho_is_positive(slope: Slope, sigma: float) -> bool:
    z, weight = standard_normal_nodes()
    return min(rho_terms(slope, sigma)) > ROUNDING * float(np.sum(weight * slope(sigma * z) ** 2))


def _bounded_curvature(slope: Slope) -> bool:
    """Difference quotients of g' that stay put under refinement (no jump) and far away (no growth)."""
    coarse, fine = (_largest_quotient(slope, cells) for cells in (1_600, 160_000))
    size = np.geomspace(8, LARGEST, 2_000)
    far = max(float(np.max(np.abs(slope(2 * s * size) - slope(s * size)) / size)) for s in (1.0, -1.0))
    return bool(fine <= GROWTH * coarse + ROUNDING and far <= GROWTH * fine + ROUNDING)


def _largest_quotient(slope: Slope, cells: int) -> float:
    z = np.linspace(-8, 8, cells + 1)
    return float(np.max(np.abs(np.diff(slope(z))))) / (z[1] - z[0])


def _piecewise_linear(slope: Slope) -> int | None:
    """Number of cells where g' changes, when a finer grid finds no more of them; None otherwise."""
    counts = []
    for cells in (1_600, 160_000):
        z = np.linspace(-8, 8, cells + 1)
        value = slope(z)
        counts.append(int(np.sum(np.abs(np.diff(value)) > ROUNDING * np.max(np.abs(value)))))
    return counts[1] if counts[1] <= counts[0] else None
