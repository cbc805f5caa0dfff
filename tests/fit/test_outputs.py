"""Several outputs and families in the fit: every formula against another way to it."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import simulated

from onehidden import OneHiddenNet, activations, families
from onehidden.certify.errors import covariance_in_x, standard_errors
from onehidden.fit.least_squares import FisherScoring, InMemoryLeastSquares
from onehidden.fit.normal_equations import by_pairs, normal_equations
from onehidden.fit.parametrisation import Parametrisation, residuals, residuals_and_jacobian, roots
from onehidden.fit.problem import Problem, linear_network
from onehidden.fit.samples import Samples
from onehidden.machine import double
from onehidden.run import stream

EPS = np.finfo(float).eps


def parts(form: Parametrisation, n: int = 60, seed: int = 0):
    rng = stream(seed, "test", "outputs")
    theta = rng.standard_normal(form.size)
    return theta, rng.standard_normal((n, form.d)), rng.standard_normal((n, *form.tail)), rng


def form_of(q, k=3, d=4, bias=True, skip=True, intercept=True) -> Parametrisation:
    return Parametrisation(activations.get("tanh"), d, k, bias, intercept, skip, outputs=q)


@pytest.mark.parametrize(("q", "kind"), [(None, "rows"), (3, "rows"), (3, "each"), (3, "matrices")])
def test_the_jacobian_is_the_derivative_of_the_residuals_whatever_the_weights(q, kind):
    form = form_of(q)
    theta, X, y, rng = parts(form)
    weight = np.exp(rng.standard_normal(60 if kind == "rows" else (60, form.q)))
    if kind == "matrices":
        B = rng.standard_normal((60, 3, 3))
        weight = B @ B.mT + np.eye(3)
    with double():
        root, at = jnp.asarray(roots(weight, 60)), jnp.asarray(theta)
        r, J = residuals_and_jacobian(form, at, X, y, root)
        wanted = jax.jacfwd(lambda t: residuals(form, t, X, y, root))(at)
    np.testing.assert_allclose(J, wanted, atol=1e3 * EPS)
    assert r.shape == (60 * form.q,)
    if kind == "matrices":  # |L' r|^2 is r' W r
        plain = InMemoryLeastSquares(form, X, y).residuals(theta).reshape(60, 3)
        np.testing.assert_allclose(
            np.sum(np.square(r)), np.einsum("na,nab,nb->", plain, weight, plain), rtol=1e-12
        )


@pytest.mark.parametrize(("bias", "skip"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("q", [None, 3])
def test_tables_of_pairs_give_the_normal_equations_of_all_outputs(q, bias, skip):
    form = form_of(q, k=25, d=20, bias=bias, skip=skip, intercept=not skip)
    theta, X, y, rng = parts(form, 200)
    weight = np.exp(rng.standard_normal(200))
    assert by_pairs(form)
    found = normal_equations(form, theta, X, y, weight)
    written = normal_equations(form, theta, X, y, weight, pairs=False)
    for ours, wanted in zip(found, written, strict=True):
        np.testing.assert_allclose(ours, wanted, atol=1e4 * EPS * np.max(np.abs(wanted)))


@pytest.mark.parametrize("name", ["poisson", "bernoulli", "gamma", "negative_binomial", "softmax"])
def test_scoring_has_the_gradient_of_the_deviance_and_the_expected_curvature(name):
    q = 2 if name == "softmax" else None
    family = families.get(name, **({"classes": 3} if q else {"alpha": 0.4} if "neg" in name else {}))
    form = form_of(q)
    theta, X, _, rng = parts(form, 80)
    theta = 0.5 * theta
    eta = InMemoryLeastSquares(form, X, np.zeros((80, *form.tail))).residuals(theta).reshape(80, *form.tail)
    y = simulated(family, eta, rng, 0.3 if name == "gamma" else 1.0)
    weight = 1.0 + rng.integers(3, size=80)
    fit = FisherScoring(form, X, y, family, weight, 0.1 * np.ones_like(y))
    hessian, gradient, loss = fit.normal_equations(theta)
    step, numeric = 1e-6, np.zeros(form.size)
    for j in range(form.size):
        move = step * np.eye(form.size)[j]
        numeric[j] = (fit.loss(theta + move) - fit.loss(theta - move)) / (2 * step)
    np.testing.assert_allclose(2 * gradient, numeric, atol=1e-7 * max(abs(loss), np.max(np.abs(numeric))))
    # The information: the same sum written out with the family's own blocks.
    plain = InMemoryLeastSquares(form, X, np.zeros((80, *form.tail))).jacobian(theta, slice(0, 80))
    J = plain.reshape(80, form.q, form.size)
    omega = family.information(eta + 0.1)
    omega = omega if omega.ndim == 3 else omega.reshape(80, 1, 1)
    wanted = np.einsum("n,nap,nab,nbr->pr", weight, J, omega, J)
    np.testing.assert_allclose(hessian, wanted, atol=1e-10 * np.max(np.abs(wanted)))


def test_trials_are_rows_put_together():
    form = form_of(None)
    theta, X, _, rng = parts(form, 50)
    trials = rng.integers(1, 6, 50)
    won = rng.binomial(trials, 0.4)
    ones = np.concatenate([np.r_[np.ones(w), np.zeros(t - w)] for w, t in zip(won, trials, strict=True)])
    together = FisherScoring(form, X, won / trials, families.get("binomial"), trials.astype(float))
    apart = FisherScoring(form, np.repeat(X, trials, axis=0), ones, families.get("bernoulli"))
    for ours, wanted in zip(
        together.normal_equations(theta)[:2], apart.normal_equations(theta)[:2], strict=True
    ):
        np.testing.assert_allclose(ours, wanted, atol=1e-10 * np.max(np.abs(wanted)))
    # Deviances differ by what a saturated model of single trials explains, whatever the network.
    gap = apart.loss(theta) - together.loss(theta)
    assert gap == pytest.approx(apart.loss(0.5 * theta) - together.loss(0.5 * theta), rel=1e-10)
    assert gap > 1


def posed(net: OneHiddenNet, X, y, family=None, skip=False) -> Problem:
    samples = Samples(X, y)
    outputs = None if y.ndim == 1 else y.shape[1]
    around = samples.coordinates(True)
    if family is not None:
        around = replace(
            around, level=np.zeros(y.shape[1:])[()], scale=1.0 if outputs is None else np.eye(outputs)
        )
    form = Parametrisation(net.activation, around.rank, net.n_hidden, True, True, skip, outputs=outputs)
    return Problem(samples, form, around, family=family)


def network(q: int | None = None, seed: int = 0) -> OneHiddenNet:
    rng = stream(seed, "test", "outputs", "network")
    tail = () if q is None else (q,)
    return OneHiddenNet(
        rng.standard_normal((2, 3)), rng.standard_normal((2, *tail)), rng.standard_normal(2),
        rng.standard_normal(tail), "tanh", rng.standard_normal((3, *tail)),
    )  # fmt: skip


@pytest.mark.parametrize("q", [None, 2])
def test_a_network_there_is_the_same_network_here(q):
    net, rng = network(q), stream(1, "test", "outputs")
    X = rng.standard_normal((50, 3)) @ rng.standard_normal((3, 3)) + 5
    problem = posed(net, X, net.predict(X), skip=True)
    if q is not None:  # outputs mixed by any root of a covariance
        problem = replace(problem, whitening=replace(problem.whitening, scale=rng.standard_normal((q, q))))
    there = problem.fit_coordinates.inward(net)
    np.testing.assert_allclose(
        there.predict(problem.fit_coordinates.inputs(X)),
        problem.fit_coordinates.target(net.predict(X)),
        atol=1e-10,
    )
    back = problem.network(problem.theta(net))
    np.testing.assert_allclose(back.predict(X), net.predict(X), atol=1e-9)
    assert np.abs(back.linear - net.linear).max() < 1e-9


@pytest.mark.parametrize("q", [None, 2])
def test_errors_of_all_parameters_are_the_diagonal_of_their_covariance_in_x(q):
    net, rng = network(q), stream(2, "test", "outputs")
    X = rng.standard_normal((200, 3)) + 2
    problem = posed(
        net, X, net.predict(X) + 0.1 * rng.standard_normal((200, *((q,) if q else ()))), skip=True
    )
    if q is not None:
        problem = replace(problem, whitening=replace(problem.whitening, scale=rng.standard_normal((q, q))))
    hessian = problem.least_squares.normal_equations(problem.theta(net))[0]
    covariance = np.linalg.inv(hessian)
    told = standard_errors(
        covariance, np.zeros(problem.form.size, bool), problem.form, problem.fit_coordinates
    )
    whole = np.sqrt(np.diag(covariance_in_x(covariance, problem.form, problem.fit_coordinates)))
    flat = problem.form.pack(told.weights, told.output, told.bias, told.linear, told.intercept)
    np.testing.assert_allclose(flat, whole, rtol=1e-8)
    # Independent: the covariance of a network fitted in x itself, without any change of coordinates.
    scale = (
        problem.fit_coordinates.scale
        if q is None
        else problem.fit_coordinates.scale.T @ problem.fit_coordinates.scale
    )
    weight = np.full(200, scale**-2) if q is None else np.repeat(np.linalg.inv(scale)[None], 200, axis=0)
    theta = problem.form.pack(net.weights, net.output, net.bias, net.linear, net.intercept)
    information = normal_equations(problem.form, theta, X, net.predict(X), weight, pairs=False)[0]
    np.testing.assert_allclose(flat, np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-6)


@pytest.mark.parametrize("name", ["poisson", "bernoulli", "gamma", "softmax"])
def test_the_linear_function_of_a_family_has_no_score_left(name):
    rng = stream(3, "test", "outputs", name)
    q = 2 if name == "softmax" else None
    family = families.get(name, **({"classes": 3} if q else {}))
    X = rng.standard_normal((400, 3)) + 1
    eta = X @ (0.4 * rng.standard_normal((3, *((q,) if q else ())))) + 0.1
    y = simulated(family, eta, rng, 0.3 if name == "gamma" else 1.0)
    problem = posed(network(q), X, y, family)
    line = linear_network(problem)
    score = family.gradient(y, line.predict(X)).reshape(400, -1)
    design = np.column_stack([np.ones(400), X])
    assert np.max(np.abs(design.T @ score)) < 0.2  # of about 20 at the constant: a hundredth of an error
    assert np.sum(problem.row_losses(line)) < np.sum(
        family.deviance(y, np.broadcast_to(family.start(y), y.shape))
    )


def test_noise_between_outputs_is_learnt_and_made_one():
    rng = stream(4, "test", "outputs")
    net = network(2)
    X = rng.standard_normal((4000, 3))
    mixing = np.array([[0.3, 0.0], [0.2, 0.05]])
    y = net.predict(X) + rng.standard_normal((4000, 2)) @ mixing.T
    known = posed(net, X, y, skip=True).with_noise_of(net)
    residual = known.fit_coordinates.divided(net.predict(X) - y)
    covariance = residual.T @ residual / len(X)
    np.testing.assert_allclose(covariance / covariance[0, 0], np.eye(2), atol=0.08)  # 4 standard errors
    raw = np.cov((net.predict(X) - y).T)
    assert abs(raw[0, 1]) / np.sqrt(raw[0, 0] * raw[1, 1]) > 0.9
