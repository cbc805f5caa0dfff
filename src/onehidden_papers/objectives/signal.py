"""Which orders of the score moments carry signal, with which sign: the refusal of blind objectives."""

from __future__ import annotations

from functools import cache
from math import factorial

import jax
import numpy as np

from onehidden import activations
from onehidden.activations import Activation

# Quadrature returns an exact zero as rounding of terms up to the size of h_m: far below any true coefficient.
_BLIND = 1e-9


@cache
def sigma(activation: Activation, order: int) -> float:
    """σ_m = E[g(z) h_m(z)], kept, and computed at once even while an objective is being traced."""
    with jax.ensure_compile_time_eval():
        return activation.hermite(order)


def kappa(activation: Activation, order: int) -> float:
    """Expected derivative κ_m = E[g^{(m)}(z)] = √(m!) σ_m, z ~ N(0, 1).

    Parameters
    ----------
    activation : Activation
        The activation g.
    order : int
        The order m.

    Returns
    -------
    float
        κ_m.
    """
    return float(np.sqrt(factorial(order)) * sigma(activation, order))


def seeing_orders(activation: Activation) -> list[int]:
    """Return the orders 1 … 6 whose moment E[y S_m] does not vanish under N(0, I) with b = 0."""
    return [m for m in range(1, 7) if abs(sigma(activation, m)) > _BLIND]


def require_signal(activation: str | Activation, order: int, who: str) -> None:
    """Refuse an order without signal, and name those that have it."""
    g = activations.get(activation)
    if abs(sigma(g, order)) > _BLIND:
        return
    working = [m for m in seeing_orders(g) if m >= 3]
    advice = (
        f"order {working[0]} carries signal: use a start built on the moment of order {working[0]}"
        if working
        else "no order from 3 to 6 does: only the span of the rows can be found from moments"
    )
    raise ValueError(
        f"{who} reads order {order}, but E[g^({order})] = 0 for {g.name} under N(0, 1): "
        f"it would follow noise alone; {advice}"
    )
