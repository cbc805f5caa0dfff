"""Units of few inputs: half of the rows choose the inputs of each unit, the others are fitted.

Forward regression on the inputs and their squares screens the inputs, and a search finds units of those that
it keeps. Then weights leave and enter as long as the extended information criterion falls: the deviance, and
for each group of weights log n a weight and 2 log of the number of groups there are [CC]. The quadratic model
of the loss says which; every choice is fitted before it counts.

References
----------
[CC] Chen, Chen: Extended Bayesian information criteria for model selection with large model spaces,
Biometrika 95 (2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.problem import Problem, optimise, searched
from onehidden.network import OneHiddenNet
from onehidden.options import Options
from onehidden.recovery.solve import problem_of, search_units
from onehidden.recovery.target import Target
from onehidden.run import Run
from onehidden.starts.candidate import Start, rows_to_choose
from onehidden.starts.restarts import Near
from onehidden.structure import Sparse, Structure, Zeros

Inputs = Bool[np.ndarray, "k d"]  # of each unit
Columns = Int[np.ndarray, " m"]  # numbers of inputs


def with_chosen_inputs(target: Target, options: Options, run: Run) -> tuple[Target, Options]:
    """Return the rows that did not choose, and the options with the inputs of each unit and a start.

    A target that does not vary is returned as it is.
    """
    whole = problem_of(target.samples, options, target.family, target.offset, target.trials)
    if whole.whitening.constant:
        return target, options
    halves = whole.halves(run.unseeded().rng("rows that choose"))
    if target.samples.groups is None:  # by inputs alone: the order of the rows follows from y
        order = np.argsort(np.sum(whole.Z**2, axis=1), kind="stable")
        halves = order[halves[0]], order[halves[1]]
    choosing, estimating = (target.take(np.sort(half)) for half in halves)
    least = replace(options, structure=None).form(1).freedom
    for half in (choosing, estimating):
        still = np.any(np.ptp(half.samples.y, axis=0) == 0)
        if half.samples.n <= least or half.samples.n_groups == 1 or still:
            raise ValueError(
                f"structure='sparse' chooses inputs on half of the rows, here {half.samples.n}, and fits the "
                "others: bring enough rows, groups and values of y for either half, or leave it out"
            )
    parts = () if options.known is None else options.known.parts
    sparse = next(one for one in parts if isinstance(one, Sparse))
    others = tuple(one for one in parts if one is not sparse)
    choice = InputChoice(choosing, options, run, sparse, others)
    found = choice.chosen()
    start = [options.start] if isinstance(options.start, str | Start) else options.start
    return estimating, replace(
        choice.with_inputs(found.network, found.inputs), start=[Near(found.network), *start]
    )


@dataclass(frozen=True, eq=False)
class Choice:
    """Inputs of each unit, the network that was fitted to the rows, its problem and the criterion."""

    inputs: Inputs
    network: OneHiddenNet
    problem: Problem
    criterion: float


@dataclass(frozen=True, eq=False)
class InputChoice:
    """The choice of the inputs of each unit on the rows of a target."""

    target: Target
    options: Options
    run: Run
    sparse: Sparse
    others: tuple[Structure, ...]  # what else is known of the units

    @cached_property
    def groups(self) -> Int[np.ndarray, " d"]:
        """The number of the group of each input."""
        return self.sparse.numbers(self.target.samples.X.shape[1])

    def with_inputs(self, network: OneHiddenNet, inputs: Inputs) -> Options:
        """The options with these inputs of each unit."""
        structure = [Zeros(~inputs), *self.others]
        return replace(
            self.options, structure=structure, hidden=network.n_hidden, activation=network.activation
        )

    def problem(self, options: Options, columns: Columns | slice = slice(None)) -> Problem:
        """The problem of some columns of the rows."""
        target, samples = self.target, self.target.samples
        names = tuple(np.array(samples.names)[columns])
        samples = replace(samples, X=samples.X[:, columns], names=names)
        return problem_of(samples, options, target.family, target.offset, target.trials)

    def screened(self, found: Choice | None = None, rows_per_weight: int = 5, units: int = 8) -> Columns:
        """Inputs by forward regression, as many as units of all of them leave so many rows for each weight.

        After a choice they are its inputs and those that explain its residuals, if one is worth its cost.
        ``units`` is their number where it is to be found.
        """
        options, groups = replace(self.options, activation=self.options.g), self.groups
        problem = searched(self.problem(options)) if found is None else found.problem.at(found.network)
        most = max(1, problem.n_values // (rows_per_weight * (self.options.hidden or units)))
        problem, kept = rows_to_choose(problem), np.zeros(len(groups), bool)
        Z = problem.Z - problem.Z.mean(axis=0)
        columns = problem.weighted(np.hstack([Z, Z**2 - np.mean(Z**2, axis=0)]))
        left, charge = problem.weighted(problem.y), 0.0
        if found is not None:
            kept, left = found.inputs.any(axis=0), residuals(problem, found.network)
            charge = 2 * np.log(problem.n) + 2 * np.log(len(groups))
        left = left.reshape(problem.n, -1)
        while True:
            gain = explained(columns, left, np.tile(groups, 2))
            gain[groups[kept]] = 0.0
            best = groups == np.argmax(gain)
            if not gain.max() > charge * np.mean(left**2) or (kept.any() and np.sum(kept | best) > most):
                return np.flatnonzero(kept)
            kept, charge = kept | best, 0.0
            basis = orthonormal(columns[:, np.tile(best, 2)])
            columns, left = (rest - basis @ (basis.T @ rest) for rest in (columns, left))

    def dense(self, kept: Columns, run: Run) -> Choice:
        """Units of these inputs, by a search."""
        options = replace(self.options, structure=self.others or None)
        found = search_units(self.problem(options, kept), options, run).certificate.network
        columns = (found.weights.T, found.linear)
        weights, linear = (np.zeros((len(self.groups), *one.shape[1:])) for one in columns)
        weights[kept], linear[kept] = columns
        inputs = np.tile(np.isin(np.arange(len(weights)), kept), (found.n_hidden, 1))
        return self.fitted(replace(found, weights=weights.T, linear=linear), inputs, run)

    def fitted(self, network: OneHiddenNet, inputs: Inputs, run: Run) -> Choice:
        """The fit of units of these inputs, from a network."""
        problem = self.problem(self.with_inputs(network, inputs))
        network = replace(network, weights=np.where(inputs, network.weights, 0.0))
        # Units that were steep with more inputs need not be so with fewer.
        argument = np.std(self.target.samples.X @ network.weights.T + network.bias, axis=0)
        flat = 1 / np.where(argument > 0, argument, 1.0)
        flatter = replace(network, weights=network.weights * flat[:, None], bias=network.bias * flat)
        begun = [network] if network.activation.homogeneity is not None else [network, flatter]
        answers = [optimise(one, problem, run.at("fit", i), warm=i == 0) for i, one in enumerate(begun)]
        answer = min(answers, key=lambda one: one.mean_square)
        square = max(answer.mean_square, problem.rows.rounding.exact**2)  # digits beyond are no evidence
        labels, charges = self.charges(inputs)
        charged = float(np.sum(charges[np.unique(labels[inputs.ravel()])]))
        return Choice(inputs, answer.network, problem, problem.deviance(square) + charged)

    def chosen(self) -> Choice:
        """The choice of the least criterion; inputs that its residuals show enter another search."""
        best, kept, number = None, self.screened(), 0
        while True:
            run = self.run.at("search", number)
            found = self.path(self.dense(kept, run), run)
            if best is not None and not found.criterion < best.criterion:
                return best
            best, kept, number = found, self.screened(found), number + 1
            if run.expired() or set(kept) <= set(np.flatnonzero(found.inputs.any(axis=0))):
                return best

    def path(self, found: Choice, run: Run) -> Choice:
        """The choice of the least criterion that weights, as they leave and enter, lead to."""
        best, number = None, 0
        while True:
            number, here = number + 1, run.at("choice", number)
            local = self.linearised(found.network, found.inputs)
            out = local.leaving()
            while out:  # as many as lower the criterion
                gone = np.isin(local.labels, out).reshape(found.inputs.shape)
                fewer = self.fitted(found.network, found.inputs & ~gone, here.at("without", len(out)))
                if fewer.criterion < found.criterion:
                    break
                out = out[: len(out) // 2]
            if out:
                found = fewer
                continue
            if best is not None and not found.criterion < best.criterion:
                return best
            best, new = found, local.entering().reshape(found.inputs.shape)
            if run.expired() or not np.any(new):
                return best
            found = self.fitted(found.network, found.inputs | new, here)

    def charges(self, inputs: Inputs) -> tuple[Int[np.ndarray, " weights"], Float[np.ndarray, " groups"]]:
        """The number of the group of each weight, and what each group must lower the deviance by."""
        k, n = len(inputs), self.target.samples.n
        labels = (self.groups + (self.groups.max() + 1) * np.arange(k)[:, None]).ravel()
        return labels, np.bincount(labels) * np.log(n) + 2 * np.log(labels.max() + 1)

    def linearised(self, network: OneHiddenNet, inputs: Inputs) -> Linearised:
        """The quadratic model of the loss at a network in all weights, those of other inputs among them."""
        problem = self.problem(self.with_inputs(network, np.ones_like(inputs))).at(network)
        theta, fit, free = problem.theta(network), problem.least_squares, problem.form.free
        assert free is not None
        assert isinstance(fit, InMemoryLeastSquares)
        count, output = free.sizes[:2]
        # The scale of a homogeneous unit is fixed by its output.
        first_of_rest = count + (output if network.activation.homogeneity is not None else 0)
        J = fit.jacobian(theta, slice(None))
        labels, charges = self.charges(inputs)
        rest = J[:, first_of_rest:]
        return Linearised(
            theta[:count],
            J[:, :count],
            rest,
            fit.residuals(theta),
            inputs.ravel(),
            labels,
            len(inputs),
            charges,
        )


@dataclass(frozen=True, eq=False)
class Linearised:
    """Least squares in the weights, some of which are zero, and in the rest of the parameters."""

    weights: Float[np.ndarray, " m"]
    columns: Float[np.ndarray, "n m"]
    rest: Float[np.ndarray, "n r"]
    residuals: Float[np.ndarray, " n"]
    inside: Bool[np.ndarray, " m"]  # which weights are free now
    labels: Int[np.ndarray, " m"]  # their groups
    units: int
    charges: Float[np.ndarray, " groups"]  # what each group must lower the deviance by

    @cached_property
    def basis(self) -> Float[np.ndarray, "n r"]:
        """Orthonormal columns of all free parameters."""
        return orthonormal(np.hstack([self.columns[:, self.inside], self.rest]))

    @property
    def noise(self) -> float:
        """The variance of the residuals."""
        n, rank = self.basis.shape
        return float(self.residuals @ self.residuals) / max(n - rank, 1)

    def entering(self) -> Bool[np.ndarray, " m"]:
        """Weights whose groups would each lower the deviance by more than they cost, by score statistics."""
        basis, new = self.basis, ~self.inside
        columns, left = (one - basis @ (basis.T @ one) for one in (self.columns[:, new], self.residuals))
        gain = np.zeros(len(self.charges))
        found = explained(columns, left[:, None], self.labels[new])
        gain[: len(found)] = found
        return new & (gain / self.noise > self.charges)[self.labels]

    def leaving(self) -> list[int]:
        """Groups that cost more than they lower the deviance, by Wald statistics, one after another.

        At most half of the groups leave before the next fit: the quadratic model of saturated units is poor.
        The last group of a unit stays.
        """
        design = np.hstack([self.columns[:, self.inside], self.rest])
        gram = design.T @ design
        # A trace of ridge: of dependent columns one leaves at no cost.
        gram[np.diag_indices_from(gram)] += 1e-10 * np.max(np.diag(gram))
        covariance, weights = np.linalg.inv(gram), self.weights[self.inside]
        labels, out = self.labels[self.inside], list[int]()
        units = np.arange(len(self.charges)) // (len(self.charges) // self.units)
        every = np.unique(labels)
        while True:
            left = np.setdiff1d(every, out)
            left = left[np.bincount(units[left])[units[left]] > 1]
            costs = np.array([self._cost(covariance, weights, labels == one) for one in left])
            surplus = costs / self.noise - self.charges[left]
            if not np.any(surplus < 0) or len(out) == max(1, len(every) // 2):
                return out
            first = int(left[np.argmin(surplus)])
            at = np.flatnonzero(labels == first)
            moved = np.linalg.solve(covariance[np.ix_(at, at)], covariance[at])
            weights = weights - moved[:, : len(weights)].T @ weights[at]
            covariance = covariance - covariance[:, at] @ moved
            out.append(first)

    @staticmethod
    def _cost(covariance: np.ndarray, weights: np.ndarray, group: np.ndarray) -> float:
        """What the sum of squares rises by where the weights of a group become zero."""
        at = np.flatnonzero(group)
        return float(weights[at] @ np.linalg.solve(covariance[np.ix_(at, at)], weights[at]))


def residuals(problem: Problem, network: OneHiddenNet) -> Float[np.ndarray, " n"]:
    """Weighted residuals of a network, in x, without a family."""
    fit = problem.least_squares
    assert isinstance(fit, InMemoryLeastSquares)
    return fit.residuals(problem.theta(network))


def orthonormal(columns: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n r"]:
    """An orthonormal basis of the space of the columns."""
    basis, size, _ = np.linalg.svd(columns, full_matrices=False)
    return basis[:, size > 1e-10 * np.max(size, initial=0.0)]


def explained(
    columns: Float[np.ndarray, "n m"], y: Float[np.ndarray, "n q"], labels: Int[np.ndarray, " m"]
) -> Float[np.ndarray, " groups"]:
    """The sum of squares of y that each group of columns explains alone."""
    along, found = columns.T @ y, np.zeros(labels.max(initial=0) + 1)
    for one in np.unique(labels):
        at = labels == one
        gram = columns[:, at].T @ columns[:, at]
        found[one] = np.sum(along[at] * np.linalg.lstsq(gram, along[at], rcond=1e-8)[0])
    return found
