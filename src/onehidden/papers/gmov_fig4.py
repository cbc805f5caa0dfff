"""[GMOV] Fig. 4: L with the estimated score (local likelihood of degree 2), d = k = 2."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.lab.surfaces import Surface, angle_surface
from onehidden.matching import Match, match
from onehidden.network import OneHiddenNet
from onehidden.objectives import ScoreDesigned, unit_rows
from onehidden.papers.fresh import random_rows
from onehidden.papers.record import Reproduction
from onehidden.solvers.stochastic import adam, descend
from onehidden.streams import derived_seed, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Sources = dict[str, Callable[[np.ndarray], Any]]
# From μ = 1 on two rows on one unit are a local minimum; the paper has 30, its theorem at most 0.01.
PRINTED_MU, MU, LAM, REACHED = 30.0, 0.1, 1.0, 0.05


@dataclass(frozen=True)
class SymmetricMixture:
    """½N(1, I) + ½N(−1, I) in the plane, as the objectives read a mixture."""

    weights = np.array([0.5, 0.5])
    means = np.array([[1.0, 1.0], [-1.0, -1.0]])
    covs = np.array([np.eye(2), np.eye(2)])

    @staticmethod
    def sample(n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((n, 2)) + rng.choice([-1.0, 1.0], size=(n, 1))


def fig4(full: bool = False, seed: int = 0) -> Reproduction:
    """Gaussian and mixture inputs: G, L with the exact and the estimated score; rotated A*, constant y."""
    n, trials = 8192, 20 if full else 3
    angle = np.pi / 6
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    settings = [
        ("N(0, I)", "A* = I", np.eye(2), {"G": 0.0036, "L, estimated score": 0.0045}),
        ("N(0, I)", "A* rotated by 30°", turned, {}),
        ("mixture ±1", "A* = I", np.eye(2), {"G": 0.1375, "L, estimated score": 0.0223}),
        ("mixture ±1", "A* rotated by 30°", turned, {}),
        ("mixture ±1", "y = 1", np.eye(2), {}),
    ]
    rows, surfaces = [], {}
    for law, truth, A, reported in settings:
        teacher = OneHiddenNet(A, np.ones(2))
        errors: dict[str, list[tuple[float, ...]]] = {}
        for trial in range(trials):
            X, sources = _inputs(law, n, seed, trial)
            y = np.ones(n) if truth == "y = 1" else teacher.predict(X)
            for name, source in sources.items():
                known = source(y)
                start = random_rows(1, 2, 2, derived_seed(seed, "paper", "gmov-fig4", "start", trial))
                m, surface = _run(_L, known, A, start)
                p, _ = _run(_PRINTED, known, A, start)
                errors.setdefault(name, []).append(
                    (p.printed_error, p.honest_error, m.printed_error, m.honest_error)
                )
                surfaces.setdefault(f"{law}, {truth}: {name}", surface)
        for name, values in errors.items():
            middle = (float(v) for v in np.median(np.array(values), axis=0))
            rows.append((f"{law}, {truth}", name, reported.get(name, ""), *middle))
    return Reproduction(
        "gmov-fig4",
        f"G and L with the estimated score, k = d = 2, n = {n}, median of {trials}",
        "[GMOV] Fig. 4",
        (
            "inputs and truth",
            "objective",
            "reported",
            "printed error, μ = 30",
            "honest error, μ = 30",
            "printed error, μ = 0.1",
            "honest error, μ = 0.1",
        ),
        tuple(rows),
        _verdict(rows),
        (
            "Mixture and A* = I: the exact κ_4 = (t² − 1)φ(t) at t = ⟨a_i, 1⟩ = 1 is zero, so no objective "
            "of order 4 sees the network; what the estimated score follows is the bias of its degree 2.",
            "With y = 1 there is no network: an objective that still finds the axes reads the input law.",
        ),
        lambda figure: _draw(figure, surfaces),
    )


# Once prepared, all sources are read by one objective: a score object of its own would compile anew.
_L = ScoreDesigned(MU, LAM, None)
_PRINTED = ScoreDesigned(PRINTED_MU, LAM, None)


@lru_cache(maxsize=64)
def _inputs(law: str, n: int, seed: int, trial: int) -> tuple[np.ndarray, Sources]:
    """Inputs, and for each objective what it reads for given labels; scores are estimated once a trial."""
    rng = stream(seed, "paper", "gmov-fig4", "inputs", trial)
    X = rng.standard_normal((n, 2)) if law == "N(0, I)" else SymmetricMixture.sample(n, rng)
    exact = ScoreDesigned(MU, LAM, None if law == "N(0, I)" else SymmetricMixture(), sign=-1.0)
    out: Sources = {
        "G": lambda y: _L.prepare((X, y)),
        "L, exact score": lambda y: exact.prepare((X, y)),
    }
    try:
        from onehidden.scores import LocalLikelihood  # type: ignore[import-not-found]
    except ImportError:
        return X, out
    S4 = np.asarray(LocalLikelihood(degree=2).fit(X).score(X, 4))
    out["L, estimated score"] = lambda y: _L.prepare({4: np.tensordot(y, S4, 1) / len(y)})
    return X, out


def _run(objective: ScoreDesigned, source: object, A: np.ndarray, start: np.ndarray) -> tuple[Match, Surface]:
    run = descend(
        objective.value_and_grad, start, optimiser=adam(0.02), steps=800, data=source, project=unit_rows,
    )  # fmt: skip
    return match(run.params[0], A), angle_surface(objective, source, size=61)


def _verdict(rows: list[tuple]) -> str:
    honest = {(row[0], row[1]): row[6] for row in rows}
    estimated = [
        honest.get((f"{law}, A* = I", "L, estimated score"), 1.0) for law in ("N(0, I)", "mixture ±1")
    ]
    if max(estimated) > REACHED:
        return "not reproduced"
    # The mixture panel stands only if the exact score sees the network too, and nothing is found without one.
    exact = honest["mixture ±1, A* = I", "L, exact score"]
    without = honest["mixture ±1, y = 1", "L, estimated score"]
    return "reproduced" if exact <= REACHED < without else "explained by a control"


def _draw(figure: Figure, surfaces: dict[str, Surface]) -> None:
    chosen = [name for name in surfaces if "A* = I" in name][:6]
    for axes, name in zip(np.ravel(figure.subplots(2, 3)), chosen, strict=False):
        surfaces[name].draw(axes)
        axes.set_title(name, fontsize="x-small")
