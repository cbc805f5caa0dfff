"""Coverage of 95 % intervals beside a linear part: its slopes, the mean slopes, the parameters of the units.

Teachers: two ReLU units of three inputs, whose two largest weights have one size in every other teacher, and
a linear part; 300 rows, noise of sd 0.5. Counted over certified answers, parameter by parameter; an answer
that is oriented otherwise than the teacher counts with all its numbers.
"""

from __future__ import annotations

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from onehidden.streams import stream


def main(quick: bool) -> list[str]:
    cells = [(seed,) for seed in range(20 if quick else 360)]
    rows = [row for _, row in _pool.run(trial, cells) if "broke" not in row]
    kept = [row for row in rows if row["certified"]]
    table = Table("numbers", "runs", "certified", "counted", "covered")
    for name in ("linear part", "mean slopes", "units"):
        hits = [hit for row in kept for hit in row[name]]
        share = float(np.mean(hits)) if hits else float("nan")
        runs = np.array([np.mean(row[name]) for row in kept])
        error = float(np.std(runs) / np.sqrt(max(len(runs), 1)))
        table.row(name, len(rows), len(kept), len(hits), f"{100 * share:.1f} ± {100 * error:.1f} %")
    other = sum(row["reoriented"] for row in kept)
    table.say("")
    table.say(f"Oriented otherwise than the teacher: {other} of {len(kept)}.")
    return table.lines


def trial(seed: int) -> dict[str, object]:
    """One recovery: which intervals hold."""
    rng = stream(seed, "linear parts benchmark")
    A = rng.standard_normal((2, 3))
    if seed % 2:
        A[0, 1] = -A[0, 0]
        A[0, 2] *= 0.3
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    w = rng.choice([-1, 1], 2) * rng.uniform(1.5, 2.5, 2)
    truth = oh.OneHiddenNet(A, w, rng.uniform(-0.5, 0.5, 2), 0.4, linear=rng.uniform(-1, 1, 3))
    truth = truth.canonical(beside=True)
    X = rng.standard_normal((300, 3))
    y = truth.predict(X) + 0.5 * rng.standard_normal(300)
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
    mean, reach = r.mean_slopes, (high.intercept - low.intercept) / 2 / r.standard_errors.intercept
    expected = truth.linear + 0.5 * truth.weights.T @ truth.output
    return {
        "certified": r.converged,
        "linear part": ((low.linear <= truth.linear) & (truth.linear <= high.linear)).tolist(),
        "mean slopes": (np.abs(mean.slope - expected) <= reach * mean.error).tolist(),
        "units": of_units,
        "reoriented": not same,
    }
