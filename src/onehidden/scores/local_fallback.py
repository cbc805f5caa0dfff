"""Every query is answered: where a local fit fails its bandwidth grows, and a Gaussian answers last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.scores.local_gaussian import LocalFit

REGULAR, ENLARGED, GAUSSIAN = 0, 1, 2
_GROWTH = 1.5


@dataclass(frozen=True)
class Diagnostics:
    """How each query was answered.

    Attributes
    ----------
    flag : (q,) 0 regular; 1 the bandwidth was enlarged, too few neighbours; 2 fitted Gaussian, far outside.
    bandwidth : (q,) used, in working coordinates.
    neighbours : (q,) kernel-weighted number of data points.
    """

    flag: np.ndarray
    bandwidth: np.ndarray
    neighbours: np.ndarray


def answered(
    fit: Callable[[np.ndarray, np.ndarray], LocalFit],
    Z: Float[np.ndarray, "n d"],
    Q: Float[np.ndarray, "q d"],
    h: Float[np.ndarray, " q"],
    least: float,
    rounds: int,
) -> tuple[list[np.ndarray], Diagnostics]:
    """Derivatives of log f at the queries, all of them finite, and how each came about.

    Parameters
    ----------
    fit : (queries, bandwidths) -> LocalFit.
    Z, Q : the sample and the queries, in working coordinates.
    h : bandwidth a query, to begin with.
    least : kernel-weighted neighbours that a fit needs; half the sample is always enough.
    rounds : how often a bandwidth may grow.
    """
    first, h = fit(Q, h), h.copy()
    derivatives = [part.copy() for part in first.derivatives]
    neighbours, flag = first.mass.copy(), np.full(len(Q), REGULAR)
    poor = np.flatnonzero(~first.ok | (first.mass < least))
    for _ in range(rounds):
        if not len(poor):
            break
        h[poor] *= _GROWTH
        again = fit(Q[poor], h[poor])
        good = again.ok & (again.mass >= min(least, 0.5 * len(Z)))
        done = poor[good]
        for whole, part in zip(derivatives, again.derivatives, strict=True):
            whole[done] = part[good]
        neighbours[poor], flag[done] = again.mass, ENLARGED
        poor = poor[~good]
    if len(poor):
        precision = np.linalg.inv(np.atleast_2d(np.cov(Z.T)))
        derivatives[0][poor] = (Z.mean(axis=0) - Q[poor]) @ precision
        for j, part in enumerate(derivatives[1:], start=2):
            part[poor] = -precision if j == 2 else 0.0
        flag[poor] = GAUSSIAN
    return derivatives, Diagnostics(flag, h, neighbours)
