"""Two workers against one process, a worker killed half-way, and ten runs killed and taken up again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks._table import Table
from benchmarks.scale import planted, write_folder
from onehidden.run import stream


def main(quick: bool) -> list[str]:
    return worker_rows(60_000 if quick else 1_000_000, 1000 if quick else 50_000) + kill_rows(
        2 if quick else 10
    )


def _gap(one: oh.OneHiddenNet, other: oh.OneHiddenNet) -> float:
    pairs = ((one.weights, other.weights), (one.output, other.output), (one.bias, other.bias))
    return max(float(np.abs(a - b).max()) for a, b in pairs)


def worker_rows(n: int, file_rows: int) -> list[str]:
    """The same recovery in one process, on two workers, and on two of which one is killed."""
    from distributed import Client, LocalCluster

    table = Table(
        f"recover, {n} rows × 50 on disk, k = 10", "time / one process", "seconds", "difference", "error"
    )
    with tempfile.TemporaryDirectory() as place:
        write_folder(Path(place) / "rows", n, file_rows=max(n // 20, file_rows))
        source = oh.data.open(Path(place) / "rows", target="y")
        truth = planted(50, 10)
        oh.recover(source, hidden=10, bias=False)  # compiles
        answers: list[tuple[str, float, oh.OneHiddenNet]] = []

        def run(title: str, client: Any = None, progress: Any = False) -> None:
            begin = time.perf_counter()
            network = oh.recover(source, hidden=10, bias=False, client=client, progress=progress).network
            answers.append((title, time.perf_counter() - begin, network))
            one, took = answers[0][2], answers[-1][1]
            table.row(
                title, f"{took / answers[0][1]:.2f}", took, f"{_gap(one, network):.1e}",
                f"{oh.match(network, truth).max_error:.1e}",
            )  # fmt: skip

        run("one process")
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            run("Dask, two workers, cold", client)
            run("Dask, two workers", client)
            victims = list(client.run(os.getpid).values())[:1]

            def half_way(record: Any) -> None:
                if victims and record.stage == "first pass":
                    os.kill(victims.pop(), signal.SIGKILL)

            run("Dask, one of two workers killed half-way", client, half_way)
    return table.lines


_RUN = """
import sys, numpy as np, onehidden as oh
from onehidden.run import stream
drawn = {use: stream(0, "benchmark", "cluster", use) for use in ("teacher", "inputs", "noise")}
rows = np.linalg.qr(drawn["teacher"].standard_normal((10, 5)))[0].T
net = oh.OneHiddenNet(rows, [1.0, -2.0, 1.5, 1.0, -1.0])
X = drawn["inputs"].standard_normal((4000, 10))
y = net.predict(X) + 0.1 * drawn["noise"].standard_normal(4000)
print("begin", flush=True)
r = oh.recover(X, y, 5, bias=False, start="wide", checkpoint=sys.argv[1])
print(r.network.weights.tobytes().hex() + r.network.output.tobytes().hex(), flush=True)
"""


def kill_rows(times: int) -> list[str]:
    """kill -9 at random moments, then the same call again."""
    table = Table(
        "kill -9, then the same call again", "identical answers", "seconds whole", "seconds to resume"
    )
    with tempfile.TemporaryDirectory() as place:
        begin = time.perf_counter()
        run = _started(Path(place) / "whole")
        assert run.stdout is not None
        run.stdout.readline()
        work = time.perf_counter()
        expected = run.stdout.readline()
        end = time.perf_counter()
        rng, same, resumed = stream(0, "benchmark", "cluster", "kill"), 0, []
        for i in range(times):
            folder = Path(place) / str(i)
            run = _started(folder)
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(rng.uniform(0, end - work))
            run.send_signal(signal.SIGKILL)
            run.wait()
            again = time.perf_counter()
            found = _started(folder).communicate()[0].splitlines()[1] + "\n"
            resumed.append(time.perf_counter() - again)
            same += found == expected
    table.row(f"{times} random moments", f"{same}/{times}", end - begin, float(np.mean(resumed)))
    return table.lines


def _started(folder: Path) -> subprocess.Popen[str]:
    source = str(Path(oh.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, str(folder)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
