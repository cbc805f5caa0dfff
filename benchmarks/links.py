"""Laws of the mean at 60 rows a parameter: how often right links fail the check, and wrong ones.

A repetition draws a teacher (two units of three inputs), descends from near it and compares the laws of
the mean. "By the deviance" counts laws that are better by what ``levels`` asks of them, "other mean" those as
likely whose mean leaves the 95 % bands (``levels.OTHER_MEAN``). Wrong laws that other own checks refuse are
counted first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from benchmarks.families import descended, near
from benchmarks.family_errors import NAMES, drawn
from onehidden.certify.evaluate import certify
from onehidden.certify.rival_laws import compare_mean_laws
from onehidden.checks import About
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import read_target
from onehidden.run import Run, stream

WRONG = {
    "gamma identity": "gamma",
    "poisson softplus": "poisson",
    "cloglog": "bernoulli",
    "flips": "bernoulli",
}
Sample = tuple[np.ndarray, np.ndarray, oh.OneHiddenNet, dict[str, Any]]


def main(quick: bool) -> list[str]:
    table = Table("law", "told", "repetitions", "own checks", "by the deviance", "other mean")
    kinds = {**{name: "right" for name in NAMES}, **WRONG}
    cells = [(kind, i) for i in range(4 if quick else 100) for kind in kinds]
    measured = _pool.run(trial, cells)
    for kind, told in kinds.items():
        mine = [row["outcome"] for cell, row in measured if cell[0] == kind and "broke" not in row]
        table.row(kind, told, len(mine), *(mine.count(one) for one in ("own", "deviance", "mean")))
    return table.lines


@in_double
def trial(kind: str, seed: int) -> dict[str, Any]:
    """Which check refuses the law that is told, if one does."""
    X, y, start, given = wrong(kind, seed) if kind in WRONG else right(kind, seed)
    options = Options(hidden=2, family=given["family"])
    target = read_target(X, y, None, options.family, None, None, given.get("trials"))
    problem = problem_of(target.samples, options, target.family, target.offset, target.trials)
    known, found = descended(problem, start)
    certificate = compare_mean_laws(certify(found, known, Run(0)), known, Run(0))
    own = [one for one in certificate.own if one.about in (About.FIT, About.MEAN) and not one.passed]
    link = certificate.comparisons[0]
    better = "deviance" if link.value >= link.threshold else "mean"
    return {"outcome": "own" if own else "passed" if link.passed else better, "gain": link.value}


def right(name: str, seed: int) -> Sample:
    """A sample of a family, of positive numbers where noise is normal, and where to begin."""
    X, y, net, given = drawn(name, 60, 9000 + seed)
    return X, y - y.min() + 1 if name == "gaussian" else y, near(net, seed), given


def wrong(kind: str, seed: int) -> Sample:
    """A sample of another law than is told, and where to begin."""
    rng = stream(seed, "power of links", kind)
    A = rng.standard_normal((2, 3))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    net = oh.OneHiddenNet(A, [1.8, -1.3], 0.3 * rng.standard_normal(2), 0.3)
    X = rng.standard_normal((540, 3))
    f = net.predict(X)
    if kind == "gamma identity":
        y = (f - f.min() + 0.5) * rng.gamma(5, 0.2, 540)
    elif kind == "poisson softplus":
        y = rng.poisson(np.logaddexp(0, 1.2 * f + 1)).astype(float)
    else:
        p = -np.expm1(-np.exp(f)) if kind == "cloglog" else 0.06 + 0.88 / (1 + np.exp(-1.8 * f))
        return X, 1.0 * (rng.random(540) < p), net, {"family": "bernoulli"}
    start = oh.OneHiddenNet(A, 0.5 * net.output, net.bias, np.log(y.mean()))
    return X, y, start, {"family": WRONG[kind]}
