"""Search at a given width: the starts of the plan, each finished, until the data have nothing to add."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from onehidden.certify.alternatives import held_against_all
from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import TIE, agreement
from onehidden.certify.other_widths import beyond_linear, question_work
from onehidden.certify.questions import certify
from onehidden.certify.shared_units import differing_units
from onehidden.certify.turns import other_sides
from onehidden.certify.unexamined import certificate_work
from onehidden.checks import About
from onehidden.fit.linear_part import linear_network
from onehidden.fit.noise import with_noise_of
from onehidden.fit.polish import Polished, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.recovery.no_worse import no_worse_than_linear
from onehidden.recovery.options import Options
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.bred import FAMILIES, bred
from onehidden.starts.candidate import Candidate, complete, refine, search_form
from onehidden.starts.plan import proposals
from onehidden.starts.repair import repaired
from onehidden.starts.start import descent_work

_OFTEN = 8  # starts that may share a lowest loss which students missed before that is called the lowest
_TOGETHER = 0.5  # n log(loss) within which two answers share the lowest loss
_EQUAL = 1e-3  # n log(loss) within which two descents have ended in one minimum
_NONE_P = 0.05  # p-value of a unit beyond a linear function from which one is looked for no longer than ...
_FEW = 2  # ... so many starts
_SCOUT = 10  # times its own work that must be affordable for the question to be put before a search
# Operations that all starts may take, some seconds with their repairs, and starts at most. With 1e9 five of
# 217 noisy tanh networks, of 6 and 10 units, ended after two starts that agreed, 38 to 417 of n log(loss)
# above the minimum next to the truth; with 5e9 three of four such runs found it.
_CHEAP, _RESTARTS = 5e9, 8
_CLEARLY, _SIDES = 3.0, 3  # standard deviations above chance, and patterns of turns that are then tried
_PARENTS = 4  # answers of a family whose units a child is made of
_AGAIN = 20  # steps in the search form from an answer to a family's likelihood: it is near its minimum
_WORTH = 100.0  # n log(loss) by which another minimum may lie behind and still come to the fore


@dataclass(frozen=True)
class Found:
    """The answer of a search, the start it came from, and the other answers met on the way.

    ``noise_known`` is the problem after the answer told what the noise is, where that was to be learnt;
    ``alone``: one start came to the answer, and the bound on candidates ended the search.
    """

    certificate: Certificate
    origin: str
    met: tuple[Polished, ...] = field(default=(), repr=False)
    noise_known: Problem | None = field(default=None, repr=False)
    alone: bool = False


@dataclass(frozen=True)
class Tried:
    """A finished candidate; ``turn`` counts the candidates: one and its repaired form have the same.

    ``bred`` is one made of the units of its family: those of even turns, or of odd ones.
    """

    answer: Polished
    origin: str
    turn: int
    certificate: Certificate | None
    student: bool = False
    bred: bool = False

    @property
    def family(self) -> int:
        return self.turn % FAMILIES


def search(problem: Problem, options: Options, run: Run, tries: int | None = None) -> Found:
    """Try starts until one answer is certain or none are left; ``compared`` holds it against alternatives.

    ``tries`` bounds the candidates looked at. A family's rows are searched as the least-squares problem that
    Fisher scoring makes of them at the best linear function; every finish is in its own likelihood.
    """
    tried: list[Tried] = []
    if problem.k == 1 and _no_unit(problem, run):
        tries = _FEW if tries is None else min(tries, _FEW)
    ground = problem if problem.family is None else problem.at(linear_network(problem))
    families: list[list[Candidate]] = [[] for _ in range(FAMILIES)]
    turn = -1
    for turn, candidate in enumerate(islice(proposals(ground, options.start, run), tries)):
        family, here = families[turn % FAMILIES], run.at("candidate", turn)
        for number, attempt in enumerate(_bettered(ground, candidate, family, here)):
            start = ground.begin.outward(attempt.network)
            one = _finished(problem, attempt, start, turn, tried, options, here.at("finish", number))
            tried.append(one)
            if run.expired() or (one.certificate is not None and one.certificate.clear):
                break
        if _ended(tried, problem) or run.expired():
            break
    bounded = turn + 1 == tries and not (run.expired() or _ended(tried, problem))
    if not tried:
        raise Refused(
            f"the start {options.start_name!r} found nothing to begin from: no score moment of order 3 or 4 "
            "carries signal here; use start='auto'"
        )
    best = min(tried, key=lambda one: (not np.isfinite(one.answer.mean_square), one.answer.mean_square))
    answer = no_worse_than_linear(best.answer, problem, run.at("no worse than linear"))
    if answer is not best.answer:
        best = Tried(answer, "linear", len(tried), None)
        tried.append(best)
    certificate = best.certificate
    if certificate is None:
        certificate = certify(answer.network, problem, run, options.errors)
    if certificate.final:
        return Found(certificate, best.origin)
    met = tuple(one.answer for one in tried if one is not best)
    agreeing = _starts(_lowest(tried, problem))
    alone = bounded and agreeing == 1
    # With noise, an answer must have been reached more than once.
    return Found(certificate.held([agreement(agreeing)], []), best.origin, met, alone=alone)


def _no_unit(problem: Problem, run: Run) -> bool:
    """Whether no one unit explains more than a linear function does: a search has nothing to find."""
    if not run.affords(_SCOUT * question_work(problem)):
        return False
    asked = beyond_linear(problem, run)
    return asked.asked and asked.p_value > _NONE_P


def compared(found: Found, problem: Problem, options: Options, run: Run) -> Found:
    """The answer after it was held against alternatives; a fit to rounding needs none."""
    if found.certificate.final:
        return found
    found = _with_noise_known(found, problem, options, run)
    known = found.noise_known or problem
    certificate = held_against_all(found.certificate, known, run, found.met, options.errors)
    return replace(found, certificate=certificate)


def _with_noise_known(found: Found, problem: Problem, options: Options, run: Run) -> Found:
    """The answer again after its residuals told what the noise is.

    Of several outputs the covariance of their noise; of the negative binomial family its alpha.
    """
    known = with_noise_of(found.certificate.network, problem)
    if known is problem:
        return found
    again = polish(found.certificate.network, known, run.at("noise known"), near=True)
    met = tuple(
        polish(one.network, known, run.at("noise known", number), near=True)
        for number, one in enumerate(found.met)
        if problem.behind(found.certificate.mean_square, one.mean_square) < _WORTH
    )
    certificate = certify(again.network, known, run, options.errors)
    certificate = replace(certificate, compared=found.certificate.compared)
    return replace(found, certificate=certificate, met=met, noise_known=known)


def _finished(
    problem: Problem,
    candidate: Candidate,
    start: OneHiddenNet,
    turn: int,
    tried: list[Tried],
    options: Options,
    run: Run,
) -> Tried:
    """The candidate, ``start`` in x, after the finish; certified where no answer so far is better."""
    near = problem.rows.rounding.found(candidate.loss)
    answer = _seen_again(polish(start, problem, run, near=near), problem, run)
    answer = _turned(answer, candidate, problem, run)
    lowest = min((one.answer.mean_square for one in tried), default=float("inf"))
    certificate = _known(answer, tried, problem)
    if not run.affords(certificate_work(problem)):  # the answer that is returned is examined, once
        return Tried(answer, candidate.origin, turn, certificate, candidate.student, candidate.bred)
    if certificate is None and not problem.behind(lowest, answer.mean_square) > _TOGETHER:
        certificate = certify(answer.network, problem, run, options.errors)
        run.report(f"certified {certificate.status}", 0, answer.mean_square)
    return Tried(answer, candidate.origin, turn, certificate, candidate.student, candidate.bred)


def _seen_again(answer: Polished, problem: Problem, run: Run) -> Polished:
    """The better of an answer and what the rows of its family say of its units, seen from itself.

    From the linear function the curve of a link is taken for units, and these may turn the wrong way: there
    all eleven starts of a negative binomial sample ended 10 of the deviance above one with a unit turned.
    """
    if problem.family is None or run.expired():
        return answer
    seen = problem.at(answer.network)
    form, net = search_form(seen), seen.begin.inward(answer.network)
    theta = complete(seen, form, net.weights, net.bias)
    again = refine(seen, form, theta, run.at("seen again"), "seen again", max_steps=_AGAIN)
    other = polish(seen.begin.outward(again.network), problem, run.at("seen again", "finish"))
    return other if other.mean_square < answer.mean_square else answer


def _turned(answer: Polished, candidate: Candidate, problem: Problem, run: Run) -> Polished:
    """The better of an answer and of its units turned around, where the search form promised more.

    That form is blind to turns and has a linear part in their place: d q parameters more, worth about as many
    of n log(loss). Where it was better by far more, the units were turned the wrong way.
    """
    more = problem.d * problem.form.q
    gap = problem.behind(candidate.loss, answer.mean_square)
    if problem.family is not None or run.expired() or not gap > more + _CLEARLY * np.sqrt(2 * more):
        return answer
    for number, net in enumerate(other_sides(problem, answer.network, _SIDES, run.at("sides"))):
        if run.expired():
            break
        other = polish(net, problem, run.at("side", number))
        answer = other if other.mean_square < answer.mean_square else answer
    return answer


def _known(answer: Polished, tried: list[Tried], problem: Problem) -> Certificate | None:
    """The certificate of an answer that another start came to as well: their losses agree to a thousandth."""
    for one in tried:
        gap = problem.behind(one.answer.mean_square, answer.mean_square)
        if one.certificate is not None and abs(gap) <= _EQUAL:
            return one.certificate
    return None


def _bettered(
    problem: Problem, candidate: Candidate, family: list[Candidate], run: Run
) -> Iterator[Candidate]:
    """The candidate and, as far as that does not settle the matter, its repaired form and its child.

    The child is of the units of the whole family, which the candidate joins. There are two families, and they
    never mix: that both come to one answer is evidence for it.
    """
    family.append(candidate)
    yield candidate
    better = repaired(problem, candidate, run)
    if better.loss < candidate.loss:
        family[-1] = better
        yield better
    child = bred(problem, sorted(family, key=lambda one: one.loss)[:_PARENTS], run.at("child"))
    if child.loss < min(one.loss for one in family):
        family.append(child)
        yield child


def _ended(tried: list[Tried], problem: Problem) -> bool:
    """Whether another start has nothing to add.

    A fit to rounding cannot be bettered, even where it is not unique; with noise, two starts that come to the
    same clear answer end the search, or many that come to one lowest loss. Three are many with a wide student
    among them; else more, after a student did worse. Such an answer may still miss something (its checks say
    so): then the model is wrong, not the search.
    """
    last = tried[-1]
    if problem.rows.rounding.reproduces(last.answer.mean_square):
        return True
    if last.certificate is not None and last.certificate.final:
        return True
    lowest = _lowest(tried, problem)
    clear = [one for one in lowest if one.certificate is not None and one.certificate.clear]
    if _starts(clear) > 1 and _starts(tried) >= _worth(problem):
        return True
    # What fails may be a matter of the samples: units left open, where nothing is missed, stay open.
    complete = [
        one for one in lowest if one.certificate is not None and not one.certificate.failed(About.FIT)
    ]
    if _starts(complete) > 2 and _starts(tried) >= _worth(problem):
        return True
    if not any(one.student for one in tried):
        return False
    return _starts(lowest) > (2 if any(one.student for one in lowest) else _OFTEN)


def _starts(found: list[Tried]) -> int:
    """How many starts came to these answers without knowing of each other.

    What was bred knows of its whole family, however many of its turns came to it.
    """
    own = [one for one in found if not one.bred]
    others = {one.family for one in found} - {one.family for one in own}
    return len({one.turn for one in own}) + len(others)


def _worth(problem: Problem) -> int:
    """Starts that are worth their time before two that agree end the search with noise.

    They are more where one is cheap.
    """
    return int(min(max(_CHEAP / descent_work(problem), 2), _RESTARTS))


def _lowest(tried: list[Tried], problem: Problem) -> list[Tried]:
    """The answers that share the lowest loss, or the units of the lowest and nearly its loss.

    Kinked units have many small minima next to each other: losses differ, the units do not.
    """
    best = min(tried, key=lambda one: one.answer.mean_square).answer

    def same(one: Polished) -> bool:
        gap = problem.behind(best.mean_square, one.mean_square)
        if gap <= _TOGETHER or gap > TIE:
            return gap <= _TOGETHER
        return not differing_units(best.network, one.network, problem, best.mean_square)

    return [one for one in tried if same(one.answer)]
