"""Symmetric decomposition, exact and with noise, beside tensorly on the same tensors in the same run."""

from __future__ import annotations

import time

import numpy as np

from benchmarks._table import Table
from onehidden.run import stream
from onehidden_papers.starts.joint_diagonalisation import joint_decompose

CONDITION = 10.0
EXACT_TRIALS = 50
NOISE_TRIALS = 5
TIE = 0.1  # peers that converge solve the same least squares: what is left is where each stopped
NOISE = (1e-6, 1e-4, 1e-3, 1e-2, 3e-2)


def main(quick: bool) -> list[str]:
    exact = Table("k", "order", "condition ≤", "recovered to 1e-8", "worst error", "seconds each")
    for order, ranks in ((3, (5, 10, 20, 30)), (4, (5, 10) if quick else (5, 10, 20, 30))):
        for k in ranks:
            exact.row(*_exact_row(k, order, 10 if quick else EXACT_TRIALS))
    try:
        import tensorly  # noqa: F401
    except ImportError:
        exact.say("tensorly is not installed: no peers in this run (pip install tensorly)")
        return exact.lines
    noisy = Table(
        "k",
        "relative noise",
        "ours",
        "tensorly parafac",
        "tensorly parafac, best of 6",
        "tensorly symmetric CP",
        "against the best peer",
        "ours s",
        "parafac s",
        "best of 6 s",
        "symmetric s",
    )
    for k in (5, 10) if quick else (5, 10, 20):
        for noise in NOISE[1::2] if quick else NOISE:
            noisy.row(*_noise_row(k, noise, 3 if quick else NOISE_TRIALS))
    noisy.say(
        "Entries: median over tensors of the worst row error |u - u*| after optimal pairing (sqrt 2 = not "
        f"found); order 3, condition {CONDITION:g}, signed weights in ±[.5, 2], symmetric Gaussian noise; "
        f"a tie is within {TIE:.0%}: a peer that converges solves the same least squares."
    )
    return exact.lines + noisy.lines


def problem(k: int, order: int, seed: int, condition: float = CONDITION) -> tuple[np.ndarray, np.ndarray]:
    """A random exact tensor and its unit components, whose condition number is at most ``condition``."""
    random = stream(seed, "benchmark", "decomposition", "tensor")
    while True:
        left, right = (np.linalg.qr(random.standard_normal((k, k)))[0] for _ in range(2))
        U = left @ np.diag(np.geomspace(1, 1 / condition, k)) @ right
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        if np.linalg.cond(U) <= condition:
            break
    weights = random.choice([-1.0, 1.0], k) * random.uniform(0.5, 2, k)
    pairs = (U[:, :, None] * U[:, None, :]).reshape(k, -1)
    right_half = U if order == 3 else pairs
    return ((pairs * weights[:, None]).T @ right_half).reshape((k,) * order), U


def worst_row(found: np.ndarray, true: np.ndarray) -> float:
    """Largest |u - u*| over rows after optimal pairing, up to sign."""
    from scipy.optimize import linear_sum_assignment

    Q = found @ true.T
    i, j = linear_sum_assignment(-np.abs(Q))
    signs = np.where(Q[i, j] < 0, -1.0, 1.0)
    return float(np.max(np.linalg.norm(found[i] * signs[:, None] - true[j], axis=1)))


def _exact_row(k: int, order: int, trials: int) -> tuple[object, ...]:
    errors, seconds = [], 0.0
    for seed in range(trials):
        tensor, U = problem(k, order, seed)
        began = time.perf_counter()
        found = joint_decompose([tensor], [1.0], k, seed)
        seconds += time.perf_counter() - began
        errors.append(worst_row(found, U))
    good = int(np.sum(np.array(errors) <= 1e-8))
    return k, order, CONDITION, f"{good}/{trials}", max(errors), seconds / trials


def _noise_row(k: int, noise: float, trials: int) -> tuple[object, ...]:
    errors, seconds = np.zeros((trials, 4)), np.zeros(4)
    for seed in range(trials):
        tensor, U = problem(k, 3, seed)
        raw = stream(seed, "benchmark", "decomposition", "noise").standard_normal(tensor.shape)
        symmetric = sum(
            raw.transpose(p) for p in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
        )
        tensor = tensor + noise * np.linalg.norm(tensor) * symmetric / np.linalg.norm(symmetric)
        for column, method in enumerate((_ours, _parafac, _parafac_restarts, _power)):
            began = time.perf_counter()
            rows = method(tensor, k, seed)
            seconds[column] += time.perf_counter() - began
            errors[seed, column] = worst_row(rows, U)
    median = np.median(errors, axis=0)
    ratio = median[0] / median[1:].min()
    verdict = "better" if ratio < 1 - TIE else "tie" if ratio <= 1 + TIE else "worse"
    return k, noise, *median.tolist(), verdict, *(seconds / trials).tolist()


def _ours(tensor: np.ndarray, k: int, seed: int) -> np.ndarray:
    return joint_decompose([tensor], [1.0], k, seed)


def _unit_rows(factor: np.ndarray) -> np.ndarray:
    return (factor / np.maximum(np.linalg.norm(factor, axis=0), 1e-300)).T


def _parafac(tensor: np.ndarray, k: int, seed: int) -> np.ndarray:
    from tensorly.decomposition import parafac

    result = parafac(tensor, k, n_iter_max=1000, init="svd", tol=1e-12, random_state=seed)
    return _unit_rows(result.factors[0])


def _parafac_restarts(tensor: np.ndarray, k: int, seed: int) -> np.ndarray:
    from tensorly.cp_tensor import cp_to_tensor
    from tensorly.decomposition import parafac

    best, rows = np.inf, np.eye(k)
    for again in range(6):
        result = parafac(tensor, k, n_iter_max=300, init="random", tol=1e-12, random_state=6 * seed + again)
        misfit = float(np.linalg.norm(cp_to_tensor(result) - tensor))
        if misfit < best:
            best, rows = misfit, _unit_rows(result.factors[0])
    return rows


def _power(tensor: np.ndarray, k: int, seed: int) -> np.ndarray:
    from tensorly.decomposition import symmetric_parafac_power_iteration

    np.random.seed(seed)  # noqa: NPY002 — tensorly draws its starts from NumPy's global state
    return _unit_rows(symmetric_parafac_power_iteration(tensor, k, n_repeat=10, n_iteration=30)[1])
