"""A fit as rivals are compared by it: its residuals row by row, and the charge for its freedom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.certify.tangent import Tangent
from onehidden.certify.vuong import Vuong, vuong
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class RowLosses:
    """Residuals (n,) of a fitted model and its freedom by Takeuchi's trace."""

    residual: Float[np.ndarray, " n"]
    freedom: float

    @classmethod
    def of(cls, problem: Problem, network: OneHiddenNet) -> RowLosses:
        """Those of a network, in x, at its minimum."""
        fit, theta = problem.sums, problem.theta(network)
        assert isinstance(fit, NetworkFit)
        residual = fit.residuals(theta)
        return cls(residual, tangent(fit, theta).freedom(residual))

    @classmethod
    def linear(cls, problem: Problem) -> RowLosses:
        """Those of the least-squares linear function."""
        design, left = linear_fit(problem)
        return cls(left, Tangent.of(design, len(left)).freedom(left))

    def gain(self, other: RowLosses) -> float:
        """n log(loss) by which this fit is better."""
        return len(self.residual) * float(np.log(np.sum(other.residual**2) / np.sum(self.residual**2)))

    def against(self, other: RowLosses) -> Vuong:
        """Row by row, each charged its freedom."""
        return vuong(self.residual, other.residual, self.freedom, other.freedom)


def tangent(fit: NetworkFit, theta: Float[np.ndarray, " p"]) -> Tangent:
    """The tangent space of a network at these parameters."""
    gram = fit.normal_equations(theta)[0]
    return Tangent.of(lambda rows: fit.jacobian(theta, rows), fit.n, gram)


def linear_fit(problem: Problem) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, " n"]]:
    """The weighted columns of a linear function, and what its least-squares fit leaves."""
    samples = problem.samples
    Z, y = problem.begin.inputs(samples.X), problem.begin.target(samples.y)
    design, target = problem.weighted(np.column_stack([np.ones(len(Z)), Z])), problem.weighted(y)
    return design, design @ np.linalg.lstsq(design, target, rcond=None)[0] - target
