"""What a start returns: a candidate network with its loss; and the descent that every start ends with."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from onehidden.fit.form import Form
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.polish import descend
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt
from onehidden.starts.orientation import orient

_ENOUGH = (
    3  # rows a parameter on which a descent begins (d = k = 50, n = 16 384: half the time of all rows) ...
)
_SAVING = 1.5  # ... where there are at least so many times more
# Share by which each step lowers the loss next to a fit to rounding: from the units of half-trained students
# (d = k = 50, n = 16 384, loss 1e-2) .8 to .999.
_HALF = 0.5
_FEWEST = 4096  # rows below which there is nothing to save
_CHOOSE = 20_000  # rows on which hyperplanes are chosen among hundreds: no more than a descent needs

Rows = Float[np.ndarray, "k d"]
Vector = Float[np.ndarray, " k"]


@dataclass(frozen=True)
class Candidate:
    """A network in the search coordinates of the problem and where it came from.

    Attributes
    ----------
    network : the units, oriented.
    loss : mean squared residual in the search form, that is before orientations are rounded to signs.
    origin : the start.
    weights, bias : (k, d), (k,) hyperplanes of the search form.
    student : whether a wide student found it: what those miss, random restarts hardly find.
    bred : whether it is made of the units of others.
    """

    network: OneHiddenNet
    loss: float
    origin: str
    weights: Rows = field(repr=False)
    bias: Vector = field(repr=False)
    student: bool = False
    bred: bool = False


def search_form(problem: Problem, k: int | None = None) -> Form:
    """The orientation-free form with a linear skip where reversal is linear, the plain form elsewhere.

    Where the answer has a linear part the search has it, too.
    """
    g = problem.activation
    free = g.reflection is not None and g.reflection.degree == 1
    units = problem.k if k is None else k
    skip, outputs = free or problem.form.skip, problem.form.outputs
    return Form(g, problem.d, units, problem.bias, True, skip, symmetrised=free, outputs=outputs)


def search_fit(problem: Problem, form: Form) -> NetworkFit:
    """The least-squares problem of a form over the rows of a search."""
    return NetworkFit(form, problem.Z, problem.y, problem.weight)


def refine(
    problem: Problem,
    form: Form,
    theta: Float[np.ndarray, " p"],
    run: Run,
    origin: str,
    max_steps: int = 60,
    patience: int = 6,
    slow: float = 1e-3,
) -> Candidate:
    """Levenberg–Marquardt in the search form until it stops paying, then orientations.

    It ends after ``patience`` steps in a row that each lower the loss by a smaller share than ``slow``.
    """
    n = problem.numbers
    floor = problem.rows.rounding.search_floor(n)
    solver = LevenbergMarquardt(
        max_steps, floor, beyond=False, patience=patience, slow=slow, enough=1e-2 / n, least=1e-13
    )
    solution = descend(solver, search_fit(problem, form), theta, run.at("descent"), origin, n)
    weights, _, bias, _, _ = form.unpack(solution.theta)
    network = orient(form, solution.theta, problem.form.skip)
    return Candidate(network, solution.loss / n, origin, weights, bias)


def best_refined(
    problem: Problem, form: Form, planes: Float[np.ndarray, "P k e"], run: Run, origin: str
) -> Candidate:
    """The best of these networks, given by hyperplanes (a_i, b_i), after a descent in double precision."""
    best = None
    for number, plane in enumerate(np.asarray(planes, float)):
        if best is not None and run.expired():
            break
        bias = plane[:, form.d] if form.bias else np.zeros(form.k)
        theta = complete(problem, form, plane[:, : form.d], bias)
        found = refine(problem, form, theta, run.at("member", number), origin)
        best = found if best is None or found.loss < best.loss else best
    assert best is not None
    return best


def refine_in_two(
    problem: Problem, form: Form, weights: Rows, bias: Vector, run: Run, origin: str
) -> Candidate:
    """Refined from these hyperplanes; where rows abound, most of the way on some of them."""
    few = _enough_rows(problem, form, run)
    if few is not None:
        found = refine(few, form, complete(few, form, weights, bias), run.at("some rows"), origin)
        rounding = problem.rows.rounding
        if rounding.found(found.loss):
            loss = completed_loss(problem, form, found.weights, found.bias)
            if rounding.found(loss):  # the finish needs no more
                return replace(found, loss=loss)
        weights, bias = found.weights, found.bias
    return refine(problem, form, complete(problem, form, weights, bias), run, origin)


def refine_at_once(
    problem: Problem, form: Form, weights: Rows, bias: Vector, run: Run, origin: str
) -> Candidate | None:
    """Refined to rounding by steps that halve the loss at least, each of them; None as soon as one does not.

    From the units of a network without noise all do; with noise the first or the second does not.
    """
    few = _enough_rows(problem, form, run) or problem
    begin = complete(few, form, weights, bias)
    found = refine(few, form, begin, run.at("some rows"), origin, patience=1, slow=_HALF)
    rounding = problem.rows.rounding
    if not rounding.found(found.loss):
        return None
    loss = found.loss if few is problem else completed_loss(problem, form, found.weights, found.bias)
    return replace(found, loss=loss) if rounding.found(loss) else None


def _enough_rows(problem: Problem, form: Form, run: Run) -> Problem | None:
    """The problem on as many rows as determine its parameters well; None where that would save little."""
    rows = max(_ENOUGH * form.size, _FEWEST)
    if problem.n < _SAVING * rows:
        return None
    return some_rows(problem, rows, run.rng("some rows"))


def some_rows(problem: Problem, most: int, rng: np.random.Generator) -> Problem:
    """The problem on so many of its rows at most, in their order."""
    if problem.n <= most:
        return problem
    return problem.take(np.sort(rng.choice(problem.n, most, replace=False)))


def rows_to_choose(problem: Problem) -> Problem:
    """The problem on rows spread evenly over its own, to choose among many hyperplanes in bounded memory."""
    every = max(1, problem.n // _CHOOSE)
    return problem if every == 1 else problem.take(np.arange(0, problem.n, every))


def lift(candidate: Candidate, basis: Float[np.ndarray, "d r"]) -> Candidate:
    """A candidate of a subspace in the coordinates of the whole."""
    net = candidate.network
    lifted = OneHiddenNet(
        net.weights @ basis.T, net.output, net.bias, net.intercept, net.activation, basis @ net.linear
    )
    return replace(candidate, network=lifted, weights=candidate.weights @ basis.T)


def unit_columns(
    form: Form, Z: Float[np.ndarray, "n d"], weights: Rows, bias: Vector
) -> Float[np.ndarray, "n k"]:
    """(n, k) values of units with these hyperplanes, in the form's activation."""
    return form.g(Z @ weights.T + bias)


def fixed_columns(form: Form, Z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
    """The columns every least-squares fit of a form has: a constant and, with a skip, the inputs."""
    return np.column_stack([np.ones(len(Z)), *([Z] if form.skip else [])])


def least_squares_columns(
    problem: Problem, form: Form, weights: Rows, bias: Vector
) -> Float[np.ndarray, "n m"]:
    """Weighted columns of the units, then the fixed ones: what outputs, intercept and skip multiply."""
    columns = [unit_columns(form, problem.Z, weights, bias), fixed_columns(form, problem.Z)]
    return problem.weighted(np.column_stack(columns))


def complete(problem: Problem, form: Form, weights: Rows, bias: Vector) -> Float[np.ndarray, " p"]:
    """Parameters with the given hyperplanes and least-squares outputs, skip and intercept."""
    # A trace of ridge: parallel units would share one output as +huge and -huge.
    design = least_squares_columns(problem, form, weights, bias)
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += 1e-8 * np.trace(gram) / len(gram)
    coefficient = np.linalg.solve(gram, design.T @ problem.weighted(problem.y))
    k = len(weights)
    beta = coefficient[k + 1 :] if form.skip else None
    return form.pack(weights, coefficient[:k], bias, beta, coefficient[k])


def completed_loss(problem: Problem, form: Form, weights: Rows, bias: Vector) -> float:
    """Mean squared residual with the given hyperplanes, everything else by least squares."""
    return search_fit(problem, form).loss(complete(problem, form, weights, bias)) / problem.numbers
