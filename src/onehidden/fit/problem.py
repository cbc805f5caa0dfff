"""The problem: which rows, which parameters are free, in which coordinates, and the family of y; its optima.

Starts, the final optimisation and the certificate take it. At a network every family of y is a weighted
least-squares problem (``at``): searches and local diagnostics use that one. ``optimise`` is the final
optimisation, in all free parameters; others are in the linear ones or in the outputs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.families import Family
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.least_squares import FisherScoring, InMemoryLeastSquares, deviances, working_rows
from onehidden.fit.parametrisation import Parametrisation, roots, weighed
from onehidden.fit.samples import A, NetworkLeastSquares, Rows, RowSum, Samples
from onehidden.fit.shared_noise import likely_ratio
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt
from onehidden.solvers.levenberg import Problem as LeastSquares

TO_COMPARE = 0.1  # tolerance of a network that is only compared with another


@dataclass(frozen=True, eq=False)
class Problem:
    """The fit of a network to rows: least squares, or the deviance of a family.

    It has two coordinate systems. Searches use whitened and centred inputs Z (``search_coordinates``); there
    the units may need biases even when the answer has none. The final optimisation uses those in which the
    free parameters are those of the answer (``fit_coordinates``).
    """

    rows: Rows = field(repr=False)
    form: Parametrisation  # the free parameters of the answer, in the coordinates ``fit_coordinates``
    whitening: Coordinates = field(repr=False)  # in which the rows are white
    input_model: Any = field(default=None, repr=False)  # what starts know about the law of the inputs
    family: Family | None = None  # of y, with rows in memory; None for normal noise
    offset: Float[np.ndarray, " n"] | None = field(default=None, repr=False)  # added to the network's output
    trials: Float[np.ndarray, " n"] | None = field(default=None, repr=False)  # weights hold them, too

    def with_width(self, k: int) -> Problem:
        """The same rows, k units."""
        return replace(self, form=replace(self.form, k=k))

    def with_activation(self, activation: Activation) -> Problem:
        """The same rows, other units."""
        return replace(self, form=replace(self.form, activation=activation))

    def take(self, index: Int[np.ndarray, " m"]) -> Problem:
        """Some of the rows, in the same coordinates."""
        offset, trials = (None if own is None else own[index] for own in (self.offset, self.trials))
        return replace(self, rows=self.samples.take(index), offset=offset, trials=trials)

    def halves(self, rng: np.random.Generator) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " l"]]:
        """The numbers of the rows of either half; rows of a group stay together."""
        groups = self.samples.groups
        if groups is not None:
            first = rng.permutation(groups.max() + 1)[groups] % 2 == 0
            return np.flatnonzero(first), np.flatnonzero(~first)
        order = rng.permutation(self.n)
        return order[: self.n // 2], order[self.n // 2 :]

    @property
    def samples(self) -> Samples:
        """The rows, which must be in memory for a search."""
        assert isinstance(self.rows, Samples)
        return self.rows

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def n_values(self) -> int:
        """Number of target values, n q."""
        return self.rows.n * self.form.q

    def deviance(self, mean_square: float) -> float:
        """-2 log-likelihood of a fit of this mean square or mean deviance, up to a constant."""
        if self.family is not None and not self.family.scaled:
            return self.n_values * mean_square
        return self.n_values * float(np.log(max(mean_square, np.finfo(float).tiny)))

    def excess_deviance(self, mean_square: float, other: float) -> float:
        """Deviance difference of another fit: n log(loss_other / loss) where the noise is normal."""
        return self.deviance(other) - self.deviance(mean_square)

    @property
    def activation(self) -> Activation:
        return self.form.activation

    @property
    def k(self) -> int:
        return self.form.k

    @property
    def d(self) -> int:
        """Coordinates of Z."""
        return self.whitening.rank

    @property
    def bias(self) -> bool:
        """Whether units have biases in the search: always, where the rows are not centred at the origin."""
        return self.form.bias or not (self._centred or self.form.structure)

    @cached_property
    def _centred(self) -> bool:
        """Whether the mean of the rows is the origin, within its standard error."""
        offset = self.whitening.shift @ self.whitening.whiten
        rank = self.whitening.rank
        return self.n * float(offset @ offset) <= rank + 5 * np.sqrt(2 * rank)

    @cached_property
    def search_coordinates(self) -> Coordinates:
        """Coordinates of the search; without biases they keep the origin of x where possible.

        A structure is kept from the beginning: the search has the coordinates of the final optimisation.
        """
        if self.form.structure is not None:
            return self.fit_coordinates
        if self.form.bias or not self._centred:
            return self.whitening
        return replace(self.whitening, shift=np.zeros_like(self.whitening.shift))

    @cached_property
    def fit_coordinates(self) -> Coordinates:
        """Coordinates of the final optimisation: no level without an intercept, no shift without biases."""
        around, form = self.whitening, self.form
        # Biases take up a shift; with a linear part an intercept must, too.
        shifted = form.bias and (form.intercept or not form.skip)
        level = around.level if form.intercept else np.zeros_like(around.level)[()]
        return replace(around, shift=around.shift if shifted else np.zeros_like(around.shift), level=level)

    @cached_property
    def Z(self) -> Float[np.ndarray, "n d"]:
        """Inputs of the search."""
        return self.search_coordinates.inputs(self.samples.X)

    @cached_property
    def y(self) -> Float[np.ndarray, "n ..."]:
        """Target of the search, (n,) or (n, q), of mean 0 and variance 1."""
        return self.search_coordinates.target(self.samples.y)

    @property
    def weight(self) -> Float[np.ndarray, " n"] | None:
        """(n,) weights of the rows, of mean one; None where all are equal."""
        return self.samples.row_weight

    @property
    def offsets(self) -> Float[np.ndarray, "n ..."]:
        """The offset in the shape of y."""
        y = self.samples.y
        if self.offset is None:
            return np.zeros_like(y)
        return np.broadcast_to(self.offset.reshape(-1, *[1] * (y.ndim - 1)), y.shape)

    def at(self, network: OneHiddenNet) -> Problem:
        """The IRLS working problem at a network, in x: weighted least squares.

        At a minimum of the deviance its residuals are Pearson's, its J'J the information, and its noise has
        the variance phi of the family. Normal noise is such a problem already.
        """
        return self if self.family is None else self.at_outputs(network.predict(self.samples.X))

    def at_outputs(self, outputs: Float[np.ndarray, "n ..."]) -> Problem:
        """The same at values of the network, one row a sample."""
        if self.family is None:
            return self
        samples = self.samples
        target, weight = working_rows(self.family, samples.y, outputs, self.offsets, samples.weight)
        rows = replace(samples, y=target, weight=weight, noisy=True)
        own = rows.row_weight
        assert own is not None
        mean = float(own.mean())
        known = None if self.family.scaled else 1.0
        rows = replace(rows, weight=weight / mean, unit=1 / mean, dispersion=known)
        level = rows.share @ target
        spread = float(np.sqrt(np.mean(rows.share @ (target - level) ** 2)))
        # One scale for all outputs: the information of a row stays in their own units.
        scale = spread if target.ndim == 1 else spread * np.eye(target.shape[1])
        whitening = replace(self.whitening, level=float(level) if target.ndim == 1 else level, scale=scale)
        return replace(self, rows=rows, whitening=whitening, family=None, offset=None)

    @property
    def marginal(self) -> Problem:
        """The same problem, no noise of a group taken out of its rows."""
        if self.family is not None or not isinstance(self.rows, Samples) or not self.rows.ratio:
            return self
        return replace(self, rows=replace(self.rows, ratio=None))

    def with_noise_of(self, network: OneHiddenNet) -> Problem:
        """The problem with the noise about a network, in x; itself where nothing can be estimated.

        A family takes its own parameters from the residuals, and groups of rows the variance of what their
        rows share. Outputs take the covariance C of theirs: with
        Y = network + E C^(1/2), Y C^(-1/2) has independent noise of one size, so that generalised least
        squares is least squares in other units of y.
        """
        samples = self.samples
        if self.family is not None:
            eta = network.predict(samples.X) + self.offsets
            family = self.family.estimated(samples.y, eta, samples.weight)
            return self if family == self.family else replace(self, family=family)
        if samples.ratio is not None and samples.groups is not None:
            fit = replace(samples, ratio=None).least_squares(self.form, self.fit_coordinates)
            assert isinstance(fit, InMemoryLeastSquares)
            ratio = likely_ratio(fit, self.theta(network), samples.groups, samples.weight)
            if abs(ratio - samples.ratio) <= 1e-7 * ratio:
                return self
            return replace(self, rows=replace(samples, ratio=ratio))
        if self.form.outputs is None or (samples.weight is not None and samples.weight.ndim > 1):
            return self
        residual = weighed(roots(samples.weight, samples.n), network.predict(samples.X) - samples.y)
        covariance = residual.T @ residual / max(samples.n - self.form.freedom / self.form.q, 1)
        value, vector = np.linalg.eigh(covariance)
        value = np.maximum(value, 1e-8 * value[-1])  # outputs that are functions of others have no noise
        # The determinant is kept: -2 log-likelihood is n q log(mean square) in these units, too.
        before = float(np.linalg.slogdet(self.whitening.scale)[1])
        size = np.exp((before - 0.5 * float(np.sum(np.log(value)))) / len(value))
        scale = size * np.sqrt(value)[:, None] * vector.T
        return replace(self, whitening=replace(self.whitening, scale=scale))

    def row_losses(self, network: OneHiddenNet) -> Float[np.ndarray, " n"]:
        """(n,) share of each row in the loss of a network, in x."""
        if self.family is not None:
            eta = network.predict(self.samples.X) + self.offsets
            return deviances(self.family, self.samples.y, eta, self.samples.weight)
        # By its predictions: the form may not have the linear part of the network.
        residual = self.fit_coordinates.target(network.predict(self.samples.X)) - self.fit_coordinates.target(
            self.samples.y
        )
        weight = 1.0 if self.samples.weight is None else self.samples.weight.reshape(self.n, -1)
        return np.sum(weight * residual.reshape(self.n, -1) ** 2, axis=1)

    def weighted(self, columns: np.ndarray) -> np.ndarray:
        """Rows times the root of their weight, for weighted least squares."""
        return columns if self.weight is None else weighed(np.sqrt(self.weight), columns)

    @cached_property
    def least_squares(self) -> NetworkLeastSquares:
        """The loss as a function of the free parameters in the coordinates ``fit_coordinates``."""
        if self.family is None:
            return self.rows.least_squares(self.form, self.fit_coordinates)
        samples, Z = self.samples, self.fit_coordinates.inputs(self.samples.X)
        return FisherScoring(self.form, Z, samples.y, self.family, samples.weight, self.offsets)

    def fold(self, make: Callable[[], A], by_group: bool = False) -> A:
        """An accumulator with all rows, in the coordinates ``fit_coordinates``."""
        return self.rows.fold(make, self.fit_coordinates, by_group)

    def sums(
        self, terms: Callable[..., Sequence[np.ndarray]], *known: object, by_group: bool = False
    ) -> list[np.ndarray]:
        """Sums over all rows of ``terms(*known, Z, y, weight, row)``, in ``fit_coordinates``."""
        return self.fold(partial(RowSum, partial(terms, *known)), by_group).result()

    def theta(self, network: OneHiddenNet) -> Float[np.ndarray, " p"]:
        """Parameters in the coordinates ``fit_coordinates`` of a network in x; a linear one has no units."""
        inner, k = self.fit_coordinates.inward(network), self.form.k
        return self.form.pack(
            inner.weights[:k], inner.output[:k], inner.bias[:k], inner.linear, inner.intercept
        )

    def canonical(self, network: OneHiddenNet) -> OneHiddenNet:
        """The canonical form of a network; with a structure only as far as that is kept."""
        known = self.form.structure
        if known is None:
            return network.canonical()
        return network.canonical(ordered=known.units is None, turned=False)

    def at_free_parameters(self, network: OneHiddenNet) -> Problem:
        """The problem of the parameters that are not at their bounds at a network, in x."""
        free, known = self.form.free, self.form.structure
        if free is None or known is None or free.bounded is None:
            return self
        inside = free.without(free.at_bound(self.theta(self.canonical(network))))
        return replace(self, form=replace(self.form, structure=replace(known, given=inside)))

    def network(self, theta: Float[np.ndarray, " p"]) -> OneHiddenNet:
        """The network in x of parameters in ``fit_coordinates``; what is not free stays zero."""
        weights, output, bias, beta, constant = self.form.unpack(theta)
        net = self.fit_coordinates.outward(
            OneHiddenNet(weights, output, bias, constant, self.activation, beta)
        )
        # Rounding must not leave a bias or an intercept where none was free.
        return OneHiddenNet(
            net.weights,
            net.output,
            net.bias if self.form.bias else np.zeros(self.form.k),
            net.intercept if self.form.intercept else 0.0,
            net.activation,
            net.linear,
        )


@dataclass(frozen=True)
class Optimum:
    """A network after the final optimisation, in x.

    ``mean_square`` of its residuals is in units of var(y); with a family it is the mean deviance.
    """

    network: OneHiddenNet
    mean_square: float


def optimise(
    network: OneHiddenNet, problem: Problem, run: Run, *, warm: bool = False, tolerance: float = 1e-4
) -> Optimum:
    """Minimise the loss from a network, in x, in all its free parameters.

    ``warm`` says that the network is near its minimum: the first step is then taken almost without damping.
    Two steps in a row that lower n log(loss) by less than ``tolerance`` are the last; a standard error is 1
    on this scale.
    """
    fit, theta = problem.least_squares, problem.theta(network)
    n, streamed = problem.n_values, problem.rows.streamed
    floor = problem.rows.rounding.floor(n)
    if streamed:
        if (loss := fit.loss(theta)) <= floor:  # the pass serves the certificate of this network, too
            return Optimum(network, loss / n)
        # A step is a pass over all rows: none for a twentieth of a standard error, 2e-3 of n log(loss).
        solver = LevenbergMarquardt(100, floor, patience=5, predicted_rtol=max(1e-13, 2e-3 / n))
    else:
        solver = LevenbergMarquardt(300, floor, patience=20, rtol=tolerance / n)
    solver = replace(solver, damping=1e-6 if warm or streamed else 1e-3)
    stage = "final optimisation on all rows" if streamed else "final optimisation"
    theta, loss = descend(solver, fit, theta, run, stage, n)
    return Optimum(problem.network(theta), loss / n)


def descend(
    solver: LevenbergMarquardt,
    fit: LeastSquares,
    theta: Float[np.ndarray, " p"],
    run: Run,
    stage: str,
    n: int,
) -> tuple[Float[np.ndarray, " p"], float]:
    """Where a solver ends within the time of a run, and the loss there.

    Progress is reported and the state recorded after each step.
    """
    kept = run.recall()
    if run.expired():  # no step will be taken: J'J at the first point is not needed
        theta = theta if kept is None else kept["theta"]
        return theta, fit.loss(theta)
    state = solver.init(fit, theta, kept)
    while not solver.done(state) and not run.expired():
        before, state = state.steps, solver.step(fit, state)
        if state.steps > before:
            run.report(stage, state.steps, state.loss / n)
            if run.journal is not None:
                run.keep(state.to_arrays(), passing=True)
    return state.theta, state.loss


def linear_network(problem: Problem, inputs: bool = True) -> OneHiddenNet:
    """The linear function as a network, in x, whose units add nothing; without ``inputs`` a constant.

    Its parametrisation has no units. The loss is convex: Fisher scoring takes 5 to 10 steps, and ends at a
    deviance of 1e-6 where classes are separable and the maximum lies at infinity.
    """
    k, d = max(problem.k, 1), problem.samples.X.shape[1]
    form = replace(problem.form, k=0, bias=True, intercept=True, skip=inputs, symmetrised=False)
    linear = replace(problem, form=form)
    level = np.zeros(form.q)
    if problem.family is not None:
        level = level + problem.family.start(problem.samples.y, problem.samples.weight)
        level = level - np.average(problem.offsets.reshape(problem.n, -1), axis=0, weights=problem.weight)
    theta = form.pack(np.zeros((0, form.d)), np.zeros((0, form.q)), intercept=level)
    floor = 1e-6 if problem.family is not None else problem.rows.rounding.floor(problem.n_values)
    solver = LevenbergMarquardt(max_steps=50, floor=floor, damping=1e-13)
    _, _, _, beta, constant = form.unpack(solver.solve(linear.least_squares, theta).theta)
    nothing = np.zeros((k, *form.tail))
    inner = OneHiddenNet(np.eye(k, form.d), nothing, None, constant, problem.activation, beta)
    net = linear.fit_coordinates.outward(inner)
    return OneHiddenNet(
        np.tile(np.eye(d)[0], (k, 1)), nothing, None, net.intercept, net.activation, net.linear
    )


def searched(problem: Problem) -> Problem:
    """The least-squares problem on which units are searched: that of Fisher scoring at a simple network.

    It is taken at the observations themselves, moved off the boundary of the range of the mean by half a row:
    counts over several powers of ten are of one size there, and labels are 0 and 1 but for a factor.
    """
    if problem.family is None:
        return problem
    family = problem.family
    near = family.eta_of(np.asarray(family.inside_range(problem.samples.y, 1)))
    return problem.at_outputs(near - problem.offsets)


def with_best_outputs(network: OneHiddenNet, problem: Problem) -> OneHiddenNet:
    """The network, in x, with the most likely outputs of its units; itself where none are more likely.

    A search sees the working rows of a family at one linear function. Outputs found there may lie far off:
    behind a log link they add up to exp(40) on some rows, from where a descent does not come back. For fixed
    units the likelihood is that of a generalised linear model, concave for the canonical links.
    """
    form, X = problem.form, problem.samples.X
    if not form.intercept:
        return network
    columns = network.activation(X @ network.weights.T + network.bias)
    columns = np.column_stack([columns, X]) if form.skip else columns
    varying = np.ptp(columns, axis=0) > 0  # a unit that is off on all rows keeps its output
    if not varying.any():
        return network
    samples = replace(problem.samples, X=columns[:, varying])
    whitening = replace(
        samples.coordinates(True), level=problem.whitening.level, scale=problem.whitening.scale
    )
    units = replace(form, d=whitening.rank, k=1)
    fitted = linear_network(replace(problem, rows=samples, form=units, whitening=whitening, input_model=None))
    coefficients = np.concatenate([network.output, network.linear]) if form.skip else network.output.copy()
    coefficients[varying] = fitted.linear
    output, skip = coefficients[: form.k], coefficients[form.k :] if form.skip else None
    other = OneHiddenNet(network.weights, output, network.bias, fitted.intercept, network.activation, skip)
    losses = [float(np.sum(problem.row_losses(one))) for one in (network, other)]
    return other if losses[1] < losses[0] or not np.isfinite(losses[0]) else network
