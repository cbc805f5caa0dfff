"""The whole catalogue, asked rightly and wrongly: what recover says, and how often a certificate is false.

False: "exact" with a worst relative error above 1e-6, "consistent" with a parameter more than six standard
errors away, or either with another width or activation than the truth's. One run again, with its checks:
``python -m benchmarks.catalogue NAME SEED NOISE ASK [SECONDS [N]]``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _lanes, _pool, _truth
from benchmarks._table import Table

NOISE = 0.1
SECONDS = 60.0
INDISTINCT = 6.0  # gain in n log(loss), twice a log-likelihood, below which two activations are a tie
# The activation most easily taken for another.
MISTAKEN = {"relu": "leaky_relu", "leaky_relu": "relu", "tanh": "erf", "erf": "tanh", "sigmoid": "erf",
            "softplus": "gelu", "gelu": "softplus", "squared_relu": "cubed_relu",
            "cubed_relu": "squared_relu", "abs": "relu"}  # fmt: skip
STATUSES = ("exact", "consistent", "approximate", "doubtful", "not identifiable", "refused")


def main(quick: bool) -> list[str]:
    table = Table("group", "noise", "runs", *STATUSES, "right", "false certificates", "longest s")
    rows = _lanes.measured(cell, a_slice(cells()) if quick else list(cells()), lambda c: str(c[0]))
    groups = sorted({(group_of(c), c[2]) for c, _ in rows}, key=str)
    for group, noise in groups:
        mine = [row for c, row in rows if (group_of(c), c[2]) == (group, noise)]
        table.row(group, noise, len(mine), *summary(mine))
    table.row("**all**", "", len(rows), *summary([row for _, row in rows]))
    near = sum(row.get("evidence", np.inf) < INDISTINCT for _, row in rows)
    named = sum(row.get("named", False) for _, row in rows)
    table.say(
        f"Of the false certificates {near} are activations that the samples cannot tell apart; the message "
        f"of {named} says so."
    )
    for c, row in rows:
        if fault := row.get("broke") or row["false"]:
            table.say(f"- {fault}: `{repeat(c)}`")
    return table.lines


def summary(rows: list[dict[str, Any]]) -> list[Any]:
    """Counts of every status, of right answers (by the truth), of false certificates; the longest run."""
    count = Counter(row.get("status", "broke") for row in rows)
    right = sum(row.get("right", False) for row in rows)
    false = sum(bool(row.get("false")) for row in rows)
    longest = max((row.get("seconds", 0.0) for row in rows), default=0.0)
    return [*(count[s] for s in STATUSES), right, false, f"{longest:.0f}"]


def cells() -> Iterator[tuple[str, int, float, str]]:
    """Every problem once without and once with noise; every law and activation with wrong and open asks."""
    names = [name for name in oh.problems.names() if _moderate(oh.problems.get(name))]
    for i, name in enumerate(names):
        for noise in (0.0, NOISE):
            yield name, i % 10, noise, "right"
    for i, name in enumerate(names):
        problem = oh.problems.get(name)
        if problem.activation not in MISTAKEN or not name.endswith(("-biased", "-signs", "-relu-5")):
            continue
        asks = ["fewer", "more", MISTAKEN[problem.activation], *(["no-bias"] if problem.bias else [])]
        # One wrong ask a problem, in turn: together they cover every law, activation and kind of mistake.
        for noise in (0.0, NOISE):
            yield name, i % 10, noise, asks[i % len(asks)]
            if problem.activation == "relu":
                yield from ((name, i % 10 + 10, noise, ask) for ask in [*asks, "width"])
            if name.startswith(("gaussian-", "laplace-", "logistic-")):
                yield name, i % 10 + 20, noise, "activation"


def _moderate(problem: oh.problems.Problem) -> bool:
    small = problem.n_inputs <= 20 and problem.n_hidden <= 10
    return small or "real inputs" in problem.tags


def a_slice(cells: Iterator[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(cells)[::41]


def cell(name: str, seed: int, noise: float, how: str) -> dict[str, Any]:
    return _truth.trial(name, seed, noise, how, 0, _pool.seconds(SECONDS))


def group_of(c: tuple[Any, ...]) -> str:
    """Rows of the table: real inputs, laws asked rightly, kinds of other asks."""
    name, _, _, how = c
    if how != "right":
        kinds = {"fewer": "a unit fewer", "more": "a unit more", "no-bias": "without its biases",
                 "width": "width left open", "activation": "activation left open"}  # fmt: skip
        return kinds.get(how, "another activation")
    problem = oh.problems.get(name)
    if "real inputs" in problem.tags:
        return "real inputs"
    if "not identifiable" in problem.tags:
        return "polynomial activation"
    laws = [law for law in sorted(oh.problems.LAWS, key=len) if name.startswith(f"{law}-")]
    return laws[0] if laws else "by hand"


def repeat(c: tuple[Any, ...]) -> str:
    return "PYTHONPATH=src:. python -m benchmarks.catalogue " + " ".join(map(str, c))


def _again(name: str, seed: str, noise: str, how: str, limit: str = str(SECONDS), n: str = "0") -> None:
    for key, value in _truth.trial(name, int(seed), float(noise), how, int(n), float(limit)).items():
        print(f"{key}: {value}")


if __name__ == "__main__":
    _again(*sys.argv[1:])
