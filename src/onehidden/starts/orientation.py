"""Orientation of units from the linear part of the network."""

from __future__ import annotations

import numpy as np

from onehidden.fit.form import Form
from onehidden.network import OneHiddenNet

EXHAUSTIVE = 14  # units up to which every pattern of turns is looked at


def orient(form: Form, theta: np.ndarray, linear: bool = False) -> OneHiddenNet:
    """The network behind a fitted form; an orientation-free fit has its units turned to explain the skip.

    With a ``linear`` part of its own the network keeps what its units do not explain, and no turn is better.

    With g = (g - h) + h, h(t) = h_1 t, a unit turned by s adds s h_1 w (a, b) to the skip: beta =
    h_1 sum_i s_i w_i a_i, solved for s in {-1, 1}^k by trying all, or by least squares and then flips while
    they help.
    """
    theta = np.asarray(theta, float)
    if not form.symmetrised:
        weights, output, bias, beta, intercept = form.unpack(theta)
        return OneHiddenNet(weights, output, bias, intercept, form.activation, beta if linear else None)
    columns, beta = skip_columns(form, theta)
    if linear:
        rest = (beta - columns.sum(axis=1)).reshape(form.d, *form.tail)
        net = turned(form, theta, np.ones(form.k))
        return OneHiddenNet(net.weights, net.output, net.bias, net.intercept, net.activation, rest)
    if form.k <= EXHAUSTIVE:
        patterns = all_turns(form.k)
        misfit = np.sum((beta - patterns @ columns.T) ** 2, axis=1)
        return turned(form, theta, patterns[int(np.argmin(misfit))])
    signs = np.where(np.linalg.lstsq(columns, beta, rcond=None)[0] < 0, -1.0, 1.0)
    misfit = beta - columns @ signs
    for _ in range(4 * form.k):
        change = 4 * signs * (columns.T @ misfit) + 4 * np.sum(columns**2, axis=0)
        best = int(np.argmin(change))
        if change[best] >= -1e-12 * (beta @ beta):
            break
        misfit = misfit + 2 * signs[best] * columns[:, best]
        signs[best] = -signs[best]
    return turned(form, theta, signs)


def skip_columns(form: Form, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(d q, k) what each unit adds to the skip when not turned, and the fitted skip (d q,)."""
    weights, output, _, beta, _ = form.unpack(theta)
    each = weights[:, :, None] * output.reshape(form.k, 1, form.q)
    return form.activation.orientation_part[1] * each.reshape(form.k, -1).T, beta.reshape(-1)


def all_turns(k: int) -> np.ndarray:
    """(2^k, k) every pattern of turns, the one without any first."""
    return 1.0 - 2.0 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)


def turned(form: Form, theta: np.ndarray, signs: np.ndarray) -> OneHiddenNet:
    """The network of an orientation-free fit with its units turned by these signs."""
    weights, output, bias, _, intercept = form.unpack(theta)
    slope = form.activation.orientation_part[1]
    weights, bias = weights * signs[:, None], bias * signs
    constant = intercept - slope * (bias @ output)
    return OneHiddenNet(weights, output, bias, constant, form.activation)
