"""What the reproductions share: fresh samples, minima of an objective, moments of many samples, processes."""

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

from onehidden.laws import GaussianMixture, Law
from onehidden.machine import in_double
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.streams import derived_seed, stream
from onehidden_papers.lab.descents import saddle_free_newton
from onehidden_papers.objectives import Objective
from onehidden_papers.reproductions.record import FAILED, OPEN, REPRODUCED, Curves, Row, of, one_of

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


def gaussian(key: jax.Array, n: int, d: int) -> jax.Array:
    """Rows of N(0, I)."""
    return jax.random.normal(key, (n, d))


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
    law: Callable[[jax.Array, int, int], jax.Array] = gaussian
    control: int | None = None
    _polynomial: tuple[Any, ...] = field(init=False, repr=False)

    @in_double
    def __post_init__(self) -> None:
        polynomial: tuple[Any, ...] = ()
        if self.control is not None:
            # The pilot batch has a stream of its own: no step ever sees its rows.
            key = jax.random.key(derived_seed(0, "paper", "pilot batch"))
            X = np.asarray(self.law(key, self.n, self.teacher.n_inputs))
            polynomial = _hermite_fit(X, self.teacher.predict(X), self.control)
        object.__setattr__(self, "_polynomial", polynomial)

    def batch(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """One batch (X, y), traceable."""
        net = self.teacher
        X = self.law(key, self.n, net.n_inputs)
        hidden = net.activation.fn(X @ jnp.asarray(net.weights.T) + jnp.asarray(net.bias))
        y = hidden @ jnp.asarray(net.output) + net.intercept
        if self._polynomial:
            constant, linear, quadratic = self._polynomial
            y = y - constant - X @ jnp.asarray(linear) - jnp.sum((X @ jnp.asarray(quadratic)) * X, axis=1)
        return X, y

    def __call__(self, key: jax.Array) -> Any:
        return self.objective.from_batch(*self.batch(key))


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
        left = y - constant - X @ linear - np.sum((X @ quadratic) * X, axis=1)
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


def minima(objective: Objective, first: np.ndarray, data: object, steps: int = 1000) -> np.ndarray:
    """Where second-order steps end that leave saddles: one minimum for each start."""
    source = objective.prepare(data)
    return saddle_free_newton(objective.function, first, source, steps=steps, radius=0.2).params


def honest_errors(found: Iterable[np.ndarray], truth: np.ndarray) -> np.ndarray:
    """Return the honest error of each matrix of rows."""
    return np.array([match(B, truth).honest_error for B in found])


def fourth_moment(law: Law, teacher: OneHiddenNet, n: int, seed: int) -> np.ndarray:
    """Mean of y S_4(x) over n fresh samples, block by block."""
    total, block = np.zeros((teacher.n_inputs,) * 4), 1 << 15
    for begin in range(0, n, block):
        X = law.sample(min(block, n - begin), derived_seed(seed, "block", begin))
        total += np.tensordot(teacher.predict(X), law.score(X, 4), 1)
    return total / n


def judge_by_size(rows: Iterable[Row], reached: str, tries: str) -> str:
    """All minima near the truth at the largest N, and nearer than at the smallest.

    It cannot be judged when errors fall and are not there yet: the theorems do not state their polynomial.
    """
    ordered = sorted(rows, key=lambda row: row["N"])
    first, last = ordered[0], ordered[-1]
    if last["worst honest error"] >= first["worst honest error"]:
        return FAILED
    return REPRODUCED if last[reached] == last[tries] else OPEN


def judge_rates(rows: Sequence[Row]) -> str:
    """No cell clearly below its reported rate: both rates are shares of few trials."""
    return one_of(all(not below(row) for row in rows if row["reported"] != "–"))


def below(row: Row, reported_trials: int = 10) -> bool:
    """Whether ours lies more than three standard errors of the difference below the reported rate."""
    known, ours, trials = float(row["reported"]), float(row["ours"]), int(row["trials"])
    share = (known * reported_trials + ours * trials) / (reported_trials + trials)
    error = np.sqrt(share * (1 - share) * (1 / reported_trials + 1 / trials))
    return ours < known - 3 * error


def reached(rows: Sequence[Row], *runs: str) -> str:
    """Whether every named run ends at the truth."""
    found = {row["run"]: row["honest error"] for row in rows}
    return one_of(all(found[run] <= REACHED for run in runs))


# Formulas against Monte Carlo

COMPARED = ("formula", "value", "Monte Carlo", "standard error", "deviation in standard errors")
DEVIATION, LIMIT = COMPARED[-1], 4.0  # four standard errors: a true formula fails once in 16 000


def compared(formula: str, value: float, mean: float, error: float) -> tuple[object, ...]:
    """Return the row of a formula beside the Monte Carlo mean."""
    return formula, value, mean, error, abs(value - mean) / error


def agree(formula: str, rows: Sequence[Row]) -> str:
    """Ask for the formula within four standard errors of Monte Carlo, every control outside."""
    (own,) = of(rows, "formula", formula)
    controls = [row for row in rows if row["formula"].startswith("control")]
    return one_of(own[DEVIATION] <= LIMIT and all(row[DEVIATION] > LIMIT for row in controls))


def draw_deviations(figure: Figure, rows: Iterable[Row], curves: Curves) -> None:
    """Deviations of formulas from Monte Carlo, one bar each."""
    axes, rows = figure.subplots(), list(rows)
    colours = ["C2" if row[DEVIATION] <= LIMIT else "C3" for row in rows]
    axes.barh([row["formula"] for row in rows], [row[DEVIATION] for row in rows], color=colours)
    axes.axvline(LIMIT, color="grey", linestyle=":")
    axes.set(xlabel="deviation from Monte Carlo, standard errors", xscale="symlog")


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
