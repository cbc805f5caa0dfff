"""The alternatives an answer with noise is held against, each fitted before it is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from onehidden.certify.certificate import Certificate
from onehidden.certify.halves import fit_halves, half_sample_checks
from onehidden.certify.local_fit import local_fit
from onehidden.certify.other_activations import with_activations
from onehidden.certify.other_minima import with_sides
from onehidden.certify.other_widths import question_work, with_larger, with_smaller
from onehidden.certify.status import Status
from onehidden.checks import About
from onehidden.fit.polish import Polished
from onehidden.fit.problem import Problem
from onehidden.run import Run

Stage = Callable[[Certificate, Problem, Run], Certificate]


def held_against_all(
    certificate: Certificate, problem: Problem, run: Run, met: Sequence[Polished], errors: str
) -> Certificate:
    """The certificate of the best of an answer, its other sides and the other minima met, all compared.

    Comparisons are made as long as they can matter; one that time cut short is not counted as made.

    Parameters
    ----------
    met : networks of the same form that other starts came to.
    errors : kind of standard errors.
    """

    def sides(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
        return with_sides(certificate, problem, run, met, errors)

    stages: tuple[Stage, ...] = (sides, with_smaller, with_larger, with_activations, _with_halves)
    for number, stage in enumerate(stages):
        if not _worth_comparing(certificate) or not run.affords(question_work(problem)):
            return certificate
        examined = stage(certificate, problem, run.at("comparison", number))
        if run.expired():  # a comparison cut short says nothing
            return certificate
        certificate = examined
    return certificate.completed()


def _worth_comparing(certificate: Certificate) -> bool:
    """Whether an answer may stand, or some of its units beside others that the rows leave open."""
    prospect = certificate.prospect
    if prospect is Status.NOT_IDENTIFIABLE and not certificate.failed(About.COLUMNS):
        return any(unit.cause is None for unit in certificate.open_units)
    return prospect in (Status.CONSISTENT, Status.APPROXIMATE)


def _with_halves(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Fitted again on each half of the sample: an approximation must come out the same."""
    halves = fit_halves(certificate.network, problem, run)
    variance = local_fit(certificate.network, problem.at(certificate.network)).seen_variance
    agreement, outside = half_sample_checks(halves, variance, certificate.freedom, problem.numbers)
    stable = agreement.passed
    return replace(certificate.held([replace(agreement, about=About.NOTE), outside], []), stable=stable)
