"""P1, P2, P3 of [ZSJBD] decided from values of g' alone, and Hermite coefficients.

P1  0 <= g'(z) <= L |z|^p for some p >= 0.
P2  rho(sigma) > 0 for every sigma > 0.
P3  (a) |g''| <= L everywhere, or (b) g'' = 0 except at finitely many points.

A claim about all z is decided on grids; a claim about a limit (bounded, finitely many) by whether the
measured quantity still grows when the grid is refined or extended.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import factorial, sqrt
from typing import Any

import numpy as np

from onehidden.activations import Activation

Slope = Callable[[np.ndarray], np.ndarray]


def rho(g: Activation, sigma: float) -> float:
    """rho(sigma) of ``Activation.rho``: the least of the terms, a negative one counted as 0.

    rho bounds an eigenvalue that is never negative, and the paper's table prints 0 for the quadratic, where
    the printed definition gives -4 sigma² (``rho_terms`` shows it).
    """
    least = min(rho_terms(g.derivative, sigma))
    # Rounding leaves 1e-32 where the exact value is 0 (linear, quadratic).
    return least if least > 1e-24 else 0.0


def hermite(g: Callable[[np.ndarray], np.ndarray], order: int, norm: float = 1.0, bias: float = 0.0) -> float:
    """E[g(norm z + bias) h_m(z)], h_m the normalised Hermite polynomial; the kink of g is a panel edge."""
    if order < 0:
        raise ValueError(f"Hermite order must be 0 or more, got {order}")
    t, weight = standard_normal_nodes()
    # Beyond 8 standard deviations the kink weighs less than rounding, and the shifted window would miss mass.
    kink = -bias / norm if abs(bias) < 8 * norm else 0.0
    z = t + kink
    h = np.polynomial.hermite_e.hermeval(z, [0.0] * order + [1 / sqrt(factorial(order))])
    return float(np.sum(weight * np.exp(-kink * t - kink**2 / 2) * g(norm * z + bias) * h))  # φ(z)/φ(t)


def properties(g: Activation) -> dict[str, Any]:
    """The answers of ``Activation.properties``, decided from g' by the tolerances of this file."""
    return {
        "homogeneity": g.homogeneity,
        "parity": None if g.reversal is None else g.reversal.parity,
        "reflection_degree": None if g.reversal is None else g.reversal.degree,
        **slope_properties(g.derivative),
        "rho": {s: rho(g, s) for s in (0.1, 1.0, 10.0)},
    }


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


def slope_properties(slope: Slope, smallest: float = 1e-6, largest: float = 1e6) -> dict[str, Any]:
    """P1, P2, P3 of the activation with this derivative, seen at these sizes of z, and its power."""
    size = np.geomspace(smallest, largest, round(200 * np.log10(largest / smallest)) + 1)
    above, below, near = slope(size), slope(-size), slope(np.linspace(-8, 8, 160_001))
    power = _smallest_power(size, np.maximum(np.abs(above), np.abs(below)))
    p1 = power is not None and _at_most(-min(np.min(above), np.min(below), near[len(near) // 2]), 0.0)
    p2 = all(_rho_is_positive(slope, sigma) for sigma in np.geomspace(0.1, 10, 9))
    fine, coarse = (np.abs(np.diff(near[::every])) for every in (1, 100))
    # Difference quotients of g' stay put under refinement (no jump) and far away (no growth).
    steepest = np.max(fine) / 1e-4
    away = np.maximum(np.abs(slope(2 * size) - above), np.abs(slope(-2 * size) - below)) / size
    p3a = _at_most(steepest, np.max(coarse) / 1e-2) and _at_most(np.max(away[size >= 8]), steepest)
    # A finer grid finds no more cells where g' changes: kinks alone.
    changes = [np.sum(steps > 1e-12 * np.max(np.abs(near))) for steps in (fine, coarse)]
    p3b = bool(changes[0] <= changes[1])
    p3 = p3a or p3b
    return {"P1": p1, "P2": p2, "P3": p3, "P3a": p3a, "P3b": p3b, "P1,2,3": p1 and p2 and p3, "power": power}


def _at_most(value: float, bound: float, growth: float = 1.05, rounding: float = 1e-12) -> bool:
    """Whether a bounded quantity stays put: one more decade, or a finer grid, may add a twentieth."""
    return bool(value <= growth * bound + rounding)


def _smallest_power(size: np.ndarray, value: np.ndarray, most: int = 4) -> int | None:
    """The smallest p for which g'(z)/|z|^p grows neither towards infinity nor towards zero."""
    inside = (size >= 10 * size[0]) & (size <= size[-1] / 10)
    ratios = {p: value / size**p for p in range(most + 1)}
    return next((p for p, r in ratios.items() if _at_most(np.max(r), np.max(r[inside]), rounding=0.0)), None)


def _rho_is_positive(slope: Slope, sigma: float, rounding: float = 1e-12) -> bool:
    z, weight = standard_normal_nodes()
    return min(rho_terms(slope, sigma)) > rounding * float(np.sum(weight * slope(sigma * z) ** 2))


@lru_cache(maxsize=1)
def standard_normal_nodes(
    reach: float = 16.0, panels: int = 256, nodes: int = 16, halvings: int = 20
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights, normal density included, of composite Gauss–Legendre on [-reach, reach].

    Zero is a panel edge, so integrands that are smooth on each side of it keep full order; towards zero
    the panels halve, so that g(sigma z) with a large sigma is resolved too.
    """
    t, w = np.polynomial.legendre.leggauss(nodes)
    edges = np.linspace(-reach, reach, panels + 1)
    graded = edges[panels // 2 + 1] * 0.5 ** np.arange(1, halvings + 1)
    edges = np.sort(np.concatenate([edges, graded, -graded]))
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half * (t + 1)).ravel()
    weight = (half * w).ravel() * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return z, weight
