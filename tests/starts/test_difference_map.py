"""The difference map: projections against brute force, fixed points, penalties, networks from few rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EXACT, normal, one_sentence, planted, teacher, worst_error

import onehidden as oh
from onehidden.fit.samples import Samples
from onehidden.machine import double
from onehidden.run import Run
from onehidden.starts import DifferenceMap, Random, Refused
from onehidden.starts.candidate import complete, search_fit, search_form
from onehidden.starts.difference_map import (
    initial,
    iterate,
    linear_ease,
    outputs_and_losses,
    project_linear,
    project_rows,
    restarts,
    sets_of,
    shrinkage,
    weight_penalty,
)
from onehidden.starts.wide import single_precision

K = 3
CALM = jnp.array([0.3, 2.0])
ALL = jnp.eye(5, dtype=jnp.float32)  # no pressure: four inputs and the constant


def distance(one, other):
    """Squared distance of rows (k + 1,) in the metric of the projections."""
    moved = one - other
    return np.sum(moved[..., :-1] ** 2, axis=-1) + moved[..., -1] ** 2 / linear_ease(K)


def nearest(row, signs, y):
    """The nearest point of {sum_i s_i |t_i| + l = y} to a row, over all sides and zeros of its units."""
    best, least = row, np.inf
    for sides in product((-1.0, 0.0, 1.0), repeat=len(signs)):
        # On these sides the set is a plane: (s_i side_i, 1) x = y, units of side 0 at zero.
        normal_to = np.append(signs * np.array(sides), 1.0)
        start = np.append(np.where(np.array(sides) == 0, 0.0, row[:-1]), row[-1])
        stretch = np.append(np.abs(sides), linear_ease(K))
        point = start + stretch * normal_to * (y - normal_to @ start) / np.sum(stretch * normal_to**2)
        on_side = np.all(point[:-1] * np.array(sides) >= 0)
        if on_side and distance(point, row) < least:
            best, least = point, distance(point, row)
    return best


def test_the_projection_of_a_row_is_the_nearest_of_all_sides():
    rng = np.random.default_rng(3)
    values, signs, y = (
        rng.standard_normal((2, K + 1, 40)),
        np.array([[1, -1, 1], [-1, -1, -1.0]]),
        rng.standard_normal(40),
    )
    with double():
        found = np.asarray(project_rows(*(jnp.asarray(v) for v in (values, signs, y))))
    for member, sign in enumerate(signs):
        total = np.sum(sign[:, None] * np.abs(found[member, :-1]), axis=0) + found[member, -1]
        np.testing.assert_allclose(total, y, atol=1e-12)
        expected = np.array(
            [nearest(row, sign, target) for row, target in zip(values[member].T, y, strict=True)]
        )
        np.testing.assert_allclose(found[member].T, expected, atol=1e-12)
        assert np.any(expected[:, :-1] == 0)  # some units end at their kink ...
        assert np.max(np.abs(expected - values[member].T)) > 0.5  # ... and rows do move


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_the_loss_of_a_run_is_that_of_least_squares(activation):
    net = teacher(activation, 4, 3, rows="uneven", output="uneven", bias=0.5)
    problem = planted(net, normal(60, 4))
    problem = replace(problem, rows=Samples(problem.samples.X, problem.samples.y, WEIGHT / WEIGHT.mean()))
    form = search_form(problem)
    units = np.random.default_rng(3).standard_normal((4, 3, 5))
    with single_precision():
        sets = sets_of(problem, form)
        found = np.asarray(outputs_and_losses(form, sets, jnp.asarray(units, jnp.float32))[1])
    for plane, loss in zip(units @ np.asarray(sets.back, float).T, found, strict=True):
        theta = complete(problem, plane[:, :4], plane[:, 4])
        assert loss == pytest.approx(search_fit(problem, form).loss(theta) / problem.n, rel=1e-3)
        assert loss > 1e-3


def few(n=60, d=4, k=K, bias=0.5, weight=None):
    """A problem of few rows, its search form, both sets, and the true values of units and linear part."""
    net = teacher("relu", d, k, rows="uneven", output="uneven", bias=bias)
    problem = planted(net, normal(n, d))
    if weight is not None:
        problem = replace(problem, rows=Samples(problem.samples.X, problem.samples.y, weight))
    form, inner = search_form(problem), problem.search_coordinates.inward(net)
    with single_precision():
        sets = sets_of(problem, form)
    root = problem.weighted(np.ones(n))
    t = 0.5 * np.abs(inner.output)[:, None] * (inner.weights @ problem.Z.T + inner.bias[:, None]) * root
    units = np.sign(inner.output)[:, None] * np.abs(t)
    y = np.asarray(sets.y, float)
    true = np.concatenate([t, (y - units.sum(axis=0))[None]])[None]
    return problem, form, sets, true, np.sign(inner.output)[None]


WEIGHT = np.random.default_rng(5).uniform(0.5, 1.5, 60)


@pytest.mark.parametrize("weight", [None, WEIGHT / WEIGHT.mean()])
def test_the_network_sought_lies_in_both_sets_and_stays(weight):
    _, form, sets, true, signs = few(weight=weight)
    values, signs = jnp.asarray(true, jnp.float32), jnp.asarray(signs, jnp.float32)
    with single_precision():
        inside, on_rows = project_linear(sets, values, sets.basis), project_rows(values, signs, sets.y)
        after = iterate(form, sets, ALL, CALM, values, signs, 50)
    for one in (inside, on_rows, after.values):
        np.testing.assert_allclose(np.asarray(one), true, atol=2e-5)
    np.testing.assert_array_equal(np.asarray(after.signs), np.asarray(signs))
    assert float(after.loss[0]) < 1e-9
    assert np.abs(true).max() > 0.5


def test_the_projection_on_linear_functions_is_least_squares():
    problem, form, sets, _, _ = few()
    values = np.random.default_rng(4).standard_normal((2, K + 1, problem.n))
    with single_precision():
        found = np.asarray(project_linear(sets, jnp.asarray(values, jnp.float32), sets.basis), float)
    x = np.column_stack([problem.Z, np.ones(problem.n)])
    expected = (x @ np.linalg.lstsq(x, values.reshape(-1, problem.n).T, rcond=None)[0]).T
    np.testing.assert_allclose(found, expected.reshape(values.shape), atol=1e-5)
    assert np.max(np.abs(expected)) > 0.1
    assert form.skip


def test_signs_are_those_of_least_squares():
    _, form, sets, true, signs = few()
    values, wrong = jnp.asarray(true, jnp.float32), jnp.asarray(signs * [[1, -1, 1]], jnp.float32)
    with single_precision():
        kept = iterate(form, sets, ALL, CALM, values, wrong, 0)
    # The wrong sign has moved the hyperplanes a little: least squares turns it back.
    np.testing.assert_array_equal(np.asarray(kept.signs), signs)


def test_initial_values_are_small_linear_functions():
    _, _, sets, _, _ = few()
    drawn, signs = initial(sets, K, np.random.default_rng(0), 4)
    assert signs.shape == (4, K)
    with single_precision():
        inside = np.asarray(project_linear(sets, jnp.asarray(drawn), sets.basis))
    np.testing.assert_allclose(inside, drawn, atol=1e-5)
    size = np.sqrt(np.mean(drawn**2)) / np.std(np.asarray(sets.y))
    assert 0.05 < size < 0.2


@pytest.mark.parametrize(
    ("activation", "d", "k", "n", "bias", "output"),
    [
        ("relu", 5, 5, 54, 0.5, None),  # 1.5 rows per parameter
        ("relu", 12, 12, 288, 0.0, np.ones(12)),  # equal outputs, whose signs begin at random
        ("leaky_relu", 6, 4, 60, 0.5, "uneven"),
        ("abs", 6, 4, 50, 0.5, "uneven"),
    ],
)
def test_a_network_is_found_from_few_rows(activation, d, k, n, bias, output):
    net = teacher(activation, d, k, seed=2, output=output, bias=bias)
    X = normal(n, d, seed=8)
    r = oh.recover(X, net.predict(X), k, activation=activation, bias=bias > 0, start=DifferenceMap(), seed=1)
    assert r.status == "exact"
    assert worst_error(r.network, net) < EXACT
    assert any(record.stage == "difference map" for record in r.trace)


def test_restarts_do_not_find_equal_outputs_there():
    problem = planted(teacher("relu", 12, 12, seed=2, output=np.ones(12)), normal(288, 12, seed=8))
    assert min(one.loss for one in Random(4).propose(problem, Run(1))) > 1e-4


@pytest.mark.parametrize("activation", ["tanh", "softplus", "squared_relu"])
def test_units_without_one_kink_are_refused(activation):
    problem = planted(teacher(activation), normal(100))
    with pytest.raises(Refused) as error:
        next(DifferenceMap().propose(problem, Run()))
    one_sentence(error, "difference map", activation)


def test_several_outputs_are_refused():
    X = normal(200)
    Y = np.column_stack([teacher(seed=seed).predict(X) for seed in (0, 1)])
    with pytest.raises(ValueError) as error:
        oh.recover(X, Y, 3, start="difference_map")
    one_sentence(error, "difference map")


def test_runs_that_least_squares_says_nothing_of_keep_their_signs_and_leave_the_others_alone():
    _, form, sets, true, signs = few()
    values = jnp.asarray(np.concatenate([np.full_like(true, np.nan), true]), jnp.float32)
    both = jnp.asarray(np.concatenate([-signs, signs]), jnp.float32)
    with single_precision():
        after = iterate(form, sets, ALL, CALM, values, both, 1)
    np.testing.assert_array_equal(np.asarray(after.signs), np.asarray(both))
    assert not np.isfinite(after.loss[0])
    assert float(after.loss[1]) < 1e-9


def test_the_best_of_all_restarts_is_what_comes_back():
    # One step more than two restarts begins nothing anew: the answer is at least as good.
    problem = planted(teacher("relu", 6, 6, bias=0.5, seed=4), normal(90, 6, seed=3), noise=0.02)
    losses = [
        next(DifferenceMap(steps, runs=4).propose(problem, Run(1))).loss for steps in (6000, 6001, 8000)
    ]
    assert max(losses[1:]) < 3 * losses[0]


def test_the_clock_ends_the_difference_map():
    net, X = teacher("relu", 10, 10, bias=0.5), normal(123, 10)  # one row a parameter: nothing to find
    r = oh.recover(X, net.predict(X), 10, start=DifferenceMap(10**9), seed=1, max_seconds=2.0)
    assert r.seconds < 1.1 * 2.0 + 2.0
    assert r.status != "exact"


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"runs": 0}, {"first_run": -1}])
def test_numbers_below_one_are_refused(wrong):
    with pytest.raises(ValueError, match="1 or more"):
        DifferenceMap(**wrong)


def correlated(d=4, n=200):
    """Rows of correlated columns of different scales, as a problem and as the difference map sees it."""
    mixing = np.array([[1.0, 0.9, 0, 0], [0, 0.3, 0, 0], [0, 0, 5.0, 4.0], [0, 0, 0, 0.5]])
    problem = planted(teacher("relu", d, 3, bias=0.5), normal(n, d) @ mixing)
    form = search_form(problem)
    with single_precision():
        return problem, form, sets_of(problem, form)


def test_the_weight_penalty_is_their_squares_in_standardised_columns():
    problem, form, sets = correlated()
    tau = np.random.default_rng(0).standard_normal((6, 5))
    back = np.asarray(sets.back, float)
    planes, X = tau @ back.T, problem.samples.X
    in_x = planes[:, :4] @ problem.search_coordinates.whiten.T
    # The values of the unit on the rows, written out, are those of its coordinates.
    values = (X - problem.search_coordinates.shift) @ in_x.T + planes[:, 4]
    np.testing.assert_allclose(values.T, tau @ np.asarray(sets.basis, float).T, atol=1e-5)
    expected = problem.n * (np.sum((in_x * X.std(axis=0)) ** 2, axis=1) + planes[:, 4] ** 2)
    penalty = weight_penalty(problem, form, back)
    np.testing.assert_allclose(np.einsum("me,ef,mf->m", tau, penalty, tau), expected, rtol=1e-4)
    assert np.ptp(np.linalg.eigvalsh(penalty)) > 1  # another penalty than that on the mean of t^2
    np.testing.assert_allclose(shrinkage(penalty, 0.3) @ (np.eye(5) + 0.3 * penalty), np.eye(5), atol=1e-10)


def test_both_penalties_are_one_where_columns_are_uncorrelated():
    X = np.linalg.qr(normal(200, 4) - normal(200, 4).mean(axis=0))[0] * np.sqrt(200) * [1.0, 10.0, 0.1, 3.0]
    problem = planted(teacher("relu", 4, 3, bias=0.5), X)
    form = search_form(problem)
    with single_precision():
        sets = sets_of(problem, form)
    penalty = weight_penalty(problem, form, np.asarray(sets.back, float))
    np.testing.assert_allclose(penalty, np.eye(5), atol=1e-3)


def test_restarts_add_up_and_double():
    assert list(restarts(20_000)) == [2000, 4000, 8000, 6000]
    assert list(restarts(10)) == [10]
    assert list(restarts(14_001)) == [2000, 4000, 8001]  # none of one step
    assert sum(restarts(200_000)) == 200_000
    assert max(restarts(200_000)) < 34_000


def test_units_are_weaker_under_a_ridge_penalty():
    _, form, sets = correlated()

    def strength(ridge):
        with single_precision():
            values, signs = (jnp.asarray(one) for one in initial(sets, 3, np.random.default_rng(1), 8))
            shrunk = jnp.asarray(shrinkage(np.eye(5), ridge), jnp.float32)
            after = iterate(form, sets, shrunk, jnp.array([0.6, 3.0]), values, signs, 500)
        return float(jnp.sqrt(jnp.mean(after.values[:, :-1] ** 2)))

    assert strength(0.3) < 0.7 * strength(0.0)


@pytest.mark.parametrize("seed", [1, pytest.param(7, marks=pytest.mark.slow)])
def test_five_units_in_fifty_inputs_are_found(seed):
    # Without restarts and penalty not found in 300 000 steps of 16 runs.
    d, k, rng = 50, 5, np.random.default_rng(seed)
    net = oh.OneHiddenNet(np.linalg.qr(rng.standard_normal((d, k)))[0].T, [1.0, -1.0, 1.0, -1.0, 1.0])
    X = normal(375, d, seed)
    r = oh.recover(X, net.predict(X), k, bias=False, start=DifferenceMap(14_000), seed=seed, max_seconds=60)
    assert r.status == "exact"
    assert worst_error(r.network, net) < EXACT


def test_the_old_name_answers_with_a_warning():
    with pytest.deprecated_call():
        assert oh.starts.Reflections(500, members=3) == DifferenceMap(500, runs=3)
