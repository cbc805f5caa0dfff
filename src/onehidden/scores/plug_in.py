"""The bandwidth for one order, plugged in: which choice would do best if the law were a fitted mixture?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from jaxtyping import Float

from onehidden.scores.sample import draw_rows
from onehidden.scores.structured import MixtureScore
from onehidden.streams import derived_seed, stream

ORDERS = (1, 2, 3, 4)
_MOST = 20_000
_DIRECTIONS = 8  # their root mean square stands for a norm of the tensor


@dataclass(frozen=True)
class Choice:
    """One way to fit: shape of the quadratic term, coordinates where the kernel is round, bandwidth there."""

    curvature: str
    coordinates: str
    bandwidth: float


# (choice, sample, queries, directions) -> G_j(u, …, u) at the queries, (q, r), j up to the degree
Fit = Callable[[Choice, np.ndarray, np.ndarray, np.ndarray], list[np.ndarray]]


def plug_in(
    X: Float[np.ndarray, "n d"],
    choices: Sequence[Choice],
    fit: Fit,
    seed: int,
    queries: int,
    rate: float,
) -> dict[int, Choice]:
    """The choice of lowest median error of S_m for every order 1 … 4.

    A mixture is fitted to X by EM; samples of the same size and queries are drawn from it, and every choice
    is judged by its error against the mixture's exact scores. Best for one order is not best for another:
    higher derivatives ask for wider kernels, and the likelihood, which judges none of them, for wider ones
    still where the law is nearly Gaussian. Beyond ``_MOST`` rows trials have that many, and the bandwidth
    shrinks like n^(−rate) from there.
    """
    n, d = min(len(X), _MOST), X.shape[1]
    pilot = MixtureScore(max_components=4, seed=seed).fit(X[draw_rows(X, _MOST, seed)]).law_
    V = stream(seed, "scores", "plug-in directions").standard_normal((d, _DIRECTIONS))
    V /= np.linalg.norm(V, axis=0)
    # A small sample judges by its own accidents: several of them, as many as one of 4096 costs, at most 8.
    samples = int(np.clip(4096 // n, 1, 8))
    errors: dict[tuple[int, Choice], list[np.ndarray]] = {}
    for i in range(samples):
        sample = pilot.sample(n, derived_seed(seed, "scores", "plug-in sample", i))
        Q = pilot.sample(max(queries // samples, 50), derived_seed(seed, "scores", "plug-in queries", i))
        true = {m: np.stack([pilot.contract(Q, *[u] * m) for u in V.T], axis=1) for m in ORDERS}
        for choice in choices:
            found = along(fit(choice, sample, Q, V), max(ORDERS))
            for m in ORDERS:
                gap = np.sqrt(np.mean((found[m - 1] - true[m]) ** 2, axis=1))
                errors.setdefault((m, choice), []).append(np.where(np.isfinite(gap), gap, np.inf))
    best: dict[int, tuple[Choice, float]] = {}
    for (m, choice), parts in errors.items():
        middle = float(np.median(np.concatenate(parts)))
        if m not in best or middle < best[m][1]:
            best[m] = choice, middle
    shrink = (len(X) / n) ** -rate
    return {m: replace(choice, bandwidth=choice.bandwidth * shrink) for m, (choice, _) in best.items()}


def along(G: Sequence[np.ndarray], highest: int) -> list[np.ndarray]:
    """S_1 … S_highest along directions from G_j(u, …, u), those beyond the list zero.

    f^(m)/f = Σ_j C(m−1, j) (f^(j)/f) G_{m−j}, and S_m = (−1)^m f^(m)/f.
    """
    zero = np.zeros_like(G[0])
    parts = [*G, *([zero] * highest)]
    ratio = [np.ones_like(zero)]
    for m in range(1, highest + 1):
        ratio.append(sum((comb(m - 1, j) * ratio[j] * parts[m - j - 1] for j in range(m)), start=zero))
    return [(-1) ** m * ratio[m] for m in range(1, highest + 1)]
