"""A family: what y is, given the network's output eta.

The unit deviance d(y, eta) >= 0 stands where the squared residual stands for normal noise, and every family
gives two derivatives of d/2: its score u = -(y - mu) slope / variance and the expected second one, the
information omega = slope^2 / variance. A step of Fisher scoring is then a step of least squares with weights

    sum omega r J,  sum omega J J',  r = (mu - y) / slope,  so that omega r = u.

Families know nothing of rows. The offset (log exposure) of a row is part of eta. A prior weight of a row
multiplies d, u and omega; the trials of a binomial row are such a weight, its y the share of successes.
Several outputs (n, q) are treated one by one; a family with ``coupled`` outputs has a block a row instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float

# Where the information has underflowed (a probability of 10^-30 that came true) the weight is this and the
# residual u / FLOOR: omega r = u to rounding and both are finite. Nothing else in a sum of rows notices it.
FLOOR = 1e-30

Level = float | Float[np.ndarray, " q"]
Rows = Float[np.ndarray, "*rows"]
Blocks = Float[np.ndarray, "*blocks"]  # rows, or a matrix a row where outputs are coupled
PerRow = Float[np.ndarray, " n"] | None


@dataclass(frozen=True)
class Working:
    """One step of Fisher scoring as weighted least squares.

    Attributes
    ----------
    score : u, the derivative of d/2 in eta, (n,) or (n, m).
    residual : r with Omega r = u, of the same shape.
    root : sqrt(omega), of the same shape; where outputs are coupled (n, m, m) lower triangular L with
        L L' = Omega.
    whitened : L'r, of the same shape: with rows L'J this is plain least squares, and L whitened = u. Better
        than L'r from the other two where probabilities underflow.
    """

    score: Rows = field(repr=False)
    residual: Rows = field(repr=False)
    root: Blocks = field(repr=False)
    whitened: Rows = field(repr=False)

    @property
    def coupled(self) -> bool:
        return self.root.ndim > self.score.ndim

    @property
    def weight(self) -> Blocks:
        """Omega: (n,), (n, q) or blocks (n, m, m)."""
        return self.root @ np.swapaxes(self.root, -1, -2) if self.coupled else self.root**2


@dataclass(frozen=True)
class Family(ABC):
    """One family with its link.

    Attributes
    ----------
    link : name of the link. name, links : of the family, and the links it can have.
    coupled : whether the outputs of a row depend on each other.
    scaled : whether the variance has a free factor phi (normal, gamma); else phi = 1.
    discrete : whether y has a lattice of values.
    counted : whether rows have trials.
    """

    link: str
    name: ClassVar[str]
    links: ClassVar[tuple[str, ...]]
    coupled: ClassVar[bool] = False
    scaled: ClassVar[bool] = False
    discrete: ClassVar[bool] = True
    counted: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.link not in self.links:
            usual = " or ".join(self.links)
            raise ValueError(f"the {self.name} family has the link {usual}, not {self.link!r}")

    @abstractmethod
    def mean(self, eta: Rows) -> Rows:
        """mu at eta."""

    @abstractmethod
    def slope(self, eta: Rows) -> Blocks:
        """d mu / d eta."""

    @abstractmethod
    def variance(self, mu: Rows) -> Blocks:
        """V(mu): the variance of y divided by phi."""

    @abstractmethod
    def unlink(self, mu: Rows) -> Rows:
        """eta of a mean inside the range of the family."""

    @abstractmethod
    def deviance(self, y: Rows, eta: Rows) -> Blocks:
        """d(y, eta) = 2 phi (log-likelihood at mu = y less that at eta) >= 0; infinite where eta has none."""

    @abstractmethod
    def score(self, y: Rows, eta: Rows) -> Rows:
        """u = -(y - mu) slope / variance, the derivative of d/2 in eta."""

    @abstractmethod
    def information(self, eta: Rows) -> Blocks:
        """omega = slope^2 / variance, the expected second derivative of d/2."""

    @abstractmethod
    def log_likelihood(self, y: Rows, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Blocks:
        """The logarithm of the density or probability of each row; trials are for the binomial."""

    @abstractmethod
    def simulate(
        self,
        eta: Rows,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Rows:
        """Draws of y given eta."""

    @abstractmethod
    def inside(self, level: Level, n: float) -> Level:
        """The mean of n rows, moved off the boundary of its range by half a row."""

    def working(self, y: Rows, eta: Rows) -> Working:
        """A step of Fisher scoring as weighted least squares."""
        score = self.score(y, eta)
        weight = np.maximum(self.information(eta), FLOOR)
        root = np.sqrt(weight)
        return Working(score, score / weight, root, score / root)

    def start(self, y: Rows, weight: PerRow = None) -> Level:
        """eta of the model without inputs, finite for every target."""
        level = self.inside(weighted_mean(y, weight), len(y))
        return self.unlink(np.asarray(level, float)[None])[0]

    def estimated(self, y: Rows, eta: Rows, weight: PerRow = None) -> Family:
        """This family with its own parameters, where it has free ones, at their most likely values."""
        return self

    def dispersion(self, y: Rows, eta: Rows, freedom: float, weight: PerRow = None) -> Level:
        """phi: Pearson's estimate, the sum of (y - mu)^2 / V(mu) over rows less parameters; 1 where fixed."""
        if not self.scaled:
            return 1.0 if np.ndim(y) == 1 else np.ones(y.shape[1])
        mu = self.mean(eta)
        return weighted_sum((y - mu) ** 2 / self.variance(mu), weight) / freedom

    def likely_dispersion(self, y: Rows, eta: Rows, weight: PerRow = None) -> Level:
        """phi of greatest likelihood, parameters not charged; 1 where fixed."""
        return self.dispersion(y, eta, 1.0)

    def misfit(
        self,
        y: Rows,
        eta: Rows,
        weight: PerRow = None,
        trials: PerRow = None,
    ) -> float:
        """-2 log-likelihood, phi and the family's own parameters at their best: compares models and families.

        For normal noise n log(mean d) up to a constant; with phi = 1 the deviance up to a constant of y.
        Rows of weight w count w times.
        """
        family = self.estimated(y, eta, weight)
        rows = family.log_likelihood(y, eta, family.likely_dispersion(y, eta, weight), trials)
        return float(-2 * np.sum(weighted_sum(rows, weight)))


class WholeNumbers(Family):
    """A family on the whole numbers, or shares of them: its variance is mu (1 + bend mu)."""

    @property
    @abstractmethod
    def bend(self) -> float:
        """b of the variance mu (1 + b mu)."""

    def variance(self, mu: Rows) -> Blocks:
        return mu * (1 + self.bend * mu)


def weighted_sum(values: Float[np.ndarray, "n ..."], weight: PerRow) -> Level:
    """The sum over rows, one number an output."""
    return np.sum(values, axis=0) if weight is None else np.tensordot(weight, values, axes=1)[()]


def weighted_mean(values: Float[np.ndarray, "n ..."], weight: PerRow) -> Level:
    """The mean over rows, one number an output."""
    return weighted_sum(values, weight) / (len(values) if weight is None else np.sum(weight))
