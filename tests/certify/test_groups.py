"""Covariance by groups against brute force with matrices of all rows, and against draws."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.special import stdtrit

from onehidden.activations import get
from onehidden.certify.groups import (
    GroupedCovariance,
    correlation_by_chance,
    independent_rows,
    residual_correlation,
)
from onehidden.certify.local_fit import local_fit
from onehidden.certify.random_features import FitAndFeatures, Projected, random_features, sign_moments
from onehidden.fit.parametrisation import Parametrisation, written_out
from onehidden.fit.problem import Problem, optimise
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.run import Run, stream


def linear_case(rng, sizes, p=4):
    groups = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    J = np.column_stack([np.ones(len(groups)), rng.standard_normal((len(groups), p - 1))])
    J[:, 1] += rng.standard_normal(len(sizes))[groups]
    return groups, J


def grouped(J, r, groups):
    parts = [groups == g for g in range(groups.max() + 1)]
    squares = np.array([J[at].T @ J[at] for at in parts])
    scores = np.array([J[at].T @ r[at] for at in parts])
    return GroupedCovariance(squares, scores, np.linalg.inv(J.T @ J))


def test_the_covariance_is_that_of_whole_matrices():
    rng = stream(3, "groups")
    groups, J = linear_case(rng, [3, 9, 5, 7, 12, 4])
    r = rng.standard_normal(len(J))
    C = np.linalg.inv(J.T @ J)
    hat = J @ C @ J.T
    middle = np.zeros((4, 4))
    for g in range(6):
        at = groups == g
        adjusted = np.linalg.inv(sqrtm(np.eye(at.sum()) - hat[np.ix_(at, at)]).real) @ r[at]
        middle += np.outer(J[at].T @ adjusted, J[at].T @ adjusted)
    assert grouped(J, r, groups).covariance == pytest.approx(C @ middle @ C, rel=1e-8)


def test_the_freedom_is_that_of_the_quadratic_form_of_independent_rows():
    """2 E² / var of c'Vc, the moments of a chi-square law, from the matrix of the quadratic form."""
    rng = stream(4, "groups")
    groups, J = linear_case(rng, [3, 9, 5, 7, 12, 4])
    C, n = np.linalg.inv(J.T @ J), len(J)
    hat = J @ C @ J.T
    for c in np.eye(4):
        form = np.zeros((n, n))
        for g in range(6):
            at = groups == g
            A = np.linalg.inv(sqrtm(np.eye(at.sum()) - hat[np.ix_(at, at)]).real)
            v = (np.eye(n) - hat)[:, at] @ A @ J[at] @ C @ c
            form += np.outer(v, v)
        expected = np.trace(form) ** 2 / np.trace(form @ form)
        found = grouped(J, np.zeros(n), groups).freedom.of(c[None])[0]
        assert found == pytest.approx(expected, rel=1e-6)
        assert found < 5.5


def test_intervals_hold_where_rows_of_ten_groups_share_an_effect():
    """The slope of a column that hardly varies within a group: 95 % of the intervals hold it, CR0 fewer."""
    rng, runs, held, plain = stream(5, "groups"), 800, 0, 0
    for _ in range(runs):
        groups, J = linear_case(rng, [12] * 10, p=3)
        J[:, 1] = rng.standard_normal(10)[groups] + 0.2 * rng.standard_normal(len(J))
        y = rng.standard_normal(10)[groups] + rng.standard_normal(len(J))
        C = np.linalg.inv(J.T @ J)
        b = C @ J.T @ y
        found = grouped(J, y - J @ b, groups)
        c = np.array([[0.0, 1.0, 0.0]])
        error = np.sqrt(found.covariance[1, 1])
        held += abs(b[1]) <= stdtrit(found.freedom.of(c)[0], 0.975) * error
        meat = sum(np.outer(s, s) for s in found.scores)
        plain += abs(b[1]) <= 1.96 * np.sqrt((C @ meat @ C)[1, 1])
    assert 0.93 < held / runs < 0.985
    assert plain / runs < 0.91


def test_the_covariance_of_a_fit_is_that_of_its_rows_in_any_order():
    rng = stream(6, "groups")
    form = Parametrisation(get("relu"), 3, 2, True, True, False)
    Z, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    theta, groups = rng.standard_normal(form.size), rng.permutation(np.arange(50) % 7)
    samples = Samples(Z, y, groups=groups)
    problem = Problem(samples, form, samples.coordinates(True))
    Z, y = problem.fit_coordinates.inputs(Z), problem.fit_coordinates.target(y)
    r, J = written_out(form, theta, Z, y, np.ones(50))
    expected = grouped(J, r, groups)
    found = GroupedCovariance.of(problem, theta, expected.inverse)
    assert found.squares == pytest.approx(expected.squares, abs=1e-12)
    assert found.scores == pytest.approx(expected.scores, abs=1e-12)


def test_the_correlation_within_groups_is_found():
    rng = stream(7, "groups")
    groups = np.repeat(np.arange(400), 8)
    residual = np.sqrt(0.3) * rng.standard_normal(400)[groups] + np.sqrt(0.7) * rng.standard_normal(3200)
    correlation, rows = residual_correlation(residual[:, None], groups)
    assert correlation == pytest.approx(0.3, abs=0.05)
    assert rows == pytest.approx(8)
    # A mean of equal groups has variance (1 + 7 rho) / n.
    assert independent_rows(3200, 0.3, rows) == pytest.approx(3200 / 3.1)


def test_signs_by_group_are_those_of_whole_matrices():
    """V_g' (I - H_g)^(-1/2) r_g with H_g written out."""
    rng = stream(8, "groups")
    form = Parametrisation(get("tanh"), 2, 1, True, True, False)
    Z, y, groups = rng.standard_normal((40, 2)), rng.standard_normal(40), rng.permutation(np.arange(40) % 5)
    theta = rng.standard_normal(form.size)
    family = random_features(get("tanh"), np.zeros(2), 4, 0)[:1]
    fit = FitAndFeatures(form, theta, family)
    r, J = written_out(form, theta, Z, y, np.ones(40))
    C = np.linalg.inv(J.T @ J)
    F = family[0](Z)
    root = np.linalg.cholesky(C)
    projected = [Projected.of(family[0].kind, root, J.T @ r, F.T @ F, J.T @ F, F.T @ r)]
    V = projected[0].columns(F, J)
    assert np.abs(J.T @ V).max() < 1e-8
    rows = np.zeros((5, 4))
    for g in range(5):
        at = groups == g
        H = J[at] @ C @ J[at].T
        rows[g] = V[at].T @ np.linalg.inv(sqrtm(np.eye(at.sum()) - H).real) @ r[at]
    shifts = grouped(J, r, groups).shifts
    known = fit, root, projected, 5
    assert sign_moments(*known, shifts, Z, y, None, groups)[0] == pytest.approx(rows, rel=1e-6)
    assert sign_moments(*known, 0 * shifts, Z, y, None, groups)[0] != pytest.approx(rows, rel=1e-2)
    # A group of one row is a row by itself.
    every, alone = np.arange(40), grouped(J, r, np.arange(40)).shifts
    one = sign_moments(fit, root, projected, 40, alone, Z, y, None, every)[0]
    assert one == pytest.approx(sign_moments(fit, root, projected, 40, None, Z, y, None, every)[0], rel=1e-6)


def test_what_a_dead_unit_leaves_does_not_move_the_errors_of_the_others():
    """A column of 1e-60 makes an entry of 1e120 in the inverse."""
    rng = stream(11, "groups")
    groups, J = linear_case(rng, [3, 9, 5, 7, 12, 4])
    r = rng.standard_normal(len(J))
    whole, size = grouped(J, r, groups), np.array([1.0, 1.0, 1.0, 1e-60])
    dead = grouped(J * size, r, groups)
    scaled = GroupedCovariance(dead.squares, dead.scores, whole.inverse / size / size[:, None])
    assert np.diag(scaled.covariance)[:3] == pytest.approx(np.diag(whole.covariance)[:3], rel=1e-8)
    assert scaled.shifts * size == pytest.approx(whole.shifts, rel=1e-8)


def test_independent_noise_is_seldom_said_to_be_shared():
    rng, groups = stream(9, "groups"), np.repeat(np.arange(20), 6)
    bound = correlation_by_chance(120, 20, 6.0, 0.05)
    found = [residual_correlation(rng.standard_normal((120, 1)), groups)[0] > bound for _ in range(2000)]
    assert 0.035 < np.mean(found) < 0.065


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_kinks_that_are_estimated_add_to_errors_by_group(activation):
    rng = stream(10, "groups")
    groups, X = np.repeat(np.arange(20), 6), rng.standard_normal((120, 2))
    truth = OneHiddenNet([[1.0, 0.5]], [2.0], [0.2], 0.1, activation)
    y = truth.predict(X) + 0.3 * rng.standard_normal(20)[groups] + 0.3 * rng.standard_normal(120)
    samples = Samples(X, y, groups=groups)
    problem = Problem(samples, Parametrisation(truth.activation, 2, 1, True), samples.coordinates(True))
    local = local_fit(optimise(truth, problem, Run(0)).network, problem)
    more = np.diag(local.covariance(False, by_group=True)) / np.diag(local.grouped.covariance)
    if activation == "relu":
        assert np.all(more[[0, 1]] > 1.02)
    assert np.all(more >= 1 - 1e-12)
    assert np.max(more) < 3
