"""When a search ends: answers that starts agree on, students that were asked, fits to rounding."""

import numpy as np
import pytest
from helpers import check_named, normal, planted, teacher

from onehidden.certify.certificate import Certificate
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.checks import About, at_least
from onehidden.fit.polish import Polished
from onehidden.recovery import search as room
from onehidden.recovery.options import checked_options
from onehidden.recovery.search import search
from onehidden.run import Run
from onehidden.starts import Refused
from onehidden.starts.candidate import Candidate

NET = teacher(d=3, k=2)
RESTART, STUDENT, THINNED, BRED = "random restart", "wide-and-prune", "thinning", "bred"


def certificate(mean_square, missed=False, exact=False, cause=None):
    """A certificate of this loss; ``missed`` fails the fit, ``cause`` leaves the second unit open."""
    errors = ParameterRecord(np.ones((2, 3)), np.ones(2), np.zeros(2), 1.0)
    units = [UnitVerdict(i, NET.weights[i], 0.0, 1.0, (np.ones(3), 0.0, 1.0), 0.5) for i in range(2)]
    if cause is not None:
        units[1] = units[1].undetermined(cause, "unit 2 is not determined")
    own = at_least("fit", 0.0 if missed else 1.0, 0.5, "advice", About.FIT)
    return Certificate(
        NET, (own,), tuple(units), loss=mean_square, noise_variance=mean_square, standard_errors=errors,
        curvature=np.ones(1), mean_square=mean_square, exact=exact, n=200, freedom=9,
    )  # fmt: skip


class Staged:
    """A search whose starts end where the test says: (origin, mean square, mean square after repair)."""

    def __init__(self, monkeypatch, answers, rows=100_000, **verdict):
        self.looked = 0
        self.options, self.problem = checked_options(hidden=2), planted(NET, normal(rows, 3), noise=0.1)

        def proposals(problem, start, run):
            for origin, loss, *_ in answers:
                self.looked += 1
                student, bred = origin in (STUDENT, THINNED), origin == BRED
                yield Candidate(NET, loss, origin, NET.weights, NET.bias, student, bred)

        def repaired(problem, candidate, run):
            _, _, *better = answers[self.looked - 1]
            return candidate if not better else Candidate(NET, better[0], "repair", NET.weights, NET.bias)

        def polish(network, problem, run, near):
            number = run.path[-1]
            answer = answers[self.looked - 1]
            return Polished(network, answer[min(number, len(answer) - 2) + 1])

        def certify(network, problem, run, errors):
            answer = answers[self.looked - 1]
            loss = answer[min(run.path[-1], len(answer) - 2) + 1]
            return certificate(loss, **verdict)

        monkeypatch.setattr(room, "proposals", proposals)
        monkeypatch.setattr(room, "repaired", repaired)
        monkeypatch.setattr(room, "polish", polish)
        monkeypatch.setattr(room, "certify", certify)
        monkeypatch.setattr(room, "held_against_all", lambda certificate, *rest: certificate)
        monkeypatch.setattr(room, "no_worse_than_linear", lambda answer, *rest: answer)
        self.found = search(self.problem, self.options, Run()).certificate


def many(count, loss=1.0):
    return [(RESTART, loss)] * count


def test_two_starts_that_come_to_one_clear_answer_end_the_search(monkeypatch):
    assert Staged(monkeypatch, [(RESTART, 2.0), *many(10)], rows=500_000).looked == 3
    # what must not end it: answers that differ by more than half a unit of n log(loss)
    falling = [(RESTART, 1.0 - 0.01 * i) for i in range(10)]
    assert Staged(monkeypatch, falling).looked == 10
    # where starts cost next to nothing, more are looked at all the same
    assert 3 < Staged(monkeypatch, [(RESTART, 2.0), *many(30)], rows=200).looked < 31


def test_a_fit_to_rounding_ends_the_search_at_once(monkeypatch):
    assert Staged(monkeypatch, many(5), exact=True).looked == 1


@pytest.mark.parametrize(
    ("answers", "looked"),
    [
        (many(12), 12),  # no student was asked
        ([*many(12), (THINNED, 2.0), *many(5)], 13),
        ([*many(8), (THINNED, 2.0), (RESTART, 3.0), (RESTART, 3.0)], 11),  # eight are not enough
        ([*many(2), (STUDENT, 1.0), *many(5)], 3),  # three are, with a student among them
        ([(RESTART, 1.0), (STUDENT, 1.0), (RESTART, 3.0)], 3),
    ],
)
def test_an_answer_that_many_starts_came_to_is_the_lowest_once_a_student_was_asked(
    answers, looked, monkeypatch
):
    """The answer misses something, so none of these is clear; the model is wrong, not the search."""
    assert Staged(monkeypatch, answers, missed=True).looked == looked


def test_agreement_counts_starts_not_a_start_and_its_repair(monkeypatch):
    alone = Staged(monkeypatch, [(RESTART, 1.001, 1.0), (RESTART, 2.0), (RESTART, 3.0)], missed=True)
    agreement = check_named(alone.found, "agreement")
    assert agreement.value == 1
    assert not agreement.passed
    both = Staged(monkeypatch, [(RESTART, 1.001, 1.0), (RESTART, 2.0), (RESTART, 1 + 1e-6)], missed=True)
    assert check_named(both.found, "agreement").value == 2
    assert check_named(both.found, "agreement").passed


@pytest.mark.parametrize(("last", "agreeing"), [(3, 1), (4, 2)])
def test_what_is_bred_agrees_with_the_other_family_alone(monkeypatch, last, agreeing):
    """A child that ends where one of its own family did is no evidence: it was made of its units."""
    answers = [(RESTART, loss) for loss in (2.0, 1.0, 3.0, 4.0)][:last]
    found = Staged(monkeypatch, [*answers, (BRED, 1 + 1e-6)], missed=True).found
    assert check_named(found, "agreement").value == agreeing


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(RESTART, 1.0), (RESTART, 1.2)], "doubtful"),
        ([(RESTART, 1.0001, 1.0)], "doubtful"),  # a start and its own repair
        ([(RESTART, 1.0), (RESTART, 1 + 1e-6)], "not identifiable"),
    ],
)
def test_what_one_start_alone_leaves_open_is_doubtful_not_unidentifiable(answers, expected, monkeypatch):
    """A unit that is loose in a poor local minimum says nothing about the data; found twice, it does."""
    found = Staged(monkeypatch, answers, cause=Cause.NOTHING).found
    assert found.status == expected
    assert ("unit 2 is not determined" in found.message) == (expected == "not identifiable")


def test_agreement_does_not_hang_on_whether_units_are_apart(monkeypatch):
    """The choice of a width reads a failed agreement as too few units; units too near are too many."""
    near = Staged(monkeypatch, many(2), cause=Cause.APART).found
    assert not near.clear
    assert not near.undetermined
    assert check_named(near, "agreement").passed


def test_a_start_that_proposes_nothing_is_refused_by_name(monkeypatch):
    with pytest.raises(Refused, match="'auto' found nothing to begin from"):
        Staged(monkeypatch, [])
