"""y log(y/mu) - y + mu: the one function of which every deviance here is made.

Half a unit deviance is

    Poisson            D(y, mu)
    negative binomial  D(y, mu) - D(y + 1/alpha, mu + 1/alpha)
    Bernoulli          D(y, p) + D(1 - y, 1 - p)
    softmax            the sum of D(y_c, p_c) over classes
    gamma              D(1, y/mu)

and D >= 0 is a small difference of large numbers where y is near mu: with y = 10^9 the plain formula is off
by a millionth a row, as much as a comparison of models over 10^5 rows can bear.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

LIMIT = 700.0  # e^700 = 10^304: beyond it doubles overflow
NEAR = 0.1  # |mu/y - 1| up to which the series is used: there the plain formula has lost one digit
# With s = t/(2 + t):  t - log(1 + t) = 2 s^2/(1 - s) - 2 s^3 (1/3 + s^2/5 + s^4/7 + ...), s^14 < eps at NEAR.
_SERIES = np.array([1 / (2 * j + 3) for j in range(7)])[::-1]


def exponential(t: Float[np.ndarray, "*rows"]) -> Float[np.ndarray, "*rows"]:
    """e^t, with t held to [-700, 700]."""
    return np.exp(np.clip(t, -LIMIT, LIMIT))


def divergence(
    y: Float[np.ndarray, "*rows"], mu: Float[np.ndarray, "*rows"], log_mu: Float[np.ndarray, "*rows"]
) -> Float[np.ndarray, "*rows"]:
    """D(y, mu) = y log(y/mu) - y + mu >= 0 for y >= 0; mu where y = 0.

    Parameters
    ----------
    log_mu : log of mu, which may say more than mu does where mu has underflowed.
    """
    some = np.where(y > 0, y, 1.0)
    t = (mu - some) / some
    near = np.abs(t) <= NEAR
    t = np.where(near, t, 0.0)
    s = t / (2 + t)
    close = 2 * s**2 / (1 - s) - 2 * s**3 * np.polyval(_SERIES, s**2)
    plain = some * (np.log(some) - log_mu) - (some - mu)
    return np.where(y > 0, np.where(near, some * close, plain), mu)
