"""Localised moments: one tensor for each component and order, all with the units' directions."""

import numpy as np
import pytest
from helpers import EXACT
from scipy.integrate import quad
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

import onehidden as oh
from onehidden.starts import Refused
from onehidden_papers.laws import Gaussian, GaussianMixture, standard_normal
from onehidden_papers.moments import score_moments
from onehidden_papers.starts.input_law import as_mixture, fit_mixture, mapped
from onehidden_papers.starts.landscape import landscape_start
from onehidden_papers.starts.localised import component_moments, localised_start


def two_clusters(d):
    """½N(1, I) + ½N(-1, I)."""
    return GaussianMixture([0.5, 0.5], [np.ones(d), -np.ones(d)], np.eye(d))


def skew_mixture():
    roots = np.random.default_rng(3).standard_normal((2, 3, 3)) / 2 + np.eye(3)
    covs = roots @ roots.transpose(0, 2, 1)
    return GaussianMixture([0.35, 0.65], [[1.0, -0.5, 0.3], [-0.8, 0.6, 0.0]], covs)


def rotation(d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def cosines(found, truth):
    """|cos| of every unit with its match."""
    C = np.abs(found @ (truth / np.linalg.norm(truth, axis=1, keepdims=True)).T)
    return C[linear_sum_assignment(-C)]


def relu_kappas(t, s):
    """E[g^(m)(s z + t s)] for m = 2, 3, 4: the Dirac mass and its derivatives, t standardised."""
    density = norm.pdf(t)
    return {2: density / s, 3: -t * density / s**2, 4: (t**2 - 1) * density / s**3}


def tanh_kappas(t, s):
    """The same for tanh, whose derivatives are polynomials of T = tanh: T' = 1 - T²."""
    T = np.polynomial.Polynomial([0, 1])
    g, out = T, {}
    for m in range(1, 5):
        g = g.deriv() * (1 - T**2)
        if m > 1:
            out[m] = np.array(
                [
                    quad(lambda z, a=a, b=b, f=g: f(np.tanh(b * (a + z))) * norm.pdf(z), -9, 9)[0]
                    for a, b in zip(t, s, strict=True)
                ]
            )
    return out


def closed_form(net, component, kappas):
    """Σ_i w_i κ_{m,c,i} a_i^(⊗m)."""
    s = np.sqrt(np.einsum("ki,ij,kj->k", net.weights, component.cov, net.weights))
    kappa = kappas((net.weights @ component.mean + net.bias) / s, s)
    letters = "abcd"
    return {
        m: np.einsum(",".join(["k", *("k" + c for c in letters[:m])]) + "->" + letters[:m],
                     net.output * kappa[m], *[net.weights] * m)
        for m in (2, 3, 4)
    }  # fmt: skip


@pytest.mark.parametrize(("name", "kappas"), [("relu", relu_kappas), ("tanh", tanh_kappas)])
def test_component_moments_match_the_closed_form_within_standard_errors(name, kappas):
    law, rng = skew_mixture(), np.random.default_rng(5)
    net = oh.OneHiddenNet(rng.standard_normal((2, 3)), [1.0, -0.7], [0.3, -0.4], 0.5, name)
    X = law.sample(200_000, 1)
    moments = component_moments(X, net.predict(X), law, (2, 3, 4))
    expected = [closed_form(net, component, kappas) for component in law.components]
    for c, found in moments.items():
        for m in (2, 3, 4):
            z = (found[m] - expected[c][m]) / found.standard_error(m)
            # 15 distinct entries at most, correlated and with heavy tails: 5 standard errors
            assert np.max(np.abs(z)) < 5
            if found.signal(m) > 40:  # what must not pass: nothing, and the other component's tensor
                assert np.max(np.abs(expected[c][m] / found.standard_error(m))) > 5
                assert np.max(np.abs((found[m] - expected[1 - c][m]) / found.standard_error(m))) > 5
    assert sum(one.signal(m) > 40 for one in moments.values() for m in (2, 3, 4)) >= 3


def test_components_average_to_the_moment_of_the_whole_law():
    """Without control variates the sum over components is an identity of the sample."""
    law = skew_mixture()
    X = law.sample(2000, 0)
    y = np.sin(X @ [1.0, 2.0, -1.0])
    whole = score_moments(X, y, law, orders=(3,), control_degree=-1)[3]
    share = law.posterior(X)
    parts = sum(
        np.einsum("n,nabc->abc", y * share[:, c], component.score(X, 3)) / len(X)
        for c, component in enumerate(law.components)
    )
    np.testing.assert_allclose(parts, whole, atol=1e-10 * np.abs(whole).max())


def test_weights_count_rows():
    law, d = two_clusters(4), 4
    X = law.sample(3000, 2)
    y = oh.OneHiddenNet(np.eye(d), np.ones(d)).predict(X)
    weight = np.random.default_rng(0).integers(0, 4, 3000).astype(float)
    y[weight == 0] = 1e3  # rows that do not count may say anything
    start = localised_start(X, y, d, law=law, weight=weight)
    assert cosines(start.directions, np.eye(d)).min() > 0.95
    with pytest.raises(Refused, match="noise"):
        localised_start(X, y, d, law=law)


def test_components_without_rows_are_left_out():
    law = GaussianMixture([0.5, 0.5], [np.ones(4), np.full(4, -6.0)], np.eye(4))
    X = law.sample(4000, 2)
    y = oh.OneHiddenNet(np.eye(4), np.ones(4)).predict(X)
    start = localised_start(X, y, 4, law=law, weight=(X.sum(axis=1) > -10).astype(float))
    assert {c for c, _ in start.signals} == {0}
    assert cosines(start.directions, np.eye(4)).min() > 0.9
    with pytest.raises(Refused, match="out of their noise"):
        localised_start(X[:20], y[:20], 4, law=law)


def test_components_show_what_the_whole_law_hides():
    """½N(1, I) + ½N(-1, I), A = I: order 3 cancels between the components and order 4 is zero."""
    d = 6
    law, net = two_clusters(d), oh.OneHiddenNet(np.eye(d), np.ones(d))
    X = law.sample(10_000, 3)
    y = net.predict(X)
    whole = score_moments(X, y, law, orders=(2, 3, 4))
    assert whole.signal(3) < 4
    assert whole.signal(4) < 4
    start = localised_start(X, y, d, law=law)
    assert min(start.signals[0, 3], start.signals[1, 3]) > 20
    assert cosines(start.directions, np.eye(d)).min() > 0.97
    ordinary = landscape_start(whole, d, starts=4)  # has order 4 alone to tell the units apart
    assert cosines(ordinary, np.eye(d)).min() < 0.9


@pytest.mark.parametrize(("scale", "n"), [((1, 1, 1, 1), 40_000), ((1.8, 1.0, 1.0, 0.6), 100_000)])
def test_rotated_and_skew_rows_are_found(scale, n):
    d = 4
    law, A = two_clusters(d), rotation(d, 2) * np.array(scale)  # skew: gathered around one axis
    X = law.sample(n, 4)
    start = localised_start(X, oh.OneHiddenNet(A, np.ones(d)).predict(X), d, law=law)
    assert cosines(start.directions, A).min() > 0.97
    assert cosines(start.directions, rotation(d, 9)).min() < 0.9


def test_few_units_in_many_inputs_are_found_in_their_span():
    d, k = 30, 3
    law, A = two_clusters(d), rotation(d, 1)[[0, 2, 3]]  # row 1 is cut by neither cluster: t = -2.5
    X = law.sample(12_000, 5)
    start = localised_start(X, oh.OneHiddenNet(A, [1.0, -1.0, 1.0]).predict(X), k, law=law)
    assert cosines(start.directions, A).min() > 0.97


def test_no_signal_is_refused():
    law = two_clusters(3)
    X = law.sample(500, 0)
    with pytest.raises(Refused, match="out of their noise"):
        localised_start(X, np.random.default_rng(0).standard_normal(500), 2, law=law)


def test_one_component_is_refused_in_one_sentence():
    X = standard_normal(4).sample(3000, 0)
    y = oh.OneHiddenNet(np.eye(4), np.ones(4)).predict(X)
    for law in (None, standard_normal(4), GaussianMixture([1.0], np.zeros((1, 4)), np.eye(4))):
        with pytest.raises(Refused, match="one Gaussian component") as caught:
            localised_start(X, y, 4, law=law)
        assert "\n" not in str(caught.value)
    for score in ("auto", "gaussian", standard_normal(4)):
        with pytest.raises(Refused, match="one Gaussian component"):
            oh.recover(X, y, 4, start="localised", score=score)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 5}, "outside 1"),
        ({"weight": -np.ones(50)}, "not negative"),
        ({"law": oh.laws.Logistic(4)}, "GaussianMixture"),
        ({"law": two_clusters(3)}, "of 4 inputs"),
        ({"y": np.full(50, np.nan)}, "NaN"),
        ({"y": np.ones(49)}, "shapes"),
    ],
)
def test_bad_arguments_are_refused(change, message):
    X = two_clusters(4).sample(50, 0)
    arguments = {"y": np.maximum(X, 0).sum(axis=1), "hidden": 2, "law": two_clusters(4), **change}
    with pytest.raises(ValueError, match=message):
        localised_start(X, **arguments)


def test_a_mixture_is_fitted_and_mapped():
    X, matrix = two_clusters(5).sample(6000, 1), np.random.default_rng(0).standard_normal((5, 5))
    law = fit_mixture(X, 0)
    assert len(law.weights) == 2
    there = mapped(law, matrix, X[0])
    volume = np.linalg.slogdet(matrix)[1]
    np.testing.assert_allclose(there.log_density((X - X[0]) @ matrix), law.log_density(X) - volume)
    assert as_mixture(Gaussian([1.0, 2.0])).weights == [1.0]
    assert as_mixture(oh.laws.Logistic(2)) is None


@pytest.mark.parametrize(
    "name",
    ["mixture-relu-kappa5", "mixture-relu-narrow", "mixture-relu-biased", "mixture-tanh-signs"],
)
def test_recover_from_the_localised_start_is_exact(name):
    problem = oh.problems.get(name)
    X, y, teacher = problem.sample(seed=0)
    biased = bool(np.any(teacher.bias))
    r = oh.recover(X, y, teacher.n_hidden, activation=teacher.activation.name, bias=biased, start="localised")
    m = oh.match(r.network, teacher)
    assert r.status == "exact"
    assert max(m.max_error, m.output_error, m.bias_error) < EXACT
    assert r.origin.startswith("localised; inputs: mixture")


def test_a_given_mixture_serves_in_its_own_coordinates():
    rng = np.random.default_rng(4)
    law = GaussianMixture([0.4, 0.6], rng.standard_normal((2, 4)) * 2 + 3, np.diag([1.0, 4.0, 9.0, 0.25]))
    net = oh.OneHiddenNet(rng.standard_normal((4, 4)), [1.0, -1.0, 1.0, 1.0], rng.standard_normal(4) - 3)
    X = law.sample(20_000, 0)
    r = oh.recover(X, net.predict(X), 4, bias=True, start="localised", score=law)
    assert r.status == "exact"
    assert oh.match(r.network, net).max_error < EXACT
    assert r.origin.startswith("localised; inputs: given")
