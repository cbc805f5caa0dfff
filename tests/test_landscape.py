"""Certificates, escapes from saddles, landscape starts and output layers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onehidden.certify.landscape import landscape
from onehidden.certify.surfaces import angle_surface, slice_surface
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.objectives import GaussianDesigned, HermiteLoss, NonOrthogonal, PairwiseQuartic, kappa
from onehidden.objectives.sources import RankOne
from onehidden.solvers.perturbed import perturbed_descent
from onehidden.solvers.saddle_free import saddle_free_newton
from onehidden.solvers.stochastic import adam, descend, sgd
from onehidden.starts.landscape import landscape_start
from onehidden.starts.output_layer import (
    general_outputs,
    least_squares_outputs,
    orthonormal_outputs,
    score_outputs,
)

SPURIOUS = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, np.sqrt(0.5), np.sqrt(0.5)]], float)


def appendix_f(delta=0.5):
    return OneHiddenNet(np.eye(4), [1, 2 + delta, 2 + delta, 2 + delta])


def theorem_weights(teacher):
    spread = teacher.output.max() / teacher.output.min()
    return 0.12 / spread, teacher.output.max() / 0.01


def exact_tensors(teacher):
    source = RankOne.of(teacher, (2, 4))
    U = np.asarray(source.directions)
    c2, c4 = (np.asarray(source.coefficients[m]) for m in (2, 4))
    return {2: np.einsum("i,ia,ib->ab", c2, U, U), 4: np.einsum("i,ia,ib,ic,id->abcd", c4, U, U, U, U)}


def skew(k, d, seed=0):
    rows = np.random.default_rng(seed).standard_normal((k, d)) / np.sqrt(d)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def test_spurious_point_is_a_minimum_of_p_prime_and_not_of_g():
    teacher = appendix_f()
    record = landscape(PairwiseQuartic(), SPURIOUS, teacher, tau=0.0, sphere=True)
    assert record.verdict == "approximate local minimum"
    assert record.value == pytest.approx(2.0, abs=1e-12)  # ordered pairs; the global minimum is 0
    assert landscape(PairwiseQuartic(), np.eye(4), teacher, tau=0.0, sphere=True).value < 1e-12

    G = GaussianDesigned(*theorem_weights(teacher))
    tau = G.tau(np.abs(kappa(teacher.activation, 4)) * teacher.output, 4)
    # G holds no minimum near it: the nearest stationary point of the same support has a way down.
    source = G.prepare(teacher)
    rows = SPURIOUS.copy()
    for _ in range(60):  # Newton on the norms alone keeps the support
        g = np.sum(G.gradient(rows, source) * rows, axis=1) / np.sum(rows**2, axis=1)
        rows *= (1 - 0.1 * g / (8 * G.lam) * 10)[:, None]
    record = landscape(G, rows, teacher, tau=tau)
    assert record.verdict != "approximate local minimum"
    assert record.lambda_min < -tau


def test_small_multiples_of_two_keep_the_point_a_minimum_and_equal_outputs_do_not():
    assert landscape(PairwiseQuartic(), SPURIOUS, appendix_f(0.01), tau=0, sphere=True).lambda_min > -1e-9
    even = OneHiddenNet(np.eye(4), np.ones(4))
    assert landscape(PairwiseQuartic(), SPURIOUS, even, tau=0, sphere=True).verdict == "saddle"


def test_truth_is_certified_a_minimum_of_g():
    teacher = OneHiddenNet(np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0], np.ones(5))
    G = GaussianDesigned(*theorem_weights(teacher))
    found = saddle_free_newton(G.function, teacher.weights[None], G.prepare(teacher))
    record = landscape(G, found.params[0], teacher, tau=G.tau(np.full(5, 0.399), 5))
    assert record.verdict == "approximate local minimum"
    assert all(check.passed for check in record.checks)
    away = landscape(G, 1.3 * found.params[0], teacher, tau=0.0)
    assert away.verdict == "neither"


def test_lanczos_matches_the_dense_spectrum():
    teacher = OneHiddenNet(skew(6, 6), np.linspace(1, 2, 6))
    G, B = GaussianDesigned(1.0, 3.0), skew(6, 6, 1)
    dense = landscape(G, B, teacher, tau=0.0)
    lanczos = landscape(G, B, teacher, tau=0.0, dense_limit=0)
    assert abs(dense.lambda_min - lanczos.lambda_min) < 1e-6 * dense.lambda_max
    assert abs(dense.lambda_max - lanczos.lambda_max) < 1e-5 * dense.lambda_max
    assert abs(np.sum(dense.direction * lanczos.direction)) > 0.999
    assert abs(dense.lambda_min) > 1e-3 * dense.lambda_max  # zero must fail


@pytest.mark.parametrize(
    ("kind", "k"), [("G", 5), pytest.param("F", 5, marks=pytest.mark.slow), ("F_delta", 3)]
)
def test_every_start_reaches_the_truth_at_the_weights_of_the_theorem(kind, k):
    d, rng = 5, np.random.default_rng(3)
    rows = np.linalg.qr(rng.standard_normal((d, d)))[0] if kind == "G" else skew(k, d)
    teacher = OneHiddenNet(rows, np.linspace(1, 3, k))
    mu, lam = theorem_weights(teacher)
    objective = (
        GaussianDesigned(mu, lam) if kind == "G" else NonOrthogonal(mu, 100.0, 0.0 if k == d else 1e-6)
    )
    starts = rng.standard_normal((8, k, d)) / np.sqrt(d)
    run = saddle_free_newton(objective.function, starts, objective.prepare(teacher), steps=600)
    for B, start in zip(run.params, starts, strict=True):
        found = B if kind == "G" else NonOrthogonal.rows(B)
        assert match(found, teacher.weights).honest_error < 1e-6
        assert match(start, teacher.weights).honest_error > 0.05  # a random point must fail


def saddle(x, data):
    return (x[0] ** 2 - 1) ** 2 / 4 + data * x[1] ** 2


def test_perturbed_descent_leaves_the_saddle_where_plain_descent_stays():
    start = np.array([[0.0, 1.0]])
    vg = jax.value_and_grad(saddle)
    out = perturbed_descent(vg, start, np.float64(0.5), rate=0.1, steps=2000)
    assert abs(abs(out.params[0, 0]) - 1) < 1e-4
    assert out.perturbations[0] >= 1
    plain = descend(vg, start, optimiser=sgd(0.1), steps=2000, data=np.float64(0.5))
    assert abs(plain.params[0, 0]) < 1e-12


def test_saddle_free_newton_leaves_an_exact_saddle():
    out = saddle_free_newton(saddle, np.zeros((1, 2)), np.float64(0.5))
    assert abs(abs(out.params[0, 0]) - 1) < 1e-9
    assert out.converged[0]
    assert out.lambda_min[0] > 0.5


def quadratic(x, data):
    return jnp.sum((x - data) ** 2)


def fresh_point(key):
    return 1 + 0.1 * jax.random.normal(key, (3,))


def test_descent_on_fresh_samples_is_seeded_and_runs_all_seeds():
    vg = jax.value_and_grad(quadratic)
    starts = np.zeros((4, 3))
    kwargs = {"optimiser": adam(0.05), "steps": 500, "sampler": fresh_point, "record_every": 50}
    a, b = (descend(vg, starts, seed=1, **kwargs) for _ in range(2))
    np.testing.assert_array_equal(a.params, b.params)
    assert a.values.shape == (4, 10)
    assert np.abs(a.params - 1).max() < 0.2
    assert not np.array_equal(a.params[0], a.params[1])
    assert not np.array_equal(a.params, descend(vg, starts, seed=2, **kwargs).params)
    with pytest.raises(ValueError, match="either data"):
        descend(vg, starts, optimiser=adam(0.05), steps=5)


def test_hermite_loss_with_projection_finds_the_rows():
    teacher = OneHiddenNet(np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0], np.ones(5))
    loss = HermiteLoss((2, 4))
    starts = np.stack([skew(5, 5, seed) for seed in range(4)])
    run = descend(
        loss.value_and_grad, starts, optimiser=adam(0.02), steps=3000, data=loss.prepare(teacher),
        project=loss.project,
    )  # fmt: skip
    errors = [match(B, teacher.weights).honest_error for B in run.params]
    assert np.sort(errors)[0] < 1e-4
    np.testing.assert_allclose(np.linalg.norm(run.params, axis=2), 1, atol=1e-12)


@pytest.mark.parametrize(("k", "r", "sign"), [pytest.param(5, 5, 1, marks=pytest.mark.slow), (3, 5, -1)])
def test_landscape_start_finds_skew_rows_from_exact_moments(k, r, sign):
    teacher = OneHiddenNet(skew(k, r, 2), sign * np.linspace(1, 3, k))
    out = landscape_start(exact_tensors(teacher), k, starts=4)
    assert match(out.directions, teacher.weights).max_error < 1e-6
    assert match(skew(k, r, 11), teacher.weights).max_error > 0.1
    assert out.agreement == 1.0


@pytest.mark.slow
def test_landscape_start_first_order_route_agrees():
    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((13, 13)))[0]
    teacher = OneHiddenNet(rows, np.ones(13))
    out = landscape_start(exact_tensors(teacher), 13, orthonormal=True, starts=2)
    assert match(out.directions, rows).honest_error < 1e-4


def test_landscape_start_refuses_what_it_cannot_do():
    teacher = OneHiddenNet(skew(3, 3), [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="indefinite"):
        landscape_start(exact_tensors(teacher), 3)
    with pytest.raises(ValueError, match="fewer than 3"):
        landscape_start(exact_tensors(OneHiddenNet(skew(2, 3), [1.0, 1.0])), 3)
    with pytest.raises(ValueError, match="between 1 and 3"):
        landscape_start(exact_tensors(teacher), 4)


class _Normal:
    def score(self, X, order):
        return X


def test_output_layer_algorithms_recover_outputs_and_orientations():
    rng = np.random.default_rng(0)
    n, d = 200_000, 4
    X = rng.standard_normal((n, d))
    turn = np.array([1, -1, 1, -1.0])
    w = np.array([1.0, 2.0, 1.5, 0.5])
    for rows, methods in (
        (np.linalg.qr(rng.standard_normal((d, d)))[0], [orthonormal_outputs, general_outputs]),
        (skew(4, 4), [general_outputs]),
    ):
        teacher = OneHiddenNet(rows, w)
        y = teacher.predict(X)
        error = 4 * 2 * np.sqrt(np.mean((y[:, None] * X) ** 2) * 4 / n) / np.linalg.svd(rows)[1].min()
        for method in methods:
            layer = method(rows * turn[:, None], X, y)
            np.testing.assert_allclose(layer.output, w, atol=error)
            np.testing.assert_allclose(layer.weights, rows, atol=1e-12)
        layer = score_outputs(rows * turn[:, None], X, y, _Normal())
        np.testing.assert_allclose(layer.output, w, atol=error)
        assert error < 0.45  # all outputs equal to their mean must fail
    with pytest.raises(ValueError, match="expected B"):
        general_outputs(rows, X[:, :3], y)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "softplus", "gelu", "tanh", "abs"])
def test_least_squares_outputs_are_exact_for_any_orientation_and_sign(activation):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 4)) + 0.3
    teacher = OneHiddenNet(skew(4, 4), [1.0, -2.0, 1.5, -0.5], activation=activation)
    y = teacher.predict(X)
    turned = teacher.weights * np.array([1, -1, -1, 1.0])[:, None]
    layer = least_squares_outputs(turned, X, y, activation)
    found = layer.network(activation)
    np.testing.assert_allclose(found.predict(X), y, atol=1e-9)
    assert np.abs(OneHiddenNet(turned, teacher.output, activation=activation).predict(X) - y).max() > (
        0.1 if activation != "abs" else -1
    )


def test_angle_surface_marks_the_two_true_minima():
    G = GaussianDesigned(0.1, 100.0)
    surface = angle_surface(G, OneHiddenNet(np.eye(2), [1.0, 1.0]), size=60)
    found = {tuple(np.round(point, 6)) for point in surface.minima}
    assert found == {(0.0, round(np.pi / 2, 6)), (round(np.pi / 2, 6), 0.0)}
    assert len(surface.saddles) > 0


def test_slice_through_a_saddle_shows_it():
    teacher = OneHiddenNet(np.eye(3), np.ones(3))
    U, V = np.zeros((2, 3, 3))
    U[0, 0] = V[1, 1] = 1.0
    surface = slice_surface(GaussianDesigned(0.1, 1.0), teacher, np.eye(3), U, V, radius=0.5, size=21)
    assert surface.values.shape == (21, 21)
    assert len(surface.minima) == 1
    with pytest.raises(ValueError, match="shape of params"):
        slice_surface(GaussianDesigned(0.1, 1.0), teacher, np.eye(3), U[0], V)
