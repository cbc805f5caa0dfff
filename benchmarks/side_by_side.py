"""Two recoveries at once on two cores, against two in a row with one thread each.

Each in a process of its own with the threads that a user would have; compiled programs are on disk before.
Threads that wait by spinning take the cores from one another: two at once may then last longer than two in a
row. Kept: at most 1.2 times as long.
"""

from __future__ import annotations

from benchmarks._process import begun, ended, python, took
from benchmarks._table import Table

_ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_MOST = 1.2
# n, d, k and noise: below and above the size from which products use several threads.
CASES = ((2000, 8, 3, 0.2), (8000, 30, 30, 0.0), (12_000, 40, 40, 0.0))


def main(quick: bool) -> list[str]:
    table = Table("n", "d", "k", "noise", "two in a row s", "two at once s", "ratio", "kept")
    for case in CASES[: 2 if quick else None]:
        row, once = measured(*case)
        kept = "yes" if once <= _MOST * row else "**no**"
        table.row(*case, row, once, once / row, kept)
    return table.lines


def measured(n: int, d: int, k: int, noise: float) -> tuple[float, float]:
    """Seconds of two in a row with one thread each, and of two at once."""
    command = python(
        "import onehidden as oh\n"
        "from benchmarks.budgets import planted\n"
        f"oh.recover(*planted({n}, {d}, {k}, noise={noise}), {k})\n"
    )
    took(command)
    row = took(command, _ONE).wall + took(command, _ONE).wall
    pair = [begun(command), begun(command)]
    return row, max([ended(one).wall for one in pair])
