"""What every test runs under: strict types of arrays, and a precision flag that nothing leaves on."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import jax
import optax
import pytest

# Compiled programs of the tests stay in the project's own folder, shared by all test processes.
os.environ.setdefault("ONEHIDDEN_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"))

# int32 + float32, float32 + float64: what JAX would promote silently is an error here.
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(autouse=True)
def _precision_does_not_leak():
    """The library computes in double precision inside its own walls; the caller's flag stays as it was."""
    assert not jax.config.jax_enable_x64, "a test before this one left double precision switched on"
    yield
    assert not jax.config.jax_enable_x64, "this test left double precision switched on"


def _leniently(make):
    """An optax transformation whose own arithmetic, which mixes types, runs under JAX's usual rules."""

    @functools.wraps(make)
    def made(*args, **settings):
        inner = make(*args, **settings)

        def update(*values):
            with jax.numpy_dtype_promotion("standard"):
                return inner.update(*values)

        return optax.GradientTransformation(inner.init, update)

    return made


optax.adam, optax.sgd = _leniently(optax.adam), _leniently(optax.sgd)
