"""The certificate of a fit to all rows of a source; questions that need rows in hand are put to a sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.certify.reasons import unit_reasons
from onehidden.checks import Check, at_least, at_most
from onehidden.data.rare import rare_column_reasons
from onehidden.data.survey import Summary
from onehidden.network import OneHiddenNet
from onehidden.recovery.certificate import CONSISTENT, EXACT_RMS, SPREAD_P, Certificate, doubted, verdict
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.local_fit import local_fit
from onehidden.recovery.passes import StreamedFit
from onehidden.recovery.record import Recovery

# Asked of all rows; everything else the sample was asked is carried over.
_OF_ALL_ROWS = {
    "fit", "gradient", "smallest curvature", "identifiability", "weakest unit", "samples per parameter",
    "switched units", "units apart", "independent columns",
}  # fmt: skip
_OF_PATTERNS = {"switched units", "units apart"}  # counted on the sample: more rows would only raise them


def certify_all(
    network: OneHiddenNet,
    fit: StreamedFit,
    coordinates: Coordinates,
    first: Recovery,
    summary: Summary,
    errors: str,
) -> Certificate:
    """Loss, gradient, curvature and standard errors over all rows; structure and neighbours on the sample."""
    local = local_fit(_canonical(network), fit, coordinates)
    Z, exact = coordinates.inputs(summary.X), local.exact
    robust = not exact and _robust(errors, first)
    deviations = local.standard_errors(fit.gradient_scatter(local.theta) if robust else None)
    asked = local.checks(Z, deviations, " of all rows")
    checks = [
        _fit_check(exact, local.rms, first, len(Z)),
        *(_on_the_sample(c, len(Z)) if c.name in _OF_PATTERNS else c for c in asked),
        *_checks_of_the_sample(exact, first, len(Z)),
        *local.columns_checks(first.feature_names),
    ]
    reasons = rare_column_reasons(summary, first.feature_names) if local.blind.any() else []
    reasons += unit_reasons(local.inner, Z, local.blind)
    status, message = verdict(checks, exact, fit.form, reasons)
    if status == "consistent":
        message += _remark(first, len(Z))
    certificate = local.certificate(checks, status, message, deviations)
    alone = any(c.name == "agreement" and not c.passed for c in first.checks)
    return doubted(certificate) if alone and first.status == "doubtful" and not exact else certificate


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
    # Too few rows of the sample prove nothing about all rows: said by a name of its own, it is a doubt only.
    name = f"{check.name} on the sample" if check.name == "units apart" and not check.passed else check.name
    return replace(check, name=name, advice=f"on a sample of {rows} rows: {check.advice}")
