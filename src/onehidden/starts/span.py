"""The span of the units from T_2, where it stands clear of the noise, and the moments of several outputs.

T_2 of output o is sum_i w_io kappa_i a_i a_i': matrices that share their components, which two of them
determine already where one output needs a tensor of order 3. The third moment of the leading combination of
outputs, where it carries signal, is decomposed jointly with them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.laws import standard_normal
from onehidden.laws.base import Score
from onehidden.moments import ScoreMoments, score_moments
from onehidden.refused import Refused
from onehidden.starts.input_model import input_model
from onehidden.starts.joint_diagonalisation import joint_decompose

SIGNAL = 5.0  # z-value above which an order carries signal


def law_of(problem: Problem) -> Score:
    """Return the score that moments are taken with."""
    return input_model(problem).score() or standard_normal(problem.d)


def span(problem: Problem) -> Float[np.ndarray, "d k"] | None:
    """Return the span of the units where the second moment shows it, else None."""
    if problem.form.outputs is not None:
        tensors, precision, signal = second_moments(problem, law_of(problem))
        input_model(problem).record_signal(2, signal)
        return joint_span(tensors, precision, problem.k) if signal >= SIGNAL else None
    moments = score_moments(problem.Z, problem.y, law_of(problem), orders=(1, 2), weight=problem.weight)
    return span_of_units(input_model(problem).record(moments), problem.k)


def one_output(problem: Problem, name: str) -> None:
    if problem.form.outputs is not None:
        raise Refused(f"the {name} start reads one output: with several use start='tensor' or start='auto'")


def moment_work(problem: Problem) -> float:
    """Operations of T_4 in the span of the units."""
    return 2.0 * problem.n * min(problem.k, problem.d) ** 4


def span_of_units(low: ScoreMoments, k: int) -> Float[np.ndarray, "d k"] | None:
    """(d, k) orthonormal basis of the span of the a_i, or None where T_2 does not show it clearly."""
    second = low[2]
    if k >= len(second) or low.signal(2) < SIGNAL:
        return None
    return leading_span(*np.linalg.eigh(second), k)


def leading_span(
    value: Float[np.ndarray, " d"], vector: Float[np.ndarray, "d d"], k: int
) -> Float[np.ndarray, "d k"] | None:
    """Return the k leading eigenvectors, or None where their eigenvalues do not stand clear of the next."""
    if k >= len(value):
        return None
    order = np.argsort(-np.abs(value))
    if np.abs(value[order[k - 1]]) < 2.0 * np.abs(value[order[k]]):
        return None
    return vector[:, order[:k]]


def second_moments(problem: Problem, law: Score) -> tuple[list[Float[np.ndarray, "d d"]], list[float], float]:
    """T_2 of every output, the precision of each, and the largest signal among them."""
    found = [
        score_moments(problem.Z, y, law, orders=(1, 2), weight=problem.weight)
        for y in problem.y.reshape(problem.n, -1).T
    ]
    precision = [1 / float(np.mean(one.standard_error(2) ** 2)) for one in found]
    return [one[2] for one in found], precision, max(one.signal(2) for one in found)


def joint_span(
    tensors: list[Float[np.ndarray, "d d"]], precision: list[float], k: int
) -> Float[np.ndarray, "d k"] | None:
    """Return the span of the units where these second moments together show it."""
    scale = np.array(precision) / np.mean(precision)
    total = sum(c * tensor @ tensor for c, tensor in zip(scale, tensors, strict=True))
    value, vector = np.linalg.eigh(total)
    return leading_span(np.sqrt(np.maximum(value, 0)), vector, k)


def joint_directions(problem: Problem, law: Score, seed: int) -> Float[np.ndarray, "k d"]:
    """Return the directions behind the second moments of all outputs, and the third of their leading one."""
    if problem.k > problem.d:
        raise Refused(f"{problem.k} units in {problem.d} inputs: moments show at most as many as inputs")
    tensors, precision, signal = second_moments(problem, law)
    if signal < SIGNAL:
        raise Refused("no second moment of an output carries signal here: use start='auto'")
    basis = joint_span(tensors, precision, problem.k)
    if basis is not None:
        tensors = [basis.T @ tensor @ basis for tensor in tensors]
    if (problem.d if basis is None else problem.k) <= 64:
        y = problem.y @ np.linalg.svd(problem.weighted(problem.y), full_matrices=False)[2][0]
        third = score_moments(problem.Z, y, law, orders=(3,), subspace=basis, weight=problem.weight)
        if third.signal(3) >= SIGNAL:
            tensors.append(third[3])
            precision.append(1 / float(np.mean(third.standard_error(3) ** 2)))
    found = joint_decompose(tensors, problem.k, seed, precisions=precision).components
    return found if basis is None else found @ basis.T
