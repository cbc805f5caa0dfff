"""Repair: keep the good units of a stalled candidate, drop the least useful, search again in the residual."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import (
    Candidate,
    complete,
    least_squares_columns,
    refine,
    rows_to_choose,
    search_form,
    unit_columns,
)
from onehidden.starts.start import descent_work

_PROPOSALS = 200
# Every unit is repaired three times where all that takes no more operations than this, a minute on a core;
# else six of them: what a few repairs do not mend, another start does sooner (d = k = 20, n = 10 000, noise
# .3: sixty repairs of the first restart took ten minutes, the whole recovery now takes 34 s).
_REPAIRS, _FEWEST = 1e12, 6
_WORTH = 1e-3  # a repair that lowers the loss by a smaller share is none
# Entries of the columns of proposals held at a time. The 252 on 20 000 rows, symmetrised ReLU, d = 2: all at
# once took 155 MiB and .11 s, blocks of so many entries 9 MiB and .06 s (of twice as many .19 s).
_ENTRIES = 1 << 18


def rounds(problem: Problem) -> int:
    """How many repairs a candidate is worth."""
    return min(3 * problem.k, max(_FEWEST, int(_REPAIRS / descent_work(problem))))


def repaired(problem: Problem, candidate: Candidate, run: Run) -> Candidate:
    """The candidate with units replaced one at a time, as long as that lowers the loss.

    A stalled descent has most units right and two sharing one direction, or one lost. Each round drops a
    unit, the cheapest first, and puts in its place the direction that explains most of what is then left:
    the best of random ones and of the leading eigenvectors of E[r (z z' - I)].
    """
    form = search_form(problem)
    best, victim = candidate, 0
    for turn in range(rounds(problem)):
        if problem.rows.rounding.found(best.loss) or run.expired():
            break
        weights, bias = best.weights, best.bias
        dropped = units_by_cost(problem, form, weights, bias)[victim % problem.k]
        kept = np.delete(np.arange(problem.k), dropped)
        row, offset = best_addition(problem, form, weights[kept], bias[kept], run.rng("repair", turn))
        theta = complete(problem, form, np.vstack([weights[kept], row]), np.append(bias[kept], offset))
        tried = refine(problem, form, theta, run.at("repair", turn), candidate.origin)
        if tried.loss < (1 - _WORTH) * best.loss:
            best, victim = tried, 0
        else:
            victim += 1
    return best


def with_one_more(problem: Problem, candidate: Candidate, run: Run) -> Candidate:
    """The candidate with the unit added that explains most of its residual, refined: k + 1 units."""
    form, wider = search_form(problem), problem.with_width(problem.k + 1)
    row, offset = best_addition(
        problem, form, candidate.weights, candidate.bias, run.rng("one unit more", problem.k)
    )
    weights, bias = np.vstack([candidate.weights, row]), np.append(candidate.bias, offset)
    form = search_form(wider)
    return refine(wider, form, complete(wider, form, weights, bias), run, "one unit more")


def with_one_fewer(problem: Problem, candidate: Candidate, run: Run) -> Candidate:
    """The candidate without its least useful unit, refined: k - 1 units."""
    dropped = units_by_cost(problem, search_form(problem), candidate.weights, candidate.bias)[0]
    kept = np.delete(np.arange(problem.k), dropped)
    narrower = problem.with_width(problem.k - 1)
    form = search_form(narrower)
    start = complete(narrower, form, candidate.weights[kept], candidate.bias[kept])
    return refine(narrower, form, start, run, "one unit fewer")


def units_by_cost(
    problem: Problem, form: Form, weights: Float[np.ndarray, "k d"], bias: Float[np.ndarray, " k"]
) -> np.ndarray:
    """Units by how little the least-squares fit misses them: |coef_i|^2 / (G^-1)_ii, smallest first."""
    design = least_squares_columns(problem, form, weights, bias)
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] *= 1 + 1e-10
    inverse = np.linalg.pinv(gram, hermitian=True)
    coefficient = inverse @ (design.T @ problem.weighted(problem.y))
    k = len(weights)
    size = np.sum(coefficient[:k].reshape(k, -1) ** 2, axis=1)
    return np.argsort(size / np.maximum(np.diag(inverse)[:k], np.finfo(float).tiny))


def best_addition(
    problem: Problem,
    form: Form,
    weights: Float[np.ndarray, "k d"],
    bias: Float[np.ndarray, " k"],
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, " d"], float]:
    """The proposed unit whose addition lowers the residual sum of squares most."""
    problem = rows_to_choose(problem)
    basis = np.linalg.qr(least_squares_columns(problem, form, weights, bias))[0]
    y = problem.weighted(problem.y)
    residual = y - basis @ (basis.T @ y)
    value, vector = leading_second(problem, residual)
    leading = vector[:, np.argsort(-np.abs(value))[:8]].T
    mixed = rng.standard_normal((_PROPOSALS // 4, len(leading))) @ leading
    proposals = np.vstack([leading, mixed, rng.standard_normal((_PROPOSALS, problem.d))])
    proposals /= np.linalg.norm(proposals, axis=1, keepdims=True)
    offsets = 0.7 * rng.standard_normal(len(proposals)) * problem.bias
    if not (form.symmetrised or problem.activation.sign_free):  # orientation matters: try both
        proposals, offsets = np.vstack([proposals, -proposals]), np.append(offsets, -offsets)
    count = max(1, _ENTRIES // problem.n)
    parts = [slice(at, at + count) for at in range(0, len(proposals), count)]
    gain = [_gains(problem, form, proposals[some], offsets[some], basis, residual) for some in parts]
    best = int(np.argmax(np.concatenate(gain)))
    return proposals[best], float(offsets[best])


def _gains(
    problem: Problem,
    form: Form,
    weights: Float[np.ndarray, "m d"],
    bias: Float[np.ndarray, " m"],
    basis: Float[np.ndarray, "n l"],
    residual: Float[np.ndarray, "n ..."],
) -> Float[np.ndarray, " m"]:
    """By how much each unit, added to the orthonormal columns of a basis, lowers the sum of squares."""
    columns = problem.weighted(unit_columns(form, problem.Z, weights, bias))
    columns = columns - basis @ (basis.T @ columns)
    along = np.sum((columns.T @ residual).reshape(columns.shape[1], -1) ** 2, axis=1)
    return along / np.maximum(np.sum(columns**2, axis=0), 1e-12 * len(residual))


def leading_second(
    problem: Problem, residual: Float[np.ndarray, "n ..."]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "d m"]]:
    """Eigenvalues and eigenvectors of E[r (z z' - I)] for weighted residuals r, of every output."""
    rest, Z = problem.weighted(residual).reshape(problem.n, -1), problem.Z
    found = [np.linalg.eigh((Z * r[:, None]).T @ Z / len(r) - np.mean(r) * np.eye(problem.d)) for r in rest.T]
    return np.concatenate([value for value, _ in found]), np.hstack([vector for _, vector in found])
