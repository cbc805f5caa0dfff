"""Double precision inside the library, whatever the caller's JAX settings, which return afterwards."""

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


def double(on: bool = True) -> AbstractContextManager[None]:
    """A scope in which JAX computes in float64."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(on)
    return importlib.import_module("jax.experimental").enable_x64(on)  # before jax 0.8


def single() -> AbstractContextManager[None]:
    """A scope in which JAX computes in float32, for searches whose result is refined afterwards."""
    return double(False)


def in_double(fn: Callable[P, R]) -> Callable[P, R]:
    """Run an entry point in the float64 scope and keep what it compiles for the next run."""

    @functools.wraps(fn)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with double(), remembered():
            return fn(*args, **kwargs)

    return wrapped
