"""Threads for products too small to gain from them: one, without touching the caller's settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# Parameters below which matrix products run on one thread. Threads of a small product wait for one another
# longer than they work: d = 5, k = 3, n = 1500 took 1.2 s with one and 14 s of processor time with two on a
# machine with other work; from about 300 parameters on two threads are never slower.
SMALL = 300


@contextmanager
def fit_for(parameters: int) -> Iterator[None]:
    """A scope in which the products of a problem of this size use as many threads as they gain from."""
    if parameters >= SMALL:
        yield
        return
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        yield
