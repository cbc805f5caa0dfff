"""The difference map: find a network as the intersection of two sets; it escapes local minima.

Where y has no noise it finds units with one kink from fewer samples than any descent, and in less time
than overparameterised networks do from many. In the orientation-free form y = l(x) + sum_i s_i |t_i(x)| with
signs s_i, a network is the values of its k units and of its linear part at the rows,
T = (t_1, ..., t_k, l), a (k + 1, n) array. T lies in two sets:

- R: s_1 |t_1| + ... + s_k |t_k| + l = y at every row. Each row is a problem of k + 1 numbers of its own.
- L: every t_i is a linear function of the inputs, and so is l. A linear subspace.

Both projections have closed forms. With N = P_R(T) the map T <- T + beta (P_L(N + gamma (N - T)) - N) has
no local minima: its fixed points lie in both sets (Elser 2003; relaxed for networks, Elser 2021). A step
costs n (k + 1) (4 d + 50) operations, a hundredth or less of a Levenberg-Marquardt step.

A ridge penalty p t' M t on the units shrinks P_L by (1 + p M)^-1. Without it, pairs of nearly parallel units
of opposite signs grow and cancel each other, and a run hardly finds a network after some thousand steps. The
penalty is annealed to zero: the network sought is one of the weakest that explain the rows, as under weight
decay.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden import machine
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem
from onehidden.machine import free_cores, jitted, on_accelerator
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, refine, search_form
from onehidden.starts.wide import single_precision

Values = Float[jax.Array, "P k+1 n"]
Signs = Float[jax.Array, "P k"]
Planes = Float[np.ndarray, "P k e"]
Square = Float[np.ndarray, "e e"]
Strategy = tuple[float, float]
TYPICAL_STEPS = 5000  # to an answer where there is one soon, for estimates of work


class Sets(NamedTuple):
    """What all runs share; rows are multiplied by the roots of their weights, which leaves kinks in place."""

    # (n, e) orthonormal columns of the functions a unit may be: inputs and, with biases, the constant.
    basis: jax.Array
    back: jax.Array  # (e, e) maps the coordinates of a unit in that basis to its hyperplane
    fixed: jax.Array  # (n, m) orthonormal columns of every fit: the constant and, with a skip, the inputs
    y: jax.Array  # (n,) the target less what those explain: the linear part adds that back at no cost


class State(NamedTuple):
    """Runs after some steps: values, signs, and the hyperplanes of their networks with the losses."""

    values: Values
    signs: Signs
    planes: Float[jax.Array, "P k e"]
    loss: Float[jax.Array, " P"]


def sets_of(problem: Problem, form: Parametrisation) -> Sets:
    """Both sets of a problem, in single precision."""
    x = problem.weighted(np.column_stack([problem.Z, np.ones(problem.n)]))
    basis, triangle = np.linalg.qr(x[:, : form.d + form.bias])
    fixed = np.linalg.qr(x[:, slice(None) if form.skip else slice(form.d, None)])[0]
    y = problem.weighted(problem.y)
    parts = basis, np.linalg.inv(triangle), fixed, y - fixed @ (fixed.T @ y)
    return Sets(*(jnp.asarray(part, jnp.float32) for part in parts))


def outputs_and_losses(
    form: Parametrisation, sets: Sets, units: Float[jax.Array, "P k e"]
) -> tuple[Signs, Float[jax.Array, " P"]]:
    """Least-squares outputs of units in the basis, and mean squared residuals."""
    columns = form.g(units @ sets.basis.T)  # homogeneous: the roots of the weights go through
    along = columns @ sets.fixed
    gram = columns @ columns.mT - along @ along.mT
    # A ridge of ten roundings of float32: parallel units would have a singular Gram matrix.
    ridge = 1e-6 * jnp.trace(gram, axis1=1, axis2=2) / form.k + jnp.finfo(gram.dtype).tiny
    factor = jnp.linalg.cholesky(gram + ridge[:, None, None] * jnp.eye(form.k, dtype=gram.dtype))
    output = jax.scipy.linalg.cho_solve((factor, True), columns @ sets.y[:, None])
    fitted = (columns.mT @ output)[..., 0]
    residual = fitted - (fitted @ sets.fixed) @ sets.fixed.T - sets.y
    return output[..., 0], jnp.mean(residual**2, axis=1)


def weight_penalty(problem: Problem, form: Parametrisation, back: Square) -> Square:
    """Return the matrix M of a unit's squared weights in columns of variance one, and of its squared bias.

    Units along directions in which the table hardly varies cost most. For uncorrelated columns it is the
    identity, the penalty on the mean of t^2.
    """
    whiten, unwhiten = problem.search_coordinates.whiten, problem.search_coordinates.unwhiten
    columns = np.linalg.norm(unwhiten, axis=0)[:, None] * whiten
    weights = np.vstack([columns @ back[: form.d], back[form.d :]])
    return problem.n * weights.T @ weights


def shrinkage(penalty: Square, ridge: float) -> Square:
    """(1 + ridge M)^-1."""
    return np.linalg.inv(np.eye(len(penalty)) + ridge * penalty)


def linear_ease(k: int) -> float:
    """How much cheaper the linear part moves than one of k units, in the metric of P_R.

    Measured at 1.5 samples per weight: 10 is best from ten units on; with five units in fifty inputs 2.5
    finds eleven networks where 10 finds one.
    """
    return min(10.0, 0.1 * k**2)


def project_rows(values: Values, signs: Signs, y: Float[jax.Array, " n"]) -> Values:
    """P_R: the nearest values whose units and linear part add up to the target at every row.

    A unit keeps its side of the kink and is |t| = a >= 0. With a multiplier m a row moves to
    a_i = max(a_i + s_i m, 0) and l + ease m, where m is the root of an increasing, piecewise linear function.
    Three Newton steps find it: two lose a fifth of the answers, four gain nothing.
    """
    t, linear = values[:, :-1], values[:, -1]
    size, sign, ease = jnp.abs(t), signs[..., None], linear_ease(t.shape[1])
    m = jnp.zeros_like(linear)
    for _ in range(3):
        moved = size + sign * m[:, None]
        on = moved > 0
        excess = jnp.sum(jnp.where(on, sign * moved, 0.0), axis=1) + linear + ease * m - y
        m = m - excess / (ease + jnp.sum(on, axis=1, dtype=m.dtype))
    moved = jnp.copysign(jnp.maximum(size + sign * m[:, None], 0.0), t)
    return jnp.concatenate([moved, (linear + ease * m)[:, None]], axis=1)


def project_linear(sets: Sets, values: Values, inward: Float[jax.Array, "n e"]) -> Values:
    """P_L: the nearest linear functions of the inputs; ``inward`` is the basis, times a shrinkage if any."""
    units = (values[:, :-1] @ inward) @ sets.basis.T
    linear = (values[:, -1:] @ sets.fixed) @ sets.fixed.T
    return jnp.concatenate([units, linear], axis=1)


@partial(jitted, static_argnums=(0, 6))
def iterate(
    form: Parametrisation,
    sets: Sets,
    shrunk: Float[jax.Array, "e e"],
    strategy: Float[jax.Array, " two"],
    values: Values,
    signs: Signs,
    steps: int,
) -> State:
    """Return runs after so many steps with (beta, gamma), with the signs of the least-squares outputs.

    The number of steps is compiled in, since an accelerator asks the host about every step of a loop of
    unknown length.
    """
    inward = sets.basis @ shrunk
    beta, gamma = strategy

    def step(_: jax.Array, values: Values) -> Values:
        near = project_rows(values, signs, sets.y)
        return values + beta * (project_linear(sets, near + gamma * (near - values), inward) - near)

    values = jax.lax.fori_loop(0, steps, step, values)
    near = project_rows(values, signs, sets.y)
    units = (near + gamma * (near - values))[:, :-1] @ sets.basis
    output, loss = outputs_and_losses(form, sets, units)
    known = jnp.isfinite(output)  # outputs of units that coincide are not
    signs = jnp.where(known, jnp.where(output < 0, -1.0, 1.0), signs).astype(values.dtype)
    return State(values, signs, units @ sets.back.T, loss)


def initial(
    sets: Sets, k: int, rng: np.random.Generator, count: int, size: float = 0.1
) -> tuple[Float[np.ndarray, "P k+1 n"], Float[np.ndarray, "P k"]]:
    """Small random linear functions, of ``size`` standard deviations of y, and random signs."""
    n, e = sets.basis.shape
    scale = size * float(np.std(np.asarray(sets.y))) * np.sqrt(n / e)
    drawn = (scale * rng.standard_normal((count, k + 1, e))).astype(np.float32)
    values = (drawn @ np.asarray(sets.basis).T).astype(np.float32)
    return values, rng.choice(np.array([-1, 1], np.float32), (count, k))


@dataclass(frozen=True)
class DifferenceMap:
    """Parallel runs of the relaxed difference map, restarted with twice the steps each time.

    Parameters
    ----------
    steps : int
        Steps of a run, over all its restarts.
    runs : int or None
        Runs in parallel. None: 16 on a CPU, 2 where a step costs much, up to 1024 on an accelerator.
    first_run : int
        Number of the first run; another number draws other initial values.
    strategies : tuple of (beta, gamma)
        Relaxation parameters, taken in turn by batches of runs. Which one finds more depends on the problem:
        the first with few units and many samples, the second with twenty equal outputs.
    ridge : float
        Initial ridge penalty. It falls linearly to zero over four fifths of a restart.
    refine_below : float
        Share of var(y) at which a network is refined by least squares.
    rows : int
        Rows per parameter that are used; 500 steps find all units with four.

    References
    ----------
    V. Elser, Phase retrieval by iterated projections, 2003; Learning without loss, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> start = oh.starts.DifferenceMap(steps=2000)
    >>> found = oh.recover(X, np.abs(X[:, 0]), hidden=1, activation="abs", bias=False, start=start)
    >>> found.origin
    'difference_map'
    """

    name: ClassVar[str] = "difference_map"
    steps: int = 20_000
    runs: int | None = None
    first_run: int = 0
    strategies: tuple[Strategy, ...] = ((0.3, 6.0), (0.6, 3.0))
    ridge: float = 0.05
    refine_below: float = 1e-4
    rows: int = 4

    def __post_init__(self) -> None:
        if self.steps < 1 or self.first_run < 0 or (self.runs is not None and self.runs < 1):
            raise ValueError(
                "steps and runs must be 1 or more and first_run 0 or more, "
                f"got {self.steps}, {self.runs} and {self.first_run}"
            )

    def work(self, problem: Problem) -> float:
        """Operations until an answer typically comes; later runs take all their steps."""
        typical = self.steps if self.first_run else min(self.steps, TYPICAL_STEPS)
        return self.size(problem) * typical * self.step_work(problem)

    def values(self, problem: Problem) -> int:
        """Numbers of one run."""
        return (problem.k + 1) * min(problem.n, self.rows * search_form(problem).freedom)

    def step_work(self, problem: Problem) -> float:
        """Operations of a step of one run: two products with the basis, and some fifty per value."""
        return self.values(problem) * (4.0 * (problem.d + 1) + 50)

    def size(self, problem: Problem) -> int:
        """Number of parallel runs for this problem."""
        if self.runs is not None:
            return self.runs
        if on_accelerator():
            return int(np.clip((1 << 24) // self.values(problem), 16, 1024))
        return 2 if 16 * TYPICAL_STEPS * self.step_work(problem) > machine.worth(15) else 16

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the best network of all runs, refined; a fit to rounding ends the search."""
        form, count = search_form(problem), self.size(problem)
        if not kinked(form):
            raise Refused(
                f"the difference map looks for units |t| with one output, not {form.q} of "
                f"{form.activation.name}: use start='auto'"
            )
        few, most = problem, self.rows * form.freedom
        if problem.n > most:
            drawn = run.rng("rows of the difference map").choice(problem.n, most, replace=False)
            few = problem.take(np.sort(drawn))
        runs = _Runs(self, few, count)
        here = run.at("difference map", self.first_run)
        rng, done, best = here.rng(*here.path), 0, (np.inf, np.zeros((form.k, form.d + form.bias)))

        def refined(plane: Float[np.ndarray, "k e"], here: Run) -> Candidate:
            bias = plane[:, form.d] if form.bias else np.zeros(form.k)
            return refine(problem, plane[:, : form.d], bias, here, self.name)

        # Steps between two looks at the clock: a quarter of a second.
        call = int(np.clip(machine.worth(0.25) / (count * self.step_work(problem)), 1, 250))
        for number, length in enumerate(restarts(self.steps)):
            if number and here.expired():
                break
            runs.restart(rng, number)
            tried = np.inf  # loss of the last network refined in vain
            for age in range(0, length, call):
                ridge = self.ridge * max(0.0, 1 - age / (0.8 * length))
                loss, plane = runs.advanced(call, ridge)
                best, done = min(best, (loss, plane), key=lambda one: one[0]), done + call
                if age % max(length // 8, call) < call:
                    here.report("difference map", done, loss)
                if loss <= min(self.refine_below, 0.3 * tried):
                    found = refined(plane, here.at("step", done))
                    if problem.rows.rounding.found(found.loss):
                        yield found
                        return
                    tried = loss
                if here.expired():
                    break
        yield refined(best[1], here.at("last"))


class _Runs:
    """Parallel runs in batches of one size that stay on the device.

    Their number depends on the problem alone, not on the cores that work on them: the answer is the same.
    """

    def __init__(self, settings: DifferenceMap, problem: Problem, count: int) -> None:
        self.form = search_form(problem)
        with single_precision():
            self.sets = sets_of(problem, self.form)
        penalty = weight_penalty(problem, self.form, np.asarray(self.sets.back, float))
        # The last penalty is on the mean of t^2: which of the two finds more depends on the problem.
        self.variants = [(penalty, one) for one in settings.strategies]
        self.variants += [(np.eye(len(penalty)), one) for one in reversed(settings.strategies)]
        each = 5 * 4 * (problem.k + 1) * problem.n  # bytes: five arrays per run
        together = 1024 if on_accelerator() else max(1, (4 << 20) // each)  # what a cache holds
        self.number = min(max(-(-count // together), len(self.variants)), count)
        self.batch, self.cores = -(-count // self.number), 1 if on_accelerator() else free_cores()

    def restart(self, rng: np.random.Generator, turn: int) -> None:
        """Draw new initial values of all runs, each batch with another variant than before."""
        with single_precision():
            drawn = [initial(self.sets, self.form.k, rng, self.batch) for _ in range(self.number)]
            self.batches = [(jnp.asarray(values), jnp.asarray(signs)) for values, signs in drawn]
        self.turn = turn

    def advanced(self, steps: int, ridge: float) -> tuple[float, Float[np.ndarray, "k e"]]:
        """Return the best loss and its network after so many steps more; infinity where none is finite."""

        def one(number: int) -> State:
            penalty, strategy = self.variants[(number + self.turn) % len(self.variants)]
            with single_precision():  # the thread waits for its own result
                variant = (jnp.asarray(v, jnp.float32) for v in (shrinkage(penalty, ridge), strategy))
                result = iterate(self.form, self.sets, *variant, *self.batches[number], steps)
                return jax.block_until_ready(result)

        with ThreadPoolExecutor(self.cores) as threads:
            found = list(threads.map(one, range(self.number)))
        self.batches = [(state.values, state.signs) for state in found]
        planes = np.concatenate([np.nan_to_num(np.asarray(state.planes)) for state in found])
        loss = np.concatenate([np.asarray(state.loss) for state in found])
        loss = np.where(np.isfinite(loss), loss, np.inf)
        return float(loss.min()), planes[np.argmin(loss)]


def restarts(steps: int, shortest: int = 2000, longest: int = 32_000) -> Iterator[int]:
    """Lengths of the restarts that so many steps are divided into, each twice the one before.

    Of five units in fifty inputs a quarter of the runs find the answer in 2000 steps, of wine with ten units
    one in forty in 32 000.
    """
    length = shortest
    while steps > 0:
        own = length if steps - length >= shortest else steps  # a short rest prolongs the last
        yield own
        steps, length = steps - own, min(2 * length, longest)


def kinked(form: Parametrisation) -> bool:
    """Whether the units of a search form are |t| up to a factor, with one output."""
    return form.outputs is None and form.activation.kinked and form.activation.homogeneity == 1
