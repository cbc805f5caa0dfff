"""The tensor start of [ZSJBD] for every activation with a usable order and any input law with a score.

1. V: the span of the hidden directions, from the lowest moment j_2 >= 2 that carries signal.
2. T_m(V, …, V) for m = 2 … 4 in k^m, with the standard error of each.
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
from onehidden.laws import standard_normal
from onehidden.laws.base import Score
from onehidden.moments import ScoreMoments, score_moments
from onehidden.moments.weights import Weight, checked_samples, of_rows, rooted
from onehidden.network import OneHiddenNet
from onehidden.refused import Refused
from onehidden.run import Run, stream
from onehidden.starts.candidate import Candidate, descent_work
from onehidden_papers.starts.components import LARGEST_SIDE, SIGNAL, variance_of
from onehidden_papers.starts.input_law import moment_work, one_output, score_of
from onehidden_papers.starts.joint_diagonalisation import joint_decompose
from onehidden_papers.starts.magnitudes import fit_units, refined_copies


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
            score=score_of(problem), bias=problem.bias, seed=run.seed, weight=problem.weight,
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


@dataclass(frozen=True)
class Sample:
    """Samples with the score of their inputs; ``weight`` says how much each row counts."""

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    score: Score
    weight: Weight = None

    def part(self, rows: slice) -> Sample:
        """Return some of the samples."""
        return Sample(self.X[rows], self.y[rows], self.score, of_rows(self.weight, rows))

    def moments(
        self, orders: tuple[int, ...], subspace: Float[np.ndarray, "d k"] | None = None
    ) -> ScoreMoments:
        """Return the score moments, contracted with the columns of ``subspace`` where it is given."""
        return score_moments(self.X, self.y, self.score, orders=orders, subspace=subspace, weight=self.weight)


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
    used = usable_orders(signals, g, gaussian=score is None)
    basis = leading_directions(rows, hidden, order, seed)
    moments = rows.moments(used, basis)
    precisions = [1 / variance_of(moments, m) for m in used]
    found = joint_decompose([moments[m] for m in used], hidden, seed, precisions=precisions)
    network = fit_units(rows.X, rows.y, found.components @ basis.T, g, bias=bias, weight=rows.weight)
    third = next((m for m in (3, 4) if signals[m] >= SIGNAL), next(m for m in used if m > 2))
    return TensorStart(network, signals, {"j2": order, "j3": third}, used, found.residual, basis)


def _checked(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    hidden: int,
    g: Activation,
    score: Score | None,
    weight: npt.ArrayLike | None,
) -> Sample:
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
    return Sample(samples, target, standard_normal(d) if score is None else score, counts)


def held_out_signals(rows: Sample, k: int, g: Activation, seed: int) -> tuple[int, dict[int, float]]:
    """j_2 and the z-value of every order, on the half of the rows that did not choose the directions.

    Directions chosen on the same rows would lend every order a share of their fit.
    """
    n, d = rows.X.shape
    chosen, held = rows.part(slice(0, n // 2)), rows.part(slice(n // 2, n))
    seen = {}
    for order in (2, 3):
        found = held.moments((2, 3, 4), leading_directions(chosen, k, order, seed))
        seen[order] = {m: found.signal(m) for m in found.orders}
        if seen[order][order] >= SIGNAL:
            return order, seen[order]
    known = [m for m in (2, 3) if abs(g.hermite(m)) > 1e-6]
    if not known or n >= 100 * k * d:
        raise Refused(
            f"no usable order: the moments of order 2 and 3 have signals z = {seen[2][2]:.1f} and "
            f"{seen[3][3]:.1f} (needed {SIGNAL:g}); check the activation, the input law, or give more samples"
        )
    return known[0], seen[known[0]]


def usable_orders(signals: dict[int, float], g: Activation, gaussian: bool) -> tuple[int, ...]:
    """Orders 2 to 4 to decompose: those seen, and under N(0, I) those the activation is known to have.

    A known order that the data are too few to show still points the right way; its precision weighs it.
    """
    used = {m for m in (2, 3, 4) if signals[m] >= SIGNAL}
    if gaussian or not used & {3, 4}:
        used |= {m for m in (2, 3, 4) if abs(g.hermite(m)) > 1e-6}
    if not used & {3, 4}:
        raise Refused(
            f"no usable order: the moments of order 3 and 4 have signals z = {signals[3]:.1f} and "
            f"{signals[4]:.1f} (needed {SIGNAL:g}), and one matrix does not determine its components"
        )
    return tuple(sorted(used))


def leading_directions(
    rows: Sample, k: int, order: int, seed: int, passes: int = 10
) -> Float[np.ndarray, "d k"]:
    """Return orthonormal columns along the k leading directions of T_2 or T_3.

    [ZSJBD] iterate on C I ± T_2, once for each sign; the eigenvectors of the largest |eigenvalues| are the
    same directions. Order 3 is iterated on T_3(·, V, V), k coordinates beside V at a time.
    """
    if order == 2:
        value, vector = np.linalg.eigh(rows.moments((1, 2))[2])
        return vector[:, np.argsort(-np.abs(value))[:k]]
    d = rows.X.shape[1]
    # A linear function has no moment of order 3; what it explains of y would be noise.
    design = rooted(np.column_stack([rows.X, np.ones(len(rows.y))]), rows.weight)
    rest = rows.y - np.linalg.lstsq(design, rooted(rows.y, rows.weight), rcond=None)[0][:d] @ rows.X.T
    basis = np.linalg.qr(stream(seed, "span of the units").standard_normal((d, k)))[0]
    axes = np.split(np.eye(d), range(k, d, k), axis=1)
    for _ in range(passes):
        beside = [np.column_stack([some, basis]) for some in axes]
        inside = [score_moments(rows.X, rest, rows.score, (3,), -1, B, weight=rows.weight)[3] for B in beside]
        image = np.concatenate([T[:-k, -k:, -k:].reshape(-1, k * k) for T in inside])
        basis = np.linalg.svd(image, full_matrices=False)[0][:, :k]
    return basis
