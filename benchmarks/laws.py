"""d = k = 50, ReLU, rows a random rotation, under inputs nobody described: exact out of ten, and how long.

Every run has two cores to itself. The papers' own size, n = 8192, is measured where there is a GPU.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _pool, _truth
from benchmarks._table import Table

LAWS = ("gaussian", "laplace", "logistic", "student5", "uniform", "mixture")
SECONDS = 180.0  # on two cores
GPU_SECONDS = 1800.0


def main(quick: bool) -> list[str]:
    seeds = range(1 if quick else 10)
    table = Table(
        "section", "inputs", "n", "exact", "certified exact", "false", "worst error", "median s", "slowest s"
    )
    gpu = [("gpu", law, 8192, seed) for seed in seeds for law in LAWS]
    cpu = [("2 cores", law, _size(law), seed) for law in LAWS for seed in seeds]
    cells = gpu if _on_gpu() else cpu
    measured = _pool.run(cell, cells, threads=2, remark=lambda _, row: row["false"])
    for section, law, n in dict.fromkeys(c[:3] for c, _ in measured):
        rows = [row for c, row in measured if c[:3] == (section, law, n) and "broke" not in row]
        if not rows:
            table.row(section, law, n, "broke", "", "", "", "", "")
            continue
        seconds = [row["seconds"] for row in rows]
        table.row(
            section, law, n, f"{sum(row['right'] for row in rows)}/{len(rows)}",
            sum(row["status"] == "exact" for row in rows), sum(bool(row["false"]) for row in rows),
            f"{max(row['error'] for row in rows):.1e}", f"{np.median(seconds):.1f}", f"{max(seconds):.1f}",
        )  # fmt: skip
    table.say(f"Each run on: {', '.join(sorted({row.get('device', '?') for _, row in measured}))}.")
    if not _on_gpu():
        table.say("n = 8192 is the section for a GPU; there JAX_PLATFORMS=cpu asks for the one above.")
    return table.lines


def _size(law: str) -> int:
    return 32_768 if law == "mixture" else 16_384


def _on_gpu() -> bool:
    """Asked of the driver, not of JAX: this process must not hold the device."""
    return Path("/dev/nvidia0").exists() and os.environ.get("JAX_PLATFORMS") != "cpu"


def cell(section: str, law: str, n: int, seed: int) -> dict[str, Any]:
    limit = _pool.seconds(GPU_SECONDS if section == "gpu" else SECONDS)
    return _truth.trial(f"{law}-relu-orthonormal-50x50", seed, 0.0, "right", n, limit)
