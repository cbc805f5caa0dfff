"""A fit as rivals are compared by it: its residuals row by row, and the charge for its freedom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.certify.tangent import Tangent
from onehidden.certify.vuong import Vuong, vuong
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.linear_part import linear_network
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class RowLosses:
    """Residuals (n, q) of a fitted model, its freedom by Takeuchi's trace, and the dispersion if known.

    Where y has a family they are the roots of the rows' deviances, (n, 1).
    """

    residual: Float[np.ndarray, "n q"]
    freedom: float
    dispersion: float | None = None

    @classmethod
    def of(cls, problem: Problem, network: OneHiddenNet) -> RowLosses:
        """Those of a network, in x, at its minimum."""
        seen = problem.at(network)
        fit, theta = seen.sums, seen.theta(network)
        assert isinstance(fit, NetworkFit)
        residual = fit.residuals(theta)
        return cls._made(problem, network, residual, tangent(fit, theta).freedom(residual))

    @classmethod
    def linear(cls, problem: Problem) -> RowLosses:
        """Those of the best linear function."""
        design, left = linear_fit(problem)
        charge = sum(Tangent.of(design, len(left)).freedom(one) for one in left.T)
        return cls._made(problem, linear_network(problem), left, charge)

    @classmethod
    def _made(
        cls, problem: Problem, network: OneHiddenNet, residual: np.ndarray, freedom: float
    ) -> RowLosses:
        if problem.family is None:
            return cls(residual.reshape(problem.n, -1), freedom)
        root = np.sqrt(problem.losses(network))[:, None]
        return cls(root, freedom, None if problem.family.scaled else 1.0)

    def gain(self, other: RowLosses) -> float:
        """n log(loss) by which this fit is better, or the deviance in units of a known dispersion."""
        mine, theirs = float(np.sum(self.residual**2)), float(np.sum(other.residual**2))
        if self.dispersion is not None:
            return (theirs - mine) / self.dispersion
        return self.residual.size * float(np.log(theirs / mine))

    def against(self, other: RowLosses) -> Vuong:
        """Row by row, each charged its freedom."""
        dispersion = self.dispersion
        return vuong(self.residual, other.residual, self.freedom, other.freedom, dispersion=dispersion)


def tangent(fit: NetworkFit, theta: Float[np.ndarray, " p"]) -> Tangent:
    """The tangent space of a network at these parameters."""
    gram = fit.normal_equations(theta)[0]
    return Tangent.of(lambda rows: fit.jacobian(theta, rows), fit.n, gram)


def linear_fit(problem: Problem) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n q"]]:
    """The weighted columns of a linear function, and what its fit leaves of each output.

    Weights that differ from output to output are taken at their mean.
    """
    seen = problem.at(linear_network(problem))
    Z, y = seen.begin.inputs(seen.samples.X), seen.begin.target(seen.samples.y)
    design, target = seen.weighted(np.column_stack([np.ones(len(Z)), Z])), seen.weighted(y)
    left = design @ np.linalg.lstsq(design, target, rcond=None)[0] - target
    return design, left.reshape(len(left), -1)
