"""The adequacy test: its law is that of random signs, its size and power are right, its sums are sums."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

from onehidden import activations
from onehidden.certify.local_fit import root_of_inverse
from onehidden.certify.random_features import (
    FeatureKind,
    FitAndFeatures,
    Projected,
    cross_moments,
    random_features,
    sign_moments,
)
from onehidden.certify.residuals import adequacy, by_signs, sign_cumulants, tail
from onehidden.fit.parametrisation import Parametrisation, residuals_and_jacobian
from onehidden.fit.problem import Problem
from onehidden.fit.samples import RowSum, Samples
from onehidden.machine import double
from onehidden.network import OneHiddenNet
from onehidden.run import Run, stream

D = 4


def fitted(n, seed, noise="equal", missed=lambda X: 0.0, scale=1.0):
    """Rows, target, form, parameters and J'J of one ReLU unit fitted by damped Gauss-Newton steps."""
    rng = stream(seed, "adequacy test", n)
    X = rng.standard_normal((n, D))
    a = np.ones(D) / 2
    spread = np.exp(0.8 * X[:, 0] - 0.64) if noise == "unequal" else 1.0
    y = 2 * np.maximum(X @ a, 0) + 0.5 + missed(X) + scale * spread * rng.standard_normal(n)
    form = Parametrisation(activations.get("relu"), D, 1)
    theta = form.pack(a[None], np.array([2.0]), intercept=0.5)
    with double():
        for _ in range(12):
            r, J = map(np.asarray, residuals_and_jacobian(form, theta, X, y, np.ones(n)))
            H = J.T @ J
            theta = theta - np.linalg.solve(H + 1e-6 * np.diag(np.diag(H)), J.T @ r)
        r, J = map(np.asarray, residuals_and_jacobian(form, theta, X, y, np.ones(n)))
    return X, y, form, theta, r, J


class InParts(Samples):
    """Rows that come in parts, out of order, and are merged."""

    def fold(self, make, coordinates, by_group=False):
        order = stream(0, "order").permutation(self.n)
        Z, y = coordinates.inputs(self.X), coordinates.target(self.y)
        parts = [make(), make(), make()]  # the last one sees no rows
        for i, part in enumerate(np.array_split(order, 5)):
            parts[i % 2].update(Z[part], y[part], self.weight[part], part)
        total = copy.deepcopy(pickle.loads(pickle.dumps(parts[2])))
        return total.merge(parts[1]).merge(parts[0])


def evaluated(X, y, form, theta, weight=None, rows=Samples, **more):
    samples = rows(X, y, weight)
    problem = Problem(samples, form, samples.coordinates(True))
    weights, output, bias, _, intercept = form.unpack(theta)
    network = OneHiddenNet(weights, output, bias, intercept, form.activation)
    return adequacy(problem, problem.theta(network), Run(), **more)


def test_cumulants_are_those_of_random_signs():
    rng = stream(0, "signs")
    n, M = 7, 3
    rows = rng.standard_normal((n, M)) * np.exp(rng.standard_normal(n))[:, None]
    signs = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1  # every one of them
    values = np.sum((signs @ rows) ** 2, axis=1)
    own = np.sum(rows**2, axis=1)
    sums = rows.T @ rows, (rows * own[:, None]).T @ rows, np.array([own.sum(), own @ own, own @ own**2])
    centred = values - values.mean()
    exact = values.mean(), np.mean(centred**2), np.mean(centred**3)
    rounding = 1e3 * np.finfo(float).eps
    np.testing.assert_allclose(sign_cumulants(*sums), exact, rtol=rounding)
    gaussian = 2 * np.trace(sums[0] @ sums[0])  # what normal draws in place of signs would have as variance
    assert abs(gaussian / exact[1] - 1) > 0.01


def test_few_signs_are_all_taken_and_more_are_drawn():
    """Under the law itself p-values of the smallest are uniform; independent p-values would be cautious."""
    rng = stream(1, "signs")
    rows = rng.standard_normal((8, 3))
    alike = [rows, rows + 0.1 * rng.standard_normal((8, 3))]
    signs = 1.0 - 2 * ((np.arange(128)[:, None] >> np.arange(8)) & 1)
    values = np.array([np.sum((signs @ one) ** 2, axis=1) for one in alike])
    found = np.array([by_signs(list(zip(t, alike, strict=True)), 1e-9) for t in values.T])
    for level in (0.1, 0.25, 0.5):
        assert level - 0.05 < np.mean(found <= level) <= level + 1e-9
    assert found.min() == 1 / 128  # not the tail beyond: 8 signs cannot show it
    many = rng.standard_normal((40, 3))
    t = np.quantile(np.sum((rng.choice([-1.0, 1.0], (4000, 40)) @ many) ** 2, axis=1), 0.9)
    assert by_signs([(float(t), many)], 1e-9) == pytest.approx(0.1, abs=0.02)
    assert by_signs([(float(t), many[::-1])], 1e-9) == by_signs([(float(t), many)], 1e-9)
    assert by_signs([(100 * float(t), many)], 1e-9) == 1e-9


def test_second_pass_matches_dense_projections():
    X, y, form, theta, r, J = fitted(60, 1)
    fit = FitAndFeatures(form, theta, random_features(form.activation, np.zeros(D), 6, 0))
    _, _, gradient, *first = cross_moments(fit, X, y, None, None)
    P = J @ np.linalg.pinv(J, rcond=1e-9)
    C = root_of_inverse(J.T @ J)
    np.testing.assert_allclose(np.sum((J @ C) ** 2, axis=1), np.diag(P), atol=1e-8)
    for i, family in enumerate(fit.families):
        F = family(X)
        one = Projected.of(family.kind, C, gradient, *first[3 * i : 3 * i + 3])
        left = (F - P @ F) / np.linalg.norm(F - P @ F, axis=0)
        ridge = left @ np.linalg.inv(left.T @ left + family.kind.ridge * np.eye(6)) @ left.T
        u = r / np.sqrt(1 - np.diag(P))
        alone = FitAndFeatures(form, theta, (family,))
        second, _, powers = sign_moments(alone, C, [one], 0, None, X, y, None, np.arange(len(y)))
        A = ridge * u * u[:, None]
        # The ridge on J'J leaves 1e-10 of each projection; P itself would be off by order one.
        np.testing.assert_allclose(np.trace(second @ second), np.trace(A @ A), rtol=1e-6)
        np.testing.assert_allclose(powers[1], np.sum(np.diag(A) ** 2), rtol=1e-6)
        np.testing.assert_allclose(one.statistic, r @ ridge @ r, rtol=1e-6)


def test_batches_order_and_parts_change_rounding_only():
    pieces = fitted(700, 2, missed=lambda X: 0.5 * X[:, 0] * X[:, 1])[:4]
    weight = stream(0, "weights").uniform(0.5, 1.5, 700)
    whole, parts = evaluated(*pieces, weight), evaluated(*pieces, weight, InParts)
    np.testing.assert_allclose(np.log(parts.p_value), np.log(whole.p_value), rtol=1e-6)
    np.testing.assert_allclose(parts.missed_share, whole.missed_share, rtol=1e-6)
    other = evaluated(*pieces, weight, seed=1)
    assert abs(np.log(other.p_value) / np.log(whole.p_value) - 1) > 1e-3  # other functions, another number


@pytest.mark.parametrize("noise", ["equal", "unequal"])
def test_size_is_right_under_equal_and_unequal_noise(noise):
    runs, level = 150, 0.05
    p = np.array([evaluated(*fitted(120, 100 + i, noise)[:4], seed=i).p_value for i in range(runs)])
    error = np.sqrt(level * (1 - level) / runs)
    # 3.5 standard errors; the F-test on such functions rejects a quarter of the samples of unequal noise
    assert abs(np.mean(p < level) - level) < 3.5 * error
    assert 0.25 > level + 3.2 * error
    assert 0.35 < np.mean(p) < 0.65  # a test that never rejects, or a constant 1, fails here


@pytest.mark.parametrize(
    ("missed", "kind"),
    [
        (lambda X: 0.5 * X[:, 0] * X[:, 1] * X[:, 2], FeatureKind.PRODUCTS),
        (lambda X: 0.5 * np.sin(3 * X[:, 0]), FeatureKind.WAVES),
        (lambda X: 0.3 * X[:, 0] ** 2, FeatureKind.UNITS),
    ],
)
@pytest.mark.parametrize("noise", ["equal", "unequal"])
def test_what_is_missed_is_seen_and_measured(missed, kind, noise):
    pieces = fitted(3000, 3, noise, missed)
    result = evaluated(*pieces[:4])
    assert result.evaluated
    assert result.p_value < 1e-4
    assert result.families[kind] < 1e-3
    X, y = pieces[:2]
    # What linear functions take of it is not missed; beyond that the share is right to some 30 %.
    basis = np.column_stack([np.ones(len(X)), X, np.maximum(X.sum(1) / 2, 0)])
    rest = missed(X) - basis @ np.linalg.lstsq(basis, missed(X), rcond=None)[0]
    assert 0.4 < result.missed_share / (np.var(rest) / np.var(y)) < 1.5


def test_nothing_missed_leaves_nothing_over():
    result = evaluated(*fitted(2000, 4)[:4])
    assert result.p_value > 0.05
    assert result.missed_share == 0.0


def test_too_few_rows_are_not_evaluated_and_not_passed():
    X, y, form, theta, _, _ = fitted(30, 5)
    few = int(form.freedom) + 4
    result = evaluated(X[:few], y[:few], form, theta)
    assert not result.evaluated
    assert np.isnan(result.p_value)
    assert result.reason
    assert evaluated(X[: few + 1], y[: few + 1], form, theta).evaluated
    assert evaluated(X, y, form, theta).evaluated


def test_units_of_measurement_of_y_do_not_matter():
    X, y, form, theta, _, _ = fitted(300, 6)
    weights, output, _, _, intercept = form.unpack(theta)
    by = 1e6
    scaled = form.pack(weights * np.sqrt(by), output * np.sqrt(by), intercept=intercept * by)
    np.testing.assert_allclose(
        evaluated(X, y * by, form, scaled).p_value, evaluated(X, y, form, theta).p_value, rtol=1e-6
    )


def test_tail_is_exact_for_gamma_laws_and_normal_without_skew():
    from scipy.stats import gamma, norm

    shape = 3.0
    for t in (1.0, 5.0, 20.0):
        np.testing.assert_allclose(tail(shape, shape, 2 * shape, t), gamma.sf(t, shape), rtol=1e-12)
    assert tail(shape, shape, 0.0, 20.0) < 1e-3 * gamma.sf(20.0, shape)  # a normal law is no stand-in
    np.testing.assert_allclose(tail(1.0, 4.0, 0.0, 5.0), norm.sf(2.0), rtol=1e-12)


def test_accumulators_travel():
    form = Parametrisation(activations.get("tanh"), D, 2)
    fit = FitAndFeatures(form, np.ones(form.size), random_features(form.activation, np.zeros(D), 5, 0))
    X = stream(0, "travel").standard_normal((50, D))
    made = pickle.loads(pickle.dumps(partial(RowSum, partial(cross_moments, fit))))()
    own = cross_moments(fit, X, X[:, 0], None, None)
    for mine, theirs in zip(own, made.update(X, X[:, 0]).result(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
