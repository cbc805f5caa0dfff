"""The bandwidth from data: leave-one-out likelihood, the estimate normalised by importance sampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.scores.kernel_sums import prepare
from onehidden.scores.local_gaussian import LocalFit, local_moments
from onehidden.scores.sample import draw_rows
from onehidden.streams import stream


@dataclass(frozen=True)
class Trial:
    """One candidate: its name, bandwidth and held-out log-likelihood a point.

    ``noise`` holds the centred terms behind it, held-out points in row 0 and proposals in row 1: the
    difference of two candidates has the standard error of the difference of their terms.
    """

    label: str
    bandwidth: float
    log_likelihood: float
    noise: tuple[np.ndarray, np.ndarray]


def held_out_likelihood(
    Z: Float[np.ndarray, "n d"],
    fit: Callable[[np.ndarray, np.ndarray, bool], LocalFit],
    grid: Float[np.ndarray, " g"],
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
    rng = stream(seed, "scores", "proposals")
    blur = 0.5
    proposals = Z[rng.integers(0, n, points)] + blur * rng.standard_normal((points, d))
    known, _, _ = local_moments(prepare(Z), proposals, np.full(points, blur))
    log_known = np.log(known / n) - 0.5 * d * np.log(2 * np.pi * blur**2)
    trials = []
    for h in grid:
        own = fit(Z[rows], np.full(len(rows), h), True)
        other = fit(proposals, np.full(points, h), False)
        ratio = np.where(other.ok, np.exp(np.minimum(other.log_density - log_known, 50.0)), 0.0)
        mass = max(float(np.mean(ratio)), 1e-300)
        # A point without neighbours is a failure of this bandwidth, not something to skip.
        value = np.where(own.ok, own.log_density, -50.0 * d)
        value = np.maximum(value, -50.0 * d)
        mean = float(np.mean(value))
        trials.append(Trial(label, float(h), mean - np.log(mass), (value - mean, ratio / mass - 1.0)))
    return trials


def pick(trials: list[Trial]) -> Trial:
    """The widest of the candidates that the highest likelihood beats by less than half a standard error.

    A wide kernel has the smaller variance in higher derivatives, and on a law that is nearly Gaussian the
    likelihoods of all wide kernels differ by less than their noise: the plain maximum would then be a
    lottery. Of equally wide candidates the later one, which has the simpler curvature, is taken.
    """
    best = max(trials, key=lambda trial: trial.log_likelihood)

    def close(trial: Trial) -> bool:
        pairs = zip(trial.noise, best.noise, strict=True)
        error = np.sqrt(sum(float(np.var(a - b)) / len(a) for a, b in pairs))
        return best.log_likelihood - trial.log_likelihood <= 0.5 * error

    near = [(trial.bandwidth, i) for i, trial in enumerate(trials) if close(trial)]
    return trials[max(near)[1]]
