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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    Projected,
    cross_moments,
    moments_of,
    random_features,
    sign_moments,
)
from onehidden.checks import About, Check, at_least
from onehidden.families import Gaussian
from onehidden.families.dispersion import dispersion_check
from onehidden.fit.parametrisation import roots, weighed
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Inputs, Numbers, Samples, Target, Weight
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden.run import Run, derived_seed, stream


@dataclass(frozen=True)
class Adequacy:
    """Whether the residuals still carry something that the network misses."""

    evaluated: bool  # if not, ``reason`` says why
    p_value: float = float("nan")  # of so much in the residuals when nothing is missed
    missed_share: float = 0.0  # unbiased for what is in the span of one family; other parts come on top
    families: Mapping[FeatureKind, float] = field(default_factory=dict)  # p-value by each
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


@in_double
def adequacy(
    problem: Problem,
    theta: Float[np.ndarray, " p"],
    run: Run,
    hessian: Float[np.ndarray, "p p"] | None = None,
    seed: int = 0,
    least: int = 5,
    most_signs: int = 64,
) -> Adequacy:
    """Test the residuals in two passes over the rows, where the time allows it; ``hessian`` is J'J at theta.

    Fewer than ``least`` rows beyond the parameters leave no feature. Of few signs (groups, or rows in memory)
    the law is that of the signs themselves. With 4 parameters the size at .05 is .03 to .05 for n = 14 to 30
    rows of normal noise at two or more levels, .01 to .03 of t3 noise, and 0 for fewer rows.
    """
    form, n, each = problem.form, problem.n_values, problem.marginal  # features are those of single rows
    p, free, size = form.size, n - form.freedom, feature_count(n, max(n - form.size, 0))
    if not run.within_budget(4.0 * n * (p + 3 * size) * (p + size)):  # two passes over J and three families
        return Adequacy(False, reason="the time was up: allow more")
    if free < least:
        reason = f"{n} rows leave {free} beyond the {form.freedom} parameters, and {least} are needed"
        return Adequacy(False, reason=reason)
    if hessian is None or each is not problem:
        hessian = each.least_squares.normal_equations(theta)[0].astype(float)
    mean = (problem.whitening.shift - problem.fit_coordinates.shift) @ problem.fit_coordinates.whiten
    of_features = derived_seed(seed, "solver", "looks at the residuals")
    drawn = random_features(form.activation, mean, feature_count(n, free), of_features, form.outputs)
    fit = FitAndFeatures(form, theta, (*drawn, FittedCurves(form, theta)))
    (mass, total, square), loss, gradient, *first = problem.sums(cross_moments, fit)
    C, variation = root_of_inverse(hessian), float(square - total**2 / mass)
    projected = [
        Projected.of(family.kind, C, gradient, *first[3 * i : 3 * i + 3])
        for i, family in enumerate(fit.families)
    ]
    groups, alone = problem.rows.n_groups, isinstance(problem.rows, Samples) and problem.n <= most_signs
    count = groups or (problem.n if alone else 0)  # of signs: all rows of a group have one
    shifts = GroupedCovariance.of(each, theta, C @ C.T).shifts if groups else None
    by_sign = problem.sums(sign_moments, fit, C, projected, count, shifts, by_group=groups > 0)
    second = moments_of(*by_sign) if count else by_sign
    found, few = dict[FeatureKind, tuple[float, float]](), list[tuple[float, np.ndarray]]()
    for i, one in enumerate(projected):
        shown = _shown(one, second[3 * i : 3 * i + 3], float(loss), variation)
        if shown is not None:
            found[one.kind] = shown
            few.append((one.statistic, by_sign[i]))
    if not found:
        reason = "the fit leaves no residuals, or no further function differs from it"
        return Adequacy(False, reason=reason)
    least_p, share = min(found.values(), key=lambda result: (result[0], -result[1]))
    # The smallest of nearly independent p-values; exact for independent ones, cautious for dependent ones.
    p_value = float(-np.expm1(len(found) * np.log1p(-min(least_p, 1 - np.finfo(float).epsneg))))
    if 0 < count <= most_signs:
        p_value = by_signs(few, p_value)
    missed_share = share if p_value < levels.LEFT_OVER.value else 0.0
    return Adequacy(True, p_value, missed_share, {kind: result[0] for kind, result in found.items()})


def by_signs(
    families: Sequence[tuple[float, Float[np.ndarray, "m M"]]],
    otherwise: float,
    most: int = 4096,
    enough: int = 20,
) -> float:
    """The p-value of the smallest of the families' p-values, all under the same m signs.

    A family is its statistic and the rows that signs multiply. Every choice of signs is taken, or where they
    are more than ``most`` so many at random: then fewer than ``enough`` that reach the smallest say less of
    the tail than the cumulants do (``otherwise``).
    """
    m = len(families[0][1])
    every = 2 ** (m - 1) <= most  # all signs reversed give the same
    if every:
        signs = 1.0 - 2 * ((np.arange(2 ** (m - 1))[:, None] >> np.arange(m)) & 1)
    else:
        signs = stream(0, "signs of residuals").choice([-1.0, 1.0], (most, m))
    # No order of the rows moves what is drawn.
    order = np.argsort(sum(np.sum(rows**2, axis=1) for _, rows in families))
    smallest, own = np.full(len(signs), len(signs)), len(signs)
    for statistic, rows in families:
        values = np.sum((signs @ rows[order]) ** 2, axis=1)
        ascending = np.sort(values) * (1 - 1e-9)
        smallest = np.minimum(smallest, len(values) - np.searchsorted(ascending, values * (1 - 2e-9)))
        own = min(own, len(values) - int(np.searchsorted(ascending, statistic * (1 - 2e-9))))
    reached = max(int(np.sum(smallest <= own)), 1)
    found = reached / len(signs)
    return found if every or reached >= enough else min(found, otherwise)


def _shown(
    one: Projected, sums: list[np.ndarray], loss: float, variation: float
) -> tuple[float, float] | None:
    """The p-value of a family, and the share of var(y) that it shows to be missed.

    None where it lies in the span of J, or there are no residuals.
    """
    k1, k2, k3 = sign_cumulants(*sums)
    # Where one row outweighs all others, k2 is a difference of equal numbers: only that row is seen.
    if not (k2 > 1e-10 * sums[2][1] and variation > 0):
        return None
    # What all features explain of r, and of signs at random: |V'r|^2 and k1 for a ridge of zero.
    value, vector = np.linalg.eigh(one.gram)
    kept = value > 1e-6 * value[-1]
    flat = vector[:, kept] / np.sqrt(value[kept])
    scatter = one.factor @ sums[0] @ one.factor.T  # F~'U^2 F~
    explained, by_chance = np.sum((flat.T @ one.cross) ** 2), np.sum((flat.T @ scatter) * flat.T)
    # u^2 holds what is missed, too: by_chance / loss of it is taken for noise, as in an adjusted R^2.
    missed = float(explained - by_chance) / max(1 - float(by_chance) / loss, 0.1)
    t = one.statistic
    share = min(max(missed, t - k1, 0.0) / variation, 1.0)
    return tail(k1, k2, k3, t), share


def feature_count(n: int, free: int, most: int = 150, fewest: int = 64, work: float = 2e9) -> int:
    """Functions M of each family for n rows, ``free`` of them beyond the parameters.

    The size of the test holds from n = 40 on with a fifth of the free rows. 3 x 150 functions cost two or
    three evaluations of J'J at 400 parameters. Where n M^2 exceeds ``work``, there are fewer.
    """
    return min(most, free // 5, max(fewest, int(np.sqrt(work / n))))


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
