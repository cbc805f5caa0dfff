"""Small fits are computed on the host: the same numbers as the compiled programs, and nothing compiled."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import normal

from onehidden import activations
from onehidden.fit.parametrisation import (
    Parametrisation,
    placed,
    residuals,
    residuals_and_jacobian,
    roots,
    written_out,
)
from onehidden.machine import double

SHAPES = [
    {"bias": True},
    {"bias": True, "skip": True, "intercept": False},
    {"skip": True, "outputs": 3},
    {"bias": True, "symmetrised": True, "outputs": 1},
]


def case(name, weight, shape):
    form = Parametrisation(activations.get(name), 3, 2, **shape)
    rng = np.random.default_rng(1)
    x, y = normal(40, 3), rng.standard_normal((40, *form.tail))
    given = {
        "one": None,
        "rows": rng.uniform(0, 2, 40),
        "outputs": rng.uniform(0, 2, (40, form.q)),
        "matrices": np.einsum("nab,ncb->nac", *(2 * [rng.standard_normal((40, form.q, form.q))])),
    }[weight]
    return form, rng.standard_normal(form.size), x, y, roots(given, 40)


@pytest.mark.parametrize(
    ("name", "shape"),
    [*((name, SHAPES[0]) for name in activations.names()), *(("tanh", shape) for shape in SHAPES[1:])],
)
def test_host_and_compiled_program_agree(name, shape):
    kinds = ["one", "rows"] if "outputs" not in shape else ["one", "rows", "outputs", "matrices"]
    for weight in kinds:
        form, theta, x, y, root = case(name, weight, shape)
        with double():
            here = residuals_and_jacobian(form, theta, x, y, root)
            there = residuals_and_jacobian(form, jnp.asarray(theta), x, y, root)
            assert all(type(value) is np.ndarray for value in here)
            for a, b in zip(here, there, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
            r = residuals(form, theta, x, y, root)
            np.testing.assert_allclose(r, there[0], rtol=1e-13, atol=1e-13)


def test_small_batches_stay_on_the_host_and_large_ones_are_compiled():
    form = Parametrisation(activations.get("tanh"), 3, 2, bias=True)
    theta = np.ones(form.size)
    assert isinstance(placed(form, theta, 100), np.ndarray)
    assert isinstance(placed(form, theta, 1_000_000), jax.Array)
    own = Parametrisation(activations.Activation("mine", jnp.tanh, lambda t: 1 - jnp.tanh(t) ** 2), 3, 2)
    assert isinstance(placed(own, np.ones(own.size), 100), jax.Array)  # it may know JAX alone


def test_rows_filled_up_for_a_compiled_program_are_cut_off_again():
    for shape in SHAPES:
        form, theta, x, y, root = case("tanh", "rows", shape)
        here = written_out(form, theta, x, y, root)
        with double():
            there = written_out(form, theta, x, y, root, on_host=0)
        for a, b in zip(here, there, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", activations.names())
def test_a_diverged_step_is_no_warning(name):
    form = Parametrisation(activations.get(name), 3, 2, bias=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = residuals_and_jacobian(
            form, np.full(form.size, 1e200), normal(20, 3), np.zeros(20), np.ones(20)
        )
    assert found[1].shape == (20, form.size)
