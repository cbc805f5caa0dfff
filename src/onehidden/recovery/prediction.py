"""What predictions are made with: the network, a line, or a line with so much of the network as held."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.network import OneHiddenNet
from onehidden.recovery.line import Affine


@dataclass(frozen=True)
class Prediction:
    """y at x is l(x) + share * clip(N(x) - l(x)), with l ridge regression and N the network.

    Attributes
    ----------
    share : of what the network adds to the line; 1 where the network predicts alone, 0 where the line does.
    line : ridge regression of the same rows.
    instead : the linear functions that stand for the units in ``linear``.
    linear : units that only a handful of rows tell from a linear function.
    low, high : bounds of N - l, as they are on the rows that were fitted; infinite where they are not needed.
    r_squared, linear_r_squared : share of var(y) explained on rows that were left out of the fit, by these
        predictions and by ridge regression; NaN where none were left out.
    message : the above in words.
    """

    share: float
    line: Affine = field(repr=False)
    instead: Affine = field(repr=False)
    linear: tuple[int, ...] = ()
    low: float = -np.inf
    high: float = np.inf
    r_squared: float = float("nan")
    linear_r_squared: float = float("nan")
    message: str = "predictions are those of the network"

    @property
    def alone(self) -> bool:
        """Whether predictions are those of the network as it stands."""
        return self.share == 1 and not self.linear and np.isinf(self.low) and np.isinf(self.high)

    def predict(self, network: OneHiddenNet, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """The predictions, with the units of this network."""
        if self.alone:
            return network.predict(X)
        line = self.line(X)
        if self.share == 0:
            return line
        added = steady(network, X, self.linear) + self.instead(X) - line
        return line + self.share * np.clip(added, self.low, self.high)

    def on(self, columns: Int[np.ndarray, " m"], d: int) -> Prediction:
        """The same predictions from d columns, of which these are the ones used."""
        return replace(self, line=self.line.on(columns, d), instead=self.instead.on(columns, d))

    def to_dict(self) -> dict[str, Any]:
        """Plain values; arrays as lists."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in ("line", "instead"):
            found[name] = {"slope": found[name].slope.tolist(), "level": found[name].level}
        return found | {"linear": list(self.linear)}

    @classmethod
    def from_dict(cls, record: dict[str, Any], network: OneHiddenNet) -> Prediction:
        """Read what ``to_dict`` gave; one sentence where it does not fit the network."""
        lines = {}
        for name in ("line", "instead"):
            slope = np.asarray(record[name]["slope"], float)
            if slope.shape != (network.n_inputs,):
                raise ValueError("its predictions are of other inputs than the network")
            lines[name] = Affine(slope, float(record[name]["level"]))
        linear = tuple(int(i) for i in record["linear"])
        if not all(0 <= i < network.n_hidden for i in linear):
            raise ValueError("its predictions are of other units than the network's")
        numbers = {
            name: float(record[name]) for name in ("share", "low", "high", "r_squared", "linear_r_squared")
        }
        return cls(**numbers, **lines, linear=linear, message=str(record["message"]))


def steady(
    network: OneHiddenNet, X: Float[np.ndarray, "n d"], without: tuple[int, ...]
) -> Float[np.ndarray, " n"]:
    """The network at the rows of X but for some units."""
    kept = np.setdiff1d(np.arange(network.n_hidden), without)
    t = X @ network.weights[kept].T + network.bias[kept]
    return network.activation(t) @ network.output[kept] + network.intercept + X @ network.linear
