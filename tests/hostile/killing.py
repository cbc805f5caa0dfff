"""Commands killed at random moments: they leave nothing, the old or the whole, and can be repeated."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from hostile.case import home
from hostile.meeting import command, forked
from pyarrow import parquet


@dataclass(frozen=True)
class Writer:
    """A command that writes: its arguments, where, and the bytes or numbers by which its work is known."""

    name: str
    arguments: tuple[str, ...]
    out: str
    read: Callable[[Path], object]
    again: tuple[str, ...] = ()  # what is added when it is repeated over what a killed one left


def _network(path: Path) -> object:
    from onehidden.recovery import load_recovery

    found = load_recovery(path)
    assert (path / "report.html").read_text().rstrip().endswith("</html>")
    net = found.network
    return [net.weights.tolist(), net.bias.tolist(), net.output.tolist(), net.intercept, str(found.status)]


def _column(path: Path) -> object:
    return parquet.read_table(path).column(0).to_pylist()


def _page(path: Path) -> object:
    text = path.read_text()
    assert text.rstrip().endswith("</html>")
    return len(text) > 10_000


FORCED = ("--force",)
WRITERS = (
    Writer("recover", ("recover", "t.csv", "--hidden", "1", "--out", "new"), "new", _network, FORCED),
    Writer(
        "recover with a checkpoint",
        ("recover", "t.csv", "--hidden", "2", "--out", "new", "--checkpoint", "kept"),
        "new",
        _network,
        FORCED,
    ),
    Writer(
        "recover over a run",
        ("recover", "t.csv", "--hidden", "1", "--out", "run", "--force"),
        "run",
        _network,
    ),
    Writer("predict", ("predict", "run", "rows", "--out", "new.parquet"), "new.parquet", _column, FORCED),
    Writer("report", ("report", "run", "--data", "t.csv", "--out", "new.html"), "new.html", _page),
    Writer(
        "score",
        ("score", "t.csv", "--estimator", "gaussian", "--out", "new.parquet"),
        "new.parquet",
        _column,
        FORCED,
    ),
)


def place(folder: Path) -> None:
    """A table, a run, and a folder of Parquet files."""
    home(folder)
    (folder / "run" / "report.html").write_text("</html>")
    rng = np.random.default_rng(2)
    (folder / "rows").mkdir()
    for part in range(4):
        columns = {name: rng.standard_normal(200_000) for name in "abc"}
        parquet.write_table(pa.table(columns), folder / "rows" / f"{part}.parquet")


def killed(writer: Writer, folder: Path, share: float, seconds: float, whole: object) -> str:
    """Kill a command after a share of its seconds, look, repeat it: what is wrong, empty when nothing."""
    forked(lambda: place(folder), folder.with_suffix(".made"))
    before = _read(writer, folder)
    _kill(lambda: command(folder, writer.arguments), share * seconds)
    after = _read(writer, folder)
    if after not in (before, whole):
        return f"half-written after {share:.2f} of the time: {after}"
    force = writer.again if (folder / writer.out).exists() else ()
    done = forked(lambda: command(folder, (*writer.arguments, *force)), folder.with_suffix(".again"))
    if done.code not in (0, 1):
        return f"not repeated after {share:.2f} of the time: {done.err}"
    if _read(writer, folder) != whole:
        return f"another answer after {share:.2f} of the time"
    litter = [path.name for path in folder.iterdir() if path.name.startswith(".")]
    return f"left {litter}" if litter else ""


def _read(writer: Writer, folder: Path) -> object:
    path = folder / writer.out
    if not path.exists():
        return "nothing"
    try:
        return writer.read(path)
    except Exception as error:
        return f"unreadable: {error}"


def _kill(work: Callable[[], None], seconds: float) -> None:
    """Run something in a child and kill it after some seconds, whether it has ended or not."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        for number in (1, 2):
            os.dup2(null, number)
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kills(count: int, folder: Path, seed: int = 0) -> dict[str, list[str]]:
    """So many kills, spread over the commands: by command what was wrong with each, empty when nothing."""
    rng = random.Random(seed)
    found: dict[str, list[str]] = {writer.name: [] for writer in WRITERS}
    wholes: dict[str, tuple[object, float]] = {}
    for number in range(count):
        writer = WRITERS[number % len(WRITERS)]
        if writer.name not in wholes:
            first = folder / "whole" / str(number)
            forked(lambda first=first: place(first), first.with_suffix(".made"))
            done = forked(
                lambda first=first, writer=writer: command(first, writer.arguments), first.with_suffix(".met")
            )
            assert done.code in (0, 1), done.err
            wholes[writer.name] = _read(writer, first), done.seconds
        whole, seconds = wholes[writer.name]
        # Most of a command computes; what it writes, it writes near the end.
        share = rng.uniform(0.9, 1.02) if rng.random() < 0.5 else rng.random()
        found[writer.name].append(killed(writer, folder / str(number), share, seconds, whole))
    return found
