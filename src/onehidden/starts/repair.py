"""Repair: keep the good units of a stalled candidate, drop the least useful, search again in the residual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.objectives.residuals import Form
from onehidden.starts.candidate import (
    Candidate,
    Task,
    complete,
    least_squares_columns,
    refine,
    search_form,
    unit_columns,
)

_PROPOSALS = 200
_WORTH = 1e-3  # a repair that lowers the loss by a smaller share is none


def repaired(task: Task, candidate: Candidate, rounds: int, good: float = 1e-20) -> Candidate:
    """The candidate with units replaced one at a time, as long as that lowers the loss.

    A stalled descent has most units right and two sharing one direction, or one lost. Each round drops a
    unit, the cheapest first, and puts in its place the direction that explains most of what is then left:
    the best of random ones and of the leading eigenvectors of E[r (z z' - I)].
    """
    form = search_form(task.activation, task.d, task.k, task.bias)
    best, victim = candidate, 0
    for turn in range(rounds):
        if best.loss <= good or task.stop():
            break
        rng = np.random.default_rng([task.seed, turn, 7])
        weights, bias = best.weights, best.bias
        dropped = _by_cost(task, form, weights, bias)[victim % task.k]
        kept = np.delete(np.arange(task.k), dropped)
        row, offset = _best_addition(task, form, weights[kept], bias[kept], rng)
        tried = refine(
            task,
            form,
            complete(task, form, np.vstack([weights[kept], row]), np.append(bias[kept], offset)),
            candidate.origin,
        )
        if tried.loss < (1 - _WORTH) * best.loss:
            best, victim = tried, 0
        else:
            victim += 1
    return best


def with_one_more(task: Task, candidate: Candidate) -> Candidate:
    """The candidate with the unit added that explains most of its residual, refined: k + 1 units."""
    wider = replace(task, k=task.k + 1)
    form = search_form(task.activation, task.d, task.k, task.bias)
    rng = np.random.default_rng([task.seed, 11])
    row, offset = _best_addition(task, form, candidate.weights, candidate.bias, rng)
    weights, bias = np.vstack([candidate.weights, row]), np.append(candidate.bias, offset)
    form = search_form(task.activation, task.d, wider.k, task.bias)
    return refine(wider, form, complete(wider, form, weights, bias), "one unit more")


def with_one_fewer(task: Task, candidate: Candidate) -> Candidate:
    """The candidate without its least useful unit, refined: k - 1 units."""
    form = search_form(task.activation, task.d, task.k, task.bias)
    dropped = _by_cost(task, form, candidate.weights, candidate.bias)[0]
    kept = np.delete(np.arange(task.k), dropped)
    narrower = replace(task, k=task.k - 1)
    form = search_form(task.activation, task.d, narrower.k, task.bias)
    start = complete(narrower, form, candidate.weights[kept], candidate.bias[kept])
    return refine(narrower, form, start, "one unit fewer")


def _by_cost(task: Task, form: Form, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Units by how little the least-squares fit misses them: coef_i^2 / (G^-1)_ii, smallest first."""
    design = least_squares_columns(task, form, weights, bias)
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] *= 1 + 1e-10
    inverse = np.linalg.pinv(gram, hermitian=True)
    coefficient = inverse @ (design.T @ task.weighted(task.y))
    k = len(weights)
    return np.argsort(coefficient[:k] ** 2 / np.maximum(np.diag(inverse)[:k], np.finfo(float).tiny))


def _best_addition(
    task: Task, form: Form, weights: np.ndarray, bias: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """The proposed unit whose addition lowers the residual sum of squares most."""
    basis = np.linalg.qr(least_squares_columns(task, form, weights, bias))[0]
    y = task.weighted(task.y)
    residual = y - basis @ (basis.T @ y)
    second = (task.Z * task.weighted(residual)[:, None]).T @ task.Z / len(residual)
    value, vector = np.linalg.eigh(second - np.mean(residual) * np.eye(task.d))
    leading = vector[:, np.argsort(-np.abs(value))[:8]].T
    mixed = rng.standard_normal((_PROPOSALS // 4, len(leading))) @ leading
    proposals = np.vstack([leading, mixed, rng.standard_normal((_PROPOSALS, task.d))])
    proposals /= np.linalg.norm(proposals, axis=1, keepdims=True)
    offsets = 0.7 * rng.standard_normal(len(proposals)) * task.bias
    if not (form.symmetrised or task.activation.sign_free):  # orientation matters: try both
        proposals, offsets = np.vstack([proposals, -proposals]), np.append(offsets, -offsets)
    columns = task.weighted(unit_columns(form, task.Z, proposals, offsets))
    columns = columns - basis @ (basis.T @ columns)
    gain = (columns.T @ residual) ** 2 / np.maximum(np.sum(columns**2, axis=0), 1e-12 * len(residual))
    best = int(np.argmax(gain))
    return proposals[best], float(offsets[best])
