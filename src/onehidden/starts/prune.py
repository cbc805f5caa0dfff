"""From a wide student to k units: merge parallel ones, then drop the cheapest by least squares."""

from __future__ import annotations

import numpy as np


def merge_parallel(
    weights: np.ndarray,
    bias: np.ndarray,
    amplitude: np.ndarray,
    up_to_sign: bool,
    parity: float = 1.0,
    cosine: float = 0.95,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Average units that point the same way, strongest first.

    Parameters
    ----------
    weights, bias : (M, d), (M,) hyperplanes.
    amplitude : (M,) signed strength of each unit, or (M, q) of its outputs; only like-signed units merge.
    up_to_sign : whether a unit and its reverse count as parallel.
    parity : of g under that reversal: -1 where the reverse of a unit is the unit with its output turned.
    cosine : of the (weights, bias) vectors, above which units merge.

    Returns
    -------
    weights, bias of the merged hyperplanes, with the norms of the average; and their summed amplitudes.
    """
    planes = np.column_stack([weights, bias])
    norm = np.linalg.norm(planes, axis=1)
    unit = planes / np.maximum(norm, 1e-300)[:, None]
    strong = amplitude.reshape(len(amplitude), -1)
    strength = np.linalg.norm(strong, axis=1)
    free = strength > 1e-4 * np.max(strength, initial=0.0)
    merged, total = [], []
    for i in np.argsort(-strength):
        if not free[i]:
            continue
        similarity = unit @ unit[i]
        near = free & ((np.abs(similarity) if up_to_sign else similarity) > cosine)
        turned = np.where(((similarity < 0) & up_to_sign)[:, None], parity * strong, strong)
        near &= turned @ strong[i] > 0
        free &= ~near
        share = strength[near] / strength[near].sum()
        sign = np.sign(similarity[near]) if up_to_sign else 1.0
        merged.append((share * sign) @ planes[near])
        total.append(np.sum(turned[near], axis=0))
    result = np.array(merged).reshape(-1, planes.shape[1])
    return result[:, :-1], result[:, -1], np.array(total).reshape(-1, *amplitude.shape[1:])


def eliminate_backwards(features: np.ndarray, always: np.ndarray, y: np.ndarray, keep: int) -> np.ndarray:
    """Indices of ``keep`` feature columns, dropping one at a time the one the fit misses least.

    The cost of dropping column i from a least-squares fit is |coef_i|^2 / (G^-1)_ii with G the Gram matrix
    of all columns; the columns of ``always`` stay in the fit throughout. ``y`` is (n,) or (n, q).
    """
    return _path(features, always, y, keep)[0]


def elimination_losses(features: np.ndarray, always: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    """Mean squared residual of the least-squares fit with 1, 2, …, ``most`` columns left on the path."""
    losses = _path(features, always, y, 1)[1]
    return losses[::-1][:most]


def _path(
    features: np.ndarray, always: np.ndarray, y: np.ndarray, keep: int
) -> tuple[np.ndarray, np.ndarray]:
    """Columns left at the end, and the loss after each drop (the first entry: before any)."""
    design = np.column_stack([always, features])
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0] = 1.0
    design = design / scale
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += 1e-10  # duplicates are what we came to drop
    inverse = np.linalg.inv(gram)
    y = y.reshape(len(y), -1)
    coefficient = inverse @ (design.T @ y)
    squares = [float(np.sum((y - design @ coefficient) ** 2))]
    fixed = always.shape[1]
    alive = np.arange(design.shape[1])
    while len(alive) - fixed > keep:
        cost = np.sum(coefficient[fixed:] ** 2, axis=1) / np.diag(inverse)[fixed:]
        drop = fixed + int(np.argmin(cost))
        squares.append(squares[-1] + float(cost[drop - fixed]))
        column, pivot = inverse[:, drop], inverse[drop, drop]
        coefficient = np.delete(coefficient - np.outer(column, coefficient[drop] / pivot), drop, 0)
        inverse = inverse - np.outer(column, column) / pivot
        inverse = np.delete(np.delete(inverse, drop, 0), drop, 1)
        alive = np.delete(alive, drop)
    return alive[fixed:] - fixed, np.array(squares) / y.size
