"""Do the data ask for one more unit than a model has? A score test with random signs.

Without the unit its direction and bias are not identified, so that no likelihood ratio has a chi-square law
(Davies 1977), and under unequal noise a unit "gains" by fitting the noisy region. Here the largest score over
all units is compared with the largest scores of the same residuals under random signs, each found by the same
search: neither the law of the supremum nor that of the noise is needed, only its symmetry.

The best additional units of all these vectors are found at once: random units, then a batched ascent. Every
vector gets the same help, so that its maximum is of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, Float32, Int, Int8
from scipy.special import gammaincc, gammainccinv, ndtri

from onehidden import activations
from onehidden.activations import Activation
from onehidden.certify import levels
from onehidden.certify.local_fit import RowsOfJacobian, Tangent, blocks, leverages
from onehidden.run import Seed, stream


@dataclass(frozen=True)
class ScoreTest:
    """What the data say of one unit more; the numbers are NaN when it was not evaluated."""

    p_value: float  # of so large a score if the smaller model is right
    gain: (
        float  # share of var(y) that the best additional unit explains beyond what the best one of noise does
    )
    direction: Float[np.ndarray, " d"]  # of the best additional unit, up to a factor where g is homogeneous
    bias: float
    detectable: float  # share of var(y) below which an additional unit would not have been detected
    remaining: float  # the part of it that the model cannot move to its own units
    evaluated: bool
    reason: str = ""  # why it was not evaluated


def score_test(
    jacobian: Float[np.ndarray, "n p"] | RowsOfJacobian,
    residual: Float[np.ndarray, " n"],
    Z: Float[np.ndarray, "n d"],
    activation: str | Activation,
    bias: bool,
    seed: Seed,
    *,
    root: Float[np.ndarray, " n"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
    variance: float | None = None,
    draws: int = 199,
    effort: float = 1e11,
    search: UnitSearch | None = None,
) -> ScoreTest:
    r"""Compare the best additional unit for the residuals r with those for r with random signs.

    .. math:: S(e) = \sup_{a,b} \frac{(\tilde f'e)^2}{\sum_i \tilde f_i^2 s_i}, \quad
        \tilde f = (I - P_J)\, g(Za + b), \quad e^* = (I - P_J)(\epsilon \circ r / (1 - h)),

    with s_i a mean of r_i^2 / (1 - h_i)^2 and its average, the same for every draw. A shifted gamma law
    of the draws' largest scores gives p-values below 1 / draws. Neither the units of y nor those of Z matter.

    Parameters
    ----------
    jacobian : ndarray of shape (n, p) or callable
        Derivatives of the smaller model at its least-squares fit; ``np.ones((n, 1))`` for a constant,
        ``np.column_stack([np.ones(n), Z])`` for a linear function; or a function that gives those of some
        rows (a slice or an index array).
    residual : ndarray of shape (n,)
        Residuals of that fit, either sign.
    Z : ndarray of shape (n, d)
        Inputs, in any units.
    activation, bias : str or Activation, bool
        Of the additional unit.
    seed : Seed
        Names the signs and the random units.
    root : ndarray of shape (n,), optional
        Roots of the rows' weights, where Jacobian and residuals are those of a weighted fit.
    groups : ndarray of shape (n,), optional
        Numbers from 0 on of rows that share noise: they have one sign.
    variance : float, optional
        var(y), for the shares; without it, shares are of the residuals' mean square.
    draws : int
        Sign vectors; half of them from two million numbers in the Jacobian on.
    effort : float
        Operations that the search may take; it decides on how many rows directions are searched. The default
        takes two or three seconds on one core.
    search : UnitSearch, optional
        The search for the best unit.

    Returns
    -------
    ScoreTest

    Notes
    -----
    Size at .01 and .001, 720 runs each: equal noise .010 and 0, t_3 .007 and .003, sd exp(.8 x_1) .024 and
    .004, where a criterion asks for a unit in .26 (power: ``benchmarks/results/score_test.md``).
    The search is random: a p-value moves with the seed, at times by a factor of ten.

    Directions are searched on as many random rows as the effort allows (all of 10 000 with 20 inputs and 20
    units), the statistic is that of all rows; where J'J of all rows would be too much (p = 1000 and n above
    100 000), the whole test is one of random rows.
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
    if not mean_square > 1e-22 * total:
        return _not_evaluated(d, "the residuals are those of rounding: nothing is left to explain")
    of_rows = jacobian if callable(jacobian) else lambda rows: jacobian[rows]
    p = of_rows(slice(0, 1)).shape[1]
    most = max(int(effort / max(p, 1) ** 2), 4 * p)
    if n > most:  # J'J of all rows alone would take longer than the effort
        kept = np.sort(stream(seed, "further unit", "rows").choice(n, most, replace=False))
        some = (lambda rows: of_rows(kept[rows])), residual[kept], Z[kept]
        groups = None if groups is None else groups[kept]
        return score_test(
            *some, g, bias, seed, root=root[kept], groups=groups, variance=total, draws=draws,
            effort=effort, search=search,
        )  # fmt: skip
    model = Tangent.of(of_rows, n)
    needed = 2 * (d + 1 + bias)  # twice the unit's own parameters
    if n - model.rank < needed:
        return _not_evaluated(
            d, f"{n} rows leave {n - model.rank} beyond the model's own, {needed} are needed"
        )
    signs = np.ones((n, 1 + draws // (1 + (n * p > 2_000_000))), np.int8)
    each = n if groups is None else int(groups.max()) + 1
    drawn = stream(seed, "further unit", "signs").integers(0, 2, (each, signs.shape[1] - 1), np.int8)
    signs[:, 1:] = drawn if groups is None else drawn[groups]
    signs[:, 1:] *= -2  # in place: n x 100 numbers
    signs[:, 1:] += 1
    data = _SignedResiduals(model, residual / np.sqrt(mean_square), signs, Z, root, search or UnitSearch())
    found = data.best_units(g, bias, effort, stream(seed, "further unit", "search"))
    if not np.any(found.score > 0):
        return _not_evaluated(d, "an additional unit adds nothing that the model cannot move to itself")
    if not np.std(found.score[1:]) > 0:
        return _not_evaluated(d, "too few residuals differ from zero: their signs do not matter")
    return _compared(found, mean_square / total, n)


def _compared(found: BestUnits, share: float, n: int) -> ScoreTest:
    """The best unit of the residuals compared with those of the draws; ``share`` of var(y) is left."""
    law = _Law.of(found.score[1:])
    gain = share * max(0.0, float(found.explained[0] - np.mean(found.explained[1:]))) / n
    # What is seen is that of the rows searched: a unit must be found there to be detected.
    quantile = law.quantile(levels.LARGER_MODEL.value)
    needed = (np.sqrt(quantile) + ndtri(levels.LARGER_MODEL_POWER.value)) ** 2
    detectable = min(1.0, share * needed / found.seen) if found.seen > 0 else 1.0
    remaining = min(detectable, share * needed / found.rows)
    a, b = found.theta[:-1, 0], float(found.theta[-1, 0])
    p_value = law.p_value(found.score[0])
    return ScoreTest(p_value, gain, a, b, float(detectable), float(remaining), True)


def _not_evaluated(d: int, reason: str) -> ScoreTest:
    return ScoreTest(np.nan, np.nan, np.full(d, np.nan), np.nan, np.nan, np.nan, False, reason)


def score_test_work(n: int, p: int, d: int, draws: int = 199, effort: float = 1e11) -> float:
    """Operations of a test with n rows, d inputs and a model of p parameters."""
    vectors, search = draws + 1, UnitSearch()
    searched = min(n, max(_SignedResiduals.held // vectors, 4 * p, 2000))
    return 4.0 * n * p * (p + draws) + min(effort, searched * _work_of_a_row(search, vectors, p, d))


def _work_of_a_row(search: UnitSearch, vectors: int, rank: int, d: int) -> float:
    """Two projections and two products for each number; moving memory costs as much as 400 operations."""
    return vectors * (search.steps + 3) * (8.0 * rank + 4 * d + 400)


@dataclass(frozen=True)
class _Law:
    """A shifted gamma law with the draws' mean and deviation, and 1.25 times the skewness of a gamma law.

    The largest scores of 4000 draws (d = 3, 8, 15; equal, unequal, t_3 noise; ReLU, tanh) have .65 to 1.5
    times, in the middle 1.2 times the skewness of a gamma law of their mean and deviation. The .01 of this
    law is exceeded by .006 to .013 of them, its .001 by up to .0027; a Gumbel law's by .002 to .01, and up to
    .001.
    """

    mean: float
    deviation: float
    shape: float

    @classmethod
    def of(cls, score: Float[np.ndarray, " c"]) -> _Law:
        mean, deviation = float(np.mean(score)), float(np.std(score, ddof=1))
        return cls(mean, deviation, (mean / (1.25 * deviation)) ** 2)  # of skewness 2 / sqrt(shape)

    def p_value(self, score: float) -> float:
        at = self.shape + (score - self.mean) / self.deviation * np.sqrt(self.shape)
        return float(gammaincc(self.shape, max(at, 0.0)))

    def quantile(self, p: float) -> float:
        at = float(gammainccinv(self.shape, p))
        return self.mean + self.deviation * (at - self.shape) / np.sqrt(self.shape)


@dataclass(frozen=True)
class Whitening:
    """z -> (z - centre) map with second moments one; directions without spread are left out."""

    centre: Float[np.ndarray, " d"]
    map: Float[np.ndarray, "d q"]

    @classmethod
    def of(cls, Z: Float[np.ndarray, "n d"], bias: bool) -> Whitening:
        """Without a bias the centre is zero: a moved one would need a bias to move back."""
        centre = Z.mean(axis=0) if bias else np.zeros(Z.shape[1])
        spread = np.sqrt(np.mean((Z - centre) ** 2, axis=0))
        scale = np.where(spread > 0, spread, 1.0)
        moved = (Z - centre) / scale
        size, axes = np.linalg.eigh(moved.T @ moved / len(Z))
        kept = size > 1e-10 * max(float(size[-1]), np.finfo(float).tiny)
        root = axes[:, kept] / np.sqrt(size[kept])
        # The symmetric root is that of the inputs alone: eigenvectors of white ones are those of rounding.
        return cls(centre, (root @ axes.T if kept.all() else root) / scale[:, None])

    def __call__(self, Z: Float[np.ndarray, "n d"]) -> Float32[np.ndarray, "n q1"]:
        return np.column_stack([(Z - self.centre) @ self.map, np.ones(len(Z))]).astype(np.float32)

    def unit(self, theta: Float[np.ndarray, "q1 c"]) -> tuple[np.ndarray, np.ndarray]:
        """Directions (d, c) and biases (c,) on z of units on whitened inputs."""
        a = self.map @ theta[:-1]
        return a, theta[-1] - self.centre @ a


@dataclass(frozen=True)
class ErrorVectors:
    """Error vectors and what a search for units needs of the samples, in single precision."""

    inputs: Float32[np.ndarray, "m q1"]  # whitened, and a column of ones
    span: Float32[np.ndarray, "m r"]  # orthonormal basis of what the smaller model can move to
    errors: Float32[np.ndarray, "m c"]  # orthogonal to it; the first is the observed one
    spread: Float32[np.ndarray, " m"]  # the size of each squared error, the same for every vector
    root: Float32[np.ndarray, " m"]  # roots of the rows' weights

    def values(self, g: Activation, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(m, c) weighted values and slopes of units (q + 1, c)."""
        t, root = self.inputs @ theta, self.root[:, None]
        return root * g.on_host(g.fn, t), root * g.on_host(g.slope, t)

    def beyond(self, f: Float32[np.ndarray, "m c"]) -> Float32[np.ndarray, "m c"]:
        """f less its projection on the span."""
        return f - self.span @ (self.span.T @ f)

    def sizes(self, f: np.ndarray, beyond: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """f~'f~ and sum_i f~_i^2 s_i; the second is infinite, so that the score is zero, within the span.

        A unit that differs from the span by 1e-3 of its square differs by what a linearisation leaves out.
        One that is rounding on all rows is in the span, too.
        """
        square = beyond**2
        size, scatter = square.sum(axis=0), self.spread @ square
        new = (size > 1e-3 * np.sum(f**2, axis=0)) & (scatter > 1e-30)
        return size, np.where(new, scatter, np.inf)


@dataclass(frozen=True)
class BestUnits:
    """The best unit of each error vector.

    ``seen`` is the lower quartile over random units of (f~'f~)^2 / (sum_i f~_i^2 s_i var f), the score that a
    unit adds for each unit of its own variance.
    """

    theta: Float[np.ndarray, "q1 c"]  # units on the inputs searched, the bias last
    score: Float[np.ndarray, " c"]
    explained: Float[np.ndarray, " c"]  # (f~'e)^2 / f~'f~, the sums of squares they explain
    seen: float
    rows: int  # that were searched


@dataclass(frozen=True)
class UnitSearch:
    """A search for the unit of the largest score.

    Mean of the largest score (one ReLU unit, pure noise, d = 15, n = 400): 8.8 of 400 random units, 18.8
    after five steps, 20.8 after ten, 21.8 after forty; the power of the test is the same after six and
    fifteen. 100 vectors on 83 886 rows took 33 MiB and 3.1 s; with twice ``together`` 80 MiB and 2.6 s, with
    half 18 MiB and 4.8 s.
    """

    pool: int = 400  # random units at first
    steps: int = 8  # of the ascent
    # Least and largest slope of random saturating units on whitened inputs, and the largest of all: between
    # nearly linear and nearly a step.
    slopes: tuple[float, float, float] = (0.3, 4.0, 8.0)
    together: int = 1 << 20  # numbers of one array in a group of vectors that ascend together

    def best_units(
        self, rows: ErrorVectors, g: Activation, bias: bool, draw: np.random.Generator
    ) -> BestUnits:
        """The unit of the largest score for each error vector.

        The score of a unit with values f, f~ beyond the span, is (f~'e)^2 / sum_i f~_i^2 s_i.
        """
        theta = self._random_units(rows.inputs, g, bias, draw)
        score, seen = np.zeros((self.pool, rows.errors.shape[1]), np.float32), np.zeros(self.pool)
        for some in self._groups(self.pool, len(rows.inputs)):
            f = rows.values(g, theta[:, some])[0]
            beyond = rows.beyond(f)
            size, scatter = rows.sizes(f, beyond)
            score[some] = (beyond.T @ rows.errors) ** 2 / scatter[:, None]
            full = scatter * f.var(axis=0)
            np.divide(size**2, full, out=seen[some], where=np.isfinite(full) & (full > 0))
        first = theta[:, np.argmax(score, axis=0)]
        parts = [
            self._ascend(replace(rows, errors=rows.errors[:, some]), g, bias, first[:, some])
            for some in self._groups(first.shape[1], len(rows.inputs))
        ]
        kept, best, explained = (np.concatenate(values, axis=-1) for values in zip(*parts, strict=True))
        # With the median of ``seen``, units that should be found in 90 % are found in 50 to 80 %.
        return BestUnits(kept, best, explained, float(np.quantile(seen, 0.25)), len(rows.inputs))

    def _groups(self, columns: int, rows: int) -> list[slice]:
        """Columns in groups, so that an array of all rows has a bounded size."""
        step = max(1, self.together // max(rows, 1))
        return [slice(at, at + step) for at in range(0, columns, step)]

    def _random_units(
        self, inputs: Float32[np.ndarray, "m q1"], g: Activation, bias: bool, draw: np.random.Generator
    ) -> Float32[np.ndarray, "q1 c"]:
        """Units of uniform direction; with a bias their zero lies between the centre and a random sample."""
        a = draw.standard_normal((inputs.shape[1] - 1, self.pool))
        a /= np.linalg.norm(a, axis=0)
        if g.homogeneity is None:
            a *= np.exp(draw.uniform(np.log(self.slopes[0]), np.log(self.slopes[1]), self.pool))
        there = inputs[draw.integers(len(inputs), size=self.pool), :-1].T
        b = -np.sum(there * a, axis=0) * draw.uniform(size=self.pool) if bias else np.zeros(self.pool)
        return np.vstack([a, b]).astype(np.float32)

    def _ascend(
        self, rows: ErrorVectors, g: Activation, bias: bool, theta: Float32[np.ndarray, "q1 c"]
    ) -> tuple[Float32[np.ndarray, "q1 c"], Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
        """Ascent of the logarithm of the score; each column has its own step, and a loss is taken back.

        Returns units, their scores and what they explain.
        """
        at = self._bounded(g, theta)
        kept, best, uphill = at, np.full(at.shape[1], -1.0, np.float32), np.zeros_like(at)
        step, explained = np.full(at.shape[1], 0.3, np.float32), np.zeros_like(best)
        for _ in range(self.steps + 1):
            f, slope = rows.values(g, at)
            beyond = rows.beyond(f)
            size, scatter = rows.sizes(f, beyond)
            product = np.sum(beyond * rows.errors, axis=0)
            score = product**2 / scatter
            # d log score = 2 d(f'e) / f'e - d(sum f~^2 s) / sum f~^2 s, and f~ = (I - P) f
            change = rows.errors * (2 / np.where(product == 0, 1, product))
            change -= rows.beyond(beyond * rows.spread[:, None]) * (2 / scatter)
            gradient = rows.inputs.T @ (slope * change)
            gradient[-1] *= bias
            if g.homogeneity is not None:  # the length of the unit does not matter
                gradient -= at * (np.sum(gradient * at, axis=0) / np.sum(at * at, axis=0))
            higher = score > best
            kept, uphill = np.where(higher, at, kept), np.where(higher, gradient, uphill)
            explained = np.where(higher & (score > 0), product**2 / np.where(size > 0, size, 1), explained)
            best = np.where(higher, score, best)
            step = step * np.where(higher, np.float32(1.4), np.float32(0.4))
            length = np.linalg.norm(uphill, axis=0)
            scale = step * np.linalg.norm(kept, axis=0) / np.where(length > 0, length, 1)
            at = self._bounded(g, kept + scale * uphill)
        return kept, best.astype(float), explained.astype(float)

    def _bounded(self, g: Activation, theta: np.ndarray) -> np.ndarray:
        """Homogeneous units at length one, others no steeper than a step at the scale of the inputs."""
        length = np.linalg.norm(theta[:-1], axis=0)
        length = np.where(length > 0, length, 1)
        factor = 1 / length if g.homogeneity is not None else np.minimum(1, self.slopes[2] / length)
        return (theta * factor).astype(np.float32)


@dataclass(frozen=True)
class _SignedResiduals:
    """The smaller model, its residuals of mean square one, and sign vectors.

    ``own`` is the weight of a row's own squared residual in the denominator; the rest is that of the mean
    one. With the mean alone a network one unit short (share .1 of the signal, sd of the noise .5, n = 10 p,
    d = 8) is found in 72 % at level .01, but in 23 % with noise of sd exp(.8 x_1), whose noisy rows then set
    the threshold; with the row's own alone in 42 and 65 %; a half: 60 and 70 %, a fifth: 72 and 60 %; .3
    with t_3 noise: 68 and 78 %.
    """

    model: Tangent
    unit: Float[np.ndarray, " n"]
    signs: Int8[np.ndarray, "n c"]
    Z: Float[np.ndarray, "n d"]
    root: Float[np.ndarray, " n"]
    search: UnitSearch = field(default_factory=UnitSearch)
    own: float = 0.3
    held: int = 1 << 23  # numbers in the error vectors of a search, 32 MiB

    def take(self, rows: np.ndarray) -> _SignedResiduals:
        part = Tangent.of(lambda chosen: self.model.jacobian(rows[chosen]), len(rows))
        return replace(
            self,
            model=part,
            unit=self.unit[rows],
            signs=self.signs[rows],
            Z=self.Z[rows],
            root=self.root[rows],
        )

    def best_units(self, g: Activation, bias: bool, effort: float, draw: np.random.Generator) -> BestUnits:
        """The best unit of each sign vector, on z: searched on the rows the effort allows, scored on all."""
        (n, d), whiten, vectors = self.Z.shape, Whitening.of(self.Z, bias), self.signs.shape[1]
        row = _work_of_a_row(self.search, vectors, self.model.rank, d)
        most = max(min(int(effort / row), self.held // vectors), 4 * self.model.rank, 2000)
        part = self if n <= most else self.take(np.sort(draw.choice(n, most, replace=False)))
        found = self.search.best_units(part.error_vectors(whiten(part.Z)), g, bias, draw)
        a, b = whiten.unit(found.theta)
        found = replace(found, theta=np.vstack([a, b]))
        if part is self or not np.any(found.score > 0):
            return found
        score, explained = self.scores(lambda block: self.root[block, None] * g(self.Z[block] @ a + b))
        return replace(found, score=score, explained=explained)

    def drawn(self, block: slice, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Errors (m, c) before their projection, residual first, and r^2 / (1 - h)^2.

        The jackknife's 1 - h, not its root: a fit shrinks the residuals of noisy rows by 1 - h, those of
        equal noise by the root. Linear null, n = 400, d = 8, level .01, 600 runs: .017 with noise of sd
        exp(.8 x_1) and .010 with equal noise; with the root .023 and .010.
        """
        unit, left = self.unit[block], 1 - leverages(Q)
        errors = self.signs[block] * (unit / left)[:, None]
        errors[:, 0] = unit
        return errors, (unit / left) ** 2

    def error_vectors(self, inputs: np.ndarray) -> ErrorVectors:
        """What the search needs, in single precision."""
        n, c, rank = self.model.n, self.signs.shape[1], self.model.rank
        Q, errors = (np.empty((n, columns), np.float32) for columns in (rank, c))
        square = np.empty(n)
        along, parts = np.zeros((rank, c)), list(blocks(n, max(rank, c)))
        for block in parts:
            exact = self.model.basis(block)
            drawn, square[block] = self.drawn(block, exact)
            along += exact.T @ drawn
            Q[block], errors[block] = exact, drawn
        for block in parts:
            errors[block] -= Q[block] @ along.astype(np.float32)
        spread = (1 - self.own) * square.mean() + self.own * square
        single = (np.ascontiguousarray(v, np.float32) for v in (Q, errors, spread, self.root))
        return ErrorVectors(inputs, *single)

    def scores(
        self, values: Callable[[slice], np.ndarray]
    ) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
        """Score and explained sum of squares of each vector's own unit over all rows, in double precision."""
        model, c = self.model, self.signs.shape[1]
        parts = list(blocks(model.n, max(c, model.rank)))
        along_e, along_f = np.zeros((model.rank, c)), np.zeros((model.rank, c))
        for block in parts:
            Q = model.basis(block)
            along_e += Q.T @ self.drawn(block, Q)[0]
            along_f += Q.T @ values(block)
        product, size, own, mean = np.zeros(c), np.zeros(c), np.zeros(c), 0.0
        for block in parts:
            Q = model.basis(block)
            errors, square = self.drawn(block, Q)
            f = values(block) - Q @ along_f
            product += np.sum(f * (errors - Q @ along_e), axis=0)
            size += np.sum(f**2, axis=0)
            own += square @ f**2
            mean += float(np.sum(square)) / model.n
        scatter = (1 - self.own) * mean * size + self.own * own
        there = scatter > 0
        score, explained = (product**2 / np.where(there, by, 1) for by in (scatter, size))
        return np.where(there, score, 0.0), np.where(there, explained, 0.0)
