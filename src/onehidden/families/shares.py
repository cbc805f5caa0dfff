"""Shares: 0/1 responses, and successes among trials as the share y with prior weight ``trials``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betaln

from onehidden.families.divergence import divergence
from onehidden.families.family import Level, PerRow, Rows, WholeNumbers
from onehidden.families.links import SHARE


@dataclass(frozen=True)
class Bernoulli(WholeNumbers):
    """y is 1 with probability p; d = 2 (y log(y/p) + (1 - y) log((1 - y)/(1 - p)))."""

    link: str = "logit"
    name: ClassVar[str] = "bernoulli"
    links: ClassVar[tuple[str, ...]] = ("logit", "probit", "cloglog")

    def mean(self, eta: Rows) -> Rows:
        return np.exp(SHARE[self.link].log_share(eta))

    def slope(self, eta: Rows) -> Rows:
        return self.mean(eta) * SHARE[self.link].rise(eta)

    @property
    def bend(self) -> float:
        return -1.0

    def unlink(self, mu: Rows) -> Rows:
        return SHARE[self.link].unlink(mu)

    def inside(self, level: Level, n: float) -> Level:
        return (level * n + 0.5) / (n + 1)

    def deviance(self, y: Rows, eta: Rows) -> Rows:
        link = SHARE[self.link]
        log_share, log_rest = link.log_share(eta), link.log_rest(eta)
        # p and 1 - p enter as -p and -(1 - p) + 1 of the two divergences, and cancel.
        won = divergence(y, np.exp(log_share), log_share)
        lost = divergence(1 - y, np.exp(log_rest), log_rest)
        return 2 * (won + lost)

    def score(self, y: Rows, eta: Rows) -> Rows:
        link = SHARE[self.link]
        return (1 - y) * link.fall(eta) - y * link.rise(eta)

    def information(self, eta: Rows) -> Rows:
        link = SHARE[self.link]
        return link.rise(eta) * link.fall(eta)

    def log_likelihood(self, y: Rows, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Rows:
        link = SHARE[self.link]
        return np.where(y > 0, y * link.log_share(eta), 0.0) + np.where(
            y < 1, (1 - y) * link.log_rest(eta), 0.0
        )

    def simulate(
        self,
        eta: Rows,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Rows:
        return (rng.random(eta.shape) < self.mean(eta)).astype(float)


@dataclass(frozen=True)
class Binomial(Bernoulli):
    """The share y of successes among ``trials``: score, information and deviance are those of one trial.

    Rows enter sums with their trials as prior weight; that makes them whole.
    """

    name: ClassVar[str] = "binomial"
    counted: ClassVar[bool] = True

    def log_likelihood(self, y: Rows, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Rows:
        m = beside(trials, y)
        ways = -np.log1p(m) - betaln(m * y + 1, m * (1 - y) + 1)  # log of m over m y
        return ways + m * super().log_likelihood(y, eta)

    def simulate(
        self,
        eta: Rows,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Rows:
        m = beside(trials, eta)
        return rng.binomial(np.rint(m).astype(np.int64), self.mean(eta)) / m


def beside(trials: PerRow, y: Rows) -> Rows:
    """The trials of rows in the shape of y; one where None."""
    if trials is None:
        return np.ones_like(y)
    return np.broadcast_to(trials.reshape(-1, *[1] * (y.ndim - 1)), y.shape)
