"""Which orders of score moments the tensor start may use: those seen on rows that chose nothing.

An order counts as seen where |T_m|² stands ``SIGNAL`` standard deviations above noise alone; where the data
are too few to tell, the activation under N(0, I) does.
"""

from __future__ import annotations

from onehidden.activations import Activation
from onehidden.moments.in_subspace import Moment, contracted_fourth, moment, moments_inside
from onehidden.moments.score_protocol import Score
from onehidden.moments.weighting import effective_rows
from onehidden.refused import Refused
from onehidden.starts.described_rows import Rows, Subspace
from onehidden.starts.subspace import find_subspace, first_basis, transfer
from onehidden.streams import stream

SIGNAL = 3.0  # z-value at which an order counts as seen
LARGEST_DENSE = 40  # beyond this k, order 4 is contracted with random directions instead of kept as k^4


def held_out_signals(rows: Rows, k: int, g: Activation, seed: int) -> tuple[int, dict[int, float]]:
    """j_2 and the z-value of every order, on rows that did not choose the directions.

    Directions chosen on the same rows would lend every order a share of their fit.
    """
    n, d = rows.X.shape
    count = min(n, 12 * k * d + 6000)
    chosen, held = rows.part(slice(0, count // 2)), rows.part(slice(count // 2, count))
    random = stream(seed, "tensor start", "signals")
    linear = chosen.linear_fit(chosen.centred, None, 30)
    # On the held-out half the linear part is its own: order 2 and 3 must not see it.
    other = held.centred - held.X @ held.linear_fit(held.centred, None, 30)
    seen: dict[int, float] = {}
    order = 0
    for m in (2, 3):
        V = first_basis(chosen, chosen.centred - chosen.X @ linear, k, m, linear, random)
        seen[m] = moment(held.X, other, V, m, held.score, held.weight).signal
        if seen[m] >= SIGNAL:
            order = m
            break
    if order == 0:
        order = _order_of_the_activation(seen, g, effective_rows(rows.weight, n) / (k * d))
    found = find_subspace(chosen.X, chosen.y, k, order, seed, chosen.score, weight=chosen.weight)
    span = transfer(held, found)
    orders = (1, 2, 3, 4) if k <= LARGEST_DENSE else (1, 2, 3)
    signals = {m: one.signal for m, one in moments_of(held, span, orders, fitted=0).items()}
    if 4 not in signals:
        signals[4] = max(piece.signal for piece in contractions_of(held, span, 2, seed))
    return order, signals


def _order_of_the_activation(seen: dict[int, float], g: Activation, samples: float) -> int:
    """Nothing stands out of the noise: where the data could not tell, the activation under N(0, I) does."""
    known = [m for m in (2, 3) if abs(g.hermite(m)) > 1e-6]
    if not known or samples >= 100:
        raise Refused(
            f"no usable order: the moments of order 2 and 3 have signals z = {seen[2]:.1f} and {seen[3]:.1f} "
            f"(needed {SIGNAL:g}); check the activation, the input law, or give more samples"
        )
    return known[0]


def usable_orders(signals: dict[int, float], g: Activation, score: Score | None) -> tuple[int, ...]:
    """Orders 2 to 4 to decompose: those seen, and under N(0, I) those the activation is known to have.

    A known order that the data are too few to show still points the right way; its precision weighs it.
    """
    known = {m for m in (2, 3, 4) if abs(g.hermite(m)) > 1e-6}
    used = {m for m in (2, 3, 4) if signals[m] >= SIGNAL}
    if score is None or not used & {3, 4}:
        used |= known
    if not used & {3, 4}:
        raise Refused(
            f"no usable order: the moments of order 3 and 4 have signals z = {signals[3]:.1f} and "
            f"{signals[4]:.1f} (needed {SIGNAL:g}), and one matrix does not determine its components"
        )
    return tuple(sorted(used))


def moments_of(rows: Rows, span: Subspace, orders: tuple[int, ...], fitted: int) -> dict[int, Moment]:
    """E[∇^m q] + mean of the remainder's S_m; order 1 adds the linear part.

    ``fitted`` counts the coefficients that were fitted on these rows: the remainder is too small by
    (n - fitted)/n.
    """
    rest = moments_inside(rows.X, span.remainder, span.basis, orders, rows.score, rows.weight)
    grown = len(rows.y) / max(len(rows.y) - fitted, 1)
    out = {}
    for m, one in rest.items():
        tensor = span.polynomial.expected_derivative(m) + one.tensor
        if m == 1:
            tensor = tensor + span.basis.T @ span.linear
        out[m] = Moment(tensor, one.variance * grown)
    return out


def contractions_of(rows: Rows, span: Subspace, count: int, seed: int) -> list[Moment]:
    """Order 4 of the remainder, contracted with random directions."""
    return contracted_fourth(rows.X, span.remainder, span.basis, count, seed, rows.score, rows.weight)
