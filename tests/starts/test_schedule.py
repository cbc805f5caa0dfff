"""The schedule: which starts in which order, by what the samples can pay for."""

import numpy as np
import pytest
from helpers import normal, planted, teacher

import onehidden as oh
from onehidden import activations
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts import REGISTRY, RENAMED, DifferenceMap, Random, Wide
from onehidden.starts.candidate import Candidate
from onehidden.starts.schedule import Case, Entry, planned, proposals


def case(d, k, n, decimals=None, activation="relu"):
    """A problem of this size; its rows are zero, a target of so many decimals looks measured."""
    around = Coordinates(np.eye(d), np.eye(d), np.zeros(d), 0.0, 1.0, np.zeros((d, 0)))
    y = np.sqrt(np.arange(n)) if decimals is None else np.round(np.sqrt(np.arange(n)), decimals)
    form = Parametrisation(activations.get(activation), d, k)
    return Case(Problem(Samples(np.zeros((n, d)), y), form, around))


def starts(*size, **more):
    return [start for start, _ in planned("auto", case(*size, **more))]


def names(*size, **more):
    return [start.name for start in starts(*size, **more)]


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ((20, 20, 600), 2),  # too few for other starts: a longer one follows
        ((20, 20, 1000), 1),
        ((50, 50, 8192), 1),
        ((20, 20, 4000), 0),  # enough for everything
        ((100, 100, 30_000), 0),  # too slow
    ],
)
def test_the_difference_map_comes_first_where_samples_are_few(size, count):
    found = [one for one in starts(*size) if isinstance(one, DifferenceMap)]
    assert len(found) == len({one.first_run for one in found}) == count  # other draws
    assert [one.steps for one in found] == sorted(one.steps for one in found)
    assert (names(*size)[0] == "difference_map") == (count > 0)


def test_longer_runs_of_the_difference_map_are_bounded_where_steps_cost_nothing():
    assert max(one.steps for one in starts(3, 3, 24) if isinstance(one, DifferenceMap)) <= 3_900_000


@pytest.mark.parametrize(("decimals", "count"), [(1, 1), (2, 1), (5, 2), (None, 2)])
def test_targets_of_few_digits_get_no_long_difference_map(decimals, count):
    assert names(13, 10, 178, decimals=decimals).count("difference_map") == count


@pytest.mark.parametrize("activation", ["tanh", "softplus", "squared_relu"])
def test_the_difference_map_is_for_units_with_one_kink(activation):
    assert "difference_map" not in names(20, 20, 600, activation=activation)


def test_random_restarts_never_draw_the_same():
    drawn = [
        number
        for start in starts(4, 10, 150)
        if isinstance(start, Random)
        for number in range(start.first, start.first + start.restarts)
    ]
    assert len(drawn) == len(set(drawn)) > 3


@pytest.mark.parametrize("name", REGISTRY)
def test_a_start_by_name_is_that_start_alone(name):
    assert {start.name for start, _ in planned(name, case(5, 3, 2000))} == {name}


def test_a_list_of_starts_is_tried_in_its_order():
    found = [start for start, _ in planned(["random", Wide(64), Random(7, first=3)], case(5, 3, 2000))]
    assert found[-2:] == [Wide(64), Random(7, first=3)]
    assert found[0].name == "random"


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_answers_with_a_warning(old):
    assert old not in REGISTRY
    with pytest.deprecated_call():
        assert planned(old, case(5, 3, 200))[0][0].name == RENAMED[old]


class Staged:
    """A start that proposes networks of given losses, or refuses."""

    def __init__(self, name, *losses, work=0.0):
        self.name, self.losses, self._work = name, losses, work

    def work(self, problem):
        return self._work

    def propose(self, problem, run):
        if not self.losses:
            raise Refused(f"{self.name} cannot begin here: use another")
        net = teacher(d=3, k=2)
        for loss in self.losses:
            yield Candidate(net, loss, self.name)


PLANTED = planted(teacher(d=3, k=2), normal(200, 3))


def proposed(*rows, run=None, start="auto"):
    return list(proposals(PLANTED, start, Run() if run is None else run, schedule=rows))


def test_rows_are_tried_in_order_where_their_condition_and_max_loss_allow():
    found = proposed(
        Entry(Staged("first", 0.5)),
        Entry(Staged("refused")),
        Entry(Staged("not here", 0.1), when=Case.few_samples),
        Entry(Staged("poor", 0.2), max_loss=0.4),
        Entry(Staged("second", 0.3, 0.2)),
        Entry(Staged("third", 0.1), max_loss=0.25),
    )
    assert [one.origin for one in found] == ["first", "second", "second", "third"]
    assert [one.number for one in found] == [0, 1, 2, 3]


def test_where_nothing_can_begin_the_refusal_is_raised():
    with pytest.raises(Refused, match="cannot begin"):
        proposed(Entry(Staged("alone")))


def test_what_a_budget_does_not_pay_for_comes_last_after_one_restart():
    rows = Entry(Staged("long", 0.5, work=1e15)), Entry(Staged("short", 0.4, work=1.0))
    assert [one.origin for one in proposed(*rows)] == ["long", "short"]
    hurried = proposed(*rows, run=Run(max_seconds=100.0))
    assert [one.origin for one in hurried] == ["short", "random restart", "long"]
    # Where nothing fits, not even a restart, what costs hardly more than one comes before it.
    near = Entry(Staged("near", 0.5, work=1.5 * oh.starts.Random(1).work(PLANTED)))
    assert [one.origin for one in proposed(near, rows[0], run=Run(max_seconds=1e-12))] == ["near"]


@pytest.mark.parametrize("start", [oh.starts.Random(20), [oh.starts.Random(2), "wide"]])
def test_recover_takes_starts_as_objects_and_lists(start):
    net = teacher(k=2)
    problem = planted(net, normal(1200))
    r = oh.recover(problem.samples.X, problem.samples.y, 2, bias=False, start=start)
    assert r.status == "exact"
    assert oh.match(r.network, net).max_error < 1e-8
