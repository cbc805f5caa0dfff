"""The tensor start of [ZSJBD] for every activation with a usable order and any input law with a score.

1. V: the span of the hidden directions, from the lowest moment j_2 >= 2 that carries signal.
2. T_m(V, …, V) for m = 1 … 4 in k^m, each against its own standard error.
3. Joint non-orthogonal decomposition of every usable T_m, weighted by precision; order 3 or 4 (j_3) must
   be among them, since one matrix does not determine its components.
4. Orientation from the lowest odd (l_1) and even (l_2) order with signal, then checked on the data;
   lengths and output weights from homogeneity or by small least squares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onehidden import activations
from onehidden.activations import Activation
from onehidden.network import OneHiddenNet
from onehidden.starts.joint_diagonalisation import best_weights, joint_decompose
from onehidden.starts.magnitudes import fit_units, refit_output, signs_from_moments
from onehidden.starts.subspace import Subspace, find_subspace, first_basis, transfer
from onehidden.starts.subspace_moments import Moment, contracted_fourth, moment

SIGNAL = 3.0  # z-value at which an order counts as seen
LARGEST_DENSE = 40  # beyond this k, order 4 is contracted with random directions instead of kept as k^4
CONTRACTIONS = 6


@dataclass(frozen=True)
class TensorStart:
    """A starting network with what was measured on the way.

    Attributes
    ----------
    network : the start, in the coordinates of X.
    signals : z-value of each order inside the span found (orders 1 to 4).
    orders : j2, j3, l1, l2 chosen (0 where none was seen).
    used : the orders decomposed jointly.
    residual : relative misfit of that decomposition.
    basis : (d, k) orthonormal columns, the span found.
    """

    network: OneHiddenNet
    signals: dict[int, float]
    orders: dict[str, int]
    used: tuple[int, ...]
    residual: float
    basis: np.ndarray


def tensor_start(
    X: Any,
    y: Any,
    hidden: int,
    *,
    activation: str | Activation = "relu",
    score: Any = None,
    bias: bool = False,
    seed: int = 0,
) -> OneHiddenNet:
    """A starting network from score moments; see ``measure_tensor_start`` for what was seen on the way."""
    return measure_tensor_start(
        X, y, hidden, activation=activation, score=score, bias=bias, seed=seed
    ).network


def tensor_starts(
    X: Any,
    y: Any,
    hidden: int,
    *,
    count: int,
    activation: str | Activation = "relu",
    score: Any = None,
    bias: bool = False,
    seed: int = 0,
    spread: float = 0.7,
) -> Iterator[OneHiddenNet]:
    """The tensor start, then ``count - 1`` perturbed copies of it with the output weights refitted.

    Near the least number of samples one descent from the start may stall in a nearby minimum; a copy whose
    rows moved by about ``spread`` of their length is three times as likely to succeed as a random start
    (ReLU, k = 5, d = 20, 2 samples an unknown: 22 % against 6 % a descent).
    """
    X, y = np.asarray(X, float), np.asarray(y, float)
    first = tensor_start(X, y, hidden, activation=activation, score=score, bias=bias, seed=seed)
    yield first
    random = np.random.default_rng((seed, 1))
    length = np.linalg.norm(first.weights, axis=1, keepdims=True)
    for _ in range(count - 1):
        move = random.standard_normal(first.weights.shape) / np.sqrt(first.n_inputs)
        yield refit_output(X, y, first, first.weights + spread * length * move, intercept=bias)


def measure_tensor_start(
    X: Any,
    y: Any,
    hidden: int,
    *,
    activation: str | Activation = "relu",
    score: Any = None,
    bias: bool = False,
    seed: int = 0,
) -> TensorStart:
    """The tensor start with its orders, signals and residual.

    Parameters
    ----------
    X, y : (n, d) and (n,). Whitened inputs serve best; the answer is in the coordinates given.
    hidden : number k of units, at most d.
    activation : name or ``Activation``.
    score : object with ``score(X, order, subspace=B) -> (n, r, …, r)``; None means x ~ N(0, I).
    bias : whether units may have biases and the network an intercept.
    seed : of every random block and contraction; another seed is another start.
    """
    g = activations.get(activation)
    X, y = _checked(X, y, hidden, g)
    order, signals = _held_out_signals(X, y, hidden, g, score, seed)
    span = find_subspace(X, y, hidden, order, seed, score)
    if order == 2:
        _check_rank(span, len(y))
    used = _usable_orders(signals, g, score)
    fitted = len(span.polynomial.coefficients) + len(span.linear)
    dense = (1, 2, 3, 4) if hidden <= LARGEST_DENSE else (1, 2, 3)
    moments = {m: _moment(X, span, m, score, fitted) for m in dense}
    tensors = [moments[m].tensor for m in used if m in moments]
    precisions = [moments[m].precision for m in used if m in moments]
    if 4 in used and 4 not in moments:
        pieces = contracted_fourth(X, span.remainder, span.basis, CONTRACTIONS, seed, score)
        tensors += [piece.tensor for piece in pieces]
        precisions += [piece.precision for piece in pieces]
    found = joint_decompose(tensors, hidden, seed, precisions=precisions)
    U = found.components
    odd = next((m for m in (1, 3) if signals[m] >= SIGNAL), 0)
    even = next((m for m in (2, 4) if m in moments and signals[m] >= SIGNAL), 0)
    guess = _orientations(U, moments, odd, even, g)
    network = fit_units(X, y, U @ span.basis.T, g, bias=bias, orientations=guess)
    orders = {"j2": order, "j3": _first_above_two(signals, used), "l1": odd, "l2": even}
    return TensorStart(network, signals, orders, used, found.residual, span.basis)


def _checked(X: Any, y: Any, hidden: int, g: Activation) -> tuple[np.ndarray, np.ndarray]:
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got shapes {X.shape} and {y.shape}")
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(y))):
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    n, d = X.shape
    if not 1 <= hidden <= d:
        raise ValueError(
            f"hidden = {hidden} is outside 1 … d: the rank of T_2, which bounds what can be seen, is at most "
            f"d = {d}"
        )
    if n < hidden * (d + 1):
        raise ValueError(
            f"{n} samples are fewer than the {hidden * (d + 1)} unknowns of {hidden} units with {d} inputs: "
            "give more samples or fewer units"
        )
    if g.polynomial:
        raise ValueError(
            f"activation {g.name} has no usable order: its moments of order 3 and more vanish, and order 2 "
            "alone does not determine the units"
        )
    return X, y


def _held_out_signals(
    X: np.ndarray, y: np.ndarray, k: int, g: Activation, score: Any, seed: int
) -> tuple[int, dict[int, float]]:
    """j_2 and the z-value of every order, on rows that did not choose the directions.

    Directions chosen on the same rows would lend every order a share of their fit.
    """
    from scipy.sparse.linalg import lsqr

    rows = min(len(y), 12 * k * X.shape[1] + 6000)
    a, b = slice(0, rows // 2), slice(rows // 2, rows)
    random = np.random.default_rng(seed)
    half = y[a] - np.mean(y[a])
    linear = lsqr(X[a], half, iter_lim=30)[0]
    # On the held-out half the linear part is its own: order 2 and 3 must not see it.
    other = y[b] - np.mean(y[b])
    other = other - X[b] @ lsqr(X[b], other, iter_lim=30)[0]
    seen: dict[int, float] = {}
    order = 0
    for m in (2, 3):
        V = first_basis(X[a], half - X[a] @ linear, k, m, linear, random, score)
        seen[m] = moment(X[b], other, V, m, score).signal
        if seen[m] >= SIGNAL:
            order = m
            break
    if order == 0:
        order = _order_of_the_activation(seen, g, len(y) / (k * X.shape[1]))
    chosen = find_subspace(X[a], y[a], k, order, seed, score)
    span = transfer(X[b], y[b], chosen, score)
    orders = (1, 2, 3, 4) if k <= LARGEST_DENSE else (1, 2, 3)
    signals = {m: _moment(X[b], span, m, score, fitted=0).signal for m in orders}
    if 4 not in signals:
        pieces = contracted_fourth(X[b], span.remainder, span.basis, 2, seed, score)
        signals[4] = max(piece.signal for piece in pieces)
    return order, signals


def _order_of_the_activation(seen: dict[int, float], g: Activation, samples: float) -> int:
    """Nothing stands out of the noise: where the data could not tell, the activation under N(0, I) does."""
    known = [m for m in (2, 3) if abs(g.hermite(m)) > 1e-6]
    if not known or samples >= 100:
        raise ValueError(
            f"no usable order: the moments of order 2 and 3 have signals z = {seen[2]:.1f} and {seen[3]:.1f} "
            f"(needed {SIGNAL:g}); check the activation, the input law, or give more samples"
        )
    return known[0]


def _usable_orders(signals: dict[int, float], g: Activation, score: Any) -> tuple[int, ...]:
    """Orders 2 to 4 to decompose: those seen, and under N(0, I) those the activation is known to have.

    A known order that the data are too few to show still points the right way; its precision weighs it.
    """
    known = {m for m in (2, 3, 4) if abs(g.hermite(m)) > 1e-6}
    used = {m for m in (2, 3, 4) if signals[m] >= SIGNAL}
    if score is None or not used & {3, 4}:
        used |= known
    if not used & {3, 4}:
        raise ValueError(
            f"no usable order: the moments of order 3 and 4 have signals z = {signals[3]:.1f} and "
            f"{signals[4]:.1f} (needed {SIGNAL:g}), and one matrix does not determine its components"
        )
    return tuple(sorted(used))


def _first_above_two(signals: dict[int, float], used: tuple[int, ...]) -> int:
    return next((m for m in (3, 4) if signals[m] >= SIGNAL), next(m for m in used if m > 2))


def _check_rank(span: Subspace, n: int) -> None:
    """hidden must not exceed the rank that T_2 shows, when the noise is low enough to show it."""
    size = np.sort(np.abs(np.linalg.eigvalsh(span.polynomial.expected_derivative(2))))[::-1]
    noise = 4 * np.sqrt(2 * span.misfit * len(span.basis) / n)  # edge of the spectrum of the noise
    if noise < 0.01 * size[0] and size[-1] < noise:
        rank = int(np.sum(size >= noise))
        raise ValueError(
            f"hidden = {len(size)} exceeds the rank {rank} seen in T_2 (eigenvalue {size[-1]:.2g} within the "
            f"noise {noise:.2g}): ask for {rank} units"
        )


def _moment(X: np.ndarray, span: Subspace, order: int, score: Any, fitted: int) -> Moment:
    """E[∇^m q] + mean of the remainder's S_m; order 1 adds the linear part.

    ``fitted`` counts the coefficients that were fitted on these rows: the remainder is too small by
    (n - fitted)/n.
    """
    rest = moment(X, span.remainder, span.basis, order, score)
    tensor = span.polynomial.expected_derivative(order) + rest.tensor
    if order == 1:
        tensor = tensor + span.basis.T @ span.linear
    n = len(X)
    return Moment(tensor, rest.variance * n / max(n - fitted, 1))


def _orientations(
    U: np.ndarray, moments: dict[int, Moment], odd: int, even: int, g: Activation
) -> np.ndarray | None:
    """Step 4 of the paper where both an odd and an even order were seen; None leaves it to the data."""
    if not odd or not even or g.sign_free:
        return None
    signs = g.hermite(odd), g.hermite(even)
    if min(abs(s) for s in signs) < 1e-6:
        return None
    vector = moments[odd].tensor
    if odd == 3:  # contracted twice with one direction that no unit is orthogonal to
        alpha = np.linalg.lstsq(U, np.ones(len(U)), rcond=None)[0]
        vector = vector @ alpha @ alpha
    weights = best_weights([moments[even].tensor], U)[0]
    return signs_from_moments(U, vector, weights, signs[0], signs[1])
