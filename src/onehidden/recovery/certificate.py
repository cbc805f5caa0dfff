"""The certificate of a finished fit: checks, standard errors, one status."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onehidden.certify.gauge import curvature, free_directions
from onehidden.certify.reasons import sentence, unit_reasons
from onehidden.certify.spread import equal_spread_p_value
from onehidden.certify.structure import structure_p_value
from onehidden.checks import Check, at_least, at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.fit import NetworkFit
from onehidden.objectives.residuals import Form
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.record import ParameterRecord
from onehidden.recovery.samples import Samples

EXACT_RMS = 1e-10  # residuals below this share of std(y) are rounding, not noise
STRUCTURE_P = 1e-4  # a right answer is called structured once in ten thousand
SPREAD_P = 1e-4  # noise of equal spread is called unequal once in ten thousand
ERRORS = ("auto", "classical", "robust")
CONSISTENT = "the residuals look like independent noise and the parameters are determined"
UNDETERMINED = {"identifiability", "smallest curvature", "weakest unit", "switched units"}


@dataclass(frozen=True)
class Choices:
    """How to certify: which standard errors, and the seed of the random further units."""

    errors: str = "auto"
    seed: int = 0


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
    def failed(self) -> set[str]:
        """Names of the checks that did not pass."""
        return {check.name for check in self.checks if not check.passed}

    @property
    def undetermined(self) -> bool:
        """Whether the units themselves, not the columns of X, leave some parameter open."""
        return bool(self.failed & UNDETERMINED)

    @property
    def settled(self) -> bool:
        """Whether another start has nothing to better: what else fails is a matter of the samples."""
        return self.final or not self.failed & {*UNDETERMINED, "fit", "gradient"}


def with_check(certificate: Certificate, check: Check) -> Certificate:
    """The certificate with one question more; a failure makes a consistent answer doubtful."""
    checks = [*certificate.checks, check]
    if check.passed or certificate.status not in ("exact", "consistent"):
        return replace(certificate, checks=checks)
    message = f"check failed: {check.name}; {check.advice}"
    return replace(certificate, checks=checks, status="doubtful", message=message)


def certify(
    network: OneHiddenNet, form: Form, coordinates: Coordinates, samples: Samples, choices: Choices
) -> Certificate:
    """Certificate of a network in the coordinates of x.

    ``form`` says which parameters were free; the Gauss–Newton matrix is formed in whitened coordinates at
    the canonical representative, where it is best conditioned.
    """
    network = network.canonical()
    inner = coordinates.inward(network)
    theta = form.pack(inner.weights, inner.output, inner.bias, None, inner.intercept)
    Z = coordinates.inputs(samples.X)
    fit = NetworkFit(form, Z, coordinates.target(samples.y), samples.weight)
    hessian, gradient, loss = fit.normal_equations(theta)
    normals = network.weights @ coordinates.whiten if form.activation.homogeneity is not None else None
    # |a_x| = 1 with a_x = W a_z: the row a_z may move orthogonally to W' a_x.
    directions = free_directions(form, theta, normals)
    bend = curvature(hessian, directions)
    n = fit.n
    freedom = bend.freedom
    variance = loss / max(n - freedom, 1)
    rms = float(np.sqrt(loss / n))
    exact = rms <= EXACT_RMS
    spread = _spread_check(exact, fit, theta, Z, choices.errors)
    robust = choices.errors == "robust" or (choices.errors == "auto" and spread.value < SPREAD_P)
    covariance = bend.covariance * variance
    if robust:
        meat = fit.gradient_scatter(theta)
        covariance = bend.covariance @ meat @ bend.covariance * (n / max(n - freedom, 1))
    standard_errors = _standard_errors(covariance, bend.blind, form, coordinates)
    checks = [
        _fit_check(exact, rms, fit, theta, hessian, Z, choices.seed, robust),
        at_most(
            "gradient",
            0.0 if exact else _largest_cosine(directions.T @ gradient, directions, hessian, loss),
            _gradient_bound(n, form.activation.kinked),
            "largest cosine between the residuals and a column of the Jacobian, against a twentieth of a "
            "standard error; if above, the descent has not ended: allow more time",
        ),
        at_least(
            "smallest curvature",
            float(bend.values[0] / max(bend.values[-1], np.finfo(float).tiny)),
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
        *_switched(inner, Z),
        *_sample_checks(exact, samples, freedom),
        *([] if exact else [spread]),
    ]
    if coordinates.null.shape[1]:
        checks.append(_columns_check(coordinates, samples.names))
    blind = bend.blind[: form.k * form.d].reshape(form.k, form.d)
    status, message = _verdict(checks, exact, form, unit_reasons(inner, Z, blind))
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


def _sample_checks(exact: bool, samples: Samples, freedom: int) -> list[Check]:
    n = len(samples)
    checks = [
        at_least(
            "samples per parameter",
            n / freedom,
            1.0 if exact else 4.0,
            "fewer samples than parameters cannot tell networks apart; with noise, fewer than four each "
            "cannot tell noise from a wrong network",
        )
    ]
    if not exact:
        distinct = len(np.unique(np.column_stack([samples.X, samples.y]), axis=0))
        checks.append(
            at_most(
                "repeated rows",
                1 - distinct / n,
                0.02,
                "share of rows that are copies of another, noise and all; copies are no evidence: drop them "
                "or give each distinct row its count as sample_weight",
            )
        )
    return checks


def _spread_check(exact: bool, fit: NetworkFit, theta: np.ndarray, Z: np.ndarray, errors: str) -> Check:
    """Whether the noise is as large everywhere; only classical errors need it to be."""
    p_value = 1.0
    if not exact:
        residual = fit.residuals(theta)
        weights, output, bias, _, intercept = fit.form.unpack(theta)
        prediction = fit.form.activation(Z @ weights.T + bias) @ output + float(intercept)
        p_value = equal_spread_p_value(residual, prediction, Z)
    if errors == "classical":
        return at_least(
            "equal spread",
            p_value,
            SPREAD_P,
            "p-value of noise as large everywhere; below the bound the standard errors are wrong: use "
            "errors='robust', or sample_weight if you know where the noise is large",
        )
    used = "sandwich" if errors == "robust" or p_value < SPREAD_P else "classical"
    return at_least(
        "equal spread", p_value, 0.0, f"p-value of noise as large everywhere; standard errors are {used}"
    )


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


def _fit_check(exact, rms, fit, theta, hessian, Z, seed, robust) -> Check:
    if exact:
        return at_most("fit", rms, EXACT_RMS, "the network reproduces y to rounding")
    return at_least(
        "fit",
        structure_p_value(fit, theta, hessian, Z, seed, robust),
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
        )
    ]


def _largest_cosine(gradient: np.ndarray, directions: np.ndarray, hessian: np.ndarray, loss: float) -> float:
    reduced = np.einsum("pf,pq,qf->f", directions, hessian, directions, optimize=True)
    scale = np.sqrt(np.maximum(reduced, np.finfo(float).tiny) * max(loss, np.finfo(float).tiny))
    return float(np.max(np.abs(gradient) / scale))


def _gradient_bound(n: int, kinked: bool) -> float:
    """A twentieth of a standard error; at a kink the gradient jumps by whole samples, about 1/n each."""
    return max(0.05 / np.sqrt(n), 20 / n if kinked else 0.0)


def _verdict(checks: list[Check], exact: bool, form: Form, reasons: list[str]) -> tuple[str, str]:
    failed = [c for c in checks if not c.passed]
    names = {c.name for c in failed}
    if form.activation.polynomial:
        name = form.activation.name
        return (
            "not identifiable",
            f"a {name} activation hides its units: sums of {name} units have many equal decompositions",
        )
    if "independent columns" in names:
        reasons = [next(c.advice for c in failed if c.name == "independent columns"), *reasons]
    if names & {*UNDETERMINED, "independent columns"}:
        return "not identifiable", sentence(reasons)
    if failed:
        return "doubtful", f"check failed: {', '.join(c.name for c in failed)}; {failed[0].advice}"
    if exact:
        return "exact", "every sample is reproduced to rounding and the parameters are determined"
    return "consistent", CONSISTENT


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
