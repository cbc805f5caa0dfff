"""A start, the candidate it returns, the descent that ends every start, and the orientation of units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem, descend
from onehidden.machine import NOMINAL, worth
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt

if TYPE_CHECKING:
    from onehidden_papers.laws.base import Score

Weights = Float[np.ndarray, "k d"]
Vector = Float[np.ndarray, " k"]


@dataclass(frozen=True)
class Candidate:
    """A network in the search coordinates of the problem and where it came from.

    Parameters
    ----------
    network : OneHiddenNet
        The units, oriented.
    loss : float
        Mean squared residual in the search form, before orientations are rounded to signs.
    origin : str
        The start.
    overparameterised : bool
        Whether it comes from an overparameterised network or a population: what those miss, random restarts
        hardly find.
    number : int
        Which candidate of a search it is; a repaired one keeps its number.
    """

    network: OneHiddenNet
    loss: float
    origin: str
    overparameterised: bool = False
    number: int = 0


@runtime_checkable
class Start(Protocol):
    """Where a search begins: a name, its work in operations, and candidates on request.

    Attributes
    ----------
    name : str
        Name in options, progress and records.
    takes_structure : bool, optional
        Whether its candidates obey what is known of the units (``problem.form.structure``); taken as False
        where it is not defined.
    """

    name: ClassVar[str]

    def work(self, problem: Problem) -> float:
        """Floating-point operations of all its candidates, roughly."""
        ...

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Candidates in the search coordinates, lazily; ``Refused`` says that it cannot begin here."""
        ...


@dataclass(eq=False)
class InputModel:
    """The law of the inputs: what the caller says of it, and what starts from score moments find.

    Parameters
    ----------
    given : str or Score
        "auto", "gaussian", or a law or score of x.
    seed : int
        Of whatever is drawn to estimate it.
    name : str
        What the law was taken for, with the reason; "not needed" until a start asks.
    known : dict
        What such a start computed once for all searches of a run.
    """

    given: str | Score
    seed: int
    name: str = "not needed"
    known: dict[str, Any] = field(default_factory=dict)


def descent_work(problem: Problem, steps: int = 60) -> float:
    """Operations of one descent: steps times n p^2 for the normal equations and p^3/3 for the solve."""
    p = problem.k * (problem.form.inputs + 1 + problem.bias)
    return steps * (2.0 * problem.n * p**2 + p**3 / 3)


def cheap_descents(problem: Problem) -> int:
    """Return how many descents, 2 to 8, are tried before two answers that agree settle a search with noise.

    As many as take a quarter of a nominal second. Five of 217 noisy tanh networks ended too early with a
    fifth of this bound.
    """
    return int(np.clip(NOMINAL * 0.25 / descent_work(problem), 2, 8))


def further_restarts(problem: Problem, seconds: float = 5.0, most: int = 60) -> int:
    """Return how many restarts so many seconds are worth, for a search that nothing has settled."""
    return int(min(most, worth(seconds) / descent_work(problem, 100)))


def search_form(problem: Problem, k: int | None = None) -> Parametrisation:
    """Return the orientation-free form with a linear skip where reversal is linear, the plain form elsewhere.

    Where the answer has a linear part the search has it, too. A structure orients the units.
    """
    if problem.form.structure is not None:
        return replace(problem.form, k=problem.k if k is None else k)
    g = problem.activation
    free = g.reversal is not None and g.reversal.degree == 1
    units = problem.k if k is None else k
    skip, outputs = free or problem.form.skip, problem.form.outputs
    return Parametrisation(g, problem.d, units, problem.bias, True, skip, symmetrised=free, outputs=outputs)


def search_fit(problem: Problem, form: Parametrisation) -> InMemoryLeastSquares:
    """Return the least-squares problem of a form over the rows of a search."""
    return InMemoryLeastSquares(form, problem.Z, problem.y, problem.weight)


def refine(
    problem: Problem,
    weights: Weights,
    bias: Vector,
    run: Run,
    origin: str,
    max_steps: int = 60,
    patience: int = 6,
    slow: float = 1e-3,
) -> Candidate:
    """Levenberg–Marquardt in the search form from these hyperplanes until it stops paying, then orientations.

    It ends after ``patience`` steps in a row that each lower the loss by a smaller share than ``slow``.
    """
    n, form = problem.n_values, search_form(problem, len(weights))
    floor, theta = problem.rows.rounding.search_floor(n), complete(problem, weights, bias)
    solver = LevenbergMarquardt(max_steps, floor, patience=patience, slow=slow, rtol=1e-2 / n, least=1e-13)
    theta, loss = descend(solver, search_fit(problem, form), theta, run.at("descent"), origin, n)
    return Candidate(orient(form, theta, problem.form.skip), loss / n, origin)


def rows_to_choose(problem: Problem) -> Problem:
    """Return the problem on evenly spread rows, to choose among many hyperplanes in bounded memory."""
    every = max(1, problem.n // 20_000)  # no more than a descent needs
    return problem if every == 1 else problem.take(np.arange(0, problem.n, every))


def least_squares_columns(problem: Problem, weights: Weights, bias: Vector) -> Float[np.ndarray, "n m"]:
    """Weighted columns of units with these hyperplanes, then a constant and, with a skip, the inputs."""
    form = search_form(problem)
    fixed = [np.ones(problem.n), *([problem.Z] if form.skip else [])]
    return problem.weighted(np.column_stack([form.g(problem.Z @ weights.T + bias), *fixed]))


def complete(problem: Problem, weights: Weights, bias: Vector) -> Float[np.ndarray, " p"]:
    """Parameters with the given hyperplanes and least-squares outputs, skip and intercept."""
    # A trace of ridge: parallel units would share one output as +huge and -huge.
    design = least_squares_columns(problem, weights, bias)
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += 1e-8 * np.trace(gram) / len(gram)
    coefficient = np.linalg.solve(gram, design.T @ problem.weighted(problem.y))
    k = len(weights)
    form = search_form(problem, k)
    beta = coefficient[k + 1 :] if form.skip else None
    return form.pack(weights, coefficient[:k], bias, beta, coefficient[k])


def completed_loss(problem: Problem, weights: Weights, bias: Vector) -> float:
    """Mean squared residual with the given hyperplanes, everything else by least squares."""
    fit = search_fit(problem, search_form(problem, len(weights)))
    return fit.loss(complete(problem, weights, bias)) / problem.n_values


def orient(form: Parametrisation, theta: np.ndarray, linear: bool = False) -> OneHiddenNet:
    """Return the network of a fitted form; units of an orientation-free fit are oriented by the skip.

    With a ``linear`` part of its own the network keeps what its units do not explain; any orientation fits.

    With g = (g - h) + h, h(t) = h_1 t, a unit oriented by s adds s h_1 w (a, b) to the skip: beta =
    h_1 sum_i s_i w_i a_i, solved for s in {-1, 1}^k by trying all, or by least squares and then flips while
    they help.
    """
    theta = np.asarray(theta, float)
    if not form.symmetrised:
        weights, output, bias, beta, intercept = form.unpack(theta)
        return OneHiddenNet(weights, output, bias, intercept, form.activation, beta if linear else None)
    columns, beta = skip_columns(form, theta)
    if linear:
        rest = (beta - columns.sum(axis=1)).reshape(form.d, *form.tail)
        net = oriented(form, theta, np.ones(form.k))
        return OneHiddenNet(net.weights, net.output, net.bias, net.intercept, net.activation, rest)
    if form.k <= 14:
        patterns = all_orientations(form.k)
        misfit = np.sum((beta - patterns @ columns.T) ** 2, axis=1)
        return oriented(form, theta, patterns[int(np.argmin(misfit))])
    signs = np.where(np.linalg.lstsq(columns, beta, rcond=None)[0] < 0, -1.0, 1.0)
    misfit = beta - columns @ signs
    for _ in range(4 * form.k):
        change = 4 * signs * (columns.T @ misfit) + 4 * np.sum(columns**2, axis=0)
        best = int(np.argmin(change))
        if change[best] >= -1e-12 * (beta @ beta):
            break
        misfit = misfit + 2 * signs[best] * columns[:, best]
        signs[best] = -signs[best]
    return oriented(form, theta, signs)


def skip_columns(form: Parametrisation, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(d q, k) what each unit adds to the skip in its own orientation, and the fitted skip (d q,)."""
    weights, output, _, beta, _ = form.unpack(theta)
    each = weights[:, :, None] * output.reshape(form.k, 1, form.q)
    return form.activation.orientation_part[1] * each.reshape(form.k, -1).T, beta.reshape(-1)


def all_orientations(k: int) -> np.ndarray:
    """(2^k, k) every pattern of signs, all positive first."""
    return 1.0 - 2.0 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)


def oriented(form: Parametrisation, theta: np.ndarray, signs: np.ndarray) -> OneHiddenNet:
    """Return the network of an orientation-free fit with its units oriented by these signs."""
    weights, output, bias, _, intercept = form.unpack(theta)
    slope = form.activation.orientation_part[1]
    weights, bias = weights * signs[:, None], bias * signs
    constant = intercept - slope * (bias @ output)
    return OneHiddenNet(weights, output, bias, constant, form.activation)
