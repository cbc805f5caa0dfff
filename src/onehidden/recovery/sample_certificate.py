"""The certificate of a fit to samples in hand: every question is put to all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.certify.reasons import unit_reasons
from onehidden.certify.spread import equal_spread_p_value
from onehidden.certify.structure import structure_p_value
from onehidden.checks import Check, at_least, at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.fit import NetworkFit
from onehidden.objectives.residuals import Form
from onehidden.recovery.certificate import EXACT_RMS, SPREAD_P, STRUCTURE_P, Certificate, verdict
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.local_fit import LocalFit, local_fit
from onehidden.recovery.samples import Samples


@dataclass(frozen=True)
class Choices:
    """How to certify: which standard errors, and the seed of the random further units."""

    errors: str = "auto"
    seed: int = 0


def certify(
    network: OneHiddenNet, form: Form, coordinates: Coordinates, samples: Samples, choices: Choices
) -> Certificate:
    """Certificate of a network in the coordinates of x; ``form`` says which parameters were free."""
    Z = coordinates.inputs(samples.X)
    fit = NetworkFit(form, Z, coordinates.target(samples.y), samples.weight)
    local = local_fit(network.canonical(), fit, coordinates)
    spread = _spread_check(local.exact, fit, local.theta, Z, choices.errors)
    robust = choices.errors == "robust" or (choices.errors == "auto" and spread.value < SPREAD_P)
    errors = local.standard_errors(fit.gradient_scatter(local.theta) if robust else None)
    checks = [
        _fit_check(local, fit, Z, choices.seed, robust),
        *local.checks(Z, errors),
        *([] if local.exact else [_repeated_rows(samples), spread]),
        *local.columns_checks(samples.names),
    ]
    reasons = unit_reasons(local.inner, Z, local.blind)
    return local.certificate(checks, *verdict(checks, local.exact, form, reasons), errors)


def _fit_check(local: LocalFit, fit: NetworkFit, Z: np.ndarray, seed: int, robust: bool) -> Check:
    if local.exact:
        return at_most("fit", local.rms, EXACT_RMS, "the network reproduces y to rounding")
    return at_least(
        "fit",
        structure_p_value(fit, local.theta, local.hessian, Z, seed, robust),
        STRUCTURE_P,
        "p-value of independent noise as the only thing left in the residuals; below the bound the "
        "network misses something: more units, another activation, biases, or another start",
    )


def _repeated_rows(samples: Samples) -> Check:
    distinct = len(np.unique(np.column_stack([samples.X, samples.y]), axis=0))
    return at_most(
        "repeated rows",
        1 - distinct / len(samples),
        0.02,
        "share of rows that are copies of another, noise and all; copies are no evidence: drop them "
        "or give each distinct row its count as sample_weight",
    )


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
