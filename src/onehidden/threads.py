"""Threads for products too small to gain from them: one, without touching the caller's settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# Parameters below which matrix products run on one thread. Threads of a small product wait for one another
# longer than they work, and where a core has other work they spin: eigenvalues of 930 parameters took .05 s
# with one thread and 3.5 s with two beside another job. Alone on two cores: 900 parameters (d = k = 30,
# n = 8000) 5.5 s with one thread and 5.9 s with two, 2600 (d = k = 50, n = 16 384) 22.3 and 18.2 s.
SMALL = 1500


@contextmanager
def fit_for(parameters: int) -> Iterator[None]:
    """A scope in which the products of a problem of this size use as many threads as they gain from."""
    if parameters >= SMALL:
        yield
        return
    with one():
        yield


@contextmanager
def one() -> Iterator[None]:
    """A scope in which matrix products use one thread; what the caller had comes back after it."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, "blas"):
        yield


def granted() -> int:
    """Threads that a matrix product may use here: the caller's settings, and those of the scopes above."""
    from threadpoolctl import threadpool_info

    return max(
        (int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1
    )
