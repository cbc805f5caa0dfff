"""Tiled kernel sums against sums over all pairs, in one thread and in several."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden import machine
from onehidden_papers.scores.local_gaussian import gaussian_fit, local_moments, prepare

EPS = np.finfo(float).eps


def _sample(n, d):
    return np.random.default_rng(n + d).standard_normal((n, d))


def _by_pairs(X, Q, h):
    """Mass, mean minus query and covariance, differences taken before they are squared."""
    gaps = X[None] - Q[:, None]
    w = np.exp(-0.5 * np.sum(gaps**2, axis=2) / h[:, None] ** 2)
    mass = w.sum(axis=1)
    mean = np.einsum("qn,qni->qi", w, gaps) / mass[:, None]
    gaps -= mean[:, None]
    return mass, mean, np.einsum("qn,qni,qnj->qij", w, gaps, gaps, optimize=True) / mass[:, None, None]


def _off(found, exact):
    return max(
        float(np.max(np.abs(a - b) / (np.abs(b).max() + 1))) for a, b in zip(found, exact, strict=True)
    )


# One short tile; several of data and queries, the last ones full or short.
@pytest.mark.parametrize(("n", "d"), [(60, 1), (300, 3), (1024, 5), (1400, 8)])
def test_sums_equal_those_over_all_pairs(n, d):
    X, h = _sample(n, d), np.full(n, 0.6)
    exact = _by_pairs(X, X, h)
    # The exponent is a difference of terms of size |x|²/h², and so is the covariance.
    rounding = 10 * EPS * np.max(np.sum(X**2, axis=1)) / 0.6**2
    assert rounding < 1e-12
    assert _off(local_moments(prepare(X), X, h), exact) < rounding
    # One pair of rows missed must not pass.
    far = _by_pairs(X[1:], X, h)
    assert _off(far, exact) > 1e6 * rounding


def test_far_rows_of_the_sample_weigh_nothing_and_themselves_one():
    X = np.vstack([_sample(700, 2), [[300.0, 0.0], [0.0, -400.0]]])
    mass = local_moments(prepare(X), X, np.full(len(X), 0.5))[0]
    assert np.allclose(mass[-2:], 1.0, rtol=0, atol=4e5 * 10 * EPS / 0.5**2)
    assert np.allclose(mass[:-2], _by_pairs(X, X, np.full(len(X), 0.5))[0][:-2], rtol=1e-9)


def test_threads_do_not_change_a_digit(monkeypatch):
    X = _sample(4000, 2)
    h = np.full(len(X), 0.6)
    runs = []
    for count in (1, 2, 5):
        monkeypatch.setattr(machine, "granted", lambda count=count: count)
        runs.append((local_moments(prepare(X), X, h), local_moments(prepare(X), X[::-1], h)))
    for other in runs[1:]:
        for one, many in zip(runs[0], other, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))


@pytest.mark.parametrize("d", [1, 3, 8])
def test_a_fit_is_refused_exactly_where_a_direction_holds_no_information(d):
    """Queries beside 1, 2, … rows: the covariance has that rank less one, and eigenvalues say so."""
    X = _sample(40, d) + 100 * np.repeat(np.arange(5), 8)[:, None] * np.eye(d)[0]
    X = np.delete(X, [*range(1, 8), *range(10, 16)], axis=0)  # one row, two rows, then three times eight
    Q, h = X + 0.01, np.full(len(X), 2.0)
    fit = gaussian_fit(prepare(X), Q, h)
    _, mean, cov = local_moments(prepare(X), Q, h)
    values = np.linalg.eigvalsh(cov)
    ok = values[:, 0] > 1e-8 * np.maximum(h**2 * 1e-4, values.sum(axis=1))
    assert np.array_equal(fit.ok, ok)
    assert not ok[0]
    assert ok[1] == (d == 1)
    assert np.all(ok[-8:]) or d == 8
    inverse = np.linalg.inv(cov[ok])
    assert np.allclose(fit.derivatives[1][ok], np.eye(d) / 4 - inverse, rtol=1e-9, atol=1e-9)
    C = np.where(ok[:, None, None], cov, 4 * np.eye(d))  # the kernel's own where it is refused
    first = np.linalg.solve(C, mean[:, :, None])[:, :, 0]
    assert np.allclose(fit.derivatives[0], first, rtol=1e-9, atol=1e-9)
