"""The share of teachers recovered exactly against samples a parameter: recover, and two baselines beside it.

Gaussian inputs, d = k, ReLU units with random rows, biases and outputs of both signs. A parameter is one of
the k (d + 2) + 1 - k that the function has, the scale of a unit counted once. The baselines have the same
samples: the true width from 20 random starts by Levenberg–Marquardt, and wide-and-prune in PyTorch.
"""

from __future__ import annotations

import time
from typing import Any

import onehidden as oh
from benchmarks import _peers, _pool, _truth
from benchmarks._table import Table
from benchmarks.efficiency import random_starts

RATIOS = (1.1, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0)
WIDTHS = (5, 10, 20)
METHODS = ("onehidden", "random starts", "torch")
SEEDS = 10
SECONDS = {5: 60.0, 10: 300.0, 20: 600.0}


def main(quick: bool) -> list[str]:
    widths, ratios, seeds = ((5,), (1.3, 2.0, 4.0), 2) if quick else (WIDTHS, RATIOS, SEEDS)
    cells = [(m, k, r, s) for k in widths for r in ratios for m in METHODS for s in range(seeds)]
    rows = dict(_pool.run(cell, cells))
    table = Table(
        "k", "n / p", "n", "recover: exact", "median s", *(f"{m}: within 1e-6" for m in METHODS[1:])
    )
    for k in widths:
        for ratio in ratios:
            found = {m: [rows[c] for c in rows if c[:3] == (m, k, ratio)] for m in METHODS}
            if not found["onehidden"]:
                continue
            seconds = sorted(row.get("seconds", 0.0) for row in found["onehidden"])
            table.row(
                k, ratio, size(k, ratio), _share(found["onehidden"]), seconds[len(seconds) // 2],
                *(_share(found[m]) for m in METHODS[1:]),
            )  # fmt: skip
    return table.lines


def _share(rows: list[dict[str, Any]]) -> str:
    return f"{sum(bool(row.get('right')) for row in rows)}/{len(rows)}" if rows else ""


def size(k: int, ratio: float) -> int:
    """Samples at so many a parameter."""
    return round(ratio * (k * (k + 1) + 1))


def cell(method: str, k: int, ratio: float, seed: int) -> dict[str, Any]:
    """One teacher by one method."""
    name, n, limit = f"gaussian-relu-biased-{k}x{k}", size(k, ratio), _pool.seconds(SECONDS[k])
    if method == "onehidden":
        return _truth.trial(name, seed, 0.0, "right", n, limit)
    X, y, truth = oh.problems.get(name).sample(n, seed)
    begin = time.perf_counter()
    if method == "torch":
        net = _peers.torch_wide_and_prune(X, y, k, width=max(64, 8 * k)).network
    else:
        net = random_starts(X, y, k, seed, limit, bias=True)
    error = _truth.worst_error(net, truth)
    return {"right": error <= _peers.FOUND, "error": error, "seconds": time.perf_counter() - begin}
