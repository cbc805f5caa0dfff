"""What each unit makes of each input, in one measure: y for one standard deviation of the input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.activations import Activation
from onehidden.report.subject import Subject

_ARGUMENTS = np.linspace(-40.0, 40.0, 801)  # 0 among them; exp(-40) is below the tolerance
_RTOL = 1e-9


@dataclass(frozen=True)
class Effects:
    """e_ij = w_i a_ij sd(x_j): what one standard deviation of x_j adds to y where unit i has slope one.

    Attributes
    ----------
    values, errors : (k, d) the effects and their standard errors; infinite where the data leave a number
        open, None where no errors are known.
    standardised : whether the spread of the inputs is known; otherwise it is taken for one.
    activation : g, whose slope says where an effect is one.
    """

    values: Float[np.ndarray, "k d"]
    errors: Float[np.ndarray, "k d"] | None
    standardised: bool
    activation: Activation

    @property
    def head(self) -> str:
        """What a column of them is called."""
        if not self.standardised:
            return "output × weight"
        if self.activation.homogeneity == 1:
            above, below = self.activation.derivative([1.0, -1.0])
            if above == below == 1:
                return "effect on y of one sd"
            if above == 1 and 0 <= below < 1:
                return "effect on y of one sd where the unit is on"
        steepest = np.max(np.abs(self.activation.derivative(_ARGUMENTS)))
        if abs(steepest - 1) <= _RTOL:  # tanh, erf, softplus, |t|
            return "largest effect on y of one sd"
        return "effect on y of one sd at slope one of the unit"  # sigmoid (1/4 at most), GELU, powers

    def largest(self, unit: int, most: int) -> list[int]:
        """The inputs with the largest effects on a unit, in that order."""
        return np.argsort(-np.abs(self.values[unit]), kind="stable")[:most].tolist()


def effects(subject: Subject) -> Effects:
    """The effects of a recovery.

    The error of a product is taken for that of independent factors, (e_a w)² + (e_w a)²: rows of unit length
    turn, outputs grow, and the two hardly go together.
    """
    net = subject.net
    spread = subject.spread
    by = np.ones(net.n_inputs) if spread is None else spread
    values = net.output[:, None] * net.weights * by
    errors = None
    if subject.errors is not None:
        of_weight = np.asarray(subject.errors.weights) * np.abs(net.output)[:, None]
        of_output = np.asarray(subject.errors.output)[:, None] * np.abs(net.weights)
        # A number that is open leaves the product open, unless it stands beside an input that never varies.
        with np.errstate(invalid="ignore"):
            errors = np.nan_to_num(np.hypot(of_weight, of_output) * by, nan=np.inf, posinf=np.inf)
    return Effects(values, errors, spread is not None, net.activation)
