"""Pressure on the units of reflections: its metrics against their definitions, what it does to a search."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EXACT, normal, planted, teacher, worst_error

import onehidden as oh
from onehidden.starts import Reflections
from onehidden.starts.candidate import search_form
from onehidden.starts.flock import narrow
from onehidden.starts.pressure import Metric, lives, of_strength, of_weights, pressure
from onehidden.starts.reflecting import STEADY, first_values, mirror, reflect

D, N = 4, 200


def correlated():
    """Rows of correlated columns of different scales, as a problem and as reflections see it."""
    mixing = np.array([[1.0, 0.9, 0, 0], [0, 0.3, 0, 0], [0, 0, 5.0, 4.0], [0, 0, 0, 0.5]])
    problem = planted(teacher("relu", D, 3, bias=0.5), normal(N, D) @ mixing)
    form = search_form(problem)
    with narrow():
        return problem, form, mirror(problem, form)


def squares(metric: Metric, tau):
    return np.sum(metric.scales * (tau @ metric.axes) ** 2, axis=1)


def test_the_metric_of_weights_is_their_squares_in_standardised_columns():
    problem, form, sides = correlated()
    tau = np.random.default_rng(0).standard_normal((6, D + 1))
    planes = tau @ np.asarray(sides.back, float).T
    X = problem.samples.X
    in_x = planes[:, :D] @ problem.begin.whiten.T
    # The values of the unit on the rows, written out, are those of its coordinates.
    values = (X - problem.begin.shift) @ in_x.T + planes[:, D]
    np.testing.assert_allclose(values.T, tau @ np.asarray(sides.basis, float).T, atol=1e-5)
    expected = N * (np.sum((in_x * X.std(axis=0)) ** 2, axis=1) + planes[:, D] ** 2)
    found = squares(of_weights(problem, form, np.asarray(sides.back, float)), tau)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert np.ptp(found / squares(of_strength(D + 1), tau)) > 1  # another metric than strength


def test_both_metrics_are_one_where_columns_are_uncorrelated():
    X = np.linalg.qr(normal(N, D) - normal(N, D).mean(axis=0))[0] * np.sqrt(N) * [1.0, 10.0, 0.1, 3.0]
    problem = planted(teacher("relu", D, 3, bias=0.5), X)
    form = search_form(problem)
    with narrow():
        sides = mirror(problem, form)
    np.testing.assert_allclose(
        of_weights(problem, form, np.asarray(sides.back, float)).scales, 1.0, rtol=1e-3
    )


def test_what_is_kept_is_the_inverse():
    problem, form, sides = correlated()
    metric = of_weights(problem, form, np.asarray(sides.back, float))
    M = (metric.axes * metric.scales) @ metric.axes.T
    np.testing.assert_allclose(metric.kept(0.3) @ (np.eye(D + 1) + 0.3 * M), np.eye(D + 1), atol=1e-10)
    np.testing.assert_allclose(metric.kept(0.0), np.eye(D + 1), atol=1e-12)


def test_lives_add_up_and_double():
    assert list(lives(20_000)) == [2000, 4000, 8000, 6000]
    assert list(lives(10)) == [10]
    assert list(lives(14_001)) == [2000, 4000, 8001]  # nobody is born for one step
    assert sum(lives(200_000)) == 200_000
    assert max(lives(200_000)) < 34_000


def test_pressure_falls_to_nothing_before_a_life_ends():
    ages = np.arange(0, 1000, 10)
    found = np.array([pressure(age, 1000) for age in ages])
    assert np.all(np.diff(found) <= 0)
    assert found[0] > 0
    assert np.all(found[ages >= 800] == 0)


def strengths(strain):
    _, form, sides = correlated()
    metric = of_strength(D + 1)
    with narrow():
        values = jnp.asarray(first_values(sides, np.random.default_rng(1), 8, 3))
        signs = jnp.asarray(np.random.default_rng(2).choice([-1.0, 1.0], (8, 3)), jnp.float32)
        kept = jnp.asarray(metric.kept(strain), jnp.float32)
        after = reflect(form, sides, kept, jnp.array(STEADY), values, signs, jnp.zeros(8, bool), 500)
    return float(jnp.sqrt(jnp.mean(after.values[:, :-1] ** 2)))


def test_units_are_weaker_under_pressure():
    assert strengths(0.3) < 0.7 * strengths(0.0)


@pytest.mark.parametrize("seed", [1, 7])
def test_five_units_in_fifty_inputs_are_found_where_members_grow_old(seed):
    # Without lives and pressure not found in 300 000 steps of 16 members.
    problem = oh.problems.get("gaussian-relu-orthonormal-50x5")
    X, _, drawn = problem.sample(375, seed)
    truth = oh.OneHiddenNet(drawn.weights, np.array([1.0, -1.0, 1.0, -1.0, 1.0]), drawn.bias)
    start = Reflections(14_000)
    r = oh.recover(X, truth.predict(X), 5, bias=False, start=start, seed=seed, max_seconds=60)
    assert r.status == "exact"
    assert worst_error(r.network, truth) < EXACT
