"""The likelihood of a fit under a noise model of its own, by which it is compared with another fit.

The question is whether another network could be the true one, given these rows. Each network says what the
noise would be if it were: its residuals, with a spread and tails estimated for it alone. A network that is
wrong on a few rows has noise with tails there, which costs it likelihood; where the noise is large, losses
count for little. A sum of squares shows neither. A residual r of leverage h is taken as r / √(1 - h), of the
spread of the noise; with r / (1 - h) one row of leverage near one decides against the network that has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import digamma, gammaln
from scipy.stats import chi2

from onehidden.certify import levels
from onehidden.certify.groups import independent_rows, residual_correlation
from onehidden.certify.local_fit import Tangent, linear_fit
from onehidden.families import Bernoulli
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.problem import Problem, linear_network
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class OwnLikelihood:
    """Twice the log likelihood of a fit, and what a difference of two must exceed.

    Attributes
    ----------
    twice : float
        Twice the log likelihood under the fit's own noise model; of a family the negative deviance.
    parameters : int
        Rank of the Jacobian.
    dispersion : float
        What the deviance of a family is divided by, 1 for normal noise.
    share : float
        Independent rows among the rows; less than 1 where rows of a group share noise.
    """

    twice: float
    parameters: int
    dispersion: float = 1.0
    share: float = 1.0

    @classmethod
    def of(cls, problem: Problem, network: OneHiddenNet) -> OwnLikelihood:
        """That of a network, in x, at its minimum."""
        seen = problem.at(network)
        fit, theta = seen.least_squares, seen.theta(network)
        assert isinstance(fit, InMemoryLeastSquares)
        tangent, residual = Tangent.of_network(fit, theta), fit.residuals(theta)
        if problem.family is None:
            residual = residual / np.sqrt(1 - tangent.leverages())
        return cls._made(problem, network, residual, tangent.rank)

    @classmethod
    def linear(cls, problem: Problem) -> OwnLikelihood:
        """That of the best linear function."""
        design, left = linear_fit(problem)
        tangent = Tangent.of(design, len(left))
        left = left / np.sqrt(1 - tangent.leverages())[:, None]
        return cls._made(problem, linear_network(problem), left, tangent.rank * left.shape[1])

    @classmethod
    def _made(cls, problem: Problem, network: OneHiddenNet, residual: np.ndarray, rank: int) -> OwnLikelihood:
        groups, each = problem.samples.groups, residual.reshape(problem.n, -1)
        share = 1.0
        if groups is not None:
            share = independent_rows(problem.n, *residual_correlation(each, groups)) / problem.n
        if problem.family is not None:
            seen = problem.at(network)
            unit = seen.fit_coordinates.variance / seen.samples.unit
            phi = float(np.sum(residual**2)) * unit / max(problem.n_values - rank, 1)
            if not problem.family.scaled:  # counts may spread more than their family says, 0/1 cannot
                fixed = problem.family.coupled or isinstance(problem.family, Bernoulli)
                phi = 1.0 if fixed else max(phi, 1.0)
            return cls(-float(np.sum(problem.row_losses(network))), rank, phi, share)
        fitted = problem.fit_coordinates.target(network.predict(problem.samples.X)).reshape(problem.n, -1)
        Z = problem.search_coordinates.inputs(problem.samples.X)
        found = sum(log_likelihood(e, np.column_stack([f, Z])) for e, f in zip(each.T, fitted.T, strict=True))
        return cls(2 * float(found), rank, share=share)

    def ahead(self, other: OwnLikelihood) -> float:
        """Twice the log likelihood by which this fit is better, the deviance over the dispersion here."""
        if self.twice == other.twice:  # both may be exact
            return 0.0
        return self.share * (self.twice - other.twice) / self.dispersion

    @property
    def needed(self) -> float:
        """Twice the log likelihood by which another fit must be behind to be ruled out."""
        return float(chi2.isf(levels.RIVAL.value, max(self.parameters, 1)))


def log_likelihood(
    residual: Float[np.ndarray, " n"], columns: Float[np.ndarray, "n m"], steps: int = 60
) -> float:
    r"""The largest log likelihood of residuals under Student's t with a spread that follows the columns.

    .. math:: r_i = e^{D_i \gamma} t_i, \quad t_i \sim t_\nu, \quad D = (1, \mathrm{columns}),

    over gamma and nu. An invertible affine map of the columns changes nothing.
    """
    size = float(np.sqrt(np.mean(residual**2)))
    if not size > 0:
        return np.inf
    e, n = residual / size, len(residual)
    centred = columns - columns.mean(axis=0)
    spread = centred.std(axis=0)
    left, value, _ = np.linalg.svd(centred / np.where(spread > 0, spread, 1.0), full_matrices=False)
    basis = np.column_stack([np.ones(n), np.sqrt(n) * left[:, value > 1e-6 * np.max(value, initial=1.0)]])

    def negative(at: np.ndarray) -> tuple[float, np.ndarray]:
        log_sd, nu = basis @ at[:-1], 1 / at[-1]
        square = (e * np.exp(-log_sd)) ** 2
        tails = np.log1p(square / nu)
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu)
        value = n * constant - np.sum(log_sd) - 0.5 * (nu + 1) * np.sum(tails)
        share = square / (nu + square)
        by_gamma = basis.T @ ((nu + 1) * share - 1)
        by_nu = 0.5 * (n * (digamma((nu + 1) / 2) - digamma(nu / 2) - 1 / nu) - np.sum(tails))
        by_nu += 0.5 * (nu + 1) / nu * np.sum(share)
        return -value / n, -np.append(by_gamma, -(nu**2) * by_nu) / n

    m = basis.shape[1]
    start = np.append(np.zeros(m), 0.1)  # of 1 / nu
    bounds = [(-20.0, 20.0)] + [(-5.0, 5.0)] * (m - 1) + [(1e-3, 1.0)]
    found = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps, "ftol": 1e-10}
    )
    return -n * (float(found.fun) + np.log(size))
