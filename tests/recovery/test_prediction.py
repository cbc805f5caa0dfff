"""Predictions: never worse than ridge regression on rows left out, and what was done is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

import onehidden as oh
from onehidden.fit.problem import optimise
from onehidden.machine import in_double
from onehidden.network import facing
from onehidden.options import Options
from onehidden.recovery.guard import without_each_row
from onehidden.recovery.line import measures, ridge_line
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import checked_samples
from onehidden.run import Run, stream


def _rows(n=80, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng


@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_of_rows_left_out_are_those_of_ridge_fitted_without_them(weighted):
    X, rng = _rows(14, 3)
    y = X @ [1.0, -0.5, 0.0] + rng.standard_normal(14)
    v = rng.uniform(0.5, 2.0, 14) if weighted else np.ones(14)
    line, outside = ridge_line(X, y, v if weighted else None)
    centre = np.average(X, axis=0, weights=v)
    Z = (X - centre) / np.sqrt(np.average((X - centre) ** 2, axis=0, weights=v))
    D = np.column_stack([np.ones(14), Z])

    def without(strength, i=None):
        u = np.where(np.arange(14) == i, 0.0, v)
        return np.linalg.solve(D.T @ (D * u[:, None]) + np.diag([0, *[strength] * 3]), D.T @ (u * y))

    brute = {
        strength: np.array([y[i] - D[i] @ without(strength, i) for i in range(14)])
        for strength in np.logspace(-3, 3, 13)
    }
    best = min(brute, key=lambda strength: float(v @ brute[strength] ** 2))
    np.testing.assert_allclose(outside, brute[best], rtol=1e-10)
    np.testing.assert_allclose(line(X), D @ without(best), rtol=1e-10)


def test_intervals_that_rounding_of_the_covariance_hides_are_infinite():
    X, rng = _rows(120, 1)
    counts = rng.poisson(np.exp(1 + np.tanh(X[:, 0])))
    r = oh.recover(X, counts, 1, activation="tanh", family="poisson", start="random")
    assert np.all(np.isfinite(r.predict_interval(X)))
    value, vector = np.linalg.eigh(r.covariance)
    lost = replace(r, covariance=(vector * np.where(value == value[0], -value[-1], value)) @ vector.T)
    for of in ("mean", "observation"):
        lower, upper = lost.predict_interval(X, of=of)
        assert np.all(lower < 1e-300)
        assert np.all(upper > 1e300)


def test_a_column_that_does_not_vary_has_no_slope():
    X, rng = _rows(30)
    line, _ = ridge_line(np.column_stack([X, np.full(30, 1e6)]), X[:, 0] + 0.1 * rng.standard_normal(30))
    assert line.slope[2] == 0
    assert np.all(np.isfinite(line.slope))


@in_double
def test_leverage_foresees_what_a_fit_without_the_row_predicts():
    X, rng = _rows()
    net = oh.OneHiddenNet([[1.0, 0.5]], [2.0], [0.3], 0.5, "tanh")
    y = net.predict(X) + 0.05 * rng.standard_normal(80)
    problem = problem_of(checked_samples(X, y, None), Options(hidden=1, activation="tanh"))
    fitted = optimise(net, problem, Run()).network
    foreseen = y - without_each_row(fitted, problem, Run())
    plain = y - fitted.predict(X)
    for i in np.argsort(-np.abs(foreseen / plain))[:3]:  # rows that draw the fit most towards themselves
        rest = np.delete(np.arange(80), i)
        again = optimise(fitted, problem.take(rest), Run()).network
        left = y[i] - again.predict(X[i : i + 1])[0]
        # To first order: of the change that leaving the row out makes, a tenth may be missed.
        assert abs(foreseen[i] - left) < 0.1 * abs(left - plain[i]) + 1e-4
        assert abs(left) > abs(plain[i])
    hasty = y - without_each_row(fitted, problem, Run(max_seconds=0.0))
    # Every row with the mean leverage: what all rows together leave is nearly the same, and not the plain.
    assert abs(np.sum(hasty**2) / np.sum(foreseen**2) - 1) < 0.25 * (
        np.sum(foreseen**2) / np.sum(plain**2) - 1
    )


def test_measures_hold_the_fit_of_a_linear_function():
    X, rng = _rows()
    y = X @ [1.0, 2.0] + rng.standard_normal(80)
    v = rng.uniform(0.5, 2.0, 80)
    from sklearn.linear_model import LinearRegression

    found = measures(X, y, v)
    model = LinearRegression().fit(X, y, v)
    assert found["linear_r_squared"] == pytest.approx(model.score(X, y, v), rel=1e-10)
    np.testing.assert_allclose(found["input_mean"], np.average(X, axis=0, weights=v))


@pytest.fixture(scope="module")
def linear():
    """A linear table, on which a unit has nothing to add."""
    X, rng = _rows()
    y = X @ [1.0, -2.0] + rng.standard_normal(80)
    return X, y, oh.recover(X, y, 1, start="random")


def test_on_a_linear_table_predictions_are_ridge_regression(linear):
    X, y, r = linear
    assert not r.converged
    assert r.prediction.share < 0.2
    line, outside = ridge_line(X, y)
    np.testing.assert_allclose(r.predict(X), line(X), atol=0.2 * np.std(y - line(X)))
    assert r.held_out_linear_r_squared == pytest.approx(1 - np.mean(outside**2) / np.var(y))
    assert r.linear_r_squared > r.held_out_linear_r_squared
    assert "ridge regression" in r.prediction.message


def test_what_is_told_of_rows_left_out_is_what_new_rows_show():
    """One ReLU for two: more than a line, less than the truth, and no search may flatter it."""
    X, rng = _rows(seed=1)
    fresh = rng.standard_normal((20_000, 2))
    y, of_fresh = (np.abs(Z[:, 0]) + 0.6 * Z[:, 0] + 0.3 * rng.standard_normal(len(Z)) for Z in (X, fresh))
    r = oh.recover(X, y, 1, start="random")
    assert not r.converged
    assert r.prediction.share > 0.9
    missed = (of_fresh - r.predict(fresh)) ** 2
    shown = 1 - missed.mean() / np.var(of_fresh)
    # The share was chosen on 80 rows: their mean of squares has this error.
    error = missed.std() / np.sqrt(80) / np.var(y)
    assert abs(r.held_out_r_squared - shown) < 2 * error
    line, _ = ridge_line(X, y)
    assert shown > 1 - np.mean((of_fresh - line(fresh)) ** 2) / np.var(of_fresh) + 2 * error


def test_predictions_survive_saving(linear, tmp_path):
    X, _, r = linear
    r.save(tmp_path)
    again = oh.load_recovery(tmp_path)
    np.testing.assert_array_equal(again.predict(X), r.predict(X))
    assert again.held_out_r_squared == r.held_out_r_squared
    np.testing.assert_array_equal(again.input_spread, r.input_spread)


def test_a_network_that_reproduces_the_rows_predicts_as_it_stands():
    X, _ = _rows()
    truth = oh.OneHiddenNet([[1.0, 0.4]], [2.0], [0.1], 0.5)
    r = oh.recover(X, truth.predict(X), 1, start="random")
    assert r.status == "exact"
    assert r.prediction.alone
    far = 100 * X
    np.testing.assert_array_equal(r.predict(far), r.network.predict(far))
    assert r.held_out_r_squared == pytest.approx(1.0)
    assert r.held_out_linear_r_squared < 0.99


def test_the_estimator_predicts_so_too_and_says_it(linear):
    X, y, _ = linear
    padded = np.insert(X, 1, 7.0, axis=1)
    model = oh.OneHiddenRegressor(n_hidden=1, start="random")
    with pytest.warns(ConvergenceWarning, match="ridge regression"):
        model.fit(padded, y)
    np.testing.assert_array_equal(model.predict(padded), model.recovery_.predict(padded))
    line, _ = ridge_line(X, y)
    np.testing.assert_allclose(model.predict(padded), line(X), atol=0.2 * np.std(y - line(X)))


def beside_a_line(seed=0, n=600):
    X = np.random.default_rng([41, seed]).standard_normal((n, 3))
    truth = oh.OneHiddenNet([[0.5, -0.5, 0.7], [0.0, 0.9, 0.4]], [2.0, -1.6], [0.2, -0.3], 0.1)
    noise = np.random.default_rng([42, seed]).standard_normal(n)
    return X, X @ [0.5, 0.0, -1.0] + truth.predict(X) + 0.3 * noise, truth


def test_mean_slopes_do_not_change_with_the_orientation_of_units():
    X, y, truth = beside_a_line()
    r = oh.recover(X, y, 2, linear=True, start="random")
    expected = [0.5, 0.0, -1.0] + truth.weights.T @ truth.output / 2
    mean = r.mean_slopes
    assert np.all(np.abs(mean.estimate - expected) < 4 * mean.error)
    assert np.all(mean.error < 0.1)
    # Errors against those of a fit without orientations: y on |units|, the inputs and a constant.
    net = r.network
    t = X @ net.weights.T + net.bias
    sides = np.sign(t) * net.output / 2
    columns = [np.abs(t), *(sides[:, [i]] * np.column_stack([X, np.ones(len(X))]) for i in range(2))]
    J = np.column_stack([X, np.ones(len(X)), *columns])
    errors = np.sqrt(r.noise_variance * np.diag(np.linalg.pinv(J.T @ J)))[:3]
    assert np.allclose(mean.error, errors, rtol=0.25)
    assert oh.recover(X, y, 2, start="random").mean_slopes is None
    text = r.summary()
    assert f"mean slope {r.feature_names[0]}" in text
    assert {"linear x0", "mean slope x0"} <= set(r.to_frame()["parameter"])


def test_errors_of_a_linear_part_cover_a_unit_that_noise_may_reverse():
    X, _, _ = beside_a_line()
    side = facing(np.eye(3))
    a = np.array([side[1], -side[0], 0.0]) / np.hypot(side[0], side[1])  # on the border of the convention
    y = X @ [0.5, 0.0, -1.0] + 2 * np.maximum(X @ a, 0) + 0.3 * np.random.default_rng(43).standard_normal(600)
    r = oh.recover(X, y, 1, linear=True, start="random")
    check = next(check for check in r.checks if check.name == "orientation beside a linear part")
    assert not check.passed
    assert r.converged
    assert r.standard_errors.linear[0] > 1.5 * abs(a[0]) > 5 * r.mean_slopes.error[0]
    low, high = r.predict_interval(X[:5])
    assert np.all(high - low < 0.5)


def test_bands_of_an_open_width_cover_a_unit_that_is_too_weak_to_be_seen():
    rng = np.random.default_rng(51)
    X, fresh = rng.standard_normal((300, 3)), rng.standard_normal((200, 3))
    truth = oh.OneHiddenNet([[0.6, 0.0, 0.8], [0.0, 0.9, -0.4]], [2.0, 0.12], [0.1, -0.2])
    y = truth.predict(X) + 0.6 * rng.standard_normal(300)
    r = oh.recover(X, y)
    assert r.converged
    assert r.network.n_hidden == 1
    low, high = r.predict_interval(fresh)
    held = (low <= truth.predict(fresh)) & (truth.predict(fresh) <= high)
    narrow = replace(r, options={**r.options, "hidden": 1}).predict_interval(fresh)
    assert np.mean(held) > 0.9
    assert np.mean(high - low) > 1.3 * np.mean(narrow[1] - narrow[0])
    assert f"{r.undetected:.2g}" in r.assumptions[0]


def test_a_derived_quantity_has_the_error_of_the_delta_method():
    """The middle of a sigmoid curve, -b/a: by hand, and in repeated samples."""
    rng = stream(0, "derived quantities")
    net = oh.OneHiddenNet([[2.0]], [3.0], [-1.0], 0.5, "tanh")

    def middle(one):
        return -one.bias[0] / one.weights[0, 0]

    held, found = 0, []
    for seed in range(30):
        X = rng.standard_normal((120, 1))
        y = net.predict(X) + 0.3 * rng.standard_normal(120)
        r = oh.recover(X, y, 1, activation="tanh", start="random", seed=seed)
        one = r.derive(middle)
        held += one.lower <= 0.5 <= one.upper
        found.append((float(one.estimate), float(one.error)))
    a, b = r.network.weights[0, 0], r.network.bias[0]
    C = r.covariance[np.ix_([0, 2], [0, 2])]
    by_hand = np.sqrt(np.array([b / a**2, -1 / a]) @ C @ np.array([b / a**2, -1 / a]))
    assert found[-1][1] == pytest.approx(by_hand, rel=1e-4)
    estimates, errors = np.array(found).T
    assert np.std(estimates) == pytest.approx(np.mean(errors), rel=0.45)
    assert held >= 24
    several = r.derive(lambda one: one.predict([[0.0], [1.0]]))
    lower, upper = r.predict_interval([[0.0], [1.0]])
    assert np.allclose([several.lower, several.upper], [lower, upper], rtol=1e-4)


@pytest.mark.parametrize("name", ["gaussian", "weights", "poisson", "gamma", "bernoulli", "softmax"])
def test_the_log_likelihood_is_that_of_the_density(name):
    X, rng = _rows(90)
    mean = np.exp(np.tanh(X[:, 0]))
    weight = rng.integers(1, 4, 90) * 1.0
    y = {
        "poisson": rng.poisson(mean),
        "gamma": rng.gamma(4, mean / 4),
        "bernoulli": (mean > rng.gamma(1, 1, 90)) * 1,
    }
    y["softmax"] = np.where(rng.random(90) < 0.3, "c", np.where(y["bernoulli"] == 1, "b", "a"))
    y = y.get(name, mean + rng.standard_normal(90) / np.sqrt(weight if name == "weights" else 1))
    options = {} if name in ("gaussian", "weights") else {"family": name}
    options |= {"sample_weight": weight} if name == "weights" else {}
    r = oh.recover(X, y, 1, activation="tanh", start="random", max_seconds=5, **options)
    mu = r.network.predict(X) if r.family is None else r.family.mean(r.network.predict(X))
    v = weight / weight.mean() if name == "weights" else np.ones(90)
    if name in ("gaussian", "weights"):
        variance = np.mean(v * (y - mu) ** 2)
        expected = -45 * (np.log(2 * np.pi * variance) + 1) + 0.5 * np.sum(np.log(v))
    elif name == "poisson":
        expected = np.sum(y * np.log(mu) - mu - gammaln(y + 1))
    elif name == "gamma":
        a = 1 / r.noise_variance
        expected = np.sum(a * np.log(a * y / mu) - a * y / mu - np.log(y) - gammaln(a))
    else:
        every = np.column_stack([1 - mu.reshape(90, -1).sum(axis=1), mu])
        expected = np.sum(np.log(every[np.arange(90), np.unique(y, return_inverse=True)[1]]))
    assert r.log_likelihood == pytest.approx(expected, rel=1e-9)
    assert r.covariance_type in ("robust (HC3)", "classical")
    criterion = 2 * (r.freedom - expected)
    assert f"AIC {criterion:.6g}".replace("-", "−") in r.summary()
