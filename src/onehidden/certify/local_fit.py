"""The loss around a network: gradient, Gauss–Newton matrix and its spectrum along the free directions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse
from scipy.linalg import null_space, solve_triangular
from scipy.special import fdtri, ncfdtrinc

from onehidden.certify import levels
from onehidden.certify.errors import kink_scatter, leverage_scatter
from onehidden.certify.groups import GroupedCovariance, correlation_within, independent_rows
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class Curvature:
    """Spectrum of the Gauss–Newton matrix J'J along the free directions."""

    values: np.ndarray  # (f,) eigenvalues, ascending, of the matrix with unit diagonal: units do not matter
    rank: int  # number of eigenvalues above rounding
    freedom: int  # f, the number of free directions
    covariance: np.ndarray  # (p, p) pseudo-inverse of J'J for all parameters
    undetermined: np.ndarray  # (p,) whether the data leave this parameter undetermined
    lengths: np.ndarray  # (f,) of the columns of J along the free directions, 1 for a column of zeros


class FreeDirections:
    """D (p, f), an orthonormal basis of the parameter changes allowed in canonical form; never formed.

    For homogeneous g the scale of a unit can be traded against its output. Canonical rows have unit norm, so
    a row may only move within the hyperplane orthogonal to its normal in ``normals`` (k, d). D has a block
    for each unit. Free parameters of a structure keep the same condition on their rows, in one block.
    """

    def __init__(self, form: Parametrisation, normals: np.ndarray | None) -> None:
        self._blocks = None  # (b, m, m - 1) or, of a structure, (1, m, m - k)
        self.freedom = form.size
        if normals is not None and form.free is not None:
            every = sparse.block_diag([row[None] for row in normals])
            rows: np.ndarray = (form.free.weights.T @ every.T).toarray().T
            self._blocks = null_space(rows / max(np.max(np.abs(rows)), np.finfo(float).tiny))[None]
        elif normals is not None:
            self._blocks = np.linalg.qr(normals[:, :, None], mode="complete")[0][:, :, 1:]
        if self._blocks is not None:
            self.freedom -= len(self._blocks) * (self._blocks.shape[1] - self._blocks.shape[2])

    def inward(self, array: np.ndarray) -> np.ndarray:
        """D' A for A (p, …)."""
        return np.array(array) if self._blocks is None else _blockwise(self._blocks.mT, array)

    def outward(self, array: np.ndarray) -> np.ndarray:
        """D A for A (f, …)."""
        return np.array(array) if self._blocks is None else _blockwise(self._blocks, array)


def _blockwise(blocks: Float[np.ndarray, "b n m"], array: np.ndarray) -> np.ndarray:
    """Blocks times the first rows of an array; the rest stay."""
    b, n, m = blocks.shape
    moved = blocks @ array[: b * m].reshape(b, m, math.prod(array.shape[1:]))
    return np.concatenate([moved.reshape(b * n, *array.shape[1:]), array[b * m :]])


def curvature(hessian: np.ndarray, free: FreeDirections, *, single_from: int = 1000) -> Curvature:
    """Spectrum, rank and inverse of J'J along the free directions.

    ``single_from`` directions or more have their eigenvalues in single precision where that suffices.
    """
    reduced = free.inward(free.inward(hessian).T)
    diagonal = np.diag(reduced).copy()
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    reduced /= scale[:, None]
    reduced /= scale
    value = np.zeros(1)
    if len(reduced) >= single_from:
        value = np.linalg.eigvalsh(reduced.astype(np.float32)).astype(float)
    if not known_in_single_precision(value):
        value = np.linalg.eigvalsh(reduced)
    # J'J has half the digits of J: eigenvalues below p * eps * largest are rounding.
    rounding = max(1e-13, len(value) * np.finfo(float).eps) * value[-1]
    inverse, lost = _inverse(reduced) if value[0] > rounding else None, np.zeros((len(hessian), 0))
    if inverse is None:  # the eigenvectors are needed, too
        value, vector = np.linalg.eigh(reduced)
        seen = value > rounding
        root = vector[:, seen] / np.sqrt(value[seen])
        inverse, lost = root @ root.T, np.abs(free.outward(vector[:, ~seen] / scale[:, None]))
    inverse /= scale[:, None]
    inverse /= scale
    reach = np.max(lost, axis=1, initial=0.0)
    undetermined = reach > 1e-4 * max(float(np.max(reach)), np.finfo(float).tiny)
    covariance = free.outward(free.outward(inverse).T)
    return Curvature(value, int(np.sum(value > rounding)), len(value), covariance, undetermined, scale)


def known_in_single_precision(values: np.ndarray) -> bool:
    """Whether seven digits of the largest eigenvalue tell the smallest to a thousandth.

    Of 2501 directions, d = k = 50, a smallest eigenvalue of 4e-4 was known to 1e-4 of itself.
    """
    return bool(values[0] > 1e-4 * values[-1])


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Inverse of a positive matrix at half the work of a general one; None if rounding forbids it."""
    from scipy.linalg.lapack import dpotrf, dpotri  # pyright: ignore[reportAttributeAccessIssue]

    factor, failed = dpotrf(matrix.T, lower=1)
    if failed:
        return None
    lower = dpotri(factor, lower=1, overwrite_c=1)[0]  # zero above the diagonal, like the factor
    return lower + np.tril(lower, -1).T


@dataclass(frozen=True)
class LocalFit:
    """Loss, gradient and curvature at a network."""

    problem: Problem = field(repr=False)
    network: OneHiddenNet  # in x and canonical
    inner: OneHiddenNet  # in the coordinates of the final optimisation
    theta: Float[np.ndarray, " p"] = field(repr=False)  # its parameters there
    hessian: Float[np.ndarray, "p p"] = field(repr=False)  # J'J over all rows
    loss: float  # r'r
    curvature: Curvature = field(repr=False)
    cosine: float  # the largest between the residuals and a column of J along the free directions; 0 if exact

    @property
    def n(self) -> int:
        return self.problem.n

    @property
    def n_values(self) -> int:
        return self.problem.n_values

    @property
    def mean_square(self) -> float:
        """Mean squared residual as a share of var(y)."""
        return self.loss / self.n_values

    @property
    def exact(self) -> bool:
        """Whether the residuals are rounding."""
        return self.problem.rows.rounding.reproduces(self.mean_square)

    @property
    def freedom(self) -> int:
        """Free parameters, the scale of homogeneous units not counted."""
        return self.curvature.freedom

    @property
    def variance(self) -> float:
        """The noise variance as a share of var(y): known, or estimated."""
        rows = self.problem.rows
        if isinstance(rows, Samples) and rows.dispersion is not None:
            return rows.dispersion * rows.unit / self.problem.fit_coordinates.variance
        return self.residual_variance

    @property
    def residual_variance(self) -> float:
        """The noise variance that the residuals show, as a share of var(y)."""
        return self.loss / max(self.n_values - self.freedom, 1)

    @property
    def residuals(self) -> Float[np.ndarray, "n q"]:
        """Weighted residuals of rows in memory, (n, q)."""
        fit = self.problem.least_squares
        assert isinstance(fit, InMemoryLeastSquares)
        return fit.residuals(self.theta).reshape(self.n, -1)

    def covariance(self, robust: bool, by_group: bool = False) -> Float[np.ndarray, "p p"]:
        """Covariance of the parameters in z: classical, by the HC3 sandwich or by groups; kinks add to each.

        What kinks add is taken to first order: at the covariance without it, for rows by themselves.
        """
        inverse, form, variance = self.curvature.covariance, self.problem.form, self.variance
        smooth = inverse * variance
        if by_group and self.grouped is not None:
            smooth = self.grouped.covariance
        elif robust:
            smooth = inverse @ self.problem.sums(leverage_scatter, form, self.theta, inverse)[0] @ inverse
        if not form.activation.kinked or self.exact:
            return smooth
        known = form, self.theta, smooth, None if robust or by_group else variance
        return smooth + inverse @ self.problem.sums(kink_scatter, *known)[0] @ inverse

    @cached_property
    def grouped(self) -> GroupedCovariance | None:
        """The covariance by groups; None where rows have none."""
        if not self.problem.rows.n_groups:
            return None
        return GroupedCovariance.of(self.problem, self.theta, self.curvature.covariance)

    @property
    def open_parameters(self) -> Bool[np.ndarray, " P"]:
        """Whether the data leave a parameter of the network, in z, undetermined."""
        free, found = self.problem.form.free, self.curvature.undetermined
        return found if free is None else abs(free.matrix) @ found.astype(float) > 0

    @cached_property
    def effective_numbers(self) -> float:
        """Independent numbers of the target: fewer than there are where rows of a group share noise."""
        rows = self.problem.rows
        if not rows.n_groups or (isinstance(rows, Samples) and rows.shared):  # which was taken out
            return float(self.n_values)
        return independent_rows(self.n_values, *correlation_within(self.problem, self.theta))


def local_fit(network: OneHiddenNet, problem: Problem) -> LocalFit:
    """The loss around a network, in canonical form.

    The Gauss–Newton matrix is formed in whitened coordinates, where it is best conditioned.
    """
    canonical = problem.canonical(network)
    parts = [[one.weights, one.output, one.bias] for one in (network, canonical)]
    if not all(np.allclose(a, b, rtol=1e-14, atol=1e-15) for a, b in zip(*parts, strict=True)):
        network = canonical  # the pass of an equal one is made already
    form, coordinates = problem.form, problem.fit_coordinates
    theta = problem.theta(network)
    normals = network.weights @ coordinates.whiten if form.activation.homogeneity is not None else None
    # |a_x| = 1 with a_x = W a_z: the row a_z may move orthogonally to W' a_x.
    free, reproduces = FreeDirections(form, normals), problem.rows.rounding.reproduces
    # Of an exact fit J'J has to show no more than that every direction is determined.
    rough = not problem.rows.streamed and reproduces(problem.least_squares.loss(theta) / problem.n_values)
    hessian, gradient, loss = problem.least_squares.normal_equations(theta, rough)
    hessian = hessian.astype(float, copy=False)
    found = curvature(hessian, free)
    if rough and not known_in_single_precision(found.values):
        hessian, gradient, loss = problem.least_squares.normal_equations(theta)
        found = curvature(hessian, free)
    cosine = 0.0
    if not reproduces(loss / problem.n_values):
        length = found.lengths * np.sqrt(max(loss, np.finfo(float).tiny))
        cosine = float(np.max(np.abs(free.inward(gradient)) / length))
    return LocalFit(problem, network, coordinates.inward(network), theta, hessian, loss, found, cosine)


def root_of_inverse(hessian: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """C with C C' = (J'J)^+: the columns of J C are an orthonormal basis of those of J.

    Scale invariance makes J'J singular; 1e-10 of a unit diagonal is added and changes no projection.
    """
    size = np.diag(hessian)
    scale = np.where(size > 0, 1 / np.sqrt(np.maximum(size, np.finfo(float).tiny)), 0.0)
    unit = np.eye(len(size))
    factor = np.linalg.cholesky(hessian * scale[:, None] * scale + 1e-10 * unit)
    return scale[:, None] * solve_triangular(factor, unit, trans=1, lower=True)


def leverages(fit: InMemoryLeastSquares, theta: Float[np.ndarray, " p"]) -> Float[np.ndarray, " N"]:
    """The diagonal of the projection on the columns of J, in blocks of a million numbers.

    Its sum is the rank of J.
    """
    C = root_of_inverse(fit.normal_equations(theta)[0].astype(float))
    step = max(256, (1 << 20) // max(len(C), 1))
    blocks = (fit.jacobian(theta, slice(at, min(at + step, fit.n))) @ C for at in range(0, fit.n, step))
    return np.concatenate([np.sum(Q**2, axis=1) for Q in blocks])


def linear_problem(problem: Problem) -> Problem:
    """The same rows, a linear function and no units."""
    return replace(problem, form=replace(problem.form, k=0, bias=True, intercept=True, skip=True))


def detectable_share(local: LocalFit) -> float | None:
    """The share of var(y) below which one more unit may be overlooked, by the power of the F test of one.

    None where the rows leave less than twice the parameters of a unit.
    """
    form = local.problem.form
    unit = form.unit_freedom
    spare, numbers = local.n_values - local.freedom - unit, local.effective_numbers
    if spare < unit:
        return None
    bound = fdtri(unit, spare, 1 - levels.LARGER_MODEL.value)
    shift = ncfdtrinc(unit, spare, 1 - levels.LARGER_MODEL_POWER.value, bound)
    return min(1.0, float(shift / numbers * local.variance))
