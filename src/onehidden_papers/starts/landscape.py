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
from scipy.optimize import minimize

from onehidden.fit.problem import Problem
from onehidden.machine import in_double
from onehidden.refused import Refused
from onehidden.run import Run, stream
from onehidden.starts.candidate import Candidate, descent_work, refine
from onehidden_papers.moments import ScoreMoments, score_moments
from onehidden_papers.moments.products import contracted
from onehidden_papers.objectives import ScoreDesigned
from onehidden_papers.starts.input_law import moment_work, one_output, score_of, span_of_units


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
        law, rows = score_of(problem), (problem.Z, problem.y)
        low = score_moments(*rows, law, orders=(1, 2), weight=problem.weight)
        basis = span_of_units(low, problem.k)
        if basis is None and problem.d > self.largest:
            raise Refused(
                f"the landscape start forms T_4 in at most {self.largest} coordinates, got {problem.d} "
                "and no clear span of the units: use start='tensor' or start='wide'"
            )
        moments = score_moments(*rows, law, orders=(2, 4), subspace=basis, weight=problem.weight)
        for attempt in range(self.attempts):
            if attempt and run.expired():
                return
            found = landscape_start(moments, problem.k, seed=run.seed_of("landscape", attempt))
            rows = found if basis is None else found @ basis.T
            yield refine(problem, rows, np.zeros(problem.k), run.at(attempt), "landscape")


@in_double
def landscape_start(
    moments: Mapping[int, np.ndarray] | ScoreMoments,
    k: int,
    *,
    mu: float = 0.3,
    starts: int = 8,
    steps: int = 2000,
    seed: int = 0,
) -> np.ndarray:
    """Minimise F on moments of order 2 and 4, for any independent rows.

    Parameters
    ----------
    moments : mapping or ScoreMoments
        Anything with ``moments[2]`` (r, r) and ``moments[4]`` (r, r, r, r).
    k : int
        Number of directions, at most r.
    mu : float
        Weight of the second term relative to the first, below 1: from there on two rows on one unit are a
        local minimum. Theory asks c/κ*; with noise a larger one, which pulls rows to single units, is robust.
    starts : int
        Random starts.
    steps : int
        Steps of each descent at most.
    seed : int
        Seed of the starts.

    Returns
    -------
    ndarray of shape (k, r)
        Unit rows, up to order and sign, in the coordinates of the moments.
    """
    T4 = np.asarray(moments[4], float)
    r = T4.shape[0]
    if T4.shape != (r,) * 4 or not np.all(np.isfinite(T4)):
        raise ValueError(f"the moment of order 4 must be a finite (r, r, r, r) tensor, got {T4.shape}")
    if not 1 <= k <= r:
        raise Refused(f"k must lie between 1 and {r}, the dimension of the moments, got {k}")
    W, V = _whitening(np.asarray(moments[2], float), k)
    T = contracted(T4, W)
    sign = 1.0 if np.einsum("iijj->", T) >= 0 else -1.0  # of Σ w κ_4 |u|⁴, one for all units
    rng = stream(seed, "landscape start")
    # Random orthogonal starts: rows of unit norm that already differ from each other.
    points = np.stack([np.linalg.qr(rng.standard_normal((k, k)))[0].T for _ in range(starts)])
    fourth = np.einsum("ijkl,sai,saj,sak,sal->sa", T, points, points, points, points, optimize=True)
    scale = max(float(np.max(np.abs(fourth))), float(np.sqrt(np.mean(T**2))), np.finfo(float).tiny)
    # The objective is homogeneous in T_4: its weights are brought to order one, and λ is four times them.
    objective = ScoreDesigned(mu, 4.0 * (1 + mu), sign=sign)
    source = objective.prepare({4: T / scale})

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective.value_and_gradient(flat.reshape(k, k), source)
        return value, gradient.ravel()

    options = {"maxiter": steps, "ftol": 0.0, "gtol": 1e-9}
    runs = [
        minimize(value_and_gradient, point.ravel(), jac=True, method="L-BFGS-B", options=options)
        for point in points
    ]
    best = min(runs, key=lambda run: run.fun).x.reshape(k, k)
    # In whitened coordinates the minima are rows o_i; √a*_i b*_i = W^{+T} o_i in those of the moments.
    directions = best @ V.T
    return directions / np.linalg.norm(directions, axis=1)[:, None]


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
