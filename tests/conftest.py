"""What every test runs under: strict types of arrays, and a precision flag that nothing leaves on."""

from __future__ import annotations

import jax
import pytest

# int32 + float32, float32 + float64: what JAX would promote silently is an error here.
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture(autouse=True)
def _precision_does_not_leak():
    """The library computes in double precision inside its own walls; the caller's flag stays as it was."""
    assert not jax.config.jax_enable_x64, "a test before this one left double precision switched on"
    yield
    assert not jax.config.jax_enable_x64, "this test left double precision switched on"
