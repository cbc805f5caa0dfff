"""A family: what y is, given the network's output eta; and the normal one, as the shortest example.

The unit deviance d(y, eta) >= 0 stands where the squared residual stands for normal noise. Every family gives
two derivatives of d/2: its gradient u and the expected second one, the information omega. A step of Fisher
scoring is then a step of least squares with weights

    sum omega r J,  sum omega J J',  r = u / omega.

The offset (log exposure) of a row is part of eta. A prior weight of a row multiplies d, u and omega; the
trials of a binomial row are such a weight, its y the share of successes. Several outputs (n, q) are treated
one by one; a family with ``coupled`` outputs has a block a row instead.

A new family is one subclass of ``Family`` and one line in ``onehidden.families``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from onehidden.families.links import Link

# Where the information has underflowed (a probability of 10^-30 that came true) the weight is this and the
# residual u / FLOOR: omega r = u to rounding and both are finite.
FLOOR = 1e-30

Level = float | Float[np.ndarray, " q"]
Values = Float[np.ndarray, "*rows"]
Blocks = Float[np.ndarray, "*blocks"]  # values, or a matrix a row where outputs are coupled
PerRow = Float[np.ndarray, " n"] | None


@dataclass(frozen=True)
class Family(ABC):
    """One family with its link.

    Parameters
    ----------
    link : str
        One of ``links``.
    """

    link: str
    name: ClassVar[str]
    links: ClassVar[tuple[str, ...]]  # that it can have, the usual one first
    coupled: ClassVar[bool] = False  # the outputs of a row depend on each other
    scaled: ClassVar[bool] = False  # the variance has a free factor phi (normal, gamma); else phi = 1
    discrete: ClassVar[bool] = True  # y has a lattice of values
    counted: ClassVar[bool] = False  # rows have trials

    def __post_init__(self) -> None:
        if self.link not in self.links:
            usual = " or ".join(self.links)
            raise ValueError(f"the {self.name} family has the link {usual}, not {self.link!r}")

    @abstractmethod
    def mean(self, eta: Values) -> Values:
        """Return mu at eta."""

    def export(self, o: Any, eta: Any) -> Any:
        """Return mu at eta by the ``exports.Operators`` of an export."""
        raise ValueError(f"the {self.name} family cannot be exported: define its method export(o, eta)")

    @abstractmethod
    def eta_of(self, mu: Values) -> Values:
        """Return eta of a mean inside the range of the family."""

    @abstractmethod
    def deviance(self, y: Values, eta: Values) -> Blocks:
        """Return d = 2 phi (log-likelihood at mu = y less that at eta); infinite where eta has none."""

    @abstractmethod
    def gradient(self, y: Values, eta: Values) -> Values:
        """Return u, the derivative of d/2 in eta: -(y - mu) mu' / V, with V the variance of y over phi."""

    @abstractmethod
    def information(self, eta: Values) -> Blocks:
        """Return omega, the expected second derivative of d/2: mu'^2 / V."""

    def inside_range(self, level: Level, n: float) -> Level:
        """Return the mean of n rows, moved off the boundary of its range by half a row."""
        return level

    def distribution(self, eta: Values, phi: Level = 1.0) -> Any:
        """Return the frozen SciPy distribution of y at eta; of a binomial that of one trial."""
        raise ValueError(f"the {self.name} family has no quantiles: its outputs are probabilities of classes")

    def check_values(self, y: Values, trials: PerRow = None) -> None:  # noqa: B027
        """Raise ``ValueError`` with one sentence where finite y is outside the range of the family.

        Of a binomial y is the share of successes.
        """

    def overdispersed_family(self, y: Values) -> str:
        """Return the name of the family to try where y spreads more; empty where there is none."""
        return ""

    def working(self, y: Values, eta: Values) -> tuple[Values, Blocks]:
        """Return r and omega of a step of Fisher scoring, as residual and weight of least squares."""
        weight = np.maximum(self.information(eta), FLOOR)
        return self.gradient(y, eta) / weight, weight

    def start(self, y: Values, weight: PerRow = None) -> Level:
        """Return eta of the model without inputs, finite for every target."""
        level = self.inside_range(np.average(y, axis=0, weights=weight), len(y))
        return self.eta_of(np.asarray(level, float)[None])[0]

    def estimated(self, y: Values, eta: Values, weight: PerRow = None) -> Family:
        """Return the family with its free parameters, if it has any, at their most likely values."""
        return self

    def stored(self) -> dict[str, Any]:
        """Return name, link and own parameters, as a record keeps them."""
        return {"name": self.name, **vars(self)}


class Linked(Family):
    """A family whose mean is a function of eta by a link of ``table``."""

    table: ClassVar[Mapping[str, Link]]

    @property
    def _link(self) -> Any:
        return self.table[self.link]

    def mean(self, eta: Values) -> Values:
        return self._link.mean(eta)

    def eta_of(self, mu: Values) -> Values:
        return self._link.eta_of(mu)

    def export(self, o: Any, eta: Any) -> Any:
        return self._link.graph(o, eta)

    def _where_defined(self, d: Values, eta: Values) -> Values:
        return np.where(eta < 0, np.inf, d) if self._link.half_line else d


class WholeNumbers(Linked):
    """A family on the whole numbers, or shares of them: its variance is mu (1 + b mu)."""

    @property
    def overdispersion(self) -> float:
        """The b of the variance mu (1 + b mu)."""
        return 0.0


@dataclass(frozen=True)
class Gaussian(Family):
    """y = eta + noise of variance phi; d = (y - eta)^2.

    Parameters
    ----------
    link : {"identity"}
        How the mean of y follows from the network's output.
    """

    link: str = "identity"
    name: ClassVar[str] = "gaussian"
    links: ClassVar[tuple[str, ...]] = ("identity",)
    scaled: ClassVar[bool] = True
    discrete: ClassVar[bool] = False

    def mean(self, eta: Values) -> Values:
        return eta

    def eta_of(self, mu: Values) -> Values:
        return mu

    def export(self, o: Any, eta: Any) -> Any:
        return eta

    def deviance(self, y: Values, eta: Values) -> Values:
        return (y - eta) ** 2

    def gradient(self, y: Values, eta: Values) -> Values:
        return eta - y

    def information(self, eta: Values) -> Values:
        return np.ones_like(eta)

    def distribution(self, eta: Values, phi: Level = 1.0) -> Any:
        from scipy import stats

        return stats.norm(eta, np.sqrt(phi))

    def overdispersed_family(self, y: Values) -> str:
        if np.all((y == 0) | (y == 1)):
            return "bernoulli"
        if np.all(y >= 0) and np.all(y == np.rint(y)):
            return "poisson"
        return "gamma" if np.all(y > 0) else ""


def beside(trials: PerRow, y: Values) -> Values:
    """The trials of rows in the shape of y; one where None."""
    if trials is None:
        return np.ones_like(y)
    return np.broadcast_to(trials.reshape(-1, *[1] * (y.ndim - 1)), y.shape)


def refuse(wrong: Bool[np.ndarray, "*rows"], y: np.ndarray, rule: str, advice: str = "") -> None:
    """Raise with the first of the entries that break a rule, and how many they are."""
    if not np.any(wrong):
        return
    row = int(np.argwhere(wrong)[0, 0])
    others = int(np.sum(wrong)) - 1
    more = f" (and {others} more)" if others else ""
    tail = f"; {advice}" if advice else ""
    raise ValueError(f"{rule}: row {row} is {y[wrong][0]:.6g}{more}{tail}")
