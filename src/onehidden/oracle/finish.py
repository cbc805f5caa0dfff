"""Levenberg–Marquardt in all parameters on chosen queries, the certificate, and fresh queries to test it."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.certify.certificate import Certificate, certify
from onehidden.checks import About, at_most
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.polish import polish
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.oracle.box import BlackBox
from onehidden.oracle.tails import values
from onehidden.run import Run

FRESH = 1e-8  # error at fresh queries, as a share of std(y), that still counts as the same function


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
    X = box.inputs(np.clip(rng.standard_normal((count, box.d)), -box.reach, box.reach))
    y = box.ask_at(X)
    net = certificate.network
    told = values(net.activation, X @ net.weights.T + net.bias) @ net.output + net.intercept
    worst = float(np.max(np.abs(told - y)))
    allowed = max(FRESH, 1e3 * box.rounding * float(np.max(np.abs(y))) / float(y.std()))
    return certificate.asked(
        at_most(
            "fresh queries",
            worst / float(y.std()),
            allowed,
            f"largest error at {count} queries that were not used to fit, as a share of std(y); above the "
            "bound the network is not the function",
            About.FIT,
        )
    )
