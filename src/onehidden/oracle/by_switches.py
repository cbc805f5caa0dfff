"""The answer for a box of smooth units: seen along lines from far away, finished by least squares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.fit.form import Form
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.oracle import design
from onehidden.oracle.assembly import Region, typical
from onehidden.oracle.box import BlackBox
from onehidden.oracle.by_hinges import cut_short
from onehidden.oracle.caller import Spent
from onehidden.oracle.faint import DEAD, contributions, counts, faintest_check, silent
from onehidden.oracle.finish import finish, normalised, tested
from onehidden.oracle.fit_at_size import fitted_at_size
from onehidden.oracle.survey import networks
from onehidden.oracle.tails import Tail
from onehidden.run import Run

FRESH_QUERIES = 2000
# Parameters up to which Levenberg–Marquardt holds all of their products; tanh 200-12-1 takes it 33 s a plan,
# and 2 s to 4e-15 by the steps for any size.
_SMALL = 1200
_FINISHES = 5  # networks from lines that are finished before the best is taken


def turnable(g: Activation, tail: Tail) -> bool:
    """Whether turning a unit around is understood: without it a switch does not tell the orientation."""
    return g.sign_free or (g.reflection is not None and g.reflection.degree == tail.degree)


def by_switches(
    box: BlackBox, form: Form, tail: Tail, hidden: int | None, run: Run, rng: np.random.Generator
) -> tuple[Certificate, Samples] | None:
    """The first network from lines that is certified, else the one that fits best; and its queries."""
    region = typical(box, 1000, rng)
    best: tuple[Certificate, Samples] | None = None
    try:
        for found in _finished(box, form, tail, hidden, region, run, rng):
            best = found
    except Spent as spent:
        if best is None:
            raise
        return best[0].asked(cut_short(str(spent))), best[1]
    return best


def _finished(
    box: BlackBox,
    form: Form,
    tail: Tail,
    hidden: int | None,
    region: Region,
    run: Run,
    rng: np.random.Generator,
) -> Iterator[tuple[Certificate, Samples]]:
    """The best answer so far, after each one that was finished."""
    best: tuple[Certificate, Samples] | None = None
    for tried, net in enumerate(networks(box, tail, region, run, rng)):
        share = contributions(net, tail, region)
        dead = share < DEAD
        if dead.all():
            continue
        left_out = [_named(net, int(i)) for i in np.flatnonzero(dead)]
        live = OneHiddenNet(
            net.weights[~dead], net.output[~dead], net.bias[~dead], net.intercept, net.activation
        )
        if box.q > 1 or live.n_hidden * (box.d + 2) > _SMALL:
            certificate, rows = fitted_at_size(live, tail, box, run, rng)
            certificate = certificate.asked(*counts(live.n_hidden, hidden, left_out))
            if best is None or _rank(certificate) < _rank(best[0]):
                best = certificate, rows
            yield best
            if certificate.status.certified or run.expired() or tried + 1 == _FINISHES:
                break
            continue
        for plan in range(design.PLANS):
            U = design.queries(live, tail, box, rng, plan)
            y = box.ask(U)
            U, y = U[np.isfinite(y)], y[np.isfinite(y)]
            here = run.at("network", tried, plan)
            certificate = finish(live, replace(form, k=live.n_hidden), U, y, box, here)
            if run.expired():
                box.caller.let_go()  # a few questions test what the clock has ended
            certificate = tested(certificate.asked(faintest_check(share[~dead])), box, FRESH_QUERIES, rng)
            certificate = _counted(certificate, hidden, left_out, box, region)
            if best is None or _rank(certificate) < _rank(best[0]):
                best = certificate, Samples(U, y)
            if not certificate.exact or certificate.status.certified:
                break  # other queries help only where a fit to rounding is not unique
        assert best is not None
        yield best
        if best[0].exact or run.expired() or tried + 1 == _FINISHES:
            break


def _rank(certificate: Certificate) -> tuple[bool, float]:
    """Certified first, then by fit."""
    return not certificate.status.certified, certificate.mean_square


def _named(net: OneHiddenNet, i: int) -> str:
    return f"unit with |a| = {np.linalg.norm(net.weights[i]):.2g}, w = {net.output[i]:.2g}"


def _counted(
    certificate: Certificate, hidden: int | None, left_out: list[str], box: BlackBox, region: Region
) -> Certificate:
    """The certificate with the number of units held against ``hidden``, and the dead ones named."""
    dead, *counted = counts(certificate.network.n_hidden, hidden, left_out)
    certificate = certificate.asked(dead, *counted)
    if dead.value:
        certificate = certificate.remarked(f"dead units: {dead.advice}")
    quiet = silent(normalised(box).inward(certificate.network), region)
    if quiet:
        named = ", ".join(map(str, quiet))
        certificate = certificate.remarked(f"constant over typical x, found beyond: units {named}")
    return certificate
