"""Coverage of 95 % bands of the mean where the number of units was left open and a weak unit may be missed.

Teachers: two or three ReLU units of three inputs, the last with a share of the signal near the limit of what
the rows show; 300 rows, noise of half the signal. Counted on 200 fresh rows of the inputs' law, over
certified answers: with fewer units than the teacher, and with all. "Narrow" are bands without what may be
missed. Set before the numbers were seen: bands must cover 93.5 % or more where a unit was missed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from onehidden.run import stream


def main(quick: bool) -> list[str]:
    cells = [(seed,) for seed in range(12 if quick else 160)]
    rows = [row for _, row in _pool.run(trial, cells) if "broke" not in row]
    table = Table("units found", "answers", "band covers", "narrow band covers", "width over narrow")
    for name, fewer in (("fewer than the teacher", True), ("all", False)):
        some = [row for row in rows if row["certified"] and (row["found"] < row["true"]) == fewer]
        if some:
            band, narrow, wider = (
                np.array([row[key] for row in some]) for key in ("band", "narrow", "wider")
            )
            shares = [f"{100 * v.mean():.1f} ± {100 * v.std() / len(v) ** 0.5:.1f} %" for v in (band, narrow)]
            table.row(name, len(some), *shares, float(wider.mean()))
    table.say("")
    table.say(f"Certified: {sum(row['certified'] for row in rows)} of {len(rows)}.")
    return table.lines


def trial(seed: int) -> dict[str, object]:
    """One recovery without a width: what its bands cover."""
    rng = stream(seed, "weak units benchmark")
    k = 2 + seed % 2
    A = rng.standard_normal((k, 3))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    w = rng.choice([-1, 1], k) * rng.uniform(1.5, 2.5, k)
    w[-1] *= rng.uniform(0.1, 0.35)
    truth = oh.OneHiddenNet(A, w, rng.uniform(-0.5, 0.5, k), 0.4)
    X, fresh = rng.standard_normal((300, 3)), rng.standard_normal((200, 3))
    f = truth.predict(X)
    y = f + 0.5 * np.std(f) * rng.standard_normal(300)
    r = oh.recover(X, y, seed=seed, max_seconds=30)
    plain = replace(r, undetected=float("nan"))
    ends, value = [one.predict_interval(fresh) for one in (r, plain)], truth.predict(fresh)
    covered = [float(np.mean((low <= value) & (value <= high))) for low, high in ends]
    widths = [float(np.mean(high - low)) for low, high in ends]
    return {
        "certified": r.converged, "found": r.network.n_hidden, "true": k, "band": covered[0],
        "narrow": covered[1], "wider": widths[0] / widths[1],
    }  # fmt: skip
