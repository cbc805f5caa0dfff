"""Whitened coordinates: z = W (x - shift), y' = (y - level) / scale; a network there is a network here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from onehidden.fit.rounding import DEPENDENT
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class Coordinates:
    """An affine change of inputs and target: z = whiten' (x - shift), y = level + t scale.

    Of several outputs the scale (q, q) has their standard deviations on the diagonal, or is a root of the
    covariance of their noise. A scale of 0 says that y is constant.
    """

    whiten: np.ndarray  # (d, r) root of the inverse covariance
    unwhiten: np.ndarray  # (r, d) root of the covariance
    shift: np.ndarray  # (d,)
    level: Any
    scale: Any
    null: np.ndarray  # (d, d - r) directions in which the sample does not vary

    @property
    def rank(self) -> int:
        """r, the number of coordinates z."""
        return self.whiten.shape[1]

    def inputs(self, X: np.ndarray) -> np.ndarray:
        return (X - self.shift) @ self.whiten

    def target(self, y: np.ndarray) -> np.ndarray:
        return self.divided(y - self.level)

    def divided(self, values: np.ndarray) -> np.ndarray:
        """Values in the units of y, (…,) or (…, q), in those of t."""
        return values @ np.linalg.inv(self.scale) if self.several else values / self.scale

    def multiplied(self, values: np.ndarray) -> np.ndarray:
        """Values in the units of t in those of y."""
        return values @ self.scale if self.several else values * self.scale

    @property
    def several(self) -> bool:
        """Whether y has several outputs."""
        return np.ndim(self.scale) == 2

    @property
    def constant(self) -> bool:
        """Whether y does not vary."""
        return not np.any(self.scale)

    @property
    def variance(self) -> float:
        """Variance of y, the unit of mean squares of t; of several outputs their mean."""
        return float(np.mean(np.sum(self.scale**2, axis=0))) if self.several else self.scale**2

    def outward(self, net: OneHiddenNet) -> OneHiddenNet:
        """The network in x whose network in z is given."""
        weights, linear = net.weights @ self.whiten.T, self.multiplied(self.whiten @ net.linear)
        return OneHiddenNet(
            weights,
            self.multiplied(net.output),
            net.bias - weights @ self.shift,
            self.multiplied(net.intercept) + self.level - self.shift @ linear,
            net.activation,
            linear,
        )

    def inward(self, net: OneHiddenNet) -> OneHiddenNet:
        """The network in z whose network in x is given."""
        linear = self.divided(self.unwhiten @ net.linear)
        return OneHiddenNet(
            net.weights @ self.unwhiten.T,
            self.divided(net.output),
            net.bias + net.weights @ self.shift,
            self.divided(net.intercept - self.level + self.shift @ net.linear),
            net.activation,
            linear,
        )

    def turned(self, axes: Float[np.ndarray, "r r"]) -> Coordinates:
        """The same coordinates along other orthonormal axes, the columns given."""
        return replace(self, whiten=self.whiten @ axes, unwhiten=axes.T @ self.unwhiten)


def whitened(
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"] | Float[np.ndarray, "n q"],
    share: Float[np.ndarray, " n"],
    about_mean: bool = True,
) -> Coordinates:
    """Coordinates in which the rows have mean zero and unit covariance, and y mean zero, variance one.

    ``share`` are weights of sum one. Directions in which the rows do not vary (columns that are sums of
    others, or constant) are left out of z: a network in z has no weight along them. ``about_mean=False``
    takes second moments about the origin.
    """
    must_be_moderate(X, "X")
    must_be_moderate(y, "y")
    mean = share @ X if about_mean else np.zeros(X.shape[1])
    centred = X - mean
    spread = np.sqrt(share @ centred**2)  # columns of wildly different units first, or digits are lost
    spread = np.where(is_constant(spread, np.max(np.abs(X), axis=0)), 1.0, spread)
    centred = centred / spread
    correlation = (centred * share[:, None]).T @ centred
    level = share @ y
    scale = np.sqrt(share @ (y - level) ** 2)
    # A constant has nothing to recover from it.
    scale = np.where(is_constant(scale, np.max(np.abs(y), axis=0)), 0.0, scale)
    if y.ndim == 1:
        return from_moments(mean, spread, correlation, float(level), float(scale))
    return from_moments(mean, spread, correlation, level, np.diag(scale))


def scaled(
    X: Float[np.ndarray, "n d"], y: np.ndarray, share: Float[np.ndarray, " n"], each: bool, about_mean: bool
) -> Coordinates:
    """Coordinates in which each column, or all together, have mean zero and unit variance, and y as whitened.

    Columns that do not vary keep their place: a structure tells what their weights are.
    """
    must_be_moderate(X, "X")
    around = whitened(X[:, :1], y, share)
    mean = share @ X if each else np.full(X.shape[1], np.mean(share @ X))
    mean = mean if about_mean else np.zeros_like(mean)
    variance = share @ (X - mean) ** 2
    spread = np.sqrt(variance if each else np.full_like(mean, np.mean(variance)))
    spread = np.where(is_constant(spread, np.max(np.abs(X), axis=0)), 1.0, spread)
    none = np.zeros((len(mean), 0))
    return replace(around, whiten=np.diag(1 / spread), unwhiten=np.diag(spread), shift=mean, null=none)


def is_constant(spread: Any, largest: Any) -> Any:
    """Whether a target of this standard deviation and largest size is a constant up to rounding."""
    return spread <= 1e-14 * largest


def from_moments(
    mean: np.ndarray, spread: np.ndarray, correlation: np.ndarray, level: Any, scale: Any
) -> Coordinates:
    """Whitened coordinates from the mean, spread and correlation of the inputs.

    The root is that of the correlation, whose digits do not hang on the units of the columns.
    """
    value, vector = np.linalg.eigh(correlation)
    seen = value >= DEPENDENT * value[-1]
    root, axes = np.sqrt(value[seen]), vector[:, seen]
    null = np.linalg.qr(vector[:, ~seen] / spread[:, None])[0]
    whiten = axes / root / spread[:, None]
    whiten -= null @ (null.T @ whiten)
    return Coordinates(whiten, (axes * root).T * spread, mean, level, scale, null)


def must_be_moderate(values: np.ndarray, name: str) -> None:
    """Squares of the values must neither overflow nor vanish."""
    largest = float(np.max(np.abs(values)))
    if largest > 1e140 or 0 < largest < 1e-140:
        raise ValueError(f"{name} has values of size {largest:.0e}: rescale it to ordinary size first")
