"""The score estimator of [GMOV] (LLSFE): any degree, bandwidth from data, always finite."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.run import derived_seed, stream
from onehidden_papers.laws.base import (
    Derivatives,
    Directions,
    Points,
    ScoreFunction,
    Tensors,
    Values,
    as_points,
    score_tensor,
)
from onehidden_papers.scores.local_gaussian import LocalFit, Tiles, gaussian_fit, prepare
from onehidden_papers.scores.local_polynomial import KERNELS, MAX_INPUTS, polynomial_fit
from onehidden_papers.scores.sample import Coordinates, check_bandwidth, check_sample, coordinates, draw_rows
from onehidden_papers.scores.structured import MixtureScore

# Bandwidths to try: of closed forms, and half-widths of the box of a compact kernel.
_GRID = np.array([0.25, 0.3, 0.36, 0.43, 0.51, 0.6, 0.72, 0.85, 1.0, 1.3, 1.8, 3.0, 30.0])
_COMPACT = np.array([0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0])


@dataclass(frozen=True)
class Choice:
    """One way to fit: shape of the quadratic term, coordinates where the kernel is round, bandwidth there."""

    degree: int
    kernel: str
    curvature: str
    coordinates: str
    bandwidth: float

    @property
    def closed(self) -> bool:
        """Whether a fit has a closed form; else it is Newton's."""
        return self.kernel == "gaussian" and self.degree <= 2

    def on(self, X: Float[np.ndarray, "n d"]) -> LocalFits:
        """Return the fits to that sample."""
        working = coordinates(X, self.coordinates)
        Z = np.ascontiguousarray(working.points(X))
        return LocalFits(self, working, Z, prepare(Z) if self.closed else None)


@dataclass(frozen=True)
class LocalFits:
    """Fits around any query: a choice, its working coordinates, and the sample there."""

    choice: Choice
    coordinates: Coordinates
    Z: np.ndarray
    tiles: Tiles | None

    def __call__(self, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]) -> LocalFit:
        """Return the fits around queries in working coordinates."""
        degree = self.choice.degree
        if self.tiles is None:
            return polynomial_fit(self.Z, Q, h, degree, self.choice.kernel)
        fit = gaussian_fit(self.tiles, Q, h, "none" if degree == 1 else self.choice.curvature)
        return fit._replace(derivatives=fit.derivatives[:degree])

    def answered(self, X: Float[np.ndarray, "q d"], least: float) -> list[np.ndarray]:
        """Derivatives of log f in working coordinates at the rows of X, all of them finite.

        A bandwidth grows by factors of 1.5 until a fit has ``least`` neighbours, of which half the sample is
        always enough; the fitted Gaussian answers last.
        """
        Q = self.coordinates.points(X)
        h = np.full(len(Q), self.choice.bandwidth)
        first = self(Q, h)
        derivatives = [part.copy() for part in first.derivatives]
        poor = np.flatnonzero(~first.ok | (first.mass < least))
        for _ in range(24 if self.choice.closed else 8):
            if not len(poor):
                break
            h[poor] *= 1.5
            again = self(Q[poor], h[poor])
            good = again.ok & (again.mass >= min(least, 0.5 * len(self.Z)))
            for whole, part in zip(derivatives, again.derivatives, strict=True):
                whole[poor[good]] = part[good]
            poor = poor[~good]
        if len(poor):
            precision = np.linalg.inv(np.atleast_2d(np.cov(self.Z.T)))
            derivatives[0][poor] = (self.Z.mean(axis=0) - Q[poor]) @ precision
            for j, part in enumerate(derivatives[1:], start=2):
                part[poor] = -precision if j == 2 else 0.0
        return derivatives


def choices(degree: int, kernel: str, n: int, d: int) -> list[Choice]:
    """Each shape in the coordinates where it is natural, and the full one under round kernels, too.

    A whitened kernel is longest where the law is widest, which is where two components lie apart. The
    best bandwidth shrinks like n^{-1/(2p+2+d)}, and neighbours thin out with d.
    """
    plain = Choice(degree, kernel, "full", "full", 1.0)
    pairs = [("full", "full"), ("full", "diagonal"), ("full", "spherical")]
    if plain.closed and degree == 2 and d > 1:
        pairs[1:1] = [("diagonal", "diagonal"), ("spherical", "spherical")]
    rate = (n / 1000) ** (-1 / (2 * degree + 2 + d))
    grid = _GRID * min(1.0, rate) if plain.closed else _COMPACT / KERNELS[kernel] * max(rate, 0.5)
    return [
        replace(plain, curvature=shape, coordinates=kind, bandwidth=float(h))
        for shape, kind in pairs
        for h in grid
    ]


def plug_in(
    X: Float[np.ndarray, "n d"],
    degree: int,
    kernel: str,
    seed: int,
    most: int = 20_000,  # rows of a trial
) -> dict[int, Choice]:
    """Return the choice of lowest median error of S_m for every order m = 1 … 4.

    A mixture is fitted to X by EM; samples of the same size and queries are drawn from it, and every choice
    is judged by its error against the mixture's exact scores. Best for one order is not best for another:
    higher derivatives ask for wider kernels, and the likelihood, which judges none of them, for wider ones
    still where the law is nearly Gaussian. Beyond ``most`` rows the bandwidth of the trials is shrunk.
    """
    n, d = min(len(X), most), X.shape[1]
    pilot = MixtureScore(max_components=4, seed=seed).fit(X[draw_rows(X, most, seed)]).law_
    tried = choices(degree, kernel, len(X), d)
    # The root mean square over eight directions stands for a norm of the tensor.
    V = stream(seed, "scores", "plug-in directions").standard_normal((d, 8))
    V /= np.linalg.norm(V, axis=0)
    # A small sample judges by its own accidents: several of them, as many as one of 4096 costs, at most 8.
    samples = int(np.clip(4096 // n, 1, 8))
    queries = max((600 if tried[0].closed else 100) // samples, 50)
    errors: dict[tuple[int, Choice], list[np.ndarray]] = {(m, c): [] for m in (1, 2, 3, 4) for c in tried}
    for i in range(samples):
        sample = pilot.sample(n, derived_seed(seed, "scores", "plug-in sample", i))
        Q = pilot.sample(queries, derived_seed(seed, "scores", "plug-in queries", i))
        true = {m: np.stack([pilot.contract(Q, *[u] * m) for u in V.T], axis=1) for m in (1, 2, 3, 4)}
        on_sample: dict[str, LocalFits] = {}
        for choice in tried:
            if choice.coordinates not in on_sample:
                on_sample[choice.coordinates] = choice.on(sample)
            fits = replace(on_sample[choice.coordinates], choice=choice)
            fit = fits(fits.coordinates.points(Q), np.full(queries, choice.bandwidth))
            for m, found in enumerate(scores_along(fit.derivatives, fits.coordinates.directions(V)), start=1):
                gap = np.sqrt(np.mean((found - true[m]) ** 2, axis=1))
                errors[m, choice].append(np.where(np.isfinite(gap), gap, np.inf))
    median = {key: float(np.median(np.concatenate(parts))) for key, parts in errors.items()}
    shrink = (len(X) / n) ** (-1 / (2 * degree + 2 + d))
    best = {m: min(tried, key=lambda choice, m=m: median[m, choice]) for m in (1, 2, 3, 4)}
    return {m: replace(choice, bandwidth=choice.bandwidth * shrink) for m, choice in best.items()}


def scores_along(
    derivatives: Sequence[np.ndarray], U: Float[np.ndarray, "d r"]
) -> list[Float[np.ndarray, "q r"]]:
    """S_1 … S_4 along every column u, from the derivatives of log f; those beyond the list are zero."""
    lines: Derivatives = [None] * 4
    for j, part in enumerate(derivatives[:4]):
        part = part @ U
        while part.ndim > 2:
            part = np.einsum("q...ir,ir->q...r", part, U)
        lines[j] = part.reshape(-1, *[1] * (j + 1))
    return [score_tensor(lines[:m]).reshape(-1, U.shape[1]) for m in (1, 2, 3, 4)]


class LocalLikelihood(ScoreFunction):
    """Scores from a polynomial fitted to log f around each query.

    Degree 2 with the Gaussian kernel is closed form; every other choice is Newton with a compact kernel
    (the Gaussian one cut at 3h) and needs few inputs. Where a query has too few neighbours or a singular
    neighbourhood its bandwidth grows by factors of 1.5, and the fitted Gaussian answers last: the result is
    always finite.

    Parameters
    ----------
    degree : int
        p; derivatives of log f beyond it are taken as zero.
    bandwidth : str or float
        "auto" (for every order what would serve it best if a fitted mixture were the law), or a positive
        number in the units of X.
    kernel : str
        "gaussian" or "tricube".
    seed : int
        Seed of the automatic choice.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> estimate = oh.scores.LocalLikelihood(bandwidth=2.0).fit(X)
    >>> estimate.score([[1.0, 1.0]], 1).round(0).tolist()  # x for a standard normal law
    [[1.0, 1.0]]
    """

    def __init__(
        self, degree: int = 2, bandwidth: str | float = "auto", kernel: str = "gaussian", seed: int = 0
    ) -> None:
        if degree not in (1, 2, 3, 4, 5, 6):
            raise ValueError(f"degree must be 1 … 6, got {degree}")
        if kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
        check_bandwidth(bandwidth)
        self.degree, self.bandwidth, self.kernel, self.seed = degree, bandwidth, kernel, seed

    def fit(self, X: npt.ArrayLike) -> LocalLikelihood:
        """Keep the sample and choose what is on "auto"; returns itself."""
        X = check_sample(X)
        self.n_inputs = X.shape[1]
        automatic = isinstance(self.bandwidth, str)
        plain = Choice(self.degree, self.kernel, "full", "none", 1.0 if automatic else float(self.bandwidth))
        if not plain.closed and self.n_inputs > MAX_INPUTS:
            raise ValueError(
                f"degree {self.degree} with the {self.kernel} kernel integrates over {self.n_inputs} inputs: "
                f"at most {MAX_INPUTS}; use degree 2 with the gaussian kernel, or IndependentScore"
            )
        self.choices_ = plug_in(X, self.degree, self.kernel, self.seed) if automatic else {1: plain}
        self._fits = {m: choice.on(X) for m, choice in self.choices_.items()}
        self._least = float(self.n_inputs + 2)
        if plain.closed and automatic:
            self._least = float(comb(self.n_inputs + self.degree, self.n_inputs))
        return self

    def score(self, X: npt.ArrayLike, order: int, subspace: npt.ArrayLike | None = None) -> Tensors:
        """S_m at the rows of X; warns where m exceeds the degree: derivatives beyond it count as zero."""
        if order > self.degree:
            warnings.warn(
                f"S_{order} of a fit of degree {self.degree} leaves derivatives of log f beyond it at zero: "
                f"right for Gaussian laws only; take degree={order} where inputs are few",
                stacklevel=2,
            )
        return super().score(X, order, subspace)

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        fits = self._fits.get(order, self._fits[1])
        U = fits.coordinates.directions(V)
        G: Derivatives = []
        for part in fits.answered(X, self._least)[:order]:
            for _ in range(part.ndim - 1):
                part = np.tensordot(part, U, axes=(1, 0))
            G.append(part)
        return G + [None] * (order - len(G))

    def laplacian(self, X: npt.ArrayLike) -> Values:
        """Divergence of x -> â_1(x) itself (not of the plugged-in Â_2) by central differences, (n,)."""
        X, W = as_points(X, self.n_inputs), self._fits[1].coordinates.matrix
        step, total = 1e-4 * self._fits[1].choice.bandwidth, np.zeros(len(X))
        # Columns of W'^-1 are unit steps of the working coordinates.
        for move, w in zip(step * np.linalg.inv(W), W.T, strict=True):
            ahead, behind = (self._log_derivatives(X + s * move, 1, w[:, None])[0] for s in (1, -1))
            total += (np.asarray(ahead) - np.asarray(behind))[:, 0] / (2 * step)
        return total
