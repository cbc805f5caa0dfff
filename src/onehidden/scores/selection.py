"""Which estimator for this sample? Held-out score matching decides, and says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.laws.base import ScoreFunction
from onehidden.refused import Refused
from onehidden.scores.independent import IndependentScore
from onehidden.scores.local_likelihood import LocalLikelihood
from onehidden.scores.sample import check_sample
from onehidden.scores.structured import GaussianScore, KernelDensityScore, MixtureScore
from onehidden.streams import stream

# From simple to rich: a richer estimator must win by more than its standard error.
CANDIDATES: dict[str, Callable[[int], Any]] = {
    "gaussian": lambda seed: GaussianScore("auto"),
    "mixture": lambda seed: MixtureScore(seed=seed),
    "independent": lambda seed: IndependentScore(seed=seed),
    "local likelihood": lambda seed: LocalLikelihood(seed=seed),
    "kernel density": lambda seed: KernelDensityScore(seed=seed),
}
_SCORED = 2000


@dataclass(frozen=True)
class Candidate:
    """One line of the comparison.

    Attributes
    ----------
    name : of the estimator.
    loss : held-out E[½|∇log f̂|² + Δlog f̂]; lower is better, minus half the Fisher information at best.
    standard_error : of its difference from the lowest loss.
    reason : why it was taken or passed over.
    """

    name: str
    loss: float
    standard_error: float
    reason: str


def score_matching(score: ScoreFunction, X: npt.ArrayLike) -> Float[np.ndarray, " n"]:
    """Hyvärinen's ½|∇log f|² + Δlog f at each row, (n,): its mean needs no normalising constant."""
    first = score.score(X, 1)
    return 0.5 * np.sum(first**2, axis=1) + score.laplacian(X)


def select(X: npt.ArrayLike, *, candidates: Iterable[str] | None = None, seed: int = 0) -> ScoreFunction:
    """The estimator of lowest held-out score matching, refitted to all of X.

    A third of the rows is held out. Losses are compared in standardised columns, so units do not matter;
    among those within one standard error of the lowest the simplest is taken. The choice is explained in
    ``.selection``, a tuple of ``Candidate``, and ``.reason``.

    Parameters
    ----------
    X : (n, d) samples.
    candidates : names of ``CANDIDATES``; all but kernel density when None.
    """
    X = check_sample(X)
    n, d = X.shape
    names = (
        [name for name in CANDIDATES if name != "kernel density"] if candidates is None else list(candidates)
    )
    unknown = [name for name in names if name not in CANDIDATES]
    if unknown or not names:
        raise ValueError(f"candidates must be among {', '.join(CANDIDATES)}, got {candidates}")
    scaled = _without_ties((X - X.mean(axis=0)) / X.std(axis=0), seed)
    order = stream(seed, "scores", "held out").permutation(n)
    held = order[: max(1, min(n // 3, _SCORED))]
    train = order[len(held) :]
    if len(train) < d + 2:
        raise Refused(f"select needs at least {(3 * (d + 2)) // 2 + 1} rows for {d} inputs, got {n}")
    losses = {}
    for name in names:
        fitted = CANDIDATES[name](seed).fit(scaled[train])
        losses[name] = score_matching(fitted, scaled[held])
    chosen, table = _judge(names, losses)
    result = CANDIDATES[chosen](seed).fit(X)
    result.selection = table
    result.reason = next(line.reason for line in table if line.name == chosen)
    return result


def _without_ties(X: Float[np.ndarray, "n d"], seed: int) -> Float[np.ndarray, "n d"]:
    """Rounded columns blurred over their grid: a density that sits on ties has an unbounded loss."""
    X = X.copy()
    rng = stream(seed, "scores", "blur")
    for column in X.T:
        values = np.unique(column)
        if len(values) < len(column) / 2:
            spacing = float(np.median(np.diff(values)))
            column += spacing * rng.uniform(-0.5, 0.5, len(column))
    return X


def _judge(names: list[str], losses: dict[str, np.ndarray]) -> tuple[str, tuple[Candidate, ...]]:
    """The simplest name within one standard error of the lowest mean loss, and the table."""
    lowest = min(names, key=lambda name: float(np.mean(losses[name])))
    error = {
        name: float(np.std(losses[name] - losses[lowest])) / np.sqrt(len(losses[name])) for name in names
    }
    gap = {name: float(np.mean(losses[name] - losses[lowest])) for name in names}
    chosen = next(name for name in names if gap[name] <= error[name])
    table = []
    for name in names:
        if name == chosen:
            reason = (
                "lowest held-out score matching"
                if name == lowest
                else f"simplest within one standard error of {lowest} ({gap[name]:.3g} ± {error[name]:.3g})"
            )
        elif gap[name] <= error[name]:
            reason = "no better than a simpler one within its standard error"
        else:
            reason = f"higher loss by {gap[name]:.3g} ± {error[name]:.3g}"
        table.append(Candidate(name, float(np.mean(losses[name])), error[name], reason))
    return chosen, tuple(table)
