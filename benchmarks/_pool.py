"""Independent runs over processes: each pinned to its own cores, each row kept as soon as it is measured.

``BENCH_JOBS``    processes (default: cores / threads of a run).
``BENCH_ROWS``    folder of finished rows, JSON lines (default: build/bench). A run whose row is there, from
                  the same source, is not repeated: an interrupted benchmark goes on where it stopped.
``BENCH_ONLY``    run only cells whose arguments, joined by blanks, match this pattern (``*`` and ``?``).
``BENCH_SECONDS`` time limit of one recovery, in place of the benchmark's own.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from fnmatch import fnmatchcase
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

Cell = tuple[Any, ...]
_ROOT = Path(__file__).parents[1]
_RUNS = 60  # of one process before it is replaced: compiled functions are never given back


def run(
    function: Callable[..., dict[str, Any]],
    cells: Iterable[Cell],
    threads: int = 1,
    remark: Callable[[Cell, dict[str, Any]], str] | None = None,
) -> list[tuple[Cell, dict[str, Any]]]:
    """[(cell, function(*cell))] in the order of the cells; a run that broke has the key "broke".

    ``threads`` cores belong to each process. Cells hold plain values, rows JSON values. What ``remark`` says
    of a row goes to stderr at once.
    """
    cells = list(chosen(cells))
    rows = dict(_stored(function, cells))
    missing = [cell for cell in cells if cell not in rows]
    for i, (cell, row) in enumerate(_measured(function, missing, threads), start=1):
        rows[cell] = row
        if "broke" not in row:
            _store(function, cell, row)
        said = row.get("broke") or (remark(cell, row) if remark else "")
        if said or i % 20 == 0:
            print(f"{i}/{len(missing)} {' '.join(map(str, cell))} {said}", file=sys.stderr, flush=True)
    return [(cell, rows[cell]) for cell in cells]


def chosen(cells: Iterable[Cell]) -> Iterator[Cell]:
    """The cells that ``BENCH_ONLY`` lets through."""
    pattern = os.environ.get("BENCH_ONLY", "*")
    return (cell for cell in cells if fnmatchcase(" ".join(map(str, cell)), pattern))


def seconds(limit: float) -> float:
    """The time limit of one recovery."""
    return float(os.environ.get("BENCH_SECONDS", limit))


def _measured(function, cells: Sequence[Cell], threads: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Rows as they come. A pool serves a bounded number of runs and is then replaced.

    (``max_tasks_per_child`` would do that process by process, but deadlocks: CPython issue 115634.)
    """
    cores = sorted(os.sched_getaffinity(0))
    jobs = int(os.environ.get("BENCH_JOBS", max(1, len(cores) // threads)))
    # A library reads its thread count when it is loaded: it must stand in the environment before.
    os.environ.update(dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads)))
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # processes may share one GPU
    context = get_context("spawn")  # not forked: JAX holds threads
    for i in range(0, len(cells), jobs * _RUNS):
        batch = cells[i : i + jobs * _RUNS]
        places = context.Queue()
        for j in range(jobs):
            places.put([cores[(j * threads + t) % len(cores)] for t in range(threads)])
        with ProcessPoolExecutor(min(jobs, len(batch)), context, _settle, (places,)) as pool:
            waiting = {pool.submit(_guarded, function, cell): cell for cell in batch}
            for done in as_completed(waiting):
                yield waiting[done], _outcome(done)


def _outcome(done: Future[dict[str, Any]]) -> dict[str, Any]:
    try:
        return done.result()
    except BrokenProcessPool:
        return {"broke": "a process was killed (memory?): run the benchmark again for this row"}


def _settle(places: Any) -> None:
    """Bind this process to cores of its own."""
    os.sched_setaffinity(0, places.get())


def _guarded(function: Callable[..., dict[str, Any]], cell: Cell) -> dict[str, Any]:
    try:
        return function(*cell)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return {"broke": f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"}


@lru_cache(maxsize=1)
def state() -> str:
    """Of the source and the time limit: rows of another state are not reused."""
    digest = hashlib.sha256(os.environ.get("BENCH_SECONDS", "").encode())
    for path in sorted([*_ROOT.glob("src/**/*.py"), *_ROOT.glob("benchmarks/_*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _file(function: Callable[..., Any]) -> Path:
    folder = Path(os.environ.get("BENCH_ROWS", _ROOT / "build" / "bench"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{function.__module__.rpartition('.')[2]}-{function.__name__}.jsonl"


def _store(function: Callable[..., Any], cell: Cell, row: dict[str, Any]) -> None:
    import datetime

    line = {"code": state(), "date": str(datetime.date.today()), "cell": cell, "row": row}
    with _file(function).open("a") as file:
        file.write(json.dumps(line) + "\n")


def _stored(function: Callable[..., Any], cells: Sequence[Cell]) -> Iterator[tuple[Cell, dict[str, Any]]]:
    wanted = set(cells)
    if not _file(function).exists():
        return
    for text in _file(function).read_text().splitlines():
        line = json.loads(text)
        cell = tuple(line["cell"])
        if line["code"] == state() and cell in wanted:
            yield cell, line["row"]
