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
from jaxtyping import Float
from scipy.special import chdtrc, gammaincc, ndtr

from onehidden.certify import levels
from onehidden.certify.groups import GroupedCovariance
from onehidden.certify.local_fit import LocalFit, root_of_inverse
from onehidden.certify.random_features import (
    FeatureKind,
    FitAndFeatures,
    FittedCurves,
    Projections,
    cross_moments,
    group_sums,
    moments_of,
    random_features,
    sign_moments,
)
from onehidden.checks import About, Check, at_least
from onehidden.families import Gaussian
from onehidden.families.dispersion import dispersion_check
from onehidden.fit.parametrisation import Parametrisation, roots, weighed
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Inputs, Numbers, RowSum, Samples, Target, Weight
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden.run import Run


@dataclass(frozen=True)
class FamilyResult:
    """What one family of features shows."""

    kind: FeatureKind
    p_value: float
    share: float  # of var(y) that it shows to be missed


@dataclass(frozen=True)
class Adequacy:
    """Whether the residuals still carry something that the network misses."""

    evaluated: bool  # if not, ``reason`` says why
    p_value: float = float("nan")  # of so much in the residuals when nothing is missed
    missed_share: float = 0.0  # unbiased for what is in the span of one family; other parts come on top
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
    grouped: Callable[[FitAndFeatures, Projections], list[np.ndarray]] | None = None,
) -> Adequacy:
    """Test the residuals in two passes over the rows.

    ``fold(make)`` is an accumulator from ``make()`` that has seen all rows, in the coordinates of theta,
    where the inputs have unit covariance and mean ``centre``, by default zero. ``hessian`` is J'J at theta,
    ``n`` counts rows times outputs. ``grouped`` takes the place of the second pass where rows of a group have
    one sign.
    """

    def sums(terms: Callable[..., Any], *known: object) -> Any:
        return fold(partial(RowSum, partial(terms, *known))).result()

    needed, free = rows_beyond(form.freedom), n - form.freedom
    if n < needed:
        reason = (
            f"{n} rows leave {free} beyond the {form.freedom} parameters, and {needed - n + free} are needed"
        )
        return Adequacy(False, reason=reason)
    middle, at = np.zeros(form.d) if centre is None else centre, np.asarray(theta, float)
    drawn = random_features(form.activation, middle, feature_count(n, free), seed, form.outputs)
    fit = FitAndFeatures(form, at, (*drawn, FittedCurves(form, at)))
    (mass, mean, square, loss), gradient, *first = sums(cross_moments, fit)
    C, variation = root_of_inverse(hessian), float(square - mean**2 / mass)
    projected = [
        ProjectedFeatures.of(family.kind, C, gradient, *first[3 * i : 3 * i + 3])
        for i, family in enumerate(fit.families)
    ]
    known = Projections(C, tuple(one.map for one in projected))
    second = sums(sign_moments, fit, known) if grouped is None else grouped(fit, known)
    results = [one.result(second[3 * i : 3 * i + 3], loss, variation) for i, one in enumerate(projected)]
    found = tuple(result for result in results if result is not None)
    if not found:
        reason = "the fit leaves no residuals, or no further function differs from it"
        return Adequacy(False, reason=reason)
    best = min(found, key=lambda result: (result.p_value, -result.share))
    # The smallest of nearly independent p-values; exact for independent ones, cautious for dependent ones.
    p_value = float(-np.expm1(len(found) * np.log1p(-min(best.p_value, 1 - np.finfo(float).epsneg))))
    missed_share = best.share if p_value < levels.LEFT_OVER.value else 0.0
    return Adequacy(True, p_value, missed_share, found)


def adequacy_at(
    problem: Problem,
    theta: Float[np.ndarray, " p"],
    run: Run,
    hessian: Float[np.ndarray, "p p"] | None = None,
) -> Adequacy:
    """The test at the best parameters of a problem, where the time allows it."""
    if not run.within_budget(adequacy_work(problem.n_values, problem.form.size)):
        return Adequacy(False, reason="the time was up: allow more")
    mean = (problem.whitening.shift - problem.fit_coordinates.shift) @ problem.fit_coordinates.whiten
    seed = run.unseeded().seed_of("looks at the residuals")
    each, grouped = problem.marginal, None  # features are those of single rows
    if hessian is None or each is not problem:
        hessian = each.least_squares.normal_equations(theta)[0].astype(float)
    if problem.rows.n_groups:
        grouped = partial(_grouped_moments, each, theta, hessian)
    return adequacy(problem.fold, problem.form, theta, hessian, problem.n_values, seed, mean, grouped)


def _grouped_moments(
    problem: Problem, theta: np.ndarray, hessian: np.ndarray, fit: FitAndFeatures, known: Projections
) -> list[np.ndarray]:
    """What ``sign_moments`` gives where all rows of a group have one sign."""
    C = root_of_inverse(hessian)
    shifts = GroupedCovariance.of(problem, theta, C @ C.T).shifts
    families = problem.sums(group_sums, fit, known, shifts, by_group=True)
    return [term for sums in families for term in moments_of(sums)]


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


@dataclass(frozen=True, eq=False)
class ProjectedFeatures:
    """One family after the first pass: F~ = (F - J coefficients) scale and V = F~ (factor')^-1."""

    kind: FeatureKind
    coefficients: Float[np.ndarray, "p M"]  # of the projection of F on J
    scale: Float[np.ndarray, " M"]
    gram: Float[np.ndarray, "M M"]  # F~'F~, of unit diagonal
    factor: Float[np.ndarray, "M M"]  # lower triangle of gram + ridge
    cross: Float[np.ndarray, " M"]  # F~'r

    @classmethod
    def of(
        cls,
        kind: FeatureKind,
        C: Float[np.ndarray, "p p"],
        gradient: Float[np.ndarray, " p"],
        gram: Float[np.ndarray, "M M"],
        cross: Float[np.ndarray, "p M"],
        toward: Float[np.ndarray, " M"],
    ) -> ProjectedFeatures:
        """From F'F, J'F, F'r, given J'r, which is zero at a minimum but for rounding and kinks."""
        coefficients = C @ (C.T @ cross)
        left = gram - cross.T @ coefficients
        size = np.diag(left)
        own = size > 1e-10 * np.diag(gram)  # the others lie in the span of J to rounding
        scale = np.where(own, 1 / np.sqrt(np.where(own, size, 1.0)), 0.0)
        left = left * scale[:, None] * scale
        factor = np.linalg.cholesky(left + kind.ridge * np.eye(len(left)))
        return cls(kind, coefficients, scale, left, factor, scale * (toward - coefficients.T @ gradient))

    @property
    def statistic(self) -> float:
        """t = |V'r|^2."""
        return float(np.sum((np.linalg.inv(self.factor) @ self.cross) ** 2))

    @property
    def map(self) -> tuple[Float[np.ndarray, "p M"], Float[np.ndarray, "M M"]]:
        """V = (F - J map[0]) map[1]."""
        return self.coefficients, self.scale[:, None] * np.linalg.inv(self.factor).T

    def result(self, sums: list[np.ndarray], loss: float, variation: float) -> FamilyResult | None:
        """What the family shows; None where it lies in the span of J, or there are no residuals."""
        k1, k2, k3 = sign_cumulants(*sums)
        # Where one row outweighs all others, k2 is a difference of equal numbers: only that row is seen.
        if not (k2 > 1e-10 * sums[2][1] and variation > 0):
            return None
        # What all features explain of r, and of signs at random: |V'r|^2 and k1 for a ridge of zero.
        value, vector = np.linalg.eigh(self.gram)
        kept = value > 1e-6 * value[-1]
        flat = vector[:, kept] / np.sqrt(value[kept])
        scatter = self.factor @ sums[0] @ self.factor.T  # F~'U^2 F~
        explained, by_chance = np.sum((flat.T @ self.cross) ** 2), np.sum((flat.T @ scatter) * flat.T)
        # u^2 holds what is missed, too: by_chance / loss of it is taken for noise, as in an adjusted R^2.
        missed = float(explained - by_chance) / max(1 - float(by_chance) / loss, 0.1)
        t = self.statistic
        share = min(max(missed, t - k1, 0.0) / variation, 1.0)
        return FamilyResult(self.kind, tail(k1, k2, k3, t), share)


def spread_sums(
    network: OneHiddenNet, Z: Inputs, y: Target, weight: Weight, row: Numbers
) -> list[np.ndarray]:
    """The sums over rows of ``equal_spread``, for a network in the coordinates of the rows.

    Squared residuals and predictions p are means over several outputs; the design is (1, p, p², |z|²).
    """
    p = network.predict(Z)
    square = np.mean(weighed(roots(weight, len(Z)), p - y).reshape(len(Z), -1) ** 2, axis=1)
    p = p.reshape(len(Z), -1).mean(axis=1)
    design = np.column_stack([np.ones(len(p)), p, p**2, np.mean(Z**2, axis=1)])
    return [design.T @ design, design.T @ square, np.sum(square), np.sum(square**2)]


def equal_spread(
    gram: Float[np.ndarray, "4 4"], cross: Float[np.ndarray, " 4"], squares: Any, fourths: Any
) -> float:
    """p-value of equal spread: Koenker's version of the Breusch–Pagan test.

    n R² of the regression of r² on the design is chi-square with 3 degrees of freedom whatever the kurtosis
    of r, if the spread of the residuals does not depend on p and |z|.
    """
    n = float(gram[0, 0])
    total = float(fourths) - n * float(squares / n) ** 2
    if total <= 0:
        return 1.0
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    solved = np.linalg.lstsq(gram / np.outer(scale, scale), cross / scale, rcond=1e-13)[0]
    explained = float(solved @ (cross / scale)) - n * float(squares / n) ** 2
    return float(chdtrc(3, n * min(max(explained / total, 0.0), 1.0)))


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
    check, better = dispersion_check(family, samples.y, eta, free, given.trials, level)
    if given.family is None and not better:
        return []
    decisive = errors == "classical" and check.evaluated and given.family is not None
    return [check if decisive or check.about is About.MEAN else replace(check, about=About.NOTE)]
