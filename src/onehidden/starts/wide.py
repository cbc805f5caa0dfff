"""Wide and prune: train an overparameterised network with weight decay and keep the k units that matter.

For activations whose reversal only adds a linear term (ReLU, leaky ReLU, softplus, GELU) the network is
orientation-free: it uses the even part of g and a linear skip, from which orientations are read last.

Weight decay on rows and outputs is, for g of degree one, a penalty on the sum of |w_i| |a_i|: a lasso over
all directions (for others it is like one). Its minimiser holds many true units, and others with them even
where the data determine the network. Backward elimination by least squares removes the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float, Int

from onehidden import machine
from onehidden.fit.parametrisation import Parametrisation, residuals
from onehidden.fit.problem import Problem
from onehidden.machine import jitted, single
from onehidden.run import Run
from onehidden.starts.candidate import (
    Candidate,
    completed_loss,
    descent_work,
    refine,
    rows_to_choose,
    search_form,
)
from onehidden.starts.repair import best_units

Carry = tuple[Any, optax.OptState]  # parameters, as optax hands them back, and the state of the optimiser
_ADAM = optax.adam(1.0)  # times the rate of a step: one compiled program serves every schedule


class Units(NamedTuple):
    """Units of a network, parallel ones as one, the strongest first."""

    weights: Float[np.ndarray, "M d"]
    bias: Float[np.ndarray, " M"]
    amplitude: Float[np.ndarray, "M ..."]  # (M,) or (M, q)

    @property
    def strength(self) -> Float[np.ndarray, " M"]:
        """Lengths of the amplitudes."""
        return np.sqrt(np.sum(np.square(self.amplitude), axis=tuple(range(1, self.amplitude.ndim))))


@dataclass(frozen=True)
class Wide:
    """An overparameterised network, pruned to k units.

    Parameters
    ----------
    width : int or None
        Units of the network; None for eight times those sought, at least 64.
    steps : int
        Adam steps.
    batch : int or None
        Rows a step; None for all.
    rate : float
        Peak rate, with cosine decay to zero.
    decay : float
        Weight of |theta|^2 / 2 on rows, biases and outputs, which acts as a sparse penalty on their product.
    """

    name: ClassVar[str] = "wide"
    origin: ClassVar[str] = "wide-and-prune"
    per_unit: ClassVar[int] = 8  # units of the network for each one sought
    width: int | None = None
    steps: int = 12_000
    batch: int | None = 512
    rate: float = 1e-2
    decay: float = 1e-3

    def work(self, problem: Problem) -> float:
        """Operations of the training, two per product and three products per step, and of a descent."""
        rows = min(self.batch or problem.n, problem.n)
        return 6.0 * self.steps * rows * problem.d * self.units(problem) + descent_work(problem)

    def units(self, problem: Problem) -> int:
        """Number of units of the network."""
        return self.per_unit * max(problem.k, 8) if self.width is None else self.width

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the k units that matter most, refined."""
        form = search_form(problem, self.units(problem))
        early = _EarlyPruning(form, problem, run.at("early"))
        theta = train(form, self, problem, run.at("network"), "wide network", stop=early.succeeds)
        yield early.candidate or pruned(form, theta, problem, run, self.origin)


@dataclass(frozen=True)
class Thinned(Wide):
    """``Wide`` with four times the units and all rows a step, for few samples.

    Parameters
    ----------
    width : int or None
        Units of the network; None for 32 times those sought, at least 256.
    steps : int
        Adam steps.
    batch : int or None
        Rows a step; None for all.
    rate : float
        Peak rate.
    decay : float
        Weight of |theta|^2 / 2.
    """

    name: ClassVar[str] = "thinned"
    origin: ClassVar[str] = "thinned"
    per_unit: ClassVar[int] = 32
    steps: int = 8000
    batch: int | None = None
    decay: float = 2e-3


class _EarlyPruning:
    """Pruning between the steps of a training: whether the units sought are there already.

    It is tried where the k strongest units, parallel ones as one, stand apart from the next by 1.5 times
    their strength and leave, with outputs of their own, no more than the whole network does. From the units
    of a network without noise each step of a descent halves the loss at least; the result is taken if it fits
    to rounding. After a trial in vain the loss must halve before the next.
    """

    def __init__(self, form: Parametrisation, problem: Problem, run: Run) -> None:
        self.form, self.problem, self.run = form, problem, run
        self.candidate: Candidate | None = None
        kept = run.recall() or {"tried": 0, "last": np.inf}
        self.tried, self.last = int(kept["tried"]), float(kept["last"])  # trials in vain, loss at the last

    def succeeds(self, theta: np.ndarray, loss: float) -> bool:
        """Whether to stop at these parameters, whose batches leave this loss."""
        problem, k = self.problem, self.problem.k
        if problem.rows.rounding.noisy or loss > 0.5 * self.last:
            return False
        if not self.run.within_budget(descent_work(problem, 3)):  # with noise the training needs the time
            return False
        units = merged_units(self.form, theta)
        if len(units.bias) < k or np.any(1.5 * units.strength[k:] > units.strength[k - 1]):
            return False
        weights, bias = units.weights[:k], units.bias[:k]
        if completed_loss(rows_to_choose(problem), weights, bias) > loss:
            return False
        here = self.run.at(self.tried)
        found = refine(problem, weights, bias, here, Wide.origin, patience=1, slow=0.5)
        if problem.rows.rounding.found(found.loss):
            self.candidate = replace(found, overparameterised=True)
        elif not self.run.expired():
            self.tried, self.last = self.tried + 1, loss
            self.run.keep({"tried": self.tried, "last": loss})
        return self.candidate is not None


def pruned(
    form: Parametrisation, theta: Float[np.ndarray, " p"], problem: Problem, run: Run, origin: str
) -> Candidate:
    """Return the k units of a network that matter most, refined; random ones where some are missing."""
    weights, bias, _ = merged_units(form, theta)
    missing = problem.k - len(weights)
    if missing > 0:
        rng = run.rng("units to fill up with")
        weights = np.vstack([weights, rng.standard_normal((missing, problem.d)) / np.sqrt(problem.d)])
        bias = np.append(bias, np.zeros(missing))
    kept = best_units(problem, weights, bias, problem.k)
    found = refine(problem, weights[kept], bias[kept], run, origin)
    return replace(found, overparameterised=True)


def train(
    form: Parametrisation,
    settings: Wide,
    problem: Problem,
    run: Run,
    stage: str,
    stop: Callable[[np.ndarray, float], bool] | None = None,  # given parameters and loss after each chunk
) -> Float[np.ndarray, " p"]:
    """Parameters of a trained network, in single precision.

    The state of the optimiser is kept in the journal between chunks of steps.
    """
    n, steps = problem.n, settings.steps
    batch = min(settings.batch or n, n)
    # Steps between two looks at the clock: about a second. Of three lengths, since each is compiled.
    work = 6.0 * batch * form.d * form.k
    chunk = next((chunk for chunk in (500, 100) if chunk * work <= machine.worth(5)), 10)
    order = shuffled(n, batch, run.rng("training rows"))
    rates = settings.rate * (1 + np.cos(np.pi * np.arange(steps) / steps)) / 2
    alike = np.ones((form.k, form.d)), np.ones((form.k, form.q)), np.ones(form.k)
    with single_precision():
        root = np.ones(n) if problem.weight is None else np.sqrt(problem.weight)
        rows = tuple(jnp.asarray(v[order], jnp.float32) for v in (problem.Z, problem.y, root))
        decay = jnp.asarray(settings.decay * form.pack(*alike), jnp.float32)  # none on skip and intercept
        theta = jnp.asarray(random_network(form, run.rng("wide network", form.k)), jnp.float32)
        state, kept, taken, loss = _ADAM.init(theta), run.recall(), 0, float("inf")
        if kept is not None:
            leaves, shape = jax.tree.flatten((theta, state))
            leaves = [jnp.asarray(kept[f"leaf{i}"]) for i in range(len(leaves))]
            theta, state = jax.tree.unflatten(shape, leaves)
            taken, loss = int(kept["done"]), float(kept["loss"])
        for done in range(taken, steps, chunk):
            if run.expired() or (done and stop is not None and stop(np.asarray(theta, dtype=float), loss)):
                break
            starts = run.rng("training batches", done).integers(0, len(order) - batch + 1, chunk)
            rate = np.resize(rates[done : done + chunk], chunk)
            each_step = starts.astype(np.int32), rate.astype(np.float32)
            theta, state, last = _run_chunk(form, batch, theta, state, decay, rows, each_step)
            loss = float(last)
            if run.journal is not None:
                values = {f"leaf{i}": leaf for i, leaf in enumerate(jax.tree.leaves((theta, state)))}
                run.keep(values | {"done": done + chunk, "loss": loss}, passing=done + chunk < steps)
            run.report(stage, done + chunk, loss)
    return np.asarray(theta, dtype=float)


@contextmanager
def single_precision() -> Iterator[None]:
    """Single precision, all 24 bits of it: an accelerator's default product keeps 10."""
    with single(), jax.default_matmul_precision("highest"):
        yield


def shuffled(n: int, batch: int, rng: np.random.Generator) -> Int[np.ndarray, " m"]:
    """Rows in random order, the first ones again at the end: slices then hold every row as often."""
    return np.resize(rng.permutation(n), n + (batch - 1) * (batch < n))


def random_network(form: Parametrisation, rng: np.random.Generator) -> Float[np.ndarray, " p"]:
    """Parameters of a network before its training."""
    weights = rng.standard_normal((form.k, form.d)) / np.sqrt(form.d)
    output = rng.standard_normal((form.k, *form.tail)) / np.sqrt(form.k * form.q)
    return form.pack(weights, output, 0.5 * rng.standard_normal(form.k))


@partial(jitted, static_argnums=(0, 1))
def _run_chunk(
    form: Parametrisation,
    batch: int,
    theta: jax.Array,
    state: optax.OptState,
    decay: jax.Array,
    rows: tuple[jax.Array, ...],
    steps: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, optax.OptState, jax.Array]:
    """Adam steps on slices of the shuffled rows, given where each begins and its rate."""

    def objective(theta: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
        r = residuals(form, theta, *(jax.lax.dynamic_slice_in_dim(v, i, batch) for v in rows))
        fit = jnp.mean(r**2)  # over rows and outputs
        return 0.5 * fit + 0.5 * jnp.sum(decay * theta**2), fit

    def step(carry: Carry, one: tuple[jax.Array, jax.Array]) -> tuple[Carry, jax.Array]:
        (theta, state), (i, rate) = carry, one
        (_, fit), gradient = jax.value_and_grad(objective, has_aux=True)(theta, i)
        update, state = _ADAM.update(gradient, state)
        return (theta + rate * cast(jax.Array, update), state), fit

    (theta, state), fits = jax.lax.scan(step, (theta, state), steps)
    return theta, state, jnp.mean(fits[-100:])


def merged_units(form: Parametrisation, theta: Float[np.ndarray, " p"]) -> Units:
    """Units of a network with amplitudes |a|^m w, m the degree of a homogeneous unit, else 1."""
    weights, output, bias, _, _ = form.unpack(theta)
    g = form.activation
    amplitude = (output.T * np.linalg.norm(weights, axis=1) ** (g.homogeneity or 1)).T
    parity = 1.0 if form.symmetrised or g.reversal is None else g.reversal.parity
    return merge_parallel(Units(weights, bias, amplitude), form.symmetrised or g.sign_free, parity)


def merge_parallel(
    units: Units,  # only those with amplitudes of like signs merge
    up_to_sign: bool,  # whether a unit and its reverse are parallel
    parity: float = 1.0,  # -1 where the reverse of a unit is the unit with its output reversed
    cosine: float = 0.95,  # of the (weights, bias) vectors, above which units merge
) -> Units:
    """Average units that point the same way, beginning with the strongest, and add up their amplitudes."""
    planes, strength = np.column_stack(units[:2]), units.strength
    direction = planes / np.maximum(np.linalg.norm(planes, axis=1), 1e-300)[:, None]
    strong = units.amplitude.reshape(len(planes), -1)
    free = strength > 1e-4 * np.max(strength, initial=0.0)
    merged, total = [], []
    for i in np.argsort(-strength):
        if not free[i]:
            continue
        similarity = direction @ direction[i]
        turned = np.where((similarity < 0) & up_to_sign, -1.0, 1.0)
        oriented = np.where(turned[:, None] < 0, parity * strong, strong)
        near = free & (turned * similarity > cosine) & (oriented @ strong[i] > 0)
        free &= ~near
        share = strength[near] / strength[near].sum()
        merged.append((share * turned[near]) @ planes[near])
        total.append(np.sum(oriented[near], axis=0))
    planes = np.array(merged).reshape(-1, planes.shape[1])
    amplitude = np.array(total).reshape(-1, *units.amplitude.shape[1:])
    found = Units(planes[:, :-1], planes[:, -1], amplitude)
    order = np.argsort(-found.strength, kind="stable")
    return Units(*(part[order] for part in found))
