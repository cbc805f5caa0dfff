"""Repeated measurements: six real tables with named groups, beside a GEE and a mixed model of statsmodels.

``python -m benchmarks repeated``. First what is answered with ``groups=`` named, one or two tanh units. The
standard errors are held against those that statsmodels gives for the model linearised at the same estimate:
a GEE with independent rows, robust (CR0) and bias-reduced (Mancl and DeRouen); CR2 lies between the two. With
``random_intercept=True`` the variance of the intercepts and the classical errors are held against ``MixedLM``
of the linearised model (by Powell's method; its default ends elsewhere for Theoph). Both get an orthonormal
basis of the linearised columns. Then whole groups are left out, as in ``tables``.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table
from benchmarks.tables import REPEATED, given, scores

SECONDS = 20.0
LOGARITHMIC = ("DNase",)  # the curve that nlme fits is one of log(conc)
MEASURES = ("r_squared", "robust", "reduced", "variance", "its", "mixed")


def main(quick: bool) -> list[str]:
    names = list(REPEATED)[: 2 if quick else None]
    table = Table(
        "table", "rows", "groups", "status", "units", "R²", "our errors over GEE's, robust",
        "and bias-reduced", "variance of intercepts", "of MixedLM", "our errors over MixedLM's",
        "predictions",
    )  # fmt: skip
    for (name,), row in _pool.run(answer_of, [(name,) for name in names]):
        if "broke" in row:
            table.row(name, row["broke"])
            continue
        one = given(name)
        table.row(
            name, len(one.y), len(set(one.groups)) if one.groups is not None else "", row["status"],
            row["units"], *(row[key] for key in MEASURES), row["predictions"],
        )  # fmt: skip
    return [*table.lines, "", *scores(names)]


def answer_of(name: str) -> dict[str, Any]:
    """What is said of a table, and how its errors compare."""
    one, limit = given(name), _pool.seconds(SECONDS)
    one = replace(one, X=np.log(one.X)) if name in LOGARITHMIC else one
    options: dict[str, Any] = {"activation": "tanh", "groups": one.groups, "max_seconds": limit}
    r = oh.recover(one.X, one.y, 1, **options)
    row = {"status": str(r.status), "units": r.network.n_hidden, "r_squared": float(r.r_squared)}
    row |= {"predictions": r.predictions_in_words}
    robust, reduced = (ratio(r, one, kind) for kind in ("robust", "bias_reduced"))
    mixed = oh.recover(one.X, one.y, 1, random_intercept=True, errors="classical", **options)
    variance, its, errors = by_mixed_model(mixed, one)
    return row | {"robust": robust, "reduced": reduced, "variance": variance, "its": its, "mixed": errors}


def linearised(net: oh.OneHiddenNet, X: np.ndarray) -> np.ndarray:
    """Derivatives of the network's values by weights, biases, outputs and intercept."""
    z = X @ net.weights.T + net.bias
    slope = net.output * net.activation.derivative(z)
    by_weights = (slope[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    return np.column_stack([by_weights, slope, net.activation(z), np.ones(len(X))])


def stacked(net: Any) -> np.ndarray:
    """The parameters in the order of ``linearised``."""
    return np.concatenate([np.ravel(net.weights), net.bias, net.output, [net.intercept]])


def orthonormal(J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A basis of the columns of J, and B with J B that basis: statsmodels takes no dependent columns."""
    size = np.linalg.norm(J, axis=0)
    left, value, right = np.linalg.svd(J / size, full_matrices=False)
    kept = value > 1e-10 * value[0]
    return left[:, kept], (right[kept].T / value[kept]) / size[:, None]


def over(r: oh.Recovery, back: np.ndarray, covariance: np.ndarray) -> float:
    """Median of our standard errors over those of parameters B g, g of this covariance."""
    theirs = np.sqrt(np.diag(back @ covariance @ back.T))
    return float(np.nanmedian(stacked(r.standard_errors) / theirs))


def ratio(r: oh.Recovery, one: Any, kind: str) -> float:
    """Median of our standard errors over those of a GEE of the linearised model."""
    import statsmodels.api as sm

    J = linearised(r.network, one.X)
    y = one.y - r.network.predict(one.X) + J @ stacked(r.network)
    Q, back = orthonormal(J)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = sm.GEE(y, Q, groups=one.groups).fit(cov_type=kind)
    return over(r, back, fit.cov_params())


def by_mixed_model(r: oh.Recovery, one: Any) -> tuple[float, float, float]:
    """Variance of the intercepts, that of a mixed model of the linearised network, the ratio of errors."""
    import statsmodels.api as sm

    J = linearised(r.network, one.X)
    y = one.y - r.network.predict(one.X) + J @ stacked(r.network)
    Q, back = orthonormal(J)
    own = float(np.squeeze(r.group_variance)) if r.group_variance is not None else float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = sm.MixedLM(y, Q, groups=one.groups).fit(reml=True, method="powell")
    if not fit.converged:
        return own, float("nan"), float("nan")
    k = Q.shape[1]
    return own, float(np.squeeze(fit.cov_re)), over(r, back, np.asarray(fit.cov_params())[:k, :k])
