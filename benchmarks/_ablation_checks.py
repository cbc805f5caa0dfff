"""Ablation of the checks: the wrong answers that each check alone refuses, and the right answers it costs.

``python -m benchmarks._ablation_checks``: about 260 recoveries with a known truth, 13 CPU-minutes on one
core; the table is stored in ``benchmarks/results/ablation_checks.md``. No run is repeated without a check: an
answer is refused by the checks that failed and by the causes for which units are undetermined, and leaving
one of them out certifies exactly the answers that it refuses alone. Comparisons stop at the first reason to
refuse an answer, so a check of a later stage may refuse an answer counted here as refused by one check alone.

An answer is wrong if a certificate of it is false by the rule of ``_verdict_score``. Repeated and dependent
rows make standard errors too small, so every certificate is wrong there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table, stamp
from benchmarks._verdict_cases import Case, parameters
from benchmarks._verdict_data import Sample, sample
from benchmarks._verdict_score import descent_from, judge, read

SECONDS = 6.0
SPECS = (("relu", 4, 2), ("tanh", 3, 2), ("relu", 6, 3), ("softplus", 5, 2))
RELATIVES = {"relu": "leaky_relu", "tanh": "erf", "softplus": "gelu"}


def _case(truth: str, noise: str, ask: str, ratio: int, seed: int, level: float | None = None) -> Case:
    g, d, k = SPECS[seed % len(SPECS)]
    law = ("gaussian", "correlated", "skewed")[seed % 3]
    k = {"clip": 2, "hat": 3}.get(truth, k)
    g = "relu" if truth in ("clip", "hat") else g
    level = (0.2, 0.5, 0.05)[seed // 2 % 3] if level is None else level
    n = max(ratio * parameters(g, d, k), 30)
    return Case(truth, g, law, d, k, noise, 0.0 if noise == "none" else level, n, ask, 7000 + seed)


def _one_unit(truth: str, d: int, seed: int) -> Case:
    noise, level = ("equal", "unequal", "heavy")[seed % 3], 1.0 if truth == "noise" else 0.5
    return Case(truth, "relu", "gaussian", d, 1, noise, level, 400, "right", 7000 + seed)


def _copied(data: Sample) -> Sample:
    """A third of the rows, three times each."""
    rows = np.tile(np.arange(len(data.y) // 3), 3)
    return replace(data, X=data.X[rows], y=data.y[rows], clean=data.clean[rows])


def _dependent_columns(data: Sample) -> Sample:
    return replace(data, X=np.column_stack([data.X, data.X[:, 0] - 2 * data.X[:, 1]]))


def _lattice(data: Sample) -> Sample:
    """Inputs of three values each; y is that of the truth there."""
    assert data.truth is not None
    X = np.clip(np.round(data.X), -1, 1)
    y = data.truth.predict(X)
    return replace(data, X=X, y=y, clean=y)


# Cell: its cases by seed, what changes the sample, whether every certificate is wrong, runs.
CELLS: dict[str, tuple[Callable[[int], Case], Callable[[Sample], Sample] | None, bool, int]] = {
    "no noise": (lambda s: _case("network", "none", "right", 5, s), None, False, 8),
    "no noise, few rows": (lambda s: _case("network", "none", "right", 1, s), None, False, 8),
    "no noise, lattice": (lambda s: _case("network", "none", "right", 10, s), _lattice, False, 16),
    "no noise, one unit more": (lambda s: _case("network", "none", "more", 10, s), None, False, 6),
    "equal noise": (lambda s: _case("network", "equal", "right", (10, 30)[s % 2], s), None, False, 16),
    "unequal noise": (lambda s: _case("network", "unequal", "right", (10, 30)[s % 2], s), None, False, 16),
    "heavy-tailed noise": (lambda s: _case("network", "heavy", "right", (10, 30)[s % 2], s), None, False, 16),
    "few rows": (lambda s: _case("network", "equal", "right", 3, s), None, False, 8),
    "one unit fewer": (lambda s: _case("network", "equal", "fewer", (10, 30)[s % 2], s), None, False, 10),
    "one unit more": (
        lambda s: _case("network", ("equal", "unequal")[s % 2], "more", 10, s), None, False, 12,
    ),
    "wrong activation": (lambda s: _case("network", "equal", "other", 10, s), None, False, 10),
    "relative activation": (lambda s: _case("network", "equal", "relative", 30, s, 0.05), None, False, 10),
    "one unit more, few rows": (lambda s: _case("network", "equal", "more", 5, s), None, False, 8),
    "weak unit, one unit fewer": (
        lambda s: _case("weak", "equal", "fewer", (10, 30)[s % 2], s), None, False, 16,
    ),
    "five rows a parameter": (lambda s: _case("network", "equal", "right", 5, s, 0.5), None, False, 8),
    "one unit for noise": (lambda s: _one_unit("noise", 15, s), None, False, 10),
    "one unit for a linear function": (lambda s: _one_unit("linear", 5, s), None, False, 10),
    "weak unit": (lambda s: _case("weak", "equal", "right", 10, s), None, False, 8),
    "interaction": (lambda s: _case("product", "equal", "right", 30, s), None, False, 10),
    "hidden column": (lambda s: _case("missing", "equal", "right", 30, s), None, False, 6),
    "linear function": (
        lambda s: _case("linear", ("equal", "unequal")[s % 2], "right", 30, s), None, False, 6,
    ),
    "pure noise": (
        lambda s: _case("noise", ("equal", "unequal", "heavy")[s % 3], "right", 10, s, 1.0), None, False, 8,
    ),
    "equivalent parametrisations": (
        lambda s: _case(("clip", "hat")[s % 2], ("none", "equal")[s // 2 % 2], "right", 20, s), None, False,
        8,
    ),
    "copies of rows": (lambda s: _case("network", "equal", "right", 30, s), _copied, True, 8),
    "dependent rows": (lambda s: _case("network", "autocorrelated", "right", 30, s), None, True, 8),
    "dependent columns": (lambda s: _case("network", "equal", "right", 10, s), _dependent_columns, True, 4),
}  # fmt: skip


def trial(cell: str, seed: int) -> dict[str, object]:
    """One recovery: why it is refused, and whether a certificate would be wrong."""
    made, change, always, _ = CELLS[cell]
    case = made(seed)
    data = sample(case)
    data = data if change is None else change(data)
    asked = RELATIVES[case.activation] if case.ask == "relative" else case.asked
    hidden = case.k if case.ask == "relative" else case.hidden
    r = oh.recover(data.X, data.y, hidden, activation=asked, seed=case.solver_seed, max_seconds=SECONDS)
    answer = replace(read(r), status="exact" if r.status == "exact" or not data.noise else "consistent")
    if always:
        outcome = "wrong"
    else:
        best = float("nan")
        if case.is_network and data.noise:
            best = descent_from(data.truth, data.X, data.y)[0]
        verdict = judge(case, data, answer, best)
        outcome = "right" if verdict.right else "wrong" if verdict.false else "neither"
    return {
        "status": str(r.status),
        "outcome": outcome,
        "failed": [check.name for check in r.checks if not check.passed and check.about != "note"],
        "evaluated": [check.name for check in r.checks],
        "noted": [check.name for check in r.checks if not check.passed and check.about == "note"],
        "causes": sorted({unit.cause.name for unit in r.units if unit.cause is not None}),
        "seconds": float(r.seconds),
    }


def reasons(row: dict) -> frozenset[str]:
    """Why an answer is not certified: checks that failed, and causes that no such check states."""
    named = set(row["failed"]) | {CHECK_OF.get(cause, f"unit: {cause}") for cause in row["causes"]}
    if not named and row["status"] not in ("exact", "consistent"):
        named = {f"status {row['status']}"}
    return frozenset(named)


# The check that leaves units undetermined for this cause.
CHECK_OF = {
    "NOTHING": "weakest unit",
    "KINK": "switched units",
    "BLIND": "identifiability",
    "EQUIVALENT": "orientation",
    "RIVAL": "other minimum",
    "SPARE": "a smaller model",
}


def tables(rows: Iterable[tuple[tuple, dict]]) -> list[str]:
    """One line a check, one line a cell."""
    sound = [(cell, row) for cell, row in rows if "broke" not in row]
    refused: dict[str, Counter[str]] = {}
    for _, row in sound:
        why = reasons(row)
        for name in {*row["evaluated"], *why}:
            count = refused.setdefault(name, Counter())
            count["evaluated"] += 1
            if name in why:
                count[row["outcome"]] += 1
                count[f"{row['outcome']} alone"] += len(why) == 1
            count["noted"] += name in row["noted"]
    table = Table(
        "check", "runs", "refuses wrong", "alone", "refuses right", "alone", "refuses neither", "noted"
    )
    for name, count in sorted(refused.items(), key=lambda one: (-one[1]["wrong alone"], -one[1]["wrong"])):
        table.row(
            name, count["evaluated"], count["wrong"], count["wrong alone"], count["right"],
            count["right alone"], count["neither"], count["noted"],
        )  # fmt: skip
    lines = [*table.lines, ""]
    table = Table("cell", "runs", "right", "right, certified", "wrong", "wrong, certified", "alone, by check")
    for name in CELLS:
        mine = [row for cell, row in sound if cell[0] == name]
        yes = [row for row in mine if row["status"] in ("exact", "consistent")]
        alone = Counter(
            next(iter(reasons(row))) for row in mine if row["outcome"] == "wrong" and len(reasons(row)) == 1
        )
        right, wrong = (
            [sum(row["outcome"] == kind for row in some) for some in (mine, yes)]
            for kind in ("right", "wrong")
        )
        table.row(name, len(mine), *right, *wrong, ", ".join(f"{a} {b}" for a, b in alone.most_common()))
    return [*lines, *table.lines]


def main() -> None:
    made = stamp()
    cells = [(name, seed) for name, (_, _, _, runs) in CELLS.items() for seed in range(runs)]
    lines = tables(_pool.run(trial, cells))
    path = Path(__file__).parent / "results" / "ablation_checks.md"
    path.write_text("\n".join([f"# ablation of the checks ({made})", "", *lines, ""]))


if __name__ == "__main__":
    main()
