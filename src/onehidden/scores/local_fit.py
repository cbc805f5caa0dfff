"""Local fits: degree, kernel and curvature, the bandwidth from data, and the fallback.

The bandwidth is chosen by held-out likelihood, or plugged in for each order from a fitted mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
from jaxtyping import Float

from onehidden.scores.local_gaussian import CURVATURES, LocalFit, Tiles, gaussian_fit, local_moments, prepare
from onehidden.scores.local_polynomial import KERNELS, REACH, polynomial_fit
from onehidden.scores.sample import Coordinates, coordinates, draw_rows
from onehidden.scores.structured import MixtureScore
from onehidden.streams import derived_seed, stream


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
    """Pick the widest of the candidates that the best beats by less than half a standard error.

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


ORDERS = (1, 2, 3, 4)


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
    most: int = 20_000,
) -> dict[int, Choice]:
    """Return the choice of lowest median error of S_m for every order 1 … 4.

    A mixture is fitted to X by EM; samples of the same size and queries are drawn from it, and every choice
    is judged by its error against the mixture's exact scores. Best for one order is not best for another:
    higher derivatives ask for wider kernels, and the likelihood, which judges none of them, for wider ones
    still where the law is nearly Gaussian. Beyond ``most`` rows trials have that many, and the bandwidth
    shrinks like n^(−rate) from there.
    """
    n, d = min(len(X), most), X.shape[1]
    pilot = MixtureScore(max_components=4, seed=seed).fit(X[draw_rows(X, most, seed)]).law_
    # The root mean square over eight directions stands for a norm of the tensor.
    V = stream(seed, "scores", "plug-in directions").standard_normal((d, 8))
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


_GRID = np.array([0.25, 0.3, 0.36, 0.43, 0.51, 0.6, 0.72, 0.85, 1.0, 1.3, 1.8, 3.0, 30.0])
_COMPACT = np.array([0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0])  # half-widths of the kernel's box


@dataclass(frozen=True)
class Setting:
    """A choice made ready on a sample: working coordinates, the sample there, its tiles."""

    choice: Choice
    coordinates: Coordinates
    Z: np.ndarray
    data: Tiles | None


@dataclass(frozen=True)
class Kind:
    """Degree, kernel and curvature of the fits; the sample is not known yet."""

    degree: int
    kernel: str
    curvature: str

    def __post_init__(self) -> None:
        if self.degree not in (1, 2, 3, 4, 5, 6):
            raise ValueError(f"degree must be 1 … 6, got {self.degree}")
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}")
        if self.curvature not in (*CURVATURES[:3], "auto"):
            raise ValueError(f"curvature must be full, diagonal, spherical or auto, got {self.curvature!r}")

    @property
    def closed(self) -> bool:
        """Whether a fit has a closed form; else it is Newton's."""
        return self.kernel == "gaussian" and self.degree <= 2

    def shapes(self, d: int) -> tuple[str, ...]:
        """Quadratic terms that can be distinguished."""
        if not self.closed or self.degree == 1:
            return ("full",)
        shapes = CURVATURES[:3] if self.curvature == "auto" else (self.curvature,)
        return shapes[:1] if d == 1 else shapes

    def grid(self, n: int, d: int) -> Float[np.ndarray, " g"]:
        """Bandwidths to try: the best one shrinks like n^{-1/(2p+2+d)}, and neighbours thin out with d."""
        rate = (n / 1000) ** (-1 / (2 * self.degree + 2 + d))
        if self.closed:
            return _GRID * min(1.0, rate)
        return _COMPACT / REACH[self.kernel] * max(rate, 0.5)

    def choices(self, n: int, d: int) -> list[Choice]:
        """Each shape in the coordinates where it is natural, and the full one under round kernels, too.

        A whitened kernel is longest where the law is widest, which is where two components lie apart.
        """
        shapes = self.shapes(d)
        pairs = [(shape, shape) for shape in shapes]
        pairs += [("full", kind) for kind in ("diagonal", "spherical") if "full" in shapes]
        return [Choice(shape, kind, float(h)) for shape, kind in pairs for h in self.grid(n, d)]

    def ready(self, choice: Choice, X: Float[np.ndarray, "n d"]) -> Setting:
        """Return the choice on that sample."""
        frame = coordinates(X, choice.coordinates)
        Z = np.ascontiguousarray(frame.points(X))
        return Setting(choice, frame, Z, prepare(Z) if self.closed else None)

    def fit(
        self,
        at: Setting,
        Q: Float[np.ndarray, "q d"],
        h: Float[np.ndarray, " q"],
        leave_out: bool = False,
    ) -> LocalFit:
        """Fits around the queries, all in working coordinates."""
        if at.data is not None:
            curvature = "none" if self.degree == 1 else at.choice.curvature
            fit = gaussian_fit(at.data, len(at.Z), Q, h, curvature, leave_out)
            return fit._replace(derivatives=fit.derivatives[: self.degree])
        return polynomial_fit(at.Z, Q, h, self.degree, self.kernel, leave_out)


@dataclass(frozen=True)
class Diagnostics:
    """How each query was answered.

    Attributes
    ----------
    flag : ndarray of shape (q,)
        0 regular; 1 the bandwidth was enlarged, too few neighbours; 2 fitted Gaussian, far outside.
    bandwidth : ndarray of shape (q,)
        Used, in working coordinates.
    neighbours : ndarray of shape (q,)
        Kernel-weighted number of data points.
    """

    flag: np.ndarray
    bandwidth: np.ndarray
    neighbours: np.ndarray


def answered(
    fit: Callable[[np.ndarray, np.ndarray], LocalFit],
    Z: Float[np.ndarray, "n d"],
    Q: Float[np.ndarray, "q d"],
    h: Float[np.ndarray, " q"],  # to begin with
    least: float,  # kernel-weighted neighbours that a fit needs; half the sample is always enough
    rounds: int,  # how often a bandwidth may grow by a factor 1.5
) -> tuple[list[np.ndarray], Diagnostics]:
    """Return derivatives of log f at the queries, all of them finite, and how each came about."""
    first, h = fit(Q, h), h.copy()
    derivatives = [part.copy() for part in first.derivatives]
    neighbours, flag = first.mass.copy(), np.zeros(len(Q), int)
    poor = np.flatnonzero(~first.ok | (first.mass < least))
    for _ in range(rounds):
        if not len(poor):
            break
        h[poor] *= 1.5
        again = fit(Q[poor], h[poor])
        good = again.ok & (again.mass >= min(least, 0.5 * len(Z)))
        done = poor[good]
        for whole, part in zip(derivatives, again.derivatives, strict=True):
            whole[done] = part[good]
        neighbours[poor], flag[done] = again.mass, 1
        poor = poor[~good]
    if len(poor):
        precision = np.linalg.inv(np.atleast_2d(np.cov(Z.T)))
        derivatives[0][poor] = (Z.mean(axis=0) - Q[poor]) @ precision
        for j, part in enumerate(derivatives[1:], start=2):
            part[poor] = -precision if j == 2 else 0.0
        flag[poor] = 2
    return derivatives, Diagnostics(flag, h, neighbours)
