"""Fisher scoring: the fit of a form whose target has another family than normal noise.

At any parameters the family makes the rows a weighted least-squares problem, with a working target and the
information of each row as its weight: its J'J is the Fisher information, its J'r half the gradient of the
deviance. Levenberg–Marquardt on these normal equations, with the deviance as the loss, is Fisher scoring.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.families.family import Family
from onehidden.fit.form import Form, roots
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.normal_equations import NormalEquations
from onehidden.fit.triangle import Triangle

Target = Float[np.ndarray, "n ..."]


class ScoringFit:
    """The deviance of a form over rows, and a step of Fisher scoring at any parameters.

    Parameters
    ----------
    form, X, y : which parameters are free, inputs (n, d), target (n,) or (n, q).
    family : of y given the network's output.
    weight : (n,) how often each row counts, its trials among that; None: once.
    offset : (n,) or (n, q) what is added to the network's output; None: nothing.
    """

    def __init__(
        self,
        form: Form,
        X: Float[np.ndarray, "n d"],
        y: Target,
        family: Family,
        weight: Float[np.ndarray, " n"] | None = None,
        offset: Target | None = None,
    ) -> None:
        self.form, self.n = form, len(X)
        self._X, self._y, self._family, self._weight = X, y, family, weight
        self._offset = np.zeros_like(y) if offset is None else offset
        self._plain = NetworkFit(form, X, np.zeros_like(y))

    def output(self, theta: np.ndarray) -> Target:
        """The network's output at every row, without the offset."""
        return self._plain.residuals(theta).reshape(self._y.shape)

    def losses(self, theta: np.ndarray) -> Float[np.ndarray, " n"]:
        """(n,) weighted unit deviances, added up over outputs."""
        return deviances(self._family, self._y, self.output(theta) + self._offset, self._weight)

    def loss(self, theta: np.ndarray) -> float:
        """The deviance."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(self.losses(theta)))

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The information, half the gradient of the deviance, and the deviance."""
        target, weight = self._working(theta)
        sums = NormalEquations(self.form, theta, rough, written=weight.ndim > 1)
        hessian, gradient, _ = sums.update(self._X, target, weight).result()
        return hessian, gradient, self.loss(theta)

    def triangle(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R and Q'r of the Jacobian times the roots of the information."""
        target, weight = self._working(theta)
        return Triangle(self.form, theta).update(self._X, target, weight).result()

    def _working(self, theta: np.ndarray) -> tuple[Target, np.ndarray]:
        output = self.output(theta)
        return working_rows(self._family, self._y, output, self._offset, self._weight)


def deviances(
    family: Family, y: Target, eta: Target, weight: Float[np.ndarray, " n"] | None
) -> Float[np.ndarray, " n"]:
    """(n,) unit deviances times the weights of their rows, added up over outputs."""
    found = family.deviance(y, eta)
    found = found if found.ndim == 1 else found.sum(axis=1)
    return found if weight is None else weight * found


def working_rows(
    family: Family, y: Target, output: Target, offset: Target, weight: Float[np.ndarray, " n"] | None
) -> tuple[Target, Float[np.ndarray, "n ..."]]:
    """The target and the weights, (n,), (n, q) or (n, q, q), of a step of Fisher scoring at this output."""
    step = family.working(y, output + offset)
    information = step.weight
    if weight is not None:
        information = information * weight.reshape(-1, *[1] * (information.ndim - 1))
    return output - step.residual, information


def pearson(
    family: Family, y: Target, eta: Target, weight: Float[np.ndarray, " n"] | None
) -> Float[np.ndarray, " N"]:
    """Residuals of variance phi, those of a row next to each other."""
    step = family.working(y, eta)
    root = roots(weight, len(y))
    return (step.whitened * root.reshape(-1, *[1] * (step.whitened.ndim - 1))).reshape(-1)
