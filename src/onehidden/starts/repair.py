"""Units of a candidate replaced, added and left out: repairs, and backward elimination by least squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from onehidden import machine
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import (
    Candidate,
    Vector,
    Weights,
    descent_work,
    least_squares_columns,
    refine,
    rows_to_choose,
    search_form,
)


def repaired(problem: Problem, candidate: Candidate, run: Run) -> Candidate:
    """Return the candidate with units replaced one at a time, while that lowers the loss by a thousandth.

    A stalled descent has most units right and two sharing one direction, or one lost. Each round drops a
    unit, the cheapest first, and puts in its place the direction that explains most of what is then left:
    the best of random ones and of the leading eigenvectors of E[r (z z' - I)].
    """
    if problem.form.labelled:
        return moved(problem, candidate, run)
    best, rank = candidate, 0
    # Three repairs a unit, or six where these take more than a minute.
    rounds = min(3 * problem.k, max(6, int(machine.NOMINAL * 50 / descent_work(problem))))
    for number in range(rounds):
        if problem.rows.rounding.found(best.loss) or run.expired():
            break
        weights, bias = best.network.weights, best.network.bias
        kept = np.delete(np.arange(problem.k), units_by_cost(problem, weights, bias)[rank % problem.k])
        planes = with_best_addition(problem, weights[kept], bias[kept], run.rng("repair", number))
        tried = refine(problem, *planes, run.at("repair", number), candidate.origin)
        best, rank = (tried, 0) if tried.loss < (1 - 1e-3) * best.loss else (best, rank + 1)
    if best is candidate:
        return candidate
    return replace(best, overparameterised=candidate.overparameterised, number=candidate.number)


def moved(problem: Problem, candidate: Candidate, run: Run) -> Candidate:
    """Return the candidate after the best moves of its structure, while they lower the loss by a thousandth.

    One filter at many places: of 36 descents from 190 rows for 126 parameters none found it, with moves
    six.
    """
    best, number = candidate, 0
    while not (problem.rows.rounding.found(best.loss) or run.expired()):
        starts = enumerate(problem.form.moves(best.network.weights))
        here, bias = run.at("move", number), best.network.bias
        tried = [refine(problem, one, bias, here.at(i), candidate.origin) for i, one in starts]
        lowest = min(tried, key=lambda one: one.loss, default=best)
        if not lowest.loss < (1 - 1e-3) * best.loss:
            break
        best, number = lowest, number + 1
    return replace(best, number=candidate.number)


def with_one_fewer(problem: Problem, net: OneHiddenNet, run: Run) -> Candidate:
    """Return a network without its least useful unit, refined: k - 1 units."""
    kept = np.sort(units_by_cost(problem, net.weights, net.bias)[1:])
    return refine(problem, net.weights[kept], net.bias[kept], run, "one unit fewer")


def with_best_addition(
    problem: Problem,
    weights: Weights,
    bias: Vector,
    rng: np.random.Generator,
    count: int = 200,
    entries: int = 1 << 18,
) -> tuple[Weights, Vector]:
    """Return the hyperplanes with the proposed one more that lowers the residual sum of squares most.

    ``count`` of the proposals are random directions; columns of ``entries`` numbers are held at a time.
    """
    problem, form = rows_to_choose(problem), search_form(problem)
    basis = np.linalg.qr(least_squares_columns(problem, weights, bias))[0]
    y = problem.weighted(problem.y)
    residual = y - basis @ (basis.T @ y)
    value, vector = leading_second(problem, residual)
    leading = vector[:, np.argsort(-np.abs(value))[:8]].T
    mixed = rng.standard_normal((count // 4, len(leading))) @ leading
    proposals = np.vstack([leading, mixed, rng.standard_normal((count, problem.d))])
    proposals /= np.linalg.norm(proposals, axis=1, keepdims=True)
    offsets = 0.7 * rng.standard_normal(len(proposals)) * problem.bias
    if not (form.symmetrised or problem.activation.sign_free):  # orientation matters: try both
        proposals, offsets = np.vstack([proposals, -proposals]), np.append(offsets, -offsets)
    gains, block = list[np.ndarray](), max(1, entries // problem.n)
    for at in range(0, len(proposals), block):
        some = slice(at, at + block)
        columns = problem.weighted(form.g(problem.Z @ proposals[some].T + offsets[some]))
        columns = columns - basis @ (basis.T @ columns)
        along = np.sum((columns.T @ residual).reshape(columns.shape[1], -1) ** 2, axis=1)
        gains.append(along / np.maximum(np.sum(columns**2, axis=0), 1e-12 * len(residual)))
    best = int(np.argmax(np.concatenate(gains)))
    return np.vstack([weights, proposals[best]]), np.append(bias, offsets[best])


def leading_second(
    problem: Problem, residual: Float[np.ndarray, "n ..."]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "d m"]]:
    """Eigenvalues and eigenvectors of E[r (z z' - I)] for weighted residuals r, of every output."""
    rest, Z = problem.weighted(residual).reshape(problem.n, -1), problem.Z
    found = [np.linalg.eigh((Z * r[:, None]).T @ Z / len(r) - np.mean(r) * np.eye(problem.d)) for r in rest.T]
    return np.concatenate([value for value, _ in found]), np.hstack([vector for _, vector in found])


def best_units(problem: Problem, weights: Weights, bias: Vector, keep: int) -> Int[np.ndarray, " keep"]:
    """Indices of the units, of those with these hyperplanes, that backward elimination keeps."""
    return eliminate(*_columns(rows_to_choose(problem), weights, bias), keep)[0]


def best_losses(problem: Problem, weights: Weights, bias: Vector, most: int) -> Float[np.ndarray, " most"]:
    """Mean squared residual with 1, 2, ..., ``most`` units left by backward elimination."""
    return eliminate(*_columns(problem, weights, bias), 1)[1][::-1][:most]


def units_by_cost(problem: Problem, weights: Weights, bias: Vector) -> Int[np.ndarray, " k"]:
    """Units by what dropping each one alone adds to the loss, smallest first."""
    units, always, y = _columns(problem, weights, bias)
    inverse, coefficient, _ = _solved(units, always, y)
    return np.argsort(_costs(inverse, coefficient, always.shape[1]))


def eliminate(
    features: Float[np.ndarray, "n M"],
    always: Float[np.ndarray, "n m"],
    y: Float[np.ndarray, "n ..."],
    keep: int,
) -> tuple[Int[np.ndarray, " keep"], Float[np.ndarray, " drops"]]:
    """Drop feature columns, the one that adds least to the loss at each step, until ``keep`` are left.

    Returned are their indices, and the mean squared residual before any drop and after each. Dropping column
    i from a least-squares fit adds |coef_i|^2 / (G^-1)_ii, with G the Gram matrix of all columns. The columns
    of ``always`` stay in the fit.
    """
    inverse, coefficient, square = _solved(features, always, y)
    squares, fixed = [square], always.shape[1]
    alive = np.arange(len(inverse))
    while len(alive) - fixed > keep:
        costs = _costs(inverse, coefficient, fixed)
        drop = fixed + int(np.argmin(costs))
        squares.append(squares[-1] + float(costs[drop - fixed]))
        column, pivot = inverse[:, drop], inverse[drop, drop]
        coefficient = np.delete(coefficient - np.outer(column, coefficient[drop] / pivot), drop, 0)
        inverse = inverse - np.outer(column, column) / pivot
        inverse = np.delete(np.delete(inverse, drop, 0), drop, 1)
        alive = np.delete(alive, drop)
    return alive[fixed:] - fixed, np.array(squares) / y.size


def _columns(
    problem: Problem, weights: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weighted columns of the units, fixed columns and target."""
    columns, k = least_squares_columns(problem, weights, bias), len(weights)
    return columns[:, :k], columns[:, k:], problem.weighted(problem.y)


def _solved(features: np.ndarray, always: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """G^-1 and coefficients of columns of length one, the fixed ones first; the sum of squares left."""
    design = np.column_stack([always, features])
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0] = 1.0
    design = design / scale
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += 1e-10  # duplicates are among the columns to drop
    inverse = np.linalg.inv(gram)
    y = y.reshape(len(y), -1)
    coefficient = inverse @ (design.T @ y)
    return inverse, coefficient, float(np.sum((y - design @ coefficient) ** 2))


def _costs(inverse: np.ndarray, coefficient: np.ndarray, fixed: int) -> np.ndarray:
    return np.sum(coefficient[fixed:] ** 2, axis=1) / np.diag(inverse)[fixed:]
