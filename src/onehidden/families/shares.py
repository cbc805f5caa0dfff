"""Families of probabilities: 0/1 responses, successes among trials, and one of several classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy.special import entr, log_softmax, softmax

from onehidden.families.family import FLOOR, Family, Level, PerRow, Values, WholeNumbers, beside, refuse
from onehidden.families.links import SHARE, ShareLink

Scores = Float[np.ndarray, "n m"]


@dataclass(frozen=True)
class Bernoulli(WholeNumbers):
    """y is 1 with probability p; d = 2 (y log(y/p) + (1 - y) log((1 - y)/(1 - p))).

    Parameters
    ----------
    link : {"logit", "probit", "cloglog"}
        How the mean of y follows from the network's output.
    """

    link: str = "logit"
    table = SHARE
    name: ClassVar[str] = "bernoulli"
    links: ClassVar[tuple[str, ...]] = ("logit", "probit", "cloglog")

    @property
    def overdispersion(self) -> float:
        return -1.0

    def inside_range(self, level: Level, n: float) -> Level:
        return (level * n + 0.5) / (n + 1)

    def deviance(self, y: Values, eta: Values) -> Values:
        cost = y * self._link.log_mean(eta) + (1 - y) * self._link.log_rest(eta)
        return 2 * np.maximum(-cost - entr(y) - entr(1 - y), 0.0)

    def gradient(self, y: Values, eta: Values) -> Values:
        return (1 - y) * self._link.fall(eta) - y * self._link.growth(eta)

    def information(self, eta: Values) -> Values:
        return self._link.growth(eta) * self._link.fall(eta)

    def distribution(self, eta: Values, phi: Level = 1.0) -> Any:
        from scipy import stats

        return stats.bernoulli(self.mean(eta))

    def check_values(self, y: Values, trials: PerRow = None) -> None:
        advice = "more labels than two are for OneHiddenClassifier, shares for the binomial family"
        refuse((y != 0) & (y != 1), y, "the bernoulli family is for 0 and 1", advice)
        self._check_both(y, "1")

    def _check_both(self, y: Values, one: str) -> None:
        if np.any(np.all(y == y[:1], axis=0) & ((y[0] == 0) | (y[0] == 1))):
            which = f"no {one}" if np.any(np.all(y == 0, axis=0)) else f"nothing but {one}"
            raise ValueError(
                f"y holds {which}: two kinds of response are needed to learn what makes them differ"
            )


@dataclass(frozen=True)
class FlippedLabels(Bernoulli):
    """0/1 labels some of which were flipped: the mean is low + (high - low) p, with p of the link.

    Parameters
    ----------
    link : {"logit", "probit", "cloglog"}
        How p follows from the network's output.
    low, high : float
        The least and the greatest probability of a 1.
    """

    low: float = 0.05
    high: float = 0.95
    name: ClassVar[str] = "labels that flip"

    @property
    def _link(self) -> ShareLink:
        plain, width = SHARE[self.link], self.high - self.low

        def mean(eta: Values) -> Values:
            return self.low + width * plain.mean(eta)

        return ShareLink(
            lambda eta: np.log(mean(eta)),
            lambda eta: width * plain.slope(eta) / mean(eta),
            lambda mu: plain.eta_of(np.clip((mu - self.low) / width, 1e-6, 1 - 1e-6)),
            lambda o, t: self.low + width * plain.graph(o, t),
            lambda eta: np.log1p(-mean(eta)),
            lambda eta: width * plain.slope(eta) / (1 - mean(eta)),
        )

    def with_rates(self, y: Values, eta: Values, weight: PerRow = None) -> tuple[FlippedLabels, Values]:
        """Return the law with the most likely rates, and eta stretched and shifted to suit them."""
        from scipy.optimize import minimize

        def at(place: np.ndarray) -> tuple[FlippedLabels, Values]:
            law = replace(self, low=float(np.exp(place[0])), high=1 - float(np.exp(place[1])))
            return law, np.exp(place[2]) * eta + place[3]

        def cost(place: np.ndarray) -> float:
            law, moved = at(place)
            return float(np.mean(law.deviance(y, moved) * (1.0 if weight is None else weight)))

        start = np.array([np.log(self.low), np.log1p(-self.high), 0.1, 0.0])
        bounds = [(-9.0, -0.8), (-9.0, -0.8), (-1.0, 3.0), (None, None)]
        return at(minimize(cost, start, method="L-BFGS-B", bounds=bounds).x)


@dataclass(frozen=True)
class Binomial(Bernoulli):
    """The share y of successes among ``trials``: gradient, information and deviance are those of one trial.

    Rows enter sums with their trials as prior weight; that makes them whole.

    Parameters
    ----------
    link : {"logit", "probit", "cloglog"}
        How the mean of y follows from the network's output.
    """

    name: ClassVar[str] = "binomial"
    counted: ClassVar[bool] = True

    def check_values(self, y: Values, trials: PerRow = None) -> None:
        rule = "the binomial family is for shares of successes between 0 and 1"
        refuse((y < 0) | (y > 1), y, rule, "give successes divided by trials")
        won = beside(trials, y) * y
        rule = "share times trials must be a whole number of successes"
        refuse(np.abs(won - np.rint(won)) > 1e-6 * np.maximum(won, 1), y, rule)
        self._check_both(y, "success")


@dataclass(frozen=True)
class Softmax(Family):
    """One of m + 1 = ``classes`` labels; d = -2 log(p of the label) for one label per row.

    p_c = e^{eta_c} / (1 + sum e^{eta}), where the first class has eta = 0. A target row is (m,): which of the
    classes after the first it is, zeros for the first; so y and eta have one shape, and two classes are the
    Bernoulli family. The information of a row is the block Omega = diag(p) - p p', and the residual of
    Omega r = p - y is r_j = y_0/p_0 - y_j/p_j.

    Parameters
    ----------
    link : {"softmax"}
        How the mean of y follows from the network's output.
    classes : int
        Number of labels, two or more.
    """

    link: str = "softmax"
    classes: int = 2
    name: ClassVar[str] = "softmax"
    links: ClassVar[tuple[str, ...]] = ("softmax",)
    coupled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.classes < 2:
            raise ValueError(f"a softmax needs two classes or more, not {self.classes}")

    @property
    def outputs(self) -> int:
        """m: linear predictors per row."""
        return self.classes - 1

    def probabilities(self, eta: Scores) -> Float[np.ndarray, "n classes"]:
        """Return p of every class; rows sum to one."""
        return softmax(_with_first(eta, np.zeros((len(eta), 1))), axis=1)

    def mean(self, eta: Scores) -> Scores:
        return self.probabilities(eta)[:, 1:]

    def export(self, o: Any, eta: Any) -> Any:
        odds = o.exp(eta)
        return odds / (1.0 + odds @ np.ones((self.outputs, self.outputs)))

    def eta_of(self, mu: Float[np.ndarray, "*rows m"]) -> Float[np.ndarray, "*rows m"]:
        return np.log(mu) - np.log1p(-np.sum(mu, axis=-1, keepdims=True))

    def inside_range(self, level: Level, n: float) -> Level:
        return (np.asarray(level) * n + 0.5) / (n + 0.5 * self.classes)

    def deviance(self, y: Scores, eta: Scores) -> Float[np.ndarray, " n"]:
        log_p = log_softmax(_with_first(eta, np.zeros((len(eta), 1))), axis=1)
        full = _full(y)
        return 2 * np.maximum(np.sum(-full * log_p - entr(full), axis=1), 0.0)

    def gradient(self, y: Scores, eta: Scores) -> Scores:
        return self.mean(eta) - y

    def information(self, eta: Scores) -> Float[np.ndarray, "n m m"]:
        return self._blocks(self.probabilities(eta))

    def _blocks(self, p: Float[np.ndarray, "n classes"]) -> Float[np.ndarray, "n m m"]:
        blocks = -p[:, 1:, None] * p[:, None, 1:]
        # p_j (1 - p_j) with 1 - p_j as the sum of the others: nothing is lost where p_j is nearly one.
        rest = p @ (1 - np.eye(self.classes))
        at = np.arange(self.outputs)
        blocks[:, at, at] = (p * rest)[:, 1:]
        return blocks

    def working(self, y: Scores, eta: Scores) -> tuple[Scores, Float[np.ndarray, "n m m"]]:
        """A step of Fisher scoring as least squares; probabilities below FLOOR count as FLOOR."""
        p = np.maximum(self.probabilities(eta), FLOOR)
        return _full(y)[:, :1] / p[:, :1] - y / p[:, 1:], self._blocks(p)

    def target(self, code: np.ndarray) -> Scores:
        """Target rows of the numbers 0 .. m of the classes."""
        return (np.asarray(code)[:, None] == np.arange(1, self.classes)).astype(float)


def _full(y: Scores) -> Float[np.ndarray, "n classes"]:
    """The target with the first class, which the others leave."""
    return _with_first(y, 1 - np.sum(y, axis=1, keepdims=True))


def _with_first(rows: Scores, first: Float[np.ndarray, "n 1"]) -> Float[np.ndarray, "n classes"]:
    return np.concatenate([first, rows], axis=1)


def classes_of(labels: object) -> tuple[np.ndarray, Float[np.ndarray, "n m"]]:
    """The distinct labels in order, and the rows of ``Softmax.target``: numbers, text or True and False."""
    y = np.asarray(labels)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise ValueError(f"labels must be (n,), one per row, got shape {y.shape}")
    try:
        found, code = np.unique(y, return_inverse=True)
        usable = y.dtype.kind in "biufUSO" and bool(np.all(found == found))  # NaN is not itself
    except TypeError:  # None, pandas' NA, and text beside numbers have no order
        usable = False
    if not usable:
        raise ValueError(
            "labels must be all numbers or all text, and none may be missing: leave such rows out"
        )
    if len(found) < 2:
        what = f"the one label {found[0]!s}" if len(found) else "no label"
        raise ValueError(f"a classifier needs two classes or more, and y holds {what}")
    return found, Softmax(classes=len(found)).target(code.reshape(-1))
