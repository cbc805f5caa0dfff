"""Do the data ask for one more unit than a model has? Its largest score, held against random signs.

Without the unit its direction and bias are not identified, so that no likelihood ratio has a chi-square law
(Davies 1977), and under unequal noise a unit "gains" by fitting the noisy region. Here the largest score over
all units is compared with the largest scores of the same residuals under random signs, each found by the same
search: neither the law of the supremum nor that of the noise is needed, only its symmetry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int8
from scipy.special import gammaincc, gammainccinv, ndtri

from onehidden import activations
from onehidden.activations import Activation
from onehidden.certify.tangent import RowsOfJacobian, Tangent, blocks, leverages
from onehidden.certify.unit_search import STEPS, Found, Rows, Whitening, best_units
from onehidden.streams import Seed, stream

LEVEL = 1e-3  # of a further unit that counts as seen, in ``detectable``
_POWER = 0.9  # with which a unit of that size is seen
# The denominator's weight of a row: this share of its own squared residual, the rest of the mean one. All of
# the mean: a network one unit short (share .1 of the signal, sd of the noise .5, n = 10 p, d = 8) is found in
# 72 % at level .01, but in 23 % with noise of sd exp(.8 x_1), whose noisy rows then set the threshold; all of
# the row's own: 42 and 65 %. A half: 60 and 70 %, a fifth: 72 and 60 %; with t_3 noise 68 and 78 %.
_OWN = 0.3
_FEWEST = 20  # rows beyond the rank of the model, and twice the unit's own parameters
_ROUNDING = 1e-11  # residuals of this share of sd(y) are those of an exact fit
EFFORT = 1e11  # operations, two or three seconds on one core
_MANY = 100_000  # rows from which half the draws are made
_HELD = 1 << 23  # numbers in the error vectors of a search: 32 MiB
# The largest scores of 4000 draws (d = 3, 8, 15; equal, unequal, t_3 noise; ReLU, tanh) have .65 to 1.5
# times, in the middle 1.2 times the skewness of a gamma law of their mean and deviation. That law's .01 is
# exceeded by .006 to .013 of them, its .001 by up to .0027; a Gumbel law's by .002 to .01, and up to .001.
_SKEWNESS = 1.25


@dataclass(frozen=True)
class FurtherUnit:
    """What the data say of one unit more.

    Attributes
    ----------
    p_value : probability of so large a score if the smaller model is right; NaN, like every number here,
        when not asked.
    gain : share of var(y) that the best further unit explains beyond what the best one of noise does.
    direction, bias : the best further unit on the inputs, up to a factor where g is homogeneous.
    detectable : share of var(y) below which a further unit would not have been seen (power .9 at 1e-3).
    asked : whether the question could be put.
    reason : why not; empty when it was.
    """

    p_value: float
    gain: float
    direction: Float[np.ndarray, " d"]
    bias: float
    detectable: float
    asked: bool
    reason: str = ""


def further_unit(
    jacobian: Float[np.ndarray, "n p"] | RowsOfJacobian,
    residual: Float[np.ndarray, " n"],
    Z: Float[np.ndarray, "n d"],
    activation: str | Activation,
    bias: bool,
    seed: Seed,
    *,
    root: Float[np.ndarray, " n"] | None = None,
    variance: float | None = None,
    draws: int = 199,
    effort: float = EFFORT,
) -> FurtherUnit:
    r"""Hold the best further unit for the residuals r against those for the same residuals with random signs.

    .. math:: S(e) = \sup_{a,b} \frac{(\tilde f'e)^2}{\sum_i \tilde f_i^2 s_i}, \quad
        \tilde f = (I - P_J)\, g(Za + b), \quad e^* = (I - P_J)(\epsilon \circ r / (1 - h)),

    with s_i a mean of r_i^2 / (1 - h_i)^2 and its average, the same for every draw. A shifted gamma law
    of the draws' largest scores gives p-values below 1 / draws. Neither the units of y nor those of Z matter.

    Parameters
    ----------
    jacobian : (n, p) derivatives of the smaller model at its least-squares fit; ``np.ones((n, 1))`` for a
        constant, ``np.column_stack([np.ones(n), Z])`` for a linear function; or a function that gives those
        of some rows (a slice or an index array).
    residual : (n,) of that fit, either sign.
    Z : (n, d) inputs, in any units.
    activation, bias : of the further unit.
    seed : names the signs and the random units.
    root : (n,) roots of the rows' weights, where Jacobian and residuals are those of a weighted fit.
    variance : var(y), for the shares; without it, shares are of the residuals' mean square.
    draws : sign vectors; half of them from 100 000 rows on.
    effort : operations that a search may take; it decides on how many rows directions are searched.

    Notes
    -----
    Size at .01 and .001, 720 runs each: equal noise .010 and 0, t_3 .007 and .003, sd exp(.8 x_1) .024 and
    .004, where a criterion asks for a unit in .26 (power: ``benchmarks/results/further_unit.md``).
    The search is random: a p-value moves with the seed, at times by a factor of ten.

    Directions are searched on as many random rows as the effort allows (all of 10 000 with 20 inputs and 20
    units), the statistic is that of all rows; where J'J of all rows would be too much (p = 1000 and n above
    100 000), everything is asked of random rows alone.
    """
    g, n = activations.get(activation), len(residual)
    residual, Z = np.asarray(residual, float), np.asarray(Z, float)
    root = np.ones(n) if root is None else np.asarray(root, float)
    if len(Z) != n or Z.ndim != 2 or len(root) != n:
        raise ValueError(f"expected inputs of shape ({n}, d) beside {n} residuals, got {Z.shape}")
    if draws < 19:
        raise ValueError(f"the law of the draws needs at least 19 of them, got {draws}")
    d, mean_square = Z.shape[1], float(np.mean(residual**2))
    total = mean_square if variance is None else float(variance)
    if not mean_square > _ROUNDING**2 * total:
        return _not_asked(d, "the residuals are those of rounding: nothing is left to explain")
    of_rows = jacobian if callable(jacobian) else lambda rows: jacobian[rows]
    p = of_rows(slice(0, 1)).shape[1]
    most = max(int(effort / max(p, 1) ** 2), 4 * p)
    if n > most:  # even J'J would take longer than the question is worth
        kept = np.sort(stream(seed, "further unit", "rows").choice(n, most, replace=False))
        some = (lambda rows: of_rows(kept[rows])), residual[kept], Z[kept]
        return further_unit(*some, g, bias, seed, root=root[kept], variance=total, draws=draws, effort=effort)
    model = Tangent.of(of_rows, n)
    needed = max(_FEWEST, 2 * (d + 1 + bias))
    if n - model.rank < needed:
        return _not_asked(d, f"{n} rows leave {n - model.rank} beyond the model's own, {needed} are needed")
    signs = np.ones((n, 1 + draws // (1 + (n > _MANY))), np.int8)
    signs[:, 1:] = stream(seed, "further unit", "signs").integers(0, 2, signs[:, 1:].shape, np.int8)
    signs[:, 1:] *= -2  # in place: n x 100 numbers
    signs[:, 1:] += 1
    data = _Data(model, residual / np.sqrt(mean_square), signs, Z, root)
    found = _searched(data, g, bias, effort, stream(seed, "further unit", "search"))
    if not np.any(found.score > 0):
        return _not_asked(d, "a further unit adds nothing that the model cannot move to itself")
    if not np.std(found.score[1:]) > 0:
        return _not_asked(d, "too few residuals differ from zero: their signs do not matter")
    return _judged(found, mean_square / total, n)


def _judged(found: Found, share: float, n: int) -> FurtherUnit:
    """What the best unit of the residuals is worth beside those of the draws; ``share`` of var(y) is left."""
    law = _Law.of(found.score[1:])
    gain = share * max(0.0, float(found.explained[0] - np.mean(found.explained[1:]))) / n
    # What is seen is that of the rows searched: a unit must be found there to be seen at all.
    needed_score = (np.sqrt(law.quantile(LEVEL)) + ndtri(_POWER)) ** 2
    detectable = min(1.0, share * needed_score / found.seen) if found.seen > 0 else 1.0
    a, b = found.theta[:-1, 0], float(found.theta[-1, 0])
    return FurtherUnit(law.p_value(found.score[0]), gain, a, b, float(detectable), True)


@dataclass(frozen=True)
class _Data:
    """What the question is put to: the smaller model, its residuals of mean square one, and sign vectors."""

    model: Tangent
    unit: Float[np.ndarray, " n"]
    signs: Int8[np.ndarray, "n c"]
    Z: Float[np.ndarray, "n d"]
    root: Float[np.ndarray, " n"]

    def of_rows(self, rows: np.ndarray) -> _Data:
        part = Tangent.of(lambda chosen: self.model.jacobian(rows[chosen]), len(rows))
        return _Data(part, self.unit[rows], self.signs[rows], self.Z[rows], self.root[rows])


def work(n: int, p: int, d: int, draws: int = 199, effort: float = EFFORT) -> float:
    """Operations of a question about n rows, d inputs and a model of p parameters."""
    searched = min(n, max(_HELD // (draws + 1), 4 * p, 2000))
    return 4.0 * n * p * (p + draws) + min(effort, searched * _of_a_row(draws + 1, p, d))


def _of_a_row(vectors: int, rank: int, d: int) -> float:
    """Two projections and two products for each number; the rest moves memory, as dear as 400 operations."""
    return vectors * (STEPS + 3) * (8.0 * rank + 4 * d + 400)


def _searched(data: _Data, g: Activation, bias: bool, effort: float, draw: np.random.Generator) -> Found:
    """The best unit of each sign vector, on z: searched on the rows the effort allows, scored on all."""
    (n, d), model, whiten = data.Z.shape, data.model, Whitening.of(data.Z, bias)
    vectors = data.signs.shape[1]
    most = max(min(int(effort / _of_a_row(vectors, model.rank, d)), _HELD // vectors), 4 * model.rank, 2000)
    part = data if n <= most else data.of_rows(np.sort(draw.choice(n, most, replace=False)))
    found = best_units(_seen_rows(part, whiten(part.Z)), g, bias, draw)
    a, b = whiten.unit(found.theta)
    found = replace(found, theta=np.vstack([a, b]))
    if part is data or not np.any(found.score > 0):
        return found
    values = _statistics(data, lambda block: data.root[block, None] * g(data.Z[block] @ a + b))
    return replace(found, score=values[0], explained=values[1])


def _not_asked(d: int, reason: str) -> FurtherUnit:
    return FurtherUnit(np.nan, np.nan, np.full(d, np.nan), np.nan, np.nan, False, reason)


@dataclass(frozen=True)
class _Law:
    """A shifted gamma law with the draws' mean and deviation and a skewness that follows from them."""

    mean: float
    deviation: float
    shape: float

    @classmethod
    def of(cls, score: Float[np.ndarray, " c"]) -> _Law:
        mean, deviation = float(np.mean(score)), float(np.std(score, ddof=1))
        return cls(mean, deviation, (mean / (_SKEWNESS * deviation)) ** 2)  # of skewness 2 / sqrt(shape)

    def p_value(self, score: float) -> float:
        at = self.shape + (score - self.mean) / self.deviation * np.sqrt(self.shape)
        return float(gammaincc(self.shape, max(at, 0.0)))

    def quantile(self, p: float) -> float:
        at = float(gammainccinv(self.shape, p))
        return self.mean + self.deviation * (at - self.shape) / np.sqrt(self.shape)


def _drawn(unit: np.ndarray, signs: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors (m, c) before their projection, residual first, and r^2 / (1 - h)^2.

    The jackknife's 1 - h, not its root: a fit shrinks the residuals of noisy rows by 1 - h, those of equal
    noise by the root. Linear null, n = 400, d = 8, level .01, 600 runs: .017 with noise of sd exp(.8 x_1) and
    .010 with equal noise; with the root .023 and .010.
    """
    left = 1 - leverages(Q)
    errors = signs * (unit / left)[:, None]
    errors[:, 0] = unit
    return errors, (unit / left) ** 2


def _seen_rows(data: _Data, inputs: np.ndarray) -> Rows:
    n, c, rank = data.model.n, data.signs.shape[1], data.model.rank
    Q, errors = (np.empty((n, columns), np.float32) for columns in (rank, c))
    square = np.empty(n)
    along, parts = np.zeros((rank, c)), list(blocks(n, max(rank, c)))
    for block in parts:
        exact = data.model.basis(block)
        drawn, square[block] = _drawn(data.unit[block], data.signs[block], exact)
        along += exact.T @ drawn
        Q[block], errors[block] = exact, drawn
    for block in parts:
        errors[block] -= Q[block] @ along.astype(np.float32)
    spread = (1 - _OWN) * square.mean() + _OWN * square
    return Rows(inputs, *(np.ascontiguousarray(v, np.float32) for v in (Q, errors, spread, data.root)))


def _statistics(
    data: _Data, values: Callable[[slice], np.ndarray]
) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
    """Score and explained sum of squares of each vector's own unit over all rows, in double precision."""
    model, unit, signs = data.model, data.unit, data.signs
    c, columns = signs.shape[1], max(signs.shape[1], model.rank)
    along_e, along_f = np.zeros((model.rank, c)), np.zeros((model.rank, c))
    for block in blocks(model.n, columns):
        Q = model.basis(block)
        along_e += Q.T @ _drawn(unit[block], signs[block], Q)[0]
        along_f += Q.T @ values(block)
    product, size, own, mean = np.zeros(c), np.zeros(c), np.zeros(c), 0.0
    for block in blocks(model.n, columns):
        Q = model.basis(block)
        errors, square = _drawn(unit[block], signs[block], Q)
        f = values(block) - Q @ along_f
        product += np.sum(f * (errors - Q @ along_e), axis=0)
        size += np.sum(f**2, axis=0)
        own += square @ f**2
        mean += float(np.sum(square)) / model.n
    scatter = (1 - _OWN) * mean * size + _OWN * own
    there = scatter > 0
    return (
        np.where(there, product**2 / np.where(there, scatter, 1), 0.0),
        np.where(there, product**2 / np.where(there, size, 1), 0.0),
    )
