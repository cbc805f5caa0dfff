"""Exact laws: agreement with automatic differentiation, contraction, Stein's identity, negative controls."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp
from plain_scores import LogisticProduct

from onehidden import laws
from onehidden.machine import double
from onehidden.refused import Refused
from onehidden_papers.laws.base import set_partitions
from onehidden_papers.scores import validity

D = 3
_rng = np.random.default_rng(7)
_B = _rng.standard_normal((D, D))
COV = _B @ _B.T + np.eye(D)
MEAN = np.array([0.3, -1.0, 0.5])
MEANS = np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
COVS = np.stack([COV, np.diag([0.5, 1.0, 2.0])])
MATRIX = np.array([[1.0, 0.4, 0.0], [-0.3, 0.8, 0.2], [0.5, 0.0, 1.5]])


def _gauss(x, mean, cov):
    r = x - mean
    return -0.5 * r @ (np.linalg.inv(cov) @ r) - 0.5 * np.linalg.slogdet(2 * np.pi * cov)[1]


def _banana(x):
    return -0.5 * (x[0] ** 2 + (x[1] - 0.5 * x[0] ** 2) ** 2 + x[2] ** 2)


SMOOTH = {
    "gaussian": (laws.Gaussian(MEAN, COV), lambda x: _gauss(x, MEAN, COV)),
    "mixture": (
        laws.GaussianMixture([0.3, 0.7], MEANS, COVS),
        lambda x: logsumexp(
            jnp.stack([jnp.log(w) + _gauss(x, m, c) for w, m, c in zip((0.3, 0.7), MEANS, COVS, strict=True)])
        ),
    ),
    "logistic": (laws.Logistic(D, 0.7), lambda x: jnp.sum(-x / 0.7 - 2 * jnp.log1p(jnp.exp(-x / 0.7)))),
    "sech": (laws.Sech(D), lambda x: -jnp.sum(jnp.log(jnp.cosh(jnp.pi / 2 * x)))),
    "student": (laws.StudentT(D, 5.0, 1.3), lambda x: -3.0 * jnp.sum(jnp.log1p((x / 1.3) ** 2 / 5.0))),
    "power 4": (laws.GeneralizedGaussian(D, 4.0), lambda x: -jnp.sum(x**4)),
    "affine logistic": (
        laws.Affine(laws.Logistic(D), MATRIX, MEAN),
        lambda x: -2 * jnp.sum(jnp.log(jnp.cosh((np.linalg.inv(MATRIX) @ (x - MEAN)) / 2))),
    ),
    "banana": (laws.FromLogDensity(_banana, D), _banana),
}
SAMPLED = [name for name in SMOOTH if name != "banana"]


def _points(law, n=20):
    return law.sample(n, 3) if not isinstance(law, laws.FromLogDensity) else _rng.standard_normal((n, D))


def _derivative(fn):
    """The derivative of the value of (value, lower ones), beside the value and the lower ones."""

    def kept(x):
        value, lower = fn(x)
        return value, (*lower, value)

    return jax.jacfwd(kept, has_aux=True)


@functools.cache
def _density_scores(name):
    """Points and (-1)^m ∇^m f / f there for m = 0 … 4, straight from f itself, scaled to be of order one."""
    law, log_density = SMOOTH[name]
    X = _points(law)

    def one(x):
        level = log_density(jax.lax.stop_gradient(x))
        fn = lambda y: (jnp.exp(log_density(y) - level), ())  # noqa: E731
        for _ in range(4):
            fn = _derivative(fn)
        value, lower = fn(x)
        return (*lower, value)

    # All orders are compiled at once, and in haste: it runs once.
    compiled = jax.jit(jax.vmap(one), compiler_options={"xla_backend_optimization_level": 0})
    with double():
        return X, [(-1) ** m * np.asarray(value) for m, value in enumerate(compiled(jnp.asarray(X)))]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SMOOTH)
def test_scores_match_automatic_differentiation_of_the_density(name, order):
    law, _ = SMOOTH[name]
    X, scores = _density_scores(name)
    expected = scores[order]
    scale = np.abs(expected).max()
    found = law.score(X, order)
    assert np.abs(found - expected).max() <= 1e-9 * scale
    assert np.abs(-found - expected).max() > 1e-3 * scale  # the sign convention is part of the promise


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SMOOTH)
def test_contraction_and_subspace_match_dense_tensor(name, order):
    law, _ = SMOOTH[name]
    X = _points(law, 12)
    dense = law.score(X, order)
    V = np.linalg.qr(_rng.standard_normal((D, D)))[0]
    expected = dense
    for _ in range(order):
        expected = np.tensordot(expected, V, axes=(1, 0))
    scale = np.abs(dense).max()
    assert np.abs(law.score(X, order, subspace=V) - expected).max() <= 1e-12 * scale
    mixed = [V[:, i % 2] for i in range(order)]
    entry = expected[(slice(None), *(i % 2 for i in range(order)))]
    assert np.abs(law.contract(X, *mixed) - entry).max() <= 1e-12 * scale
    same = expected[(slice(None), *([0] * order))]
    assert np.abs(law.contract(X, *([V[:, 0]] * order)) - same).max() <= 1e-12 * scale
    assert np.abs(entry + 1e-6 * scale - law.contract(X, *mixed)).max() > 1e-12 * scale


def test_fourth_contraction_follows_the_printed_polynomial():
    """S_4(u,u,v,v) written out from G_1 … G_4, an independent spelling of the partition sum."""
    law = laws.Affine(laws.Logistic(D), MATRIX)
    X = law.sample(50, 0)
    u, v = _rng.standard_normal((2, D))
    # x = M z: the derivatives of log f along u are those of z along M^-1 u
    back = np.linalg.inv(MATRIX)
    plain = LogisticProduct(D)
    plain.scale = 1.0
    g, G2, G3, G4 = plain.derivatives(X @ back.T, 4, back @ np.stack([u, v], 1))
    gu, gv = g.T
    uu, uv, vv = G2[:, 0, 0], G2[:, 0, 1], G2[:, 1, 1]
    value = gu**2 * gv**2 + gu**2 * vv + gv**2 * uu + 4 * gu * gv * uv + uu * vv + 2 * uv**2
    value += 2 * gu * G3[:, 0, 1, 1] + 2 * gv * G3[:, 0, 0, 1] + G4[:, 0, 0, 1, 1]
    found = law.contract(X, u, u, v, v)
    assert np.allclose(found, value, rtol=1e-12, atol=1e-12 * np.abs(value).max())
    unsymmetrised = value - 2 * uv**2 + 2 * uu * vv  # [GMOV] (7) as printed, without the symmetrisation
    assert not np.allclose(found, unsymmetrised, rtol=1e-6)


def test_gaussian_scores_are_hermite_tensors_at_any_order():
    x = np.linspace(-3, 3, 13)[:, None]
    law = laws.Gaussian([0.0])
    for m in range(1, 9):
        hermite = np.polynomial.hermite_e.hermeval(x[:, 0], [0] * m + [1])
        assert np.allclose(law.score(x, m).ravel(), hermite, rtol=1e-12, atol=1e-10)
    assert [len(set_partitions(m)) for m in range(1, 7)] == [1, 2, 5, 15, 52, 203]  # Bell numbers


def test_contraction_in_many_dimensions_needs_no_tensor():
    d = 300
    law = laws.Affine(laws.Logistic(d), np.linalg.qr(_rng.standard_normal((d, d)))[0])
    X = law.sample(50, 0)
    u = law.matrix[:, 0]  # along one independent coordinate the score is that of the line
    expected = laws.Logistic(1).score((X @ u)[:, None], 4).ravel()
    assert np.allclose(law.contract(X, u, u, u, u), expected, atol=1e-10)
    assert law.score(X, 4, subspace=law.matrix[:, :3]).shape == (50, 3, 3, 3, 3)
    with pytest.raises(ValueError, match="subspace"):
        law.score(X, 4)


@pytest.mark.parametrize("name", SAMPLED)
def test_density_integrates_and_moments_match_samples(name):
    law, log_density = SMOOTH[name]
    X = law.sample(40_000, 1)
    with double():
        other = np.asarray(jax.jit(jax.vmap(log_density))(jnp.asarray(X[:50])))
    shift = law.log_density(X[:50]) - other  # equal up to the constant that the formula leaves out
    assert np.ptp(shift) < 1e-9
    error = 5 * X.std(axis=0) / np.sqrt(len(X))
    assert np.all(np.abs(X.mean(axis=0) - law.mean) < error)
    assert not np.all(np.abs(X.mean(axis=0) + 1.0 - law.mean) < error)
    assert np.allclose(np.cov(X.T), law.cov, atol=0.12 * np.abs(law.cov).max())


@pytest.mark.parametrize("law", [laws.Logistic(1), laws.Sech(1), laws.StudentT(1, 5.0), laws.Laplace(1, 0.5)])
def test_line_densities_have_mass_one(law):
    x = np.linspace(-200, 200, 400_001)[:, None]
    mass = np.trapezoid(np.exp(law.log_density(x)), x[:, 0])
    assert abs(mass - 1) < 1e-5
    assert abs(2 * mass - 1) > 1e-5


def test_stein_identities_hold_for_exact_laws_and_fail_for_laplace():
    X = laws.Gaussian(MEAN, COV).sample(20_000, 0)
    assert all(c.passed for c in validity(laws.Gaussian(MEAN, COV), X))
    shifted = validity(laws.Gaussian(MEAN + 0.2, COV), X)
    assert not all(c.passed for c in shifted)
    Y = laws.Laplace(D).sample(20_000, 0)
    checks = {c.name: c for c in validity(laws.Laplace(D), Y)}
    assert checks["E[S_1] = 0"].passed
    assert checks["E[q S_1] = E[∇^1 q], q of degree 1"].passed
    for name in ("E[S_2] = 0", "E[S_4] = 0", "E[q S_4] = E[∇^4 q], q of degree 4"):
        assert not checks[name].passed
        assert "smooth" in checks[name].advice
    with pytest.raises(Refused, match="Laplace has no score of order 2"):
        laws.Laplace(D).score(Y[:5], 2)
    with pytest.raises(Refused, match="order 4"):
        laws.Laplace(D).contract(Y[:5], *np.eye(D)[[0, 0, 0, 0]])
    np.testing.assert_array_equal(laws.Laplace(D).score(Y[:5], 1), np.sign(Y[:5]))
    assert laws.Laplace(2).valid_order == 1
    assert laws.Uniform(2).valid_order == 0
    assert not validity(laws.Uniform(2), laws.Uniform(2).sample(5000, 0), orders=[1])[1].passed


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLED)
def test_stein_identities_at_a_million_samples(name):
    law, _ = SMOOTH[name]
    X = law.sample(1_000_000, 11)
    failed = [c for c in validity(law, X) if not c.passed]
    assert not failed, failed
    off = laws.Affine(law, 1.02 * np.eye(D))  # a score of the wrong scale must be caught
    assert not all(c.passed for c in validity(off, X, orders=[2, 4]))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: laws.Gaussian([0, 0], [[1, 0], [0, -1]]), "positive definite"),
        (lambda: laws.GaussianMixture([1, 0], np.zeros((2, 2)), np.eye(2)), "positive"),
        (lambda: laws.Affine(laws.Logistic(2), np.ones((2, 2))), "invertible"),
        (lambda: laws.StudentT(2, -1), "df"),
        (lambda: laws.Logistic(0), "positive integer"),
        (lambda: laws.FromLogDensity(lambda x: x, 2), "one number"),
        (lambda: laws.FromLogDensity(lambda x: np.asarray(x).sum(), 2), "jax.numpy"),
        (lambda: laws.Logistic(2).score(np.zeros((3, 3)), 1), "2 columns"),
        (lambda: laws.Logistic(2).score([[np.nan, 0]], 1), "finite"),
        (lambda: laws.Logistic(2).score(np.zeros((3, 2)), 0), "order"),
        (lambda: laws.Logistic(2).contract(np.zeros((3, 2)), [1, 0, 0]), "direction"),
    ],
)
def test_bad_arguments_get_one_sentence(build, sentence):
    with pytest.raises(ValueError, match=sentence):
        build()
