"""Runs that share compiled code, one after another in one long-lived process; each row is kept as it comes.

``BENCH_JOBS`` (processes, default: one a core) and ``BENCH_ROWS`` (folder of finished rows) as in ``_pool``.
A lane is a process of one core; it works off whole groups, and one that dies takes down a single run.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from benchmarks import _pool

Cell = tuple[str | int | float, ...]
Row = dict[str, object]
_RUNS = 150  # of one process before it is replaced: compiled functions are never given back
_TOGETHER = 8  # runs of a group that one lane takes at a time, so that a large group is shared out


def run(function: Callable[..., Row], cells: Sequence[Cell], shape: Callable[[Cell], Hashable]) -> list[Row]:
    """[function(*cell)] in the order of the cells; cells of one shape are run in one process."""
    file = rows_file(function)
    rows = {cell: row for cell, row, code in stored(file) if code == _pool.state()}
    waiting = groups([cell for cell in cells if cell not in rows], shape)
    total = sum(map(len, waiting))
    for done, (cell, row) in enumerate(_measured(function, waiting), start=1):
        rows[cell] = row
        if "broke" not in row:
            line = {"code": _pool.state(), "cell": cell, "row": row}
            with file.open("a") as out:
                out.write(json.dumps(line) + "\n")
        said = row.get("broke") or row.get("false") or ""
        if said or done % 20 == 0:
            print(f"{done}/{total} {' '.join(map(str, cell))}: {said}", file=sys.stderr, flush=True)
    return [rows[cell] for cell in cells]


def measured(
    function: Callable[..., Row], cells: Sequence[Cell], shape: Callable[[Cell], Hashable]
) -> list[tuple[Cell, Row]]:
    """Every cell with its row."""
    return list(zip(cells, run(function, cells, shape), strict=True))


def groups(cells: Sequence[Cell], shape: Callable[[Cell], Hashable]) -> list[list[Cell]]:
    """Cells of one shape, at most eight at a time, in the order in which the shapes are first met."""
    by_shape: dict[Hashable, list[Cell]] = {}
    for cell in cells:
        by_shape.setdefault(shape(cell), []).append(cell)
    # First the first eight of every shape, so that an interrupted benchmark has seen all of them.
    longest = max(map(len, by_shape.values()), default=0)
    starts = range(0, longest, _TOGETHER)
    return [mine[i : i + _TOGETHER] for i in starts for mine in by_shape.values() if mine[i:]]


def rows_file(function: Callable[..., Row]) -> Path:
    folder = Path(os.environ.get("BENCH_ROWS", Path(__file__).parents[1] / "build" / "bench"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{function.__module__.rpartition('.')[2]}-{function.__name__}.jsonl"


def stored(file: Path) -> list[tuple[Cell, Row, str]]:
    """Finished rows: cell, row and the state of the source they were measured with."""
    lines = file.read_text().splitlines() if file.exists() else []
    read = [json.loads(line) for line in lines if line.endswith("}")]  # a killed run may leave half a line
    return [(tuple(line["cell"]), line["row"], line["code"]) for line in read]


class _Lane:
    """One process on one core, replaced after a number of runs or when it died."""

    def __init__(self, core: int) -> None:
        self._core, self._pool, self._runs = core, None, 0
        self.group: deque[Cell] = deque()

    def submit(self, function: Callable[..., Row], cell: Cell) -> Future[Row]:
        if self._pool is None or self._runs >= _RUNS:
            self.close()
            # Spawned, not forked: JAX holds threads.
            self._pool = ProcessPoolExecutor(1, get_context("spawn"), _settle, (self._core,))
        self._runs += 1
        return self._pool.submit(_guarded, function, cell)

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._pool, self._runs = None, 0


def _measured(function: Callable[..., Row], waiting: list[list[Cell]]):
    """(cell, row) as they come."""
    cores = sorted(os.sched_getaffinity(0))
    jobs = int(os.environ.get("BENCH_JOBS") or len(cores))
    # A library reads its thread count when it is loaded: it must stand in the environment before.
    os.environ.update(dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # a certificate on a core is what is promised
    left = deque(waiting)
    lanes = [_Lane(cores[i % len(cores)]) for i in range(min(jobs, len(waiting)))]
    running: dict[Future[Row], tuple[_Lane, Cell]] = {}
    try:
        while True:
            busy = {id(lane) for lane, _ in running.values()}
            for lane in (lane for lane in lanes if id(lane) not in busy):
                if not lane.group and left:
                    lane.group = deque(left.popleft())
                if lane.group:
                    cell = lane.group.popleft()
                    running[lane.submit(function, cell)] = lane, cell
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                lane, cell = running.pop(done)
                yield cell, _outcome(done, lane)
    finally:
        for lane in lanes:
            lane.close()


def _outcome(done: Future[Row], lane: _Lane) -> Row:
    try:
        return done.result()
    except BrokenProcessPool:
        lane.close()
        return {"broke": "the process was killed (memory?): run the benchmark again for this row"}


def _settle(core: int) -> None:
    os.sched_setaffinity(0, {core})


def _guarded(function: Callable[..., Row], cell: Cell) -> Row:
    try:
        return function(*cell)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return {"broke": f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"}
