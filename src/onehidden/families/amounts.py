"""Amounts: normal noise about the mean, and positive y whose standard deviation is in proportion to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from onehidden.families.divergence import LIMIT, divergence, exponential
from onehidden.families.family import Family, Level, PerRow, Rows, weighted_mean
from onehidden.families.links import POSITIVE


@dataclass(frozen=True)
class Gaussian(Family):
    """y = eta + noise of variance phi; d = (y - eta)^2."""

    link: str = "identity"
    name: ClassVar[str] = "gaussian"
    links: ClassVar[tuple[str, ...]] = ("identity",)
    scaled: ClassVar[bool] = True
    discrete: ClassVar[bool] = False

    def mean(self, eta: Rows) -> Rows:
        return eta

    def slope(self, eta: Rows) -> Rows:
        return np.ones_like(eta)

    def variance(self, mu: Rows) -> Rows:
        return np.ones_like(mu)

    def unlink(self, mu: Rows) -> Rows:
        return mu

    def inside(self, level: Level, n: float) -> Level:
        return level

    def deviance(self, y: Rows, eta: Rows) -> Rows:
        return (y - eta) ** 2

    def score(self, y: Rows, eta: Rows) -> Rows:
        return eta - y

    def information(self, eta: Rows) -> Rows:
        return np.ones_like(eta)

    def likely_dispersion(self, y: Rows, eta: Rows, weight: PerRow = None) -> Level:
        return weighted_mean((y - eta) ** 2, weight)

    def log_likelihood(self, y: Rows, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Rows:
        return -0.5 * (np.log(2 * np.pi * phi) + (y - eta) ** 2 / phi)

    def simulate(
        self,
        eta: Rows,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Rows:
        return eta + np.sqrt(phi) * rng.standard_normal(eta.shape)


@dataclass(frozen=True)
class Gamma(Family):
    """y > 0 of the gamma law with shape 1/phi: variance phi mu^2, d = 2 (y/mu - 1 - log(y/mu))."""

    link: str = "log"
    name: ClassVar[str] = "gamma"
    links: ClassVar[tuple[str, ...]] = ("log", "softplus", "identity", "inverse")
    scaled: ClassVar[bool] = True
    discrete: ClassVar[bool] = False

    def mean(self, eta: Rows) -> Rows:
        return exponential(POSITIVE[self.link].log_mean(eta))

    def slope(self, eta: Rows) -> Rows:
        return self.mean(eta) * POSITIVE[self.link].growth(eta)

    def variance(self, mu: Rows) -> Rows:
        return mu**2

    def unlink(self, mu: Rows) -> Rows:
        return POSITIVE[self.link].unlink(mu)

    def inside(self, level: Level, n: float) -> Level:
        return level

    def _log_ratio(self, y: Rows, eta: Rows) -> Rows:
        """log(y / mu), held where its exponential stays finite."""
        return np.minimum(np.log(y) - POSITIVE[self.link].log_mean(eta), LIMIT)

    def deviance(self, y: Rows, eta: Rows) -> Rows:
        log_ratio = self._log_ratio(y, eta)
        d = 2 * divergence(np.ones_like(log_ratio), np.exp(log_ratio), log_ratio)
        return np.where(eta < 0, np.inf, d) if POSITIVE[self.link].half_line else d

    def score(self, y: Rows, eta: Rows) -> Rows:
        return -np.expm1(self._log_ratio(y, eta)) * POSITIVE[self.link].growth(eta)

    def information(self, eta: Rows) -> Rows:
        return POSITIVE[self.link].growth(eta) ** 2

    def dispersion(self, y: Rows, eta: Rows, freedom: float, weight: PerRow = None) -> Level:
        n = len(y) if weight is None else float(np.sum(weight))
        return weighted_mean(np.expm1(self._log_ratio(y, eta)) ** 2, weight) * (n / freedom)

    def likely_dispersion(self, y: Rows, eta: Rows, weight: PerRow = None) -> Level:
        """1/s, where the shape s solves log(s) - digamma(s) = mean d / 2."""
        return 1 / likely_shape(weighted_mean(self.deviance(y, eta), weight) / 2)

    def log_likelihood(self, y: Rows, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Rows:
        # With s = 1/phi: s log(s) - s - log Gamma(s) - log(y) is the likelihood at mu = y.
        s = 1 / np.asarray(phi, float)
        return s * np.log(s) - s - gammaln(s) - np.log(y) - s * self.deviance(y, eta) / 2

    def simulate(
        self,
        eta: Rows,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Rows:
        return self.mean(eta) * rng.gamma(1 / np.asarray(phi), phi, eta.shape)


def likely_shape(half: Level) -> Level:
    """s with log(s) - digamma(s) = half > 0, by Newton's method in log(s) from Minka's approximation."""
    s = (3 - half + np.sqrt((half - 3) ** 2 + 24 * half)) / (12 * half)
    for _ in range(6):  # its start is right to 1.5 %, and each step doubles the digits
        miss = np.log(s) - digamma(s) - half
        s = s * np.exp(-miss / (1 - s * polygamma(1, s)))
    return s
