"""The tensor start: orders, errors, laws of input, bad arguments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import problem_of
from plain_scores import GaussianMixture, LogisticProduct

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import InputModel
from onehidden_papers.problems.problem import conditioned_teacher
from onehidden_papers.starts.magnitudes import fit_units, refined_copies
from onehidden_papers.starts.tensor import tensor_start

NAMES = (
    "relu", "leaky_relu", "squared_relu", "cubed_relu", "tanh", "sigmoid", "erf", "softplus", "gelu", "abs",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_start_is_near_the_truth_for_every_activation(name):
    random = np.random.default_rng(11)
    teacher = conditioned_teacher(10, 3, 2.0, name, random, signed=True)
    X = random.standard_normal((20_000, 10))
    start = tensor_start(X, teacher.predict(X), 3, activation=name)
    found = match(start, teacher)
    assert found.max_error < 0.25
    assert found.output_error < 0.5
    # what must fail: rows that are random, and outputs with the wrong sign
    other = conditioned_teacher(10, 3, 2.0, name, random, signed=True)
    assert match(other, teacher).max_error > 0.5
    residual = np.mean((start.predict(X) - teacher.predict(X)) ** 2)
    assert residual < 0.1 * np.var(teacher.predict(X))


@pytest.mark.parametrize(
    "law", [LogisticProduct(6), GaussianMixture(np.array([0.9, -0.6, 0.3, 0.0, 0.2, 0.1]))]
)
def test_start_follows_the_score_of_the_input_law(law):
    random = np.random.default_rng(13)
    teacher = conditioned_teacher(6, 3, 2.0, "squared_relu", random, signed=True)
    X = law.sample(8000, random)
    start = tensor_start(X, teacher.predict(X), 3, activation="squared_relu", score=law)
    assert match(start, teacher).max_error < 0.15


def test_same_seed_same_start_and_copies_differ():
    random = np.random.default_rng(14)
    teacher = conditioned_teacher(6, 2, 2.0, "relu", random, signed=False)
    X = random.standard_normal((1000, 6))
    y = teacher.predict(X)
    assert tensor_start(X, y, 2, seed=3) == tensor_start(X, y, 2, seed=3)
    # Noise alone: descents from different copies end in different networks.
    problem = problem_of(X[:60], random.standard_normal(60), teacher.activation, 2, True)
    problem = replace(problem, input_model=InputModel("gaussian", 0))
    found = refined_copies(problem, teacher.weights, np.zeros(2), 2, Run(0), "tensor")
    first, second, third = (one.network for one in found)
    for one, other in ((first, second), (second, third)):
        assert match(one, other).max_error > 0.1


def test_biases_and_lengths_are_fitted_where_they_matter():
    random = np.random.default_rng(15)
    teacher = OneHiddenNet(
        [[1.5, 0, 0], [0, 0.8, 0.3]], [1.0, -1.2], bias=[0.4, -0.6], intercept=0.7, activation="tanh"
    )
    X = random.standard_normal((4000, 3))
    rows = teacher.weights / np.linalg.norm(teacher.weights, axis=1, keepdims=True)
    found = match(fit_units(X, teacher.predict(X), rows, teacher.activation, bias=True), teacher)
    # Within half a step of the grid: lengths lie a factor of 1.42 apart, biases 0.5.
    assert found.max_error < 0.2
    assert found.bias_error < 0.25
    assert found.output_error < 0.2
    without = fit_units(X, teacher.predict(X), rows, teacher.activation, bias=False)
    assert match(without, teacher).bias_error > 0.3


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"activation": "quadratic"}, "no usable order"),
        ({"hidden": 7}, "rank of T_2"),
        ({"rows": 13}, "fewer than the"),
        ({"noise_only": True}, "no usable order"),
        ({"nan": True}, "finite"),
    ],
)
def test_bad_input_names_the_quantity(change, named):
    random = np.random.default_rng(17)
    teacher = conditioned_teacher(6, 2, 2.0, "squared_relu", random, signed=False)
    X = random.standard_normal((20_000, 6))[: change.get("rows", 20_000)]
    y = random.standard_normal(len(X)) if change.get("noise_only") else teacher.predict(X)
    if change.get("nan"):
        X[0, 0] = np.nan
    with pytest.raises(ValueError, match=named):
        tensor_start(X, y, change.get("hidden", 2), activation=change.get("activation", "squared_relu"))
