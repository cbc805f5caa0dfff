"""Laws of the symmetric decomposition: exact tensors, signs, noise, several tensors with one set of rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from onehidden_papers.starts.joint_diagonalisation import joint_decompose

EXACT = 1e-8


def decompose(tensor, rank, seed=0, **more):
    """One tensor."""
    found = joint_decompose([tensor], rank, seed, **more)
    return SimpleNamespace(components=found.components, weights=found.weights[0], residual=found.residual)


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
        assert worst(found.components, U) < EXACT
        assert found.residual < 1e-12
        assert np.allclose(np.sort(np.abs(found.weights)), np.sort(np.abs(w)), rtol=EXACT)
        assert np.allclose(np.linalg.norm(found.components, axis=1), 1, atol=1e-14)
        # what must fail: random rows, and the true rows of another problem
        assert worst(rows(k, k, 10.0, random), U) > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("k", [5, 10, 20, 30])
def test_fifty_of_fifty_exact_tensors(k):
    for seed in range(50):
        random = np.random.default_rng(seed)
        U, w = rows(k, k, 10.0, random), signed(k, random)
        assert worst(decompose(tensor(U, w, 3), k, seed=seed).components, U) < EXACT


def test_signs_of_even_order_weights_are_found():
    random = np.random.default_rng(3)
    U, w = rows(6, 6, 5.0, random), signed(6, random)
    found = decompose(tensor(U, w, 4), 6)
    assert np.allclose(np.sort(found.weights), np.sort(w), rtol=EXACT)
    assert not np.allclose(np.sort(found.weights), np.sort(-w), rtol=1e-2)


def test_rebuilt_tensor_is_the_given_one():
    random = np.random.default_rng(4)
    U, w = rows(4, 7, 5.0, random), signed(4, random)
    T = tensor(U, w, 3)
    found = decompose(T, 4)
    assert np.allclose(tensor(found.components, found.weights, 3), T, atol=1e-12)
    assert not np.allclose(tensor(found.components, -found.weights, 3), T, atol=1e-2)


def test_rank_below_the_side():
    random = np.random.default_rng(5)
    U, w = rows(4, 9, 10.0, random), signed(4, random)
    assert worst(decompose(tensor(U, w, 3), 4).components, U) < EXACT


def test_error_is_proportional_to_the_noise():
    random = np.random.default_rng(6)
    U, w = rows(8, 8, 5.0, random), signed(8, random)
    T, raw = tensor(U, w, 3), random.standard_normal((8, 8, 8))
    errors = [worst(decompose(T + s * raw, 8).components, U) for s in (1e-6, 1e-4)]
    # First-order perturbation: a hundred times the noise, a hundred times the error.
    assert 80 < errors[1] / errors[0] < 120
    assert errors[0] > 1e-9  # an answer that ignored the noise would have copied the truth


def test_matrices_alone_determine_shared_directions():
    random = np.random.default_rng(7)
    U = rows(6, 6, 5.0, random)
    weights = [signed(6, random) for _ in range(3)]
    found = joint_decompose([tensor(U, w, 2) for w in weights], 6)
    assert worst(found.components, U) < EXACT
    assert found.weights.shape == (3, 6)


def test_joint_decomposition_mixes_orders():
    random = np.random.default_rng(8)
    U = rows(5, 5, 5.0, random)
    W = np.stack([signed(5, random) for _ in range(3)])
    found = joint_decompose([tensor(U, w, m) for w, m in zip(W, (2, 3, 4), strict=True)], 5)
    assert worst(found.components, U) < EXACT
    for l, m in enumerate((2, 3, 4)):
        rebuilt = tensor(found.components, found.weights[l], m)
        assert np.allclose(rebuilt, tensor(U, W[l], m), atol=1e-10)
        assert not np.allclose(rebuilt, tensor(U, np.abs(W[l]) + 0.1, m), atol=1e-2)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: decompose(np.ones((3, 3, 4)), 2), "side"),
        (lambda: decompose(np.ones((3, 3, 3)), 4), "rank"),
        (lambda: decompose(np.zeros((3, 3, 3)), 2), "zero"),
        (lambda: decompose(np.full((2, 2, 2), np.nan), 1), "all finite"),
        (lambda: joint_decompose([], 1), "at least one"),
        (lambda: joint_decompose([np.eye(3)], 2), "matrix"),
        (lambda: joint_decompose([np.eye(3), np.eye(3)], 2, precisions=[1.0]), "precisions"),
    ],
)
def test_bad_arguments_are_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()
