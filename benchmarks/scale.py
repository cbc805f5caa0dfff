"""Speed and scale: moments and LM steps against the machine's own matrix product and peers; rows on disk.

Every figure stands beside a peer measured in the same run; the ratio comes first. The nominal work of T_4 is
that of the full product of the table of pairs with itself, 2 n (d (d + 1) / 2)^2.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import onehidden as oh
from benchmarks._table import Table
from onehidden import activations, laws
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.normal_equations import by_pairs
from onehidden.fit.parametrisation import Parametrisation
from onehidden.run import stream
from onehidden.solvers import LevenbergMarquardt
from onehidden_papers.moments import score_moments
from onehidden_papers.moments.products import product_sums
from onehidden_papers.moments.rows import hermite_scores


def main(quick: bool) -> list[str]:
    lines = moment_rates(32_768 if quick else 262_144)
    lines += step_times(20 if quick else 50, 4096 if quick else 16_384)
    lines += cost_rows(100_000 if quick else 1_000_000)
    lines += folder_rows((100_000, 400_000) if quick else (1_000_000, 10_000_000))
    if not quick:
        from benchmarks.spine import row_one_time

        lines += row_one_time(peers=True)
    return lines


def seconds(work: Callable[[], object], repeats: int = 1) -> float:
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


class Peak:
    """The most memory held inside the block beyond what was held on entry, sampled."""

    def __enter__(self) -> Peak:
        import psutil

        self._process, self._done = psutil.Process(), threading.Event()
        self._before = self.most = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.01):
            self.most = max(self.most, self._process.memory_info().rss)

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.mib = (self.most - self._before) / 2**20


def matrix_product_rate() -> float:
    A = stream(0, "benchmark", "scale", "matrix").standard_normal((2048, 2048))
    A @ A
    return 2 * 2048**3 / seconds(lambda: A @ A, 3)


def moment_rates(n: int, d: int = 50) -> list[str]:
    rng = stream(0, "benchmark", "scale", "moments")
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    law = (
        laws.standard_normal(d) if hasattr(laws, "standard_normal") else laws.Gaussian(np.zeros(d), np.eye(d))
    )
    nominal = 2 * n * (d * (d + 1) // 2) ** 2
    rows, columns = np.triu_indices(d)

    def plain() -> None:
        total = 0.0
        for at in range(0, n, 4096):
            x = X[at : at + 4096]
            pairs = x[:, rows] * x[:, columns]
            total = total + (pairs * y[at : at + 4096, None]).T @ pairs

    def sums() -> None:
        totals = {m: 0.0 for m in (2, 4)}
        for at in range(0, n, 4096):
            scores = tuple(np.ascontiguousarray(s.T) for s in hermite_scores(X[at : at + 4096]))
            for m in totals:
                totals[m] = totals[m] + product_sums(m, y[at : at + 4096], scores)

    table = Table(f"T_2 and T_4, d = {d}, n = {n}", "rate / matrix product", "seconds", "MiB above the data")
    for title, work in (
        ("pairs' × pairs, chunked (plain NumPy)", plain),
        ("ours, T_2 and T_4", sums),
        ("ours, with standard errors", lambda: score_moments(X, y, law, (2, 4), control_degree=-1)),
        ("ours, with control variates too", lambda: score_moments(X, y, law, (2, 4))),
    ):
        before = matrix_product_rate()
        with Peak() as peak:
            took = seconds(work)
        rate = (before + matrix_product_rate()) / 2
        table.row(title, f"{nominal / took / rate:.2f}", took, f"{peak.mib:.0f}")
    return table.lines


def step_times(k: int, n: int) -> list[str]:
    """One Levenberg–Marquardt step of d = k units: normal equations, solution, loss of the trial."""
    d, rng = k, stream(0, "benchmark", "scale", "teacher")
    form = Parametrisation(activations.get("relu"), d, k)
    truth = rng.standard_normal(form.size) / np.sqrt(d)
    X = stream(0, "benchmark", "scale", "inputs").standard_normal((n, d))
    weights, output, _, _, constant = form.unpack(truth)
    y = np.maximum(X @ weights.T, 0) @ output + constant
    start = truth + 0.05 * stream(0, "benchmark", "scale", "start").standard_normal(form.size)
    fit = InMemoryLeastSquares(form, X, y)
    LevenbergMarquardt(max_steps=1).solve(fit, start)  # compiles
    ours = (
        seconds(lambda: LevenbergMarquardt(max_steps=3).solve(fit, start)) / 4
    )  # normal equations: steps + 1
    table = Table(f"LM step, d = k = {k}, n = {n}, p = {form.size}", "time / ours", "seconds a step")
    table.row("onehidden", "1.00", ours)
    peers = {
        "PyTorch, batched J'J and Cholesky": lambda: _torch_step(form, X, y, start),
        "SciPy least_squares, trf + lsmr": lambda: _scipy_step(form, X, y, start, "lsmr"),
        "SciPy least_squares, trf + exact": lambda: _scipy_step(form, X, y, start, "exact"),
    }
    for title, step in peers.items():
        took = step()
        table.row(title, f"{took / ours:.2f}", took)
    return table.lines


def _torch_step(form: Parametrisation, X: np.ndarray, y: np.ndarray, theta: np.ndarray) -> float:
    import torch

    inputs, target = torch.tensor(X), torch.tensor(y)
    rows = max(256, (64 << 20) // (8 * form.size))

    def step() -> None:
        k, d = form.k, form.d
        A, w = torch.tensor(theta[: k * d]).reshape(k, d), torch.tensor(theta[k * d : k * d + k])
        H, g = (
            torch.zeros(form.size, form.size, dtype=torch.float64),
            torch.zeros(form.size, dtype=torch.float64),
        )
        for at in range(0, len(inputs), rows):
            x = inputs[at : at + rows]
            t = x @ A.T
            s, u = (t > 0).double() * w, torch.relu(t)
            J = torch.cat([(s[:, :, None] * x[:, None, :]).flatten(1), u, torch.ones(len(x), 1).double()], 1)
            r = u @ w + theta[-1] - target[at : at + rows]
            H += J.T @ J
            g += J.T @ r
        H.diagonal().mul_(1.01)
        move = torch.cholesky_solve(g[:, None], torch.linalg.cholesky(H))[:, 0].numpy()
        new = theta - move
        B, v = torch.tensor(new[: k * d]).reshape(k, d), torch.tensor(new[k * d : k * d + k])
        float(torch.sum((torch.relu(inputs @ B.T) @ v + new[-1] - target) ** 2))

    step()
    return seconds(step, 2)


def _scipy_step(form: Parametrisation, X: np.ndarray, y: np.ndarray, theta: np.ndarray, solver: str) -> float:
    from scipy.optimize import least_squares

    k, d = form.k, form.d

    def residual(p: np.ndarray) -> np.ndarray:
        return np.maximum(X @ p[: k * d].reshape(k, d).T, 0) @ p[k * d : k * d + k] + p[-1] - y

    def jacobian(p: np.ndarray) -> np.ndarray:
        t = X @ p[: k * d].reshape(k, d).T
        s = (t > 0) * p[k * d : k * d + k]
        J = np.empty((len(X), form.size))
        np.multiply(s[:, :, None], X[:, None, :], out=J[:, : k * d].reshape(len(X), k, d))
        J[:, k * d : k * d + k], J[:, -1] = np.maximum(t, 0), 1.0
        return J

    begin = time.perf_counter()
    found = least_squares(residual, theta, jacobian, method="trf", tr_solver=solver, max_nfev=3, xtol=None)
    return (time.perf_counter() - begin) / max(found.njev, 1)


def cost_rows(n: int, d: int = 50, k: int = 10) -> list[str]:
    """The cost model against measurement: processor seconds of each pass over n rows on disk."""
    from functools import partial

    from onehidden.data.reduction import Survey
    from onehidden.fit.rounding import rounding_of
    from onehidden.recovery.streamed import StreamedRows, coordinates_of

    def processor(work: Callable[[], object]) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    form = Parametrisation(activations.get("relu"), d, k)
    A = stream(0, "benchmark", "scale", "matrix").standard_normal((1024, 1024))
    A @ A
    rate = 2 * 1024**3 / min(processor(lambda: A @ A) for _ in range(5))
    with tempfile.TemporaryDirectory() as place:
        write_folder(Path(place) / "rows", n, d, k)
        source = oh.data.open(Path(place) / "rows", target="y")
        assert isinstance(source, oh.data.Source)
        reading = min(processor(lambda: [len(b) for b in source.batches()]) for _ in range(2))
        survey = partial(oh.data.reduce, source, partial(Survey, d))
        summary = survey().result()
        law, basis = laws.Gaussian(summary.mean, summary.covariance), planted(d, k).weights.T
        rounding = rounding_of(float(summary.largest), float(np.sqrt(summary.variance)))
        fit = StreamedRows(source, n, float(n), rounding).least_squares(
            form, coordinates_of(summary, form.bias)
        )
        theta = stream(0, "benchmark", "scale", "student").standard_normal(form.size)
        fit.normal_equations(theta)  # compiles
        works = {
            "survey": survey,
            "finish": lambda: fit.normal_equations(theta + 1),
            "moments": lambda: score_moments(source, None, law, subspace=basis),
        }
        table = Table(
            f"cost model, {n} rows × {d}, k = {k}",
            "measured / model",
            "processor s",
            "model s",
            "GB",
            "GFLOP",
        )
        for cost in costs(form, n, moments=True):
            if cost.name not in works:
                continue
            passes = 2 if cost.name == "moments" else 1
            model = passes * (cost.bytes / (8 * n * (d + 1) / reading) + cost.flops / rate)
            took = processor(works[cost.name])
            table.row(
                f"{cost.name}, {passes} pass{'es' * (passes > 1)}", f"{took / model:.2f}", took, model,
                passes * cost.bytes / 1e9, passes * cost.flops / 1e9,
            )  # fmt: skip
    return table.lines


@dataclass(frozen=True)
class Cost:
    """What one kind of pass over n rows costs."""

    name: str
    passes: int  # how often it is made
    bytes: float  # read in one pass
    flops: float  # of matrix products in it; writing an entry of a table counts as 60

    def seconds(self, read: float, compute: float, workers: int = 1) -> float:
        """Seconds of all its passes, at these bytes and operations per second and worker."""
        return self.passes * (self.bytes / read + self.flops / compute) / workers


def costs(
    form: Parametrisation, rows: float, steps: int = 4, moments: bool = False, write: float = 60.0
) -> list[Cost]:
    """Predict the passes of ``recover(source)``: one survey, one for each step, one certificate.

    Levenberg–Marquardt takes no step over all rows without noise, 3 to 6 with it; ``moments`` adds the two
    passes of T_1..T_4 in the span of the units. ``write`` counts multiply-adds in the time of writing one
    entry of a table.
    """
    d, k = form.d, form.k
    size = 8.0 * rows * (d + form.q)
    slopes, inputs = (k + 1) * (k + 2) / 2, (d + 1) * (d + 2) / 2
    if by_pairs(form):  # one matrix product of the tables of pairs, and the units against the other columns
        normal = 2 * slopes * inputs + 2 * k * (k + 1) * (d + 1) + write * (slopes + inputs + k * (k + 1))
    else:  # the symmetric product J'J
        normal = form.q * (form.size**2 + write * form.size)
    whiten = 2.0 * d * d + write * 2 * d
    found = [
        Cost("survey", 1, size, rows * (2 * (d + 1) ** 2 + write * 3 * (d + 1))),
        Cost("finish", steps + 1, size, rows * (whiten + normal)),
        Cost("certificate", 1, size, rows * (whiten + normal)),
    ]
    if moments:  # k^4 / 24 distinct entries, three times in two passes: control, sums, squares
        entries = k**2 * 6 + 20 * k
        found.append(Cost("moments", 2, size, rows * (2 * d * k + k**4 / 8 + write * (entries + d))))
    return found


def write_folder(folder: Path, n: int, d: int = 50, k: int = 10, file_rows: int = 1_000_000) -> None:
    """n rows of d inputs and the target of a planted network, in files of a million rows.

    One file is written, the others are links to it: 10⁷ rows would be 4 GB. Every pass reads them all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    truth, first = planted(d, k), folder / "00000.parquet"
    folder.mkdir()
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(d)] + [("y", pa.float64())])
    rng, rows = stream(7, "benchmark", "scale", "file", 0), min(file_rows, n)
    with pq.ParquetWriter(first, schema, use_dictionary=False, compression="none") as file:
        for block in range(0, rows, 65_536):
            X = rng.standard_normal((min(65_536, rows - block), d))
            columns = [*(np.ascontiguousarray(X[:, j]) for j in range(d)), truth.predict(X)]
            file.write_batch(pa.record_batch([pa.array(c) for c in columns], schema=schema))
    for number in range(1, n // rows):
        (folder / f"{number:05}.parquet").hardlink_to(first)


def planted(d: int, k: int) -> oh.OneHiddenNet:
    rng = stream(3, "benchmark", "scale", "folder teacher")
    A = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    return oh.OneHiddenNet(A, np.where(np.arange(k) % 2, -1.0, 1.0))


def folder_rows(sizes: tuple[int, ...]) -> list[str]:
    """Whitening, T_1..T_4 in the span of the units, the finish over all rows; a fresh process a size."""
    table = Table(
        "Parquet folder, 50 inputs, k = 10", "time / first row", "whitening s", "T_1..T_4 s", "recover s",
        "peak GiB", "MB/s a pass", "worst error",
    )  # fmt: skip
    first = None
    for n in sizes:
        with tempfile.TemporaryDirectory() as place:
            write_folder(Path(place) / "rows", n)
            command = [sys.executable, "-m", "benchmarks.scale", str(Path(place) / "rows")]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        total = row["whitening"] + row["moments"] + row["recover"]
        first = first or total
        table.row(
            n, f"{total / first:.2f}", row["whitening"], row["moments"], row["recover"], f"{row['gib']:.2f}",
            f"{n * 51 * 8 / row['whitening'] / 1e6:.0f}", f"{row['error']:.1e} ({row['status']})",
        )  # fmt: skip
    return table.lines


def one_folder(folder: Path) -> dict[str, object]:
    """Measured inside a process of its own, so that the peak is that of the work."""
    from functools import partial

    from onehidden.data.reduction import Survey

    source = oh.data.open(folder, target="y")
    assert isinstance(source, oh.data.Source)
    truth, marks = planted(source.n_inputs, 10), [time.perf_counter()]
    summary = oh.data.reduce(source, partial(Survey, source.n_inputs)).result()
    marks.append(time.perf_counter())
    law = laws.Gaussian(summary.mean, summary.covariance)
    low = score_moments(source, None, law, orders=(1, 2), control_degree=1)
    value, vector = np.linalg.eigh(low[2])
    basis = vector[:, np.argsort(-np.abs(value))[:10]]
    high = score_moments(source, None, law, subspace=basis)
    assert high.signal(4) > 5
    marks.append(time.perf_counter())
    r = oh.recover(source, hidden=10, bias=False)
    marks.append(time.perf_counter())
    whitening, moments, recover = np.diff(marks)
    m = oh.match(r.network, truth)
    return {
        "whitening": whitening,
        "moments": moments,
        "recover": recover,
        "status": r.status,
        "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "error": max(m.max_error, m.output_error),
    }


if __name__ == "__main__":
    print(json.dumps(one_folder(Path(sys.argv[1]))))
