"""Starts: pruning, orientation, the wide network, random restarts, the span."""

import numpy as np
import pytest
from helpers import FOUND, normal, planted, problem_of, teacher, worst_error

from onehidden import activations, match
from onehidden.fit.parametrisation import Parametrisation
from onehidden.machine import double
from onehidden.run import Run
from onehidden.starts import Random, Start, Wide
from onehidden.starts.candidate import complete, orient, search_form
from onehidden.starts.repair import eliminate
from onehidden.starts.wide import Units, merge_parallel, shuffled
from onehidden_papers.laws import standard_normal as standard_law
from onehidden_papers.moments import score_moments
from onehidden_papers.starts.input_law import span_of_units


def task(name="relu", d=6, k=4, n=4000, bias=0.0, seed=0):
    """A problem without noise and the network behind it, in x."""
    net = teacher(name, d, k, seed, bias=bias)
    return planted(net, normal(n, d, seed + 100)), net


def test_merging_joins_parallel_units_and_keeps_opposed_signs_apart():
    weights = np.array([[1.0, 0], [0.99, 0.1], [-1.0, 0.0], [0, 1], [1.0, 0.01]])
    amplitude = np.array([2.0, 1.0, 1.0, 1.0, -1.0])
    merged, _, total = merge_parallel(Units(weights, np.zeros(5), amplitude), up_to_sign=True)
    assert len(merged) == 3  # x axis (three units, one reversed), y axis, x axis with negative output
    np.testing.assert_array_equal(np.sort(total), [-1.0, 1.0, 4.0])
    kept_apart, _, _ = merge_parallel(Units(weights, np.zeros(5), amplitude), up_to_sign=False)
    assert len(kept_apart) == 4


def test_reversed_odd_units_merge_with_their_outputs_turned():
    """w tanh(-t) = -w tanh(t): (a, 1) and (-a, -1) are one unit, (a, 1) and (-a, 1) cancel and stay apart."""
    weights, zero = np.array([[1.0, 0], [-1.0, 0], [0, 1.0], [0, -1.0]]), np.zeros(4)
    amplitude = np.array([1.0, -1.0, 1.0, 1.0])
    merged, _, total = merge_parallel(Units(weights, zero, amplitude), up_to_sign=True, parity=-1.0)
    assert len(merged) == 3
    assert sorted(np.abs(total)) == [1.0, 1.0, 2.0]
    nothing = merge_parallel(Units(weights, zero, np.zeros(4)), up_to_sign=True)
    assert [len(part) for part in nothing] == [0, 0, 0]


def test_elimination_keeps_the_columns_that_made_y():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((500, 12))
    ones = np.ones((500, 1))
    y = F[:, [2, 5, 7]] @ np.array([1.0, -2.0, 0.5]) + 3
    assert sorted(eliminate(F, ones, y, 3)[0]) == [2, 5, 7]
    losses = eliminate(F, ones, y, 1)[1][::-1][:5]
    by_hand = np.linalg.lstsq(np.column_stack([ones, F[:, [2, 5]]]), y, rcond=None)[1][0] / 500
    assert losses[1] == pytest.approx(by_hand, rel=1e-6)
    assert losses[2] < 1e-12 < losses[1]


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "softplus", "gelu"])
def test_orientation_is_read_from_the_linear_part(name):
    """An orientation-free fit with its units turned at random gives back the very network."""
    net, X = teacher(name, 6, 4, bias=0.5), normal(400, 6)
    g, rng = net.activation, np.random.default_rng(3)
    h = g.orientation_part[1]
    turn = rng.choice([-1.0, 1.0], net.n_hidden)
    beta = h * net.output @ net.weights
    constant = net.intercept + h * net.output @ net.bias
    form = Parametrisation(g, 6, 4, bias=True, skip=True, symmetrised=True)
    theta = form.pack(net.weights * turn[:, None], net.output, net.bias * turn, beta, constant)
    found = orient(form, theta)
    np.testing.assert_allclose(found.predict(X), net.predict(X), atol=1e-12)
    assert match(found, net).max_error < 1e-13


def test_orientations_are_found_where_units_outnumber_inputs():
    rng = np.random.default_rng(14)
    net = teacher(d=2, k=6, seed=14, rows="gaussian", output=rng.choice([-1.0, 1.0], 6), bias=0.6)
    problem = planted(net, normal(2000, 2))
    truth, form = problem.search_coordinates.inward(net), search_form(problem)
    turns = np.where(rng.random(6) < 0.5, -1.0, 1.0)
    with double():
        start = complete(problem, truth.weights * turns[:, None], truth.bias * turns)
        m = match(orient(form, start), truth)
    assert m.max_error < 1e-6
    assert m.output_error < 1e-4  # a trace of ridge


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu"])
def test_wide_and_prune_reaches_the_truth(name):
    problem, net = task(name)
    with double():
        (candidate,) = Wide(48, steps=4000).propose(problem, Run())
    assert worst_error(problem.search_coordinates.outward(candidate.network), net) < FOUND
    assert candidate.loss < 1e-14  # a search ends near the digits, the finish takes the rest


def test_a_student_stops_where_its_units_lead_to_a_fit_to_rounding():
    problem, net = task(d=8, k=6)
    heard = []
    with double():
        (found,) = Wide(48).propose(problem, Run(listener=heard.append))
    assert found.overparameterised
    assert problem.rows.rounding.found(found.loss)
    assert worst_error(problem.search_coordinates.outward(found.network), net) < FOUND
    assert 0 < sum(one.stage == "wide network" for one in heard) < 12_000 // 500


def test_a_student_of_noisy_rows_is_trained_to_its_end():
    """What must fail: to stop where the units stand apart and no descent from them fits to rounding."""
    problem, heard = planted(teacher("relu", 8, 6), normal(4000, 8, 100), noise=0.1), []
    with double():
        (_,) = Wide(48).propose(problem, Run(listener=heard.append))
    assert sum(one.stage == "wide network" for one in heard) == 12_000 // 500


def test_a_wide_student_of_too_few_directions_still_gives_all_units():
    X = normal(400, 2)
    problem = problem_of(X, np.maximum(X[:, 0], 0), activations.get("relu"), 3, True)
    with double():
        (found,) = Wide(2, steps=1000).propose(problem, Run())
    assert found.network.n_hidden == 3


def test_every_start_is_a_choice_with_a_name_and_its_work():
    problem, _ = task(n=500)
    for start in (Random(), Wide()):
        assert isinstance(start, Start)
        assert start.work(problem) > 0
    assert Random(8).work(problem) == 2 * Random(4).work(problem)


def span(problem):
    low = score_moments(problem.Z, problem.y, standard_law(problem.d), orders=(1, 2))
    return span_of_units(low, problem.k)


def test_span_of_units_is_found_from_second_moments():
    problem, net = task("relu", d=12, k=3, n=40_000)
    basis = span(problem)
    assert basis is not None
    inside = np.linalg.norm(problem.search_coordinates.inward(net).weights @ basis, axis=1)
    assert inside.min() > 0.99
    assert np.linalg.norm(net.weights @ np.eye(12)[:, :3], axis=1).min() < 0.9  # a wrong span fails
    odd, _ = task("tanh", d=12, k=3, n=4000)
    assert span(odd) is None  # T_2 vanishes for odd g


def test_random_restarts_differ_by_attempt_and_repeat_by_seed():
    problem, _ = task("tanh", n=500)

    def weights(seed, **settings):
        with double():
            return next(Random(1, **settings).propose(problem, Run(seed))).network.weights

    np.testing.assert_array_equal(weights(0), weights(0))
    assert not np.array_equal(weights(0), weights(0, first=1))
    assert not np.array_equal(weights(0), weights(1))


def test_a_late_run_is_given_one_restart():
    problem, _ = task("tanh", n=500)
    with double():
        assert len(list(Random(3).propose(problem, Run(max_seconds=1e-9)))) == 1


@pytest.mark.parametrize("batch", [1, 7, 50])
def test_every_row_is_drawn_as_often(batch):
    """Slices run over the end: without that the first row would be in one slice of all."""
    rng, steps = np.random.default_rng(0), 5000
    order = shuffled(50, batch, rng)
    drawn = np.zeros(50)
    for at in rng.integers(0, len(order) - batch + 1, steps):
        np.add.at(drawn, order[at : at + batch], 1)
    mean = steps * batch / 50
    assert drawn.sum() == steps * batch
    assert np.all(np.abs(drawn - mean) <= 5 * np.sqrt(mean))
