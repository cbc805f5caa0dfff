"""The bandwidth from data: leave-one-out likelihood, the estimate normalised by importance sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onehidden.scores.local_gaussian import LocalFit, local_moments, prepare
from onehidden.scores.sample import draw_rows


@dataclass(frozen=True)
class Trial:
    """One candidate: its name, bandwidth and held-out log-likelihood a point."""

    label: str
    bandwidth: float
    log_likelihood: float


def held_out_likelihood(
    Z: np.ndarray,
    fit: Callable[[np.ndarray, np.ndarray, bool], LocalFit],
    grid: np.ndarray,
    label: str,
    seed: int,
    points: int = 1000,
) -> list[Trial]:
    """Mean log f̂_{-i}(z_i) - log ∫f̂ for every bandwidth of the grid.

    A local-likelihood estimate has no unit mass, and small bandwidths would profit from that: the mass is
    estimated at points of the sample blurred by half a standard deviation, whose density is known.
    """
    n, d = Z.shape
    rows = draw_rows(Z, points, seed)
    rng = np.random.default_rng(seed)
    blur = 0.5
    proposals = Z[rng.integers(0, n, points)] + blur * rng.standard_normal((points, d))
    known, _, _ = local_moments(prepare(Z), proposals, np.full(points, blur))
    log_known = np.log(known / n) - 0.5 * d * np.log(2 * np.pi * blur**2)
    trials = []
    for h in grid:
        own = fit(Z[rows], np.full(len(rows), h), True)
        other = fit(proposals, np.full(points, h), False)
        mass = np.mean(np.where(other.ok, np.exp(np.minimum(other.log_density - log_known, 50.0)), 0.0))
        # A point without neighbours is a failure of this bandwidth, not something to skip.
        value = np.where(own.ok, own.log_density, -50.0 * d)
        value = np.maximum(value, -50.0 * d)
        trials.append(Trial(label, float(h), float(np.mean(value) - np.log(max(mass, 1e-300)))))
    return trials
