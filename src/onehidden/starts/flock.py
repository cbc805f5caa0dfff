"""A flock: networks of one problem descended and bred batch by batch, in memory that the machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.precision import single
from onehidden.run import Run
from onehidden.starts.descents import descend, member_bytes, table
from onehidden.starts.offspring import draws, offspring, shared_units

_CPU_BYTES = 32 << 20  # of a batch on a CPU: more does not fit its caches (wine: 16 networks 400 us, 64 520)
_GPU_SHARE = 0.2  # of an accelerator's memory: the compiler holds several copies
_LARGEST = 1024  # networks of a batch: more do not fill an accelerator better
_LOOKED = 10  # networks next to the best whose units are held against its

Planes = Float[np.ndarray, "P k e"]


class Herd(NamedTuple):
    """Networks as their hyperplanes (P, k, e) and mean squared residuals (P,), best first."""

    planes: Planes
    loss: Float[np.ndarray, " P"]

    def best(self, count: int) -> Herd:
        return Herd(self.planes[:count], self.loss[:count])


def sorted_herd(planes: Planes, loss: Float[np.ndarray, " P"]) -> Herd:
    """A herd, best first; what is not finite last."""
    loss = np.where(np.isfinite(loss), loss, np.inf)
    order = np.argsort(loss, kind="stable")
    return Herd(planes[order], loss[order])


class Flock:
    """Descents and children of networks of one form over the rows of one problem, in float32."""

    def __init__(self, problem: Problem, form: Form, members: int) -> None:
        self.form, self.n = form, problem.n
        self.batch = min(batch_size(form, problem.n), members)
        with _narrow():
            self._rows = table(problem, form)

    def descended(self, planes: Planes, steps: int, run: Run) -> Herd:
        """The networks after so many steps, best first; those that the clock left time for, at least some."""

        def work(part: jax.Array) -> tuple[jax.Array, ...]:
            return descend(self.form, self._rows, part, jnp.asarray(steps))

        planes, loss = self._batched(work, [planes], run)
        return sorted_herd(planes, loss)

    def bred(
        self,
        herd: Herd,
        first: np.ndarray,
        second: np.ndarray,
        steps: int,
        run: Run,
        rng: np.random.Generator,
    ) -> Herd:
        """The herd after each of these pairs of its members had a child.

        A child takes the place of the parent it is more like, if it is better.
        """
        drawn = draws(rng, len(first), self.form.k)

        def work(*parts: jax.Array) -> tuple[jax.Array, ...]:
            return offspring(self.form, self._rows, *parts, jnp.asarray(steps))

        planes, loss, like = self._batched(work, [herd.planes[first], herd.planes[second], drawn], run)
        place = np.where(like[:, 0] >= like[:, 1], first[: len(like)], second[: len(like)])
        after = Herd(herd.planes.copy(), herd.loss.copy())
        for child in np.argsort(-loss):  # the best last: it stays
            if loss[child] < after.loss[place[child]]:
                after.planes[place[child]], after.loss[place[child]] = planes[child], loss[child]
        return sorted_herd(*after)

    def shared(self, herd: Herd) -> float:
        """How many units of the best network the next ones have, on average."""
        with _narrow():
            near = jnp.asarray(herd.planes[: _LOOKED + 1], jnp.float32)
            return float(np.mean(np.asarray(shared_units(self.form, self._rows, near))[1:]))

    def _batched(
        self, work: Callable[..., tuple[jax.Array, ...]], parts: list[np.ndarray], run: Run
    ) -> tuple[np.ndarray, ...]:
        """Batches of one shape, the last filled up: one compiled function serves all generations."""
        found = []
        for at in range(0, len(parts[0]), self.batch):
            if at and run.expired():
                break
            some = [part[at : at + self.batch] for part in parts]
            count = len(some[0])
            with _narrow():
                filled = [jnp.asarray(np.resize(part, (self.batch, *part.shape[1:]))) for part in some]
                found.append([np.asarray(value)[:count] for value in work(*filled)])
        return tuple(np.concatenate(values) for values in zip(*found, strict=True))


@contextmanager
def _narrow() -> Iterator[None]:
    """Single precision, all of it: an accelerator's default product of float32 keeps 10 bits."""
    with single(), jax.default_matmul_precision("highest"):
        yield


def batch_size(form: Form, n: int) -> int:
    """Networks at a time that the machine has memory for."""
    device = jax.devices()[0]
    room = _CPU_BYTES
    if device.platform != "cpu":
        memory = (device.memory_stats() or {}).get("bytes_limit", 8 << 30)
        room = int(_GPU_SHARE * memory)
    return int(np.clip(room // member_bytes(form, n), 1, _LARGEST))
