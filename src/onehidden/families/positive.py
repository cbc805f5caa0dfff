"""Families of a mean above zero: Poisson and negative binomial counts, gamma amounts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln

from onehidden.families.family import Level, Linked, PerRow, Values, WholeNumbers, refuse
from onehidden.families.links import LIMIT, POSITIVE


@dataclass(frozen=True)
class Poisson(WholeNumbers):
    """Counts whose variance is their mean; d = 2 (y log(y/mu) - y + mu).

    Parameters
    ----------
    link : {"log", "softplus", "identity", "sqrt"}
        How the mean of y follows from the network's output.
    """

    link: str = "log"
    table = POSITIVE
    name: ClassVar[str] = "poisson"
    links: ClassVar[tuple[str, ...]] = ("log", "softplus", "identity", "sqrt")

    def inside_range(self, level: Level, n: float) -> Level:
        return np.maximum(level, 0.5 / n)

    def deviance(self, y: Values, eta: Values) -> Values:
        mu = self.mean(eta)
        half = y * _log_ratio(y, mu, self._link.log_mean(eta)) - self._other_part(y, mu)
        return self._where_defined(2 * np.maximum(half, 0.0), eta)

    def _other_part(self, y: Values, mu: Values) -> Values:
        """y log(y/mu) less half the deviance."""
        return y - mu

    def gradient(self, y: Values, eta: Values) -> Values:
        mu = self.mean(eta)
        # Divided first: the product of a count and its growth is finite where (mu - y) growth overflows.
        return (mu - y) / (1 + self.overdispersion * mu) * self._link.growth(eta)

    def information(self, eta: Values) -> Values:
        mu = self.mean(eta)
        return mu / (1 + self.overdispersion * mu) * self._link.growth(eta) ** 2

    def distribution(self, eta: Values, phi: Level = 1.0) -> Any:
        from scipy import stats

        if self.overdispersion == 0:
            return stats.poisson(self.mean(eta))
        shape = 1 / self.overdispersion
        return stats.nbinom(shape, shape / (shape + self.mean(eta)))

    def check_values(self, y: Values, trials: PerRow = None) -> None:
        refuse(y < 0, y, f"the {self.name} family is for counts, which are not negative")
        other = "gamma is for positive amounts, and an exposure is an offset"
        refuse(y != np.rint(y), y, f"the {self.name} family is for whole counts", other)
        if np.any(np.all(y == 0, axis=0)):
            raise ValueError("every count is zero: nothing can be learned about their rate")

    def overdispersed_family(self, y: Values) -> str:
        return "negative_binomial" if self.overdispersion == 0 else ""


@dataclass(frozen=True)
class NegativeBinomial(Poisson):
    """Counts of variance mu (1 + alpha mu): Poisson counts whose rate has a gamma law of variance alpha mu^2.

    Parameters
    ----------
    link : {"log", "softplus"}
        How the mean of y follows from the network's output.
    alpha : float
        At 0 the Poisson law. One number for all outputs.
    given : bool
        Whether alpha was given; if not, ``estimated`` finds it. Unit deviances hang on alpha: models with
        different alphas are compared by ``misfit``.
    """

    alpha: float = 0.0
    given: bool = False
    name: ClassVar[str] = "negative_binomial"
    links: ClassVar[tuple[str, ...]] = ("log", "softplus")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.alpha < np.inf:
            raise ValueError(f"alpha of the negative binomial family must be at least 0, not {self.alpha}")

    @property
    def overdispersion(self) -> float:
        return self.alpha

    def _other_part(self, y: Values, mu: Values) -> Values:
        """(y + s) log((y + s) / (mu + s)), s = 1/alpha, without the rounding of y + s where y is near mu."""
        if self.alpha == 0:
            return y - mu
        shape = 1 / self.alpha
        part = np.clip((y - mu) / (mu + shape), -0.5, None)
        plain = np.log(y + shape) - np.log(mu + shape)
        return (y + shape) * np.where(part > -0.5, np.log1p(part), plain)

    def log_likelihood(self, y: Values, eta: Values) -> Values:
        """Return the logarithm of the probability of each row."""
        if self.alpha == 0:
            return self.distribution(eta).logpmf(y)
        y, shape, mu = np.asarray(y, float), 1 / self.alpha, self.mean(eta)
        # log Gamma(y + s) - log Gamma(s) - log y! by the beta function: no difference of large numbers.
        ways = -np.log(y + shape) - betaln(y + 1, shape)
        log_part = self._link.log_mean(eta) - np.log(mu + shape)
        return ways + y * log_part - shape * np.log1p(self.alpha * mu)

    def estimated(
        self,
        y: Values,
        eta: Values,
        weight: PerRow = None,
        bounds: tuple[float, float] = (1e-9, 1e4),
    ) -> NegativeBinomial:
        """Return this family with the most likely alpha at these means.

        Alpha is 0 where the variance is not above the means. Below the lower bound the law is Poisson's to
        rounding; at the upper one a count is nearly always zero.
        """
        from scipy.optimize import minimize_scalar

        if self.given:
            return self
        mu = self.mean(eta)
        # The derivative of the log-likelihood in alpha at 0, where Poisson is.
        if not _total((y - mu) ** 2 - y, weight) > 0:
            return replace(self, alpha=0.0)

        def cost(log_alpha: float) -> float:
            return -_total(replace(self, alpha=float(np.exp(log_alpha))).log_likelihood(y, eta), weight)

        best = minimize_scalar(cost, bounds=np.log(bounds), method="bounded", options={"xatol": 1e-6})
        return replace(self, alpha=float(np.exp(best.x)))

    def misfit(self, y: Values, eta: Values, weight: PerRow = None) -> float:
        """Return -2 log-likelihood at the best alpha, which compares fits of different alphas."""
        return -2 * _total(self.estimated(y, eta, weight).log_likelihood(y, eta), weight)


@dataclass(frozen=True)
class Gamma(Linked):
    """y > 0 of the gamma law with shape 1/phi: variance phi mu^2, d = 2 (y/mu - 1 - log(y/mu)).

    Parameters
    ----------
    link : {"log", "softplus", "identity", "inverse"}
        How the mean of y follows from the network's output.
    """

    link: str = "log"
    table = POSITIVE
    name: ClassVar[str] = "gamma"
    links: ClassVar[tuple[str, ...]] = ("log", "softplus", "identity", "inverse")
    scaled: ClassVar[bool] = True
    discrete: ClassVar[bool] = False

    def _log_ratio(self, y: Values, eta: Values) -> Values:
        """log(y / mu), held where its exponential stays finite."""
        return np.minimum(np.log(y) - self._link.log_mean(eta), LIMIT)

    def deviance(self, y: Values, eta: Values) -> Values:
        ratio = self._log_ratio(y, eta)
        return self._where_defined(np.maximum(2 * (np.expm1(ratio) - ratio), 0.0), eta)

    def gradient(self, y: Values, eta: Values) -> Values:
        return -np.expm1(self._log_ratio(y, eta)) * self._link.growth(eta)

    def information(self, eta: Values) -> Values:
        return self._link.growth(eta) ** 2

    def distribution(self, eta: Values, phi: Level = 1.0) -> Any:
        from scipy import stats

        return stats.gamma(1 / np.asarray(phi), scale=self.mean(eta) * phi)

    def check_values(self, y: Values, trials: PerRow = None) -> None:
        refuse(y <= 0, y, "the gamma family is for amounts above zero")


def _total(rows: Values, weight: PerRow) -> float:
    """The sum over rows and outputs."""
    return float(np.sum(rows if weight is None else rows.T * weight))


def _log_ratio(y: Values, mu: Values, log_mu: Values) -> Values:
    """log(y / mu) for y >= 0, exact where y is near mu; 0 where y = 0, for products with y.

    ``log_mu`` may say more than mu does where mu has underflowed.
    """
    near = np.abs(y - mu) < 0.5 * mu
    part = np.where(near, y - mu, 0.0) / np.where(near, mu, 1.0)
    return np.where(near, np.log1p(part), np.where(y > 0, np.log(np.where(y > 0, y, 1.0)) - log_mu, 0.0))
