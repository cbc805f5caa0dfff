"""The finish of smooth units at any size and number of outputs: rows from lines, then least squares."""

from __future__ import annotations

import numpy as np

from onehidden.certify.certificate import Certificate
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.oracle import design
from onehidden.oracle.answers import finite
from onehidden.oracle.attainable import attainable, misfit
from onehidden.oracle.box import BlackBox
from onehidden.oracle.descent import descended
from onehidden.oracle.evidence import certificate
from onehidden.oracle.fit_queries import MEMORY, memory_for
from onehidden.oracle.layer import Activated, Asked, Layer
from onehidden.oracle.tails import Tail, slopes, values
from onehidden.run import Run

_EACH = 2  # questions a parameter near the hyperplanes; half as many again around the centre


def fitted_at_size(
    net: OneHiddenNet, tail: Tail, box: BlackBox, run: Run, rng: np.random.Generator
) -> tuple[Certificate, Samples]:
    """The certificate of a network of the mixture, in u, after a fit of all outputs; and how many queries."""
    g, (k, d) = net.activation, net.weights.shape
    each = _EACH if memory_for(int(1.5 * _EACH * k * (d + 2)), d, k, box.q) <= MEMORY else 1
    U = design.queries(net, tail, box, rng, each=each, kind=np.float32)
    U = U[: int(min(len(U), 0.8 * box.left))]
    Y = box.answers(U)
    good = finite(Y)
    U, Y = (U, Y) if good.all() else (U[good], Y[good])
    asked = Asked(U, Y, box.noise_at(U, Y))

    def activated(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return values(g, z), slopes(g, z)

    layer = _with_outputs(net, asked, activated)
    layer = descended(layer, asked, activated, run, g.homogeneity == 1, asked.least, box.coarse)
    errors = attainable(layer, asked, activated, box, rng, g.homogeneity is not None)
    errors = errors.times(misfit(layer, asked, activated))
    return certificate(layer, asked, errors, activated, g, box, [], rng), Samples(
        np.zeros((len(U), 1)), np.zeros(len(U))
    )


def _with_outputs(net: OneHiddenNet, asked: Asked, g: Activated) -> Layer:
    """The layer with the outputs of all answers, by linear least squares on a part of them."""
    part = slice(0, max(4000, 8 * net.n_hidden))
    level = g(np.asarray(asked.U[part], float) @ net.weights.T + net.bias)[0]
    columns = np.column_stack([level, np.ones(len(level))]) * asked.weight[part, None]
    solved = np.linalg.lstsq(columns, asked.Y[part] * asked.weight[part, None], rcond=None)[0]
    return Layer(net.weights, net.bias, solved[:-1], solved[-1])
