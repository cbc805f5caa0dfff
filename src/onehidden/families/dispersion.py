"""Is the spread of y about its mean what the family says? Two tests, with the family to try where it is not.

Where the family fixes its variance: all these laws have a variance quadratic in the mean, V = M (1 + b M) for
the count M of a row, and with u = y - M the polynomial of degree two

    P = u^2 - V' u - V,   E P = 0,   E P^2 = 2 V^2 (1 + b),   E P^3 = 4 V^2 (1 + b) (V'^2 + 2 (1 + 2 b) V)

is orthogonal to 1 and u (Morris, 1982): estimated means of leverage h move it by -h V (1 + b) and no more.
The score of a small random effect on the predictor is the sum of P, for counts weighted by M^2/V^2; of
Poisson counts it is the sum of (y - mu)^2 - y. It is held against a shifted gamma law with its own three
moments, on both sides. A 0/1 response has P = 0: of its spread nothing can be told.

Where phi is free only its constancy can be asked: the covariance with the mean (its logarithm for gamma) of
the same P, u^2 / V - phi - (V'/V) phi u with the mean of u^2 / V for phi, in standard errors that hold
whatever the kurtosis (Koenker, 1981). The last term, nothing for normal noise, is what estimated means do.

Size at level 5 %, 2000 samples each, p parameters fitted: Poisson of mean count .3 at n = 500, 5000 and
100 000: .046, .053, .045 (p = 3 to 5), .028 with p = 30 at n = 500; mean 3 at n = 500: .048; at n = 5000 with
mean .02, where some hundred rows in all have an event: .013. Binomial with 2 to 20 trials, n = 100 to 500:
.044-.057. Negative binomial of known alpha .5: .040-.052. Normal: .047-.053, with t_4 noise .043 and
exponential noise .039. Gamma of shape 2: .038-.046; of shape 1/2 at n = 500: .026. Power against alpha = .5
at mean .3 and level 1 %: .34 at n = 500, 1 at 5000.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from onehidden.checks import About, Check, at_least, not_asked
from onehidden.families.amounts import Gamma, Gaussian
from onehidden.families.counts import NegativeBinomial, Poisson
from onehidden.families.family import Family, PerRow, Rows, WholeNumbers
from onehidden.families.noticing import notice
from onehidden.families.shares import Bernoulli, Binomial, beside

SHOWN = 0.01  # p-value below which a spread is called wrong: a right family is bothered once in a hundred
SKEWED = 1.0  # skewness of the statistic up to which its gamma law was tried
FEWEST = 25  # rows beyond the parameters from which on the question is asked


@dataclass(frozen=True)
class Dispersion:
    """What the spread about the means says of a family.

    Attributes
    ----------
    statistic : in standard deviations; positive where y spreads more (normal, gamma: more where the mean is
        larger) than the family says.
    p_value : of so large a statistic, on both sides, when the family is right. NaN where not asked.
    suggestion : name of a family to try, empty where there is none or nothing is wrong.
    reason : why the question could not be asked; empty where it was.
    """

    statistic: float
    p_value: float
    suggestion: str = ""
    reason: str = ""


def dispersion_test(
    family: Family,
    y: Rows,
    eta: Rows,
    freedom: float,
    trials: PerRow = None,
    leverage: Rows | None = None,
) -> Dispersion:
    """The test; several outputs are taken together.

    Parameters
    ----------
    y, eta : (n,) or (n, q), eta with its offset.
    freedom : rows (times outputs) less parameters.
    trials : of a binomial.
    leverage : in the shape of y, of the fit; where None in proportion to the information of rows, which is
        exact for means that differ in one direction only and near it otherwise.
    """
    if freedom < FEWEST:
        return _unasked(f"{freedom:g} rows beyond the parameters are too few, {FEWEST} are needed")
    if family.coupled:
        return _unasked("one label a row has no spread beyond its probabilities")
    if isinstance(family, NegativeBinomial) and not family.given:
        return _unasked("alpha is fitted to this very spread")
    m = beside(trials, y)
    share = family.information(eta) * m
    h = (y.size - freedom) * share / np.sum(share) if leverage is None else leverage
    h = np.minimum(h, 0.99)
    if family.scaled:
        return _drift(family, y, family.mean(eta), h)
    assert isinstance(family, WholeNumbers)  # every law whose variance is fixed
    return _spread(family, y, family.mean(eta), m, h)


def dispersion_check(
    family: Family,
    y: Rows,
    eta: Rows,
    freedom: float,
    trials: PerRow = None,
    leverage: Rows | None = None,
) -> Check:
    """The test as a check on standard errors: they hold where the spread is what the family says."""
    found = dispersion_test(family, y, eta, freedom, trials, leverage)
    name = "spread of y"
    if found.reason:
        return not_asked(name, SHOWN, f"cannot be told: {found.reason}", About.ERRORS)
    return at_least(name, found.p_value, SHOWN, _advice(family, found), About.ERRORS)


def _spread(family: WholeNumbers, y: Rows, mu: Rows, trials: Rows, h: Rows) -> Dispersion:
    """The sum of P over rows whose variance the family fixes."""
    from scipy.stats import pearson3

    count, bend = trials * mu, family.bend / trials
    variance, slope = count * (1 + bend * count), 1 + 2 * bend * count
    u = trials * y - count
    weight = 1 / (1 + max(family.bend, 0.0) * count) ** 2
    second = 2 * variance**2 * (1 + bend) * (1 - h)  # a residual has 1 - h degrees of freedom
    third = 2 * second * (slope**2 + 2 * (1 + 2 * bend) * variance)
    own = u**2 - slope * u - variance
    total = float(np.sum(weight * (own + h * variance * (1 + bend))))
    k2, k3 = float(np.sum(weight**2 * second)), float(np.sum(weight**3 * third))
    if not k2 > 0:
        return _unasked("a 0/1 response has no spread beyond its probability")
    skew = k3 / k2**1.5
    if skew > SKEWED:
        return _unasked("too few rows have more than one event")
    z = total / np.sqrt(k2)
    p_value = min(2 * float(pearson3.sf(z, skew) if z > 0 else pearson3.cdf(z, skew)), 1.0)
    return Dispersion(z, p_value, _better(family, y, z) if p_value < SHOWN else "")


def _drift(family: Family, y: Rows, mu: Rows, h: Rows) -> Dispersion:
    """Whether squared Pearson residuals grow or fall with the mean."""
    e = ((y - mu) / np.sqrt(family.variance(mu) * (1 - h))).reshape(len(y), -1)
    phi = np.mean(e**2, axis=0)
    if not np.all(phi > 0):
        return _unasked("the fit leaves no residuals")
    steady = isinstance(family, Gamma)  # V = mu^2, so that (V'/V) u = 2 e
    along = (np.log(mu) if steady else mu).reshape(len(y), -1)
    terms = (along - np.mean(along, axis=0)) * (e**2 / phi - 1 - (2 * e if steady else 0.0))
    size = float(np.sqrt(np.sum(terms**2)))
    if not size > 0:
        return _unasked("the mean is the same in all rows")
    z = float(np.sum(terms)) / size
    p_value = 2 * float(ndtr(-abs(z)))
    return Dispersion(z, p_value, _better(family, y, z) if p_value < SHOWN else "")


def _better(family: Family, y: Rows, z: float) -> str:
    """The family to try where this one's spread is wrong; empty where none of ours has it."""
    if isinstance(family, Gaussian) and z > 0:
        noticed = notice(y)
        if noticed is not None:
            return noticed.family
        if np.all(y >= 0) and np.all(y == np.rint(y)):
            return Poisson.name
        return Gamma.name if np.all(y > 0) else ""
    if isinstance(family, Gamma) and z < 0:
        return Gaussian.name
    if isinstance(family, NegativeBinomial) and z < 0:
        return Poisson.name
    if isinstance(family, Poisson):
        if z > 0:
            return NegativeBinomial.name
        return Bernoulli.name if np.all((y == 0) | (y == 1)) else Binomial.name
    return ""


def _advice(family: Family, found: Dispersion) -> str:
    grows = "grows with the mean" if found.statistic > 0 else "falls with the mean"
    if found.p_value >= SHOWN:
        return f"the spread of y about its mean is what the {family.name} family says"
    if family.scaled:
        what = f"the noise {grows} beyond what the {family.name} family says"
    else:
        what = f"y spreads {'more' if found.statistic > 0 else 'less'} than the {family.name} family says"
    if not found.suggestion:
        return f"{what}: trust the robust standard errors"
    ceiling = " if the counts have a ceiling" if found.suggestion == Binomial.name else ""
    return f'{what}: try family="{found.suggestion}"{ceiling}, or trust the robust standard errors'


def _unasked(reason: str) -> Dispersion:
    return Dispersion(float("nan"), float("nan"), "", reason)
