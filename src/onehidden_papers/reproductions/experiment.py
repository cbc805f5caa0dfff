"""What the reproductions share: random rows, fresh samples, laws of the inputs, drawings, processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import joblib
import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import derived_seed, stream
from onehidden_papers.laws import GaussianMixture, standard_normal
from onehidden_papers.moments.passes import Control, ControlPass
from onehidden_papers.objectives import Objective
from onehidden_papers.reproductions.record import OPEN, Curves, Row, of, one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# e(Q) ≤ .1 puts every row within cosine .9 of a true row; [GLM] (4.1) reads e < 1/3 as a permutation.
REACHED = 0.1


def random_rows(count: int, k: int, d: int, seed: int, *use: str | int) -> np.ndarray:
    """(count, k, d) starts with unit rows; ``use`` names the stream."""
    seed = derived_seed(seed, "paper", *use) if use else seed
    rows = stream(seed, "paper", "random rows").standard_normal((count, k, d))
    return rows / np.linalg.norm(rows, axis=2, keepdims=True)


def rotation(d: int, seed: int, *use: str | int) -> np.ndarray:
    """Return a random orthogonal matrix; ``use`` names the stream."""
    seed = derived_seed(seed, "paper", *use) if use else seed
    return np.linalg.qr(stream(seed, "paper", "rotation").standard_normal((d, d)))[0]


# Fresh samples at every step


def fresh_sampler(
    objective: Objective, teacher: OneHiddenNet, n: int, control: int | None = None
) -> Callable[[jax.Array], Any]:
    """Return a function of a key: the source of n fresh samples, for ``lab.descents.first_order_descent``.

    With ``control`` a fixed polynomial of that degree (at most 2), fitted on a pilot batch of n samples, is
    subtracted from y. E[q(x) S_m] = 0 for q of degree < m, so the mean of a designed objective does not move
    while its variance falls several hundred-fold. None keeps raw labels, as the papers do.
    """
    fitted = None
    if control is not None:
        # The pilot batch has a stream of its own: no step ever sees its rows.
        X = stream(0, "paper", "pilot batch").standard_normal((n, teacher.n_inputs))
        fitted = _polynomial(X, teacher.predict(X), control)

    def source(key: jax.Array) -> Any:
        X = jax.random.normal(key, (n, teacher.n_inputs))
        hidden = teacher.activation.fn(X @ jnp.asarray(teacher.weights.T) + jnp.asarray(teacher.bias))
        y = hidden @ jnp.asarray(teacher.output) + teacher.intercept
        return objective.from_batch(X, y if fitted is None else jnp.asarray(fitted.residual(X, y, 3)))

    return source


def _polynomial(X: np.ndarray, y: np.ndarray, degree: int = 2) -> Control:
    """Return the least-squares polynomial of that degree, in the coordinates of X."""
    return ControlPass(standard_normal(X.shape[1]), degree, accelerator=0).update((X, y)).result()


def without_degree_two(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Residual of y after least squares on all polynomials of degree ≤ 2."""
    return np.asarray(_polynomial(X, y).residual(X, y, 3))


# Laws of the inputs that several reproductions share

LOGISTIC_SCALE = float(np.sqrt(3) / np.pi)  # of the logistic law of unit variance
SHIFT = 0.3  # Σ⟨a_i, μ⟩² = .27: every κ_i is negative, within a third of each other


def kappa_4(t: np.ndarray) -> np.ndarray:
    """E[relu''''(⟨a, x⟩)] under ½N(μ, I) + ½N(−μ, I), t = ⟨a, μ⟩: (t² − 1)φ(t)."""
    return (t**2 - 1) * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)


def mixture(d: int, shift: float = SHIFT) -> GaussianMixture:
    """½N(shift·1, I) + ½N(−shift·1, I)."""
    return GaussianMixture([0.5, 0.5], [np.full(d, shift), np.full(d, -shift)], np.eye(d))


# Minima


def honest_errors(found: Iterable[np.ndarray], truth: np.ndarray) -> np.ndarray:
    """Return the honest error of each matrix of rows."""
    return np.array([match(B, truth).honest_error for B in found])


def reached(rows: Sequence[Row], run: str) -> str:
    """Whether the named run ends at the truth."""
    return one_of(next(row["honest error"] for row in rows if row["run"] == run) <= REACHED)


def cannot_be_judged(rows: Sequence[Row]) -> str:
    """No run can decide it."""
    return OPEN


# Pictures, from stored rows and curves


def draw_curves(
    figure: Figure,
    rows: Sequence[Row],
    curves: Curves,
    plot: str = "plot",
    limit: float | None = None,
    **labels: Any,
) -> None:
    """Draw all curves: one colour for the runs of a group, controls dashed.

    ``plot`` is a method of Matplotlib axes (``"loglog"``), ``limit`` the height of a dotted line, ``labels``
    what ``axes.set`` takes.
    """
    axes = figure.subplots()
    groups = list(dict.fromkeys(name.partition(", run ")[0] for name in curves))
    for name, (x, y) in curves.items():
        group, _, run = name.partition(", run ")
        style = "--" if name.startswith("control") else "-"
        label = group if run in ("", "1") else None
        getattr(axes, plot)(x, y, style, color=f"C{groups.index(group) % 10}", label=label)
    _finish(figure, axes, limit, labels)


def draw_columns(
    figure: Figure,
    rows: Sequence[Row],
    curves: Curves,
    x: str,
    y: Sequence[str],
    group: str = "",
    only: tuple[str, object] | None = None,
    plot: str = "plot",
    style: str = "o-",
    limit: float | None = None,
    **labels: Any,
) -> None:
    """Draw columns against a column, one line for each value of the column ``group``.

    ``only`` names a column and the value that rows must have there.
    """
    axes, rows = figure.subplots(), of(rows, *only) if only else rows
    for i, value in enumerate(dict.fromkeys(row[group] if group else "" for row in rows)):
        own = [row for row in rows if not group or row[group] == value]
        for j, column in enumerate(y):
            given = [row for row in own if row[column] not in ("", "–")]
            label = ", ".join([str(value)] * bool(group) + [column] * (len(y) > 1))
            points = [row[x] for row in given], [row[column] for row in given]
            color = f"C{(i + j * (not group)) % 10}"
            getattr(axes, plot)(*points, "x:" if j else style, color=color, label=label)
    _finish(figure, axes, limit, {"xlabel": x, "ylabel": y[0], **labels})
    axes.minorticks_off()  # their labels would run into each other


def _finish(figure: Figure, axes: Axes, limit: float | None, labels: dict[str, Any]) -> None:
    """Draw limit, labels of the axes, and a legend below where lines have names."""
    if limit is not None:
        axes.axhline(limit, color="grey", linestyle=":")
    axes.set(**labels)
    if any(str(line.get_label())[:1] not in ("", "_") for line in axes.lines):
        figure.legend(loc="outside lower center", ncols=2, fontsize="xx-small")


# Independent cells over several processes

R = TypeVar("R")


def workers(jobs: int) -> AbstractContextManager[Any]:
    """Let ``map_cells`` use that many processes inside the block, each with one thread."""
    return joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1)


def map_cells(function: Callable[..., R], cells: Iterable[tuple[object, ...]]) -> list[R]:
    """[function(*cell) for each cell], in order; same answers whatever the number of processes."""
    answers: Any = joblib.Parallel()(joblib.delayed(function)(*cell) for cell in cells)
    return list(answers)
