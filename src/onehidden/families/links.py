"""Links, in forms that neither overflow nor cancel.

A mean above zero is known by its logarithm and its growth d log(mu) / d eta; a share p also by log(1 - p) and
the slope of that. Means, slopes and variances follow without underflow: slope = mu growth, and for shares
slope^2 / (p (1 - p)) = growth fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtri

Curve = Callable[[np.ndarray], np.ndarray]
Export = Callable[[Any, Any], Any]  # of ``exports.Operators`` and of a value
LIMIT = 700.0  # e^700 = 10^304: beyond it doubles overflow


@dataclass(frozen=True)
class Link:
    """A mean above zero: log(mu) and d log(mu) / d eta at eta, and eta of mu.

    ``graph(operators, t)`` is the mean for an export. ``half_line`` says that eta must be above zero: a row
    below has no likelihood.
    """

    log_mean: Curve
    growth: Curve
    eta_of: Curve
    graph: Export
    half_line: bool = field(default=False, kw_only=True)

    def mean(self, eta: np.ndarray) -> np.ndarray:
        return exponential(self.log_mean(eta))

    def slope(self, eta: np.ndarray) -> np.ndarray:
        return self.mean(eta) * self.growth(eta)


@dataclass(frozen=True)
class ShareLink(Link):
    """A mean p between zero and one: also log(1 - p) and -d log(1 - p) / d eta at eta."""

    log_rest: Curve
    fall: Curve


def exponential(t: Float[np.ndarray, "*rows"]) -> Float[np.ndarray, "*rows"]:
    """e^t, with t held to [-700, 700]."""
    return np.exp(np.clip(t, -LIMIT, LIMIT))


def softplus(eta: np.ndarray) -> np.ndarray:
    """log(1 + e^eta), correct down to eta = -700, where it is 10^-304."""
    return np.logaddexp(0.0, np.maximum(eta, -LIMIT))


def _above_zero(eta: np.ndarray) -> np.ndarray:
    """Predictors of a link that takes eta > 0; their information, 1/mu, stays below 10^10."""
    return np.maximum(eta, 1e-10)


def _normal_rise(eta: np.ndarray) -> np.ndarray:
    """Compute phi / Phi, the reciprocal of Mills' ratio, by the scaled error function: no 0/0 at -40."""
    return np.sqrt(2 / np.pi) / erfcx(-eta / np.sqrt(2))


def _log_log_rise(eta: np.ndarray) -> np.ndarray:
    rate = np.minimum(exponential(eta), LIMIT)  # rate / (e^rate - 1), which is 10^-301 there
    return rate / np.expm1(rate)


POSITIVE = {
    "log": Link(lambda eta: np.clip(eta, -LIMIT, LIMIT), np.ones_like, np.log, lambda o, t: o.exp(t)),
    "softplus": Link(
        lambda eta: np.log(softplus(eta)),
        lambda eta: expit(np.maximum(eta, -LIMIT)) / softplus(eta),
        lambda mu: mu + np.log(-np.expm1(-mu)),
        lambda o, t: o.softplus(t),
    ),
    "identity": Link(
        lambda eta: np.log(_above_zero(eta)),
        lambda eta: 1 / _above_zero(eta),
        lambda mu: mu,
        lambda o, t: o.maximum(t, 1e-10),
        half_line=True,
    ),
    "sqrt": Link(
        lambda eta: 2 * np.log(_above_zero(eta)),
        lambda eta: 2 / _above_zero(eta),
        np.sqrt,
        lambda o, t: o.maximum(t, 1e-10) * o.maximum(t, 1e-10),
        half_line=True,
    ),
    "inverse": Link(
        lambda eta: -np.log(_above_zero(eta)),
        lambda eta: -1 / _above_zero(eta),
        np.reciprocal,
        lambda o, t: 1.0 / o.maximum(t, 1e-10),
        half_line=True,
    ),
}
SHARE = {
    "logit": ShareLink(
        log_expit,
        lambda eta: expit(-eta),
        lambda p: np.log(p) - np.log1p(-p),
        lambda o, t: o.sigmoid(t),
        lambda eta: log_expit(-eta),
        expit,
    ),
    "probit": ShareLink(
        log_ndtr,
        _normal_rise,
        ndtri,
        lambda o, t: o.ndtr(t),
        lambda eta: log_ndtr(-eta),
        lambda eta: _normal_rise(-eta),
    ),
    "cloglog": ShareLink(
        lambda eta: np.log(-np.expm1(-exponential(eta))),
        _log_log_rise,
        lambda p: np.log(-np.log1p(-p)),
        lambda o, t: -o.expm1(-o.exp(t)),
        lambda eta: -exponential(eta),
        exponential,
    ),
}
