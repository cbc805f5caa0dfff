"""Two halves of the sample, each fitted on its own from the answer: do they agree, and predict each other?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.checks import About, Check, at_most
from onehidden.fit.form import roots, weighed
from onehidden.fit.polish import ROUGHLY, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run

# Of what the parameters cost, about one of n log(loss) each, that a step of such a fit must be worth: what is
# asked is whether they differ by four times that. At d = k = 20 the distance is 1 to 3 % less than after
# a full descent, in half the time.
_SHARE = 0.01


@dataclass(frozen=True)
class Halves:
    """Mean squares over the sample, in units of var y.

    Attributes
    ----------
    apart : of the difference between the predictions of the two half-sample fits.
    outside : of the residuals of each half under the fit of the other.
    outside_error : standard error of ``outside``.
    held_out : mean loss of each half under the fit of the other: ``outside``, or a mean deviance.
    """

    apart: float
    outside: float
    outside_error: float
    held_out: float


def fit_halves(network: OneHiddenNet, problem: Problem, run: Run) -> Halves:
    """Refit the network, in x, on each half of the rows."""
    halves, seen = problem.halves(run.rng("halves")), problem.at(network)
    samples = seen.samples
    root = roots(samples.weight, len(samples))
    enough = max(ROUGHLY, _SHARE * problem.form.freedom)
    residuals, losses = [], []
    for number, rows in enumerate(halves):
        fitted = polish(network, problem.take(rows), run.at("half", number), enough=enough).network
        losses.append(problem.losses(fitted))
        residuals.append(weighed(root, seen.end.divided(fitted.predict(samples.X) - samples.y)))
    crossed = np.concatenate([residuals[0][halves[1]], residuals[1][halves[0]]]) ** 2
    crossed = crossed.reshape(len(crossed), -1).mean(axis=1)
    return Halves(
        apart=float(np.mean((residuals[0] - residuals[1]) ** 2)),
        outside=float(np.mean(crossed)),
        outside_error=float(crossed.std() / np.sqrt(len(crossed))),
        held_out=float(losses[0][halves[1]].sum() + losses[1][halves[0]].sum()) / problem.numbers,
    )


def half_sample_checks(halves: Halves, variance: float, freedom: int, n: int) -> list[Check]:
    """Against what p parameters cost: a half-sample fit errs by 2 p/n of the noise variance, two by 4 p/n.

    Both costs hold to first order; with s samples a parameter in a half they grow by about s/(s - 1), and
    the bounds leave room for twice that.
    """
    share = 2 * freedom / n
    cost = share / max(1 - share, 0.1)
    apart = halves.apart / (2 * variance * cost)
    excess = halves.outside / variance - 1 - cost
    return [
        at_most(
            "half-sample agreement",
            apart,
            4.0,
            "squared distance between the fits of two halves of the sample, against what noise explains; "
            "above, the answer hangs on few samples",
            About.DATA,
        ),
        at_most(
            "out-of-sample fit",
            excess,
            cost + 5 * halves.outside_error / variance,
            "noise variance seen on rows that a half-sample fit did not use, above what its parameters "
            "cost; above the bound the network fits noise: ask for fewer units or bring more samples",
            About.DATA,
        ),
    ]
