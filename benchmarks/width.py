"""The number of units from the data: hidden=None, d = 20, n = 10 000, k = 2 … 10, without and with noise."""

from __future__ import annotations

from typing import Any

from benchmarks import _lanes, _pool, _truth
from benchmarks._table import Table

N, D = 10_000, 20
SECONDS = 300.0


def main(quick: bool) -> list[str]:
    widths, seeds = ((2, 5), range(1)) if quick else (range(2, 11), range(10))
    cells = [(k, noise, seed) for noise in (0.0, 0.1) for k in widths for seed in seeds]
    measured = _lanes.measured(cell, cells, lambda c: c[0])
    table = Table("noise / std y", "k", "right k", "certified", "widths found", "false", "longest s")
    for noise in (0.0, 0.1):
        for k in [*widths, None]:
            rows = [row for c, row in measured if c[1] == noise and k in (None, c[0]) and "broke" not in row]
            if not rows:
                continue
            right = sum(row["width"] == row["truth"] for row in rows)
            certified = sum(row["status"] in ("exact", "consistent") for row in rows)
            shown = " ".join(str(row["width"]) for row in rows) if k else f"{100 * right / len(rows):.1f} %"
            table.row(
                noise, k or "all", f"{right}/{len(rows)}", certified, shown,
                sum(bool(row["false"]) for row in rows), f"{max(row['seconds'] for row in rows):.0f}",
            )  # fmt: skip
    for c, row in measured:
        if "broke" in row or row["width"] != c[0]:
            said = row.get("broke") or f"{row['width']} units, {row['status']}"
            table.say(f"- k = {c[0]}, noise {c[1]}, seed {c[2]}: {said}: `{repeat(c)}`")
    return table.lines


def repeat(c: tuple[Any, ...]) -> str:
    return (
        f"PYTHONPATH=src:. python -m benchmarks.catalogue {_name(c[0])} {c[2]} {c[1]} width {SECONDS:.0f} {N}"
    )


def _name(k: int) -> str:
    return f"gaussian-relu-signs-{D}x{k}"


def cell(k: int, noise: float, seed: int) -> dict[str, Any]:
    row = _truth.trial(_name(k), seed, noise, "width", N, _pool.seconds(SECONDS))
    return row | {"truth": k}
