"""Score moments of several outputs: one set of directions behind the matrices of all of them.

T_2 of output o is sum_i w_io kappa_i a_i a_i': matrices that share their components, which two of them
determine already where one output needs a tensor of order 3. The third moment of the leading combination of
outputs, where it carries signal, joins them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.fit.problem import Problem
from onehidden.moments import score_moments
from onehidden.moments.score_protocol import Score
from onehidden.refused import Refused
from onehidden.starts.joint_diagonalisation import joint_decompose
from onehidden.starts.span import SIGNAL, leading_span

_THIRD = 64  # coordinates up to which a third moment is formed


def second_moments(problem: Problem, law: Score) -> tuple[list[Float[np.ndarray, "d d"]], list[float], float]:
    """T_2 of every output, the precision of each, and the largest signal among them."""
    found = [
        score_moments(problem.Z, y, law, orders=(1, 2), weight=problem.weight)
        for y in problem.y.reshape(problem.n, -1).T
    ]
    precision = [1 / float(np.mean(one.standard_error(2) ** 2)) for one in found]
    return [one[2] for one in found], precision, max(one.signal(2) for one in found)


def joint_span(problem: Problem, law: Score) -> tuple[Float[np.ndarray, "d k"] | None, float]:
    """The span of the units where the second moments of all outputs show it; and their largest signal."""
    tensors, precision, signal = second_moments(problem, law)
    scale = np.array(precision) / np.mean(precision)
    total = sum(c * tensor @ tensor for c, tensor in zip(scale, tensors, strict=True))
    value, vector = np.linalg.eigh(total)
    shown = leading_span(np.sqrt(np.maximum(value, 0)), vector, problem.k)
    return (None if signal < SIGNAL else shown), signal


def joint_directions(problem: Problem, law: Score, seed: int) -> Float[np.ndarray, "k d"]:
    """The directions behind the second moments of all outputs, and the third of their leading one."""
    if problem.k > problem.d:
        raise Refused(f"{problem.k} units in {problem.d} inputs: moments show at most as many as inputs")
    basis = joint_span(problem, law)[0]
    tensors, precision, signal = second_moments(problem, law)
    if signal < SIGNAL:
        raise Refused("no second moment of an output carries signal here: use start='auto'")
    if basis is not None:
        tensors = [basis.T @ tensor @ basis for tensor in tensors]
    if (problem.d if basis is None else problem.k) <= _THIRD:
        y = problem.y @ np.linalg.svd(problem.weighted(problem.y), full_matrices=False)[2][0]
        third = score_moments(problem.Z, y, law, orders=(3,), subspace=basis, weight=problem.weight)
        if third.signal(3) >= SIGNAL:
            tensors.append(third[3])
            precision.append(1 / float(np.mean(third.standard_error(3) ** 2)))
    found = joint_decompose(tensors, problem.k, seed, precisions=precision).components
    return found if basis is None else found @ basis.T
