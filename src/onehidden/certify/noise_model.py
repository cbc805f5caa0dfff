"""The likelihood of a fit under a noise model of its own, by which it is compared with another fit.

The question is whether another network could be the true one, given these rows. Each network says what the
noise would be if it were: its residuals, with a spread and tails estimated for it alone. A network that is
wrong on a few rows has noise with tails there, which costs it likelihood; where the noise is large, losses
count for little. A sum of squares shows neither. A residual r of leverage h is taken as r / √(1 - h), of the
spread of the noise; with r / (1 - h) one row of leverage near one decides against the network that has it.

Each fit is compared at its own most likely parameters. Least squares is far from them where the noise is very
unequal: by up to 200 of twice the log likelihood, so that one unit more, or another activation, looked better
for lying nearer to the truth by chance. One descent with the weights of the noise model mends it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import digamma, gammaln
from scipy.stats import chi2

from onehidden.certify import levels
from onehidden.certify.certificate import Certificate
from onehidden.certify.groups import independent_rows, residual_correlation
from onehidden.certify.local_fit import leverages, linear_problem
from onehidden.families import NegativeBinomial, Poisson
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.problem import TO_COMPARE, Problem, linear_network, optimise
from onehidden.network import OneHiddenNet
from onehidden.run import Run


@dataclass(frozen=True)
class OwnLikelihood:
    """Twice the log likelihood of a fit, and what a difference of two must exceed."""

    twice: float  # the log likelihood under the fit's own noise model; but for counts a family's -deviance
    parameters: int  # rank of the Jacobian
    dispersion: float = 1.0  # what the deviance of a family is divided by, 1 for normal noise
    share: float = 1.0  # independent rows among the rows; less than 1 where rows of a group share noise
    network: OneHiddenNet | None = None  # the most likely one, in x, where that is not the fit itself

    @classmethod
    def of_answer(cls, certificate: Certificate, problem: Problem, run: Run) -> OwnLikelihood:
        """That of the network of a certificate, which an earlier comparison may have left there."""
        return certificate.likelihood or cls.of(problem, certificate.network, run)

    @classmethod
    def constant(cls, problem: Problem) -> OwnLikelihood:
        """That of the best constant of a family."""
        level = linear_network(linear_problem(problem), inputs=False)
        return cls(-float(np.sum(problem.row_losses(level))), problem.form.q)

    @classmethod
    def of(cls, problem: Problem, network: OneHiddenNet, run: Run) -> OwnLikelihood:
        """That of a network, in x, at its minimum."""
        seen, groups = problem.at(network), problem.samples.groups
        residual, leverage = _fit_of(seen, network)
        rank, share = int(np.rint(leverage.sum())), 1.0
        if groups is not None:
            share = independent_rows(problem.n, *residual_correlation(residual, groups)) / problem.n
        if isinstance(family := problem.family, Poisson):
            # Counts that spread more than Poisson's do so where they are many: a wrong fit would gain there.
            law = family if isinstance(family, NegativeBinomial) else NegativeBinomial("log")
            eta = law.eta_of(family.mean(network.predict(problem.samples.X) + problem.offsets))
            return cls(-law.misfit(problem.samples.y, eta, problem.samples.weight), rank, share=share)
        if family is not None:
            unit = seen.fit_coordinates.variance / seen.samples.unit
            phi = (
                float(np.sum(residual**2)) * unit / max(problem.n_values - rank, 1) if family.scaled else 1.0
            )
            return cls(-float(np.sum(problem.row_losses(network))), rank, phi, share)
        noise, likely = _noise(problem, network, residual, leverage), None
        if noise.uneven and residual.shape[1] == 1:
            own = noise.weight if problem.samples.weight is None else noise.weight * problem.samples.weight
            there = replace(problem, rows=replace(problem.samples, weight=own / own.mean()))
            moved = linear_network(there)
            if problem.k:
                moved = optimise(network, there, run.at("own noise"), tolerance=TO_COMPARE).network
            own = _noise(problem, moved, _fit_of(problem, moved)[0], _fit_of(there, moved)[1])
            if own.value > noise.value:
                noise, likely = own, moved
        return cls(2 * noise.value, rank, share=share, network=likely)

    def ahead(self, other: OwnLikelihood) -> float:
        """Twice the log likelihood by which this fit is better, the deviance over the dispersion here."""
        if self.twice == other.twice:  # both may be exact
            return 0.0
        return self.share * (self.twice - other.twice) / self.dispersion

    @property
    def needed(self) -> float:
        """Twice the log likelihood by which another fit must be behind to be ruled out."""
        return self.ruled_out_at(levels.RIVAL.value)

    def ruled_out_at(self, level: float, shared: int = 0) -> float:
        """The same at a level: the quantile of the chi-square law of all parameters but those ``shared``."""
        return float(chi2.isf(level, max(self.parameters - shared, 1)))


def _fit_of(
    problem: Problem, network: OneHiddenNet
) -> tuple[Float[np.ndarray, "n q"], Float[np.ndarray, "n q"]]:
    """Weighted residuals of a network, in x, and their leverages."""
    fit, theta = problem.least_squares, problem.theta(network)
    assert isinstance(fit, InMemoryLeastSquares)
    return fit.residuals(theta).reshape(problem.n, -1), leverages(fit, theta).reshape(problem.n, -1)


class Noise(NamedTuple):
    """A noise model fitted to residuals."""

    value: float  # the log likelihood
    weight: Float[np.ndarray, " n"]  # what a weighted fit under this noise gives each row
    uneven: bool  # whether it is clearly more likely than normal noise of one spread


def _noise(
    problem: Problem,
    network: OneHiddenNet,
    residual: Float[np.ndarray, "n q"],
    leverage: Float[np.ndarray, "n q"],
) -> Noise:
    """The noise that a fit leaves; several outputs have their own, and no weights.

    A leverage is at most .99, since 1 leaves no residual.
    """
    fitted = problem.fit_coordinates.target(network.predict(problem.samples.X)).reshape(problem.n, -1)
    Z = problem.search_coordinates.inputs(problem.samples.X)
    Z = Z if problem.form.structure is None else Z[:, :0]  # the inputs may be more than the rows
    left = residual / np.sqrt(1 - np.minimum(leverage, 0.99))
    found = [fit_noise(e, np.column_stack([f, Z])) for e, f in zip(left.T, fitted.T, strict=True)]
    return found[0]._replace(value=sum(one.value for one in found))


def fit_noise(residual: Float[np.ndarray, " n"], columns: Float[np.ndarray, "n m"], steps: int = 60) -> Noise:
    r"""The most likely noise of residuals: Student's t with a spread that follows the columns.

    .. math:: r_i = e^{D_i \gamma} t_i, \quad t_i \sim t_\nu, \quad D = (1, \mathrm{columns}),

    over gamma and nu. An invertible affine map of the columns changes nothing.
    """
    size = float(np.sqrt(np.mean(residual**2)))
    e, n = residual / size if size > 0 else residual, len(residual)
    if not size > 0:
        return Noise(np.inf, np.ones(n), False)
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
    value, log_sd, nu = -n * float(found.fun), basis @ found.x[:-1], 1 / found.x[-1]
    weight = (nu + 1) / (nu * np.exp(2 * log_sd) + e**2)
    even = -0.5 * n * (1 + np.log(2 * np.pi))  # of normal noise with the spread of e, one
    uneven = 2 * (value - even) > chi2.isf(levels.RIVAL.value, m)
    return Noise(value - n * float(np.log(size)), weight / weight.mean(), bool(uneven))
