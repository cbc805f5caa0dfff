"""The number of units: a wide student for a guess, the criterion to come near, tests to decide."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from onehidden.certify.status import Status
from onehidden.checks import About
from onehidden.families import NegativeBinomial
from onehidden.fit.linear_part import linear_network
from onehidden.fit.problem import Problem
from onehidden.recovery.options import Options
from onehidden.recovery.search import Found, compared, search
from onehidden.run import Run
from onehidden.starts.candidate import fixed_columns, search_form, unit_columns
from onehidden.starts.prune import elimination_losses
from onehidden.starts.wide import Wide, merged_units, train

_MOST = 64  # units looked for
_WORSE = 2  # widths in a row that may make the criterion worse
_TRIES = 4  # candidates looked at for each width on the way


def choose_width(problem: Problem, options: Options, run: Run, tries: int | None = None) -> Found:
    """The width that stands against one unit more and one fewer, looked for from a guess.

    A fit to rounding ends the climb when its parameters are all determined: one unit fewer cannot fit, one
    more would be undetermined. With noise every width visited is held against its neighbours by tests that
    charge a unit for its direction; the information criterion decides where no width stands.
    """
    one = problem.with_width(1)
    n, each = problem.numbers, one.form.freedom  # free parameters of one unit
    most = int(min(_MOST, max(1, (n - 1) // (2 * each))))
    looked = _TRIES if tries is None else min(tries, _TRIES)
    fits: dict[int, Found] = {}

    def at(k: int) -> Found:
        if k not in fits:
            fits[k] = search(problem.with_width(k), options, run.at("width", k), looked)
        return fits[k]

    def searched_on(k: int) -> Found:
        whole = search(problem.with_width(k), options, run.at("width", k))
        return min(fits[k], whole, key=lambda found: found.certificate.mean_square)

    def fitting(k: int) -> bool:
        certificate = at(k).certificate
        return not (certificate.failed(About.FIT) or certificate.undetermined)

    def hold(k: int) -> None:
        fits[k] = compared(at(k), problem.with_width(k), options, run.at("width", k))

    ground = one if one.family is None else one.at(linear_network(one))
    k = guess_width(ground, run.at("width scout"), most)
    at(k)  # whatever the clock says: an answer is owed
    visited: set[int] = set()
    while k not in visited and not run.expired():
        visited.add(k)
        if tries is None and at(k).alone and fitting(k):  # more starts, not more units
            fits[k] = searched_on(k)
        if at(k).certificate.prospect is Status.CONSISTENT and tries is None:
            hold(k)
        certificate = at(k).certificate
        if certificate.status.certified or certificate.prospect is Status.CONSISTENT:
            break
        if certificate.exact or certificate.undetermined:
            k = max(1, k - 1)
        elif certificate.failed(About.FIT, About.SEARCH):
            if len(visited) > _WORSE and _worsening(fits, visited, problem):
                break
            k = min(most, k + 1)
    best = _best(fits, problem)
    if tries is None and not fits[best].certificate.finished:
        hold(best)  # what misses something may still be the best of its kind
    return fits[best]


def _worsening(fits: dict[int, Found], visited: set[int], problem: Problem) -> bool:
    """Whether the last few widths on the way up each made the criterion worse: the model is wrong."""
    last = [_criterion(fits[k], problem) for k in sorted(visited)[-_WORSE - 1 :]]
    return all(b > a for a, b in pairwise(last))


def guess_width(problem: Problem, run: Run, most: int) -> int:
    """Units left by backward elimination of a wide student where the information criterion is least."""
    student = Wide(max(128, 4 * most))
    wide = search_form(problem, student.units(problem))
    theta = train(wide, student, problem, run, "width scout")
    columns = problem.weighted(unit_columns(wide, problem.Z, *merged_units(wide, theta)[:2]))
    fixed = problem.weighted(fixed_columns(wide, problem.Z))
    losses = elimination_losses(columns, fixed, problem.weighted(problem.y), most)
    widths, n = np.arange(1, len(losses) + 1), problem.numbers
    charged = problem.form.freedom * widths * np.log(problem.n)
    return int(widths[np.argmin(n * np.log(np.maximum(losses, problem.rows.rounding.near**2)) + charged)])


def _criterion(found: Found, problem: Problem) -> float:
    # Digits beyond rounding are no evidence for more units.
    mean_square = max(found.certificate.mean_square, problem.rows.rounding.exact**2)
    charged = found.certificate.freedom * float(np.log(problem.n))
    if isinstance(problem.family, NegativeBinomial):  # deviances of different alphas do not compare
        samples, network = problem.samples, found.certificate.network
        eta = network.predict(samples.X) + problem.offsets
        return problem.family.misfit(samples.y, eta, samples.weight) + charged
    return problem.misfit(mean_square) + charged


def _best(fits: dict[int, Found], problem: Problem) -> int:
    """The width of the answer: one that stands, else the least criterion."""
    ranked = sorted(fits, key=lambda k: _criterion(fits[k], problem))
    standing = [k for k in ranked if fits[k].certificate.status.certified]
    return (standing or ranked)[0]
