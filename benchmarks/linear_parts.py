"""Coverage of 95 % intervals beside a linear part: its slopes, the mean slopes, the parameters of the units.

Teachers: two ReLU units of three inputs, whose two largest weights have one size in every other teacher, and
a linear part; noise of sd 0.5. Counted over certified answers, parameter by parameter; of the units over
those that are oriented as the teacher: the others are counted beside. Asked, before the numbers were seen:
93.5 to 96.5 %.
"""

from __future__ import annotations

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from onehidden.run import stream


def main(quick: bool) -> list[str]:
    table = Table("rows", "runs", "certified", "linear part", "mean slopes", "units", "oriented otherwise")
    for n in (300,) if quick else (300, 1200):
        cells = [(seed, n) for seed in range(20 if quick else 300)]
        rows = [row for _, row in _pool.run(trial, cells) if "broke" not in row]
        kept = [row for row in rows if row["certified"]]
        same = [row for row in kept if not row["reoriented"]]
        parts = [
            _covered(some, name)
            for some, name in ((kept, "linear part"), (kept, "mean slopes"), (same, "units"))
        ]
        table.row(n, len(rows), len(kept), *parts, len(kept) - len(same))
    return table.lines


def _covered(rows: list[dict], name: str) -> str:
    """The share of intervals that hold, with its standard error over runs."""
    each = np.array([np.mean(row[name]) for row in rows])
    return f"{100 * each.mean():.1f} ± {100 * each.std() / len(each) ** 0.5:.1f} %"


def trial(seed: int, n: int) -> dict[str, object]:
    """One recovery: which intervals hold."""
    rng = stream(seed, "linear parts benchmark", n)
    A = rng.standard_normal((2, 3))
    if seed % 2:
        A[0, 1] = -A[0, 0]
        A[0, 2] *= 0.3
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    w = rng.choice([-1, 1], 2) * rng.uniform(1.5, 2.5, 2)
    truth = oh.OneHiddenNet(A, w, rng.uniform(-0.5, 0.5, 2), 0.4, linear=rng.uniform(-1, 1, 3))
    truth = truth.canonical(beside=True)
    X = rng.standard_normal((n, 3))
    y = truth.predict(X) + 0.5 * rng.standard_normal(n)
    r = oh.recover(X, y, 2, linear=True, start="random", max_seconds=20)
    low, high = r.interval()
    place = oh.match(truth, r.network).permutation  # the unit of the truth of each unit found
    order = np.argsort(place) if np.all(place >= 0) else np.arange(2)
    same = np.all(np.sum(truth.weights * r.network.weights[order], axis=1) > 0)
    of_units = []
    for name in ("weights", "bias", "output"):
        value, *ends = (np.asarray(getattr(one, name)) for one in (truth, low, high))
        ends = [end[order] for end in ends]
        of_units += ((ends[0] <= value) & (value <= ends[1])).ravel().tolist()
    mean = r.mean_slopes
    expected = truth.linear + 0.5 * truth.weights.T @ truth.output
    return {
        "certified": r.converged,
        "linear part": ((low.linear <= truth.linear) & (truth.linear <= high.linear)).tolist(),
        "mean slopes": ((mean.lower <= expected) & (expected <= mean.upper)).tolist(),
        "units": of_units,
        "reoriented": not same,
    }
