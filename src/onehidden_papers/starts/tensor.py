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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden import activations
from onehidden.activations import Activation
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.refused import Refused
from onehidden.run import Run, stream
from onehidden.starts.candidate import Candidate, descent_work
from onehidden_papers.laws import Gaussian, standard_normal
from onehidden_papers.laws.base import Score
from onehidden_papers.moments import ScoreMoments, score_moments
from onehidden_papers.starts.input_law import (
    SIGNAL,
    checked_units,
    moment_work,
    one_output,
    score_of,
    variance_of,
)
from onehidden_papers.starts.joint_diagonalisation import common_basis, joint_decompose
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
    copies: int = 40

    def work(self, problem: Problem) -> float:
        """Operations of the moments and of all descents."""
        return moment_work(problem) + self.copies * descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the tensor start refined, then perturbed copies."""
        one_output(problem, self.name)
        net = tensor_start(
            problem.Z, problem.y, problem.k, activation=problem.activation,
            score=score_of(problem), bias=problem.bias, seed=run.seed, weight=problem.weight,
        )  # fmt: skip
        yield from refined_copies(problem, net.weights, net.bias, self.copies - 1, run, self.name)


# Score moments of some of the rows: orders, then ``subspace`` and ``rows``, the whole of both by default.
Moments = Callable[..., ScoreMoments]


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
    """Return a starting network from score moments, in the coordinates of X.

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
    OneHiddenNet
        The network.
    """
    g = activations.get(activation)
    samples, target, counts = checked_units(X, y, hidden, weight)
    n, d = samples.shape
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
    law, gaussian = (standard_normal(d) if score is None else score), isinstance(score, Gaussian | None)

    def moments(
        orders: tuple[int, ...], subspace: Float[np.ndarray, "d k"] | None = None, rows: slice = slice(None)
    ) -> ScoreMoments:
        inside = samples[rows], target[rows], law, orders
        return score_moments(*inside, subspace=subspace, weight=counts[rows])

    order, signals = held_out_signals(moments, n, d, hidden, g, seed)
    used = usable_orders(signals, g, gaussian)
    basis = leading_directions(moments, hidden, order, seed)
    inside = moments(used, basis)
    precisions = [1 / variance_of(inside, m) for m in used]
    found = joint_decompose([inside[m] for m in used], precisions, hidden, seed)
    return fit_units(samples, target, found @ basis.T, g, bias=bias, weight=counts)


def held_out_signals(
    moments: Moments, n: int, d: int, k: int, g: Activation, seed: int
) -> tuple[int, dict[int, float]]:
    """j_2 and the z-value of every order, on the half of the rows that did not choose the directions.

    Directions chosen on the same rows would lend every order a share of their fit.
    """
    seen, chosen, held = {}, slice(0, n // 2), slice(n // 2, n)
    for order in (2, 3):
        found = moments((2, 3, 4), leading_directions(moments, k, order, seed, chosen), held)
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
    moments: Moments, k: int, order: int, seed: int, rows: slice = slice(None), passes: int = 10
) -> Float[np.ndarray, "d k"]:
    """Return orthonormal columns along the k leading directions of T_2 or T_3.

    [ZSJBD] iterate on C I ± T_2, once for each sign; the eigenvectors of the largest |eigenvalues| are the
    same directions. Order 3 is iterated on T_3(·, V, V).
    """
    if order == 2:
        return common_basis([moments((1, 2), rows=rows)[2]], [1.0], k)
    T = moments((3,), rows=rows)[3]
    basis = np.linalg.qr(stream(seed, "span of the units").standard_normal((len(T), k)))[0]
    for _ in range(passes):
        image = np.einsum("aij,ik,jl->akl", T, basis, basis, optimize=True).reshape(len(T), -1)
        basis = np.linalg.svd(image, full_matrices=False)[0][:, :k]
    return basis
