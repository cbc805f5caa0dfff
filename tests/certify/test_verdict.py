"""From evidence to one word: which kind of failed question leads to which status."""

import numpy as np
import pytest
from helpers import teacher

from onehidden import activations
from onehidden.certify.compare import Alternative, Kind, falls_behind
from onehidden.certify.status import Status
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.certify.verdict import Evidence, verdict
from onehidden.checks import About, at_least, not_asked

NET = teacher()


def failed(about, name="a question"):
    return at_least(name, 1.0, 5.0, "what to do", about)


def units(*open_):
    """Three units, those of these numbers left open."""
    found = [UnitVerdict(i, NET.weights[i], 0.0, 1.0, (np.ones(5), 0.0, 1.0), 0.3) for i in range(3)]
    return tuple(
        unit.undetermined(Cause.NOTHING, f"unit {unit.index + 1} adds nothing to y")
        if unit.index in open_
        else unit
        for unit in found
    )


def evidence(*checks, open_=(), exact=False, **more):
    return Evidence(NET.activation, exact, list(checks), units(*open_), **more)


def test_a_member_of_status_equals_its_text():
    assert Status.NOT_IDENTIFIABLE == "not identifiable"
    assert f"{Status.EXACT}" == "exact"
    assert {s for s in Status if s.certified} == {"exact", "consistent"}


@pytest.mark.parametrize(
    ("about", "status"),
    [
        (About.FIT, "doubtful"),
        (About.SEARCH, "doubtful"),
        (About.ERRORS, "doubtful"),
        (About.DATA, "doubtful"),
        (About.UNITS, "not identifiable"),
        (About.COLUMNS, "not identifiable"),
        (About.NOTE, "consistent"),
    ],
)
def test_the_status_follows_from_what_a_failed_question_is_about(about, status):
    """Neither its name nor its words matter."""
    for name in ("fit", "width", "weakest unit"):
        assert verdict(evidence(failed(about, name)))[0] == status


def test_loose_units_of_a_network_that_misses_something_make_it_doubtful():
    loose, fit = failed(About.UNITS), failed(About.FIT, "fit")
    assert verdict(evidence(loose, open_=[1]))[0] == "not identifiable"
    status, message = verdict(evidence(fit, loose, open_=[1]))
    assert status == "doubtful"
    assert "fit" in message


def test_a_question_that_was_not_asked_has_not_passed():
    missing = not_asked("one unit more", 6.0, "allow more time", About.SEARCH)
    assert verdict(evidence(missing))[0] == "doubtful"
    assert verdict(evidence(not_asked("fit", 0.01, "too few rows", About.FIT), stable=True))[0] == "doubtful"
    assert verdict(evidence(finished=False))[0] == "doubtful"
    assert verdict(evidence())[0] == "consistent"


def test_a_stable_network_that_misses_something_is_the_best_of_its_kind():
    fit = failed(About.FIT)
    assert verdict(evidence(fit, stable=True, left_over=0.1))[0] == "approximate"
    for worse in (
        evidence(fit, stable=False),
        evidence(fit, stable=True, finished=False),
        evidence(fit, stable=True, open_=[0]),
        evidence(fit, failed(About.ERRORS), stable=True),
        evidence(fit, stable=True, exact=True),
    ):
        assert verdict(worse)[0] != "approximate"


def test_an_exact_fit_of_coarse_numbers_is_called_consistent():
    assert verdict(evidence(exact=True))[0] == "exact"
    assert verdict(evidence(exact=True, grain=1e-7))[0] == "consistent"
    assert verdict(evidence(exact=True, open_=[2]))[0] == "not identifiable"


def test_units_are_named_and_those_that_stand_are_counted():
    status, message = verdict(evidence(exact=True, open_=[1]))
    assert status == "not identifiable"
    assert "unit 2 adds nothing to y" in message
    assert "the other 2" in message


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_polynomial_activations_hide_their_units_whatever_the_checks_say(name):
    hidden = Evidence(activations.get(name), True, [], units())
    assert verdict(hidden)[0] == "not identifiable"


def test_an_answer_is_told_from_another_row_by_row_where_rows_are_compared():
    far_but_uncertain = Alternative(Kind.MINIMUM, "unit 1 elsewhere", 94.0, deviations=1.8)
    near_but_certain = Alternative(Kind.MINIMUM, "unit 1 elsewhere", 5.0, deviations=3.0)
    by_sums = Alternative(Kind.CHOICE, "tanh", 5.0)
    assert [one.close for one in (far_but_uncertain, near_but_certain, by_sums)] == [True, False, True]
    assert not falls_behind([far_but_uncertain, near_but_certain], Kind.MINIMUM).passed
    assert falls_behind([near_but_certain], Kind.MINIMUM).passed
