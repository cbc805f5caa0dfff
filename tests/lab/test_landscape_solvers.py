"""Trust-region Newton and first-order descent on the designed objectives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden_papers.lab.descents import adam, first_order_descent, newton_descent, sgd
from onehidden_papers.objectives import GaussianDesigned, HermiteLoss, NonOrthogonal


def theorem_weights(teacher):
    spread = teacher.output.max() / teacher.output.min()
    return 0.12 / spread, teacher.output.max() / 0.01


def skew(k, d, seed=0):
    rows = np.random.default_rng(seed).standard_normal((k, d)) / np.sqrt(d)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


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
    run = newton_descent(objective.function, starts, objective.prepare(teacher), steps=600)
    for B, start in zip(run, starts, strict=True):
        found = B if kind == "G" else NonOrthogonal.rows(B)
        assert match(found, teacher.weights).honest_error < 1e-6
        assert match(start, teacher.weights).honest_error > 0.05  # a random point must fail


def saddle(x, data):
    return (x[0] ** 2 - 1) ** 2 / 4 + data * x[1] ** 2


def test_newton_descent_leaves_an_exact_saddle():
    out = newton_descent(saddle, np.zeros((1, 2)), np.float64(0.5))
    np.testing.assert_allclose(np.abs(out), [[1.0, 0.0]], atol=1e-9)
    plain = first_order_descent(
        jax.value_and_grad(saddle), np.zeros((1, 2)), optimiser=sgd(0.1), steps=200, data=0.5
    )
    assert abs(plain.params[0, 0]) < 1e-12  # gradients alone stay


def quadratic(x, data):
    return jnp.sum((x - data) ** 2)


def fresh_point(key):
    return 1 + 0.1 * jax.random.normal(key, (3,))


def test_descent_on_fresh_samples_is_seeded_and_runs_all_seeds():
    vg = jax.value_and_grad(quadratic)
    starts = np.zeros((4, 3))
    kwargs = {"optimiser": adam(0.05), "steps": 500, "sampler": fresh_point, "record_every": 50}
    a, b = (first_order_descent(vg, starts, seed=1, **kwargs) for _ in range(2))
    np.testing.assert_array_equal(a.params, b.params)
    assert a.values.shape == (4, 10)
    assert np.abs(a.params - 1).max() < 0.2
    assert not np.array_equal(a.params[0], a.params[1])
    assert not np.array_equal(a.params, first_order_descent(vg, starts, seed=2, **kwargs).params)
    with pytest.raises(ValueError, match="either data"):
        first_order_descent(vg, starts, optimiser=adam(0.05), steps=5)


def test_hermite_loss_with_projection_finds_the_rows():
    teacher = OneHiddenNet(np.linalg.qr(np.random.default_rng(1).standard_normal((5, 5)))[0], np.ones(5))
    loss = HermiteLoss((2, 4))
    starts = np.stack([skew(5, 5, seed) for seed in range(4)])
    run = first_order_descent(
        loss.value_and_grad, starts, optimiser=adam(0.02), steps=3000, data=loss.prepare(teacher),
        project=loss.project,
    )  # fmt: skip
    errors = [match(B, teacher.weights).honest_error for B in run.params]
    assert np.sort(errors)[0] < 1e-4
    np.testing.assert_allclose(np.linalg.norm(run.params, axis=2), 1, atol=1e-12)
