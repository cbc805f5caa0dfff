"""Does the network miss something? One test with the right size under equal and unequal noise.

Let r be the residuals, J their Jacobian, P its projection, h the leverages, F random functions (a look) and
F~ = (I - P) F scaled to a unit diagonal of F~'F~. The statistic is what a ridge fit of r by F~ explains,

    t = r' F~ (F~'F~ + rho I)^-1 F~' r = |V'r|^2,

and it is held against its law when every residual keeps its size and loses its sign: |V'(eps u)|^2 with
u_i = r_i / sqrt(1 - h_i) and independent signs eps. That law needs no draws. With A = diag(u) V V' diag(u)
and D_i = A_ii its first three cumulants are exactly

    k1 = sum D,   k2 = 2 (tr A^2 - sum D^2),   k3 = 8 (tr A^3 - 3 sum D_i (A^2)_ii + 2 sum D^3),

all of them sums over rows of (M, M) matrices, and a shifted gamma law with these cumulants gives the p-value.
Rows in memory, a stream and a cluster give the same number up to rounding, whatever the order of the rows.
Unequal noise is in u; without the diagonal k2 is unbiased, and the size is right with many functions (the
plain law of a weighted sum of chi-squares counts it and loses half the power).

Left out are the sign law of r'r as a denominator (for p parameters, M functions and n rows it changes k2 by a
part of order pM/n^2) and cumulants from the fourth on. Against 10^6 sign draws at n = 60 ... 1000, with
equal, unequal and t3 noise, the true p-value is 0.76-1.1 times the given one at 1e-2, 0.4-1.2 times at 1e-3
and 0.1-1.25 times at 1e-4: an extreme p-value errs towards caution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from onehidden.certify.look_sums import Lens, Projection, Total, View, cross_moments, lens, sign_moments
from onehidden.certify.looks import Kind, looks
from onehidden.fit.form import Form
from onehidden.precision import in_double

FEATURES = 150  # functions a look at most: 3 x 150 cost two or three evaluations of J'J at 400 parameters
FEWEST = 64  # functions a look that any number of rows affords
WORK = 2e9  # rows x functions^2 of a look from which on there are fewer: 90 000 rows with 150
PER_FEATURE = 5  # rows beyond the parameters for each function of a look; size holds from n = 40 on
ENOUGH = 25  # rows beyond the parameters: with fewer a look has five functions and no power worth asking
SHOWN = 0.05  # p-value from which on the data show nothing missed


@dataclass(frozen=True)
class LookResult:
    """What one look saw: excess (t - k1) / sqrt(k2), its p-value, and the share of var(y) it shows missed."""

    kind: Kind
    excess: float
    p_value: float
    share: float


@dataclass(frozen=True)
class Adequacy:
    """Whether the residuals still carry something that the network misses.

    Attributes
    ----------
    asked : whether the question could be asked; if not, ``reason`` says why and the numbers are NaN.
    p_value : probability of so much in the residuals when nothing is missed and rows are independent.
    left_over : share of var(y) that the data show to be missed, 0 unless p_value < SHOWN. Unbiased for the
        part that lies in the span of one look; what lies outside comes on top.
    excess : of the look that saw most, in standard deviations of its law.
    features : functions in each look.
    looks : what each look saw.
    """

    asked: bool
    p_value: float
    left_over: float
    excess: float
    features: int
    looks: tuple[LookResult, ...] = ()
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
    from scipy.special import gammaincc, ndtr

    z, skew = (t - k1) / np.sqrt(k2), k3 / k2**1.5
    if skew < 1e-3:
        return float(ndtr(-z))
    shape = 4 / skew**2
    return float(gammaincc(shape, max(shape + z * np.sqrt(shape), 0.0)))


@in_double
def adequacy(
    fold: Callable[[Callable[[], Total]], Total],
    form: Form,
    theta: Float[np.ndarray, " p"],
    hessian: Float[np.ndarray, "p p"],
    n: int,
    seed: int = 0,
    centre: Float[np.ndarray, " d"] | None = None,
) -> Adequacy:
    """The test, in two passes over the rows.

    Parameters
    ----------
    fold : ``fold(make)`` is an accumulator from ``make()`` that has seen all rows, in theta's coordinates.
    form, theta : the fit; its inputs have unit covariance.
    hessian : J'J at theta.
    n : rows, times outputs.
    seed : of the random functions.
    centre : mean of the inputs in these coordinates, zero when None.
    """
    free = n - form.freedom
    if free < ENOUGH:
        return unasked(f"{n} rows leave {free} beyond the {form.freedom} parameters, and {ENOUGH} are needed")
    size = functions(n, free)
    middle = np.zeros(form.d) if centre is None else np.asarray(centre, float)
    view = View(form, np.asarray(theta, float), looks(form.activation, middle, size, seed, form.outputs))
    of_y, gradient, *first = fold(partial(Total, view, cross_moments)).result()
    onto = Projection.of(hessian)
    lenses = [lens(look, onto, gradient, first[3 * i : 3 * i + 3]) for i, look in enumerate(view.looks)]
    glasses = tuple(one.glass for one in lenses)
    terms = partial(sign_moments, leverages=onto.leverages(seed), glasses=glasses)
    second = fold(partial(Total, view, terms)).result()
    mass, mean, square, loss = (float(v) for v in of_y)
    results = [
        _seen(look.kind, one, second[3 * i : 3 * i + 3], loss, square - mean**2 / mass)
        for i, (look, one) in enumerate(zip(view.looks, lenses, strict=True))
    ]
    seen = tuple(result for result in results if result is not None)
    if not seen:
        return unasked("the fit leaves no residuals, or no further function differs from it")
    best = min(seen, key=lambda result: (result.p_value, -result.excess))
    # The smallest of nearly independent p-values; exact for independent ones, cautious for dependent ones.
    p_value = float(-np.expm1(len(seen) * np.log1p(-min(best.p_value, 1 - 1e-16))))
    return Adequacy(True, p_value, best.share if p_value < SHOWN else 0.0, best.excess, size, seen)


def adequacy_work(n: int, p: int) -> float:
    """Operations of the test for n rows and p parameters: two passes over J and three looks."""
    size = functions(n, max(n - p, 0))
    return 4.0 * n * (p + 3 * size) * (p + size)


def functions(n: int, free: int) -> int:
    """M of each look for n rows, ``free`` of them beyond the parameters."""
    return min(FEATURES, free // PER_FEATURE, max(FEWEST, int(np.sqrt(WORK / n))))


def _seen(kind: Kind, one: Lens, sums: list[np.ndarray], loss: float, variation: float) -> LookResult | None:
    """What a look saw; None where nothing of it lies outside the span of J, or there are no residuals."""
    k1, k2, k3 = sign_cumulants(*sums)
    # Where one row outweighs all others, k2 is a difference of equal numbers: the look sees that row only.
    if not (k2 > 1e-10 * sums[2][1] and variation > 0):
        return None
    t = float(np.sum((one.root.T @ one.toward) ** 2))
    explained, by_chance = _unshrunk(one, sums[0])
    # u^2 holds what is missed too: a share by_chance / loss of it is taken for noise, as in an adjusted R^2.
    missed = (explained - by_chance) / max(1 - by_chance / loss, 0.1)
    share = min(max(missed, t - k1, 0.0) / variation, 1.0)
    return LookResult(kind, float((t - k1) / np.sqrt(k2)), tail(k1, k2, k3, t), share)


def unasked(reason: str) -> Adequacy:
    """The test that could not be asked, and why."""
    nan = float("nan")
    return Adequacy(False, nan, nan, nan, 0, (), reason)


def _unshrunk(one: Lens, second: np.ndarray) -> tuple[float, float]:
    """|V'r|^2 and k1 for rho = 0: what all functions explain of r, and of signs at random."""
    value, vector = np.linalg.eigh(one.gram)
    kept = value > 1e-6 * value[-1]
    flat = vector[:, kept] / np.sqrt(value[kept])
    scatter = one.factor @ second @ one.factor.T  # F~'U^2 F~
    return float(np.sum((flat.T @ one.toward) ** 2)), float(np.sum((flat.T @ scatter) * flat.T))
