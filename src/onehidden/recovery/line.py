"""Linear baselines: least squares, ridge regression, and penalised models of families."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.families import Family


@dataclass(frozen=True)
class Affine:
    """x -> <slope, x> + level."""

    slope: Float[np.ndarray, "d ..."]
    level: Any  # a number, of several outputs (q,)

    def __call__(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n ..."]:
        return X @ self.slope + self.level


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
) -> tuple[Affine, Float[np.ndarray, "n ..."]]:
    """Minimise the deviance of a family at <s, z> + c + offset, plus strength |s|², over standardised z.

    The strength is the one with the least deviance on the rows left out, ``fold`` by fold. The second result
    is the linear predictor of the model fitted without that row's fold, on at most ``most_rows`` rows.
    """
    v = np.ones(len(y)) if weight is None else weight
    Z, centre, spread = standardised(X, _shares(weight, len(y)))
    Z = np.column_stack([Z, np.ones(len(X))])
    some = np.linspace(0, len(y) - 1, min(len(y), most_rows)).astype(int)  # more choose no better
    kept = [some[fold[some] != number] for number in np.unique(fold)]

    best, strength, outside = np.inf, 1e4, np.zeros(y.shape)
    thetas: list[np.ndarray | None] = [None] * len(kept)
    for tried in np.logspace(4, -3.5, 11):
        # Neighbouring strengths begin from each other's coefficients.
        eta = np.zeros(y.shape)
        for at, (number, own) in enumerate(zip(np.unique(fold), kept, strict=True)):
            theta = thetas[at] = _scored(Z[own], y[own], v[own], offset[own], family, tried, thetas[at])
            eta[fold == number] = Z[fold == number] @ theta
        loss = float(v @ family.deviance(y, eta + offset).reshape(len(y), -1).sum(axis=1))
        if loss < best:
            best, strength, outside = loss, tried, eta
        elif not loss < 1.05 * best:
            break  # the deviance has one minimum in the strength
    theta = _scored(Z, y, v, offset, family, strength, None)
    slope = (theta[:-1].T / spread).T
    return Affine(slope, (theta[-1] - centre @ slope)[()]), outside


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
            score = weight[:, None] * family.gradient(y, eta).reshape(len(y), -1)
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
    root, Y = np.sqrt(share)[:, None], (y - share @ y).reshape(len(y), -1)
    Z, mean, _ = standardised(X, share)
    found: dict[str, Any] = {"input_mean": mean, "input_spread": np.sqrt(share @ (X - mean) ** 2)}
    if np.all(share @ Y**2 > 0):
        missed = root * Y - root * Z @ np.linalg.lstsq(root * Z, root * Y, rcond=None)[0]
        found["linear_r_squared"] = 1 - float(np.sum(missed**2) / np.sum((root * Y) ** 2))
    return found
