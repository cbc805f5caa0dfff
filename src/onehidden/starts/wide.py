"""Wide-and-prune: train a student with many units and weight decay, keep the k that matter.

For activations whose reversal only adds a linear term (ReLU, leaky ReLU, softplus, GELU) the student is
orientation-free: it uses the even part of g and a linear skip, and orientations are read off the skip last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from onehidden.compiled import jitted
from onehidden.fit.form import Form, residuals
from onehidden.fit.problem import Problem
from onehidden.precision import single
from onehidden.run import Run
from onehidden.starts.candidate import (
    Candidate,
    completed_loss,
    fixed_columns,
    refine_at_once,
    refine_in_two,
    rows_to_choose,
    search_form,
    unit_columns,
)
from onehidden.starts.prune import eliminate_backwards, merge_parallel
from onehidden.starts.start import descent_work

Carry = tuple[Any, optax.OptState]  # parameters, as optax hands them back, and the state of the optimiser
_ADAM = optax.adam(1.0)  # times the rate of a step: one compiled program serves every schedule
_CHUNKS = 500, 100, 10  # steps between looks at the clock: few lengths, since each is compiled
# Times the strength of the next unit that the k-th must have for the k strongest to be tried, and share of
# its loss then that a student must come down to before the next trial: with noise it hardly does.
_APART, _LOWER = 1.5, 0.5
_TRIAL = 3  # steps of a descent that must be affordable for the units to be tried
_AT_ONCE, _ON_DEVICE = 1e11, 3e13  # operations between them: about a second of two cores, of an accelerator


@dataclass(frozen=True)
class Wide:
    """A wide student, pruned to k units.

    Attributes
    ----------
    width : units of the student; None for eight times those sought, at least 64.
    steps, batch, rate : Adam steps, rows a step (None: all), peak rate (cosine decay to zero).
    decay : weight of |theta|^2 / 2 on rows, biases and outputs; in the product it acts as a sparse penalty.
    """

    width: int | None = None
    steps: int = 12_000
    batch: int | None = 512
    rate: float = 1e-2
    decay: float = 1e-3

    @property
    def name(self) -> str:
        return "wide"

    def work(self, problem: Problem) -> float:
        """Floating-point operations of the training: two a product, three products a step; and a descent."""
        n = problem.n
        training = 6.0 * self.steps * min(self.batch or n, n) * problem.d * self.units(problem)
        return training + descent_work(problem)

    def units(self, problem: Problem) -> int:
        """Of the student."""
        return max(8 * problem.k, 64) if self.width is None else self.width

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        form = search_form(problem, self.units(problem))
        early = _Early(form, problem, run)
        theta = train(form, self, problem, run.at("student"), "wide student", look=early.found)
        if early.candidate is None:
            yield refined_best(form, theta, problem, run, "wide-and-prune")
        else:
            yield replace(early.candidate, student=True)


class _Early:
    """Looks at a student between its steps: whether the units sought are there already.

    They are tried where the k strongest, parallel ones as one, stand apart from the next and leave, alone
    with outputs of their own, no more than the whole student does. What a descent from them finds is taken
    if it fits to rounding; else the training goes on as if nobody had looked. Of d = k = 50, n = 16 384 and
    outputs 1 no unit is there after 2000 steps, 30 of 50 after 3500, and all after 4000; the strength of the
    50th is 1.0 times the next one's until then, 1.7 times after 4000 steps and 3.4 times after 4500.
    """

    def __init__(self, form: Form, problem: Problem, run: Run) -> None:
        self.form, self.problem, self.run = form, problem, run.at("early")
        self.candidate: Candidate | None = None
        kept = self.run.recall()  # trials that failed
        self.tried = 0 if kept is None else int(kept["tried"])
        self.last = float("inf") if kept is None else float(kept["last"])

    def found(self, theta: np.ndarray, loss: float) -> bool:
        """Whether to stop at these parameters, whose batches leave this loss."""
        problem, k = self.problem, self.problem.k
        if problem.rows.rounding.noisy or loss > _LOWER * self.last:
            return False
        if not self.run.affords(descent_work(problem, _TRIAL)):  # with noise the rest needs all the time
            return False
        weights, bias, amplitude = merged_units(self.form, theta)
        strength = np.linalg.norm(amplitude.reshape(len(amplitude), -1), axis=1)
        order = np.argsort(-strength, kind="stable")  # clusters come by their strongest member
        weights, bias, strength = weights[order], bias[order], strength[order]
        if len(weights) < k or np.any(strength[k:] * _APART > strength[k - 1]):
            return False
        form, weights, bias = search_form(problem, k), weights[:k], bias[:k]
        if completed_loss(rows_to_choose(problem), form, weights, bias) > loss:
            return False
        here = self.run.at(self.tried)
        self.candidate = refine_at_once(problem, form, weights, bias, here, "wide-and-prune")
        if self.candidate is None and not self.run.expired():
            self.tried, self.last = self.tried + 1, loss
            self.run.keep({"tried": self.tried, "last": loss})
        return self.candidate is not None


def refined_best(
    form: Form, theta: Float[np.ndarray, " p"], problem: Problem, run: Run, origin: str
) -> Candidate:
    """The k units of a student that matter most, refined."""
    weights, bias = prune(form, theta, problem, run)
    found = refine_in_two(problem, search_form(problem, len(weights)), weights, bias, run, origin)
    return replace(found, student=True)


def train(
    form: Form,
    settings: Wide,
    problem: Problem,
    run: Run,
    stage: str,
    begin: Float[np.ndarray, " p"] | None = None,
    share: Float[np.ndarray, " k"] | None = None,
    look: Callable[[np.ndarray, float], bool] | None = None,
) -> Float[np.ndarray, " p"]:
    """Parameters of the trained student; float32 throughout, since only a start is wanted.

    The state of the optimiser is kept between chunks of steps. ``begin`` are the first parameters (None:
    random), in which units that are zero stay so; ``share`` (k,) multiplies the decay of each unit. The
    training ends early where ``look``, given parameters and loss after each chunk but the last, says so.
    """
    n = problem.n
    batch = min(settings.batch or n, n)
    chunk = chunk_of(6.0 * batch * form.d * form.k)
    # Slices that run over the end go on at the beginning: every row is drawn as often.
    order = np.resize(run.rng("student rows").permutation(n), n + (batch - 1) * (batch < n))
    # An accelerator's default product of float32 keeps 10 bits: students that need all rows end astray.
    with single(), jax.default_matmul_precision("highest"):
        root = np.ones(n) if problem.weight is None else np.sqrt(problem.weight)
        rows = tuple(jnp.asarray(v[order], jnp.float32) for v in (problem.Z, problem.y, root))
        if begin is None:
            begin = random_student(form, run.rng("student", form.k))
        theta = jnp.asarray(begin, jnp.float32)
        share = np.ones(form.k) if share is None else share
        decay = settings.decay * _for_each_unit(form, share, 0.0)
        moving = _for_each_unit(form, _there(form, np.asarray(theta)), 1.0)
        masks = jnp.asarray(decay, jnp.float32), jnp.asarray(moving, jnp.float32)
        state = _ADAM.init(theta)
        rates = settings.rate * (1 + np.cos(np.pi * np.arange(settings.steps) / settings.steps)) / 2
        kept, taken, loss = run.recall(), 0, float("inf")
        if kept is not None:
            leaves, shape = jax.tree.flatten((theta, state))
            theta, state = jax.tree.unflatten(
                shape, [jnp.asarray(kept[f"leaf{i}"]) for i in range(len(leaves))]
            )
            taken, loss = int(kept["done"]), float(kept["loss"])
        for done in range(taken, settings.steps, chunk):
            if done and look is not None and look(np.asarray(theta, dtype=float), loss):
                break
            if run.expired():
                break
            starts = run.rng("student batches", done).integers(0, len(order) - batch + 1, chunk)
            rate = np.resize(rates[done : done + chunk], chunk)
            steps = starts.astype(np.int32), rate.astype(np.float32)
            theta, state, last = _run_chunk(form, batch, theta, state, masks, rows, steps)
            loss = float(last)
            if run.journal.remembers:
                leaves = jax.tree.leaves((theta, state))
                values = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
                values |= {"done": np.asarray(done + chunk), "loss": np.asarray(loss)}
                run.keep(values, passing=done + chunk < settings.steps)
            run.report(stage, done + chunk, loss)
    return np.asarray(theta, dtype=float)


def chunk_of(step: float) -> int:
    """Steps that are taken between two looks at the clock, where one takes so many operations."""
    most = _AT_ONCE if jax.default_backend() == "cpu" else _ON_DEVICE
    return next((chunk for chunk in _CHUNKS if chunk * step <= most), _CHUNKS[-1])


def random_student(form: Form, rng: np.random.Generator) -> np.ndarray:
    """Parameters of a student before its training."""
    weights = rng.standard_normal((form.k, form.d)) / np.sqrt(form.d)
    output = rng.standard_normal((form.k, *form.tail)) / np.sqrt(form.k * form.q)
    return form.pack(weights, output, 0.5 * rng.standard_normal(form.k))


def _for_each_unit(form: Form, value: np.ndarray, rest: float) -> np.ndarray:
    """(p,) the value of its unit for each row, output and bias, ``rest`` for the skip and the intercept."""
    rows, output = np.repeat(value[:, None], form.d, axis=1), np.repeat(value, form.q)
    return form.pack(rows, output, value, np.full(form.d * form.q, rest), rest)


def _there(form: Form, theta: np.ndarray) -> np.ndarray:
    """(k,) zero for units whose row and output are zero, one for the others."""
    weights, output, *_ = form.unpack(theta)
    return (np.any(weights != 0, axis=1) | np.any(output.reshape(form.k, -1) != 0, axis=1)).astype(float)


@partial(jitted, static_argnums=(0, 1))
def _run_chunk(
    form: Form,
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


def prune(
    form: Form, theta: Float[np.ndarray, " p"], problem: Problem, run: Run
) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, " k"]]:
    """Weights and biases of the k units of the student that matter most.

    A student whose units all merged into fewer directions is filled up with random ones.
    """
    weights, bias, _ = merged_units(form, theta)
    missing = problem.k - len(weights)
    if missing > 0:
        rng = run.rng("units to fill up with")
        weights = np.vstack([weights, rng.standard_normal((missing, problem.d)) / np.sqrt(problem.d)])
        bias = np.append(bias, np.zeros(missing))
    columns = problem.weighted(unit_columns(form, problem.Z, weights, bias))
    fixed = problem.weighted(fixed_columns(form, problem.Z))
    kept = eliminate_backwards(columns, fixed, problem.weighted(problem.y), problem.k)
    return weights[kept], bias[kept]


def merged_units(form: Form, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, biases and amplitudes of a student's units, parallel ones as one, strongest first."""
    weights, output, bias, _, _ = form.unpack(theta)
    g = form.activation
    amplitude = (output.T * np.linalg.norm(weights, axis=1) ** (g.homogeneity or 1)).T
    parity = 1.0 if form.symmetrised or g.reflection is None else g.reflection.parity
    return merge_parallel(weights, bias, amplitude, form.symmetrised or g.sign_free, parity)
