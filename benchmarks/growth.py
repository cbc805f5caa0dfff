"""How cost grows: seconds and memory against rows n, inputs d and units k, each over a factor of a hundred.

One sum J'J, J'r, r'r (a step of the finish), and a whole recovery without noise. Each line in a process of
its own, with one thread; processor seconds, which a shared machine does not inflate, and peak memory by the
operating system above that before. Exponents are slopes of log cost against log size, least squares over the
sizes from the third on: below them what is constant weighs most.
"""

from __future__ import annotations

import json

import numpy as np

from benchmarks._process import python, took
from benchmarks._table import Table
from onehidden.run import stream

ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
BASE = {"n": 4000, "d": 8, "k": 4}
STEPS = {"n": (1000, 4000, 10_000, 30_000, 100_000), "d": (2, 8, 20, 60, 200), "k": (1, 4, 10, 30, 100)}
# Recoveries of more units have 32 inputs: many more units than inputs are another problem, and a harder one.
# A hundred units of as many inputs are no matter of minutes.
WHOLE = {"n": (1000, 4000, 10_000, 30_000, 100_000), "d": (2, 8, 20, 60, 200), "k": (1, 3, 10, 32)}
INPUTS = 32
# Rows of a recovery that d or k grows in: several a parameter, else nothing is determined.
ROWS_A_PARAMETER = 8
FROM = 2

_STEP = """
from benchmarks.growth import step
step(40, 2, 1)
print(step({n}, {d}, {k}))
"""
_RECOVER = """
import json, resource, time
import onehidden as oh
from benchmarks.budgets import planted
X, y = planted({n}, {d}, {k}, noise=0.0)
oh.recover(X[:500], y[:500], 1, max_seconds=1.0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
r = oh.recover(X, y, {k}, max_seconds=240.0)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([time.process_time() - begin, (peak - before) / 1024, str(r.status)]))
"""


def main(quick: bool) -> list[str]:
    table = Table("what", "grows", "n", "d", "k", "processor s", "MiB", "status")
    for what, code, sizes in (("J'J", _STEP, STEPS), ("recovery", _RECOVER, WHOLE)):
        for letter, values in sizes.items():
            rows = []
            for value in values[: 3 if quick else None]:
                size = {**BASE, letter: value}
                if what == "recovery" and letter == "k":
                    size["d"] = INPUTS
                if what == "recovery" and letter != "n":
                    size["n"] = max(BASE["n"], ROWS_A_PARAMETER * size["k"] * (size["d"] + 2))
                seconds, mebibytes, status = json.loads(took(python(code.format(**size)), ONE).last)
                table.row(what, letter, *size.values(), seconds, mebibytes, status)
                rows.append((value, seconds, mebibytes))
            table.say(
                f"| {what} | exponent of {letter} | | | | {exponent(rows, 1)} | {exponent(rows, 2)} | |"
            )
    return table.lines


def step(n: int, d: int, k: int) -> str:
    """Processor seconds of one J'J, J'r, r'r, and the MiB it took, data and compilation included."""
    import resource
    import time

    from benchmarks.budgets import planted
    from onehidden.machine import in_double
    from onehidden.options import Options
    from onehidden.recovery.solve import problem_of
    from onehidden.recovery.target import checked_samples

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    X, y = planted(n, d, k)
    problem = problem_of(checked_samples(X, y, None), Options(hidden=k))
    theta = stream(0, "growth", "parameters", d, k).standard_normal(problem.form.size)

    @in_double
    def timed() -> float:
        times: list[float] = []
        while sum(times) < 1.0 or len(times) < 3:
            begin = time.process_time()
            problem.least_squares.normal_equations(theta)
            times.append(time.process_time() - begin)
        return min(times)

    seconds = timed()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return json.dumps([seconds, (peak - before) / 1024, ""])


def exponent(rows: list[tuple[float, float, float]], column: int) -> str:
    """Slope of log cost against log size, from the third size on."""
    late = np.log(np.array([(row[0], max(row[column], 1e-9)) for row in rows[min(FROM, len(rows) - 2) :]]))
    return f"{np.polyfit(late[:, 0], late[:, 1], 1)[0]:.2f}"
