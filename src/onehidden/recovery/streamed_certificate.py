"""The certificate of a fit to all rows of a source; questions that need rows in hand are put to a sample."""

from __future__ import annotations

import numpy as np

from onehidden.certify.gauge import curvature, free_directions
from onehidden.checks import Check, at_least, at_most
from onehidden.data.survey import Summary
from onehidden.network import OneHiddenNet
from onehidden.recovery import certificate as whole
from onehidden.recovery.certificate import EXACT_RMS, Certificate, with_check
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.passes import StreamedFit
from onehidden.recovery.record import Recovery

_OF_THE_SAMPLE = ("agreement", "one unit more", "one unit fewer", "width")


def certify_all(
    network: OneHiddenNet, fit: StreamedFit, coordinates: Coordinates, first: Recovery, summary: Summary
) -> Certificate:
    """Loss, gradient, curvature and standard errors over all rows; structure and neighbours on the sample."""
    form = fit.form
    network = network.canonical()
    inner = coordinates.inward(network)
    theta = form.pack(inner.weights, inner.output, inner.bias, None, inner.intercept)
    hessian, gradient, loss = fit.normal_equations(theta)
    normals = network.weights @ coordinates.whiten if form.activation.homogeneity is not None else None
    directions = free_directions(form, theta, normals)
    bend = curvature(hessian, directions)
    n, freedom = fit.n, bend.freedom
    variance = loss / max(n - freedom, 1)
    rms = float(np.sqrt(loss / n))
    exact = rms <= EXACT_RMS
    errors = whole._standard_errors(bend, variance, form, coordinates)
    Z = coordinates.inputs(summary.X)
    cosine = 0.0 if exact else whole._largest_cosine(directions.T @ gradient, directions, hessian, loss)
    checks = [
        _fit_check(exact, rms, first, len(Z)),
        at_most(
            "gradient",
            cosine,
            whole._gradient_bound(n, form.activation.kinked),
            "largest cosine between the residuals of all rows and a column of the Jacobian, against a "
            "twentieth of a standard error; if above, the descent has not ended: allow more time",
        ),
        at_least(
            "smallest curvature",
            float(bend.values[0] / bend.values[-1]),
            1e-10,
            "the flattest direction of the loss of all rows against the steepest; below the bound some "
            "combination of parameters is not determined by these samples",
        ),
        at_least(
            "identifiability",
            float(bend.rank),
            float(freedom),
            "rank of the Jacobian of all rows against the number of free parameters; a gap means that "
            "different networks fit these samples equally well",
        ),
        whole._weakest_unit(exact, inner, Z, errors, network),
        at_least(
            "samples per parameter",
            n / freedom,
            1.0 if exact else 4.0,
            "fewer samples than parameters cannot tell networks apart; with noise, fewer than four each "
            "cannot tell noise from a wrong network",
        ),
    ]
    status, message = whole._verdict(checks, exact, form)
    made = Certificate(
        network,
        checks,
        status,
        message,
        loss=loss / n * coordinates.scale**2,
        noise_variance=variance * coordinates.scale**2,
        standard_errors=errors,
        curvature=bend.values,
        rms=rms,
        freedom=freedom,
    )
    for check in first.checks:
        if check.name in _OF_THE_SAMPLE and not exact:
            made = with_check(made, _on_the_sample(check, len(Z)))
    return made


def _fit_check(exact: bool, rms: float, first: Recovery, rows: int) -> Check:
    if exact:
        return at_most("fit", rms, EXACT_RMS, "the network reproduces y to rounding in all rows")
    asked = next(check for check in first.checks if check.name == "fit")
    if first.status == "exact" or asked.threshold == EXACT_RMS:
        return at_most(
            "fit",
            rms,
            EXACT_RMS,
            f"a sample of {rows} rows is reproduced to rounding but other rows are not: some follow another "
            "law; look for them with the residuals of this network",
        )
    return _on_the_sample(asked, rows)


def _on_the_sample(check: Check, rows: int) -> Check:
    return Check(
        check.name, check.value, check.threshold, check.passed, f"on a sample of {rows} rows: {check.advice}"
    )
