"""Predictions no worse than a penalised linear model on rows left out of the fit.

The penalised model l is ridge regression, or for a family the generalised linear model with a ridge penalty;
its strength is chosen on rows left out. A certified network that is no worse on such rows predicts as it
stands. Otherwise l and the network N are fitted to part of the rows, and the linear predictor is

    l + share * clip(N - l, low, high)

with the share and the bounds that are best on the rows left out, less what chance may have added. The share
is zero where those rows do not show that the network adds anything. Where it adds many errors of that
comparison and nothing speaks against the whole of it, the network predicts alone. Rows of a group are left
out together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.certify.certificate import Certificate
from onehidden.certify.evaluate import certificate_work
from onehidden.certify.local_fit import root_of_inverse
from onehidden.families import Bernoulli, Family, Gaussian, Softmax
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import roots
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.recovery.line import Affine, penalised_line, ridge_line
from onehidden.recovery.prediction import Prediction
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import descent_work

# Searches for a network in some of the rows.
Refit = Callable[[Problem, Run], OneHiddenNet]
Values = Float[np.ndarray, "n ..."]


def guarded(
    certificate: Certificate, problem: Problem, refit: Refit, run: Run, most_work: float = 1e9
) -> Prediction:
    """The predictions: the network, the penalised linear model, or something between them.

    The rows of the problem are in memory. ``refit`` searches for such a network in some of them; not where
    one descent takes more than ``most_work`` operations.
    """
    network, rows = certificate.network, LeftOut(problem, run)
    if rows.constant or problem.activation.polynomial:
        return Prediction(1.0, rows.line)

    of_line = rows.explained(rows.line_outside)

    def of_network(r_squared: float) -> Prediction:
        return Prediction(1.0, rows.line, r_squared=r_squared, linear_r_squared=of_line)

    if certificate.exact:
        # Rows left out of a fit to rounding are reproduced as well, if the parameters are determined at all.
        return of_network(1 - certificate.mean_square)
    own = problem.with_width(network.n_hidden).with_activation(network.activation)
    if certificate.status.certified:
        outside = without_each_row(network, own, run)
        if rows.explained(outside) >= of_line:
            return of_network(rows.explained(outside))
    fitted = network.predict(problem.samples.X)
    # With 50 rows per parameter the search has fitted no noise, and leverages tell as much as a new search.
    few = certificate.n_parameters * 50 > len(rows.by_group(problem.samples.share))
    again = few and descent_work(own) <= most_work and not run.expired()
    outside = refitted_without_each_fold(own, refit, rows, run) if again else None
    if outside is None and few and isinstance(problem.family, Bernoulli | Softmax):
        # Of classes that a network may separate leverages tell nothing.
        return rows.of_line("there was no time to compare the network on rows left out of the fit")
    if outside is None:
        outside = without_each_row(network, own, run)
    share, low, high = _chosen(rows, outside, fitted - rows.line(problem.samples.X))
    if share == 0:
        return rows.of_line("on rows left out of the fit the network predicts no better")
    if np.all(np.isinf(high)):
        return of_network(rows.explained(outside))
    mixed = rows.line_outside + share * np.clip(outside - rows.line_outside, low, high)
    message = f"predictions are those of the network, no further from {rows.name} than on the rows fitted"
    if share < 0.995:
        line, used = rows.name.replace(" regression", ""), f"{share:.2f}"
        message = f"predictions = {line} + {used} × (network − {line}); {used} was chosen on rows left out"
    return Prediction(share, rows.line, low, high, rows.explained(mixed), of_line, message)


@dataclass
class LeftOut:
    """The rows of a problem with the penalised linear model, and its linear predictor of rows left out."""

    problem: Problem
    run: Run
    folds: int = 5
    fold: Int[np.ndarray, " n"] = field(init=False)
    line: Affine = field(init=False)
    line_outside: Values = field(init=False)

    def __post_init__(self) -> None:
        samples = self.problem.samples
        groups = np.arange(self.problem.n) if samples.groups is None else samples.groups
        place = self.run.rng("rows held out").permutation(int(groups.max()) + 1)
        self.folds = min(self.folds, len(place))
        if self.problem.family is not None:
            # Every fold has its part of rare labels and of large counts.
            size = samples.y.reshape(len(groups), -1) @ np.arange(1, self.problem.form.q + 1)
            mean = np.bincount(groups, size) / np.maximum(np.bincount(groups), 1)
            place[np.lexsort((place, mean))] = np.arange(len(place))
        self.fold = place[groups] % self.folds
        if self.problem.family is not None:
            self.line, self.line_outside = penalised_line(
                samples.X, samples.y, samples.weight, self.problem.offsets, self.family, self.fold
            )
        else:
            self.line, missed = ridge_line(samples.X, samples.y, samples.row_weight)
            self.line_outside = samples.y - missed

    @property
    def family(self) -> Family:
        """The family of y."""
        return self.problem.family or Gaussian("identity")

    @property
    def name(self) -> str:
        """What the penalised linear model is called."""
        return "ridge regression" if self.problem.family is None else f"a penalised {self.family.name} model"

    @property
    def constant(self) -> bool:
        """Whether there is nothing to explain."""
        return not float(np.sum(self._of_mean)) > 0

    def losses(self, eta: Values, y: Values | None = None) -> Float[np.ndarray, " n"]:
        """Each row's deviance at a linear predictor, times the share of the row; its own y by default."""
        samples, problem = self.problem.samples, self.problem
        y = samples.y if y is None else y
        if problem.family is None:
            spread = 1.0 if problem.form.outputs is None else np.std(samples.y, axis=0)
            each = ((y - eta) / np.where(spread > 0, spread, 1.0)) ** 2
        else:
            each = self.family.deviance(y, eta + problem.offsets)
        return samples.share * each.reshape(problem.n, -1).sum(axis=1)

    def expected_loss(self, eta: Values) -> float:
        """The sum of the losses and that of a row, or group, more whose y has nothing to do with its inputs.

        Rows left out show no error that one in as many makes, and where odds are large one costs most. The
        deviance is linear in y but for a constant, so that the mean of y stands for all of them.
        """
        samples = self.problem.samples
        mean = np.broadcast_to(samples.share @ samples.y, samples.y.shape)
        more = float(np.sum(self.losses(eta, mean))) / len(self.by_group(samples.share))
        return float(np.sum(self.losses(eta))) + more

    def of_line(self, reason: str) -> Prediction:
        """The penalised linear model alone predicts."""
        own = float("nan") if self.constant else self.explained(self.line_outside)
        message = f"predictions are those of {self.name}: {reason}"
        return Prediction(0.0, self.line, r_squared=own, linear_r_squared=own, message=message)

    def explained(self, eta: Values) -> float:
        """Share of the deviance of the model without inputs that this linear predictor explains."""
        return 1 - float(np.sum(self.losses(eta)) / np.sum(self._of_mean))

    @property
    def _of_mean(self) -> Float[np.ndarray, " n"]:
        """Losses of the model without inputs."""
        samples = self.problem.samples
        if self.problem.family is None:
            return self.losses(np.broadcast_to(samples.share @ samples.y, samples.y.shape))
        level = self.family.start(samples.y, samples.row_weight)
        return self.losses(level - self.problem.offsets)

    def by_group(self, values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
        """Sums over the rows of each group; without groups the values."""
        groups = self.problem.samples.groups
        return values if groups is None else np.bincount(groups, values)

    def parts(self) -> Iterator[tuple[Int[np.ndarray, " m"], Int[np.ndarray, " l"]]]:
        """The rows kept and the rows left out, fold by fold; as many are kept in every fold."""
        # Shapes are compiled once.
        size = self.problem.n - int(np.bincount(self.fold).max())
        for fold in range(self.folds):
            kept = self.run.rng("rows kept", fold).permutation(np.flatnonzero(self.fold != fold))
            yield kept[:size], np.flatnonzero(self.fold == fold)


def _chosen(
    rows: LeftOut, outside: Values, added: Values, chance: float = 16.0, clear: float = 64.0
) -> tuple[float, Any, Any]:
    """The share and bounds of what the network adds to the line that are best on rows left out.

    The share is less by the part that ``chance`` squared standard errors are of it: below them it counts
    as chance. The gain of a share s is s² / 2 times the curvature of the loss, so that twice the gain
    over s times the error of the slope is s over its error; what the line misses is no part of that
    error, as it would be of the gain's. From ``clear`` squared errors on the network predicts alone,
    unless rows left out speak against the whole of it: without bounds, but for a family, whose link makes
    a large step of a small one beyond the rows.
    """
    line, step = rows.line_outside, 1 / 40
    lowest, highest = added.min(axis=0), added.max(axis=0)
    best, found = np.inf, (0.0, 1.0)

    def mixed(share: float, bound: float) -> Values:
        return line + share * np.clip(outside - line, bound * lowest, bound * highest)

    def error(difference: Float[np.ndarray, " n"]) -> float:
        each = rows.by_group(difference)
        return float(np.sqrt(np.sum((each - each.mean()) ** 2)))

    # Of separable classes the network's odds have no bound but what rows left out allow.
    for bound in [1.0] if rows.problem.family is None else [1.0, 0.5, 0.25, 0.125, 0.0625]:
        for share in step * np.arange(41):
            loss = rows.expected_loss(mixed(share, bound))
            if loss < best * (1 - 1e-9):
                best, found = loss, (float(share), bound)
    share, bound = found
    below, own, above = (rows.losses(mixed(at, bound)) for at in (share - step, share, share + step))
    slope = share * error(above - below) / (2 * step)
    ratio = (2 * (rows.expected_loss(line) - best) / max(slope, np.finfo(float).tiny)) ** 2
    if ratio >= clear and rows.expected_loss(outside) - best <= 2 * error(rows.losses(outside) - own):
        if rows.problem.family is None:
            return 1.0, -np.inf, np.inf
        return 1.0, bound * lowest, bound * highest
    return share * (1 - chance / max(ratio, chance)), bound * lowest, bound * highest


def without_each_row(network: OneHiddenNet, problem: Problem, run: Run) -> Values:
    """The network's linear predictor at each row, re-fitted nearby without that row, to first order.

    With r the weighted residuals of a row, or of the rows of its group, and H = J_i (J'J)⁺ J_i' their
    block of the leverages, leaving them out changes r to (I - H)^-1 r. Where that is not within the
    budget, H is its mean p / n (generalised cross-validation, Craven and Wahba 1979).
    """
    eta, seen = network.predict(problem.samples.X), problem.at(network)
    fit, theta, q = seen.least_squares, seen.theta(network), problem.form.q
    assert isinstance(fit, InMemoryLeastSquares)
    residual = fit.residuals(theta).reshape(problem.n, q)
    if run.last().within_budget(certificate_work(problem)):
        inverse = root_of_inverse(fit.normal_equations(theta)[0].astype(float))
        basis = (fit.jacobian(theta, slice(0, fit.n)) @ inverse).reshape(problem.n, q, -1)
        if (groups := problem.samples.groups) is None:
            change = _left_out(basis, residual)
        else:
            change = np.zeros(residual.shape)
            for own in np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1]):
                block = basis[own].reshape(1, len(own) * q, -1), residual[own].reshape(1, -1)
                change[own] = _left_out(*block).reshape(-1, q)
    else:
        change = residual * (1 / max(1 - problem.form.freedom / fit.n, 0.01) - 1)
    root = roots(seen.samples.weight, problem.n)
    if root.ndim == 3:
        change = np.linalg.solve(root, change[:, :, None])[:, :, 0]
    else:
        change = change / np.maximum(root.reshape(problem.n, -1), np.finfo(float).tiny)
    return eta + seen.fit_coordinates.multiplied(change.reshape(eta.shape))


def _left_out(
    basis: Float[np.ndarray, "b m p"], residual: Float[np.ndarray, "b m"]
) -> Float[np.ndarray, "b m"]:
    """How the residuals of each block change where it is left out; ``basis`` is J_i (J'J)^(-1/2)."""
    left = np.eye(residual.shape[1]) - np.einsum("nar,nbr->nab", basis, basis)
    value, vector = np.linalg.eigh(left)
    inverse = vector / np.maximum(value, 1e-3)[:, None, :] @ vector.mT
    return np.einsum("nab,nb->na", inverse, residual) - residual


def refitted_without_each_fold(problem: Problem, refit: Refit, rows: LeftOut, run: Run) -> Values | None:
    """The linear predictor of a network that was searched for without that row, fold by fold.

    None where the time is over or a search finds nothing to begin from.
    """
    samples = problem.samples
    outside = np.zeros(samples.y.shape)
    for number, (kept, out) in enumerate(rows.parts()):
        try:
            network = refit(problem.take(kept), run.at("held out", number))
        except Refused:
            return None
        if run.expired():
            return None
        outside[out] = network.predict(samples.X[out])
        run.report("held-out rows", number + 1, 1 - rows.explained(outside))
    return outside
