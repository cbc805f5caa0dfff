"""Directions from score moments by minimising the designed objective F.

The moments T_2 and T_4 may live in the whole space or in a subspace that contains the rows. T_2 turns the
rows √a*_i b*_i into an orthonormal set ([GLM] Theorem C.2), in whose coordinates F is G: every local minimum
is the truth. So the minimisation runs there, well conditioned, and the answer is carried back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onehidden.fit.problem import Problem
from onehidden.machine import in_double
from onehidden.moments import ScoreMoments, score_moments
from onehidden.refused import Refused
from onehidden.run import Run, stream
from onehidden.starts.candidate import Candidate, descent_work, refine
from onehidden.starts.input_model import input_model, law_of, moment_work, one_output, span
from onehidden_papers.lab.descents import saddle_free_newton
from onehidden_papers.lab.stochastic import adam, descend
from onehidden_papers.objectives import ScoreDesigned
from onehidden_papers.objectives.sources import Tensors

NEWTON_LIMIT = 160  # parameters up to which dense Hessians are the cheaper way


@dataclass(frozen=True)
class Landscape:
    """Start from the minimisers of the designed objective on the moments of order 2 and 4.

    Parameters
    ----------
    attempts : int
        Candidates, each from random starts of its own.
    largest : int
        Coordinates beyond which T_4 is not formed.
    """

    name: ClassVar[str] = "landscape"
    attempts: int = 3
    largest: int = 64

    def work(self, problem: Problem) -> float:
        return moment_work(problem) + self.attempts * descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        one_output(problem, self.name)
        basis = span(problem)
        if basis is None and problem.d > self.largest:
            raise Refused(
                f"the landscape start forms T_4 in at most {self.largest} coordinates, got {problem.d} "
                "and no clear span of the units: use start='tensor' or start='wide'"
            )
        moments = input_model(problem).record(
            score_moments(
                problem.Z, problem.y, law_of(problem), orders=(2, 4), subspace=basis, weight=problem.weight
            )
        )
        for attempt in range(self.attempts):
            if attempt and run.expired():
                return
            found = landscape_start(moments, problem.k, seed=run.seed_of("landscape", attempt))
            rows = found.directions if basis is None else found.directions @ basis.T
            yield refine(problem, rows, np.zeros(problem.k), run.at(attempt), "landscape")


@dataclass(frozen=True)
class LandscapeStart:
    """Directions found by descent on the designed objective.

    Attributes
    ----------
    directions : ndarray of shape (k, r)
        Unit rows, up to order and sign, in the coordinates of the moments.
    value : float
        The objective there; 0 is not its minimum (−μ Σ of the fourth-order weights is).
    runs : ndarray
        Values reached by all starts, best first.
    agreement : float
        The share of starts that reached the best value to 1e-3 relative; 1 if all is benign.
    """

    directions: np.ndarray
    value: float
    runs: np.ndarray
    agreement: float


@in_double
def landscape_start(
    moments: Mapping[int, np.ndarray] | ScoreMoments,
    k: int,
    *,
    orthonormal: bool = False,
    mu: float = 0.3,
    lam: float | None = None,
    starts: int = 8,
    steps: int = 2000,
    seed: int = 0,
) -> LandscapeStart:
    """Minimise L (rows known orthonormal) or F (any independent rows) on moments of order 2 and 4.

    Parameters
    ----------
    moments : mapping or ScoreMoments
        Anything with ``moments[4]`` (r, r, r, r) and, unless ``orthonormal``, ``moments[2]`` (r, r).
    k : int
        Number of directions, at most r.
    orthonormal : bool
        The rows are orthonormal: T_4 alone is used (L); otherwise T_2 whitens first (F).
    mu : float
        Weight of the second term relative to the first, below 1: from there on two rows on one unit are a
        local minimum. Theory asks c/κ*; with noise a larger one, which pulls rows to single units, is robust.
    lam : float or None
        Weight of the norm penalty; four times the largest |T_4(u⁴)| seen when None.
    starts : int
        Random starts.
    steps : int
        First-order steps where the problem is too large for dense Hessians.
    """
    T4 = np.asarray(moments[4], float)
    r = T4.shape[0]
    if T4.shape != (r,) * 4:
        raise ValueError(f"the moment of order 4 must be an (r, r, r, r) tensor, got {T4.shape}")
    if not 1 <= k <= r:
        raise Refused(f"k must lie between 1 and {r}, the dimension of the moments, got {k}")
    if not 0 < mu < 1:
        raise ValueError(f"mu must lie between 0 and 1, where rows stay apart, got {mu}")
    if not np.all(np.isfinite(T4)):
        raise ValueError("the moments hold NaN or infinity")
    W, V = (np.eye(r), np.eye(r)) if orthonormal else _whitening(np.asarray(moments[2], float), k)
    T = np.einsum("abcd,ai,bj,ck,dl->ijkl", T4, W, W, W, W, optimize=True)
    sign = 1.0 if np.einsum("iijj->", T) >= 0 else -1.0  # of Σ w κ_4 |u|⁴, one for all units
    rng = stream(seed, "landscape start")
    # Random orthogonal starts: rows of unit norm that already differ from each other.
    size = T.shape[0]
    points = np.stack([np.linalg.qr(rng.standard_normal((size, k)))[0].T for _ in range(starts)])
    fourth = np.einsum("ijkl,sai,saj,sak,sal->sa", T, points, points, points, points, optimize=True)
    scale = max(float(np.max(np.abs(fourth))), float(np.sqrt(np.mean(T**2))), np.finfo(float).tiny)
    # The objective is homogeneous in T_4: bring its weights to order one.
    objective = ScoreDesigned(mu, 4.0 * (1 + mu) if lam is None else lam / scale, None, sign=sign)
    source = objective.prepare({4: T / scale})
    found = _minimise(objective, source, points, steps, seed)
    values = np.array([objective.value(B, source) for B in found])
    order = np.argsort(values)
    best = found[order[0]]
    # In whitened coordinates the minima are rows o_i; √a*_i b*_i = W^{+T} o_i in those of the moments.
    directions = best @ V.T
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    spread = np.abs(values - values[order[0]]) <= 1e-3 * np.abs(values[order[0]])
    return LandscapeStart(
        directions, float(values[order[0]] * scale), values[order] * scale, float(np.mean(spread))
    )


def _minimise(
    objective: ScoreDesigned, source: Tensors, points: np.ndarray, steps: int, seed: int
) -> np.ndarray:
    if points[0].size <= NEWTON_LIMIT:
        return saddle_free_newton(
            objective.function, points, source, steps=150, tolerance=1e-9, seed=seed
        ).params
    for rate, taken in ((0.02, steps), (0.002, steps // 2)):
        points = descend(
            objective.value_and_grad,
            points,
            optimiser=adam(rate),
            steps=taken,
            data=source,
            record_every=steps,
        ).params
    return points


def _whitening(T2: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """W (r, k) with Wᵀ T_2 W = ± I on the top-k eigenspace, and V = W^{+T}."""
    values, vectors = np.linalg.eigh((T2 + T2.T) / 2)
    top = np.argsort(-np.abs(values))[:k]
    values, vectors = values[top], vectors[:, top]
    if np.min(np.abs(values)) <= 1e-12 * np.max(np.abs(values)):
        raise Refused(
            f"the second moment has fewer than {k} directions: the rows are dependent, k is too large, or "
            "order 2 carries no signal for this activation"
        )
    if np.any(np.sign(values) != np.sign(values[0])):
        raise Refused(
            "the second moment is indefinite: outputs of both signs, for which F has no guarantee; use the "
            "tensor start"
        )
    root = np.sqrt(np.abs(values))
    return vectors / root, vectors * root
