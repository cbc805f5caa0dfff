"""Levenberg–Marquardt in all parameters on chosen queries, the certificate, and fresh queries to test it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden.checks import at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.fit import NetworkFit
from onehidden.objectives.residuals import Form
from onehidden.oracle.box import BlackBox
from onehidden.oracle.tails import values
from onehidden.recovery.certificate import EXACT_RMS, Certificate, with_check
from onehidden.recovery.clock import Clock
from onehidden.recovery.coordinates import Coordinates, whitened
from onehidden.recovery.sample_certificate import Choices, certify
from onehidden.recovery.samples import Samples
from onehidden.recovery.search import finishing, without_held
from onehidden.solvers import LevenbergMarquardt

FRESH = 1e-8  # error at fresh queries, as a share of std(y), that still counts as the same function


def normalised(box: BlackBox) -> Coordinates:
    """The coordinates u of the box, as a change of inputs."""
    return Coordinates(np.diag(1 / box.scale), np.diag(box.scale), box.center, 0.0, 1.0, np.zeros((box.d, 0)))


def finish(
    start: OneHiddenNet, form: Form, U: np.ndarray, y: np.ndarray, box: BlackBox, clock: Clock, seed: int
) -> Certificate:
    """Fit the network, given in u, to answers y at rows of u; certify it in x."""
    X = box.inputs(U)
    samples = Samples(X, y, None, tuple(f"x{j}" for j in range(box.d)))
    around = finishing(form, whitened(samples))
    net = around.inward(normalised(box).outward(start))
    fit = NetworkFit(form, around.inputs(X), around.target(y))
    theta = form.pack(net.weights, net.output, net.bias, None, net.intercept)
    solver = LevenbergMarquardt(max_steps=100, floor=1e-29 * fit.n, damping=1e-6, patience=8)
    solution = solver.solve(fit, theta, clock.expired, lambda s, f: clock.report("finish", s, f / fit.n))
    weights, output, bias, _, level = form.unpack(solution.theta)
    found = around.outward(OneHiddenNet(weights, output, bias, float(level), form.activation))
    certificate = certify(without_held(found, form), form, around, samples, Choices(seed=seed))
    clock.report(f"certified {certificate.status}", 0, certificate.loss / around.scale**2)
    return certificate


def tested(certificate: Certificate, box: BlackBox, count: int, rng: np.random.Generator) -> Certificate:
    """The certificate with the question whether fresh queries of the typical region are answered alike."""
    X = box.inputs(np.clip(rng.standard_normal((count, box.d)), -box.reach, box.reach))
    y = box.ask_at(X)
    net = certificate.network
    told = values(net.activation, X @ net.weights.T + net.bias) @ net.output + net.intercept
    worst = float(np.max(np.abs(told - y)))
    allowed = max(FRESH, 1e3 * box.rounding * float(np.max(np.abs(y))) / float(y.std()))
    check = at_most(
        "fresh queries",
        worst / float(y.std()),
        allowed,
        f"largest error at {count} queries that were not used to fit, as a share of std(y); above the bound "
        "the network is not the function",
    )
    return with_check(certificate, check)


def within_rounding(certificate: Certificate, box: BlackBox, level: float) -> Certificate:
    """The certificate of a function in single precision: held against the function's own rounding.

    Rounding is no independent noise; what it leaves is judged by its size, ``level`` being that of y as a
    share of std(y). Such an answer is consistent, never exact.
    """
    if certificate.rms <= EXACT_RMS or box.rounding < 1e-12:
        return certificate
    fit = at_most(
        "fit",
        certificate.rms,
        30 * box.rounding * level,
        f"fn itself is rounded to {box.rounding:.1e} of its size: residuals against that",
    )
    if not fit.passed:
        return certificate
    kept = [c for c in certificate.checks if c.name != "gradient"]  # it is rounding, too
    checks = [fit if c.name == "fit" else c for c in kept]
    if certificate.status in ("doubtful", "consistent") and all(c.passed for c in checks):
        message = f"every query is reproduced to the rounding of fn itself, {box.rounding:.1e}"
        return replace(certificate, checks=checks, status="consistent", message=message)
    return replace(certificate, checks=checks)
