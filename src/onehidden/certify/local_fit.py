"""The loss around a network: what every certificate is made from, whoever summed it over the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from onehidden.certify.errors import LeverageScatter, ParameterRecord, standard_errors
from onehidden.certify.gauge import Curvature, FreeDirections, curvature
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class LocalFit:
    """Loss, gradient and curvature at a network.

    Attributes
    ----------
    problem : whose fit it is.
    network, inner : in x, canonical, and where the finish runs, with its parameters ``theta``.
    hessian, loss : J'J and r'r over all rows.
    bend : the curvature along the free directions.
    cosine : the largest between the residuals and a column of J along those; 0 for a fit to rounding.
    """

    problem: Problem = field(repr=False)
    network: OneHiddenNet
    inner: OneHiddenNet
    theta: Float[np.ndarray, " p"] = field(repr=False)
    hessian: Float[np.ndarray, "p p"] = field(repr=False)
    loss: float
    bend: Curvature = field(repr=False)
    cosine: float

    @property
    def n(self) -> int:
        return self.problem.n

    @property
    def numbers(self) -> int:
        return self.problem.numbers

    @property
    def mean_square(self) -> float:
        """Of the residuals, as a share of var(y)."""
        return self.loss / self.numbers

    @property
    def exact(self) -> bool:
        """Whether the residuals are rounding."""
        return self.problem.rows.rounding.reproduces(self.mean_square)

    @property
    def freedom(self) -> int:
        """Free parameters, the scale of homogeneous units left out."""
        return self.bend.freedom

    @property
    def variance(self) -> float:
        """The noise variance as a share of var(y): known, or estimated."""
        rows = self.problem.rows
        if isinstance(rows, Samples) and rows.dispersion is not None:
            return rows.dispersion * rows.unit / self.problem.end.variance
        return self.seen_variance

    @property
    def seen_variance(self) -> float:
        """The noise variance that the residuals show, as a share of var(y)."""
        return self.loss / max(self.numbers - self.freedom, 1)

    @property
    def residuals(self) -> Float[np.ndarray, "n q"]:
        """Weighted residuals of rows in memory, (n, q)."""
        fit = self.problem.sums
        assert isinstance(fit, NetworkFit)
        return fit.residuals(self.theta).reshape(self.n, -1)

    @property
    def blind(self) -> Bool[np.ndarray, "k d"]:
        """(k, d) whether a weight is undetermined."""
        k, d = self.problem.form.k, self.problem.form.d
        return self.bend.blind[: k * d].reshape(k, d)

    def covariance(self, robust: bool) -> Float[np.ndarray, "p p"]:
        """Of the parameters in z: classical, or by the HC3 sandwich."""
        inverse = self.bend.covariance
        if not robust:
            return inverse * self.variance
        make = partial(LeverageScatter, self.problem.form, self.theta, inverse)
        return inverse @ self.problem.fold(make).result() @ inverse

    def errors(self, covariance: Float[np.ndarray, "p p"]) -> ParameterRecord:
        """Standard errors in x of parameters with this covariance in z."""
        return standard_errors(covariance, self.bend.blind, self.problem.form, self.problem.end)


def local_fit(network: OneHiddenNet, problem: Problem) -> LocalFit:
    """The loss around a network, in canonical form.

    The Gauss–Newton matrix is formed in whitened coordinates, where it is best conditioned.
    """
    network, form, coordinates = _canonical(network), problem.form, problem.end
    theta = problem.theta(network)
    normals = network.weights @ coordinates.whiten if form.activation.homogeneity is not None else None
    # |a_x| = 1 with a_x = W a_z: the row a_z may move orthogonally to W' a_x.
    free, reproduces = FreeDirections(form, normals), problem.rows.rounding.reproduces
    # Of a fit to rounding J'J has to say no more than that every direction is seen.
    rough = not problem.rows.streamed and reproduces(problem.sums.loss(theta) / problem.numbers)
    hessian, gradient, loss = problem.sums.normal_equations(theta, rough)
    hessian = hessian.astype(float, copy=False)
    bend = curvature(hessian, free)
    if rough and not bend.plain:
        hessian, gradient, loss = problem.sums.normal_equations(theta)
        bend = curvature(hessian, free)
    exact = reproduces(loss / problem.numbers)
    cosine = 0.0 if exact else _largest_cosine(free.inward(gradient), bend.lengths, loss)
    inner = coordinates.inward(network)
    return LocalFit(problem, network, inner, theta, hessian, loss, bend, cosine)


def _canonical(network: OneHiddenNet) -> OneHiddenNet:
    """The canonical form; a network that has it to rounding stays, since its pass was made already."""
    other = network.canonical()
    pairs = ((network.weights, other.weights), (network.output, other.output), (network.bias, other.bias))
    same = all(np.allclose(a, b, rtol=1e-14, atol=1e-15) for a, b in pairs)
    return network if same else other


def _largest_cosine(
    gradient: Float[np.ndarray, " f"], lengths: Float[np.ndarray, " f"], loss: float
) -> float:
    return float(np.max(np.abs(gradient) / (lengths * np.sqrt(max(loss, np.finfo(float).tiny)))))
