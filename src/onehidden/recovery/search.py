"""Search at a given width: candidates of the scheduled starts, each refined, until none adds anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from onehidden.certify import levels
from onehidden.certify.alternatives import agreement, compare_with_alternatives, differing_units
from onehidden.certify.certificate import Certificate
from onehidden.certify.evaluate import certificate_work, certify
from onehidden.certify.widths import beyond_linear
from onehidden.checks import About
from onehidden.fit.problem import Optimum, Problem, optimise, searched, with_best_outputs
from onehidden.network import OneHiddenNet
from onehidden.options import Options
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, cheap_descents, further_restarts
from onehidden.starts.repair import repaired
from onehidden.starts.schedule import Choice, proposals

SAME_LOSS = 0.5  # n log(loss) within which two answers share the lowest loss
STARTS_FOR_RARE_MINIMUM = 29  # .9^29 = .05: so many meet a minimum that one in ten leads to


@dataclass(frozen=True)
class Found:
    """The answer of a search."""

    certificate: Certificate
    origin: str  # the start it came from
    others: tuple[Optimum, ...] = field(default=(), repr=False)  # the other answers found on the way
    # The problem with the noise that the residuals of the answer show, where that was to be estimated.
    noise_known: Problem | None = field(default=None, repr=False)
    unconfirmed: bool = False  # found by one candidate only, at the candidate limit


@dataclass(frozen=True)
class Attempt:
    """A candidate after its final optimisation, with a certificate where no answer before it is better."""

    answer: Optimum
    candidate: Candidate
    certificate: Certificate | None


def finish(candidate: Candidate, search_problem: Problem, problem: Problem, run: Run) -> Optimum:
    """Return a candidate on ``search_problem`` after the final optimisation on ``problem``.

    Of a family it also begins from the best outputs for the units; the better of both is returned.
    """
    network = search_problem.search_coordinates.outward(candidate.network)
    answer = optimise(network, problem, run, warm=problem.rows.rounding.found(candidate.loss))
    other = network if problem.family is None else with_best_outputs(network, problem)
    if other is network or run.expired():
        return answer
    second = optimise(other, problem, run.at("best outputs"))
    return answer if answer.mean_square <= second.mean_square else second  # the second of two without a loss


def search(
    problem: Problem,
    options: Options,
    run: Run,
    tries: int | None = None,
    propose: Callable[[Problem, Choice, Run], Iterable[Candidate]] = proposals,
    repair: Callable[[Problem, Candidate, Run], Candidate] = repaired,
    finish: Callable[[Candidate, Problem, Problem, Run], Optimum] = finish,
    certify: Callable[[OneHiddenNet, Problem, Run, str], Certificate] = certify,
) -> Found:
    """Try starts until one answer is certain or none are left.

    ``tries`` bounds the candidates; tests replace the other parts. The rows of a family are searched as a
    least-squares problem of Fisher scoring (``searched``); every final optimisation is in its likelihood.
    """
    attempts: list[Attempt] = []
    if problem.k == 1:  # where nothing shows more than a linear function, starts find no more either
        test, few = beyond_linear(problem, run), cheap_descents(problem)
        tries = min(tries or few, few) if test.evaluated and test.p_value > levels.NO_UNIT.value else tries
    search_problem = searched(problem)

    def attempt(candidate: Candidate, run: Run) -> Attempt:
        answer = finish(candidate, search_problem, problem, run)
        lowest = min((one.answer.mean_square for one in attempts), default=float("inf"))
        # Another start may have found it, too: losses that agree to a thousandth share a certificate.
        lost = [problem.excess_deviance(one.answer.mean_square, answer.mean_square) for one in attempts]
        known = (one.certificate for one, gap in zip(attempts, lost, strict=True) if abs(gap) <= 1e-3)
        certificate = next(filter(None, known), None)
        # Without time for it, the answer that is returned is examined, once, at the end.
        lowest_yet = not problem.excess_deviance(lowest, answer.mean_square) > SAME_LOSS
        lowest_yet = lowest_yet and not _at_bounds(answer.network)
        if certificate is None and lowest_yet and run.within_budget(certificate_work(problem)):
            certificate = certify(answer.network, problem, run, options.errors)
            run.report(f"certified {certificate.status}", 0, answer.mean_square)
        return Attempt(answer, candidate, certificate)

    number, search_done = -1, False
    for number, candidate in enumerate(islice(propose(search_problem, options.start, run), tries)):
        here = run.at("candidate", number)
        first = attempt(candidate, here.at("finish", 0))
        attempts.append(first)
        if not (
            run.expired() or (first.certificate is not None and first.certificate.search_done_and_determined)
        ):
            better = repair(search_problem, candidate, here)
            if better.loss < candidate.loss:
                attempts.append(attempt(better, here.at("finish", 1)))
        search_done = _search_done(attempts, problem)
        if search_done or run.expired():
            break
    bounded = number + 1 == tries and not search_done and not run.expired()
    if not attempts:
        raise Refused(
            f"the start {options.start_name!r} found nothing to begin from: no score moment of order 3 or 4 "
            "carries signal here; use start='auto'"
        )
    best = min(attempts, key=lambda one: (not np.isfinite(one.answer.mean_square), one.answer.mean_square))
    answer, origin, certificate = best.answer, best.candidate.origin, best.certificate
    if _at_bounds(answer.network):
        raise Refused(
            "the bounds of the structure exclude all units: with weights or outputs of at least zero no unit "
            "lowers the loss; change the sign of y or of inputs, or leave the bounds out"
        )
    refined = _to_more_digits(answer, problem, run)
    if refined is not answer:
        answer, certificate = refined, None
    if certificate is None:
        certificate = certify(answer.network, problem, run, options.errors)
    if certificate.needs_no_comparison:
        return Found(certificate, origin)
    others = tuple(one.answer for one in attempts if one is not best)
    agreeing = independent(_lowest(attempts, problem))
    # With noise, an answer must have been found more than once.
    held = certificate.with_comparisons([agreement(agreeing)])
    return Found(held, origin, others, unconfirmed=bounded and agreeing == 1)


def _at_bounds(network: OneHiddenNet) -> bool:
    """Whether every unit has weights or outputs of zero."""
    outputs = network.output.reshape(network.n_hidden, -1)
    return not np.any(network.weights.any(axis=1) & outputs.any(axis=1))


def _to_more_digits(answer: Optimum, problem: Problem, run: Run, most_work: float = 1e8) -> Optimum:
    """Return the optimum to about eight digits where a step costs at most so many operations.

    The final optimisation ends a hundredth of a standard error from it, which is four to five digits. Kinked
    units have none beyond.
    """
    exact = problem.rows.rounding.reproduces(answer.mean_square)
    if exact or problem.activation.kinked or problem.n_values * problem.form.size**2 > most_work:
        return answer
    refined = optimise(answer.network, problem, run.at("digits"), warm=True, tolerance=1e-11)
    return refined if refined.mean_square < answer.mean_square else answer


def compared(found: Found, problem: Problem, options: Options, run: Run) -> Found:
    """Return the answer compared with alternatives; a fit to rounding needs none."""
    if found.certificate.needs_no_comparison:
        return found
    found = _with_noise_known(found, problem, options, run)
    known = found.noise_known or problem
    certificate = compare_with_alternatives(found.certificate, known, run, found.others, options.errors)
    return replace(found, certificate=certificate)


def _with_noise_known(found: Found, problem: Problem, options: Options, run: Run) -> Found:
    """Return the answer of a search that knows the noise its residuals show.

    Of several outputs the covariance of their noise; of the negative binomial family its alpha; the variance
    of random intercepts. Another minimum within 100 of n log(loss) may become the best.
    """
    known = problem.with_noise_of(found.certificate.network)
    if known is problem:
        return found
    again = optimise(found.certificate.network, known, run.at("noise known"), warm=True)
    for number in range(20 if known.samples.ratio else 0):  # parameters and variances in turn
        settled = known.with_noise_of(again.network)
        if settled is known or run.expired():
            break
        known = settled
        again = optimise(
            again.network, known, run.at("noise known, again", number), warm=True, tolerance=1e-11
        )
    others = tuple(
        optimise(one.network, known, run.at("noise known", number), warm=True)
        for number, one in enumerate(found.others)
        if problem.excess_deviance(found.certificate.mean_square, one.mean_square) < 100
    )
    certificate = certify(again.network, known, run, options.errors)
    certificate = replace(certificate, comparisons=found.certificate.comparisons)
    return replace(found, certificate=certificate, others=others, noise_known=known)


def _search_done(attempts: Sequence[Attempt], problem: Problem) -> bool:
    """Whether another start has nothing to add.

    A fit to rounding cannot be bettered. With noise, two starts that come to the same clear answer settle the
    search, or many that come to one lowest loss: three with an overparameterised network among them, or nine
    after such a network did worse. Where that answer misses structure of the rows, the model is wrong or the
    search is: where they cost little, ``STARTS_FOR_RARE_MINIMUM`` are made.
    """
    last = attempts[-1]
    if problem.rows.rounding.reproduces(last.answer.mean_square):
        return True
    if last.certificate is not None and last.certificate.needs_no_comparison:
        return True
    lowest = _lowest(attempts, problem)
    certified = [(one, one.certificate) for one in lowest if one.certificate is not None]
    clear = [one for one, certificate in certified if certificate.search_done_and_determined]
    # Where the fit misses nothing, undetermined units depend on the samples; none of equal answers may fail.
    fitting = [] if any(found.failed(About.FIT) for _, found in certified) else [one for one, _ in certified]
    clear = clear if fitting else []
    if independent(attempts) >= cheap_descents(problem) and (
        independent(clear) > 1 or independent(fitting) > 2
    ):
        return True
    if not any(one.candidate.overparameterised for one in attempts):
        return False
    if not fitting and independent(attempts) < min(STARTS_FOR_RARE_MINIMUM, further_restarts(problem)):
        return False
    return independent(lowest) > (2 if any(one.candidate.overparameterised for one in lowest) else 8)


def independent(attempts: Iterable[Attempt]) -> int:
    """How many candidates of the starts came to these answers: one and its repaired form count once."""
    return len({one.candidate.number for one in attempts})


def _lowest(attempts: Sequence[Attempt], problem: Problem) -> list[Attempt]:
    """Return the answers that share the lowest loss, or nearly that loss and its units.

    Kinked units have many small minima next to each other: losses differ, the units do not.
    """
    best = min(attempts, key=lambda one: one.answer.mean_square).answer

    def same(one: Optimum) -> bool:
        gap = problem.excess_deviance(best.mean_square, one.mean_square)
        if gap <= SAME_LOSS or gap > levels.LIKELIHOOD.value:
            return gap <= SAME_LOSS
        return not differing_units(best.network, one.network, problem, best.mean_square)

    return [one for one in attempts if same(one.answer)]
