"""Orientation of units from the linear part of the network."""

from __future__ import annotations

import numpy as np

from onehidden.network import OneHiddenNet
from onehidden.objectives.residuals import Form


def orient(form: Form, theta: np.ndarray) -> OneHiddenNet:
    """The network behind a fitted form; an orientation-free fit has its units turned to explain the skip.

    With g = (g - h) + h, h(t) = h_1 t, a unit turned by s adds s h_1 w (a, b) to the skip: beta =
    h_1 sum_i s_i w_i a_i, solved for s in {-1, 1}^k by least squares, then by flips while they help.
    """
    weights, output, bias, beta, intercept = form.unpack(np.asarray(theta, float))
    g = form.activation
    if not form.symmetrised:
        return OneHiddenNet(weights, output, bias, float(intercept), g)
    slope = g.orientation_part[1]
    columns = slope * (output[:, None] * weights).T
    signs = np.where(np.linalg.lstsq(columns, beta, rcond=None)[0] < 0, -1.0, 1.0)
    misfit = beta - columns @ signs
    for _ in range(4 * form.k):
        change = 4 * signs * (columns.T @ misfit) + 4 * np.sum(columns**2, axis=0)
        best = int(np.argmin(change))
        if change[best] >= -1e-12 * (beta @ beta):
            break
        misfit = misfit + 2 * signs[best] * columns[:, best]
        signs[best] = -signs[best]
    weights, bias = weights * signs[:, None], bias * signs
    return OneHiddenNet(weights, output, bias, float(intercept - slope * np.sum(output * bias)), g)
