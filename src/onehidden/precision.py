"""Double precision inside, whatever the caller's JAX settings, without touching them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def double() -> AbstractContextManager[None]:
    """Scope in which JAX computes in float64; the caller's setting returns on exit."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # before jax 0.8

    return enable_x64(True)


def in_double(fn: Callable[P, R]) -> Callable[P, R]:
    """Run the whole of an entry point in the float64 scope."""

    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with double():
            return fn(*args, **kwargs)

    return wrapped
