"""When a search ends: answers that starts agree on, overparameterised networks, fits to rounding."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import check_named, normal, planted, teacher

from onehidden.certify.certificate import certificate_of
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.units import Cause
from onehidden.checks import About, at_least
from onehidden.fit.problem import Optimum
from onehidden.options import Options
from onehidden.recovery.search import search
from onehidden.run import Run
from onehidden.starts import Refused
from onehidden.starts.candidate import Candidate

NET = teacher(d=3, k=2)
RESTART, WIDE, THINNED = "random restart", "wide-and-prune", "thinned"


def certificate(mean_square, missed=False, exact=False, cause=None):
    """A certificate of this loss; ``missed`` fails the fit, ``cause`` leaves the second unit open."""
    errors = ParameterRecord(np.ones((2, 3)), np.ones(2), np.zeros(2), 1.0)
    undetermined = {} if cause is None else {1: (cause, "unit 2 is not determined")}
    own = at_least("fit", 0.0 if missed else 1.0, 0.5, "advice", About.FIT)
    return certificate_of(
        NET, [own], loss=mean_square, exact=exact, n=200, n_parameters=9, errors=errors,
        shares=np.full(2, 0.5), undetermined=undetermined,
    )  # fmt: skip


class Staged:
    """A search whose starts end where the test says: (origin, mean square, mean square after repair)."""

    def __init__(self, answers, rows=100_000, **verdict):
        self.looked, self.answers, self.verdict = 0, answers, verdict
        self.problem = planted(NET, normal(rows, 3), noise=0.1)
        parts = (self.propose, self.repair, self.finish, self.certify)
        self.found = search(self.problem, Options(hidden=2), Run(), None, *parts).certificate

    def propose(self, problem, start, run):
        for number, (origin, loss, *_) in enumerate(self.answers):
            self.looked += 1
            wide = origin in (WIDE, THINNED)
            yield Candidate(NET, loss, origin, wide, number)

    def repair(self, problem, candidate, run):
        _, _, *better = self.answers[self.looked - 1]
        return replace(candidate, loss=better[0]) if better else candidate

    def finish(self, candidate, search_problem, problem, run):
        return Optimum(NET, candidate.loss)

    def certify(self, network, problem, run, errors):
        answer = self.answers[self.looked - 1]
        return certificate(answer[min(run.path[-1], len(answer) - 2) + 1], **self.verdict)


def many(count, loss=1.0):
    return [(RESTART, loss)] * count


def test_two_starts_that_come_to_one_clear_answer_end_the_search():
    assert Staged([(RESTART, 2.0), *many(10)], rows=500_000).looked == 3
    # what must not end it: answers that differ by more than half a unit of n log(loss)
    falling = [(RESTART, 1.0 - 0.01 * i) for i in range(10)]
    assert Staged(falling).looked == 10
    # where starts cost next to nothing, more are looked at all the same
    assert 3 < Staged([(RESTART, 2.0), *many(30)], rows=200).looked < 31


def test_a_fit_to_rounding_ends_the_search_at_once():
    assert Staged(many(5), exact=True).looked == 1


@pytest.mark.parametrize(
    ("answers", "looked"),
    [
        (many(12), 12),  # no overparameterised network
        ([*many(12), (THINNED, 2.0), *many(30)], 29),
        ([*many(8), (THINNED, 2.0), (RESTART, 3.0), (RESTART, 3.0)], 11),  # eight are not enough
        ([*many(2), (WIDE, 1.0), *many(40)], 29),  # a minimum that one start in ten leads to would be met
        ([*many(2), (WIDE, 1.0), *many(20, 3.0)], 23),
    ],
)
def test_an_answer_that_many_starts_came_to_is_the_lowest_once_a_wide_network_did_worse(
    answers, looked, monkeypatch
):
    """The answer misses something, so none of these is clear; the model is wrong, not the search."""
    assert Staged(answers, missed=True).looked == looked


def test_agreement_counts_starts_not_a_start_and_its_repair():
    alone = Staged([(RESTART, 1.001, 1.0), (RESTART, 2.0), (RESTART, 3.0)], missed=True)
    agreement = check_named(alone.found, "agreement")
    assert agreement.value == 1
    assert not agreement.passed
    both = Staged([(RESTART, 1.001, 1.0), (RESTART, 2.0), (RESTART, 1 + 1e-6)], missed=True)
    assert check_named(both.found, "agreement").value == 2
    assert check_named(both.found, "agreement").passed


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(RESTART, 1.0), (RESTART, 1.2)], "doubtful"),
        ([(RESTART, 1.0001, 1.0)], "doubtful"),  # a start and its own repair
        ([(RESTART, 1.0), (RESTART, 1 + 1e-6)], "not identifiable"),
    ],
)
def test_what_one_start_alone_leaves_open_is_doubtful_not_unidentifiable(answers, expected):
    """A unit that is loose in a poor local minimum says nothing about the data; found twice, it does."""
    found = Staged(answers, cause=Cause.NOTHING).found
    assert found.status == expected
    assert ("unit 2 is not determined" in found.message) == (expected == "not identifiable")


def test_agreement_does_not_hang_on_whether_units_are_apart():
    """The choice of a width reads a failed agreement as too few units; units too near are too many."""
    near = Staged(many(2), cause=Cause.APART).found
    assert not near.search_done_and_determined
    assert not near.undetermined
    assert check_named(near, "agreement").passed


def test_a_start_that_proposes_nothing_is_refused_by_name():
    with pytest.raises(Refused, match="'auto' found nothing to begin from"):
        Staged([])
