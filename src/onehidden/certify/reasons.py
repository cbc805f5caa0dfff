"""Why the data cannot tell: which units, in words."""

from __future__ import annotations

import numpy as np

from onehidden.certify.patterns import samples_apart, samples_needed
from onehidden.network import OneHiddenNet

_PARALLEL = 1e-8  # 1 - |cosine| of (weights, bias) below which two units are one
_NOTHING = 1e-7  # share of std(y) below which a unit adds nothing
_NAMED = 3


def unit_reasons(net: OneHiddenNet, Z: np.ndarray, blind: np.ndarray) -> list[str]:
    """One clause for each unit that the samples leave open.

    Parameters
    ----------
    net : the network in whitened coordinates, for a target of unit variance.
    Z : (n, d) whitened inputs.
    blind : (k, d) whether a weight is undetermined.
    """
    t = Z @ net.weights.T + net.bias
    strength = np.abs(net.output) * net.activation(t).std(axis=0)
    found = []
    planes = np.column_stack([net.weights, net.bias])
    planes = planes / np.maximum(np.linalg.norm(planes, axis=1, keepdims=True), np.finfo(float).tiny)
    cosine = np.abs(planes @ planes.T)
    kinked, needed = net.activation.homogeneity is not None, samples_needed(Z.shape[1])
    for i in range(net.n_hidden):
        beyond = int(min(np.sum(t[:, i] > 0), np.sum(t[:, i] < 0)))
        twins = [j for j in range(i) if cosine[i, j] > 1 - _PARALLEL]
        if strength[i] < _NOTHING:
            found.append(f"unit {i + 1} adds nothing to y")
        elif twins:
            found.append(f"units {twins[0] + 1} and {i + 1} are parallel")
        elif kinked and beyond < needed:
            crossed = "no sample" if beyond == 0 else f"only {beyond} sample{'s' if beyond > 1 else ''}"
            found.append(f"{crossed} lie{'s' if beyond < 2 else ''} beyond the kink of unit {i + 1}")
        elif blind[i].any():
            found.append(f"the weights of unit {i + 1} are not determined")
    apart, (i, j) = samples_apart(t) if kinked else (needed, (0, 0))
    if apart < needed and j < net.n_hidden and cosine[i, j] <= 1 - _PARALLEL:
        few = {0: "no sample tells", 1: "only 1 sample tells"}.get(apart, f"only {apart} samples tell")
        found.insert(0, f"{few} units {i + 1} and {j + 1} apart")
    return found


def sentence(reasons: list[str]) -> str:
    """The clauses as one sentence; what is unnamed is said in general."""
    if not reasons:
        return "the samples leave some combination of the parameters undetermined"
    more = len(reasons) - _NAMED
    return "; ".join(reasons[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
