"""Cold starts: the version, imports beside those of JAX, the first recovery of a small table and the second.

Each in a process of its own; the first recovery finds no compiled programs on disk, the second those of the
first. On a shared machine processor seconds tell more than those by the wall.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks._process import Taken, python, took
from benchmarks._table import Table
from onehidden.machine import VARIABLE

_RECOVER = """
import onehidden as oh
from benchmarks.budgets import planted
X, y = planted(500, 4, 2)
print(oh.recover(X, y, 2).status)
"""
REPEATS = 3


def main(quick: bool) -> list[str]:
    repeats = 1 if quick else REPEATS
    table = Table("what", "wall s", "processor s", "wall s at most", "kept")
    command = str(Path(sys.executable).with_name("onehidden"))

    def row(what: str, taken: Taken, most: float | None) -> None:
        kept = "" if most is None else "yes" if taken.wall <= most else "**no**"
        table.row(what, taken.wall, taken.processor, "" if most is None else most, kept)

    row("onehidden --version", _best([command, "--version"], repeats), 0.3)
    row("import jax", _best(python("import jax"), repeats), None)
    row("import onehidden", _best(python("import onehidden"), repeats), None)
    row("onehidden.recover, imported", _best(python("import onehidden; onehidden.recover"), repeats), None)
    firsts, seconds = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            firsts.append(took(python(_RECOVER), {VARIABLE: folder}))
            seconds.append(took(python(_RECOVER), {VARIABLE: folder}))
    row("first recover, 500 x 4, k = 2", _least(firsts), 6.0)
    row("second recover, another process", _least(seconds), None)
    return table.lines


def _best(command: list[str], repeats: int) -> Taken:
    return _least([took(command) for _ in range(repeats)])


def _least(runs: list[Taken]) -> Taken:
    return min(runs, key=lambda run: run.wall)
