"""Starts: pruning, orientation, the wide student, the score moments."""

from dataclasses import replace

import numpy as np
import pytest

from onehidden import OneHiddenNet, activations, match
from onehidden.laws import standard_normal as standard_law
from onehidden.moments import score_moments
from onehidden.fit.form import Form
from onehidden.precision import double
from onehidden.recovery import race
from onehidden.starts import thinning, wide
from onehidden.starts.candidate import Task
from onehidden.starts.orientation import orient
from onehidden.starts.prune import eliminate_backwards, elimination_losses, merge_parallel
from onehidden.starts.restarts import random_start
from onehidden.starts.span import span_of_units
from onehidden.starts.thinning import (
    Thinning,
    _narrower,
    _replaced,
    _round,
    _shares_of_kept,
    thinned_start,
)
from onehidden.starts.wide import WideAndPrune, merged_units, random_student, train, wide_start


def task(name="relu", d=6, k=4, n=4000, bias=False, seed=0):
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    net = OneHiddenNet(
        A, np.where(np.arange(k) % 2, -1.0, 1.0), 0.5 * rng.standard_normal(k) * bias, 0.0, name
    )
    Z = rng.standard_normal((n, d))
    return Task(Z, net.predict(Z), activations.get(name), k, bias, seed), net


def test_merging_joins_parallel_units_and_keeps_opposed_signs_apart():
    weights = np.array([[1.0, 0], [0.99, 0.1], [-1.0, 0.0], [0, 1], [1.0, 0.01]])
    amplitude = np.array([2.0, 1.0, 1.0, 1.0, -1.0])
    merged, _, total = merge_parallel(weights, np.zeros(5), amplitude, up_to_sign=True)
    assert len(merged) == 3  # x axis (three units, one reversed), y axis, x axis with negative output
    np.testing.assert_array_equal(np.sort(total), [-1.0, 1.0, 4.0])
    kept_apart, _, _ = merge_parallel(weights, np.zeros(5), amplitude, up_to_sign=False)
    assert len(kept_apart) == 4


def test_reversed_odd_units_merge_with_their_outputs_turned():
    """w tanh(-t) = -w tanh(t): (a, 1) and (-a, -1) are one unit, (a, 1) and (-a, 1) cancel and stay apart."""
    weights, zero = np.array([[1.0, 0], [-1.0, 0], [0, 1.0], [0, -1.0]]), np.zeros(4)
    amplitude = np.array([1.0, -1.0, 1.0, 1.0])
    merged, _, total = merge_parallel(weights, zero, amplitude, up_to_sign=True, parity=-1.0)
    assert len(merged) == 3
    assert sorted(np.abs(total)) == [1.0, 1.0, 2.0]
    nothing = merge_parallel(weights, zero, np.zeros(4), up_to_sign=True)
    assert [len(part) for part in nothing] == [0, 0, 0]


def test_elimination_keeps_the_columns_that_made_y():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((500, 12))
    ones = np.ones((500, 1))
    y = F[:, [2, 5, 7]] @ np.array([1.0, -2.0, 0.5]) + 3
    assert sorted(eliminate_backwards(F, ones, y, 3)) == [2, 5, 7]
    losses = elimination_losses(F, ones, y, 5)
    by_hand = np.linalg.lstsq(np.column_stack([ones, F[:, [2, 5]]]), y, rcond=None)[1][0] / 500
    assert losses[1] == pytest.approx(by_hand, rel=1e-6)
    assert losses[2] < 1e-12 < losses[1]


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "softplus", "gelu"])
def test_orientation_is_read_from_the_linear_part(name):
    """An orientation-free fit with its units turned at random gives back the very network."""
    problem, net = task(name, bias=True)
    g, rng = net.activation, np.random.default_rng(3)
    h = g.orientation_part[1]
    turn = rng.choice([-1.0, 1.0], net.n_hidden)
    beta = h * net.output @ net.weights
    constant = net.intercept + h * net.output @ net.bias
    form = Form(g, 6, 4, bias=True, skip=True, symmetrised=True)
    theta = form.pack(net.weights * turn[:, None], net.output, net.bias * turn, beta, constant)
    found = orient(form, theta)
    np.testing.assert_allclose(found.predict(problem.Z), problem.y, atol=1e-12)
    assert match(found, net).max_error < 1e-13


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu"])
def test_wide_and_prune_reaches_the_truth(name):
    problem, net = task(name)
    with double():
        candidate = wide_start(problem, WideAndPrune(48, steps=4000))
    assert match(candidate.network, net).max_error < 1e-9
    assert candidate.loss < 1e-18


def test_units_that_begin_at_zero_stay_there():
    """For sigmoid an empty unit is a constant: its output would move, and its row after it."""
    problem, net = task("sigmoid")
    form = Form(net.activation, problem.d, 6)
    rows = np.vstack([net.weights + 0.1, np.zeros((2, problem.d))])
    begin = form.pack(rows, np.append(net.output, [0.0, 0.0]))
    theta = train(form, WideAndPrune(6, steps=1000), problem.Z, problem.y, 0, begin=begin)
    weights, output, *_ = form.unpack(theta)
    assert not np.any(weights[4:])
    assert not np.any(output[4:])
    assert np.all(output[:4] != net.output)


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu"])
def test_a_student_keeps_its_function_when_it_is_made_narrower(name):
    """Nothing is lost with the units that are not there, and homogeneous ones end balanced."""
    problem, net = task(name, bias=True)
    form = Form(net.activation, problem.d, 2 * problem.k, bias=True)
    empty = np.zeros((problem.k, problem.d))
    theta = form.pack(
        np.vstack([net.weights * 3.0, empty]),
        np.append(net.output, np.zeros(4)),
        np.append(net.bias, np.zeros(4)),
    )
    narrow = Form(net.activation, problem.d, problem.k + 1, bias=True)
    with double():
        new, strength = _narrower(form, theta, narrow, merged_units(form, theta))
        before, after = (
            np.asarray(form_.g(problem.Z @ w.T + b)) @ o
            for form_, (w, o, b, _, _) in ((form, form.unpack(theta)), (narrow, narrow.unpack(new)))
        )
    np.testing.assert_allclose(after, before, atol=1e-9 * np.abs(before).max())
    assert strength[-1] == 0
    assert np.all(strength[:-1] > 0)
    h = net.activation.homogeneity
    if h is not None:  # the least of |a|^2 + b^2 + w^2 at a given w |a|^h
        weights, output, bias, *_ = narrow.unpack(new)
        np.testing.assert_allclose(np.sum(weights**2, axis=1) + bias**2, h * output**2, rtol=1e-9)


def test_thinning_leaves_the_true_units_alone():
    """Two and a half samples a parameter: units still beside the true ones after even stages are gone."""
    problem, net = task(d=12, k=10, n=300)
    settings = Thinning(160, steps=4000, stage_steps=2000)
    truth = net.weights / np.linalg.norm(net.weights, axis=1, keepdims=True)
    left = []
    for stages in (replace(settings, weighted=()), settings):
        form, theta = _round(problem, stages, None, 0)
        units = merged_units(form, theta)[0]
        left.append(len(units))
        cosine = np.abs(truth @ (units / np.linalg.norm(units, axis=1, keepdims=True)).T)
        assert cosine.max(axis=1).min() > 0.9
    assert left[0] > 20
    assert left[1] == 10
    with double():
        found = thinned_start(problem, settings)
    assert found.loss < 1e-18
    assert match(found.network, net).max_error < 1e-8


def test_what_a_round_keeps_bears_little_decay_in_the_next():
    _, net = task(d=6, k=4)
    form = Form(net.activation, 6, 9, skip=True, symmetrised=True)
    theta = random_student(form, np.random.default_rng(0))
    kept = net.weights, net.bias, net.output
    begun = _replaced(form, theta, kept)
    np.testing.assert_array_equal(_shares_of_kept(form, theta, None, 0.2), np.ones(9))
    np.testing.assert_array_equal(_shares_of_kept(form, begun, kept, 0.2), [0.2] * 4 + [1.0] * 5)
    plain = Form(net.activation, 6, 9)  # without a skip the reverse of a unit is another one
    np.testing.assert_array_equal(
        _shares_of_kept(
            plain, -_replaced(plain, random_student(plain, np.random.default_rng(0)), kept), kept, 0.2
        )[:4],
        np.ones(4),
    )
    weights, output, *_ = form.unpack(begun)
    np.testing.assert_allclose(weights[:4] * output[:4, None], net.weights * net.output[:, None], atol=1e-12)


@pytest.mark.parametrize(
    ("d", "k", "n", "on_cpu", "kinds"),
    [
        (20, 20, 1000, True, "TTWWWW"),  # few samples: thinned students first
        (20, 20, 10_000, True, "WWWWT"),
        (50, 50, 8192, True, "WWWW"),  # too long for a CPU
        (50, 50, 10_000, True, "TWWWW"),  # one thinned student, on batches
        (50, 50, 16_384, True, "WWWW"),
        (50, 50, 8192, False, "TTWWWW"),
        (50, 50, 16_384, False, "WTT"),
    ],
)
def test_the_ladder_of_students_follows_the_samples_a_parameter(d, k, n, on_cpu, kinds):
    problem = Task(np.zeros((n, d)), np.zeros(n), activations.get("relu"), k, False, 0)
    assert "".join(type(s).__name__[0] for s in race.ladder(problem, on_cpu)) == kinds


def low_moments(problem):
    return score_moments(problem.Z, problem.y, standard_law(problem.d), orders=(1, 2))


def test_span_of_units_is_found_from_second_moments():
    problem, net = task("relu", d=12, k=3, n=40_000)
    basis = span_of_units(problem, low_moments(problem))
    assert basis is not None
    inside = np.linalg.norm(net.weights @ basis, axis=1)
    assert inside.min() > 0.99
    assert np.linalg.norm(net.weights @ np.eye(12)[:, :3], axis=1).min() < 0.9  # a wrong span fails
    odd, _ = task("tanh", d=12, k=3, n=4000)
    assert span_of_units(odd, low_moments(odd)) is None  # T_2 vanishes for odd g


def test_random_restarts_differ_by_attempt_and_repeat_by_seed():
    problem, _ = task("tanh", n=500)
    with double():
        one, again, other = (random_start(problem, a) for a in (0, 0, 1))
    np.testing.assert_array_equal(one.network.weights, again.network.weights)
    assert not np.array_equal(one.network.weights, other.network.weights)


def test_thinning_goes_over_to_batches_where_all_rows_cost_too_much():
    small, _ = task(d=20, k=20, n=1000)
    large, _ = task(d=50, k=50, n=10_000)
    assert [s.batch for s in race.ladder(small, on_cpu=True)[:2]] == [None, None]
    first = race.ladder(large, on_cpu=True)[0]
    assert isinstance(first, Thinning)
    assert first.batch == race._BATCH
    assert replace(first, batch=None).work(10_000, 50, 50) > race._CPU_WORK >= first.work(10_000, 50, 50)
    assert race.ladder(large, on_cpu=False)[0].batch is None


def test_a_thinned_student_learns_from_batches_too(monkeypatch):
    problem, net = task(d=8, k=5, n=1000)
    batches = set()

    def listening(form, settings, *args):
        batches.add(settings.batch)
        return train(form, settings, *args)

    monkeypatch.setattr(thinning, "train", listening)
    with double():
        found = thinned_start(problem, Thinning(64, steps=3000, stage_steps=1000, batch=128))
    assert batches == {128}
    assert found.loss < 1e-18
    assert match(found.network, net).max_error < 1e-8


def test_noise_does_not_make_every_round_of_thinning_go_on(monkeypatch):
    """Units beside the true ones never all vanish then; two rounds that end at one loss are enough."""
    problem, _ = task(d=8, k=5, n=600)
    noise = np.random.default_rng(5).standard_normal(600)
    turns = []

    def listening(task, settings, kept, turn):
        turns.append(turn)
        return _round(task, settings, kept, turn)

    monkeypatch.setattr(thinning, "_round", listening)
    settings = Thinning(64, steps=2000, stage_steps=1000, weighted=(), rounds=6)
    with double():
        thinned_start(replace(problem, y=problem.y + 0.1 * noise), settings)
    assert turns == [0, 1]


@pytest.mark.parametrize("batch", [1, 7, 50, None])
def test_every_row_is_drawn_as_often(monkeypatch, batch):
    """Slices run over the end: without that the first row would be in one slice of all."""
    drawn = np.zeros(50)

    def listening(form, schedule, size, theta, state, masks, rows, starts):
        for i in np.asarray(starts):
            np.add.at(drawn, np.asarray(rows[1])[i : i + size].astype(int), 1)
        return theta, state, 0.0

    monkeypatch.setattr(wide, "_run_chunk", listening)
    problem, _ = task(d=3, k=2, n=50)
    form = Form(problem.activation, 3, 4)
    train(form, WideAndPrune(4, steps=20_000, batch=batch), problem.Z, np.arange(50.0), 0)
    mean = 20_000 * (batch or 50) / 50
    assert np.all(np.abs(drawn - mean) <= 5 * np.sqrt(mean))
