"""The plan: which starts in which order, by what the samples can pay for."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import normal, planted, teacher

import onehidden as oh
from onehidden import activations
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.starts import Population, Random, Reflections, Thinned, Wide
from onehidden.starts.plan import NAMES, affordable, further_restarts, plan, students
from onehidden.starts.population import PATIENT, QUICK


def empty(d, k, n, decimals=None):
    """A problem of this size; its rows say nothing, a target of so many decimals that it was measured."""
    around = Coordinates(np.eye(d), np.eye(d), np.zeros(d), 0.0, 1.0, np.zeros((d, 0)))
    y = np.sqrt(np.arange(n)) if decimals is None else np.round(np.sqrt(np.arange(n)), decimals)
    return Problem(Samples(np.zeros((n, d)), y), Form(activations.get("relu"), d, k), around)


@pytest.mark.parametrize(
    ("d", "k", "n", "on_cpu", "kinds"),
    [
        (20, 20, 1000, True, "TTWWWW"),  # few samples: thinned students first
        (20, 20, 10_000, True, "WWWWT"),
        (50, 50, 8192, True, "WWWW"),  # too long for a CPU
        (50, 50, 10_000, True, "TWWWW"),  # one thinned student, on batches
        (50, 50, 16_384, True, "WWWW"),
        (50, 50, 8192, False, "TTTTWWWW"),
        (50, 50, 16_384, False, "WTTTT"),
    ],
)
def test_the_ladder_of_students_follows_the_samples_a_parameter(d, k, n, on_cpu, kinds):
    assert "".join(type(s).__name__[0] for s in students(empty(d, k, n), on_cpu)) == kinds


def test_thinning_goes_over_to_batches_where_all_rows_cost_too_much():
    small, large = empty(20, 20, 1000), empty(50, 50, 10_000)
    assert [s.batch for s in students(small, on_cpu=True)[:2]] == [None, None]
    first = students(large, on_cpu=True)[0]
    assert isinstance(first, Thinned)
    assert first.batch is not None
    assert replace(first, batch=None).work(large) > 4 * first.work(large)
    assert replace(first, batch=None) not in students(large, on_cpu=True)
    assert students(large, on_cpu=False)[0].batch is None


@pytest.mark.parametrize(
    ("d", "k", "n", "before"),
    [
        # few samples, few parameters: before students
        (4, 10, 150, {"random", "reflections", "localised", "tensor"}),
        (30, 10, 569, {"reflections", "localised"}),  # too few for students
        # enough for them
        (30, 10, 900, {"reflections", "localised", "thinned", "wide", "random", "tensor"}),
        (5, 3, 2000, {"random", "localised", "tensor", "wide", "thinned"}),  # plenty: at the end
    ],
)
def test_a_population_comes_before_students_where_those_find_nothing(d, k, n, before):
    names = [leg.start.name for leg in plan(empty(d, k, n), "auto")]
    assert set(names[: names.index("population")]) == before


def test_a_patient_population_waits_for_one_student_only():
    starts = [leg.start for leg in plan(empty(4, 10, 150), "auto")]
    first, second = (i for i, start in enumerate(starts) if isinstance(start, Population))
    assert (starts[first].manners, starts[second].manners) == ((QUICK,), (PATIENT,))
    assert isinstance(starts[first + 1], Thinned)
    assert second == first + 2


@pytest.mark.parametrize(
    ("d", "k", "n", "count"),
    [
        (20, 20, 600, 3),  # too few for students: longer ones follow
        (20, 20, 1000, 1),
        (50, 50, 8192, 1),
        (20, 20, 4000, 0),  # enough for everything
    ],
)
def test_reflections_come_first_where_samples_are_few(d, k, n, count):
    starts = [leg.start for leg in plan(empty(d, k, n), "auto")]
    found = [one for one in starts if isinstance(one, Reflections)]
    assert len(found) == len({one.first for one in found}) == count  # other draws
    assert [one.steps for one in found] == sorted(one.steps for one in found)
    assert (starts[0].name == "reflections") == (count > 0)


def test_longer_reflections_come_before_populations_and_are_bounded_where_steps_cost_nothing():
    starts = [leg.start for leg in plan(empty(13, 10, 178), "auto")]
    longer = [i for i, start in enumerate(starts) if isinstance(start, Reflections) and start.first]
    assert len(longer) > 1
    assert max(longer) < min(i for i, start in enumerate(starts) if isinstance(start, Population | Thinned))
    tiny = [leg.start for leg in plan(empty(3, 3, 24), "auto") if isinstance(leg.start, Reflections)]
    assert max(start.steps for start in tiny) <= 3_000_000


@pytest.mark.parametrize(("decimals", "count"), [(1, 1), (2, 1), (5, 3), (None, 3)])
def test_targets_of_few_digits_are_not_reflected_for_long(decimals, count):
    legs = plan(empty(13, 10, 178, decimals), "auto")
    assert sum(isinstance(leg.start, Reflections) for leg in legs) == count


def test_reflections_of_many_units_stop_where_students_take_over():
    small, large, larger = (plan(empty(k, k, 3 * k * k), "auto")[0].start for k in (20, 50, 100))
    assert isinstance(small, Reflections)
    assert isinstance(large, Reflections)
    assert large.steps < small.steps
    assert not isinstance(larger, Reflections)  # nothing is begun that has no time to end


@pytest.mark.parametrize("activation", ["tanh", "softplus", "squared_relu"])
def test_reflections_are_for_kinked_units_alone(activation):
    problem = empty(20, 20, 600).with_activation(activations.get(activation))
    assert "reflections" not in {leg.start.name for leg in plan(problem, "auto")}


def test_a_population_too_large_for_the_machine_is_left_out():
    large = empty(50, 50, 8192)
    assert not affordable(Population(), large, on_cpu=True)
    assert affordable(Population(), empty(20, 20, 600), on_cpu=False)
    assert "population" not in {leg.start.name for leg in plan(large, "auto")}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "auto"])
def test_a_start_by_name_is_that_start_alone(name):
    legs = plan(empty(5, 3, 2000), name)
    assert legs
    allowed = {name, "thinned"} if name == "wide" else {name}  # the ladder of students ends with thinned ones
    assert {leg.start.name for leg in legs} <= allowed


def test_a_list_of_starts_is_tried_in_its_order():
    legs = plan(empty(5, 3, 2000), ["random", Wide(64), Random(7, first=3)])
    assert [leg.start for leg in legs][-2:] == [Wide(64), Random(7, first=3)]
    assert legs[0].start.name == "random"


def test_the_race_ends_with_further_restarts_that_draw_anew():
    problem = empty(4, 10, 150)
    legs = plan(problem, "auto")
    random = [leg.start for leg in legs if isinstance(leg.start, Random)]
    last = legs[-1].start
    assert last is random[-1]
    drawn = [i for start in random for i in range(start.first, start.first + start.restarts)]
    assert drawn == list(range(len(drawn)))
    assert last.restarts == further_restarts(problem) > 0
    assert legs[-1].hope < 1
    assert further_restarts(empty(50, 50, 10_000)) == 0  # where a step costs much, none


def test_restarts_come_between_students_where_they_take_as_long():
    small, large = (
        [leg.start for leg in plan(empty(*size), "auto") if leg.inside]
        for size in ((8, 10, 1010), (20, 20, 10_000))
    )
    names = [start.name for start in small]
    first = names.index("wide")
    assert names[first : first + 5] == ["wide", "random"] * 2 + ["wide"]
    counts = [sum(one.restarts for one in legs if isinstance(one, Random)) for legs in (small, large)]
    assert counts[0] > 2 * counts[1]  # the longer one takes with its repairs, the fewer
    few = [leg.start.name for leg in plan(empty(20, 20, 1000), "auto") if leg.inside]
    assert few.index("random") > few.index("wide")  # restarts find nothing there


def test_students_of_one_width_begin_differently():
    widest = [one for one in students(empty(50, 50, 7000), on_cpu=False) if isinstance(one, Thinned)][1:]
    rounds = [range(one.first, one.first + one.rounds) for one in widest]
    assert len({one.width for one in widest}) == 1
    assert sum(map(len, rounds)) == len({number for some in rounds for number in some}) > widest[0].rounds


@pytest.mark.parametrize("start", [oh.starts.Random(20), [oh.starts.Random(2), "wide"]])
def test_recover_takes_starts_as_objects_and_lists(start):
    net = teacher(k=2)
    problem = planted(net, normal(1200))
    r = oh.recover(problem.samples.X, problem.samples.y, 2, bias=False, start=start)
    assert r.status == "exact"
    assert oh.match(r.network, net).max_error < 1e-8
