"""The questions put to an answer alone, for rows in memory and streams alike."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Float

from onehidden.certify.adequacy import Adequacy, adequacy, adequacy_work, unasked
from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import Alternative, Kind
from onehidden.certify.errors import ParameterRecord, outward
from onehidden.certify.lattice import distinct_rows, lattice_gap
from onehidden.certify.local_fit import LocalFit, local_fit
from onehidden.certify.own_checks import (
    SPREAD_P,
    columns_check,
    family_checks,
    fit_check,
    local_checks,
    order_checks,
    repeated_rows,
    spread_check,
)
from onehidden.certify.patterns import CountPatterns
from onehidden.certify.shared_units import named
from onehidden.certify.spread import SpreadTest
from onehidden.certify.ties import EXACT, ties
from onehidden.certify.unexamined import certificate_work, unexamined
from onehidden.certify.units import NOTHING, Cause, unit_verdicts
from onehidden.checks import About, Check, at_least, at_most, not_asked
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.fit.together import Together
from onehidden.network import OneHiddenNet
from onehidden.run import Run

_LATTICE = 0.5  # share of distinct rows up to which inputs are looked at as a lattice
# Parameters up to which "auto" takes the larger of both errors where the spread looks equal.
_BOTH = 1000
_KEPT = 1000  # parameters up to which their covariance is kept for bands: 8 MB


def certify(
    network: OneHiddenNet,
    problem: Problem,
    run: Run,
    errors: str = "auto",
    noun: str = "sample",
    nothing: float = NOTHING,
) -> Certificate:
    """The certificate of a network, in x, as far as it can be asked of the network alone.

    Where the time left of the whole budget does not afford it, it says that nothing was asked.

    Parameters
    ----------
    errors : "classical", "robust", or "auto": robust where the spread of the residuals is unequal.
    noun : what a row is called.
    nothing : share of std(y) below which a unit of a fit to rounding adds nothing.
    """
    if not run.last().affords(certificate_work(problem)):
        return unexamined(network, problem, noun)
    asked, problem = problem, problem.at(network)
    local = local_fit(network, problem)
    counts, spread = problem.fold(partial(_counters, local.inner)).parts
    assert isinstance(counts, CountPatterns)
    assert isinstance(spread, SpreadTest)
    patterns, equal_p = counts.result(), 1.0 if local.exact or asked.family is not None else spread.result()
    of_family = [] if local.exact else family_checks(local, asked, errors)
    missed = None if local.exact else _adequacy(local, run)
    uneven = equal_p < SPREAD_P or any(check.asked and not check.passed for check in of_family)
    robust = not local.exact and (errors == "robust" or (errors == "auto" and uneven))
    covariance = local.covariance(robust)
    deviations = local.errors(covariance)
    if errors == "auto" and not (robust or local.exact) and problem.form.size <= _BOTH:
        deviations = deviations.at_least(local.errors(local.covariance(True)))
    exact = local.exact
    units = unit_verdicts(local.network, local.inner, patterns, deviations, local.blind, exact, noun, nothing)
    of_noise = [*repeated_rows(asked), *of_family, *order_checks(local)]
    if asked.family is None:
        of_noise.insert(1, spread_check(equal_p, errors, robust))
    loss = asked.sums.loss(local.theta if asked is problem else asked.theta(local.network)) / asked.numbers
    noise = local.seen_variance * problem.end.variance
    if isinstance(problem.rows, Samples):
        noise /= problem.rows.unit
    certificate = Certificate(
        local.network,
        (
            fit_check(local, missed),
            *local_checks(local, patterns, deviations, nothing),
            *([] if exact else of_noise),
            *columns_check(problem),
        ),
        units,
        loss=loss * asked.end.variance,
        noise_variance=noise,
        standard_errors=deviations,
        curvature=local.bend.values,
        mean_square=loss,
        exact=exact,
        n=local.n,
        freedom=local.freedom,
        noun=noun,
        grain=problem.rows.rounding.grain if problem.rows.rounding.coarse else 0.0,
        missed=missed,
        covariance=_of_bands(covariance, local, deviations) if problem.form.size <= _KEPT else None,
    )
    if not exact:
        return certificate
    certificate = certificate.with_open(_steps(local)).asked(*_lattice_check(local))
    return with_ties(certificate, problem)


def _of_bands(
    covariance: Float[np.ndarray, "p p"], local: LocalFit, told: ParameterRecord
) -> Float[np.ndarray, "P P"]:
    """The covariance of the parameters in x, as large as the standard errors that are told."""
    form, coordinates = local.problem.form, local.problem.end
    found = outward(covariance, form, coordinates)
    there = replace(form, d=len(coordinates.shift))
    errors = there.pack(told.weights, told.output, told.bias, told.linear, told.intercept)
    own = np.sqrt(np.maximum(np.diag(found), 0))
    # What the data do not tell has an infinite error, and moves no prediction.
    larger = np.where((own > 0) & np.isfinite(errors), errors / np.where(own > 0, own, 1.0), 1.0)
    return found * np.outer(larger, larger)


def _steps(local: LocalFit) -> dict[int, tuple[Cause, str]]:
    """Units of a fit to rounding that are steps on these rows: steeper ones reproduce them as well.

    The Jacobian of a saturated unit is small but, each column brought to its own scale, of full rank.
    """
    form, problem = local.problem.form, local.problem
    if form.activation.homogeneity is not None:
        return {}
    weights, output, bias, beta, constant = form.unpack(local.theta)
    found = {}
    for i in range(form.k):
        scale = np.where(np.arange(form.k) == i, 2.0, 1.0)
        steeper = form.pack(weights * scale[:, None], output, bias * scale, beta, constant)
        if problem.rows.rounding.reproduces(problem.sums.loss(steeper) / local.numbers):
            found[i] = Cause.BLIND, f"unit {i + 1} is a step on these rows: steeper ones fit as well"
    return found


def _lattice_check(local: LocalFit) -> list[Check]:
    """Asked of kinked units where rows in memory repeat each other: whether the rows hold the kinks."""
    problem = local.problem
    if not isinstance(problem.rows, Samples) or not problem.form.activation.kinked:
        return []
    X = problem.rows.X
    if len(distinct_rows(X)) > _LATTICE * len(X):
        return []
    gap = lattice_gap(local.network, X, bias=problem.form.bias, intercept=problem.form.intercept)
    return [
        at_least(
            "kinks held by distinct rows",
            float(gap.apart if gap.absorbed == 0 else -gap.absorbed),
            float(gap.needed),
            "fewest distinct rows that tell two units apart, or less the directions in which units imitate a "
            "linear function; below the bound kinks can lie elsewhere in the gaps of a lattice",
            About.UNITS,
        )
    ]


def with_ties(certificate: Certificate, problem: Problem) -> Certificate:
    """Held against every other choice of sides: a search of all sets of units that could be turned together.

    No Jacobian sees these ties; a fit to rounding is unique only if there are none.
    """
    network, around = certificate.network, problem.around
    tolerance = EXACT if not certificate.grain else 100 * problem.rows.rounding.exact
    spread = around.unwhiten.T
    form = problem.form
    found = ties(
        network, centre=around.shift, spread=spread, intercept=form.intercept, linear=form.skip,
        tolerance=tolerance,
    )  # fmt: skip
    if not found.complete and not found.sets:
        reason = f"whether units can be turned around could not be settled: {found.reason}"
        return certificate.held([not_asked(Kind.SIDES.value, 0.0, reason, About.UNITS)], [])
    alternatives, open_ = [], {}
    for units, other in zip(found.sets, found.networks, strict=True):
        label = f"{named(units)} on {'its' if len(units) == 1 else 'their'} other side"
        alternatives.append(Alternative(Kind.SIDES, label, 0.0, other, units))
        open_ |= {i: (Cause.TIE, f"the network with {label} computes the same function") for i in units}
    advice = "sets of units that can be turned around together without changing the function"
    check = at_most(Kind.SIDES.value, float(len(found.sets)), 0.0, f"{advice}: {found.reason}", About.UNITS)
    return certificate.held([check], alternatives).with_open(open_)


def _counters(inner: OneHiddenNet) -> Together:
    return Together(CountPatterns(inner), SpreadTest(inner))


def _adequacy(local: LocalFit, run: Run) -> Adequacy:
    problem = local.problem
    if not run.affords(adequacy_work(local.numbers, problem.form.size)):
        return unasked("the time was up: allow more")
    mean = (problem.around.shift - problem.end.shift) @ problem.end.whiten
    seed = run.seed_of("looks at the residuals")
    return adequacy(problem.fold, problem.form, local.theta, local.hessian, local.numbers, seed, mean)
