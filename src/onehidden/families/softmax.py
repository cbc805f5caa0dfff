"""Classes: one of m + 1 labels, with m linear predictors against the first of them.

p_c = e^{eta_c} / (1 + sum e^{eta}), where the first class has eta = 0. A target row is (m,): which of the
classes after the first it is, zeros for the first; so y and eta have one shape, and two classes are the
Bernoulli family. The information of a row is the block diag(p) - p p'. Its triangular root is known in closed
form (Tanabe and Sagae, 1992): with q_j the probability of the classes after j, the first counted last,

    L_jj = sqrt(p_j q_j / q_{j-1}),    L_ij = -p_i sqrt(p_j / (q_{j-1} q_j)),  i > j,

and then the residual of Omega r = p - y is r_j = y_0/p_0 - y_j/p_j and (L'r)_j = L_jj (t_j/q_j - y_j/p_j),
with t_j the target of the classes after j: a chain of 0/1 responses, "class j, given none before it". Only
sums of probabilities occur, no difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax, softmax

from onehidden.families.divergence import divergence
from onehidden.families.family import FLOOR, Family, Level, PerRow, Working

Scores = Float[np.ndarray, "n m"]


@dataclass(frozen=True)
class Softmax(Family):
    """One of ``classes`` labels; d = -2 log(p of the label) for one label a row."""

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
        """m: linear predictors a row."""
        return self.classes - 1

    def log_probabilities(self, eta: Scores) -> Float[np.ndarray, "n classes"]:
        """log p of every class, the first one first."""
        return log_softmax(_with_first(eta, np.zeros((len(eta), 1))), axis=1)

    def probabilities(self, eta: Scores) -> Float[np.ndarray, "n classes"]:
        """p of every class; rows sum to one."""
        return softmax(_with_first(eta, np.zeros((len(eta), 1))), axis=1)

    def mean(self, eta: Scores) -> Scores:
        return self.probabilities(eta)[:, 1:]

    def slope(self, eta: Scores) -> Float[np.ndarray, "n m m"]:
        """d mu / d eta, which is the variance: the link is the natural one."""
        return self.information(eta)

    def variance(self, mu: Scores) -> Float[np.ndarray, "n m m"]:
        return mu[:, :, None] * np.eye(mu.shape[1]) - mu[:, :, None] * mu[:, None, :]

    def unlink(self, mu: Float[np.ndarray, "*rows m"]) -> Float[np.ndarray, "*rows m"]:
        return np.log(mu) - np.log1p(-np.sum(mu, axis=-1, keepdims=True))

    def inside(self, level: Level, n: float) -> Level:
        return (np.asarray(level) * n + 0.5) / (n + 0.5 * self.classes)

    def deviance(self, y: Scores, eta: Scores) -> Float[np.ndarray, " n"]:
        log_p = self.log_probabilities(eta)
        return 2 * np.sum(divergence(_full(y), np.exp(log_p), log_p), axis=1)

    def score(self, y: Scores, eta: Scores) -> Scores:
        return self.mean(eta) - y

    def information(self, eta: Scores) -> Float[np.ndarray, "n m m"]:
        p = self.probabilities(eta)
        blocks = -p[:, 1:, None] * p[:, None, 1:]
        # p_j (1 - p_j) with 1 - p_j as the sum of the others: nothing is lost where p_j is nearly one.
        rest = p @ (1 - np.eye(self.classes))
        at = np.arange(self.outputs)
        blocks[:, at, at] = (p * rest)[:, 1:]
        return blocks

    def working(self, y: Scores, eta: Scores) -> Working:
        """A step of Fisher scoring as least squares; probabilities below FLOOR count as FLOOR."""
        p = np.maximum(self.probabilities(eta), FLOOR)
        target = _full(y)
        p_first, p_own = p[:, :1], p[:, 1:]
        after = np.cumsum(p[:, ::-1], axis=1)[:, ::-1]  # sums over classes j .. m, the first not among them
        q = np.concatenate([after[:, 2:], np.zeros_like(p_first)], axis=1) + p_first  # q_1 .. q_m
        before = np.concatenate([np.ones_like(p_first), q[:, :-1]], axis=1)  # q_0 .. q_{m-1}
        diagonal = np.sqrt(p_own * (q / before))
        below = -np.sqrt(p_own / before / q)  # times p_i
        root = np.tril(p_own[:, :, None] * below[:, None, :], -1)
        at = np.arange(self.outputs)
        root[:, at, at] = diagonal
        left = np.cumsum(target[:, ::-1], axis=1)[:, ::-1]
        t = np.concatenate([left[:, 2:], np.zeros_like(p_first)], axis=1) + target[:, :1]
        residual = target[:, :1] / p_first - y / p_own
        return Working(p_own - y, residual, root, diagonal * (t / q - y / p_own))

    def log_likelihood(
        self, y: Scores, eta: Scores, phi: Level = 1.0, trials: PerRow = None
    ) -> Float[np.ndarray, " n"]:
        return np.sum(_full(y) * self.log_probabilities(eta), axis=1)

    def simulate(
        self,
        eta: Scores,
        rng: np.random.Generator,
        phi: Level = 1.0,
        trials: PerRow = None,
    ) -> Scores:
        edges = np.cumsum(self.probabilities(eta), axis=1)[:, :-1]
        code = np.sum(rng.random((len(eta), 1)) > edges, axis=1)
        return self.target(code)

    def target(self, code: np.ndarray) -> Scores:
        """Target rows of the numbers 0 .. m of the classes."""
        return (np.asarray(code)[:, None] == np.arange(1, self.classes)).astype(float)

    def codes(self, y: Scores) -> Int[np.ndarray, " n"]:
        """The numbers 0 .. m of the classes of target rows."""
        return np.argmax(_full(y), axis=1)


def _full(y: Scores) -> Float[np.ndarray, "n classes"]:
    """The target with the first class, which the others leave."""
    return _with_first(y, 1 - np.sum(y, axis=1, keepdims=True))


def _with_first(rows: Scores, first: Float[np.ndarray, "n 1"]) -> Float[np.ndarray, "n classes"]:
    return np.concatenate([first, rows], axis=1)
