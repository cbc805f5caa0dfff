"""The loss around a network: what every certificate is made from, whoever summed it over the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from onehidden.certify.gauge import Curvature, FreeDirections, curvature
from onehidden.certify.patterns import samples_apart, samples_needed
from onehidden.checks import Check, at_least, at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.residuals import Form
from onehidden.recovery.certificate import EXACT_RMS, Certificate
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.record import ParameterRecord


class Sums(Protocol):
    """A network fit over rows in memory or over a stream."""

    form: Form
    n: int

    def normal_equations(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]: ...


@dataclass(frozen=True)
class LocalFit:
    """Loss, gradient and curvature at a network.

    Attributes
    ----------
    network, inner : in x, canonical, and in whitened coordinates, with its parameters ``theta``.
    hessian, loss, n : J'J and r'r over n rows.
    bend : the curvature along the free directions.
    cosine : the largest between the residuals and a column of J along those; 0 for a fit to rounding.
    """

    form: Form
    coordinates: Coordinates = field(repr=False)
    network: OneHiddenNet
    inner: OneHiddenNet
    theta: np.ndarray = field(repr=False)
    n: int
    hessian: np.ndarray = field(repr=False)
    loss: float
    bend: Curvature = field(repr=False)
    cosine: float

    @property
    def rms(self) -> float:
        """Residual as a share of std(y)."""
        return float(np.sqrt(self.loss / self.n))

    @property
    def exact(self) -> bool:
        """Whether the residuals are rounding."""
        return self.rms <= EXACT_RMS

    @property
    def variance(self) -> float:
        """Estimate of the noise variance as a share of var(y)."""
        return self.loss / max(self.n - self.bend.freedom, 1)

    @property
    def blind(self) -> np.ndarray:
        """(k, d) whether a weight is undetermined."""
        k, d = self.form.k, self.form.d
        return self.bend.blind[: k * d].reshape(k, d)

    def standard_errors(self, scatter: np.ndarray | None = None) -> ParameterRecord:
        """Classical ones, or with the gradient scatter sandwich ones."""
        covariance = self.bend.covariance * self.variance
        if scatter is not None:
            many = self.n / max(self.n - self.bend.freedom, 1)
            covariance = self.bend.covariance @ scatter @ self.bend.covariance * many
        return _standard_errors(covariance, self.bend.blind, self.form, self.coordinates)

    def checks(self, Z: np.ndarray, errors: ParameterRecord, whose: str = "") -> list[Check]:
        """What is asked of every fit; Z (m, d) are whitened inputs in hand, ``whose`` says " of all rows"."""
        bend, exact = self.bend, self.exact
        return [
            at_most(
                "gradient",
                self.cosine,
                _gradient_bound(self.n, self.form.activation.kinked),
                f"largest cosine between the residuals{whose} and a column of the Jacobian, against a "
                "twentieth of a standard error; if above, the descent has not ended: allow more time",
            ),
            at_least(
                "smallest curvature",
                float(bend.values[0] / max(bend.values[-1], np.finfo(float).tiny)),
                1e-10,
                f"the flattest direction of the loss{whose} against the steepest; below the bound some "
                "combination of parameters is not determined by these samples",
            ),
            at_least(
                "identifiability",
                float(bend.rank),
                float(bend.freedom),
                f"rank of the Jacobian{whose} against the number of free parameters; a gap means that "
                "different networks fit these samples equally well",
            ),
            _weakest_unit(exact, self.inner, Z, errors, self.network),
            *_switched(self.inner, Z),
            at_least(
                "samples per parameter",
                self.n / bend.freedom,
                1.0 if exact else 4.0,
                "fewer samples than parameters cannot tell networks apart; with noise, fewer than four each "
                "cannot tell noise from a wrong network",
            ),
        ]

    def columns_checks(self, names: tuple[str, ...]) -> list[Check]:
        """Whether the columns of X are independent, asked where they are not."""
        return [_columns_check(self.coordinates, names)] if self.coordinates.null.shape[1] else []

    def certificate(
        self, checks: list[Check], status: str, message: str, errors: ParameterRecord
    ) -> Certificate:
        """The certificate with these answers, in the units of y."""
        return Certificate(
            self.network,
            checks,
            status,
            message,
            loss=self.loss / self.n * self.coordinates.scale**2,
            noise_variance=self.variance * self.coordinates.scale**2,
            standard_errors=errors,
            curvature=self.bend.values,
            rms=self.rms,
            freedom=self.bend.freedom,
        )


def local_fit(network: OneHiddenNet, fit: Sums, coordinates: Coordinates) -> LocalFit:
    """The loss around a network in canonical form.

    The Gauss–Newton matrix is formed in whitened coordinates, where it is best conditioned.
    """
    form = fit.form
    inner = coordinates.inward(network)
    theta = form.pack(inner.weights, inner.output, inner.bias, None, inner.intercept)
    hessian, gradient, loss = fit.normal_equations(theta)
    normals = network.weights @ coordinates.whiten if form.activation.homogeneity is not None else None
    # |a_x| = 1 with a_x = W a_z: the row a_z may move orthogonally to W' a_x.
    free = FreeDirections(form, normals)
    bend = curvature(hessian, free)
    exact = float(np.sqrt(loss / fit.n)) <= EXACT_RMS
    cosine = 0.0 if exact else _largest_cosine(free.inward(gradient), bend.lengths, loss)
    return LocalFit(form, coordinates, network, inner, theta, fit.n, hessian, loss, bend, cosine)


def _columns_check(coordinates: Coordinates, names: tuple[str, ...]) -> Check:
    size = np.abs(coordinates.null).max(axis=1) * coordinates.unwhiten.std(axis=0)
    involved = np.flatnonzero(size > 1e-6 * size.max())
    named = ", ".join(names[j] for j in involved[:4]) + (" and others" if len(involved) > 4 else "")
    return at_least(
        "independent columns",
        float(coordinates.rank),
        float(len(coordinates.shift)),
        f"the columns {named} are linearly dependent: their weights cannot be told apart; leave one out",
    )


def _weakest_unit(
    exact: bool, inner: OneHiddenNet, Z: np.ndarray, errors: ParameterRecord, network: OneHiddenNet
) -> Check:
    """A unit that adds nothing has no direction to recover: each must stand clear of zero."""
    advice = "a unit that adds nothing to y has no direction to speak of: ask for fewer units"
    if exact:
        units = inner.activation(Z @ inner.weights.T + inner.bias)
        return at_least("weakest unit", float(np.min(np.abs(inner.output) * units.std(axis=0))), 1e-7, advice)
    tiny = np.finfo(float).tiny
    return at_least(
        "weakest unit", float(np.min(np.abs(network.output) / np.maximum(errors.output, tiny))), 3.0, advice
    )


def _switched(inner: OneHiddenNet, Z: np.ndarray) -> list[Check]:
    """A homogeneous unit that all samples see from one side is a polynomial there, whatever the rank says."""
    if inner.activation.homogeneity is None:
        return []
    t = Z @ inner.weights.T + inner.bias
    beyond = np.minimum(np.sum(t > 0, axis=0), np.sum(t < 0, axis=0))
    return [
        at_least(
            "switched units",
            float(np.min(beyond)),
            1.0,
            "fewest samples on the lesser side of a unit; with none it acts as a polynomial and could be "
            "another unit, or none",
        ),
        at_least(
            "units apart",
            float(samples_apart(t)[0]),
            float(samples_needed(Z.shape[1])),
            "fewest samples that see one of two units switch and not the other, against the numbers of an "
            "affine function; below, other units fit these samples as well",
        ),
    ]


def _largest_cosine(gradient: np.ndarray, lengths: np.ndarray, loss: float) -> float:
    return float(np.max(np.abs(gradient) / (lengths * np.sqrt(max(loss, np.finfo(float).tiny)))))


def _gradient_bound(n: int, kinked: bool) -> float:
    """A twentieth of a standard error; at a kink the gradient jumps by whole samples, about 1/n each."""
    return max(0.05 / np.sqrt(n), 20 / n if kinked else 0.0)


def _standard_errors(
    covariance: np.ndarray, blind: np.ndarray, form: Form, coordinates: Coordinates
) -> ParameterRecord:
    """Square roots of the diagonal of the covariance, carried from z to x unit by unit."""
    k, d = form.k, form.d
    weights, bias = np.zeros((k, len(coordinates.shift))), np.zeros(k)
    astray = np.abs(coordinates.null).max(axis=1, initial=0.0)
    at_bias = k * d + k
    for i in range(k):
        rows = np.arange(i * d, (i + 1) * d)
        outward = coordinates.whiten @ covariance[np.ix_(rows, rows)] @ coordinates.whiten.T
        weights[i] = np.sqrt(np.maximum(np.diag(outward), 0))
        if blind[rows].any():
            weights[i] = np.inf
        weights[i, astray > 1e-8] = np.inf
        if form.bias:
            # b_x = b_z - <W a_z, shift>
            slope = np.concatenate([-coordinates.whiten.T @ coordinates.shift, [1.0]])
            joint = np.append(rows, at_bias + i)
            bias[i] = np.sqrt(max(float(slope @ covariance[np.ix_(joint, joint)] @ slope), 0.0))
            if blind[joint].any():
                bias[i] = np.inf
    outputs = np.arange(k * d, k * d + k)
    spread = coordinates.scale * np.sqrt(np.maximum(np.diag(covariance), 0))
    spread = np.where(blind, np.inf, spread)
    return ParameterRecord(weights, spread[outputs], bias, float(spread[-1]) if form.intercept else 0.0)
