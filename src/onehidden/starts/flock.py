"""A flock: networks of one problem descended and bred batch by batch, in memory that the machine has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.device import memory, on_accelerator
from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.precision import single
from onehidden.run import Run
from onehidden.starts.descents import descend, member_bytes, table
from onehidden.starts.offspring import drawn_units, mixed, own_units, pooled, shared_units

_CPU_BYTES = 8 << 20  # of a batch on a CPU: more leaves its caches (wine: 8 networks 190 us a step, 64 310)
_GPU_SHARE = 0.2  # of an accelerator's memory: the compiler holds several copies
_LARGEST = 2048  # networks of a batch (H200, wine: one of 512 takes 1.9 us a step, one of 2048 1.2)
LOOKED = 10  # networks next to the best whose units are held against its
_APART = 1e-4  # share of the loss by which networks must differ to be two

Planes = Float[np.ndarray, "P k e"]
Numbers = Float[np.ndarray, " P"]


class Herd(NamedTuple):
    """Networks as their hyperplanes (P, k, e) and mean squared residuals (P,), best first."""

    planes: Planes
    loss: Numbers

    def best(self, count: int) -> Herd:
        """The first so many."""
        return Herd(self.planes[:count], self.loss[:count])

    def distinct(self, count: int) -> Herd:
        """The best so many that end at losses of their own; fewer where there are fewer."""
        kept = [0]
        for i in range(1, len(self.loss)):
            if len(kept) == count:
                break
            if self.loss[i] > (1 + _APART) * self.loss[kept[-1]]:
                kept.append(i)
        return Herd(self.planes[kept], self.loss[kept])

    def joined(self, other: Herd) -> Herd:
        """Both, best first."""
        return herd_of(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def herd_of(planes: Planes, loss: Numbers) -> Herd:
    """Networks, best first; those whose descent broke down are left out."""
    order = np.argsort(np.where(np.isfinite(loss), loss, np.inf), kind="stable")
    order = order[: max(int(np.sum(np.isfinite(loss))), 1)]
    return Herd(planes[order], loss[order])


class Flock:
    """Descents and children of networks of one form over the rows of one problem, in float32."""

    def __init__(self, problem: Problem, form: Form, members: int) -> None:
        self.form, self.numbers = form, problem.numbers
        count = -(-members // batch_size(form, problem.n))
        self.batch = -(-members // count)  # even batches: the last is not filled up for nothing
        with narrow():
            self._rows = table(problem, form)

    def descended(self, planes: Planes, steps: int, run: Run) -> Herd:
        """The networks after so many steps each: those that the clock left time for, at least some."""

        def work(some: jax.Array) -> tuple[jax.Array, ...]:
            return descend(self.form, self._rows, some, jnp.asarray(steps))

        return herd_of(*self._batched(work, [planes.astype(np.float32)], run))

    def pooled(self, herd: Herd, pairs: np.ndarray, run: Run, rng: np.random.Generator) -> Planes:
        """Children (P, k, e) of pairs (P, 2) of members: the units of both that fit best together."""
        return self._children(pooled, herd, pairs, drawn_units(rng, len(pairs), self.form.k), run)

    def mixed(self, herd: Herd, pairs: np.ndarray, run: Run, rng: np.random.Generator) -> Planes:
        """Children (P, k, e) of pairs (P, 2) of members: some units of one, the others' least like them."""
        return self._children(mixed, herd, pairs, own_units(rng, len(pairs), self.form.k), run)

    def shared(self, herd: Herd) -> float:
        """How many units of the best network the next ones have, on average."""
        with narrow():
            near = jnp.asarray(np.resize(herd.planes, (LOOKED + 1, *herd.planes.shape[1:])), jnp.float32)
            return float(np.mean(np.asarray(shared_units(self.form, self._rows, near))[1:]))

    def _children(
        self,
        make: Callable[..., jax.Array],
        herd: Herd,
        pairs: np.ndarray,
        genes: np.ndarray,
        run: Run,
    ) -> Planes:
        parents = [herd.planes[pairs[:, 0]], herd.planes[pairs[:, 1]], genes]
        return self._batched(lambda *parts: (make(self.form, self._rows, *parts),), parts=parents, run=run)[0]

    def _batched(
        self, work: Callable[..., tuple[jax.Array, ...]], parts: list[np.ndarray], run: Run
    ) -> tuple[np.ndarray, ...]:
        """Batches of one shape, the last filled up: one compiled function serves all generations."""
        found = []
        for at in range(0, len(parts[0]), self.batch):
            if at and run.expired():
                break
            some = [part[at : at + self.batch] for part in parts]
            with narrow():
                filled = [jnp.asarray(np.resize(part, (self.batch, *part.shape[1:]))) for part in some]
                found.append([np.asarray(value)[: len(some[0])] for value in work(*filled)])
        return tuple(np.concatenate(values) for values in zip(*found, strict=True))


@contextmanager
def narrow() -> Iterator[None]:
    """Single precision, all of it: an accelerator's default product of float32 keeps 10 bits."""
    with single(), jax.default_matmul_precision("highest"):
        yield


def batch_size(form: Form, n: int) -> int:
    """Networks at a time that the machine has memory for."""
    room = int(_GPU_SHARE * memory()) if on_accelerator() else _CPU_BYTES
    return int(np.clip(room // member_bytes(form, n), 1, _LARGEST))
