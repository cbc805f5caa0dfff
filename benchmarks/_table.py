"""Markdown rows shown as soon as they are measured, and what a stored table says of itself."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import beta


class Table:
    """A Markdown table printed row by row; ``lines`` keeps what was printed."""

    def __init__(self, *columns: str) -> None:
        self.lines: list[str] = []
        self.say("| " + " | ".join(columns) + " |")
        self.say("|" + "---|" * len(columns))

    def row(self, *values: object) -> None:
        self.say("| " + " | ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values) + " |")

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)


def interval(hits: int, of: int) -> str:
    """A share with its 95 % interval (Clopper and Pearson)."""
    if not of:
        return "–"
    low = beta.ppf(0.025, hits, of - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, of - hits) if hits < of else 1.0
    return f"{hits}/{of} = {100 * hits / of:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def share_of(hits: Sequence[float], of: Sequence[float]) -> tuple[float, str]:
    """The share of all, with its 95 % interval over answers drawn again: those of one answer go together."""
    if not np.sum(of):
        return float("nan"), "–"
    from onehidden.run import stream  # here: a table of another source tree needs none of this one's

    own, each = np.asarray(hits, float), np.asarray(of, float)
    again = stream(0, "answers drawn again").integers(len(each), size=(2000, len(each)))
    low, high = np.quantile(own[again].sum(axis=1) / np.maximum(each[again].sum(axis=1), 1), [0.025, 0.975])
    value = float(own.sum() / each.sum())
    return value, f"{100 * value:.1f} % ({100 * low:.1f}–{100 * high:.1f})"


def stamp(quick: bool = False) -> str:
    """Date, commit and machine: what is needed to measure a table again. Asked for before the run begins."""
    words = [f"{datetime.date.today()}", code(), f"{os.cpu_count()} cores", platform.machine()]
    return ", ".join(words + ["`--quick`"] * quick)


def code(root: Path = Path(__file__).parents[1]) -> str:
    """The commit that is measured, and whether the code differs from it."""
    commit = _git(root, "rev-parse", "--short", "HEAD")
    if commit is None:
        return "commit not known"
    changed = _git(root, "status", "--porcelain", "--", "src", "benchmarks/*.py")
    return f"commit {commit}" + (" and changes not committed" if changed else "")


def _git(root: Path, *words: str) -> str | None:
    """What git answers; None where this is no checkout or there is no git."""
    try:
        asked = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return asked.stdout.strip() if asked.returncode == 0 else None
