"""Two models of the same rows that do not contain one another: which loses less, and is the difference real?

Vuong (1989) with Takeuchi's charge for the parameters: n log(loss) is no likelihood ratio under unequal
noise, but a difference of losses has a standard error of its own, row by row, whatever the noise is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, ndtri

LEVEL = 0.01  # two-sided: the losing model is called worse by chance in at most so many of equal ones


@dataclass(frozen=True)
class Vuong:
    """A comparison of two models.

    Attributes
    ----------
    gain : log-likelihood by which the first is better, each charged its freedom; negative: the second is.
    standard_error : of the gain, from its rows.
    p_value : two-sided, of so large a gain between equally good models.
    verdict : the better one, or a tie at ``LEVEL``.
    """

    gain: float
    standard_error: float
    p_value: float
    verdict: Literal["first", "second", "tie"]

    @property
    def deviations(self) -> float:
        """The gain in standard deviations of it; zero where there is neither."""
        if self.standard_error > 0:
            return self.gain / self.standard_error
        return 0.0 if self.gain == 0 else float(np.copysign(np.inf, self.gain))


def vuong(
    residual_a: Float[np.ndarray, "n ..."],
    residual_b: Float[np.ndarray, "n ..."],
    freedom_a_trace: float,
    freedom_b_trace: float,
    level: float = LEVEL,
    dispersion: float | None = None,
) -> Vuong:
    r"""Compare two fits of the same rows by their Gaussian log-losses, each with its own variance.

    .. math:: G = \frac n2 \log\frac{s_b^2}{s_a^2} - (t_a - t_b), \quad
        \mathrm{se}^2 = \sum_i (m_i - \bar m)^2, \quad
        m_i = \frac{r_{b,i}^2}{2 s_b^2} - \frac{r_{a,i}^2}{2 s_a^2},

    with t = tr(H^-1 S) of each (``Tangent.freedom``). Models whose functions coincide have differences of the
    order of their freedoms, not of sqrt(n): there the charge, not the normal law, decides, and the simpler
    one may be called better. Measured in ``benchmarks/results/further_unit.md``.

    Parameters
    ----------
    residual_a, residual_b : (n,) or (n, q) residuals of the two fits, row by row; of a family the roots of
        the unit deviances.
    freedom_a_trace, freedom_b_trace : their charges.
    level : two-sided level of the verdict.
    dispersion : s^2 of both where it is known: the losses are then compared as they are, without logarithm.
    """
    a, b = np.asarray(residual_a, float), np.asarray(residual_b, float)
    if a.shape != b.shape or a.ndim not in (1, 2):
        raise ValueError(f"expected residuals of the same rows, got shapes {a.shape} and {b.shape}")
    mean_a, mean_b = float(np.mean(a**2)), float(np.mean(b**2))
    if mean_a == 0 or mean_b == 0:  # an exact fit: no likelihood, but no doubt either
        if mean_a == mean_b:
            return Vuong(0.0, 0.0, 1.0, "tie")
        return Vuong(np.inf, 0.0, 0.0, "first") if mean_a == 0 else Vuong(-np.inf, 0.0, 0.0, "second")
    if dispersion is not None:
        ahead, mean_a, mean_b = 0.5 * a.size * (mean_b - mean_a) / dispersion, dispersion, dispersion
    else:
        ahead = 0.5 * a.size * float(np.log(mean_b / mean_a))
    gain = ahead - (freedom_a_trace - freedom_b_trace)
    rows = 0.5 * (b**2 / mean_b - a**2 / mean_a).reshape(len(a), -1).sum(axis=1)
    error = float(np.std(rows) * np.sqrt(len(a)))
    p_value = 2 * float(ndtr(-abs(gain) / error)) if error > 0 else float(gain == 0)
    sure = abs(gain) > -float(ndtri(level / 2)) * error
    return Vuong(gain, error, p_value, ("first" if gain > 0 else "second") if sure else "tie")
