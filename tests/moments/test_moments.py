"""Score moments against brute force, closed forms and their own standard errors."""

import itertools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_scores import from_derivatives

from onehidden import activations, laws
from onehidden.machine import double, sent
from onehidden_papers.moments import score_moments
from onehidden_papers.moments.passes import ControlPass, MomentPass
from onehidden_papers.moments.products import multiplicities, places, product_sums, sorted_indices, unpack
from onehidden_papers.moments.rows import frame_of, rows_at_a_time


def hermite_tensor(x, order):
    """S_m of N(0, I) at one point by the sums over pairings of theory section 2."""
    d, eye = len(x), np.eye(len(x))
    out = np.zeros((d,) * order)
    for index in itertools.product(range(d), repeat=order):
        total = 0.0
        for pairing in _partial_pairings(list(range(order))):
            paired = {i for pair in pairing for i in pair}
            term = (-1.0) ** len(pairing)
            for a, b in pairing:
                term *= eye[index[a], index[b]]
            for a in range(order):
                if a not in paired:
                    term *= x[index[a]]
            total += term
        out[index] = total
    return out


def _partial_pairings(items):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    yield from _partial_pairings(rest)
    for i, other in enumerate(rest):
        for tail in _partial_pairings(rest[:i] + rest[i + 1 :]):
            yield [(first, other), *tail]


def sample(n, d, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_moments_match_brute_force_hermite_tensors(order):
    X, y = sample(7, 4, 0)
    brute = np.mean([t * hermite_tensor(x, order) for x, t in zip(X, y, strict=True)], axis=0)
    moments = score_moments(X, y, laws.Gaussian(np.zeros(4), np.eye(4)), orders=(order,), control_degree=-1)
    np.testing.assert_allclose(moments[order], brute, atol=1e-12)
    assert np.linalg.norm(brute) > 0.1  # the zero tensor fails


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_standard_errors_match_the_spread_of_the_summands(order):
    X, y = sample(50, 3, 1)
    terms = np.array([t * hermite_tensor(x, order) for x, t in zip(X, y, strict=True)])
    moments = score_moments(X, y, laws.Gaussian(np.zeros(3), np.eye(3)), orders=(order,), control_degree=-1)
    np.testing.assert_allclose(moments.standard_error(order), terms.std(axis=0) / np.sqrt(50), rtol=1e-9)


@pytest.mark.parametrize("place", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_blocked_sums_match_every_product_of_scores(order, place):
    """Eleven coordinates span two blocks; every sorted index against its product of 1-D scores."""
    r, rng = 11, np.random.default_rng(7)
    weight, scores = rng.standard_normal(300), tuple(rng.standard_normal((r, 300)) for _ in range(4))
    halves = [slice(0, 120), slice(120, None)]
    with double():
        one, other = (
            product_sums(order, place(weight[h]), tuple(place(s[:, h]) for s in scores)) for h in halves
        )
        found = np.asarray(one + other)
    expected = []
    for index in sorted_indices(r, order):
        coordinates, runs = np.unique(index, return_counts=True)
        factors = [scores[run - 1][i] for i, run in zip(coordinates, runs, strict=True)]
        expected.append(np.sum(weight * np.prod(factors, axis=0)))
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert np.abs(expected).min() > 1e-6  # the zero answer fails everywhere


def test_sums_on_a_device_travel_in_double_precision():
    X, y = sample(70, 4, 3)
    law = laws.standard_normal(4)
    host, device = (MomentPass(law, (3,), accelerator=size).update((X, y)) for size in (0, 8 << 30))
    assert isinstance(device._sums[0], jax.Array)
    arrived = pickle.loads(pickle.dumps(device))
    np.testing.assert_allclose(arrived.result()[3], host.result()[3], rtol=1e-12)
    twice = arrived.merge(host)
    np.testing.assert_allclose(twice.result()[3], host.result()[3], rtol=1e-12)
    with pytest.raises(ValueError, match="same coordinates and orders"):
        host.merge(MomentPass(law, (2,)))


def test_many_rows_arrive_in_double_precision():
    rows = np.random.default_rng(8).standard_normal((9001, 60))
    with double():
        there = sent(rows)
        assert there.dtype == jnp.float64
    np.testing.assert_array_equal(there, rows)


def test_places_fold_a_symmetric_tensor_into_a_matrix():
    values = np.random.default_rng(9).standard_normal(len(sorted_indices(3, 4)))
    i, j = np.triu_indices(3)
    np.testing.assert_array_equal(values[places(3, 2, 2)], unpack(values, 3, 4)[i, j][:, i, j])
    np.testing.assert_array_equal(values[:10][places(3, 1, 2)], unpack(values[:10], 3, 3)[:, i, j])
    np.testing.assert_array_equal(places(3, 0, 2), [np.arange(6)])


def test_rows_on_an_accelerator_are_many_but_bounded():
    assert rows_at_a_time(50, 0) == 4096
    assert rows_at_a_time(50, 100 << 30) == 262_144
    assert 2 << 30 < 24 * rows_at_a_time(200, 40 << 30) * 200 * 201 // 2 <= 4 << 30


def test_moments_on_an_accelerator_are_those_on_the_host():
    """Where JAX has another device everything from the coordinates on is JAX arrays; here on the CPU."""
    X, y = sample(3000, 11, 5)
    law, y = laws.Gaussian(X.mean(axis=0), np.cov(X.T)), y + X[:, 0] ** 2
    host, device = (
        MomentPass(law, control=ControlPass(law, accelerator=size).update((X, y)).result(), accelerator=size)
        .update((X, y))
        .result()
        for size in (0, 8 << 30)
    )
    with double():
        assert isinstance(frame_of(law, None, 8 << 30).coordinates(X), jax.Array)
    for m in (1, 2, 3, 4):
        np.testing.assert_allclose(device[m], host[m], atol=1e-13 * np.abs(host[m]).max())
        np.testing.assert_allclose(device.standard_error(m), host.standard_error(m), rtol=1e-4)


def test_sorted_indices_and_multiplicities_count_the_full_tensor():
    for r, m in itertools.product((1, 3, 5), (1, 2, 3, 4)):
        assert sorted_indices(r, m).tolist() == [
            list(c) for c in itertools.combinations_with_replacement(range(r), m)
        ]
        assert multiplicities(r, m).sum() == r**m
    values = np.arange(len(sorted_indices(3, 3)), dtype=float)
    full = unpack(values, 3, 3)
    np.testing.assert_array_equal(full, full.transpose(2, 0, 1))


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu", "gelu"])
def test_moments_of_a_teacher_agree_with_their_closed_form(name):
    """T_m = sum_i w_i kappa_m a_i^m, within five standard errors, and zero does not pass."""
    g, rng, d, k = activations.get(name), np.random.default_rng(2), 4, 3
    A = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    w = np.array([1.0, -2.0, 1.5])
    X = rng.standard_normal((200_000, d))
    moments = score_moments(X, g(X @ A.T) @ w, laws.Gaussian(np.zeros(d), np.eye(d)))
    for m in (1, 2, 3, 4):
        kappa = g.hermite(m) * np.sqrt(np.prod(np.arange(1.0, m + 1)))
        rows = [A] * m
        letters = "abcd"[:m]
        truth = kappa * np.einsum("i," + ",".join("i" + c for c in letters) + "->" + letters, w, *rows)
        z = (moments[m] - truth) / moments.standard_error(m)
        assert np.abs(z).max() < 5.5
        if abs(kappa) > 1e-9:
            assert moments.signal(m) > 20
            assert np.abs(moments[m] / moments.standard_error(m)).max() > 20
        else:
            assert moments.signal(m) < 6


def test_moments_do_not_depend_on_batch_size_and_merge():
    X, y = sample(999, 5, 3)
    law = laws.Gaussian(np.zeros(5), np.eye(5))
    whole = MomentPass(law).update((X, y)).result()
    for batch in (1, 10, 998):
        parts = MomentPass(law)
        for at in range(0, 999, batch):
            parts.update((X[at : at + batch], y[at : at + batch]))
        for m in whole.orders:
            np.testing.assert_allclose(parts.result()[m], whole[m], rtol=0, atol=1e-12)
            errors = parts.result().standard_error(m)
            np.testing.assert_allclose(errors, whole.standard_error(m), rtol=1e-10)
    halves = [MomentPass(law, (2, 4)) for _ in range(2)]
    for half, rows in zip(halves, (slice(0, 400), slice(400, None)), strict=True):
        half.update((X[rows], y[rows]))
    merged = halves[0].merge(halves[1]).result()
    plain = score_moments(X, y, law, orders=(2, 4), control_degree=-1)
    np.testing.assert_allclose(merged[4], plain[4], atol=1e-12)


def test_control_variates_keep_the_mean_and_cut_the_variance():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((20_000, 6))
    y = np.maximum(X, 0).sum(axis=1) + 5.0
    law = laws.Gaussian(np.zeros(6), np.eye(6))
    raw, controlled = (score_moments(X, y, law, control_degree=c) for c in (-1, 2))
    for m in (3, 4):
        assert np.median(controlled.standard_error(m) / raw.standard_error(m)) < 0.1
        pooled = np.hypot(raw.standard_error(m), controlled.standard_error(m))
        assert np.abs((raw[m] - controlled[m]) / pooled).max() < 5


def test_affine_gaussian_and_subspace_transform_as_tensors():
    rng = np.random.default_rng(5)
    d, r = 4, 2
    root = rng.standard_normal((d, d))
    law = laws.Gaussian(rng.standard_normal(d), root @ root.T)
    X = law.sample(500, 0)
    y = rng.standard_normal(500)
    basis = rng.standard_normal((d, r))
    full, small = score_moments(X, y, law, control_degree=-1), None
    small = score_moments(X, y, law, control_degree=-1, subspace=basis)
    for m in (1, 2, 3, 4):
        expected = full[m]
        for _ in range(m):
            expected = np.tensordot(expected, basis, axes=(0, 0))
        np.testing.assert_allclose(small[m], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    inverse = np.linalg.inv(law.cov)
    white = (X - law.mean) @ inverse
    second = np.einsum("n,ni,nj->ij", y, white, white) / 500 - y.mean() * inverse
    np.testing.assert_allclose(full[2], second, rtol=1e-8, atol=1e-9 * np.abs(second).max())


class PlainGaussian:
    """N(0, I) of four inputs through the general interface."""

    n_inputs = 4

    def score(self, X, order, subspace=None):
        B = np.eye(4) if subspace is None else subspace
        r = B.shape[1]
        zeros = [np.zeros((len(X), *[r] * m)) for m in (3, 4)]
        return from_derivatives([-X @ B, -np.broadcast_to(B.T @ B, (len(X), r, r)), *zeros], order)


@pytest.mark.parametrize(
    "basis", [None, np.random.default_rng(6).standard_normal((4, 3))], ids=["all", "some"]
)
def test_a_score_that_is_asked_gives_the_moments_of_the_closed_form(basis):
    X, y = sample(300, 4, 6)
    y = y + X[:, 0] ** 2
    asked, closed = (
        score_moments(X, y, law, subspace=basis) for law in (PlainGaussian(), laws.standard_normal(4))
    )
    for m in (1, 2, 3, 4):
        np.testing.assert_allclose(asked[m], closed[m], atol=1e-10 * np.abs(closed[m]).max())
        assert not np.allclose(asked[m], score_moments(X, -y, PlainGaussian(), subspace=basis)[m], atol=1e-3)


@pytest.mark.parametrize(
    ("orders", "X", "message"),
    [((5,), np.ones((3, 2)), "orders"), ((), np.ones((3, 2)), "orders"), ((1,), np.ones(3), "expected X")],
)
def test_bad_requests_are_refused_with_a_sentence(orders, X, message):
    with pytest.raises(ValueError, match=message):
        score_moments(X, np.ones(3), laws.Gaussian(np.zeros(2), np.eye(2)), orders=orders)
