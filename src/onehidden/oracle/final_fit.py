"""The final optimisation of a layer: where to query, and least squares with J as a linear operator.

Close to the hyperplane of a unit, at a distance from the centre where the others have settled, the answers
depend on its parameters alone: the least-squares problem falls apart into one per unit, however alike two
units look near the centre. Products with J in single precision are enough for a step: the residual is
computed in double precision, and the end has all digits (iterative refinement). Where J'J is small enough, it
is summed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify.local_fit import root_of_inverse
from onehidden.fit.parametrisation import residuals_and_jacobian
from onehidden.fit.problem import descend
from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.domain import Outputs, Points
from onehidden.oracle.layer import ROWS, Layer, Queries
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt, damped_least_squares


def most_queries(layer: Layer, room: float = 1.5 * 2**30) -> int:
    """Queries to which a layer can be fitted in that many bytes."""
    (k, d), q = layer.weights.shape, len(layer.constant)
    return int(room / (4 * d + 12 * k + 40 * q))


def answers_at(box: BlackBox, U: Points) -> Queries:
    """The queries that were answered, within the budget, with the errors of their answers."""
    U, Y = box.answers_at(U[: int(min(len(U), 0.8 * box.caller.left))])
    return Queries(U, Y, box.error_at(U, Y))


def kink_queries(box: BlackBox, layer: Layer, near: float = 0.5) -> Queries:
    """Queries for kinked units with rows of length one: typical ones, and a share near the hyperplanes.

    The singular values of a random Jacobian lie in 1 +- (parameters / queries)^1/2: with three times as many
    queries LSMR gains a factor of 0.58 a product, with twice 0.71. Low precision is averaged by a fourth.
    """
    k, d = layer.weights.shape
    free = (k * (d + 1) + box.q * (k + d + 1)) / box.q  # parameters for each number of an answer
    n = int(max(400, (4.0 if box.low_precision else 3.0) * free + 200))
    n = int(min(min(n, most_queries(layer)) / box.share, 0.8 * box.caller.left))  # some are not answered
    U = np.empty((n, d), np.float32)
    for begin in range(0, n, 8192):
        part = np.arange(begin, min(begin + 8192, n))
        rows = box.typical(len(part))
        # Moved along its row by its bias: the unit sees them as if its hyperplane went through the centre.
        rows -= np.where(part >= (1 - near) * n, layer.bias[part % k], 0.0)[:, None] * layer.weights[part % k]
        # From far away absolute errors are small beside the answers: rows are determined there. Beyond 1e4
        # the sums of near and far queries lose the near ones.
        rows[::3] *= min(box.exact_far_away, 1e4)
        outside = np.flatnonzero(box.margin(rows) < 0)
        rows[outside] = _across(box, layer.units(part[outside] % k), box.typical(len(outside)))
        U[part] = rows
    return answers_at(box, U[box.margin(np.asarray(U, float)) >= 0])


def _across(box: BlackBox, layer: Layer, U: Points) -> Points:
    """Rows between U, one a unit, and the corner of the domain across its hyperplane, on both sides of it."""
    low, high = ((end - box.center) / box.scale for end in (box.domain.low, box.domain.high))
    z = np.sum(U * layer.weights, axis=1) + layer.bias
    corner = np.where((layer.weights > 0) == (z < 0)[:, None], high, low)
    corner = np.where(np.isfinite(corner), corner, U)
    beyond = np.sum(corner * layer.weights, axis=1) + layer.bias
    crossed = beyond * z < 0
    share = np.divide(beyond, beyond - z, out=np.ones_like(z), where=crossed)
    share = np.where(crossed, np.minimum(2 * share * box.rng.random(len(U)), 1.0), 1.0)
    return corner + share[:, None] * (U - corner)


def transition_queries(box: BlackBox, layer: Layer, degree: int, each: int = 2) -> Queries:
    """Queries for smooth units, ``each`` times as many as parameters near the hyperplanes, near and far."""
    k, d = layer.weights.shape
    free = (k * (d + 1) + box.q * (k + d + 1)) / box.q  # parameters for each number of an answer
    each = each if 1.5 * each * free <= most_queries(layer) else 1
    around = box.rng.standard_normal((max(1000, int(each * free / 2)), d)).astype(np.float32)
    around[: len(around) // 3] *= 2.0
    rows = [around[np.max(np.abs(around), axis=1) <= box.reach]]
    count = int(each * free / k) + 6
    farthest = 1e3 if degree else 1e4  # 1/|a|
    if box.low_precision:  # distance costs digits that are not there
        farthest = min(farthest, 30.0)
    for a, b in zip(layer.weights, layer.bias, strict=True):
        size = float(np.linalg.norm(a))
        far = np.exp(box.rng.uniform(0.0, np.log(max(farthest / size, 2.0)), count))
        z = box.rng.uniform(-4, 4, count)
        if np.isfinite(box.reach):
            far = np.minimum(far, box.reach / 3)
        point = far[:, None] * box.rng.standard_normal((count, d))
        point += ((z - point @ a - b) / size**2)[:, None] * a
        rows.append(point[np.max(np.abs(point), axis=1) <= box.reach].astype(np.float32))
    return answers_at(box, np.vstack(rows))


DENSE = 1200  # parameters up to which steps are solved by factorisations of J'J and J


class LayerLeastSquares:
    """The sum of weighted squared residuals of a layer over queries; J'J in double precision.

    In single precision a direction that changes nothing, the length of a row, would seem to change it.
    """

    def __init__(self, layer: Layer, queries: Queries) -> None:
        self.layer, self.queries = layer, queries

    def residual(self, theta: Float[np.ndarray, " p"]) -> Outputs:
        return (self.layer.moved(theta).predict(self.queries.U) - self.queries.Y) * self.queries.weight[
            :, None
        ]

    def loss(self, theta: Float[np.ndarray, " p"]) -> float:
        return float(np.sum(self.residual(theta) ** 2))

    def normal_equations(
        self, theta: Float[np.ndarray, " p"], rough: bool = False
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"], float]:
        form, (U, Y), root = self.layer.form, (self.queries.U, self.queries.Y), self.queries.weight
        hessian, gradient, loss = np.zeros((form.size, form.size)), np.zeros(form.size), 0.0
        height = max(form.size // form.q + 1, (64 << 20) // (8 * form.size * form.q))
        for begin in range(0, len(U), height):  # 64 MiB of J on the host: a box is no reason to compile
            part = slice(begin, begin + height)
            r, J = residuals_and_jacobian(form, theta, np.asarray(U[part], float), Y[part], root[part])
            hessian, gradient, loss = hessian + J.T @ J, gradient + J.T @ r, loss + float(r @ r)
        return hessian, gradient, loss


class MatrixFreeLayer(LayerLeastSquares):
    """The same with its Jacobian as a linear operator; a step in progress ends with the time of the run."""

    def __init__(self, layer: Layer, queries: Queries, run: Run) -> None:
        super().__init__(layer, queries)
        self.run, self.latest = run, layer.pack()

    def linearise(self, theta: Float[np.ndarray, " p"]) -> LinearisedLayer:
        self.latest = theta
        return LinearisedLayer(self, theta)


class LinearisedLayer:
    """Residuals of a layer in double precision, and products with its Jacobian in single precision."""

    def __init__(self, problem: MatrixFreeLayer, theta: Float[np.ndarray, " p"]) -> None:
        self.run = problem.run
        self.layer, self.U = problem.layer.moved(theta), problem.queries.U
        self.residual = problem.residual(theta).ravel()
        self.weight = problem.queries.weight[:, None].astype(np.float32)
        n, k, form = len(self.U), self.layer.k, self.layer.form
        self.level, self.slope = np.empty((n, k), np.float32), np.empty((n, k), np.float32)
        for begin in range(0, n, ROWS):
            part = slice(begin, begin + ROWS)
            z = np.asarray(self.U[part], float) @ self.layer.weights.T + self.layer.bias
            self.level[part], self.slope[part] = form.g(z), form.slope(z)
        self.output = self.layer.output.astype(np.float32)
        squares = self._transposed(np.repeat(self.weight**2, form.q, axis=1), np.square)
        # Zero for columns that are rounding.
        self.lengths = np.sqrt(np.where(squares > 1e-12 * squares.max(), squares, 0.0))

    def jvp(self, step: Float[np.ndarray, " p"], /) -> Float[np.ndarray, " m"]:
        if self.run.expired():
            raise BudgetExceeded("the time is up")
        move = self.layer.moved(step.astype(np.float32))
        z = self.U @ move.weights.T
        z += move.bias
        z *= self.slope
        out = z @ self.output + self.level @ move.output + move.constant
        if move.form.skip:
            out += self.U @ move.linear
        return (out * self.weight).ravel().astype(float)

    def vjp(self, residual: Float[np.ndarray, " m"], /) -> Float[np.ndarray, " p"]:
        return self._transposed(residual.reshape(len(self.U), -1).astype(np.float32) * self.weight)

    def _transposed(
        self, R: Outputs, of: Callable[[np.ndarray], np.ndarray] = np.asarray
    ) -> Float[np.ndarray, " p"]:
        """Products of R with the columns of J, or with a power of their entries; of rows without weights."""
        total, form = np.zeros(self.layer.form.size), self.layer.form
        for begin in range(0, len(R), ROWS):
            part = slice(begin, begin + ROWS)
            U, level, slope, rest = of(self.U[part]), of(self.level[part]), of(self.slope[part]), R[part]
            S = (rest @ of(self.output).T) * slope
            total += form.pack(S.T @ U, level.T @ rest, S.sum(axis=0), U.T @ rest, rest.sum(axis=0))
        return total


def fitted(box: BlackBox, layer: Layer, queries: Queries, short: float = 3.0) -> Layer:
    """The layer in u after the final optimisation in all its parameters.

    Rows of a homogeneous g are brought to length one. In low precision the errors of
    the answers hide what a step gains: steps go on until they gain 0.5 %. A descent that leaves ``short``
    times the errors of the answers stopped before the minimum.
    """
    theta, n = layer.pack(), queries.Y.size
    floor = n * (short * queries.least) ** 2
    solver = LevenbergMarquardt(
        24, floor=floor, damping=1e-12, rtol=5e-3 if box.low_precision else 0.5, forcing=1e-2
    )
    solve_densely = len(theta) <= DENSE
    if not solve_densely:
        problem = MatrixFreeLayer(layer, queries, box.run)
        try:
            theta, loss = descend(solver, problem, theta, box.run, "final optimisation", n)
        except BudgetExceeded:
            theta, loss = problem.latest, 0.0
        # LSMR stops short where J is ill-conditioned; J'J of 1e12 operations takes about 30 s.
        solve_densely = loss > floor and n * float(len(theta)) ** 2 <= 1e12
    if solve_densely:
        solver = replace(solver, rtol=min(solver.rtol, 0.1))
        dense = LayerLeastSquares(layer, queries)
        theta, _ = descend(solver, dense, theta, box.run, "final optimisation", n)
    layer = layer.moved(theta)
    return layer if layer.form.activation.homogeneity is None else layer.unit_rows()


def simulated_errors(box: BlackBox, layer: Layer, queries: Queries, draws: int) -> list[Layer]:
    """Errors of the parameters for as many draws of the errors of the answers."""
    theta = layer.pack()
    if len(theta) > DENSE:
        at = LinearisedLayer(MatrixFreeLayer(layer, queries, box.run), theta)
        noise = (queries.least * box.rng.standard_normal(queries.Y.size) for _ in range(draws))
        return [layer.moved(damped_least_squares(at, one, forcing=0.03)) for one in noise]
    root = root_of_inverse(LayerLeastSquares(layer, queries).normal_equations(theta)[0])
    z = queries.least * box.rng.standard_normal((len(theta), draws))
    return [layer.moved(step) for step in (root @ z).T]
