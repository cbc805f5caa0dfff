"""Size and power of every test of the certificate, each beside the error that it looks for.

``python -m benchmarks sizes``: one unit of three inputs, fitted from near the truth; no search. Size is the
share of right answers that a test refuses at .05 and .01; comparisons by likelihood have one bound, in place
of .01, and are made of every other draw. Power is that at .01 where something is wrong: a missed .4 x1 x2,
neighbours with AR(1) noise of .3, a floor under a fifth of the rows, a second unit of half the outputs. Of a
linear function the size is the share of draws in which it passes for a unit, the power that of units which
do. Rows that repeat lie at n / 4 points, four at each. "rare events" are 0/1 labels, of which one in ten is
1; their floor is that of the probability, .1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from benchmarks.families import descended
from onehidden.certify.certificate import Certificate, Status
from onehidden.certify.dependence import dependence_p_value
from onehidden.certify.evaluate import certify
from onehidden.certify.local_fit import local_fit
from onehidden.certify.mean_law import mean_law_checks
from onehidden.certify.replicates import lack_of_fit
from onehidden.certify.residuals import adequacy, equal_spread, spread_sums
from onehidden.certify.rival_laws import compare_activations, compare_mean_laws
from onehidden.certify.widths import compare_larger, compare_smaller
from onehidden.fit.problem import Problem
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import read_target
from onehidden.run import Run, stream

NOISES = ("equal", "unequal", "t3", "skewed", "rare events")
ROWS = (40, 100, 300, 1000, 3000)
POWER_ROWS = (300, 1000)
WRONG = ("nothing", "product", "order", "floor", "unit", "linear")
BLOCK = 20  # draws of a run
Answer = tuple[bool, bool]  # whether a right answer is refused at .05, and at .01 or the bound


def main(quick: bool) -> list[str]:
    rows, blocks = (ROWS[1:3], 1) if quick else (ROWS, 5)
    cells = [
        (noise, n, wrong, block)
        for block in range(blocks)
        for wrong in WRONG
        for noise in NOISES
        for n in rows
        if wrong in ("nothing", "linear") or (n in POWER_ROWS and block < 2)
    ]
    measured = [(cell, row) for cell, row in _pool.run(trials, cells) if "broke" not in row]
    table = Table("test", "noise", "rows", "draws", "5 %", "1 % or its bound", "of what is wrong", "found")
    tests = dict.fromkeys(name for cell, row in measured for name in row["tests"])
    for name in tests:
        for noise in NOISES:
            for n in rows:
                null, power = (
                    np.array([hit for cell, row in measured if cell[:3] == (noise, n, wrong)
                              for hit in row["tests"].get(name, [])], float).reshape(-1, 2)
                    for wrong in _BETWEEN[name]
                )  # fmt: skip
                if len(null):
                    shares = [f"{value:.3f}" for value in null.mean(axis=0)]
                    shares[0] = shares[0] if name in _HAS_P else "–"
                    found = f"{power[:, 1].mean():.2f}" if len(power) else "–"
                    table.row(name, noise, n, len(null), *shares, _BETWEEN[name][1], found)
    return table.lines


# What a test should let pass, and what it should find. A linear function should not pass for a unit.
_BETWEEN = {
    "fit": ("nothing", "product"), "lack of fit": ("nothing", "product"),
    "independent rows": ("nothing", "order"), "skewness": ("nothing", "floor"),
    "equal spread": ("nothing", ""), "ends of y": ("nothing", "floor"),
    "a larger model": ("nothing", "unit"), "linear function": ("linear", "nothing"),
    "rival activation": ("nothing", ""), "link": ("nothing", "floor"),
}  # fmt: skip
_HAS_P = {"fit", "lack of fit", "independent rows", "skewness", "equal spread", "ends of y"}


def trials(noise: str, n: int, wrong: str, block: int) -> dict[str, Any]:
    """The answers of every test over a block of draws."""
    found: dict[str, list[Answer]] = {}
    for i in range(BLOCK):
        for name, answer in trial(noise, n, wrong, block * BLOCK + i):
            found.setdefault(name, []).append(answer)
    return {"tests": found}


def drawn(noise: str, n: int, wrong: str, seed: int) -> tuple[np.ndarray, np.ndarray, oh.OneHiddenNet]:
    """Inputs, y, and the network that is fitted."""
    rng = stream(seed, "benchmark", "sizes", noise, n, wrong)
    X = rng.standard_normal((n, 3))
    if wrong == "product" and noise != "rare events":
        X = np.tile(X[: n // 4], (4, 1))
    A = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    labels = noise == "rare events"
    size = 3.0 if labels else 2.0
    net = oh.OneHiddenNet(A[:1], [size], [0.3], -4.0 if labels else 0.5)
    eta = net.predict(X)
    if wrong == "product":
        eta = eta + (1.0 if labels else 0.4) * X[:, 0] * X[:, 1]
    elif wrong == "unit":
        eta = eta + 0.5 * size * np.maximum(X @ A[1], 0)
    elif wrong == "linear":
        eta = (-3.0 if labels else 0.5) + (1.0 if labels else 0.7) * X @ A[0]
    if labels:
        p = 1 / (1 + np.exp(-eta))
        p = 0.1 + 0.9 * p if wrong == "floor" else p
        return X, (rng.random(n) < p).astype(float), net
    e = _noise(noise, X, rng)
    for i in range(1, n if wrong == "order" else 0):
        e[i] = 0.3 * e[i - 1] + np.sqrt(1 - 0.3**2) * e[i]
    y = eta + e
    return X, np.maximum(y, np.quantile(y, 0.2)) if wrong == "floor" else y, net


def _noise(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(X)
    if kind == "unequal":
        return rng.standard_normal(n) * np.exp(0.8 * X[:, 0] - 0.64)
    if kind == "t3":
        return rng.standard_t(3, n) / np.sqrt(3)
    return (rng.gamma(2, 1, n) - 2) / np.sqrt(2) if kind == "skewed" else rng.standard_normal(n)


@in_double
def trial(noise: str, n: int, wrong: str, seed: int) -> Iterator[tuple[str, Answer]]:
    """Each test's answer to one draw."""
    X, y, net = drawn(noise, n, wrong, seed)
    labels = noise == "rare events"
    options = Options(hidden=1, family="bernoulli" if labels else None)
    target = read_target(X, y, None, options.family, None, None, None)
    problem, run = problem_of(target.samples, options, target.family, target.offset, target.trials), Run(0)
    known, network = descended(problem, net)
    seen = known.at(network)
    local = local_fit(network, seen)

    def p(name: str, value: float) -> tuple[str, Answer]:
        return name, (not value > 0.05, not value > 0.01)

    if wrong in ("nothing", "product"):
        yield p("fit", adequacy(seen, local.theta, run).p_value)
        if not labels:
            repeated = lack_of_fit(local) if wrong == "product" else _of_replicates(noise, n, seed)
            if repeated is not None:
                yield p("lack of fit", repeated)
    if wrong in ("nothing", "order"):
        yield p("independent rows", dependence_p_value(local.residuals[:, 0]))
    if wrong in ("nothing", "floor"):
        for check in mean_law_checks(local, known):
            if check.name in _HAS_P:
                yield p(check.name, check.value)
    if wrong == "nothing" and noise != "unequal" and not labels:
        yield p("equal spread", equal_spread(*seen.sums(spread_sums, local.inner)))
    if seed % 2 == 0:
        yield from _compared(certify(network, known, run), known, wrong, run)


def _of_replicates(noise: str, n: int, seed: int) -> float | None:
    """p-value of the lack of fit of a right answer to rows that repeat."""
    rng = stream(seed, "benchmark", "sizes", noise, n, "replicates")
    X = np.tile(rng.standard_normal((n // 4, 3)), (4, 1))
    net = oh.OneHiddenNet([[0.6, 0.8, 0.0]], [2.0], [0.3], 0.5)
    target = read_target(X, net.predict(X) + _noise(noise, X, rng), None, None, None, None, None)
    known, network = descended(problem_of(target.samples, Options(hidden=1)), net)
    return lack_of_fit(local_fit(network, known.at(network)))


def _compared(given: Certificate, problem: Problem, wrong: str, run: Run) -> Iterator[tuple[str, Answer]]:
    """Whether comparisons with other widths and laws refuse the answer, or a linear function.

    As in a recovery, an answer that does not stand by itself is not compared: a spike is no unit either.
    """
    stages = {
        "nothing": (compare_smaller, compare_larger, compare_activations, compare_mean_laws),
        "unit": (compare_larger,), "linear": (compare_smaller,), "floor": (compare_mean_laws,),
    }  # fmt: skip
    if given.status_if_comparisons_pass is not Status.CONSISTENT:
        if wrong == "linear":
            yield "linear function", (False, False)
        return
    for stage in stages.get(wrong, ()):
        for check in stage(given, problem, run).comparisons:
            if check.name in _BETWEEN and check.evaluated:
                refused = check.passed if stage is compare_smaller else not check.passed
                yield check.name, (refused, refused)
