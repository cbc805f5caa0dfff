"""Links: how a linear predictor eta becomes a mean, with what deviances and scores need of it in stable form.

Two kinds, after the range of the mean. A mean above zero is known by its logarithm and its growth
d log(mu) / d eta; a share by log(p), log(1 - p) and their slopes. Means, slopes and variances follow from
these without underflow: slope = mu growth, and for shares slope^2 / (p (1 - p)) = rise fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtri

from onehidden.families.divergence import LIMIT, exponential

Curve = Callable[[np.ndarray], np.ndarray]
LEAST = 1e-10  # the least eta of a link that takes eta > 0: its information, 1/mu, stays below 10^10


@dataclass(frozen=True)
class PositiveLink:
    """A mean above zero.

    Attributes
    ----------
    log_mean : log(mu) of eta. growth : d log(mu) / d eta. unlink : eta of mu.
    half_line : whether eta must be above zero; a row below has no likelihood.
    """

    log_mean: Curve
    growth: Curve
    unlink: Curve
    half_line: bool = False


@dataclass(frozen=True)
class ShareLink:
    """A mean between zero and one.

    Attributes
    ----------
    log_share, log_rest : log(p), log(1 - p) of eta.
    rise, fall : d log(p) / d eta, -d log(1 - p) / d eta: both positive.
    unlink : eta of p.
    """

    log_share: Curve
    log_rest: Curve
    rise: Curve
    fall: Curve
    unlink: Curve


def _held(eta: np.ndarray) -> np.ndarray:
    return np.clip(eta, -LIMIT, LIMIT)


def _one(eta: np.ndarray) -> np.ndarray:
    return np.ones_like(eta)


def _log_of_identity(eta: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(eta, LEAST))


def _growth_of_identity(eta: np.ndarray) -> np.ndarray:
    return 1 / np.maximum(eta, LEAST)


def _same(mu: np.ndarray) -> np.ndarray:
    return mu


def _log_of_inverse(eta: np.ndarray) -> np.ndarray:
    return -np.log(np.maximum(eta, LEAST))


def _growth_of_inverse(eta: np.ndarray) -> np.ndarray:
    return -1 / np.maximum(eta, LEAST)


def softplus(eta: np.ndarray) -> np.ndarray:
    """log(1 + e^eta), correct down to eta = -700, where it is 10^-304."""
    return np.logaddexp(0.0, np.maximum(eta, -LIMIT))


def _log_of_softplus(eta: np.ndarray) -> np.ndarray:
    return np.log(softplus(eta))


def _growth_of_softplus(eta: np.ndarray) -> np.ndarray:
    return expit(np.maximum(eta, -LIMIT)) / softplus(eta)


def _unlink_softplus(mu: np.ndarray) -> np.ndarray:
    return mu + np.log(-np.expm1(-mu))


def _log_expit_of_minus(eta: np.ndarray) -> np.ndarray:
    return log_expit(-eta)


def _expit_of_minus(eta: np.ndarray) -> np.ndarray:
    return expit(-eta)


def _logit(p: np.ndarray) -> np.ndarray:
    return np.log(p) - np.log1p(-p)


def _log_ndtr_of_minus(eta: np.ndarray) -> np.ndarray:
    return log_ndtr(-eta)


def _normal_rise(eta: np.ndarray) -> np.ndarray:
    """phi / Phi, the reciprocal of Mills' ratio, through the scaled error function: no 0/0 at eta = -40."""
    return np.sqrt(2 / np.pi) / erfcx(-eta / np.sqrt(2))


def _normal_fall(eta: np.ndarray) -> np.ndarray:
    return _normal_rise(-eta)


def _log_log_rest(eta: np.ndarray) -> np.ndarray:
    return -exponential(eta)


def _log_of_log_log(eta: np.ndarray) -> np.ndarray:
    return np.log(-np.expm1(-exponential(eta)))


def _log_log_rise(eta: np.ndarray) -> np.ndarray:
    rate = np.minimum(exponential(eta), LIMIT)  # rate / (e^rate - 1), which is 10^-301 there
    return rate / np.expm1(rate)


def _unlink_log_log(p: np.ndarray) -> np.ndarray:
    return np.log(-np.log1p(-p))


POSITIVE = {
    "log": PositiveLink(_held, _one, np.log),
    "softplus": PositiveLink(_log_of_softplus, _growth_of_softplus, _unlink_softplus),
    "identity": PositiveLink(_log_of_identity, _growth_of_identity, _same, half_line=True),
    "inverse": PositiveLink(_log_of_inverse, _growth_of_inverse, np.reciprocal, half_line=True),
}
SHARE = {
    "logit": ShareLink(log_expit, _log_expit_of_minus, _expit_of_minus, expit, _logit),
    "probit": ShareLink(log_ndtr, _log_ndtr_of_minus, _normal_rise, _normal_fall, ndtri),
    "cloglog": ShareLink(_log_of_log_log, _log_log_rest, _log_log_rise, exponential, _unlink_log_log),
}
