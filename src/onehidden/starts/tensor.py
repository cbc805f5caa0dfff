"""The tensor start of [ZSJBD] for every activation with a usable order and any input law with a score.

1. V: the span of the hidden directions, from the lowest moment j_2 >= 2 that carries signal.
2. T_m(V, …, V) for m = 2 … 4 in k^m, each against its own standard error.
3. Joint non-orthogonal decomposition of every usable T_m, weighted by precision; order 3 or 4 (j_3) must
   be among them, since one matrix does not determine its components.
4. Orientations, lengths and output weights that fit the rows best.

An order carries signal where |T_m|² stands ``SIGNAL`` standard deviations above noise alone, on rows that did
not choose the directions; where the data are too few to tell, the activation under N(0, I) does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden import activations
from onehidden.activations import Activation
from onehidden.fit.problem import Problem
from onehidden.laws.base import Score
from onehidden.moments.components import LARGEST_SIDE
from onehidden.moments.in_subspace import Moment, moment, moments_inside
from onehidden.moments.weights import checked_samples, effective_rows
from onehidden.network import OneHiddenNet
from onehidden.refused import Refused
from onehidden.run import Run, stream
from onehidden.starts.candidate import Candidate, descent_work
from onehidden.starts.input_model import input_model, moment_work, one_output
from onehidden.starts.joint_diagonalisation import joint_decompose
from onehidden.starts.magnitudes import fit_units, refined_copies
from onehidden.starts.subspace import Rows, Subspace, find_subspace, first_basis, transfer


@dataclass(frozen=True)
class Tensor:
    """Directions from the joint decomposition of the moments that carry signal, then perturbed copies.

    Parameters
    ----------
    copies : int
        Candidates at most; all but the first are perturbed copies of it.
    """

    name: ClassVar[str] = "tensor"
    copies: int = 4

    def work(self, problem: Problem) -> float:
        """Operations of the moments and of all descents."""
        return moment_work(problem) + self.copies * descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the tensor start refined, then perturbed copies."""
        one_output(problem, self.name)
        net = tensor_start(
            problem.Z, problem.y, problem.k, activation=problem.activation,
            score=input_model(problem).score(), bias=problem.bias, seed=run.seed, weight=problem.weight,
        ).network  # fmt: skip
        yield from refined_copies(problem, net.weights, net.bias, self.copies - 1, run, self.name)


@dataclass(frozen=True)
class TensorStart:
    """A starting network in the coordinates of X, with the measurements behind it.

    ``signals`` are z-values of the orders 2 to 4 inside the span found, ``orders`` the chosen j2 and
    j3, ``used`` the orders decomposed jointly, ``residual`` the relative misfit of that, and ``basis`` (d, k)
    orthonormal columns of the span.
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
) -> TensorStart:
    """Return a starting network from score moments, with its orders, signals and residual.

    Parameters
    ----------
    X : array_like of shape (n, d)
        Inputs.
    y : array_like of shape (n,)
        Target.
    hidden : int
        Number k of units, at most d.
    activation : str or Activation
        The activation g.
    score : Score or None
        The input law, known or estimated; None for x ~ N(0, I).
    bias : bool
        Whether units may have biases and the network an intercept.
    weight : array_like of shape (n,), optional
        How much each row counts.
    seed : int
        Of every random block and contraction.

    Returns
    -------
    TensorStart
        The network and the measurements.
    """
    g = activations.get(activation)
    rows = _checked(X, y, hidden, g, score, weight)
    order, signals = held_out_signals(rows, hidden, g, seed)
    span = find_subspace(rows.X, rows.y, hidden, order, seed, score, weight=rows.weight)
    if order == 2:
        _check_rank(span, effective_rows(rows.weight, len(rows.y)))
    used = usable_orders(signals, g, score)
    fitted = len(span.polynomial.coefficients) + len(span.linear)
    moments = moments_of(rows, span, used, fitted).values()
    precisions = [one.precision for one in moments]
    found = joint_decompose([one.tensor for one in moments], hidden, seed, precisions=precisions)
    network = fit_units(rows.X, rows.y, found.components @ span.basis.T, g, bias=bias, weight=rows.weight)
    third = next((m for m in (3, 4) if signals[m] >= SIGNAL), next(m for m in used if m > 2))
    orders = {"j2": order, "j3": third}
    return TensorStart(network, signals, orders, used, found.residual, span.basis)


def _checked(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    g: Activation,
    score: Score | None,
    weight: npt.ArrayLike | None,
) -> Rows:
    """Return the rows that count."""
    samples: np.ndarray
    samples, target, counts = checked_samples(X, y, weight)
    if counts is not None and np.any(counts == 0):
        kept = counts > 0
        samples, target, counts = samples[kept], target[kept], counts[kept] / np.mean(counts[kept])
    n, d = samples.shape
    if not 1 <= hidden <= min(d, LARGEST_SIDE):
        raise Refused(
            f"hidden = {hidden} is outside 1 … {min(d, LARGEST_SIDE)}: the rank of T_2, which bounds what "
            f"can be seen, is at most d = {d}, and none beyond {LARGEST_SIDE} are decomposed: use 'wide'"
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
    return Rows(samples, target, score, counts)


def _check_rank(span: Subspace, n: float) -> None:
    """Refuse more units than the rank that T_2 shows, where the noise is low enough to show it."""
    size = np.sort(np.abs(np.linalg.eigvalsh(span.polynomial.expected_derivative(2))))[::-1]
    noise = 4 * np.sqrt(2 * span.misfit * len(span.basis) / n)  # edge of the spectrum of the noise
    if noise < 0.01 * size[0] and size[-1] < noise:
        rank = int(np.sum(size >= noise))
        raise Refused(
            f"hidden = {len(size)} exceeds the rank {rank} seen in T_2 (eigenvalue {size[-1]:.2g} within the "
            f"noise {noise:.2g}): ask for {rank} units"
        )


SIGNAL = 3.0  # z-value at which an order counts as seen


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
    return order, {m: one.signal for m, one in moments_of(held, span, (2, 3, 4)).items()}


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


def moments_of(rows: Rows, span: Subspace, orders: tuple[int, ...], fitted: int = 0) -> dict[int, Moment]:
    """E[∇^m q] + mean of the remainder's S_m, by order m.

    ``fitted`` counts the coefficients that were fitted on these rows: the remainder is too small by
    (n - fitted)/n.
    """
    rest = moments_inside(rows.X, span.remainder, span.basis, orders, rows.score, rows.weight)
    grown = len(rows.y) / max(len(rows.y) - fitted, 1)
    known = span.polynomial.expected_derivative
    return {m: Moment(known(m) + one.tensor, one.variance * grown) for m, one in rest.items()}
