"""Other activations, each fitted from the units found: which of them the data do not rule out."""

from __future__ import annotations

import numpy as np

from onehidden import activations
from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import CLEAR, Alternative, Kind
from onehidden.certify.row_losses import RowLosses
from onehidden.certify.status import Status
from onehidden.checks import About, at_most, not_asked
from onehidden.fit.polish import ROUGHLY, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.start import descent_work

# Operations of a descent (n = 10 000 and 110 parameters take 1.5e10, a few seconds) up to which relatives of
# the activation are fitted, for their own sake and as a detour.
_WORTH = 2e10

# Activations that noise can hide behind one another; the first fits the data of the others best. Units that
# saturate are held against ramps, too: with ten rows a parameter two of them pass for two of ReLU.
NEAR = {
    "relu": ("leaky_relu", "softplus", "gelu"),
    "leaky_relu": ("relu", "softplus", "gelu"),
    "softplus": ("gelu", "relu", "squared_relu"),
    "gelu": ("softplus", "relu", "squared_relu"),
    "tanh": ("erf", "softplus"),
    "sigmoid": ("erf", "softplus"),
    "erf": ("tanh", "softplus"),
    "squared_relu": ("cubed_relu", "gelu", "softplus"),
    "cubed_relu": ("squared_relu",),
}


def affordable(problem: Problem) -> bool:
    """Whether a descent under another activation is worth its time."""
    return descent_work(problem) <= _WORTH


def with_activations(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Held against other activations, each fitted from the units found; ties are told.

    Losses are compared row by row (Vuong), each charged its freedom, so that unequal noise does not decide.
    """
    if certificate.prospect is Status.APPROXIMATE:
        return certificate
    g = problem.activation
    if not affordable(problem):
        untried = "other activations were not fitted: each would take as long as the answer itself"
        return certificate.held([not_asked(Kind.ACTIVATION.value, 0.0, untried)], [])
    every = [name for name in activations.names() if not activations.get(name).polynomial]
    names = every if problem.k == 1 else NEAR.get(g.name, ())  # one unit is easily taken for another
    if not names:
        untried = f"no relatives of {g.name} are known that noise could hide behind it"
        return certificate.held([not_asked(Kind.ACTIVATION.value, 0.0, untried)], [])
    same = {g.name, *({"sigmoid", "tanh"} if g.name in ("sigmoid", "tanh") else ())}
    own = RowLosses.of(problem, certificate.network)
    ties, found, ahead = [], [], []
    for name in names:
        if name in same or (name == "sigmoid" and "tanh" in names):
            continue
        if run.expired():
            return certificate
        rival = problem.with_activation(activations.get(name))
        start = in_words_of(certificate.network, rival)
        other = polish(start, rival, run.at(name), enough=ROUGHLY)
        judged = own.against(RowLosses.of(rival, other.network))
        if judged.deviations >= CLEAR:
            continue
        gap = problem.behind(certificate.mean_square, other.mean_square)
        units = tuple(range(problem.k))
        found.append(Alternative(Kind.ACTIVATION, name, gap, other.network, units, judged.deviations))
        (ahead if judged.verdict == "second" else ties).append(name)
    advice = "activations that explain these rows better than the one assumed, row by row at level .01"
    better = f"{advice}: {', '.join(ahead)}" if ahead else advice
    check = at_most(Kind.ACTIVATION.value, float(len(ahead)), 0.0, better, About.FIT)
    held = certificate.held([check], found)
    return held.remarked(f"they do not tell {g.name} from {' or '.join(ties)}") if ties else held


def in_words_of(network: OneHiddenNet, rival: Problem) -> OneHiddenNet:
    """The units of a network under another activation, outputs by least squares."""
    seen = rival.at(network)
    columns = [rival.activation(seen.samples.X @ network.weights.T + network.bias)]
    if rival.form.skip:
        columns.append(seen.samples.X)
    design = seen.weighted(np.column_stack([*columns, np.ones(seen.n)]))
    solved, k = np.linalg.lstsq(design, seen.weighted(seen.samples.y), rcond=1e-10)[0], network.n_hidden
    linear = solved[k:-1] if rival.form.skip else None
    return OneHiddenNet(network.weights, solved[:k], network.bias, solved[-1], rival.activation, linear)
