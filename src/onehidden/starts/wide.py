"""Wide and prune: train an overparameterised network with weight decay and keep the k units that matter.

For activations whose reversal only adds a linear term (ReLU, leaky ReLU, softplus, GELU) the network is
orientation-free: it uses the even part of g and a linear skip, from which orientations are read last.

``Wide`` prunes once, ``Thinned`` stage by stage. Weight decay on rows and outputs is, for g of degree one, a
penalty on the sum of |w_i| |a_i|: a lasso over all directions (for others it is like one). Its minimiser
under a slowly falling penalty holds many true units, and others with them even where the data determine the
network. Dividing each unit's penalty by its own strength, as in the reweighted lasso, removes the others;
where some stay, the strongest begin again among new ones with a fifth of the penalty. Exact recovery needs
fewer samples per parameter than one training does.
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
from onehidden.starts.repair import best_units, merge_parallel

Carry = tuple[Any, optax.OptState]  # parameters, as optax hands them back, and the state of the optimiser
Train = Callable[..., np.ndarray]
_ADAM = optax.adam(1.0)  # times the rate of a step: one compiled program serves every schedule


class Units(NamedTuple):
    """Units of a network, parallel ones as one, the strongest first."""

    weights: Float[np.ndarray, "M d"]
    bias: Float[np.ndarray, " M"]
    amplitude: Float[np.ndarray, "M ..."]  # (M,) or (M, q)

    def strongest(self, count: int) -> Units:
        """Return so many of them at most."""
        return Units(*(part[:count] for part in self))

    @property
    def strength(self) -> Float[np.ndarray, " M"]:
        """Lengths of the amplitudes."""
        return np.linalg.norm(self.amplitude.reshape(len(self.amplitude), -1), axis=1)


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
    width: int | None = None
    steps: int = 12_000
    batch: int | None = 512
    rate: float = 1e-2
    decay: float = 1e-3

    def work(self, problem: Problem) -> float:
        """Operations of the training, two per product and three products per step, and of a descent."""
        n = problem.n
        training = 6.0 * self.steps * min(self.batch or n, n) * problem.d * self.units(problem)
        return training + descent_work(problem)

    def units(self, problem: Problem) -> int:
        """Number of units of the network."""
        return max(8 * problem.k, 64) if self.width is None else self.width

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the k units that matter most, refined."""
        form = search_form(problem, self.units(problem))
        early = _EarlyPruning(form, problem, run.at("early"))
        theta = train(form, self, problem, run.at("network"), "wide network", stop=early.succeeds)
        yield early.candidate or pruned(form, theta, problem, run, "wide-and-prune")


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
        weights, bias, _ = units.strongest(k)
        if completed_loss(rows_to_choose(problem), weights, bias) > loss:
            return False
        here = self.run.at(self.tried)
        found = refine(problem, weights, bias, here, "wide-and-prune", patience=1, slow=0.5)
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
    begin: Float[np.ndarray, " p"] | None = None,  # units that are zero stay so; None: random
    share: Float[np.ndarray, " k"] | None = None,  # factor of the decay of each unit
    stop: Callable[[np.ndarray, float], bool] | None = None,  # given parameters and loss after each chunk
) -> Float[np.ndarray, " p"]:
    """Parameters of a trained network, in single precision.

    The state of the optimiser is kept in the journal between chunks of steps.
    """
    n = problem.n
    batch = min(settings.batch or n, n)
    chunk = chunk_of(6.0 * batch * form.d * form.k)
    order = shuffled(n, batch, run.rng("training rows"))
    with single_precision():
        root = np.ones(n) if problem.weight is None else np.sqrt(problem.weight)
        rows = tuple(jnp.asarray(v[order], jnp.float32) for v in (problem.Z, problem.y, root))
        if begin is None:
            begin = random_network(form, run.rng("wide network", form.k))
        theta = jnp.asarray(begin, jnp.float32)
        share = np.ones(form.k) if share is None else share
        decay = settings.decay * _for_each_unit(form, share, 0.0)
        moving = _for_each_unit(form, _present(form, np.asarray(theta)), 1.0)
        masks = jnp.asarray(decay, jnp.float32), jnp.asarray(moving, jnp.float32)
        state = _ADAM.init(theta)
        rates = settings.rate * (1 + np.cos(np.pi * np.arange(settings.steps) / settings.steps)) / 2
        kept, taken, loss = run.recall(), 0, float("inf")
        if kept is not None:
            leaves, shape = jax.tree.flatten((theta, state))
            values = [jnp.asarray(kept[f"leaf{i}"]) for i in range(len(leaves))]
            theta, state = jax.tree.unflatten(shape, values)
            taken, loss = int(kept["done"]), float(kept["loss"])
        for done in range(taken, settings.steps, chunk):
            if done and stop is not None and stop(np.asarray(theta, dtype=float), loss):
                break
            if run.expired():
                break
            starts = slices(order, batch, chunk, run.rng("training batches", done))
            rate = np.resize(rates[done : done + chunk], chunk)
            steps = starts, rate.astype(np.float32)
            theta, state, last = _run_chunk(form, batch, theta, state, masks, rows, steps)
            loss = float(last)
            if run.journal.remembers:
                leaves = jax.tree.leaves((theta, state))
                values = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
                values |= {"done": np.asarray(done + chunk), "loss": np.asarray(loss)}
                run.keep(values, passing=done + chunk < settings.steps)
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


def slices(
    order: Int[np.ndarray, " m"], batch: int, count: int, rng: np.random.Generator
) -> Int[np.ndarray, " count"]:
    """Where so many random slices of the order begin."""
    return rng.integers(0, len(order) - batch + 1, count).astype(np.int32)


def chunk_of(step: float) -> int:
    """Steps between two looks at the clock, where one takes so many operations.

    Of three lengths, since each is compiled; about a second where threads share the work.
    """
    return next((chunk for chunk in (500, 100) if chunk * step <= machine.worth(5)), 10)


def random_network(form: Parametrisation, rng: np.random.Generator) -> np.ndarray:
    """Parameters of a network before its training."""
    weights = rng.standard_normal((form.k, form.d)) / np.sqrt(form.d)
    output = rng.standard_normal((form.k, *form.tail)) / np.sqrt(form.k * form.q)
    return form.pack(weights, output, 0.5 * rng.standard_normal(form.k))


def _for_each_unit(form: Parametrisation, value: np.ndarray, rest: float) -> np.ndarray:
    """(p,) the value of its unit for each row, output and bias, ``rest`` for the skip and the intercept."""
    rows, output = np.repeat(value[:, None], form.d, axis=1), np.repeat(value, form.q)
    return form.pack(rows, output, value, np.full(form.d * form.q, rest), rest)


def _present(form: Parametrisation, theta: np.ndarray) -> np.ndarray:
    """(k,) zero for units whose row and output are zero, one for the others."""
    weights, output, *_ = form.unpack(theta)
    return (np.any(weights != 0, axis=1) | np.any(output.reshape(form.k, -1) != 0, axis=1)).astype(float)


@partial(jitted, static_argnums=(0, 1))
def _run_chunk(
    form: Parametrisation,
    batch: int,
    theta: jax.Array,
    state: optax.OptState,
    masks: tuple[jax.Array, jax.Array],
    rows: tuple[jax.Array, ...],
    steps: tuple[jax.Array, jax.Array],
) -> tuple[jax.Array, optax.OptState, jax.Array]:
    """Adam steps on slices of the shuffled rows, given where each begins and its rate."""
    decay, moving = masks

    def objective(theta: jax.Array, i: jax.Array) -> tuple[jax.Array, jax.Array]:
        r = residuals(form, theta, *(jax.lax.dynamic_slice_in_dim(v, i, batch) for v in rows))
        fit = jnp.mean(r**2)  # over rows and outputs
        return 0.5 * fit + 0.5 * jnp.sum(decay * theta**2), fit

    def step(carry: Carry, one: tuple[jax.Array, jax.Array]) -> tuple[Carry, jax.Array]:
        (theta, state), (i, rate) = carry, one
        (_, fit), gradient = jax.value_and_grad(objective, has_aux=True)(theta, i)
        update, state = _ADAM.update(moving * gradient, state)
        return (theta + rate * cast(jax.Array, update), state), fit

    (theta, state), fits = jax.lax.scan(step, (theta, state), steps)
    return theta, state, jnp.mean(fits[-100:])


def merged_units(form: Parametrisation, theta: np.ndarray) -> Units:
    """Units of a network with amplitudes |a|^m w, m the degree of a homogeneous unit, else 1."""
    weights, output, bias, _, _ = form.unpack(theta)
    g = form.activation
    amplitude = (output.T * np.linalg.norm(weights, axis=1) ** (g.homogeneity or 1)).T
    parity = 1.0 if form.symmetrised or g.reversal is None else g.reversal.parity
    units = Units(*merge_parallel(weights, bias, amplitude, form.symmetrised or g.sign_free, parity))
    order = np.argsort(-units.strength, kind="stable")
    return Units(*(part[order] for part in units))


@dataclass(frozen=True)
class Thinned:
    """An overparameterised network with iterative pruning.

    Parameters
    ----------
    width : int or None
        Units of the first network; None for 32 times those sought, at least 256.
    steps, stage_steps : int
        Adam steps of the first network and of each later one.
    decay : float
        Weight decay of the first network.
    even : tuple of int
        Units kept at each stage with one decay for all, in multiples of k.
    fall : float
        Factor of the decay from one of these stages to the next.
    weighted : tuple of int
        Units kept at the stages whose decay differs from unit to unit.
    hold : float
        Factor of the decay from one of those to the next.
    floor : float
        Strength, in that of the k strongest, below which a unit's decay stops to rise.
    rounds : int
        Rounds at most.
    free : float
        Share of the decay of units kept from the last round.
    batch : int or None
        Rows a step; None for all.
    """

    name: ClassVar[str] = "thinned"
    width: int | None = None
    steps: int = 8000
    stage_steps: int = 4000
    decay: float = 2e-3
    even: tuple[int, ...] = (20, 20, 10, 10)
    fall: float = 0.6
    weighted: tuple[int, ...] = (10, 10, 5, 5, 5)
    hold: float = 0.9
    floor: float = 0.15
    rounds: int = 4
    free: float = 0.2
    batch: int | None = None

    def work(self, problem: Problem) -> float:
        """Operations of one round: two per product, three products per step."""
        width, n = self.units(problem), problem.n
        units = self.steps * width + self.stage_steps * problem.k * sum(self.even + self.weighted)
        return 6.0 * min(self.batch or n, n) * problem.d * units

    def units(self, problem: Problem) -> int:
        """Number of units of the first network."""
        return 4 * max(8 * problem.k, 64) if self.width is None else self.width

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the best of all rounds: train, prune, keep k, refine; again while too many units are left.

        With noise some are always left: two rounds that end at one loss, to half a unit of n log(loss), end
        it.
        """
        yield iteratively_pruned(problem, self, run)


def iteratively_pruned(problem: Problem, settings: Thinned, run: Run, train: Train = train) -> Candidate:
    """Return the best candidate of all rounds; ``train`` trains the network of each stage."""
    kept: Units | None = None
    best = None
    for number in range(settings.rounds):
        here = run.at("round", number)
        form, theta = _round(problem, settings, kept, here, number, train)
        found = pruned(form, theta, problem, here, "thinned")
        again = best is not None and problem.n_values * abs(found.loss - best.loss) <= 0.5 * best.loss
        best = found if best is None or not best.loss <= found.loss else best
        units = merged_units(form, theta)
        done = problem.rows.rounding.found(best.loss) or len(units.bias) <= problem.k
        if again or done or run.expired():
            break
        kept = units.strongest(problem.k)
    assert best is not None
    return best


def _round(
    problem: Problem, settings: Thinned, kept: Units | None, run: Run, number: int, train: Train
) -> tuple[Parametrisation, np.ndarray]:
    """Return the pruned network of one round: its form and parameters."""
    width, k = settings.units(problem), problem.k
    form = search_form(problem, width)
    training = Wide(width, settings.steps, settings.batch, 1e-2, settings.decay)
    theta = random_network(form, run.rng("thinned network", number))
    share = np.ones(form.k)
    if kept is not None:
        theta, share[: len(kept.bias)] = _replaced(form, theta, kept), settings.free
    theta = train(form, training, problem, run.at("stage", 0), f"network of {form.k} units", theta, share)
    later = replace(training, steps=settings.stage_steps, rate=training.rate / 2)
    for stage, multiple in enumerate(settings.even + settings.weighted):
        units, weighted = merged_units(form, theta), stage >= len(settings.even)
        if run.expired() or not len(units.bias) or (weighted and len(units.bias) <= k):
            break
        narrow = search_form(problem, multiple * k)
        theta, strength = _narrower(form, theta, narrow, units)
        if weighted:
            share = _shares(strength, k, settings.floor)
        else:
            share = _shares_of_kept(narrow, theta, kept, settings.free)
        decay = later.decay * (settings.hold if weighted else settings.fall)
        form, later = narrow, replace(later, width=narrow.k, decay=decay)
        here = run.at("stage", stage + 1)
        theta = train(form, later, problem, here, f"network of {form.k} units", theta, share)
    most = search_form(problem, 10 * k)  # units to prune from at the end, whatever the clock left undone
    if form.k > most.k:
        form, theta = most, _narrower(form, theta, most, merged_units(form, theta))[0]
    return form, theta


def _narrower(
    form: Parametrisation, theta: np.ndarray, narrow: Parametrisation, units: Units
) -> tuple[np.ndarray, np.ndarray]:
    """Return the network of form ``narrow`` with the strongest units, rows of zeros after them; strengths."""
    some = units.strongest(narrow.k)
    missing = narrow.k - len(some.bias)
    weights, output, bias, strength = (
        np.pad(part, [(0, missing), *[(0, 0)] * (part.ndim - 1)])
        for part in (*_balanced(form, some), some.strength)
    )
    return narrow.pack(weights, output, bias, *form.unpack(theta)[3:]), strength


def _replaced(form: Parametrisation, theta: np.ndarray, kept: Units) -> np.ndarray:
    """Return the network with its first units replaced by those that were kept."""
    parts = form.unpack(theta)
    weights, output, bias = (part.copy() for part in parts[:3])
    count = len(kept.bias)
    weights[:count], output[:count], bias[:count] = _balanced(form, kept)
    return form.pack(weights, output, bias, *parts[3:])


def _balanced(form: Parametrisation, units: Units) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, outputs, biases of merged units; a homogeneous one is scaled so that its decay is least."""
    weights, bias, amplitude = units
    norm = np.linalg.norm(weights, axis=1)
    degree, length = form.activation.homogeneity, norm
    if degree is not None:  # the least of |a|^2 + b^2 + w^2 with w |a|^degree and b / |a| held
        length = (np.sqrt(degree) * units.strength * norm / np.hypot(norm, bias)) ** (1 / (degree + 1))
    output = (amplitude.T / length ** (degree or 1)).T
    return weights * (length / norm)[:, None], output, bias * length / norm


def _shares(strength: np.ndarray, k: int, floor: float) -> np.ndarray:
    """Factor of the decay of each unit: one at the mean strength of the k strongest, more below."""
    top = float(np.mean(np.sort(strength)[::-1][:k]))
    return (1 + floor) * top / (strength + floor * top)


def _shares_of_kept(form: Parametrisation, theta: np.ndarray, kept: Units | None, free: float) -> np.ndarray:
    """One for every unit but the nearest to each kept one, where their cosine is above .9."""
    share = np.ones(form.k)
    if kept is not None:
        weights, _, bias, _, _ = form.unpack(theta)
        planes = [np.column_stack([kept.weights, kept.bias]), np.column_stack([weights, bias])]
        old, new = (one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-300) for one in planes)
        cosine = old @ new.T
        cosine = np.abs(cosine) if form.symmetrised or form.activation.sign_free else cosine
        share[np.argmax(cosine, axis=1)[np.max(cosine, axis=1) > 0.9]] = free
    return share
