"""From evidence to one word: which kind of failed check leads to which status."""

import pytest
from helpers import ROOT, teacher

from onehidden import OneHiddenNet
from onehidden.certify import levels
from onehidden.certify.alternatives import all_worse
from onehidden.certify.certificate import Alternative, AlternativeKind, Status, certificate_of
from onehidden.certify.units import Cause
from onehidden.checks import About, at_least, not_evaluated

NET = teacher(k=3)


def failed(about, name="a check"):
    return at_least(name, 1.0, 5.0, "what to do", about)


def certificate(*checks, undetermined_units=(), exact=False, compared=True, net=NET, **more):
    """Of three units, those of these numbers undetermined."""
    undetermined = {i: (Cause.NOTHING, f"unit {i + 1} adds nothing to y") for i in undetermined_units}
    known = {"exact": exact, "compared": compared, "undetermined": undetermined}
    return certificate_of(net, checks, loss=0.1, n=100, n_parameters=10, **known, **more)


def status_of(*checks, **more):
    return certificate(*checks, **more).status


def test_a_member_of_status_equals_its_text():
    assert Status.NOT_IDENTIFIABLE == "not identifiable"
    assert f"{Status.EXACT}" == "exact"
    assert {s for s in Status if s.certified} == {"exact", "consistent"}


@pytest.mark.parametrize(
    ("about", "status"),
    [
        (About.FIT, "approximate"),
        (About.SEARCH, "doubtful"),
        (About.ERRORS, "doubtful"),
        (About.DATA, "doubtful"),
        (About.UNITS, "not identifiable"),
        (About.COLUMNS, "not identifiable"),
        (About.NOTE, "consistent"),
    ],
)
def test_the_status_follows_from_what_a_failed_check_is_about(about, status):
    """Neither its name nor its words matter."""
    for name in ("fit", "width", "weakest unit"):
        assert status_of(failed(about, name)) == status


def test_loose_units_of_a_network_that_misses_something_make_it_doubtful():
    loose, fit = failed(About.UNITS), failed(About.FIT, "fit")
    assert status_of(loose, undetermined_units=[1]) == "not identifiable"
    both = certificate(fit, loose, undetermined_units=[1])
    assert both.status == "doubtful"
    assert "the network misses" in both.message


def test_a_check_that_was_not_evaluated_has_not_passed():
    missing = not_evaluated("a larger model", 6.0, "allow more time", About.SEARCH)
    assert status_of(missing) == "doubtful"
    assert status_of(not_evaluated("fit", 0.01, "too few rows", About.FIT)) == "doubtful"
    assert status_of(compared=False) == "doubtful"
    assert status_of() == "consistent"


def test_a_stable_network_that_misses_something_is_the_best_of_its_kind():
    fit = failed(About.FIT)
    assert status_of(fit, missed_share=0.1) == "approximate"
    for worse in (
        certificate(fit, compared=False),
        certificate(fit, undetermined_units=[0]),
        certificate(fit, failed(About.ERRORS)),
        certificate(fit, exact=True),
    ):
        assert worse.status != "approximate"


def test_an_exact_fit_of_coarse_numbers_is_called_consistent():
    assert status_of(exact=True) == "exact"
    assert status_of(exact=True, output_precision=1e-7) == "consistent"
    assert status_of(exact=True, undetermined_units=[2]) == "not identifiable"


def test_units_are_named_and_those_that_stand_are_counted():
    one = certificate(exact=True, undetermined_units=[1])
    assert one.status == "not identifiable"
    assert "unit 2 adds nothing to y" in one.message
    assert "the other 2" in one.message


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_polynomial_activations_hide_their_units_whatever_the_checks_say(name):
    hidden = OneHiddenNet(NET.weights, NET.output, NET.bias, 0.0, name)
    assert status_of(exact=True, net=hidden) == "not identifiable"


def test_an_alternative_is_ruled_out_where_it_is_as_far_behind_as_needed():
    near, far = (
        Alternative(AlternativeKind.MINIMUM, "unit 1 elsewhere", b, needed=21.0) for b in (3.1, 94.0)
    )
    held_out = Alternative(AlternativeKind.SELECTED_ACTIVATION, "tanh", 5.0)
    assert [one.close for one in (near, far, held_out)] == [True, False, True]
    assert not all_worse([near, far], AlternativeKind.MINIMUM).passed
    assert all_worse([far], AlternativeKind.MINIMUM).passed
    assert near.distance == (
        "these rows are less likely under it by a factor of 4.7; 3.6e+04 less would rule it out"
    )


def test_every_level_is_in_the_table_with_what_it_guards():
    rows = levels.TABLE.values()
    assert all(level.value > 0 and level.check and level.measure and level.guards for level in rows)
    assert levels.TABLE["FIT"] is levels.FIT


def test_levels_name_checks_that_exist():
    files = [file for file in (ROOT / "src" / "onehidden").rglob("*.py") if file.name != "levels.py"]
    source = "".join(file.read_text() for file in files)
    rows = [level.check for level in levels.TABLE.values() if not level.check.startswith("(")]
    checks = {check for row in rows for check in row.split(", ")}
    assert [check for check in checks if f'"{check}"' not in source] == []
