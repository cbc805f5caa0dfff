"""Each question to an answer alone as a check: its value, its bound, what it means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.certify.adequacy import Adequacy
from onehidden.certify.dependence import dependence_p_value
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.local_fit import LocalFit
from onehidden.certify.patterns import Patterns, rows_needed
from onehidden.certify.units import CLEAR_OF_ZERO, in_errors
from onehidden.checks import About, Check, at_least, at_most, not_asked
from onehidden.families import Gaussian
from onehidden.families.dispersion import dispersion_check, dispersion_test
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples

MISSED_P = 0.01  # a right answer is said to miss something once in a hundred, whatever the noise
DEPENDENT_P = 0.01  # independent rows are called dependent once in a hundred
# Robust errors are right for equal noise, too: the usual level costs a little width in 1 of 20.
SPREAD_P = 0.05
_SAME = (
    1e-9  # standard deviations within which two numbers are one: copies are often written with less digits
)
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads keys of rows


def fit_check(local: LocalFit, missed: Adequacy | None) -> Check:
    if missed is None:
        bound = local.problem.rows.rounding.exact
        rms = float(np.sqrt(local.mean_square))
        return at_most("fit", rms, bound, "the network reproduces y to rounding", About.FIT)
    if not missed.asked:
        return not_asked(
            "fit", MISSED_P, f"whether something is missed could not be asked: {missed.reason}", About.FIT
        )
    return at_least(
        "fit",
        missed.p_value,
        MISSED_P,
        "p-value of noise as the only thing left in the residuals; below the bound the network misses "
        "something: more units, another activation, biases, or another start",
        About.FIT,
    )


def order_checks(local: LocalFit) -> list[Check]:
    """Asked of rows in memory, whose order is known."""
    problem = local.problem
    if not isinstance(problem.rows, Samples):
        return []
    targets = problem.rows.y.reshape(problem.n, -1).T
    found = [dependence_p_value(residual, y) for residual, y in zip(local.residuals.T, targets, strict=True)]
    asked = [p for p in found if p is not None]
    p_value = min(1.0, len(asked) * min(asked, default=1.0))  # the smallest of several outputs' (Bonferroni)
    if not asked:
        why = "the order of the rows says nothing: they are few, or sorted by y"
        return [not_asked("independent rows", DEPENDENT_P, why)]
    return [
        at_least(
            "independent rows",
            p_value,
            DEPENDENT_P,
            "p-value of residuals that do not depend on those of the rows before; below the bound "
            "neighbouring rows are not independent evidence and the standard errors are too small: add the "
            "column that orders or groups the rows, or keep one row of each group",
            About.ERRORS,
        )
    ]


def local_checks(local: LocalFit, patterns: Patterns, errors: ParameterRecord, nothing: float) -> list[Check]:
    bend, exact, form = local.bend, local.exact, local.problem.form
    found = [
        at_most(
            "gradient",
            local.cosine,
            _gradient_bound(local.n, form.activation.kinked),
            "largest cosine between the residuals and a column of the Jacobian, against a twentieth of a "
            "standard error; if above, the descent has not ended: allow more time",
            About.SEARCH,
        ),
        at_least(
            "smallest curvature",
            float(bend.values[0] / max(bend.values[-1], np.finfo(float).tiny)),
            1e-10,
            "the flattest direction of the loss against the steepest; below the bound some combination of "
            "parameters is not determined by these rows",
            About.UNITS,
        ),
        at_least(
            "identifiability",
            float(bend.rank),
            float(bend.freedom),
            "rank of the Jacobian against the number of free parameters; a gap means that different networks "
            "fit these rows equally well",
            About.UNITS,
        ),
        _weakest_unit(local, patterns, errors, nothing),
    ]
    if form.activation.homogeneity is not None:
        found += _switched(patterns, form.d)
    numbers = distinct_rows(local.problem) * form.q if exact else local.numbers
    found.append(
        at_least(
            "samples per parameter",
            numbers / bend.freedom,
            1.0 + 1 / bend.freedom if exact else 4.0,  # as many as parameters fit noise to rounding
            "no more samples than parameters cannot tell networks apart, and copies of a row are one; with "
            "noise, fewer than four each cannot tell noise from a wrong network",
            About.DATA,
        )
    )
    return found


def _weakest_unit(local: LocalFit, patterns: Patterns, errors: ParameterRecord, nothing: float) -> Check:
    """A unit that adds nothing has no direction to recover: each must stand clear of zero."""
    advice = "a unit that adds nothing to y has no direction to speak of"
    if local.exact:
        return at_least("weakest unit", float(np.min(patterns.spread)), nothing, advice, About.UNITS)
    clear = in_errors(local.network.output, errors.output)
    return at_least("weakest unit", float(np.min(clear)), CLEAR_OF_ZERO, advice, About.UNITS)


def _switched(patterns: Patterns, d: int) -> list[Check]:
    """A homogeneous unit that all rows see from one side is a polynomial there, whatever the rank says."""
    return [
        at_least(
            "switched units",
            float(np.min(patterns.beyond)),
            1.0,
            "fewest rows on the lesser side of a unit; with none it acts as a polynomial and could be "
            "another unit, or none",
            About.UNITS,
        ),
        at_least(
            "units apart",
            float(patterns.closest()[0]),
            float(rows_needed(d)),
            "fewest rows that see one of two units switch and not the other, against the numbers of an "
            "affine function; below, other units fit these rows as well",
            About.NOTE,  # the units concerned are named one by one
        ),
    ]


def _gradient_bound(n: int, kinked: bool) -> float:
    """A twentieth of a standard error; at a kink the gradient jumps by whole rows, about 1/n each."""
    return max(0.05 / np.sqrt(n), 20 / n if kinked else 0.0)


def family_checks(local: LocalFit, asked: Problem, errors: str) -> list[Check]:
    """Whether y spreads about its mean as its family says; of normal noise told only where a family would.

    What classical errors rest on is decisive where they were asked for; else robust ones take their place.
    """
    if not isinstance(asked.rows, Samples):
        return []
    samples, free = asked.rows, local.numbers - local.freedom
    eta = local.network.predict(samples.X) + asked.offsets
    family = Gaussian("identity") if asked.family is None else asked.family
    found = dispersion_check(family, samples.y, eta, free, asked.trials)
    if asked.family is None and dispersion_test(family, samples.y, eta, free).suggestion == "":
        return []
    decisive = errors == "classical" and found.asked and asked.family is not None
    return [replace(found, about=About.ERRORS if decisive else About.NOTE)]


def repeated_rows(problem: Problem) -> list[Check]:
    """Asked of rows in memory: whole rows, noise and all, that are copies of another."""
    if not isinstance(problem.rows, Samples):
        return []
    rows = problem.rows
    copies = 1 - _different(np.column_stack([rows.X, rows.y]).T) / len(rows)
    return [
        at_most(
            "repeated rows",
            copies,
            0.02,
            "share of rows that are copies of another, noise and all; copies are no evidence: drop them or "
            "give each distinct row its count as sample_weight",
            About.DATA,
        )
    ]


def distinct_rows(problem: Problem) -> int:
    """Rows of inputs that differ by more than rounding; of rows that are not in memory all.

    Where units have no biases and are odd or even, a row and its mirror image are one.
    """
    if not isinstance(problem.rows, Samples):
        return problem.n
    X = problem.rows.X
    spread = X.std(axis=0)
    grain = _SAME * np.where(spread > 0, spread, 1.0)
    turn = np.ones(len(X))
    if problem.activation.sign_free and not problem.form.bias:
        turn = np.zeros(len(X))
        for column, step in zip(X.T, grain, strict=True):
            turn = np.where(turn == 0, np.sign(np.round(column / step)), turn)
    return _different(np.round(turn * column / step) for column, step in zip(X.T, grain, strict=True))


def _different(columns: Iterable[Float[np.ndarray, " n"]]) -> int:
    """How many rows of these columns differ."""
    keys = np.zeros(1, np.uint64)
    for column in columns:
        # Each step is one to one in the key and in the column: equal rows, and by chance 2^-64 others, agree.
        keys = (keys ^ np.ascontiguousarray(column + 0.0).view(np.uint64)) * _ODD
        keys ^= keys >> np.uint64(32)
    return len(np.unique(keys))


def spread_check(p_value: float, errors: str, robust: bool) -> Check:
    """Whether the noise is as large everywhere; only classical errors need it to be."""
    if errors == "classical":
        return at_least(
            "equal spread",
            p_value,
            SPREAD_P / 50,
            "p-value of noise as large everywhere; below the bound the standard errors are wrong: use "
            "errors='robust', or sample_weight if you know where the noise is large",
            About.ERRORS,
        )
    used = "sandwich" if robust else "classical"
    return at_least(
        "equal spread", p_value, SPREAD_P, f"p-value of noise as large everywhere; standard errors are {used}"
    )


def columns_check(problem: Problem) -> list[Check]:
    """Whether the columns of X are independent, asked where they are not."""
    coordinates, names = problem.end, problem.rows.names
    if coordinates.null.shape[1] == 0:
        return []
    size = np.abs(coordinates.null).max(axis=1) * coordinates.unwhiten.std(axis=0)
    involved = np.flatnonzero(size > 1e-6 * size.max())
    named = ", ".join(names[j] for j in involved[:4]) + (" and others" if len(involved) > 4 else "")
    return [
        at_least(
            "independent columns",
            float(coordinates.rank),
            float(len(coordinates.shift)),
            f"the columns {named} are linearly dependent: their weights cannot be told apart; leave one out",
            About.COLUMNS,
        )
    ]
