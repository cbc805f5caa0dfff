"""Regret of the schedule: its expected time to the right answer over that of the best single start.

The expected time of a start in a cell is the sum of the seconds of its runs over the number of right ones
(the ERT of COCO, Hansen et al. 2021): a start that fails pays for its failures. Right means a loss within 4
of n log(loss) of the minimum next to the teacher, or rounding where y has no noise. Seconds are those of the
whole call, certificate and prediction included, on one core a run. Run it twice with another ``BENCH_ROWS``:
the second time compiled programs are on disk for all starts alike.

``BENCH_SECONDS`` bounds one recovery (default 20), ``BENCH_RUNS`` the seeds of a cell (default 2).
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from benchmarks.ablation import REGIMES, Regime, posed
from onehidden.fit.problem import optimise
from onehidden.machine import double
from onehidden.run import Run

STARTS = (
    "auto",
    "random",
    "tensor",
    "localised",
    "difference_map",
    "wide",
    "thinned",
    "population",
)
CELLS = {
    **REGIMES,
    "d 2, k 3": Regime(2, 3, 400),
    "d 30, k 3, noise .5": Regime(30, 3, 3000, noise=0.5),
    "d 6, k 4, abs": Regime(6, 4, 600, "abs"),
    "d 6, k 4, sigmoid, noise .05": Regime(6, 4, 1500, "sigmoid", noise=0.05),
    "d 6, k 6, erf": Regime(6, 6, 900, "erf"),
    "d 10, k 5, leaky, 3 a weight": Regime(10, 5, 165, "leaky_relu"),
    "d 20, k 10, 2 a weight": Regime(20, 10, 420),
    "d 20, k 20, 2 a weight": Regime(20, 20, 840, bias=False),
    "d 5, k 5, two outputs, noise .2": Regime(5, 5, 800, noise=0.2, outputs=2),
    "d 16, k 8, noise .02": Regime(16, 8, 1200, noise=0.02),
    "d 12, k 6, clusters, noise .05": Regime(12, 6, 1500, noise=0.05, clusters=True),
    "d 4, k 2, counts, few": Regime(4, 2, 300, family="poisson"),
}


def run(name: str, seed: int, start: str) -> dict[str, Any]:
    """One recovery."""
    regime = CELLS[name]
    problem, _, truth = posed(regime, seed)
    X, y, _ = regime.drawn(seed)
    begun = time.perf_counter()
    try:
        r = oh.recover(
            X, y, regime.k, activation=regime.activation, bias=regime.bias, family=regime.family,
            start=start, seed=seed, max_seconds=_pool.seconds(20.0),
        )  # fmt: skip
    except ValueError as refused:  # a start that does not apply here
        return {"right": False, "seconds": time.perf_counter() - begun, "status": str(refused)[:40]}
    seconds = time.perf_counter() - begun
    with double():
        loss, best = (
            float(np.mean(problem.row_losses(net))) * problem.n / problem.n_values
            for net in (r.network, optimise(truth, problem, Run(), warm=True).network)
        )
        if regime.noise or regime.family is not None:
            right = problem.excess_deviance(best, loss) <= 4.0
        else:
            right = problem.rows.rounding.reproduces(loss)
    return {"right": bool(right), "seconds": seconds, "status": str(r.status)}


def main(quick: bool) -> list[str]:
    seeds = 1 if quick else int(os.environ.get("BENCH_RUNS", "2"))
    cells = [(name, seed, start) for name in CELLS for start in STARTS for seed in range(100, 100 + seeds)]
    rows = _pool.run(run, cells[:9] if quick else cells)
    table = Table("cell", *(f"{start}: right, s" for start in STARTS), "best alone", "regret")
    regrets, totals = [], 0.0
    for name in dict.fromkeys(cell[0] for cell, _ in rows):
        times: dict[str, float] = {}
        shown = []
        for start in STARTS:
            own = [row for cell, row in rows if cell[0] == name and cell[2] == start and "broke" not in row]
            right, seconds = sum(row["right"] for row in own), sum(row["seconds"] for row in own)
            times[start] = seconds / right if right else np.inf
            totals += seconds if start == "auto" else 0.0
            shown.append(f"{right}/{len(own)}, {seconds / max(len(own), 1):.1f}")
        alone = min(STARTS[1:], key=times.__getitem__)
        regret = times["auto"] / times[alone] if np.isfinite(times[alone]) else np.nan
        regrets.append(regret)
        table.row(name, *shown, alone if np.isfinite(times[alone]) else "none", float(regret))
    known = np.array([one for one in regrets if np.isfinite(one)])
    table.say("")
    if len(known):
        mean, lost = np.exp(np.mean(np.log(known))), np.isposinf(regrets).sum()
        table.say(f"Geometric mean of the regret {mean:.2f}, worst {known.max():.2f}, of {len(known)} cells.")
        table.say(
            f"In {lost} cells a single start succeeds and auto does not. All runs of auto: {totals:.0f} s."
        )
    return table.lines
