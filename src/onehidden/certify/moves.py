"""Other minima that an answer leads to by moves of its units, whatever the seed, order, scale and rotation.

Units are removed, one or two at a time, and replaced by the units that explain most of what is then left; two
are merged into one and another is added; where the length of a unit matters each is made steeper and flatter.
Candidates for a new unit are directions that turn with the inputs: leading moments of the residuals over all
rows and over the sides of the other units, and the rows of the largest residuals. Nothing is drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from jaxtyping import Float

from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Optimum, Problem, optimise
from onehidden.machine import NOMINAL
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import (
    completed_loss,
    descent_work,
    least_squares_columns,
    refine,
    search_form,
)
from onehidden.starts.repair import units_by_cost

Planes = Float[np.ndarray, "k e"]  # weights and bias of each unit, in the coordinates of the search


@dataclass(frozen=True)
class Moves:
    """Moves of the units of a network.

    Where ``work`` allows fewer than all, the units that are missed least are moved, and of twice as many
    moves those that promise most are taken.
    """

    each: int = 3  # replacements tried for a unit, different from one another and from the unit
    pairs: int = 10  # pairs of units moved at most, the cheapest first
    work: float = 0.5 * NOMINAL  # operations of the descents at most
    quantiles: tuple[float, ...] = (
        0.1,
        0.3,
        0.5,
        0.7,
        0.9,
    )  # where kinks of candidates lie along a direction
    lengths: tuple[float, ...] = (0.7, 2.0)  # of candidates, where the length of a unit matters
    factors: tuple[float, ...] = (0.2, 5.0, 50.0)  # by which a unit is made steeper, where its length matters
    rows: int = 4000  # on which candidates are compared, evenly spread

    def minima(self, network: OneHiddenNet, problem: Problem, run: Run) -> list[Optimum]:
        """Minima that the moves of a network, in x, lead to, after the final optimisation.

        Units that differ in what is known of them have the moves of their structure.
        """
        seen = problem.at(network)
        form, inner = search_form(seen), seen.search_coordinates.inward(network)
        some = seen.take(np.linspace(0, seen.n - 1, min(seen.n, self.rows)).astype(int))
        most, found = int(self.work / descent_work(problem)), list[Optimum]()
        if form.labelled:
            moved = [np.column_stack([one, inner.bias]) for one in form.moves(inner.weights)]
        else:
            planes = np.column_stack([inner.weights, inner.bias])
            moved = list(islice(self._moved(planes, some, form), 2 * most))
        losses = [completed_loss(some, one[:, :-1], one[:, -1]) for one in moved]
        for number in np.argsort(losses, kind="stable")[:most]:
            if run.expired():
                break
            weights, bias = moved[number][:, :-1], moved[number][:, -1]
            near = refine(seen, weights, bias, run.at("move", int(number)), "move")
            start = seen.search_coordinates.outward(near.network)
            found.append(optimise(start, problem, run.at("move", int(number), "finish")))
        return found

    def _moved(self, planes: Planes, problem: Problem, form: Parametrisation) -> Iterator[Planes]:
        """Units after each move, in an order that follows from what each costs."""
        order = units_by_cost(problem, planes[:, :-1], planes[:, -1])
        for i in order:
            rest = np.delete(planes, i, axis=0)
            for new in self.additions(rest, problem, form, planes[i : i + 1], self.each):
                yield np.vstack([rest, new])
            for factor in self.factors if problem.activation.homogeneity is None else ():
                yield np.vstack([rest, factor * planes[i : i + 1]])
        for i, j in list(combinations(order, 2))[: self.pairs]:
            rest, pair = np.delete(planes, [i, j], axis=0), planes[[i, j]]
            merged = pair.sum(axis=0) if pair[0] @ pair[1] > 0 else pair[0] - pair[1]
            for first in (*self.additions(rest, problem, form, pair, 1), merged):
                half = np.vstack([rest, first])
                for second in self.additions(half, problem, form, pair, 1):
                    yield np.vstack([half, second])

    def additions(
        self, planes: Planes, problem: Problem, form: Parametrisation, without: Planes, count: int
    ) -> Planes:
        """The units that explain most of what these leave, unlike each other and those of ``without``."""
        basis = np.linalg.qr(least_squares_columns(problem, planes[:, :-1], planes[:, -1]))[0]
        y = problem.weighted(problem.y)
        left = y - basis @ (basis.T @ y)
        candidates = self._candidates(planes, problem, form, left.reshape(len(left), -1))
        candidates = np.vstack([without, candidates])
        columns = problem.weighted(form.g(problem.Z @ candidates[:, :-1].T + candidates[:, -1]))
        columns = columns - basis @ (basis.T @ columns)
        size = np.linalg.norm(columns, axis=0)
        columns = columns / np.where(size > 1e-6 * np.sqrt(problem.n), size, np.inf)
        gain = np.sum((columns.T @ left).reshape(columns.shape[1], -1) ** 2, axis=1)
        taken = list(range(len(without)))
        for i in len(without) + np.argsort(-gain[len(without) :], kind="stable"):
            if len(taken) == len(without) + count or not gain[i] > 0:
                break
            if np.max(np.abs(columns[:, taken].T @ columns[:, i]), initial=0.0) < 0.9:
                taken.append(int(i))
        return candidates[taken[len(without) :]]

    def _candidates(
        self, planes: Planes, problem: Problem, form: Parametrisation, left: Float[np.ndarray, "n q"]
    ) -> Planes:
        """Hyperplanes along the directions, both ways where orientation matters."""
        directions = self._directions(planes, problem, left)
        free = form.symmetrised or problem.activation.sign_free
        directions = directions if free else np.vstack([directions, -directions])
        if not problem.bias:
            every = np.column_stack([directions, np.zeros(len(directions))])
        else:
            kinks = np.quantile(problem.Z @ directions.T, self.quantiles, axis=0)
            every = np.vstack([np.column_stack([directions, -at]) for at in kinks])
        lengths = self.lengths if problem.activation.homogeneity is None else (1.0,)
        return np.vstack([length * every for length in lengths])

    def _directions(
        self, planes: Planes, problem: Problem, left: Float[np.ndarray, "n q"], leading: int = 3
    ) -> Float[np.ndarray, "m d"]:
        """Directions of length one that turn with Z; the sign of none matters."""
        Z, n = problem.Z, problem.n
        sides = [np.ones(n, bool), *(Z @ one[:-1] + one[-1] > 0 for one in planes)]
        sides += [~side for side in sides[1:]]
        found = []
        for side, r in ((side, r) for side in sides for r in left.T):
            weight = r * side
            weight = weight - side * weight.sum() / max(side.sum(), 1)
            found.append((weight @ Z)[None])
            value, vector = np.linalg.eigh((Z * weight[:, None]).T @ Z)
            found.append(vector[:, np.argsort(-np.abs(value), kind="stable")[:leading]].T)
        size = np.sum(left**2, axis=1) * np.sum(Z**2, axis=1)
        found.append(Z[np.argsort(-size, kind="stable")[: 2 * problem.d]])
        directions = np.vstack(found)
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        return (directions / np.where(length > 0, length, 1.0))[length[:, 0] > 0]
