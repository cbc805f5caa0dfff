"""What many tests share: a teacher, how far an answer is from it, what a refusal looks like."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from onehidden import OneHiddenNet, match
from onehidden.activations import Activation
from onehidden.checks import Check
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.recovery import Recovery

ROOT = Path(__file__).parents[1]
EXACT = 1e-8  # relative error of the worst parameter of an exact answer
FOUND = 1e-6  # worst parameter of a start that ended at the floor of a search, residuals of 1e-7


def teacher(
    activation: str | Activation = "relu",
    d: int = 5,
    k: int = 3,
    seed: int = 0,
    *,
    rows: str = "orthonormal",
    output: np.ndarray | list[float] | str | None = None,
    bias: float = 0.0,
    intercept: float = 0.0,
) -> OneHiddenNet:
    """A network to be found.

    Parameters
    ----------
    rows : "orthonormal"; "gaussian" for independent standard normal entries; "uneven" for such rows of
        length about one, some longer and some shorter.
    output : (k,) outputs; 1, -1, 1, … when None; "uneven" for random signs and sizes.
    bias : standard deviation of the biases.
    """
    rng = np.random.default_rng(seed)
    if rows == "orthonormal":
        A = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    else:
        A = rng.standard_normal((k, d))
    if rows == "uneven":
        A = A / np.sqrt(d) * np.exp(0.4 * rng.standard_normal((k, 1)))
    if output is None:
        output = np.where(np.arange(k) % 2, -1.0, 1.0)
    elif isinstance(output, str):
        output = rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 1.5, k)
    return OneHiddenNet(A, output, bias * rng.standard_normal(k) if bias else None, intercept, activation)


def normal(n: int, d: int = 5, seed: int = 1) -> np.ndarray:
    """(n, d) standard normal inputs."""
    return np.random.default_rng(seed).standard_normal((n, d))


def planted(
    net: OneHiddenNet, X: np.ndarray, noise: float = 0.0, seed: int = 0, bias: bool | None = None
) -> Problem:
    """The least-squares problem of samples of a network, with its own width and activation."""
    y = net.predict(X) + noise * np.random.default_rng([seed, 77]).standard_normal(len(X))
    return problem_of(X, y, net.activation, net.n_hidden, bool(np.any(net.bias)) if bias is None else bias)


def problem_of(X: np.ndarray, y: np.ndarray, activation: Activation, k: int, bias: bool) -> Problem:
    """The least-squares problem of samples, in the coordinates that recover() would choose."""
    samples = Samples(X, y, names=tuple(f"x{j}" for j in range(X.shape[1])))
    around = samples.coordinates(bias)
    return Problem(samples, Parametrisation(activation, around.rank, k, bias), around)


def worst_error(found: OneHiddenNet, truth: OneHiddenNet) -> float:
    """The largest error of rows, outputs, biases and intercept."""
    m = match(found, truth)
    return max(m.max_error, m.output_error, m.bias_error, m.intercept_error)


def check_named(recovery: Recovery, name: str) -> Check:
    """The check of this name."""
    return next(check for check in recovery.checks if check.name == name)


def one_sentence(error, *words: str) -> None:
    """What pytest.raises caught is one line with these words in it."""
    text = str(error.value)
    assert "\n" not in text
    for word in words:
        assert word in text, text


def write_folder(path: Path, columns: dict[str, np.ndarray], files: int = 3, group: int = 100) -> Path:
    """A folder of Parquet files with these columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.mkdir(exist_ok=True)
    table = pa.table(columns)
    step = -(-table.num_rows // files)
    for i in range(files):
        pq.write_table(table.slice(i * step, step), path / f"{i}.parquet", row_group_size=group)
    return path


@contextlib.contextmanager
def sketched() -> Iterator[None]:
    """Every figure of a page is drawn, and none written out: Matplotlib writes longer than searches take.

    tests/report writes and reads them all.
    """
    from matplotlib.figure import Figure

    def empty(canvas: Figure, file: io.StringIO | str, **_: object) -> None:
        if not isinstance(file, str):  # a page writes its own pictures
            file.write("<svg></svg>")

    with mock.patch.object(Figure, "savefig", empty):
        yield


class Done(NamedTuple):
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


def command(*arguments: object, cwd: Path | None = None) -> Done:
    """``onehidden`` with these arguments, in this process: starting one costs more than most commands."""
    from onehidden.cli import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.ExitStack() as scope:
        scope.enter_context(contextlib.redirect_stdout(out))
        scope.enter_context(contextlib.redirect_stderr(err))
        scope.enter_context(mock.patch.object(sys, "argv", ["onehidden", *map(str, arguments)]))
        if cwd is not None:
            scope.enter_context(contextlib.chdir(cwd))
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())


def simulated(family, eta, rng, phi=1.0, trials=None):
    """Targets of a family at these linear predictors; of a binomial the shares of successes."""
    if family.coupled:
        edges = np.cumsum(family.probabilities(eta), axis=1)[:, :-1]
        return family.target(np.sum(rng.random((len(eta), 1)) > edges, axis=1))
    if trials is not None:
        return rng.binomial(trials.astype(int), family.mean(eta)) / trials
    return family.distribution(eta, phi).rvs(eta.shape, random_state=rng)


def halved(value, log):
    """A run of a benchmark that leaves a trace; here, where a second process can import it."""
    with open(log, "a") as file:
        file.write(f"{value}\n")
    return {"half": 10 / value}
