"""Whitened coordinates: z = W (x - shift), y' = (y - level) / scale; a network there is a network here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class Coordinates:
    """An affine change of inputs and target.

    Attributes
    ----------
    whiten, unwhiten : (d, d) symmetric roots of the inverse covariance and of the covariance.
    shift : (d,) what is taken off x first.
    level, scale : what is taken off y, and what it is then divided by.
    """

    whiten: np.ndarray
    unwhiten: np.ndarray
    shift: np.ndarray
    level: float
    scale: float

    def inputs(self, X: np.ndarray) -> np.ndarray:
        return (X - self.shift) @ self.whiten

    def target(self, y: np.ndarray) -> np.ndarray:
        return (y - self.level) / self.scale

    def outward(self, net: OneHiddenNet) -> OneHiddenNet:
        """The network in x whose network in z is given."""
        weights = net.weights @ self.whiten
        return OneHiddenNet(
            weights,
            net.output * self.scale,
            net.bias - weights @ self.shift,
            net.intercept * self.scale + self.level,
            net.activation,
        )

    def inward(self, net: OneHiddenNet) -> OneHiddenNet:
        """The network in z whose network in x is given."""
        return OneHiddenNet(
            net.weights @ self.unwhiten,
            net.output / self.scale,
            net.bias + net.weights @ self.shift,
            (net.intercept - self.level) / self.scale,
            net.activation,
        )

    def moved(self, shift: np.ndarray, level: float) -> Coordinates:
        """The same scales around another origin."""
        return Coordinates(self.whiten, self.unwhiten, shift, level, self.scale)


@dataclass(frozen=True)
class WhitenedScore:
    """A score of x seen in z = W (x - shift): S^z(v, …) = S^x(W^-1 v, …)."""

    score_of_x: Any
    coordinates: Coordinates

    @property
    def n_inputs(self) -> int:
        return len(self.coordinates.shift)

    @property
    def valid_order(self) -> float:
        return getattr(self.score_of_x, "valid_order", float("inf"))

    def score(self, Z: np.ndarray, order: int, subspace: np.ndarray | None = None) -> np.ndarray:
        """S_m at the rows of Z contracted with the columns of ``subspace``, (n, r, …, r)."""
        inverse = self.coordinates.unwhiten
        X = Z @ inverse + self.coordinates.shift
        return self.score_of_x.score(X, order, subspace=inverse if subspace is None else inverse @ subspace)


def whitened(X: np.ndarray, y: np.ndarray) -> Coordinates:
    """Coordinates in which the sample has mean zero and unit covariance, and y mean zero, variance one."""
    _must_be_moderate(X, "X")
    _must_be_moderate(y, "y")
    mean = X.mean(axis=0)
    spread = X.std(axis=0)  # columns of wildly different units first, or the covariance loses digits
    centred = (X - mean) / spread
    value, vector = np.linalg.eigh(centred.T @ centred / len(X))
    if value[0] < 1e-10 * value[-1]:
        columns = np.argsort(-np.abs(vector[:, 0]))[:2]
        raise ValueError(
            f"the columns of X are linearly dependent (most of it between columns {int(columns[0])} and "
            f"{int(columns[1])}): their weights cannot be told apart; leave one of them out"
        )
    # A symmetric root of D R D, R the correlation: eigendecompose the covariance itself.
    value, vector = np.linalg.eigh(spread[:, None] * (centred.T @ centred / len(X)) * spread[None, :])
    if value[0] <= 0:
        raise ValueError("the columns of X differ too much in scale: divide each by its standard deviation")
    scale = float(y.std())
    if scale <= 1e-14 * float(np.max(np.abs(y))):
        raise ValueError(f"y is constant ({float(y[0]):g}): there is nothing to recover from it")
    return Coordinates(
        (vector / np.sqrt(value)) @ vector.T,
        (vector * np.sqrt(value)) @ vector.T,
        mean,
        float(y.mean()),
        scale,
    )


def _must_be_moderate(values: np.ndarray, name: str) -> None:
    """Squares of the values must neither overflow nor vanish."""
    largest = float(np.max(np.abs(values)))
    if largest > 1e140 or 0 < largest < 1e-140:
        raise ValueError(f"{name} has values of size {largest:.0e}: rescale it to ordinary size first")
