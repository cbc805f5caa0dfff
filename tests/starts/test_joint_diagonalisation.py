"""Laws of the symmetric decomposition: exact tensors, signs, noise, several tensors with one set of rows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from onehidden.refused import Refused
from onehidden_papers.starts.joint_diagonalisation import joint_decompose

EXACT = 1e-8


def decompose(tensor, rank, seed=0):
    """One tensor."""
    return joint_decompose([tensor], [1.0], rank, seed)


def rows(k: int, side: int, condition: float, random: np.random.Generator) -> np.ndarray:
    while True:
        left = np.linalg.qr(random.standard_normal((k, k)))[0]
        right = np.linalg.qr(random.standard_normal((side, side)))[0][:k]
        U = left @ np.diag(np.geomspace(1, 1 / condition, k)) @ right
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        if np.linalg.cond(U) <= condition:
            return U


def tensor(U: np.ndarray, w: np.ndarray, order: int) -> np.ndarray:
    power = U
    for _ in range(order - 2):
        power = (power[:, :, None] * U[:, None, :]).reshape(len(U), -1)
    return ((power * w[:, None]).T @ U).reshape((U.shape[1],) * order)


def signed(k: int, random: np.random.Generator) -> np.ndarray:
    return random.choice([-1.0, 1.0], k) * random.uniform(0.5, 2, k)


def worst(found: np.ndarray, true: np.ndarray) -> float:
    Q = found @ true.T
    i, j = linear_sum_assignment(-np.abs(Q))
    return float(np.max(np.abs(found[i] * np.sign(Q[i, j])[:, None] - true[j])))


@pytest.mark.parametrize(("order", "k", "trials"), [(3, 5, 5), (3, 30, 2), (4, 5, 5), (4, 20, 1)])
def test_exact_tensors_give_their_components(order, k, trials):
    for seed in range(trials):
        random = np.random.default_rng(seed)
        U, w = rows(k, k, 10.0, random), signed(k, random)
        found = decompose(tensor(U, w, order), k, seed=seed)
        assert worst(found, U) < EXACT
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-14)
        # what must fail: random rows, and the true rows of another problem
        assert worst(rows(k, k, 10.0, random), U) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 10, 20, 30])
def test_fifty_of_fifty_exact_tensors(k):
    for seed in range(50):
        random = np.random.default_rng(seed)
        U, w = rows(k, k, 10.0, random), signed(k, random)
        assert worst(decompose(tensor(U, w, 3), k, seed=seed), U) < EXACT


def test_rank_below_the_side():
    random = np.random.default_rng(5)
    U, w = rows(4, 9, 10.0, random), signed(4, random)
    assert worst(decompose(tensor(U, w, 3), 4), U) < EXACT


def test_error_is_proportional_to_the_noise():
    random = np.random.default_rng(6)
    U, w = rows(8, 8, 5.0, random), signed(8, random)
    T, raw = tensor(U, w, 3), random.standard_normal((8, 8, 8))
    raw = sum(raw.transpose(axes) for axes in permutations(range(3)))
    errors = [worst(decompose(T + s * raw, 8), U) for s in (1e-6, 1e-4)]
    # First-order perturbation: a hundred times the noise, a hundred times the error.
    assert 80 < errors[1] / errors[0] < 120
    assert errors[0] > 1e-9  # an answer that ignored the noise would have copied the truth


def test_matrices_alone_determine_shared_directions():
    random = np.random.default_rng(7)
    U = rows(6, 6, 5.0, random)
    weights = [signed(6, random) for _ in range(3)]
    found = joint_decompose([tensor(U, w, 2) for w in weights], np.ones(3), 6)
    assert worst(found, U) < EXACT


def test_orders_are_mixed_by_their_precisions():
    random = np.random.default_rng(8)
    U, other = rows(5, 5, 5.0, random), rows(5, 5, 5.0, random)
    tensors = [tensor(U, signed(5, random), m) for m in (2, 3, 4)]
    assert worst(joint_decompose(tensors, [1.0, 2.0, 3.0], 5), U) < EXACT
    misled = [*tensors[1:], tensor(other, signed(5, random), 3)]  # one tensor has other directions
    assert worst(joint_decompose(misled, [1.0, 1.0, 1e-12], 5), U) < 1e-4
    assert worst(joint_decompose(misled, [1.0, 1.0, 1.0], 5), U) > 1e-2


def test_a_tensor_without_components_is_refused():
    with pytest.raises(Refused, match="zero"):
        decompose(np.zeros((3, 3, 3)), 2)
