"""Local-likelihood scores everywhere (orders 1–2) against pykeops, scikit-learn and the matrix-product rate.

Times are CPU seconds of the process (wall seconds beside them): on a shared machine wall time measures the
neighbours. These slow CPU seconds, too: LLSFE and pykeops take turns, and the best of three turns counts for
each. Every peer computes in float64 on the same points; pykeops the same sums M_0, M_1, M_2. At the sample
itself LLSFE computes a weight once for two rows; at other points, a row of its own, it cannot.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks._table import Table
from onehidden.run import stream

_BANDWIDTH = 0.6


def main(quick: bool) -> list[str]:
    n = 4000 if quick else 20_000
    table = Table("n = q", "d", "what", "CPU s", "wall s", "× pykeops", "peak MiB", "Gpairs/s")
    for d in (2, 4, 8):
        _compare(table, n, d)
    for size in (n // 4, n // 2, n):
        X = _inputs(size, 4)
        _row(table, size, 4, "LLSFE, growth with n", *_timed(lambda X=X: _ours(X)), None)
    for d in (1, 2, 4, 8, 16):
        X = _inputs(n // 4, d)
        _row(table, n // 4, d, "LLSFE, growth with d", *_timed(lambda X=X: _ours(X)), None)
    A = stream(0, "benchmark", "scores", "matrix").standard_normal((1500, 1500))
    cpu, wall = _timed(lambda: A @ A)
    table.say("")
    table.say(
        f"matrix product: {2 * 1.5**3 / cpu:.1f} GFLOP a CPU second, {2 * 1.5**3 / wall:.1f} a wall second"
    )
    return table.lines


def _inputs(n: int, d: int) -> np.ndarray:
    return stream(0, "benchmark", "scores", "inputs").standard_normal((n, d))


def _compare(table: Table, n: int, d: int) -> None:
    X = _inputs(n, d)
    others = stream(0, "benchmark", "scores", "queries").standard_normal((n, d))
    keops, turns = _keops(X), [lambda: _ours(X), lambda: _ours(X, others)]
    if keops is not None:
        _must_agree(X)
        turns.append(keops)
    ours, elsewhere, *rest = _in_turns(turns)
    peer = rest[0] if rest else None
    _row(table, n, d, "LLSFE, orders 1–2", *ours, peer, _peak_memory(n, d))
    _row(table, n, d, "LLSFE, orders 1–2, at other points", *elsewhere, peer)
    if peer is not None:
        _row(table, n, d, "pykeops, the same sums", *peer, peer)
    else:
        table.say(f"| {n} | {d} | pykeops | not installed | | | | |")
    from sklearn.neighbors import KernelDensity

    few = X[: n // 40]  # one query in forty, scaled up: the density alone takes many seconds
    tree = KernelDensity(bandwidth=_BANDWIDTH).fit(X)
    cpu, wall = _timed(lambda: tree.score_samples(few), repeat=1)
    _row(table, n, d, "scikit-learn KernelDensity (density only)", 40 * cpu, 40 * wall, peer)


def _row(
    table: Table, n: int, d: int, what: str, cpu: float, wall: float, peer: Any, memory: float | None = None
) -> None:
    ratio = f"{peer[0] / cpu:.1f}" if peer is not None else ""
    table.row(n, d, what, cpu, wall, ratio, "" if memory is None else round(memory), n * n / cpu / 1e9)


def _timed(fn: Callable[[], Any], repeat: int = 2) -> tuple[float, float]:
    """Best CPU and wall seconds of a call, after one to compile."""
    fn()
    return _in_turns([fn], repeat)[0]


def _in_turns(fns: Sequence[Callable[[], Any]], repeat: int = 3) -> list[tuple[float, float]]:
    """Best CPU seconds of each, with the wall seconds of that call."""
    best = [(float("inf"), float("inf"))] * len(fns)
    for _ in range(repeat):
        for i, fn in enumerate(fns):
            cpu, wall = time.process_time(), time.perf_counter()
            fn()
            best[i] = min(best[i], (time.process_time() - cpu, time.perf_counter() - wall))
    return best


def _ours(X: np.ndarray, Q: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """S_1 and S_2 at every sample, or elsewhere, from one pass."""
    from onehidden_papers.scores.local_gaussian import gaussian_fit, prepare

    Q = X if Q is None else Q
    fit = gaussian_fit(prepare(X), Q, np.full(len(Q), _BANDWIDTH))
    first, second = fit.derivatives
    return -first, first[:, :, None] * first[:, None, :] + second


def _keops(X: np.ndarray) -> Callable[[], np.ndarray] | None:
    """Σ_j exp(-|x_i - x_j|²/2h²) (1, z, z⊗z) by pykeops, or None where it is missing."""
    try:
        from pykeops.numpy import LazyTensor
    except ImportError:
        return None
    n, d = X.shape
    upper = np.triu_indices(d)
    F = np.ascontiguousarray(np.concatenate([np.ones((n, 1)), X, X[:, upper[0]] * X[:, upper[1]]], axis=1))
    x, y, f = LazyTensor(X[:, None, :]), LazyTensor(X[None, :, :]), LazyTensor(F[None, :, :])

    def run() -> np.ndarray:
        weight = (-((x - y) ** 2).sum(-1) / (2 * _BANDWIDTH**2)).exp()
        return (weight * f).sum(axis=1)

    return run


def _must_agree(X: np.ndarray, rows: int = 500) -> None:
    """pykeops, compiled here, and onehidden have the same sums over a few rows."""
    from onehidden_papers.scores.local_gaussian import local_moments, prepare

    few = X[:rows]
    keops = _keops(few)
    assert keops is not None
    mass = local_moments(prepare(few), few, np.full(len(few), _BANDWIDTH))[0]
    if not np.allclose(mass, np.asarray(keops())[:, 0], rtol=1e-9):
        raise RuntimeError("pykeops and onehidden disagree on the kernel sums")


def _peak_memory(n: int, d: int) -> float:
    """Resident peak in MiB of a process of its own, imports and data included."""
    code = (
        "import re\n"
        "from benchmarks.scores import _inputs, _ours\n"
        f"X = _inputs({n}, {d})\n"
        "_ours(X)\n"
        "status = open('/proc/self/status').read()\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])
