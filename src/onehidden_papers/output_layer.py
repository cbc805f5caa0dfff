"""The output layer once the hidden directions are known: Algorithms 1 and 2 of [GLM], S_1, least squares.

``weight`` (n,) says how much each row counts; None: all alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onehidden import activations
from onehidden.activations import Activation
from onehidden.laws.base import Score
from onehidden.moments.weights import Weight, checked_weight, rooted, weighted_mean
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class OutputLayer:
    """Outputs and oriented rows.

    Attributes
    ----------
    weights : ndarray of shape (k, d)
        Rows, turned so that they point the way the data say.
    output : ndarray of shape (k,)
        w.
    intercept : float
        c, zero unless the method fits one.
    """

    weights: np.ndarray
    output: np.ndarray
    intercept: float = 0.0

    def network(self, activation: str | Activation = "relu") -> OneHiddenNet:
        return OneHiddenNet(self.weights, self.output, intercept=self.intercept, activation=activation)


def orthonormal_outputs(
    B: npt.ArrayLike, X: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> OutputLayer:
    """Algorithm 1 of [GLM]: a'_i = 2 E[y ⟨x, b_i⟩], orthonormal rows, ReLU, x ~ N(0, I), outputs > 0."""
    B, moment = _first_moment(B, X, y, weight)
    return _oriented(B, 2 * B @ moment)


def general_outputs(
    B: npt.ArrayLike, X: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None = None
) -> OutputLayer:
    """Algorithm 2 of [GLM]: (B Bᵀ)⁻¹ 2 E[y B x], for any independent rows."""
    B, moment = _first_moment(B, X, y, weight)
    return _oriented(B, 2 * np.linalg.lstsq(B.T, moment, rcond=None)[0])


def score_outputs(
    B: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    score: Score,
    first_kappa: float | None = None,
    weight: npt.ArrayLike | None = None,
) -> OutputLayer:
    """Any law: E[y S_1(x)] = Σ_i w_i κ_{1,i} b_i solved for w_i κ_{1,i}.

    Parameters
    ----------
    score : Score
        Offers ``score(X, 1)`` -> (n, d).
    first_kappa : float or None
        κ_1 = E[g'(⟨b_i, x⟩)]; ½ for ReLU under any law symmetric about 0, the default.
    """
    B, moment = _first_moment(B, X, y, weight, score)
    return _oriented(B, np.linalg.lstsq(B.T, moment, rcond=None)[0] / (first_kappa or 0.5))


def least_squares_outputs(
    B: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    activation: str | Activation = "relu",
    *,
    orient: bool = True,
    intercept: bool = False,
    weight: npt.ArrayLike | None = None,
) -> OutputLayer:
    """Least squares of y on g(⟨b_i, x⟩); outputs of any sign.

    With ``orient`` the rows may come up to sign. Where g(−t) = ±g(t) + p(t) with p linear (ReLU, leaky ReLU,
    softplus, GELU), y is first fitted on the symmetric parts of the units and on x: the linear part of the
    fit is ½ Σ w_i s_i p_1 b_i, which tells the orientations s_i.
    """
    g = activations.get(activation)
    B, X, y, weight = _checked(B, X, y, weight)
    if orient:
        B = B * _orientations(B, X, y, g, weight)[:, None]
    features = np.column_stack([g(X @ B.T), np.ones((len(y), 1 if intercept else 0))])
    w = np.linalg.lstsq(rooted(features, weight), rooted(y, weight), rcond=None)[0]
    return OutputLayer(B, w[: len(B)], float(w[-1]) if intercept else 0.0)


def _orientations(B: np.ndarray, X: np.ndarray, y: np.ndarray, g: Activation, weight: Weight) -> np.ndarray:
    reversal = g.reversal
    if reversal is None or reversal.degree <= 0:
        return np.ones(len(B))  # even, odd: turning changes nothing but the sign of w
    if reversal.degree > 1:
        raise ValueError(
            f"{g.name}: turning a unit changes a polynomial of degree {reversal.degree}; orient by trying"
        )
    Z = X @ B.T
    half = reversal.polynomial[1] / 2
    # g(t) = e(t) + p(t)/2·(…): with g(−t) = g(t) + p₁t the even part is g(t) + p₁t/2, the odd one −p₁t/2.
    even = g(Z) + half * Z
    columns = np.column_stack([even, X, np.ones(len(y))])
    fit = np.linalg.lstsq(rooted(columns, weight), rooted(y, weight), rcond=None)[0]
    k = len(B)
    along = np.linalg.lstsq((B * fit[:k, None]).T, fit[k:-1], rcond=None)[0]
    return np.where(along * -half < 0, -1.0, 1.0)


def _first_moment(
    B: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    weight: npt.ArrayLike | None,
    score: Score | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and E[y S_1(x)]; S_1(x) = x without a score."""
    B, X, y, weight = _checked(B, X, y, weight)
    first = X if score is None else np.asarray(score.score(X, 1), float)
    if first.shape != X.shape:
        raise ValueError(f"score.score(X, 1) must have the shape of X, {X.shape}, got {first.shape}")
    return B, weighted_mean(y[:, None] * first, weight)


def _oriented(B: np.ndarray, signed: np.ndarray) -> OutputLayer:
    """Positive outputs: a negative estimate means that the row points the wrong way."""
    return OutputLayer(B * np.where(signed < 0, -1.0, 1.0)[:, None], np.abs(signed))


def _checked(
    B: npt.ArrayLike, X: npt.ArrayLike, y: npt.ArrayLike, weight: npt.ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Weight]:
    B, X, y = (np.asarray(part, float) for part in (B, X, y))
    if B.ndim != 2 or X.ndim != 2 or B.shape[1] != X.shape[1] or y.shape != X.shape[:1]:
        raise ValueError(
            f"expected B (k, d), X (n, d) and y (n,), got shapes {B.shape}, {X.shape} and {y.shape}"
        )
    return B, X, y, checked_weight(weight, len(y))
