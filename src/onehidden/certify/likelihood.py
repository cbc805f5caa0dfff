"""Fits of the same rows compared row by row: Vuong's test with Takeuchi's effective number of parameters.

Under unequal noise n log(loss) is no likelihood ratio, but a difference of losses has a standard error of its
own, row by row, whatever the noise is (Vuong 1989).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular
from scipy.special import ndtri

from onehidden.certify import levels
from onehidden.fit.final import linear_network
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet

RowsOfJacobian = Callable[[slice | np.ndarray], Float[np.ndarray, "m p"]]


@dataclass(frozen=True)
class Tangent:
    """The tangent space of a model at its fit, read in blocks of rows.

    It holds an orthonormal basis Q of the columns of J over all rows: Q L' = J / |J|. L is a pivoted Cholesky
    factor of J'J with columns of length one: a twentieth of the time of eigenvectors, and columns in the span
    of the chosen ones are left out.
    """

    jacobian: RowsOfJacobian  # gives the derivatives of some rows, a slice or an index array
    n: int
    columns: Int[np.ndarray, " r"]  # those chosen
    lengths: Float[np.ndarray, " r"]  # of their columns
    factor: Float[np.ndarray, "r r"]  # L

    @classmethod
    def of(
        cls,
        jacobian: Float[np.ndarray, "n p"] | RowsOfJacobian,
        n: int,
        gram: Float[np.ndarray, "p p"] | None = None,
    ) -> Tangent:
        """The tangent space of a Jacobian given whole or by rows; ``gram`` is J'J where it is known."""
        from scipy.linalg.lapack import dpstrf  # pyright: ignore[reportAttributeAccessIssue]

        of_rows = jacobian if callable(jacobian) else lambda rows: jacobian[rows]
        if gram is None:
            p = of_rows(slice(0, 1)).shape[1]
            gram = np.zeros((p, p))
            for block in blocks(n, p):
                J = np.asarray(of_rows(block), float)
                gram += J.T @ J
        length = np.sqrt(np.diag(gram))
        length = np.where(length > 0, length, 1)
        if not len(gram):
            return cls(of_rows, n, np.zeros(0, int), length, gram)
        # 1e-10 of a column's square must be left of it beyond the columns chosen before.
        factor, order, rank, _ = dpstrf((gram / np.outer(length, length)).T, tol=1e-10, lower=1)
        kept = order[:rank] - 1
        return cls(of_rows, n, kept, length[kept], np.tril(factor[:rank, :rank]))

    @classmethod
    def of_network(cls, fit: InMemoryLeastSquares, theta: Float[np.ndarray, " p"]) -> Tangent:
        """The tangent space of a network at these parameters."""
        return cls.of(lambda rows: fit.jacobian(theta, rows), fit.n, fit.normal_equations(theta)[0])

    @property
    def rank(self) -> int:
        return len(self.columns)

    def basis(self, rows: slice | np.ndarray) -> Float[np.ndarray, "m r"]:
        """Q of some rows."""
        J = np.asarray(self.jacobian(rows), float)[:, self.columns] / self.lengths
        return solve_triangular(self.factor, J.T, lower=True, check_finite=False, overwrite_b=True).T

    def leverages(self) -> Float[np.ndarray, " n"]:
        """The diagonal of the projection QQ'."""
        found = [leverages(self.basis(block)) for block in blocks(self.n, max(self.rank, 1))]
        return np.concatenate(found) if found else np.zeros(0)

    def effective_parameters(self, residual: Float[np.ndarray, " n"]) -> float:
        r"""tr(H^-1 S), Takeuchi's number of parameters: :math:`\sum_i h_i r_i^2 / \overline{r^2}`.

        With equal noise it is near the rank of J; a model that bends to noisy rows is charged more. The
        residuals are taken before the fit shrank them, r^2 / (1 - h).
        """
        h = self.leverages()
        square = residual**2 / (1 - h)
        mean = float(np.mean(square))
        return float(np.sum(h * square)) / mean if mean > 0 else float(np.sum(h))


def leverages(Q: Float[np.ndarray, "m r"]) -> Float[np.ndarray, " m"]:
    """|Q_i|^2 of each row of an orthonormal basis; at most .99, since 1 leaves no residual."""
    return np.minimum(np.sum(Q**2, axis=1), 0.99)


def blocks(n: int, columns: int) -> Iterator[slice]:
    """Slices of n rows with about a million numbers each."""
    rows = max(256, (1 << 20) // max(columns, 1))
    return (slice(i, min(i + rows, n)) for i in range(0, n, rows))


@dataclass(frozen=True)
class Vuong:
    """A comparison of two models.

    ``gain`` is the log-likelihood by which the first is better, each charged its parameters, negative where
    the second is; ``standard_error`` that of the gain, from its rows.
    """

    gain: float
    standard_error: float

    @property
    def z_score(self) -> float:
        """The gain over its standard error; zero where there is neither."""
        if self.standard_error > 0:
            return self.gain / self.standard_error
        return 0.0 if self.gain == 0 else float(np.copysign(np.inf, self.gain))

    @property
    def verdict(self) -> Literal["first", "second", "tie"]:
        """The better one at the two-sided level, or a tie."""
        if abs(self.z_score) <= -float(ndtri(levels.VUONG.value / 2)):
            return "tie"
        return "first" if self.gain > 0 else "second"


def vuong(
    residual_a: Float[np.ndarray, "n ..."],
    residual_b: Float[np.ndarray, "n ..."],
    parameters_a: float,
    parameters_b: float,
    dispersion: float | None = None,
) -> Vuong:
    r"""Compare two fits of the same rows by their Gaussian log-losses, each with its own variance.

    .. math:: G = \frac n2 \log\frac{s_b^2}{s_a^2} - (t_a - t_b), \quad
        \mathrm{se}^2 = \sum_i (m_i - \bar m)^2, \quad
        m_i = \frac{r_{b,i}^2}{2 s_b^2} - \frac{r_{a,i}^2}{2 s_a^2},

    with t = tr(H^-1 S) of each (``Tangent.effective_parameters``). Models whose functions coincide have
    differences of the order of their parameters, not of sqrt(n): there the charge, not the normal law,
    decides, and the simpler one may be called better. Measured in ``benchmarks/results/score_test.md``.

    Residuals of a family are the roots of the unit deviances. Where ``dispersion``, s^2 of both, is known,
    the losses are compared as they are, without logarithm.
    """
    a, b = np.asarray(residual_a, float), np.asarray(residual_b, float)
    if a.shape != b.shape or a.ndim not in (1, 2):
        raise ValueError(f"expected residuals of the same rows, got shapes {a.shape} and {b.shape}")
    mean_a, mean_b = float(np.mean(a**2)), float(np.mean(b**2))
    if mean_a == 0 or mean_b == 0:  # an exact fit: no likelihood, but no doubt either
        return Vuong(0.0 if mean_a == mean_b else np.inf if mean_a == 0 else -np.inf, 0.0)
    if dispersion is not None:
        ahead, mean_a, mean_b = 0.5 * a.size * (mean_b - mean_a) / dispersion, dispersion, dispersion
    else:
        ahead = 0.5 * a.size * float(np.log(mean_b / mean_a))
    gain = ahead - (parameters_a - parameters_b)
    rows = 0.5 * (b**2 / mean_b - a**2 / mean_a).reshape(len(a), -1).sum(axis=1)
    return Vuong(gain, float(np.std(rows) * np.sqrt(len(a))))


@dataclass(frozen=True)
class RowLosses:
    """Residuals (n, q) of a fitted model, its effective parameters, and the dispersion if it is known.

    Where y has a family they are the roots of the rows' deviances, (n, 1).
    """

    residual: Float[np.ndarray, "n q"]
    parameters: float
    dispersion: float | None = None

    @classmethod
    def of(cls, problem: Problem, network: OneHiddenNet) -> RowLosses:
        """Those of a network, in x, at its minimum."""
        seen = problem.at(network)
        fit, theta = seen.least_squares, seen.theta(network)
        assert isinstance(fit, InMemoryLeastSquares)
        residual = fit.residuals(theta)
        parameters = Tangent.of_network(fit, theta).effective_parameters(residual)
        return cls._made(problem, network, residual, parameters)

    @classmethod
    def linear(cls, problem: Problem) -> RowLosses:
        """Those of the best linear function."""
        design, left = linear_fit(problem)
        parameters = sum(Tangent.of(design, len(left)).effective_parameters(one) for one in left.T)
        return cls._made(problem, linear_network(problem), left, parameters)

    @classmethod
    def _made(
        cls, problem: Problem, network: OneHiddenNet, residual: np.ndarray, parameters: float
    ) -> RowLosses:
        if problem.family is None:
            return cls(residual.reshape(problem.n, -1), parameters)
        root = np.sqrt(problem.row_losses(network))[:, None]
        return cls(root, parameters, None if problem.family.scaled else 1.0)

    def gain(self, other: RowLosses) -> float:
        """n log(loss) by which this fit is better, or the deviance in units of a known dispersion."""
        mine, theirs = float(np.sum(self.residual**2)), float(np.sum(other.residual**2))
        if self.dispersion is not None:
            return (theirs - mine) / self.dispersion
        return self.residual.size * float(np.log(theirs / mine))

    def against(self, other: RowLosses) -> Vuong:
        """Compare row by row."""
        return vuong(
            self.residual, other.residual, self.parameters, other.parameters, dispersion=self.dispersion
        )


def linear_fit(problem: Problem) -> tuple[Float[np.ndarray, "n m"], Float[np.ndarray, "n q"]]:
    """The weighted columns of a linear function, and the residuals of its fit of each output.

    Weights that differ from output to output are taken at their mean.
    """
    seen = problem.at(linear_network(problem))
    Z, y = seen.search_coordinates.inputs(seen.samples.X), seen.search_coordinates.target(seen.samples.y)
    design, target = seen.weighted(np.column_stack([np.ones(len(Z)), Z])), seen.weighted(y)
    left = design @ np.linalg.lstsq(design, target, rcond=None)[0] - target
    return design, left.reshape(len(left), -1)
