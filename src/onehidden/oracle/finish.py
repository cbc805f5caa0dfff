"""Levenberg–Marquardt in all parameters on chosen queries, the certificate, and fresh queries to test it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.certify.certificate import Certificate
from onehidden.certify.questions import certify
from onehidden.checks import About, at_most
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.polish import polish
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.fresh import FAR, FRESH
from onehidden.oracle.tails import values
from onehidden.run import Run


def normalised(box: BlackBox) -> Coordinates:
    """The coordinates u of the box, as a change of inputs."""
    return Coordinates(np.diag(1 / box.scale), np.diag(box.scale), box.center, 0.0, 1.0, np.zeros((box.d, 0)))


def finish(
    start: OneHiddenNet,
    form: Form,
    U: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    box: BlackBox,
    run: Run,
) -> Certificate:
    """Fit the network, given in u, to answers y at rows of u; certify it in x.

    Rounding of the box is no independent noise: what it leaves is judged by its size.
    """
    names = tuple(f"x{j}" for j in range(box.d))
    samples = Samples(box.inputs(U), y, None, names, box.rounding)
    problem = Problem(samples, form, samples.coordinates(True))
    found = polish(normalised(box).outward(start), problem, run, near=True)
    # Units that say nothing were left out: a faint one only has fewer digits.
    certificate = certify(found.network, problem, run, noun="query", nothing=0.0)
    run.report(f"certified {certificate.status}", 0, certificate.mean_square)
    return certificate


def tested(certificate: Certificate, box: BlackBox, count: int, rng: np.random.Generator) -> Certificate:
    """The certificate with the question whether fresh queries of the typical region are answered alike."""
    net, far, asked = certificate.network, [], 0
    for distance in FAR:
        U = distance * rng.standard_normal((count if distance == 1 else count // 4, box.d))
        U = U[np.max(np.abs(U), axis=1) <= box.reach]
        U = U if distance > 1 or len(U) else box.typical(count, rng)
        y = box.ask(U) if len(U) else np.zeros(0)
        X, y = box.domain.within(box.inputs(U))[np.isfinite(y)], y[np.isfinite(y)]
        if not len(X):
            continue
        asked += len(X)
        told = values(net.activation, X @ net.weights.T + net.bias) @ net.output + net.intercept
        size = float(np.max(np.abs(y)))
        # Near the centre as a share of std(y), far away of its size there: sums are rounded at that size.
        scale = float(y.std()) if distance == 1 and y.std() > 0 else max(size, np.finfo(float).tiny)
        allowed = max(FRESH, 1e3 * box.rounding * size / scale)
        far.append((float(np.max(np.abs(told - y))) / scale / allowed, allowed, distance))
    if not far:
        return certificate
    ratio, allowed, distance = max(far)
    reach = f"within {max(d for _, _, d in far):g} scales of the centre"
    return certificate.remarked(f"fresh queries were asked {reach}").asked(
        at_most(
            "fresh queries",
            ratio * allowed,
            allowed,
            f"largest error at {asked} queries that were not used to fit, near and far, as a share of the "
            f"function there (worst {distance:g} scales from the centre); above the bound the network is not "
            "the function",
            About.FIT,
        )
    )
