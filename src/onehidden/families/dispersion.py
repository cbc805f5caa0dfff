"""A test of the spread of y about its mean, with the family to try where it is not what a family says.

Where the family fixes its variance: all these laws have a variance quadratic in the mean, V = M (1 + b M) for
the count M of a row, and with u = y - M the polynomial of degree two

    P = u^2 - V' u - V,   E P = 0,   E P^2 = 2 V^2 (1 + b),   E P^3 = 4 V^2 (1 + b) (V'^2 + 2 (1 + 2 b) V)

is orthogonal to 1 and u (Morris, 1982): estimated means of leverage h move it by -h V (1 + b) and no more.
The score of a small random effect on the predictor is the sum of P, for counts weighted by M^2/V^2; of
Poisson counts it is the sum of (y - mu)^2 - y. Where a few large counts would decide it, rows are weighted by
1 / (1 + M) besides: the score of a variance in proportion to the mean. It is compared with a shifted gamma
law with its own three moments, on both sides. A 0/1 response has P = 0: its spread says nothing.

Where phi is free only its constancy is tested: the covariance with the mean (its logarithm for gamma) of
the same P, u^2 / V - phi - (V'/V) phi u with the mean of u^2 / V for phi, in standard errors that hold
whatever the kurtosis (Koenker, 1981). The last term, nothing for normal noise, is what estimated means do.

Size at level 5 %, 2000 samples each: Poisson of mean .3 and n = 500 to 100 000 .045-.053, .028 with 30
parameters at n = 500; binomial .044-.057, negative binomial of known alpha .040-.052, normal .047-.053, gamma
.026-.046. Power at level 1 % against alpha = .5 at mean .3: .34 at n = 500, 1 at 5000.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from onehidden.checks import About, Check, at_least, not_evaluated
from onehidden.families.family import Family, PerRow, Values, WholeNumbers, beside
from onehidden.families.positive import Gamma, NegativeBinomial
from onehidden.refused import Refused


class Dispersion(NamedTuple):
    """What the spread about the means says of a family."""

    statistic: float  # in standard deviations; positive where y spreads more, or more for larger means
    p_value: float  # two-sided, when the family is right


def dispersion_test(
    family: Family, y: Values, eta: Values, freedom: float, trials: PerRow = None
) -> Dispersion:
    """Test the spread of y about its mean, or refuse; several outputs are taken together.

    ``freedom`` counts rows (times outputs) less parameters. Leverages are taken in proportion to the
    information of rows, which is exact for means that differ in one direction only and near it otherwise.
    """
    if freedom < 25:
        raise Refused(f"{freedom:g} rows beyond the parameters are too few, 25 are needed")
    if isinstance(family, NegativeBinomial) and not family.given:
        raise Refused("alpha is fitted to this very spread")
    if not (family.scaled or isinstance(family, WholeNumbers)):
        raise Refused(f"the {family.name} family has no spread beyond its means")
    m = beside(trials, y)
    share = family.information(eta) * m
    h = np.minimum((y.size - freedom) * share / np.sum(share), 0.99)
    if isinstance(family, WholeNumbers):
        return _spread(family, y, family.mean(eta), m, h)
    return _drift(family, y, eta, h)


def dispersion_check(
    family: Family, y: Values, eta: Values, freedom: float, trials: PerRow, level: float
) -> tuple[Check, str]:
    """The test as a check, and the family to try where y spreads more than below level.

    It is about standard errors, and about the mean where counts spread less: a ceiling, or trials that nobody
    gave, bend the mean, too.
    """
    name = "spread of y"
    try:
        statistic, p_value = dispersion_test(family, y, eta, freedom, trials)
    except Refused as reason:
        return not_evaluated(name, level, f"cannot be evaluated: {reason}", About.ERRORS), ""
    better = family.overdispersed_family(y) if p_value < level and statistic > 0 else ""
    how = "more" if statistic > 0 else "less"
    how = f"{how} for larger means" if family.scaled else how
    advice = f"y spreads {how} than the {family.name} family says: "
    advice += f'try family="{better}", or ' if better else ""
    advice += "trust the robust standard errors"
    about = About.ERRORS
    if p_value >= level:
        advice = f"the spread of y about its mean is what the {family.name} family says"
    elif statistic < 0 and isinstance(family, WholeNumbers):
        about = About.MEAN
        advice = (
            f"y spreads less than the {family.name} family says, as counts with a ceiling do, whose mean is "
            "another: give the trials (family='binomial'), or model the share of rows below the ceiling"
        )
    return at_least(name, p_value, level, advice, about), better


def _spread(family: WholeNumbers, y: Values, mu: Values, trials: Values, h: Values) -> Dispersion:
    """The sum of P over rows whose variance the family fixes."""
    from scipy.stats import pearson3

    count, bend = trials * mu, family.overdispersion / trials
    variance, slope = count * (1 + bend * count), 1 + 2 * bend * count
    u = trials * y - count
    second = 2 * variance**2 * (1 + bend) * (1 - h)  # a residual has 1 - h degrees of freedom
    third = 2 * second * (slope**2 + 2 * (1 + 2 * bend) * variance)
    own = u**2 - slope * u - variance + h * variance * (1 + bend)
    weight, skew, k2 = 1 / (1 + max(family.overdispersion, 0.0) * count) ** 2, np.inf, 0.0
    for fewer in (1.0, 1 / (1 + count)):
        weight = weight * fewer
        k2, k3 = float(np.sum(weight**2 * second)), float(np.sum(weight**3 * third))
        if not k2**1.5 > 0:  # it may underflow, where all fitted means are next to nothing
            raise Refused("a 0/1 response has no spread beyond its probability")
        skew = k3 / k2**1.5
        if skew <= 1:  # up to here the gamma law of the statistic was verified
            break
    else:
        raise Refused("too few rows have more than one event")
    total = float(np.sum(weight * own))
    z = total / np.sqrt(k2)
    p_value = min(2 * float(pearson3.sf(z, skew) if z > 0 else pearson3.cdf(z, skew)), 1.0)
    return Dispersion(z, p_value)


def _drift(family: Family, y: Values, eta: Values, h: Values) -> Dispersion:
    """Whether squared Pearson residuals grow or fall with the mean."""
    mu, pearson = family.mean(eta), -family.gradient(y, eta) / np.sqrt(family.information(eta))
    e = (pearson / np.sqrt(1 - h)).reshape(len(y), -1)
    phi = np.mean(e**2, axis=0)
    if not np.all(phi > 0):
        raise Refused("the fit leaves no residuals")
    steady = isinstance(family, Gamma)  # V = mu^2, so that (V'/V) u = 2 e
    along = (np.log(mu) if steady else mu).reshape(len(y), -1)
    terms = (along - np.mean(along, axis=0)) * (e**2 / phi - 1 - (2 * e if steady else 0.0))
    size = float(np.sqrt(np.sum(terms**2)))
    if not size > 0:
        raise Refused("the mean is the same in all rows")
    z = float(np.sum(terms)) / size
    p_value = 2 * float(ndtr(-abs(z)))
    return Dispersion(z, p_value)
