"""What the reproductions share: random rows, fresh samples, laws of the inputs, drawings, processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.laws import GaussianMixture
from onehidden.machine import in_double
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import derived_seed, stream
from onehidden_papers.objectives import Objective
from onehidden_papers.reproductions.record import Curves, Draw, Row, one_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# e(Q) ≤ .1 puts every row within cosine .9 of a true row; [GLM] (4.1) reads e < 1/3 as a permutation.
REACHED = 0.1


def random_rows(count: int, k: int, d: int, seed: int) -> np.ndarray:
    """(count, k, d) starts with unit rows."""
    rows = stream(seed, "paper", "random rows").standard_normal((count, k, d))
    return rows / np.linalg.norm(rows, axis=2, keepdims=True)


def rotation(d: int, seed: int) -> np.ndarray:
    """Return a random orthogonal matrix."""
    return np.linalg.qr(stream(seed, "paper", "rotation").standard_normal((d, d)))[0]


# Fresh samples at every step


@dataclass(frozen=True, eq=False)
class FreshSampler:
    """A function of a key: the source of n fresh samples, for ``lab.stochastic.descend``.

    With ``control`` a fixed polynomial of that degree (at most 2), fitted on a pilot batch of n samples, is
    subtracted from y. E[q(x) S_m] = 0 for q of degree < m, so the mean of a designed objective does not move
    while its variance falls several hundred-fold. None keeps raw labels, as the papers do.
    """

    objective: Objective
    teacher: OneHiddenNet
    n: int
    control: int | None = None
    _polynomial: tuple[Any, ...] = field(init=False, repr=False)

    @in_double
    def __post_init__(self) -> None:
        polynomial: tuple[Any, ...] = ()
        if self.control is not None:
            # The pilot batch has a stream of its own: no step ever sees its rows.
            key = jax.random.key(derived_seed(0, "paper", "pilot batch"))
            X = np.asarray(jax.random.normal(key, (self.n, self.teacher.n_inputs)))
            polynomial = _hermite_fit(X, self.teacher.predict(X), self.control)
        object.__setattr__(self, "_polynomial", polynomial)

    def batch(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """One batch (X, y), traceable."""
        net = self.teacher
        X = jax.random.normal(key, (self.n, net.n_inputs))
        hidden = net.activation.fn(X @ jnp.asarray(net.weights.T) + jnp.asarray(net.bias))
        y = hidden @ jnp.asarray(net.output) + net.intercept
        return X, y - _polynomial(X, *map(jnp.asarray, self._polynomial)) if self._polynomial else y

    def __call__(self, key: jax.Array) -> Any:
        return self.objective.from_batch(*self.batch(key))


def _polynomial(X: Any, constant: Any, linear: Any, quadratic: Any) -> Any:
    return constant + X @ linear + ((X @ quadratic) * X).sum(axis=1)


def _hermite_fit(
    X: np.ndarray, y: np.ndarray, degree: int, passes: int = 8
) -> tuple[float, np.ndarray, np.ndarray]:
    """Constant, linear and quadratic parts of a fit of low degree.

    Each pass reads the Hermite coefficients of what is left, so the noise of a pass is that of the residual:
    a few passes are least squares without its (d²/2)² normal equations.
    """
    n, d = X.shape
    constant, linear, quadratic, left = 0.0, np.zeros(d), np.zeros((d, d)), y
    for _ in range(passes):
        mean = float(np.mean(left))
        constant += mean
        if degree >= 1:
            linear = linear + X.T @ left / n
        if degree >= 2:
            half = ((X * left[:, None]).T @ X / n - mean * np.eye(d)) / 2
            constant, quadratic = constant - float(np.trace(half)), quadratic + half
        left = y - _polynomial(X, constant, linear, quadratic)
    return constant, linear, quadratic


def without_degree_two(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Residual of y after least squares on all polynomials of degree ≤ 2."""
    upper = np.triu_indices(X.shape[1])
    features = np.column_stack([np.ones(len(y)), X, X[:, upper[0]] * X[:, upper[1]]])
    return y - features @ np.linalg.solve(features.T @ features, features.T @ y)


# Laws of the inputs that several reproductions share

LOGISTIC_SCALE = float(np.sqrt(3) / np.pi)  # of the logistic law of unit variance
SHIFT = 0.3  # Σ⟨a_i, μ⟩² = .27: every κ_i is negative, within a third of each other


def kappa_4(t: np.ndarray) -> np.ndarray:
    """E[relu''''(⟨a, x⟩)] under ½N(μ, I) + ½N(−μ, I), t = ⟨a, μ⟩: (t² − 1)φ(t)."""
    return (t**2 - 1) * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)


def mixture(d: int) -> GaussianMixture:
    """½N(SHIFT·1, I) + ½N(−SHIFT·1, I)."""
    return GaussianMixture([0.5, 0.5], [np.full(d, SHIFT), np.full(d, -SHIFT)], np.eye(d))


def unit_logistic(t: jax.Array) -> jax.Array:
    """Log-density of the logistic law of unit variance, up to a constant."""
    u = jnp.abs(t) / LOGISTIC_SCALE
    return -u - 2 * jnp.log1p(jnp.exp(-u))


# Minima


def honest_errors(found: Iterable[np.ndarray], truth: np.ndarray) -> np.ndarray:
    """Return the honest error of each matrix of rows."""
    return np.array([match(B, truth).honest_error for B in found])


def reached(rows: Sequence[Row], run: str) -> str:
    """Whether the named run ends at the truth."""
    return one_of(next(row["honest error"] for row in rows if row["run"] == run) <= REACHED)


def draw_errors(figure: Figure, rows: Iterable[Row], curves: Curves) -> None:
    """Honest error against steps: one colour a group of runs, controls dashed."""
    axes = figure.subplots()
    groups = list(dict.fromkeys(name.partition(", run ")[0] for name in curves))
    for name, (steps, errors) in curves.items():
        group, _, run = name.partition(", run ")
        style = "--" if name.startswith("control") else "-"
        label = group if run in ("", "1") else None
        axes.plot(steps, errors, style, color=f"C{groups.index(group)}", alpha=0.8, label=label)
    axes.axhline(REACHED, color="grey", linestyle=":")
    axes.set(xlabel="steps", ylabel="honest error", ylim=(0, 1))
    axes.legend(fontsize="small")


def draw_curves(plot: str, style: str = "-", columns: int = 1, **labels: Any) -> Draw:
    """Return a drawing of all curves on axes of that kind ("loglog", "semilogy"), with labels and limits."""

    def draw(figure: Figure, rows: Sequence[Row], curves: Curves) -> None:
        axes = figure.subplots()
        for name, (x, y) in curves.items():
            getattr(axes, plot)(x, y, style, label=name)
        axes.set(**labels)
        axes.legend(fontsize="small", ncols=columns)

    return draw


# Independent cells over several processes

R = TypeVar("R")
_JOBS: ContextVar[int] = ContextVar("jobs", default=1)


@contextmanager
def workers(jobs: int) -> Iterator[None]:
    """Let ``map_cells`` use that many processes inside the block."""
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    token = _JOBS.set(jobs)
    try:
        yield
    finally:
        _JOBS.reset(token)


def map_cells(function: Callable[..., R], cells: Iterable[tuple[object, ...]]) -> list[R]:
    """[function(*cell) for each cell], in order; same answers whatever the number of processes."""
    cells = list(cells)
    jobs = min(_JOBS.get(), len(cells))
    if jobs <= 1:
        return [function(*cell) for cell in cells]
    import multiprocessing

    # Spawned, not forked: JAX holds threads. One thread each: the processes are the parallelism, and a
    # library reads its number of threads from the environment when it is loaded.
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    try:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            return pool.starmap(function, cells, chunksize=1)
    finally:
        os.environ.clear()
        os.environ.update(before)
