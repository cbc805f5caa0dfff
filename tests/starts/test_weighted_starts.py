"""Starts honour weights: whole ones are repeated rows, and rows that hardly count do not mislead."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden.matching import match
from onehidden_papers.laws import Gaussian
from onehidden_papers.moments import score_moments
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.starts.input_law import span_of_units
from onehidden_papers.starts.landscape import landscape_start
from onehidden_papers.starts.magnitudes import fit_units
from onehidden_papers.starts.tensor import tensor_start


def noisy(name, n=1080, d=6, k=2, seed=0):
    """Noise, so that weights matter; few enough rows, even repeated, that a search looks at all of them."""
    random = np.random.default_rng(seed)
    teacher = conditioned_teacher(d, k, 2.0, name, random, signed=True)
    X = random.standard_normal((n, d))
    y = teacher.predict(X) + 0.3 * random.standard_normal(n)
    # The same pattern over and over: both halves of the rows hold the same weight, however it is written.
    return teacher, X, y, np.tile([1, 3, 2, 1, 1, 4], n // 6)


@pytest.mark.parametrize(("name", "bias"), [("relu", False), ("tanh", True), ("sigmoid", False)])
def test_units_fitted_to_whole_weights_are_those_of_repeated_rows(name, bias):
    teacher, X, y, w = noisy(name)
    XX, yy = np.repeat(X, w, axis=0), np.repeat(y, w)
    rows = teacher.weights / np.linalg.norm(teacher.weights, axis=1, keepdims=True)
    g = teacher.activation
    weighted = fit_units(X, y, rows, g, bias=bias, weight=w.astype(float))
    repeated = fit_units(XX, yy, rows, g, bias=bias)
    ignored = fit_units(X, y, rows, g, bias=bias)

    def gap(found):
        return np.abs(found.predict(X) - repeated.predict(X)).max()

    assert gap(weighted) < 1e-10
    assert gap(ignored) > 1e-3


@pytest.mark.parametrize("name", ["squared_relu", "relu"])
def test_tensor_start_of_whole_weights_is_that_of_repeated_rows(name):
    _, X, y, w = noisy(name)
    weighted = tensor_start(X, y, 2, activation=name, weight=w)
    repeated = tensor_start(np.repeat(X, w, axis=0), np.repeat(y, w), 2, activation=name)
    ignored = tensor_start(X, y, 2, activation=name)
    # Standard errors are not those of repeated rows, which would count one observation several times: the
    # tensors are weighed a little differently against each other.
    assert match(weighted, repeated).max_error < 0.05 * match(ignored, repeated).max_error


def test_rows_that_hardly_count_do_not_mislead_the_tensor_start():
    random = np.random.default_rng(5)
    teacher, other = (conditioned_teacher(6, 2, 2.0, "squared_relu", random, signed=True) for _ in range(2))
    X = random.standard_normal((60_000, 6))
    wrong = random.uniform(size=60_000) < 0.5
    y = np.where(wrong, 3 * other.predict(X), teacher.predict(X))
    weight = np.where(wrong, 1e-9, 1.0)
    asked = {"activation": "squared_relu"}
    assert match(tensor_start(X, y, 2, weight=weight, **asked), teacher).max_error < 0.05
    assert match(tensor_start(X, y, 2, **asked), teacher).max_error > 0.3


def test_rows_of_weight_zero_are_not_there():
    _, X, y, w = noisy("squared_relu")
    kept = w > 1
    full = tensor_start(X, y, 2, activation="squared_relu", weight=5.0 * kept)
    fewer = tensor_start(X[kept], y[kept], 2, activation="squared_relu")
    # Conjugate gradients stop at 1e-8.
    assert match(full, fewer).max_error < 1e-6
    everything = tensor_start(X, y, 2, activation="squared_relu")
    assert match(everything, fewer).max_error > 1e-3
    with pytest.raises(ValueError, match="fewer than the"):
        tensor_start(X, y, 2, activation="squared_relu", weight=np.arange(len(y)) < 12)
    with pytest.raises(ValueError, match="one number for each"):
        tensor_start(X, y, 2, activation="squared_relu", weight=[1.0])


def test_span_and_landscape_see_what_weighted_moments_say():
    random = np.random.default_rng(6)
    teacher, other = (conditioned_teacher(6, 2, 1.5, "relu", random, signed=False) for _ in range(2))
    X = random.standard_normal((60_000, 6))
    wrong = random.uniform(size=len(X)) < 0.5
    y = np.where(wrong, 3 * other.predict(X), teacher.predict(X))
    law, weight = Gaussian(np.zeros(6), np.eye(6)), np.where(wrong, 0.0, 1.0)
    true = np.linalg.qr(teacher.weights.T)[0]

    def outside(moments):
        """Sine of the largest angle between the span found and the true one."""
        basis = span_of_units(moments, 2)
        return 1.0 if basis is None else np.sqrt(1 - np.linalg.svd(true.T @ basis)[1].min() ** 2)

    weighted = score_moments(X, y, law, orders=(2, 4), weight=weight)
    assert outside(weighted) < 0.1
    assert outside(score_moments(X, y, law, orders=(2, 4))) > 0.5
    inside = score_moments(X, y, law, orders=(2, 4), subspace=true, weight=weight)
    found = landscape_start(inside, 2, starts=3) @ true.T
    rows = teacher.weights / np.linalg.norm(teacher.weights, axis=1, keepdims=True)
    assert match(found, rows).max_error < 0.1
