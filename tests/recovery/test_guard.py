"""Predictions beside a penalised linear model: of families, of several outputs, of separable classes."""

import numpy as np
import pytest
from helpers import simulated
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import onehidden as oh
from onehidden import families
from onehidden.families import Softmax
from onehidden.fit.problem import optimise
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.guard import LeftOut, without_each_row
from onehidden.recovery.line import penalised_line
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import read_target
from onehidden.run import Run, stream


def test_the_penalised_model_is_that_of_scikit_learn_and_its_strength_is_chosen_on_rows_left_out():
    rng = stream(1, "guard")
    X = rng.standard_normal((150, 4)) * [1.0, 3.0, 0.2, 1.0]
    y = rng.poisson(np.exp(0.5 * X[:, 0] - 0.2 * X[:, 1])).astype(float)
    fold = np.arange(150) % 5
    family = families.get("poisson")
    line, outside = penalised_line(X, y, None, np.zeros(150), family, fold)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    own = {}
    for strength in np.logspace(4, -3.5, 11):
        # The penalty of scikit-learn is alpha / 2 beside the mean of half the deviance.
        each = np.zeros(150)
        for held in range(5):
            model = PoissonRegressor(alpha=strength / np.sum(fold != held), tol=1e-10, max_iter=1000)
            model.fit(Z[fold != held], y[fold != held])
            each[fold == held] = np.log(model.predict(Z[fold == held]))
        own[strength] = family.deviance(y, each).sum(), each
    best = min(own, key=lambda strength: own[strength][0])
    np.testing.assert_allclose(outside, own[best][1], atol=1e-4)
    model = PoissonRegressor(alpha=best / 150, tol=1e-10, max_iter=1000).fit(Z, y)
    np.testing.assert_allclose(line(X), np.log(model.predict(Z)), atol=1e-4)


def test_classes_have_a_penalised_model_of_several_outputs():
    rng = stream(2, "guard")
    X = rng.standard_normal((300, 3))
    scores = np.column_stack([np.zeros(300), X @ [1.0, -1.0, 0.0], X @ [0.0, 1.0, 1.0]])
    code = np.argmax(scores + rng.gumbel(size=(300, 3)), axis=1)
    family = Softmax("softmax", 3)
    line, _ = penalised_line(X, family.target(code), None, np.zeros((300, 2)), family, np.arange(300) % 5)
    p = family.probabilities(line(X))
    model = LogisticRegression(C=1.0, max_iter=1000).fit(X, code)
    assert np.max(np.abs(p - model.predict_proba(X))) < 0.05
    assert np.mean(np.log(p[np.arange(300), code])) > -0.9 * np.log(3)


def test_the_penalised_model_of_classes_does_not_hang_on_their_order():
    rng = stream(7, "guard")
    X, code = rng.standard_normal((120, 3)), rng.integers(0, 3, 120)
    family, fold, found = Softmax("softmax", 3), np.arange(120) % 5, []
    for order in ([0, 1, 2], [2, 0, 1]):
        target = family.target(np.array(order)[code])
        line, _ = penalised_line(X, target, None, np.zeros((120, 2)), family, fold)
        found.append(family.probabilities(line(X))[:, order])
    np.testing.assert_allclose(found[0], found[1], atol=2e-3)


@pytest.mark.parametrize("size", [1, 5])  # rows of a group, which are left out together
@pytest.mark.parametrize("name", ["bernoulli", "poisson", "gaussian"])
@in_double
def test_leaving_a_row_out_is_foreseen_for_families(name, size):
    rng = stream(3, "guard")
    net = oh.OneHiddenNet([[1.0, 0.5]], [1.5], [0.3], 0.2, "tanh")
    X = rng.standard_normal((90, 2))
    family = families.get(name)
    y = simulated(family, net.predict(X), rng, 0.05 if name == "gaussian" else 1.0)
    options = Options(hidden=1, activation="tanh", family=name)
    groups = None if size == 1 else np.arange(90) // size
    target = read_target(X, y, None, name, None, None, None, groups)
    problem = problem_of(target.samples, options, target.family)
    fitted = optimise(net, problem, Run()).network
    foreseen = without_each_row(fitted, problem, Run())
    told, changes = foreseen - fitted.predict(X), []
    chosen = np.argsort(-np.abs(told))[3:14]
    for i in chosen:
        kept = np.flatnonzero(np.arange(90) // size != i // size)
        again = optimise(fitted, problem.take(kept), Run()).network
        changes.append(again.predict(X[i : i + 1])[0] - fitted.predict(X[i : i + 1])[0])
    assert np.corrcoef(told[chosen], changes)[0, 1] > 0.9
    assert 0.5 < np.linalg.norm(told[chosen]) / np.linalg.norm(changes) < 2


@pytest.mark.parametrize("name", ["gaussian", "poisson", "gamma", "bernoulli", "softmax"])
def test_a_row_more_whose_y_says_nothing_costs_what_all_pairs_of_x_and_y_do(name):
    """Up to a number that does not depend on the predictions."""
    rng = stream(8, "guard")
    X, eta = rng.standard_normal((40, 2)), rng.standard_normal((2, 40, 2))
    y = {"poisson": rng.poisson(3.0, 40), "gamma": rng.gamma(2.0, 1.0, 40)}.get(name, rng.standard_normal(40))
    if name in ("bernoulli", "softmax"):
        y = rng.integers(0, 2 + (name == "softmax"), 40).astype(float)
    eta = eta if name == "softmax" else eta[..., 0]
    target = read_target(X, y, None, None if name == "gaussian" else name)
    rows = LeftOut(problem_of(target.samples, Options(hidden=1, family=name), target.family), Run())
    own = rows.problem.samples.y
    more = [rows.expected_loss(one) - np.sum(rows.losses(one)) for one in eta]
    each = [np.mean([np.sum(rows.losses(one, np.roll(own, by, axis=0))) for by in range(40)]) for one in eta]
    assert (more[1] - more[0]) * 40 == pytest.approx(each[1] - each[0], rel=1e-9)
    assert np.ptp(each) > 1e-3


def test_rows_of_a_group_are_left_out_together():
    rng = stream(4, "guard")
    X, groups = rng.standard_normal((60, 2)), np.repeat(np.arange(12), 5)
    target = read_target(X, X[:, 0] + rng.standard_normal(60), None, None, None, None, None, groups)
    rows = LeftOut(problem_of(target.samples, Options(hidden=1)), Run())
    assert all(len(np.unique(rows.fold[groups == g])) == 1 for g in range(12))
    assert {tuple(sorted(np.unique(groups[out]))) for _, out in rows.parts()} == {
        tuple(sorted(np.unique(groups[rows.fold == fold]))) for fold in range(5)
    }


def test_separable_classes_keep_finite_odds_and_predict_no_worse_than_a_penalised_model():
    rng = stream(5, "guard")
    X = rng.standard_normal((240, 4))
    y = (X @ [2.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(240) > 0) * 1.0
    r = oh.recover(X[:120], y[:120], 2, family="bernoulli", max_seconds=20)
    family = families.get("bernoulli")
    held = family.deviance(y[120:], family.eta_of(np.clip(r.predict(X[120:]), 1e-12, 1 - 1e-12))).mean()
    line = family.deviance(y[120:], r.prediction.line(X[120:])).mean()
    raw = family.deviance(y[120:], r.network.predict(X[120:])).mean()
    assert held < line + 0.05
    assert held < raw
    assert r.held_out_r_squared >= r.held_out_linear_r_squared - 1e-12


def test_a_network_that_is_far_better_predicts_alone_though_rows_are_few():
    """A smooth curve of 37 rows that no line follows."""
    rng = stream(6, "guard")
    x = np.sort(rng.uniform(-3, 3, 37))[:, None]
    y = 1000 * np.tanh(1.5 * x[:, 0]) - 400 * np.tanh(x[:, 0] - 1) + 5 * rng.standard_normal(37)
    held = np.arange(37) % 5 == 1
    r = oh.recover(x[~held], y[~held], 2, activation="tanh", start="random", max_seconds=20)
    assert r.prediction.alone
    own, network = (
        np.sqrt(np.mean((y[held] - p) ** 2)) for p in (r.predict(x[held]), r.network.predict(x[held]))
    )
    assert own <= 1.02 * network
    assert own < 0.1 * np.std(y)


def test_errors_of_the_line_that_differ_from_row_to_row_do_not_hide_that_the_network_is_right():
    """A sum of exponentials, nearly without noise: most of what the line misses is in a few rows."""
    x = np.linspace(0, 1.15, 24)[:, None]
    y = 0.0951 * np.exp(-x[:, 0]) + 0.8607 * np.exp(-3 * x[:, 0]) + 1.5576 * np.exp(-5 * x[:, 0])
    held = np.arange(24) % 5 == 1
    r = oh.recover(x[~held], y[~held], 2, activation="tanh", start="random", max_seconds=20)
    assert r.prediction.alone
    assert np.max(np.abs(r.predict(x[held]) - y[held])) < 0.01 * np.std(y)


def test_several_outputs_predict_no_worse_than_ridge_regression(tmp_path):
    rng = stream(7, "guard")
    X = rng.standard_normal((80, 3))
    Y = X @ rng.standard_normal((3, 2)) + rng.standard_normal((80, 2))
    r = oh.recover(X, Y, 2, max_seconds=10)
    assert r.prediction.share < 0.3
    assert r.held_out_r_squared >= r.held_out_linear_r_squared - 1e-12
    r.save(tmp_path / "run")
    np.testing.assert_allclose(oh.load_recovery(tmp_path / "run").predict(X), r.predict(X), atol=1e-12)
