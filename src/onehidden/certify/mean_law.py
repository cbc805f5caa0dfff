"""What a network and its family take for granted of the mean of y, as far as the rows alone show it.

They show piles of y and of X, and residuals whose skewness changes with the fit. A piled value is one that
more rows share than digits explain. Rows of rounded numbers share values with their neighbours, too: a pile
is compared with the fullest value beside it, and twice as many are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy.special import bdtrc, chdtrc, stdtr

from onehidden.certify import levels
from onehidden.certify.local_fit import LocalFit
from onehidden.checks import About, Check, at_least
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples


def mean_law_checks(local: LocalFit, given: Problem) -> list[Check]:
    """Checks of y, of X and of the residuals that need no other fit, for rows in memory.

    ``given`` is the problem as it was posed, with its family.
    """
    if not isinstance(given.rows, Samples):
        return []
    found = [*_repeated_values(local, given)]
    if given.family is None or not given.family.discrete:
        found += _ends_of_target(given.rows)
    if given.family is None:
        found.append(_skewness_check(local))
    return found


def _ends_of_target(rows: Samples, fewest: int = 10) -> list[Check]:
    """Whether y is cut off: rows piled on its least or greatest value. Fewer values than this are labels."""
    level, piles, least = levels.PILES.value, [], 1.0
    for column in rows.y.reshape(len(rows), -1).T:
        value, count = np.unique(column, return_counts=True)
        if len(value) < fewest:
            continue
        for word, at, beside in (("floor", value[0], count[1:4]), ("ceiling", value[-1], count[-4:-1])):
            own = count[0] if word == "floor" else count[-1]
            p_value = pile_p_value(own, beside.max())
            least = min(least, p_value)
            if p_value < level:
                piles.append(f"y has a {word} at {at:.4g} ({100 * own / len(rows):.2g} % of the rows)")
    advice = "p-value of so many rows at the least or the greatest value of y"
    if piles:
        advice = (
            f"{' and '.join(piles)}: rows there say only that y is beyond it, and the network bends towards "
            "it; model y before it was cut off, or the share of rows that are not at the end"
        )
    return [at_least("ends of y", least, level, advice, About.MEAN)]


def pile_p_value(own: int, beside: int) -> float:
    """p-value of ``own`` rows at a value whose neighbour has ``beside``, if twice as many are expected."""
    return float(bdtrc(own - 1, own + beside, 2 / 3))


def _repeated_values(local: LocalFit, given: Problem) -> Iterator[Check]:
    """A value that many rows of a column share whose others hardly repeat: a filled gap, or a zero.

    It fails a check of the fit where those rows behave differently from those with values next to it.
    """
    rows = given.rows
    assert isinstance(rows, Samples)
    level, residual = levels.PILES.value, local.residuals
    for name, column in zip(rows.names, rows.X.T, strict=True):
        value, count = np.unique(column, return_counts=True)
        full = int(np.argmax(count))
        own, others = int(count[full]), len(rows) - int(count[full])
        beside = int(np.max(np.delete(count, full), initial=0))
        if len(value) - 1 < 0.5 * others or others < own or not pile_p_value(own, beside) < level:
            continue
        there = column == value[full]
        p_value = _differs(residual, there, np.abs(column - value[full]))
        what = f"{own} rows have {name} = {value[full]:.4g}, and hardly another value of it repeats"
        differs = "y spreads or lies differently there: gaps that were filled in? leave them out"
        advice = f"{what}; {differs if p_value < level else 'y behaves as beside it'}"
        yield at_least(f"repeated {name}", p_value, level, advice, About.MEAN)


def _differs(residual: Float[np.ndarray, "n q"], there: np.ndarray, distance: np.ndarray) -> float:
    """p-value of residuals at a pile like those of the twice as many nearest rows, by mean and by size."""
    m = int(there.sum())
    near = np.argsort(np.where(there, np.inf, distance), kind="stable")[: min(2 * m, int((~there).sum()))]
    found = []
    for r in residual.T:
        for values in (r, np.abs(r)):
            mine, other = values[there], values[near]
            variance = np.array([np.var(one, ddof=1) / len(one) for one in (mine, other)])
            total = float(variance.sum())
            if total > 0:
                freedom = total**2 / float(np.sum(variance**2 / [len(mine) - 1, len(other) - 1]))
                t = abs(float(mine.mean() - other.mean())) / np.sqrt(total)
                found.append(2 * float(stdtr(freedom, -t)))
    return min(1.0, len(found) * min(found, default=1.0))


def _skewness_check(local: LocalFit) -> Check:
    """Whether the skewness of the residuals changes with the fitted value, several outputs together."""
    rows = local.problem.samples
    fitted = local.network.predict(rows.X).reshape(len(rows), -1)
    z = [skewness_drift(r, f) for r, f in zip(local.residuals.T, fitted.T, strict=True)]
    p_value = float(chdtrc(len(z), np.sum(np.square(z))))
    advice = "p-value of residuals whose skewness does not change with the fitted value"
    if not p_value >= levels.SKEWNESS.value:
        advice = (
            "the skewness of the residuals changes with the fitted value: y may be measured on another "
            "scale (counts, logarithms), be cut off, or have lost rows because of its value"
        )
    return at_least("skewness", p_value, levels.SKEWNESS.value, advice, About.MEAN)


def skewness_drift(
    residual: Float[np.ndarray, " n"], fitted: Float[np.ndarray, " n"], clip: float = 3.0, reach: float = 2.5
) -> float:
    """Standardised sum of third powers of the residuals times the fitted value; normal where none drifts.

    Residuals are divided by a standard deviation that is exponential in the fitted value, cut off at ``clip``
    and freed of what a shift of the mean would add; fitted values are cut off at ``reach`` deviations.
    """
    spread = float(np.std(fitted))
    if not spread > 0 or not np.any(residual):
        return 0.0
    f = (fitted - fitted.mean()) / spread
    z = residual / _deviations(residual, f)
    z = z / np.sqrt(np.mean(z**2))
    cut = np.clip(z, -clip, clip)
    u = cut**3 - 3 * np.mean(cut**2 * (np.abs(z) < clip)) * z
    along = np.clip(f, -reach, reach)
    terms = (along - along.mean()) * (u - u.mean())
    size = float(np.sqrt(np.sum(terms**2)))
    return float(np.sum(terms)) / size if size > 0 else 0.0


def _deviations(
    residual: Float[np.ndarray, " n"], f: Float[np.ndarray, " n"], steps: int = 15
) -> Float[np.ndarray, " n"]:
    """Standard deviations exp(a + b f) by Fisher scoring; a row counts as three deviations at most."""
    design = np.column_stack([np.ones(len(f)), f])
    beta = np.array([0.5 * np.log(np.mean(residual**2)), 0.0])
    gram = design.T @ design
    for _ in range(steps):
        square = np.minimum(residual**2 * np.exp(-2 * design @ beta), 9.0)
        beta = beta + np.linalg.solve(gram, design.T @ (square - 1)) / 2
    return np.exp(design @ beta)
