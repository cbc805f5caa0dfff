"""The certificate of a fit to all rows of a source; questions that need rows in hand are put to a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.certify.gauge import Curvature, curvature, free_directions
from onehidden.certify.reasons import unit_reasons
from onehidden.checks import Check, at_least, at_most
from onehidden.data.rare import rare_column_reasons
from onehidden.data.survey import Summary
from onehidden.network import OneHiddenNet
from onehidden.recovery import certificate as whole
from onehidden.recovery.certificate import CONSISTENT, EXACT_RMS, SPREAD_P, Certificate
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.passes import StreamedFit
from onehidden.recovery.record import Recovery

# Asked of all rows; everything else the sample was asked is carried over.
_OF_ALL_ROWS = {
    "fit", "gradient", "smallest curvature", "identifiability", "weakest unit", "samples per parameter",
    "switched units", "independent columns",
}  # fmt: skip


def certify_all(
    network: OneHiddenNet,
    fit: StreamedFit,
    coordinates: Coordinates,
    first: Recovery,
    summary: Summary,
    errors: str,
) -> Certificate:
    """Loss, gradient, curvature and standard errors over all rows; structure and neighbours on the sample."""
    form = fit.form
    network = _canonical(network)
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
    covariance = bend.covariance * variance
    if not exact and _robust(errors, first):
        meat = fit.gradient_scatter(theta)
        covariance = bend.covariance @ meat @ bend.covariance * (n / max(n - freedom, 1))
    deviations = whole._standard_errors(covariance, bend.blind, form, coordinates)
    Z = coordinates.inputs(summary.X)
    cosine = 0.0 if exact else whole._largest_cosine(directions.T @ gradient, directions, hessian, loss)
    checks = [
        _fit_check(exact, rms, first, len(Z)),
        *_checks_of_all_rows(cosine, bend, n, exact, form.activation.kinked),
        whole._weakest_unit(exact, inner, Z, deviations, network),
        *(_on_the_sample(check, len(Z)) for check in whole._switched(inner, Z)),
        *_checks_of_the_sample(exact, first, len(Z)),
    ]
    if coordinates.null.shape[1]:
        checks.append(whole._columns_check(coordinates, first.feature_names))
    blind = bend.blind[: form.k * form.d].reshape(form.k, form.d)
    reasons = rare_column_reasons(summary, first.feature_names) if blind.any() else []
    reasons += unit_reasons(inner, Z, blind)
    status, message = whole._verdict(checks, exact, form, reasons)
    if status == "consistent":
        message += _remark(first, len(Z))
    return Certificate(
        network,
        checks,
        status,
        message,
        loss=loss / n * coordinates.scale**2,
        noise_variance=variance * coordinates.scale**2,
        standard_errors=deviations,
        curvature=bend.values,
        rms=rms,
        freedom=freedom,
    )


def _canonical(network: OneHiddenNet) -> OneHiddenNet:
    """The canonical form; a network that has it to rounding stays, since its pass was made already."""
    other = network.canonical()
    pairs = ((network.weights, other.weights), (network.output, other.output), (network.bias, other.bias))
    same = all(np.allclose(a, b, rtol=1e-14, atol=1e-15) for a, b in pairs)
    return network if same else other


def _robust(errors: str, first: Recovery) -> bool:
    """Sandwich errors where asked for, or where the sample's residuals show unequal spread."""
    unequal = any(c.name == "equal spread" and c.value < SPREAD_P for c in first.checks)
    return errors == "robust" or (errors == "auto" and unequal)


def _checks_of_all_rows(cosine: float, bend: Curvature, n: int, exact: bool, kinked: bool) -> list[Check]:
    return [
        at_most(
            "gradient",
            cosine,
            whole._gradient_bound(n, kinked),
            "largest cosine between the residuals of all rows and a column of the Jacobian, against a "
            "twentieth of a standard error; if above, the descent has not ended: allow more time",
        ),
        at_least(
            "smallest curvature",
            float(bend.values[0] / max(bend.values[-1], np.finfo(float).tiny)),
            1e-10,
            "the flattest direction of the loss of all rows against the steepest; below the bound some "
            "combination of parameters is not determined by these samples",
        ),
        at_least(
            "identifiability",
            float(bend.rank),
            float(bend.freedom),
            "rank of the Jacobian of all rows against the number of free parameters; a gap means that "
            "different networks fit these samples equally well",
        ),
        at_least(
            "samples per parameter",
            n / bend.freedom,
            1.0 if exact else 4.0,
            "fewer samples than parameters cannot tell networks apart; with noise, fewer than four each "
            "cannot tell noise from a wrong network",
        ),
    ]


def _fit_check(exact: bool, rms: float, first: Recovery, rows: int) -> Check:
    if exact:
        return at_most("fit", rms, EXACT_RMS, "the network reproduces y to rounding in all rows")
    asked = next((check for check in first.checks if check.name == "fit"), None)
    if asked is None or asked.threshold == EXACT_RMS:
        return at_most(
            "fit",
            rms,
            EXACT_RMS,
            f"a sample of {rows} rows is reproduced to rounding but other rows are not: some follow another "
            "law; look for them with the residuals of this network",
        )
    return _on_the_sample(asked, rows)


def _checks_of_the_sample(exact: bool, first: Recovery, rows: int) -> list[Check]:
    """What only the sample was asked: other widths, activations, orientations, its halves.

    A fit of all rows to rounding needs none of these answers; those that passed are told all the same.
    """
    asked = [c for c in first.checks if c.name not in _OF_ALL_ROWS and (c.passed or not exact)]
    checks = [_on_the_sample(check, rows) for check in asked]
    if not (exact or first.converged or any(not c.passed for c in asked)):
        # An answer that is not consistent in the sample was not held against its neighbours there.
        checks.append(
            at_least(
                "answer on the sample",
                0.0,
                1.0,
                f"a sample of {rows} rows ended {first.status} ({first.message}), so that other widths and "
                "orientations were not compared: allow more time, or look at that sample by itself",
            )
        )
    return checks


def _remark(first: Recovery, rows: int) -> str:
    """What the message of a consistent sample says beyond its verdict."""
    beyond = first.message.removeprefix(CONSISTENT) if first.status == "consistent" else ""
    return f"; on a sample of {rows} rows{beyond.removeprefix(';')}" if beyond else ""


def _on_the_sample(check: Check, rows: int) -> Check:
    return replace(check, advice=f"on a sample of {rows} rows: {check.advice}")
