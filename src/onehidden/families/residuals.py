"""Residuals that look alike whatever the family: quantile, deviance and Pearson.

Quantile residuals (Dunn and Smyth, 1996) are exactly standard normal when family and means are right: y is
put through its own distribution function and the normal quantiles. Where y has steps the place within a step
is drawn at random, so that counts near zero and 0/1 responses are normal, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from onehidden.families.distributions import distribution
from onehidden.families.family import Blocks, Family, Level, PerRow, Rows
from onehidden.families.shares import beside
from onehidden.families.softmax import Softmax

TINIEST = 1e-300  # a tail that has underflowed: its residual is 37 standard deviations


@dataclass(frozen=True)
class Residuals:
    """Residuals of rows, positive where y lies above its mean.

    Attributes
    ----------
    quantile : standard normal when all is right; (n,) or (n, q), of classes one a row, in their order.
    deviance : root of the unit deviance with the sign of y - mu; of classes without sign, one a row.
    pearson : (y - mu) / standard deviation; of classes (n, m), whitened: uncorrelated, of variance one.
    """

    quantile: Blocks = field(repr=False)
    deviance: Blocks = field(repr=False)
    pearson: Rows = field(repr=False)


def residuals(
    family: Family,
    y: Rows,
    eta: Rows,
    rng: np.random.Generator,
    phi: Level = 1.0,
    trials: PerRow = None,
) -> Residuals:
    """Residuals at the predictors eta.

    Parameters
    ----------
    rng : places y within the steps of a discrete law.
    phi : dispersion, one for each output or one for all.
    trials : of a binomial, whose y is the share of successes.
    """
    whitened, distance = family.working(y, eta).whitened, family.deviance(y, eta)
    quantile = _quantile(family, y, eta, rng, phi, trials)
    if family.coupled:
        return Residuals(quantile, np.sqrt(distance), -whitened)
    sign, size = np.sign(y - family.mean(eta)), beside(trials, y) / phi
    return Residuals(quantile, sign * np.sqrt(distance * size), sign * np.abs(whitened) * np.sqrt(size))


def _quantile(
    family: Family, y: Rows, eta: Rows, rng: np.random.Generator, phi: Level, trials: PerRow
) -> Blocks:
    """The normal quantile of P(Y < y) + v P(Y = y), v uniform, from whichever tail is the smaller."""
    below, above = _tails(family, y, eta, phi, trials)
    if family.discrete:
        mass = np.exp(family.log_likelihood(y, eta, phi, trials))
        place = rng.random(mass.shape)
        below, above = below + place * mass, above + (1 - place) * mass
    tail = np.maximum(np.minimum(below, above), TINIEST)
    return np.where(below < above, ndtri(tail), -ndtri(tail))


def _tails(family: Family, y: Rows, eta: Rows, phi: Level, trials: PerRow) -> tuple[Blocks, Blocks]:
    """P(Y < y) and P(Y > y) of each row, each good where it is small; of classes, those before and after."""
    if isinstance(family, Softmax):
        p, code = family.probabilities(eta), family.codes(y)[:, None]
        at = np.arange(family.classes)
        return np.sum(p * (at < code), axis=1), np.sum(p * (at > code), axis=1)
    law, value = (
        distribution(family, eta, phi, trials),
        np.rint(y * beside(trials, y)) if family.discrete else y,
    )
    return law.cdf(value - family.discrete), law.sf(value)
