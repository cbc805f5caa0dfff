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

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden import activations
from onehidden.activations import Activation
from onehidden.moments.in_subspace import Moment
from onehidden.moments.score_protocol import Score
from onehidden.moments.weighting import checked_weight, effective_rows
from onehidden.network import OneHiddenNet
from onehidden.refused import Refused
from onehidden.starts.described_rows import Rows, Subspace
from onehidden.starts.joint_diagonalisation import best_weights, joint_decompose
from onehidden.starts.magnitudes import fit_units, refit_output, signs_from_moments
from onehidden.starts.subspace import find_subspace
from onehidden.starts.tensor_orders import (
    LARGEST_DENSE,
    SIGNAL,
    contractions_of,
    held_out_signals,
    moments_of,
    usable_orders,
)
from onehidden.streams import stream

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
    basis: Float[np.ndarray, "d k"]


def tensor_start(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    *,
    activation: str | Activation = "relu",
    score: Score | None = None,
    bias: bool = False,
    weight: npt.ArrayLike | None = None,
    seed: int = 0,
) -> OneHiddenNet:
    """A starting network from score moments; see ``measure_tensor_start`` for what was seen on the way."""
    return measure_tensor_start(
        X, y, hidden, activation=activation, score=score, bias=bias, weight=weight, seed=seed
    ).network


def tensor_starts(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    *,
    count: int,
    activation: str | Activation = "relu",
    score: Score | None = None,
    bias: bool = False,
    weight: npt.ArrayLike | None = None,
    seed: int = 0,
    spread: float = 0.7,
) -> Iterator[OneHiddenNet]:
    """The tensor start, then ``count - 1`` perturbed copies of it with the output weights refitted.

    Near the least number of samples one descent from the start may stall in a nearby minimum; a copy whose
    rows moved by about ``spread`` of their length is three times as likely to succeed as a random start
    (ReLU, k = 5, d = 20, 2 samples an unknown: 22 % against 6 % a descent).
    """
    first = tensor_start(
        X, y, hidden, activation=activation, score=score, bias=bias, weight=weight, seed=seed
    )
    yield first
    X, y = np.asarray(X, float), np.asarray(y, float)
    counts = checked_weight(weight, len(y))
    random = stream(seed, "tensor start", "copies")
    length = np.linalg.norm(first.weights, axis=1, keepdims=True)
    for _ in range(count - 1):
        move = random.standard_normal(first.weights.shape) / np.sqrt(first.n_inputs)
        moved = first.weights + spread * length * move
        yield refit_output(X, y, first, moved, intercept=bias, weight=counts)


def measure_tensor_start(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    *,
    activation: str | Activation = "relu",
    score: Score | None = None,
    bias: bool = False,
    weight: npt.ArrayLike | None = None,
    seed: int = 0,
) -> TensorStart:
    """The tensor start with its orders, signals and residual.

    Parameters
    ----------
    X, y : (n, d) and (n,). Whitened inputs serve best; the answer is in the coordinates given.
    hidden : number k of units, at most d.
    activation : name or ``Activation``.
    score : the input law, known or estimated; None means x ~ N(0, I).
    bias : whether units may have biases and the network an intercept.
    weight : (n,) how much each row counts, or None.
    seed : of every random block and contraction; another seed is another start.
    """
    g = activations.get(activation)
    rows = _checked(X, y, hidden, g, score, weight)
    order, signals = held_out_signals(rows, hidden, g, seed)
    span = find_subspace(rows.X, rows.y, hidden, order, seed, score, weight=rows.weight)
    if order == 2:
        _check_rank(span, effective_rows(rows.weight, len(rows.y)))
    used = usable_orders(signals, g, score)
    fitted = len(span.polynomial.coefficients) + len(span.linear)
    dense = (1, 2, 3, 4) if hidden <= LARGEST_DENSE else (1, 2, 3)
    moments = moments_of(rows, span, dense, fitted)
    tensors = [moments[m].tensor for m in used if m in moments]
    precisions = [moments[m].precision for m in used if m in moments]
    if 4 in used and 4 not in moments:
        pieces = contractions_of(rows, span, CONTRACTIONS, seed)
        tensors += [piece.tensor for piece in pieces]
        precisions += [piece.precision for piece in pieces]
    found = joint_decompose(tensors, hidden, seed, precisions=precisions)
    U = found.components
    odd = next((m for m in (1, 3) if signals[m] >= SIGNAL), 0)
    even = next((m for m in (2, 4) if m in moments and signals[m] >= SIGNAL), 0)
    guess = _orientations(U, moments, odd, even, g)
    directions = U @ span.basis.T
    network = fit_units(rows.X, rows.y, directions, g, bias=bias, orientations=guess, weight=rows.weight)
    orders = {"j2": order, "j3": _first_above_two(signals, used), "l1": odd, "l2": even}
    return TensorStart(network, signals, orders, used, found.residual, span.basis)


def _checked(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    g: Activation,
    score: Score | None,
    weight: npt.ArrayLike | None,
) -> Rows:
    """The rows that count."""
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"expected X (n, d) and y (n,), got shapes {X.shape} and {y.shape}")
    if not (np.all(np.isfinite(X)) and np.all(np.isfinite(y))):
        raise ValueError("X and y must be finite: they hold NaN or infinity")
    counts = checked_weight(weight, len(y))
    if counts is not None and np.any(counts == 0):
        kept = counts > 0
        X, y, counts = X[kept], y[kept], counts[kept] / np.mean(counts[kept])
    n, d = X.shape
    if not 1 <= hidden <= d:
        raise Refused(
            f"hidden = {hidden} is outside 1 … d: the rank of T_2, which bounds what can be seen, is at most "
            f"d = {d}"
        )
    if n < hidden * (d + 1):
        raise Refused(
            f"{n} samples are fewer than the {hidden * (d + 1)} unknowns of {hidden} units with {d} inputs: "
            "give more samples or fewer units"
        )
    if g.polynomial:
        raise Refused(
            f"activation {g.name} has no usable order: its moments of order 3 and more vanish, and order 2 "
            "alone does not determine the units"
        )
    return Rows(X, y, score, counts)


def _first_above_two(signals: dict[int, float], used: tuple[int, ...]) -> int:
    return next((m for m in (3, 4) if signals[m] >= SIGNAL), next(m for m in used if m > 2))


def _check_rank(span: Subspace, n: float) -> None:
    """hidden must not exceed the rank that T_2 shows, when the noise is low enough to show it."""
    size = np.sort(np.abs(np.linalg.eigvalsh(span.polynomial.expected_derivative(2))))[::-1]
    noise = 4 * np.sqrt(2 * span.misfit * len(span.basis) / n)  # edge of the spectrum of the noise
    if noise < 0.01 * size[0] and size[-1] < noise:
        rank = int(np.sum(size >= noise))
        raise Refused(
            f"hidden = {len(size)} exceeds the rank {rank} seen in T_2 (eigenvalue {size[-1]:.2g} within the "
            f"noise {noise:.2g}): ask for {rank} units"
        )


def _orientations(
    U: Float[np.ndarray, "k k"], moments: dict[int, Moment], odd: int, even: int, g: Activation
) -> Float[np.ndarray, " k"] | None:
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
