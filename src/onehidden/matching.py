"""Alignment of a recovered network with the true one, and the errors that honest papers report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.network import OneHiddenNet

# Rows, biases, outputs and intercepts.
Parts = tuple[
    Float[np.ndarray, "k d"], Float[np.ndarray, " k"], Float[np.ndarray, "k q"], Float[np.ndarray, " q"]
]


@dataclass(frozen=True)
class Match:
    """How found units pair with true ones.

    Attributes
    ----------
    permutation : ndarray of shape (k*,)
        Index of the found unit paired with each true one; -1 where none was left.
    signs : ndarray of shape (k*,)
        1, or -1 where the found unit must be reversed.
    max_error : float
        Worst row, |a_i - s a*_i| / |a*_i|; rows are compared at unit norm where g is homogeneous.
    output_error : float
        Worst output weight, relative to the true one, or to the largest of a unit with several outputs; 0 for
        arrays.
    bias_error : float
        Worst hidden bias, relative to max(|a*_i|, |b*_i|).
    intercept_error : float
        |c - c*| relative to max(1, |c*|), after the signs are applied; of several outputs the worst.
    printed_error, honest_error : float
        The papers' e(Q) with min, and with max.
    linear_error : float
        |v - v*| of the linear part relative to max(1, |v*|); 0 where there is none.
    """

    permutation: np.ndarray
    signs: np.ndarray
    max_error: float
    output_error: float
    bias_error: float
    intercept_error: float
    printed_error: float
    honest_error: float
    linear_error: float = 0.0


def match(found: OneHiddenNet | npt.ArrayLike, truth: OneHiddenNet | npt.ArrayLike) -> Match:
    """Pair found units with true ones by optimal assignment (Hungarian), up to the symmetries of g.

    Parameters
    ----------
    found, truth : OneHiddenNet or array_like of shape (k, d)
        Two networks, or two matrices of rows, which are matched up to sign.

    Returns
    -------
    Match
        The pairs and their errors; these are infinite where a true unit has no partner.

    Examples
    --------
    >>> import onehidden as oh
    >>> pairs = oh.match([[0.0, -1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> pairs.permutation.tolist(), pairs.signs.tolist(), float(pairs.max_error)
    ([1, 0], [1, -1], 0.0)
    """
    from scipy.optimize import linear_sum_assignment

    if isinstance(found, OneHiddenNet) != isinstance(truth, OneHiddenNet):
        raise ValueError("match two networks or two arrays of rows, not one of each")
    found, truth = _as_network(found), _as_network(truth)
    g, kinds = found.activation, [(n.activation.name, n.n_inputs, n.n_outputs) for n in (found, truth)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"cannot match {found} with {truth}: activation, inputs and outputs must be the same"
        )
    ramp = not g.sign_free and g.reversal is not None and g.reversal.degree == 1
    by_convention = ramp and (found.has_linear or truth.has_linear)  # which side a unit has
    if by_convention or g.multiplicative or g.half_period:
        found, truth = (
            one.canonical(beside=True if by_convention else None, ordered=False) for one in (found, truth)
        )
    A, b, w, c = _parts(found)
    A0, b0, w0, c0 = theirs = _parts(truth)
    parity, shift = (g.reversal.parity, sum(g.reversal.polynomial[:1])) if g.reversal is not None else (1, 0)
    scale = np.maximum(np.linalg.norm(A0, axis=1), np.finfo(float).tiny)
    sides = [(A, b, w, c), (-A, -b, parity * w, c)][: 1 + g.sign_free]
    distance = np.stack([_distance(side, theirs, scale) for side in sides])
    cost = distance.min(axis=0)
    # Assign on the square root: the sum is then dominated by how many pairs fit, not by one stray unit.
    true_index, found_index = linear_sum_assignment(np.sqrt(cost))
    permutation = np.full(len(A0), -1)
    permutation[true_index] = found_index
    signs = np.ones(len(A0), dtype=int)
    signs[true_index] = 1 - 2 * distance.argmin(axis=0)[true_index, found_index]
    printed, honest = _papers_errors(A, A0)
    if np.any(permutation < 0):
        inf = float("inf")
        return Match(permutation, signs, inf, inf, inf, inf, printed, honest, inf)

    turned = (signs < 0)[:, None]
    P, Pb, Pw = A[permutation] * signs[:, None], b[permutation] * signs, w[permutation]
    c = c + shift * np.sum(np.where(turned, Pw, 0.0), axis=0)
    Pw = np.where(turned, parity * Pw, Pw)
    largest = max(float(np.max(np.abs(w0))), np.finfo(float).tiny)
    own = np.max(np.abs(w0), axis=1)
    return Match(
        permutation,
        signs,
        max_error=float(np.max(np.linalg.norm(P - A0, axis=1) / scale)),
        output_error=float(np.max(np.max(np.abs(Pw - w0), axis=1) / np.where(own == 0, largest, own))),
        bias_error=float(np.max(np.abs(Pb - b0) / np.maximum(scale, np.abs(b0)))),
        intercept_error=float(np.max(np.abs(c - c0) / np.maximum(1.0, np.abs(c0)))),
        printed_error=printed,
        honest_error=honest,
        linear_error=float(
            np.linalg.norm(found.linear - truth.linear) / max(1.0, np.linalg.norm(truth.linear))
        ),
    )


def _as_network(given: OneHiddenNet | npt.ArrayLike) -> OneHiddenNet:
    """The network; rows become units of an odd activation, which have a sign, and no outputs."""
    if isinstance(given, OneHiddenNet):
        return given
    rows = np.asarray(given, dtype=float)
    return OneHiddenNet(rows, np.zeros(len(rows)), activation="tanh")


def _parts(net: OneHiddenNet) -> Parts:
    """Rows, biases, outputs and intercepts; unit rows where g is homogeneous."""
    A, b, w = net.weights, net.bias, net.output.reshape(net.n_hidden, net.n_outputs)
    if net.activation.homogeneity is not None:
        norm = np.linalg.norm(A, axis=1)
        norm = np.where(norm > 0, norm, 1.0)
        A, b, w = A / norm[:, None], b / norm, w * (norm**net.activation.homogeneity)[:, None]
    return A, b, w, np.array(net.intercept).reshape(-1)


def _distance(found: Parts, truth: Parts, scale: Float[np.ndarray, " K"]) -> Float[np.ndarray, "K k"]:
    """(k*, k) distance of every found unit from every true one."""
    (A, b, w, _), (A0, b0, w0, _) = found, truth
    # One true unit at a time: all differences at once would be K k d numbers.
    rows = np.stack([np.linalg.norm(A - one, axis=1) for one in A0]) / scale[:, None]
    bias = np.abs(b[None] - b0[:, None]) / np.maximum(scale, np.abs(b0))[:, None]
    largest = max(float(np.max(np.abs(w0))), np.finfo(float).tiny)
    return rows + bias + np.max(np.abs(w[None] - w0[:, None]), axis=2) / largest


def _papers_errors(A: Float[np.ndarray, "k d"], A0: Float[np.ndarray, "K d"]) -> tuple[float, float]:
    """(4.1) of [GLM], (22) of [GMOV]: e(Q) with the printed min, and with the max that it needs."""
    unit = [rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)[:, None] for rows in (A, A0)]
    Q = np.abs(unit[0] @ unit[1].T)
    by_found, by_true = 1 - Q.max(axis=1).min(), 1 - Q.max(axis=0).min()
    return float(min(by_found, by_true)), float(max(by_found, by_true))
