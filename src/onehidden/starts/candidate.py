"""What a start is given, and what it returns: a candidate network with its loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
import numpy as np

from onehidden.activations import Activation
from onehidden.memo import FORGETFUL, Memo
from onehidden.network import OneHiddenNet
from onehidden.objectives.fit import NetworkFit
from onehidden.objectives.residuals import Form
from onehidden.solvers import LevenbergMarquardt
from onehidden.starts.orientation import orient

_ENOUGH = 4  # rows a parameter on which a descent begins ...
_SAVING = 1.5  # ... where there are at least so many times more
_FEWEST = 4096  # rows below which there is nothing to save
_EXACT = 1e-10  # mean squared residual, as a share of var(y), of a fit without noise but for a trace of ridge


@dataclass(frozen=True)
class Candidate:
    """A network in the coordinates of the task and where it came from.

    Attributes
    ----------
    network : the units, oriented.
    loss : mean squared residual in the search form, that is before orientations are rounded to signs.
    origin : the start.
    weights, bias : (k, d), (k,) hyperplanes of the search form.
    """

    network: OneHiddenNet
    loss: float
    origin: str
    weights: np.ndarray = field(repr=False)
    bias: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class Task:
    """Whitened inputs Z (n, d), target y (n,) of mean 0 and variance 1, and what is sought in them.

    ``stop()`` says that time is up; ``report(stage, step, loss)`` hears of progress; ``weight`` (n,) of
    mean one, or None, says how much each row counts; ``memo`` remembers finished refinements.
    """

    Z: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    activation: Activation
    k: int
    bias: bool
    seed: int
    stop: Callable[[], bool] = lambda: False
    report: Callable[[str, int, float], None] = lambda stage, step, loss: None
    weight: np.ndarray | None = field(repr=False, default=None)
    memo: Memo = field(repr=False, default=FORGETFUL)

    @property
    def d(self) -> int:
        return self.Z.shape[1]

    def within(self, basis: np.ndarray) -> Task:
        """The same task seen in a subspace with orthonormal columns (d, r)."""
        return replace(self, Z=self.Z @ basis)

    def weighted(self, columns: np.ndarray) -> np.ndarray:
        """Rows times the root of their weight: least squares on them is weighted least squares."""
        if self.weight is None:
            return columns
        return columns * np.sqrt(self.weight).reshape(-1, *[1] * (columns.ndim - 1))

    def reporter(self, stage: str) -> Callable[[int, float], None]:
        return lambda step, loss: self.report(stage, step, loss)


def search_form(activation: Activation, d: int, k: int, bias: bool) -> Form:
    """The orientation-free form with a linear skip where reversal is linear, the plain form elsewhere."""
    free = activation.reflection is not None and activation.reflection.degree == 1
    return Form(activation, d, k, bias, intercept=True, skip=free, symmetrised=free)


def refine(task: Task, form: Form, theta: np.ndarray, origin: str, max_steps: int = 60) -> Candidate:
    """Levenberg–Marquardt in the search form until it stops paying, then orientations."""
    n = len(task.y)
    key = "refine", form, theta, max_steps, task.Z, task.y, task.weight
    kept = task.memo.recall(*key)
    if kept is None:
        fit = NetworkFit(form, task.Z, task.y, task.weight)
        solver = LevenbergMarquardt(max_steps, 1e-14 * n, patience=6, slow=1e-3, enough=1e-2 / n, least=1e-13)
        solution = solver.solve(fit, theta, task.stop, lambda step, loss: task.report(origin, step, loss / n))
        kept = {"theta": solution.theta, "loss": np.asarray(solution.loss)}
        if not task.stop():  # what was cut short by the clock is not a result to remember
            task.memo.keep(kept, *key)
    found, loss = kept["theta"], float(kept["loss"])
    weights, _, bias, _, _ = form.unpack(found)
    return Candidate(orient(form, found), loss / n, origin, weights, bias)


def refine_in_two(task: Task, form: Form, weights: np.ndarray, bias: np.ndarray, origin: str) -> Candidate:
    """Refined from these hyperplanes; where rows abound, most of the way on some of them."""
    few = _some_rows(task, form)
    if few is not None:
        found = refine(few, form, complete(few, form, weights, bias), origin)
        if found.loss < _EXACT:
            loss = completed_loss(task, form, found.weights, found.bias)
            if loss < _EXACT:  # the finish needs no more
                return replace(found, loss=loss)
        weights, bias = found.weights, found.bias
    return refine(task, form, complete(task, form, weights, bias), origin)


def _some_rows(task: Task, form: Form) -> Task | None:
    """The task on as many rows as determine its parameters well; None where that would save little."""
    rows = max(_ENOUGH * form.size, _FEWEST)
    if len(task.y) < _SAVING * rows:
        return None
    drawn = np.sort(np.random.default_rng([task.seed, 17]).choice(len(task.y), rows, replace=False))
    weight = None if task.weight is None else task.weight[drawn]
    return replace(task, Z=task.Z[drawn], y=task.y[drawn], weight=weight)


def lift(candidate: Candidate, basis: np.ndarray) -> Candidate:
    """A candidate of a subspace task in the coordinates of the whole."""
    net = candidate.network
    lifted = OneHiddenNet(net.weights @ basis.T, net.output, net.bias, net.intercept, net.activation)
    return replace(candidate, network=lifted, weights=candidate.weights @ basis.T)


def unit_columns(form: Form, Z: np.ndarray, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """(n, M) values of units with these hyperplanes, in the form's activation."""
    return np.asarray(form.g(jnp.asarray(Z @ weights.T + bias)))


def fixed_columns(form: Form, Z: np.ndarray) -> np.ndarray:
    """The columns every least-squares fit of a form has: a constant and, with a skip, the inputs."""
    return np.column_stack([np.ones(len(Z)), *([Z] if form.skip else [])])


def least_squares_columns(task: Task, form: Form, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Weighted columns of the units, then the fixed ones: what outputs, intercept and skip multiply."""
    columns = [unit_columns(form, task.Z, weights, bias), fixed_columns(form, task.Z)]
    return task.weighted(np.column_stack(columns))


def complete(task: Task, form: Form, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Parameters with the given hyperplanes and least-squares outputs, skip and intercept."""
    # A trace of ridge: parallel units would share one output as +huge and -huge.
    design = least_squares_columns(task, form, weights, bias)
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += 1e-8 * np.trace(gram) / len(gram)
    coefficient = np.linalg.solve(gram, design.T @ task.weighted(task.y))
    k = len(weights)
    beta = coefficient[k + 1 :] if form.skip else None
    return form.pack(weights, coefficient[:k], bias, beta, coefficient[k])


def completed_loss(task: Task, form: Form, weights: np.ndarray, bias: np.ndarray) -> float:
    """Mean squared residual with the given hyperplanes, everything else by least squares."""
    fit = NetworkFit(form, task.Z, task.y, task.weight)
    return fit.loss(complete(task, form, weights, bias)) / len(task.y)
