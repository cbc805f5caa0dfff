"""Linear baselines: least squares, ridge regression, and answers that are no worse than a linear function.

A unit g(e <v, x> + b) with a small e is a linear function of x to first order in e, whatever g is. A network
with this unit in the place of its weakest one, and outputs by least squares, fits at least as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.families import Family
from onehidden.fit.problem import Optimum, Problem, linear_network, optimise, with_best_outputs
from onehidden.network import OneHiddenNet
from onehidden.run import Run


@dataclass(frozen=True)
class Affine:
    """x -> <slope, x> + level, but no less than ``least`` and no more than ``most``."""

    slope: Float[np.ndarray, "d ..."]
    level: Any  # a number, of several outputs (q,); so are the bounds
    least: Any = -np.inf
    most: Any = np.inf

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n ..."]:
        return np.clip(X @ self.slope + self.level, self.least, self.most)


def standardised(
    X: Float[np.ndarray, "n d"], share: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " d"], Float[np.ndarray, " d"]]:
    """Columns of mean zero and variance one, with the means and the standard deviations that they had.

    ``share`` are weights of sum one. A column that does not vary but for rounding becomes zero.
    """
    centre = share @ X
    spread = np.sqrt(share @ (X - centre) ** 2)
    still = spread <= 1e-12 * np.maximum(np.abs(centre), np.finfo(float).tiny)
    spread = np.where(still, 1.0, spread)
    return np.where(still, 0.0, (X - centre) / spread), centre, spread


def least_squares(
    X: Float[np.ndarray, "n d"], Y: Float[np.ndarray, "n q"], weight: Float[np.ndarray, " n"] | None = None
) -> tuple[Float[np.ndarray, "d q"], Float[np.ndarray, " q"], Float[np.ndarray, "n q"]]:
    """Slopes and levels of the linear functions nearest to the columns of Y, and what these miss.

    A column that does not vary has no slope.
    """
    share = _shares(weight, len(X))
    middle, root = share @ Y, np.sqrt(share)[:, None]
    Z, centre, spread = standardised(X, share)
    fitted = np.linalg.lstsq(Z * root, (Y - middle) * root, rcond=None)[0]
    slopes = fitted / spread[:, None]
    return slopes, middle - centre @ slopes, Y - middle - Z @ fitted


def _shares(weight: Float[np.ndarray, " n"] | None, n: int) -> Float[np.ndarray, " n"]:
    return np.full(n, 1 / n) if weight is None else weight / weight.sum()


def ridge_line(
    X: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n ..."], weight: Float[np.ndarray, " n"] | None = None
) -> tuple[Affine, Float[np.ndarray, "n ..."]]:
    """Minimise sum_i v_i (y_i - <s, z_i> - c)² + strength |s|² over standardised columns z, with weights v.

    The strength is the one whose errors on rows left out, r_i / (1 - h_i) with h the leverage, are least; of
    several outputs each has its own. The second result is y less the prediction of the line that was fitted
    without that row.
    """
    if y.ndim == 2:
        lines, missed = zip(*(ridge_line(X, one, weight) for one in y.T), strict=True)
        slope = np.column_stack([one.slope for one in lines])
        return Affine(slope, np.array([one.level for one in lines])), np.column_stack(missed)
    v = np.ones(len(y)) if weight is None else weight
    Z, centre, spread = standardised(X, _shares(weight, len(y)))
    middle, root = float(np.average(y, weights=v)), np.sqrt(v)
    Z, target = Z * root[:, None], (y - middle) * root
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    projected = U.T @ target
    best, least = None, np.inf
    for strength in np.logspace(-3, 3, 13):
        shrunk = s**2 / (s**2 + strength)
        leverage = np.minimum(v / v.sum() + np.einsum("nr,r,nr->n", U, shrunk, U), 1 - 1e-6)
        outside = (target - U @ (shrunk * projected)) / (1 - leverage)
        if float(outside @ outside) < least:
            slope = (Vt.T @ (s / (s**2 + strength) * projected)) / spread
            least = float(outside @ outside)
            best = Affine(slope, middle - float(slope @ centre)), outside / root
    assert best is not None
    return best


def penalised_line(
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "n ..."],
    weight: Float[np.ndarray, " n"] | None,
    offset: Float[np.ndarray, "n ..."],
    family: Family,
    fold: Int[np.ndarray, " n"],
    most_rows: int = 5000,
    worth: float = 0.01,
) -> tuple[Affine, Float[np.ndarray, "n ..."]]:
    """Minimise the deviance of a family at <s, z> + c + offset, plus strength |s|², over standardised z.

    The strength is the one with the least deviance on the rows left out, ``fold`` by fold. Where the share
    ``worth`` of that deviance goes as the linear predictor is kept between its least and largest value on the
    rows fitted, it is kept there: a link that is an exponential makes much of a row far outside. The second
    result is the linear predictor of the model that was fitted without that row's fold, on at most
    ``most_rows`` rows.
    """
    v = np.ones(len(y)) if weight is None else weight
    Z, centre, spread = standardised(X, _shares(weight, len(y)))
    Z = np.column_stack([Z, np.ones(len(X))])
    some = np.linspace(0, len(y) - 1, min(len(y), most_rows)).astype(int)  # more choose no better
    kept = [some[fold[some] != number] for number in np.unique(fold)]

    def missed(eta: Float[np.ndarray, "n ..."]) -> float:
        return float(v @ family.deviance(y, eta + offset).reshape(len(y), -1).sum(axis=1))

    best, strength, within, outside = np.inf, 1e4, False, np.zeros(y.shape)
    thetas: list[np.ndarray | None] = [None] * len(kept)
    for tried in np.logspace(4, -3.5, 11):
        # Neighbouring strengths begin from each other's coefficients.
        both = np.zeros((2, *y.shape))
        for at, (number, own) in enumerate(zip(np.unique(fold), kept, strict=True)):
            theta = thetas[at] = _scored(Z[own], y[own], v[own], offset[own], family, tried, thetas[at])
            fitted, out = Z[own] @ theta, fold == number
            both[0, out] = Z[out] @ theta
            both[1, out] = np.clip(both[0, out], fitted.min(axis=0), fitted.max(axis=0))
        losses = [missed(both[0]), missed(both[1]) / (1 - worth)]
        loss = float(np.nanmin([*losses, np.inf]))
        if loss < best:
            best, strength, within = loss, tried, losses[1] == loss
            outside = both[int(within)]
        elif not loss < 1.05 * best:
            break  # the deviance has one minimum in the strength
    theta = _scored(Z, y, v, offset, family, strength, None)
    slope, fitted = (theta[:-1].T / spread).T, Z @ theta
    ends = (fitted.min(axis=0), fitted.max(axis=0)) if within else (-np.inf, np.inf)
    return Affine(slope, (theta[-1] - centre @ slope)[()], *ends), outside


def _scored(
    Z: Float[np.ndarray, "n p"],
    y: Float[np.ndarray, "n ..."],
    weight: Float[np.ndarray, " n"],
    offset: Float[np.ndarray, "n ..."],
    family: Family,
    strength: float,
    begin: Float[np.ndarray, "p ..."] | None,
) -> Float[np.ndarray, "p ..."]:
    """Coefficients of least penalised deviance, the last of them, the level, without penalty.

    Of classes the slopes of all, the first among them, are penalised about their mean: no class is another.
    """
    from scipy.optimize import minimize

    shape = (Z.shape[1], *y.shape[1:])
    outputs = int(np.prod(y.shape[1:]))
    metric = np.eye(outputs) - (1 / (outputs + 1) if family.coupled else 0)
    penalty = strength * np.append(np.ones(len(Z.T) - 1), 1e-9)[:, None]
    theta = np.zeros(shape) if begin is None else begin
    if begin is None:
        theta[-1] = family.start(y, weight) - np.average(offset, axis=0, weights=weight)

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        eta = Z @ flat.reshape(shape) + offset
        with np.errstate(over="ignore", invalid="ignore"):
            each = family.deviance(y, eta).reshape(len(y), -1).sum(axis=1)
            score = weight[:, None] * family.score(y, eta).reshape(len(y), -1)
        at = flat.reshape(len(penalty), -1)
        slope, pull = Z.T @ score, penalty * (at @ metric)
        return 0.5 * float(weight @ each) + 0.5 * float(np.sum(at * pull)), (slope + pull).ravel()

    precise = {"maxiter": 1000, "ftol": 1e-12, "gtol": 1e-6}
    return minimize(value, theta.ravel(), jac=True, method="L-BFGS-B", options=precise).x.reshape(shape)


def measures(
    X: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n ..."], weight: Float[np.ndarray, " n"] | None = None
) -> dict[str, Any]:
    """Means and spreads of the inputs, and the share of var(y) that a linear function explains.

    They are named as the record names them. Variances of several outputs, y (n, q), are added up.
    """
    share = _shares(weight, len(y))
    mean, level = share @ X, share @ y
    variance = share @ (y - level) ** 2
    found: dict[str, Any] = {"input_mean": mean, "input_spread": np.sqrt(share @ (X - mean) ** 2)}
    if np.all(variance > 0):
        missed = least_squares(X, y.reshape(len(y), -1), weight)[2]
        found["linear_r_squared"] = 1 - float(np.sum(share @ missed**2)) / float(np.sum(variance))
    return found


def no_worse_than_linear(answer: Optimum, problem: Problem, run: Run) -> Optimum:
    """The answer; where a linear function fits better, the optimum reached from one with linear units."""
    line = linear_network(problem)
    if answer.mean_square <= float(np.sum(problem.row_losses(line))) / problem.n_values:
        return answer
    other = optimise(with_linear_units(answer.network, line, problem), problem, run)
    return other if other.mean_square < answer.mean_square else answer


def with_linear_units(
    network: OneHiddenNet, line: OneHiddenNet, problem: Problem, small: float = 1e-4
) -> OneHiddenNet:
    """The network, in x, with a linear function in the place of units, and the best outputs.

    The units that move y least are replaced, one for each output of the function where there are so many.
    Their arguments vary by ``small`` of the bias: the curved part is 1e-4 of the linear one, 1e-8 of its
    square. Without biases the new units bend at the origin, which limits the fit.
    """
    X, shift, form = problem.samples.X, problem.whitening.shift, problem.form
    slopes = line.linear.reshape(network.n_inputs, -1)
    directions = np.linalg.svd(slopes, full_matrices=False)[0].T[: network.n_hidden]
    reach = np.abs((X - shift) @ directions.T).max(axis=0)
    rows = small * directions / np.maximum(reach, np.finfo(float).tiny)[:, None]
    units = np.std(problem.activation(X @ network.weights.T + network.bias), axis=0)
    moved = units * np.linalg.norm(network.output.reshape(network.n_hidden, -1), axis=1)
    weakest = np.argsort(moved)[: len(rows)]
    weights, bias = network.weights.copy(), network.bias.copy()
    weights[weakest], bias[weakest] = rows, 1.0 - rows @ shift if form.bias else 0.0
    net = OneHiddenNet(weights, network.output, bias, network.intercept, network.activation, network.linear)
    return with_best_outputs(net, problem)
