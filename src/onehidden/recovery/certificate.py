"""The certificate of a finished fit: checks, standard errors, one status."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onehidden.certify.gauge import Curvature, curvature, free_directions
from onehidden.certify.structure import structure_p_value
from onehidden.checks import Check, at_least, at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.fit import NetworkFit
from onehidden.objectives.residuals import Form
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.record import ParameterRecord

EXACT_RMS = 1e-10  # residuals below this share of std(y) are rounding, not noise
STRUCTURE_P = 1e-4  # a right answer is called structured once in ten thousand


@dataclass(frozen=True)
class Certificate:
    """What the data say about a network; ``rms`` is its residual as a share of std(y)."""

    network: OneHiddenNet
    checks: list[Check]
    status: str
    message: str
    loss: float
    noise_variance: float
    standard_errors: ParameterRecord
    curvature: np.ndarray
    rms: float
    freedom: int

    @property
    def final(self) -> bool:
        """Whether no further start can do better: a fit to rounding, or units that g hides."""
        return self.rms <= EXACT_RMS or self.network.activation.polynomial

    @property
    def settled(self) -> bool:
        """Whether the fit itself leaves nothing to ask for."""
        return self.final or self.status == "consistent"


def with_check(certificate: Certificate, check: Check) -> Certificate:
    """The certificate with one question more; a failure makes a consistent answer doubtful."""
    checks = [*certificate.checks, check]
    if check.passed or certificate.status not in ("exact", "consistent"):
        return replace(certificate, checks=checks)
    message = f"check failed: {check.name}; {check.advice}"
    return replace(certificate, checks=checks, status="doubtful", message=message)


def certify(network: OneHiddenNet, form: Form, coordinates: Coordinates, X, y, seed: int) -> Certificate:
    """Certificate of a network in the coordinates of x.

    ``form`` says which parameters were free; the Gauss–Newton matrix is formed in whitened coordinates at
    the canonical representative, where it is best conditioned.
    """
    network = network.canonical()
    inner = coordinates.inward(network)
    theta = form.pack(inner.weights, inner.output, inner.bias, None, inner.intercept)
    Z = coordinates.inputs(X)
    fit = NetworkFit(form, Z, coordinates.target(y))
    hessian, gradient, loss = fit.normal_equations(theta)
    normals = network.weights @ coordinates.whiten if form.activation.homogeneity is not None else None
    # |a_x| = 1 with a_x = W a_z: the row a_z may move orthogonally to W a_x.
    directions = free_directions(form, theta, normals)
    bend = curvature(hessian, directions)
    n = fit.n
    freedom = bend.freedom
    variance = loss / max(n - freedom, 1)
    rms = float(np.sqrt(loss / n))
    exact = rms <= EXACT_RMS
    standard_errors = _standard_errors(bend, variance, form, coordinates)
    checks = [
        _fit_check(exact, rms, fit, theta, hessian, Z, seed),
        at_most(
            "gradient",
            0.0 if exact else _largest_cosine(directions.T @ gradient, directions, hessian, loss),
            _gradient_bound(n, form.activation.kinked),
            "largest cosine between the residuals and a column of the Jacobian, against a twentieth of a "
            "standard error; if above, the descent has not ended: allow more time",
        ),
        at_least(
            "smallest curvature",
            float(bend.values[0] / bend.values[-1]),
            1e-10,
            "the flattest direction of the loss against the steepest; below the bound some combination of "
            "parameters is not determined by these samples",
        ),
        at_least(
            "identifiability",
            float(bend.rank),
            float(freedom),
            "rank of the Jacobian against the number of free parameters; a gap means that different "
            "networks fit these samples equally well",
        ),
        _weakest_unit(exact, inner, Z, standard_errors, network),
        at_least(
            "samples per parameter",
            n / freedom,
            1.0 if exact else 4.0,
            "fewer samples than parameters cannot tell networks apart; with noise, fewer than four each "
            "cannot tell noise from a wrong network",
        ),
    ]
    status, message = _verdict(checks, exact, form)
    return Certificate(
        network,
        checks,
        status,
        message,
        loss=loss / n * coordinates.scale**2,
        noise_variance=variance * coordinates.scale**2,
        standard_errors=standard_errors,
        curvature=bend.values,
        rms=rms,
        freedom=freedom,
    )


def _fit_check(exact, rms, fit, theta, hessian, Z, seed) -> Check:
    if exact:
        return at_most("fit", rms, EXACT_RMS, "the network reproduces y to rounding")
    return at_least(
        "fit",
        structure_p_value(fit, theta, hessian, Z, seed),
        STRUCTURE_P,
        "p-value of independent noise as the only thing left in the residuals; below the bound the "
        "network misses something: more units, another activation, biases, or another start",
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


def _largest_cosine(gradient: np.ndarray, directions: np.ndarray, hessian: np.ndarray, loss: float) -> float:
    reduced = np.einsum("pf,pq,qf->f", directions, hessian, directions, optimize=True)
    scale = np.sqrt(np.maximum(reduced, np.finfo(float).tiny) * max(loss, np.finfo(float).tiny))
    return float(np.max(np.abs(gradient) / scale))


def _gradient_bound(n: int, kinked: bool) -> float:
    """A twentieth of a standard error; at a kink the gradient jumps by whole samples, about 1/n each."""
    return max(0.05 / np.sqrt(n), 20 / n if kinked else 0.0)


def _verdict(checks: list[Check], exact: bool, form: Form) -> tuple[str, str]:
    failed = [c for c in checks if not c.passed]
    names = {c.name for c in failed}
    if form.activation.polynomial:
        name = form.activation.name
        return (
            "not identifiable",
            f"a {name} activation hides its units: sums of {name} units have many equal decompositions",
        )
    if names & {"identifiability", "smallest curvature", "weakest unit"}:
        return (
            "not identifiable",
            "the samples leave some combination of the parameters undetermined (parallel units, a unit "
            "that adds nothing or that no sample switches, or too few samples)",
        )
    if failed:
        return "doubtful", f"check failed: {', '.join(c.name for c in failed)}; {failed[0].advice}"
    if exact:
        return "exact", "every sample is reproduced to rounding and the parameters are determined"
    return "consistent", "the residuals look like independent noise and the parameters are determined"


def _standard_errors(
    bend: Curvature, variance: float, form: Form, coordinates: Coordinates
) -> ParameterRecord:
    """Square roots of the diagonal of sigma^2 (J'J)^-1, carried from z to x unit by unit."""
    k, d = form.k, form.d
    covariance = bend.covariance * variance
    blind = bend.blind
    weights, bias = np.zeros((k, d)), np.zeros(k)
    at_bias = k * d + k
    for i in range(k):
        rows = np.arange(i * d, (i + 1) * d)
        outward = coordinates.whiten @ covariance[np.ix_(rows, rows)] @ coordinates.whiten
        weights[i] = np.sqrt(np.maximum(np.diag(outward), 0))
        if blind[rows].any():
            weights[i] = np.inf
        if form.bias:
            # b_x = b_z - <W a_z, shift>
            slope = np.concatenate([-coordinates.whiten @ coordinates.shift, [1.0]])
            joint = np.append(rows, at_bias + i)
            bias[i] = np.sqrt(max(float(slope @ covariance[np.ix_(joint, joint)] @ slope), 0.0))
            if blind[joint].any():
                bias[i] = np.inf
    outputs = np.arange(k * d, k * d + k)
    spread = coordinates.scale * np.sqrt(np.maximum(np.diag(covariance), 0))
    spread = np.where(blind, np.inf, spread)
    return ParameterRecord(weights, spread[outputs], bias, float(spread[-1]) if form.intercept else 0.0)
