"""The score estimator of [GMOV] (LLSFE): any degree, bandwidth from data, always finite."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.base import Derivatives, Directions, Points, ScoreFunction, Tensors, Values, as_points
from onehidden.run import derived_seed, stream
from onehidden.scores.local_gaussian import CURVATURES, LocalFit, Tiles, gaussian_fit, prepare
from onehidden.scores.local_polynomial import KERNELS, MAX_INPUTS, REACH, polynomial_fit
from onehidden.scores.sample import Coordinates, check_sample, coordinates, draw_rows
from onehidden.scores.structured import MixtureScore

# Bandwidths to try: of closed forms, and half-widths of the box of a compact kernel.
_GRID = np.array([0.25, 0.3, 0.36, 0.43, 0.51, 0.6, 0.72, 0.85, 1.0, 1.3, 1.8, 3.0, 30.0])
_COMPACT = np.array([0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0])


@dataclass(frozen=True)
class Choice:
    """One way to fit: shape of the quadratic term, coordinates where the kernel is round, bandwidth there."""

    curvature: str
    coordinates: str
    bandwidth: float


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

    def choices(self, n: int, d: int) -> list[Choice]:
        """Each shape in the coordinates where it is natural, and the full one under round kernels, too.

        A whitened kernel is longest where the law is widest, which is where two components lie apart. The
        best bandwidth shrinks like n^{-1/(2p+2+d)}, and neighbours thin out with d.
        """
        shapes: tuple[str, ...] = CURVATURES[:3] if self.curvature == "auto" else (self.curvature,)
        if not self.closed or self.degree == 1:
            shapes = ("full",)
        pairs = [(shape, shape) for shape in (shapes[:1] if d == 1 else shapes)]
        pairs += [("full", kind) for kind in ("diagonal", "spherical") if "full" in shapes]
        rate = (n / 1000) ** (-1 / (2 * self.degree + 2 + d))
        grid = _GRID * min(1.0, rate) if self.closed else _COMPACT / REACH[self.kernel] * max(rate, 0.5)
        return [Choice(shape, kind, float(h)) for shape, kind in pairs for h in grid]

    def ready(self, choice: Choice, X: Float[np.ndarray, "n d"]) -> Setting:
        """Return the choice on that sample."""
        frame = coordinates(X, choice.coordinates)
        Z = np.ascontiguousarray(frame.points(X))
        return Setting(choice, frame, Z, prepare(Z) if self.closed else None)

    def fit(self, at: Setting, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]) -> LocalFit:
        """Fits around the queries, all in working coordinates."""
        if at.data is None:
            return polynomial_fit(at.Z, Q, h, self.degree, self.kernel)
        fit = gaussian_fit(at.data, len(at.Z), Q, h, "none" if self.degree == 1 else at.choice.curvature)
        return fit._replace(derivatives=fit.derivatives[: self.degree])


def plug_in(
    X: Float[np.ndarray, "n d"],
    kind: Kind,
    seed: int,
    orders: Sequence[int] = (1, 2, 3, 4),
    most: int = 20_000,  # rows of a trial
) -> dict[int, Choice]:
    """Return the choice of lowest median error of S_m for every order m.

    A mixture is fitted to X by EM; samples of the same size and queries are drawn from it, and every choice
    is judged by its error against the mixture's exact scores. Best for one order is not best for another:
    higher derivatives ask for wider kernels, and the likelihood, which judges none of them, for wider ones
    still where the law is nearly Gaussian. Beyond ``most`` rows the bandwidth of the trials is shrunk.
    """
    n, d = min(len(X), most), X.shape[1]
    pilot = MixtureScore(max_components=4, seed=seed).fit(X[draw_rows(X, most, seed)]).law_
    # The root mean square over eight directions stands for a norm of the tensor.
    V = stream(seed, "scores", "plug-in directions").standard_normal((d, 8))
    V /= np.linalg.norm(V, axis=0)
    # A small sample judges by its own accidents: several of them, as many as one of 4096 costs, at most 8.
    samples = int(np.clip(4096 // n, 1, 8))
    queries = max((600 if kind.closed else 100) // samples, 50)
    errors: dict[tuple[int, Choice], list[np.ndarray]] = {}
    for i in range(samples):
        sample = pilot.sample(n, derived_seed(seed, "scores", "plug-in sample", i))
        Q = pilot.sample(queries, derived_seed(seed, "scores", "plug-in queries", i))
        true = {m: np.stack([pilot.contract(Q, *[u] * m) for u in V.T], axis=1) for m in orders}
        ready: dict[str, Setting] = {}
        for choice in kind.choices(len(X), d):
            if choice.coordinates not in ready:
                ready = {choice.coordinates: kind.ready(choice, sample)}
            at = replace(ready[choice.coordinates], choice=choice)
            fit = kind.fit(at, at.coordinates.points(Q), np.full(len(Q), choice.bandwidth))
            found = along(_contracted(fit.derivatives, at.coordinates.directions(V)), max(orders))
            for m in orders:
                gap = np.sqrt(np.mean((found[m - 1] - true[m]) ** 2, axis=1))
                errors.setdefault((m, choice), []).append(np.where(np.isfinite(gap), gap, np.inf))
    median = {key: float(np.median(np.concatenate(parts))) for key, parts in errors.items()}
    best = {m: min((c for o, c in median if o == m), key=lambda c, m=m: median[m, c]) for m in orders}
    shrink = (len(X) / n) ** (-1 / (2 * kind.degree + 2 + d))
    return {m: replace(choice, bandwidth=choice.bandwidth * shrink) for m, choice in best.items()}


def _contracted(derivatives: Sequence[np.ndarray], U: Float[np.ndarray, "d r"]) -> list[np.ndarray]:
    """G_j(u, …, u) (q, r) of each derivative (q, d, …, d), for every column u."""
    found = []
    for part in derivatives:
        part = part @ U
        while part.ndim > 2:
            part = np.einsum("q...ir,ir->q...r", part, U)
        found.append(part)
    return found


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
    bandwidth: float,  # to begin with
    least: float,  # kernel-weighted neighbours that a fit needs; half the sample is always enough
    rounds: int,  # how often a bandwidth may grow by a factor 1.5
) -> tuple[list[np.ndarray], Diagnostics]:
    """Return derivatives of log f at the queries, all of them finite, and how each came about."""
    h = np.full(len(Q), bandwidth)
    first = fit(Q, h)
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


class LocalLikelihood(ScoreFunction):
    """Scores from a polynomial fitted to log f around each query.

    Degree 2 with the Gaussian kernel is closed form; every other choice is Newton with a compact kernel
    (the Gaussian one cut at 3h) and needs few inputs. Where a query has too few neighbours or a singular
    neighbourhood its bandwidth grows by factors of 1.5, and the fitted Gaussian answers last: the result is
    always finite, and ``diagnostics`` flags it.

    Parameters
    ----------
    degree : int
        p; derivatives of log f beyond it are taken as zero.
    bandwidth : str or float
        "auto" (for every order what would serve it best if a fitted mixture were the law), or a positive
        number in the units of X.
    kernel : str
        "gaussian", "tricube" or "epanechnikov".
    curvature : str
        The quadratic term of degree 2 with the Gaussian kernel: "full", "diagonal", "spherical", or "auto",
        chosen with the bandwidth ("full" where that is a number).
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
        self,
        degree: int = 2,
        bandwidth: str | float = "auto",
        kernel: str = "gaussian",
        curvature: str = "auto",
        seed: int = 0,
    ) -> None:
        self._kind = Kind(degree, kernel, curvature)
        if isinstance(bandwidth, str):
            if bandwidth != "auto":
                raise ValueError(f"bandwidth must be 'auto' or a positive number, got {bandwidth!r}")
        elif not (np.isfinite(bandwidth) and bandwidth > 0):
            raise ValueError(f"bandwidth must be positive, got {bandwidth}")
        self.degree, self.bandwidth, self.kernel = degree, bandwidth, kernel
        self.curvature, self.seed = curvature, seed

    def fit(self, X: npt.ArrayLike) -> LocalLikelihood:
        """Keep the sample and choose what is on "auto"; returns itself."""
        X = check_sample(X)
        self.n_samples, self.n_inputs = X.shape
        if not self._kind.closed and self.n_inputs > MAX_INPUTS:
            raise ValueError(
                f"degree {self.degree} with the {self.kernel} kernel integrates over {self.n_inputs} inputs: "
                f"at most {MAX_INPUTS}; use degree 2 with the gaussian kernel, or IndependentScore"
            )
        automatic = isinstance(self.bandwidth, str)
        self._orders: dict[int, Setting] = {}
        if automatic:
            found = plug_in(X, self._kind, self.seed)
            self._orders = {m: self._kind.ready(choice, X) for m, choice in found.items()}
            self._base = self._orders[1]
        else:
            shape = "full" if self.curvature == "auto" else self.curvature
            self._base = self._kind.ready(Choice(shape, "none", float(self.bandwidth)), X)
        self.curvature_, self.bandwidth_ = self._base.choice.curvature, self._base.choice.bandwidth
        self.min_neighbours = float(self.n_inputs + 2)
        if self._kind.closed:
            parameters = comb(self.n_inputs + self.degree, self.n_inputs)
            self.min_neighbours = float(parameters if automatic else min(parameters, self.n_inputs + 2))
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

    def choice(self, order: int) -> Choice:
        """Return what scores of that order are fitted with."""
        return self._at(order).choice

    def _at(self, order: int) -> Setting:
        return self._orders.get(order, self._base)

    def _local(self, X: np.ndarray, order: int) -> tuple[list[np.ndarray], Diagnostics]:
        """Return derivatives in the working coordinates of the order, with the fallbacks applied."""
        at, rounds = self._at(order), 24 if self._kind.closed else 8
        Q, h = at.coordinates.points(X), at.choice.bandwidth
        return answered(lambda Q, h: self._kind.fit(at, Q, h), at.Z, Q, h, self.min_neighbours, rounds)

    def diagnostics(self, X: npt.ArrayLike, order: int = 1) -> Diagnostics:
        """Return flags, bandwidths and neighbours of each query, for scores of that order."""
        return self._local(as_points(X, self.n_inputs), order)[1]

    def _log_derivatives(self, X: Points, order: int, V: Directions) -> Derivatives:
        U = self._at(order).coordinates.directions(V)
        G: Derivatives = []
        for part in self._local(X, order)[0][:order]:
            for _ in range(part.ndim - 1):
                part = np.tensordot(part, U, axes=(1, 0))
            G.append(part)
        return G + [None] * (order - len(G))

    def laplacian(self, X: npt.ArrayLike) -> Values:
        """Divergence of x -> â_1(x) itself (not of the plugged-in Â_2) by central differences, (n,)."""
        X, W = as_points(X, self.n_inputs), self._base.coordinates.matrix
        step, total = 1e-4 * self.bandwidth_, np.zeros(len(X))
        # Columns of W'^-1 are unit steps of the working coordinates.
        for move, w in zip(step * np.linalg.inv(W), W.T, strict=True):
            ahead, behind = (self._log_derivatives(X + s * move, 1, w[:, None])[0] for s in (1, -1))
            total += (np.asarray(ahead) - np.asarray(behind))[:, 0] / (2 * step)
        return total
