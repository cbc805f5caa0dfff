"""Double precision inside, whatever the caller's JAX settings, without touching them."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import ParamSpec, TypeVar

import jax

from onehidden.compiled import remembered

P = ParamSpec("P")
R = TypeVar("R")


def double() -> AbstractContextManager[None]:
    """Scope in which JAX computes in float64; the caller's setting returns on exit."""
    return _x64(True)


def single() -> AbstractContextManager[None]:
    """Scope in which JAX computes in float32, for searches whose result is refined afterwards."""
    return _x64(False)


def _x64(on: bool) -> AbstractContextManager[None]:
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(on)
    experimental = importlib.import_module("jax.experimental")  # before jax 0.8
    return experimental.enable_x64(on)


def in_double(fn: Callable[P, R]) -> Callable[P, R]:
    """Run the whole of an entry point in the float64 scope; what it compiles is kept for the next run."""

    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with double(), remembered():
            return fn(*args, **kwargs)

    return wrapped
