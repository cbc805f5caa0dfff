"""Certificates of points of a landscape, pictures of it, and descent that leaves saddles."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden.network import OneHiddenNet
from onehidden_papers.lab import landscape, slice_surface
from onehidden_papers.lab.descents import newton_descent
from onehidden_papers.objectives import GaussianDesigned, PairwiseQuartic, kappa

SPURIOUS = np.array([[1, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, np.sqrt(0.5), np.sqrt(0.5)]], float)


def appendix_f(delta=0.5):
    return OneHiddenNet(np.eye(4), [1, 2 + delta, 2 + delta, 2 + delta])


def theorem_weights(teacher):
    spread = teacher.output.max() / teacher.output.min()
    return 0.12 / spread, teacher.output.max() / 0.01


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
    found = newton_descent(G.function, teacher.weights[None], G.prepare(teacher))
    record = landscape(G, found[0], teacher, tau=G.tau(np.full(5, 0.399), 5))
    assert record.verdict == "approximate local minimum"
    assert record.gradient_norm < 1e-6
    assert record.lambda_min > 0
    away = landscape(G, 1.3 * found[0], teacher, tau=0.0)
    assert away.verdict == "neither"


def test_slice_through_both_permutations_has_its_minima_there():
    coordinates, values = slice_surface(
        GaussianDesigned(0.1, 1.0),
        OneHiddenNet(np.eye(2), [1.0, 1.0]),
        np.zeros((2, 2)),
        np.eye(2),
        np.eye(2)[::-1],
    )
    low = np.argwhere(values <= values.min() + 1e-9)
    near = {tuple(coordinates[place].round(1) + 0.0) for place in low}
    assert near == {(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)}


def test_slice_through_the_truth_rises_on_all_sides():
    teacher = OneHiddenNet(np.eye(3), np.ones(3))
    U, V = np.zeros((2, 3, 3))
    U[0, 0] = V[1, 1] = 1.0
    _, values = slice_surface(GaussianDesigned(0.1, 1.0), teacher, np.eye(3), U, V, radius=0.5, size=21)
    assert values.shape == (21, 21)
    middle = values[10, 10]
    assert middle < values[0, 10]
    assert middle < values[10, 0]
    with pytest.raises(ValueError, match="shape of params"):
        slice_surface(GaussianDesigned(0.1, 1.0), teacher, np.eye(3), U[0], V)
