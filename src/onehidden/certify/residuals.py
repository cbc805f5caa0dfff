"""What the residuals show: whether the network misses something, and what the noise is.

The test of adequacy has the right size under equal and unequal noise.

Let r be the residuals, J their Jacobian, P its projection, h the leverages, F random features and
F~ = (I - P) F scaled to a unit diagonal of F~'F~. The statistic is what a ridge fit of r by F~ explains,

    t = r' F~ (F~'F~ + rho I)^-1 F~' r = |V'r|^2.

Its null law is that of |V'(eps u)|^2 with u_i = r_i / sqrt(1 - h_i) and independent signs eps: every residual
keeps its size and loses its sign. That law needs no draws. With A = diag(u) V V' diag(u) and D_i = A_ii its
first three cumulants are exactly

    k1 = sum D,   k2 = 2 (tr A^2 - sum D^2),   k3 = 8 (tr A^3 - 3 sum D_i (A^2)_ii + 2 sum D^3),

all of them sums over rows of (M, M) matrices, and a shifted gamma law with these cumulants gives the p-value.
Unequal noise is in u. Without the diagonal k2 is unbiased, and the size is right with many features; the
plain law of a weighted sum of chi-squares counts it and loses half the power.

Neglected are the sign law of r'r as a denominator (for p parameters, M features and n rows it changes k2 by a
part of order pM/n^2) and cumulants from the fourth on. Against 10^6 sign draws at n = 60 ... 1000, with
equal, unequal and t3 noise, the true p-value is .76-1.1 times the given one at 1e-2, .4-1.2 times at 1e-3
and .1-1.25 times at 1e-4: an extreme p-value errs towards caution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import chdtrc, gammaincc, ndtr

from onehidden.certify import levels
from onehidden.certify.local_fit import LocalFit
from onehidden.certify.random_features import (
    FeatureKind,
    FitAndFeatures,
    FittedCurves,
    ProjectedFeatures,
    Projection,
    SignsByGroup,
    Total,
    cross_moments,
    random_features,
    sign_moments,
)
from onehidden.certify.replicates import different
from onehidden.checks import About, Check, at_least
from onehidden.families import Gaussian
from onehidden.families.dispersion import dispersion_check, dispersion_test
from onehidden.fit.parametrisation import Parametrisation, roots, weighed
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Inputs, Numbers, Samples, Summed, Target, Weight
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class FamilyResult:
    """What one family of features shows."""

    kind: FeatureKind
    excess: float  # (t - k1) / sqrt(k2)
    p_value: float
    share: float  # of var(y) that it shows to be missed


@dataclass(frozen=True)
class Adequacy:
    """Whether the residuals still carry something that the network misses."""

    evaluated: bool  # if not, ``reason`` says why and the numbers are NaN
    p_value: float = float(
        "nan"
    )  # of so much in the residuals when nothing is missed and rows are independent
    missed_share: float = (
        0.0  # unbiased for the part in the span of one family; what lies outside comes on top
    )
    families: tuple[FamilyResult, ...] = ()
    reason: str = ""


def sign_cumulants(
    second: Float[np.ndarray, "M M"], third: Float[np.ndarray, "M M"], powers: Float[np.ndarray, " 3"]
) -> tuple[float, float, float]:
    """k1, k2, k3 of |V'(eps u)|^2 over independent signs, from the sums of ``sign_moments``."""
    square = second @ second
    k2 = 2 * (np.trace(square) - powers[1])
    k3 = 8 * (np.sum(square * second) - 3 * np.sum(third * second) + 2 * powers[2])
    return float(powers[0]), float(k2), float(k3)


def tail(k1: float, k2: float, k3: float, t: float) -> float:
    """P(T >= t) of a shifted gamma law with these cumulants; normal where k3 is not positive."""
    z, skew = (t - k1) / np.sqrt(k2), k3 / k2**1.5
    if skew < 1e-3:
        return float(ndtr(-z))
    shape = 4 / skew**2
    return float(gammaincc(shape, max(shape + z * np.sqrt(shape), 0.0)))


def rows_beyond(p: int, least: int = 5) -> int:
    """Rows from which the test is evaluated for p parameters; fewer beyond them leave no feature.

    With 4 parameters and n = 8 to 30 rows its size at .05 is 0 to .05, equal and t3 noise, rows at few levels
    or spread: it errs towards caution.
    """
    return p + least


@in_double
def adequacy(
    fold: Callable[[Callable[[], Any]], Any],
    form: Parametrisation,
    theta: Float[np.ndarray, " p"],
    hessian: Float[np.ndarray, "p p"],
    n: int,
    seed: int = 0,
    centre: Float[np.ndarray, " d"] | None = None,
    groups: Int[np.ndarray, " n"] | None = None,
) -> Adequacy:
    """Test the residuals in two passes over the rows.

    ``fold(make)`` is an accumulator from ``make()`` that has seen all rows, in the coordinates of theta,
    where the inputs have unit covariance and mean ``centre``, by default zero. ``hessian`` is J'J at theta,
    ``n`` counts rows times outputs, ``seed`` names the random features. Rows of one of
    the ``groups`` have one sign.
    """
    needed, free = rows_beyond(form.freedom), n - form.freedom
    if n < needed:
        reason = (
            f"{n} rows leave {free} beyond the {form.freedom} parameters, and {needed - n + free} are needed"
        )
        return Adequacy(False, reason=reason)
    size = feature_count(n, free)
    middle = np.zeros(form.d) if centre is None else np.asarray(centre, float)
    at = np.asarray(theta, float)
    drawn = random_features(form.activation, middle, size, seed, form.outputs)
    families = (*drawn, FittedCurves(form, at))
    fit = FitAndFeatures(form, at, families)
    of_y, gradient, *first = fold(partial(Total, fit, cross_moments)).result()
    onto = Projection.of(hessian)
    projected = [
        ProjectedFeatures.of(family, onto, gradient, first[3 * i : 3 * i + 3])
        for i, family in enumerate(families)
    ]
    maps = tuple(one.map for one in projected)
    known = {"leverages": onto.leverages(seed), "maps": maps}
    terms: Callable[[], Any] = partial(Total, fit, partial(sign_moments, **known))
    if groups is not None:
        terms = partial(SignsByGroup, fit, groups, **known)
    second = fold(terms).result()
    mass, mean, square, loss = (float(v) for v in of_y)
    results = [
        _result(family.kind, one, second[3 * i : 3 * i + 3], loss, square - mean**2 / mass)
        for i, (family, one) in enumerate(zip(families, projected, strict=True))
    ]
    found = tuple(result for result in results if result is not None)
    if not found:
        reason = "the fit leaves no residuals, or no further function differs from it"
        return Adequacy(False, reason=reason)
    best = min(found, key=lambda result: (result.p_value, -result.excess))
    # The smallest of nearly independent p-values; exact for independent ones, cautious for dependent ones.
    p_value = float(-np.expm1(len(found) * np.log1p(-min(best.p_value, 1 - np.finfo(float).epsneg))))
    missed_share = best.share if p_value < levels.LEFT_OVER.value else 0.0
    return Adequacy(True, p_value, missed_share, found)


def adequacy_work(n: int, p: int) -> float:
    """Operations of the test for n rows and p parameters: two passes over J and three families."""
    size = feature_count(n, max(n - p, 0))
    return 4.0 * n * (p + 3 * size) * (p + size)


def feature_count(n: int, free: int, most: int = 150, fewest: int = 64, work: float = 2e9) -> int:
    """Functions M of each family for n rows, ``free`` of them beyond the parameters.

    The size of the test holds from n = 40 on with a fifth of the free rows. 3 x 150 functions cost two or
    three evaluations of J'J at 400 parameters. Where n M^2 exceeds ``work``, there are fewer.
    """
    return min(most, free // 5, max(fewest, int(np.sqrt(work / n))))


def _result(
    kind: FeatureKind, one: ProjectedFeatures, sums: list[np.ndarray], loss: float, variation: float
) -> FamilyResult | None:
    """What a family shows; None where it lies in the span of J, or there are no residuals."""
    k1, k2, k3 = sign_cumulants(*sums)
    # Where one row outweighs all others, k2 is a difference of equal numbers: the family sees that row only.
    if not (k2 > 1e-10 * sums[2][1] and variation > 0):
        return None
    t = float(np.sum((one.root.T @ one.cross) ** 2))
    explained, by_chance = _without_ridge(one, sums[0])
    # u^2 holds what is missed too: a share by_chance / loss of it is taken for noise, as in an adjusted R^2.
    missed = (explained - by_chance) / max(1 - by_chance / loss, 0.1)
    share = min(max(missed, t - k1, 0.0) / variation, 1.0)
    return FamilyResult(kind, float((t - k1) / np.sqrt(k2)), tail(k1, k2, k3, t), share)


def _without_ridge(one: ProjectedFeatures, second: np.ndarray) -> tuple[float, float]:
    """|V'r|^2 and k1 for rho = 0: what all features explain of r, and of signs at random."""
    value, vector = np.linalg.eigh(one.gram)
    kept = value > 1e-6 * value[-1]
    flat = vector[:, kept] / np.sqrt(value[kept])
    scatter = one.factor @ second @ one.factor.T  # F~'U^2 F~
    return float(np.sum((flat.T @ one.cross) ** 2)), float(np.sum((flat.T @ scatter) * flat.T))


class SpreadTest(Summed):
    """Accumulator of Koenker's version of the Breusch–Pagan test of equal spread.

    It regresses r² on (1, p, p², |z|²), p the prediction; means over several outputs. n R² of that regression
    is chi-square with 3 degrees of freedom whatever the kurtosis of r, if the spread of the residuals does
    not depend on p and |z|.

    The network is in the coordinates of the rows; its target has unit variance.
    """

    summed = ("n", "_gram", "_cross", "_squares", "_fourths")

    def __init__(self, network: OneHiddenNet) -> None:
        self.network, self.n = network, 0
        self._gram, self._cross = np.zeros((4, 4)), np.zeros(4)
        self._squares = self._fourths = 0.0

    def update(self, Z: Inputs, y: Target, weight: Weight, row: Numbers) -> SpreadTest:
        p = self.network.predict(Z)
        square = np.mean(weighed(roots(weight, len(Z)), p - y).reshape(len(Z), -1) ** 2, axis=1)
        p = p.reshape(len(Z), -1).mean(axis=1)
        design = np.column_stack([np.ones(len(p)), p, p**2, np.mean(Z**2, axis=1)])
        self._gram += design.T @ design
        self._cross += design.T @ square
        self._squares += float(np.sum(square))
        self._fourths += float(np.sum(square**2))
        self.n += len(p)
        return self

    def result(self) -> float:
        """The p-value of equal spread."""
        mean = self._squares / self.n
        total = self._fourths - self.n * mean**2
        if total <= 0:
            return 1.0
        scale = np.sqrt(np.maximum(np.diag(self._gram), np.finfo(float).tiny))
        solved = np.linalg.lstsq(self._gram / np.outer(scale, scale), self._cross / scale, rcond=1e-13)[0]
        explained = float(solved @ (self._cross / scale)) - self.n * mean**2
        return float(chdtrc(3, self.n * min(max(explained / total, 0.0), 1.0)))


def spread_check(p_value: float, errors: str, robust: bool) -> Check:
    """Whether the noise is as large everywhere; only classical errors need it to be."""
    name, what = "equal spread", "p-value of noise as large everywhere"
    if errors == "classical":
        advice = (
            f"{what}; below the bound the standard errors are wrong: use errors='robust', or sample_weight "
            "if you know where the noise is large"
        )
        return at_least(name, p_value, levels.CLASSICAL_ERRORS.value, advice, About.ERRORS)
    used = "sandwich" if robust else "classical"
    return at_least(name, p_value, levels.EQUAL_VARIANCE.value, f"{what}; standard errors are {used}")


def family_checks(local: LocalFit, given: Problem, errors: str) -> list[Check]:
    """Whether y spreads about its mean as its family says; of normal noise only where another family would.

    What classical errors rest on decides where they were requested; else robust ones take their place.
    """
    if not isinstance(given.rows, Samples):
        return []
    samples, free = given.rows, local.n_values - local.freedom
    eta = local.network.predict(samples.X) + given.offsets
    family = Gaussian("identity") if given.family is None else given.family
    level = levels.DISPERSION.value
    found = dispersion_test(family, samples.y, eta, free, given.trials, level=level)
    if given.family is None and not found.suggestion:
        return []
    decisive = errors == "classical" and not found.reason and given.family is not None
    about = About.ERRORS if decisive else About.NOTE
    return [replace(dispersion_check(found, family, level), about=about)]


def count_distinct(problem: Problem) -> int:
    """Rows of inputs that differ by more than 1e-9 of the spread; of rows that are not in memory all.

    Copies are often written with fewer digits. Where units have no biases and are odd or even, a row and its
    negative are one.
    """
    if not isinstance(problem.rows, Samples):
        return problem.n
    X = problem.rows.X
    spread = X.std(axis=0)
    step = 1e-9 * np.where(spread > 0, spread, 1.0)
    sign = np.ones(len(X))
    if problem.activation.sign_free and not problem.form.bias:
        sign = np.zeros(len(X))
        for column, size in zip(X.T, step, strict=True):
            sign = np.where(sign == 0, np.sign(np.round(column / size)), sign)
    return different(np.round(sign * column / size) for column, size in zip(X.T, step, strict=True))
