"""Counts: Poisson, and negative binomial where the variance grows faster than the mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import betaln, gammaln

from onehidden.families.divergence import NEAR, divergence, exponential
from onehidden.families.family import Level, PerRow, Rows, WholeNumbers, weighted_sum
from onehidden.families.links import POSITIVE

# Bounds of log(alpha) in its search: 1e-9 cannot be told from a Poisson law, 1e4 is a count that is nearly
# always zero.
LOG_ALPHA = (float(np.log(1e-9)), float(np.log(1e4)))


@dataclass(frozen=True)
class Poisson(WholeNumbers):
    """Counts whose variance is their mean; d = 2 (y log(y/mu) - y + mu)."""

    link: str = "log"
    name: ClassVar[str] = "poisson"
    links: ClassVar[tuple[str, ...]] = ("log", "softplus", "identity")

    @property
    def bend(self) -> float:
        return 0.0

    def mean(self, eta: Rows) -> Rows:
        return exponential(POSITIVE[self.link].log_mean(eta))

    def slope(self, eta: Rows) -> Rows:
        return self.mean(eta) * POSITIVE[self.link].growth(eta)

    def unlink(self, mu: Rows) -> Rows:
        return POSITIVE[self.link].unlink(mu)

    def inside(self, level: Level, n: float) -> Level:
        return np.maximum(level, 0.5 / n)

    def deviance(self, y: Rows, eta: Rows) -> Rows:
        mu = self.mean(eta)
        d = 2 * self._half_deviance(y, mu, POSITIVE[self.link].log_mean(eta))
        return np.where(eta < 0, np.inf, d) if POSITIVE[self.link].half_line else d

    def _half_deviance(self, y: Rows, mu: Rows, log_mu: Rows) -> Rows:
        return divergence(y, mu, log_mu)

    def score(self, y: Rows, eta: Rows) -> Rows:
        mu = self.mean(eta)
        # Divided first: the product of a count and its growth is finite where (mu - y) growth overflows.
        return (mu - y) / (1 + self.bend * mu) * POSITIVE[self.link].growth(eta)

    def information(self, eta: Rows) -> Rows:
        mu = self.mean(eta)
        return mu / (1 + self.bend * mu) * POSITIVE[self.link].growth(eta) ** 2

    def log_likelihood(self, y: Rows, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Rows:
        y = np.asarray(y, float)
        at_best = np.where(y > 0, y * np.log(np.maximum(y, 1.0)) - y, 0.0) - gammaln(y + 1)
        return at_best - self.deviance(y, eta) / 2

    def simulate(
        self,
        eta: Rows,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Rows:
        return rng.poisson(self.mean(eta)).astype(float)


@dataclass(frozen=True)
class NegativeBinomial(Poisson):
    """Counts of variance mu (1 + alpha mu): Poisson counts whose rate has a gamma law of variance alpha mu^2.

    Attributes
    ----------
    alpha : at 0 the Poisson law. One number for all outputs.
    given : whether alpha was given; if not, ``estimated`` finds it. Unit deviances hang on alpha: models with
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
    def bend(self) -> float:
        return self.alpha

    def _half_deviance(self, y: Rows, mu: Rows, log_mu: Rows) -> Rows:
        half = divergence(y, mu, log_mu)
        if self.alpha == 0:
            return half
        shape = 1 / self.alpha
        near = np.abs(mu - y) <= NEAR * y
        shifted = divergence(y + shape, mu + shape, np.log(mu + shape))
        # Far off, D(y, mu) and D(y + s, mu + s) both hold mu: y log(y/mu) - (y + s) log((y + s)/(mu + s)).
        part = np.clip((y - mu) / (mu + shape), -0.5, None)
        ratio = np.where(part > -0.5, np.log1p(part), np.log(y + shape) - np.log(mu + shape))
        plain = np.where(y > 0, y * (np.log(np.maximum(y, 1.0)) - log_mu), 0.0) - (y + shape) * ratio
        return np.where(near, np.maximum(half - shifted, 0.0), plain)

    def log_likelihood(self, y: Rows, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Rows:
        if self.alpha == 0:
            return super().log_likelihood(y, eta)
        y, shape, mu = np.asarray(y, float), 1 / self.alpha, self.mean(eta)
        # log Gamma(y + s) - log Gamma(s) - log y! by the beta function: no difference of large numbers.
        ways = -np.log(y + shape) - betaln(y + 1, shape)
        log_part = POSITIVE[self.link].log_mean(eta) - np.log(mu + shape)
        return ways + y * log_part - shape * np.log1p(self.alpha * mu)

    def estimated(self, y: Rows, eta: Rows, weight: PerRow = None) -> NegativeBinomial:
        """This family with the most likely alpha at these means; 0 where the variance is not above them."""
        from scipy.optimize import minimize_scalar

        if self.given:
            return self
        mu = self.mean(eta)
        # The derivative of the log-likelihood in alpha at 0, where Poisson is.
        if not np.sum(weighted_sum((y - mu) ** 2 - y, weight)) > 0:
            return replace(self, alpha=0.0)

        def cost(log_alpha: float) -> float:
            rows = replace(self, alpha=float(np.exp(log_alpha))).log_likelihood(y, eta)
            return -float(np.sum(weighted_sum(rows, weight)))

        best = minimize_scalar(cost, bounds=LOG_ALPHA, method="bounded", options={"xatol": 1e-6})
        return replace(self, alpha=float(np.exp(best.x)))

    def simulate(
        self,
        eta: Rows,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Rows:
        mu = self.mean(eta)
        if self.alpha > 0:
            mu = mu * rng.gamma(1 / self.alpha, self.alpha, eta.shape)
        return rng.poisson(mu).astype(float)
