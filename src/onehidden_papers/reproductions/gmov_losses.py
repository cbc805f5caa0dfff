"""[GMOV] Fig. 3 and 4: L on Laplace inputs and with an estimated score; and laws where L is right."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from onehidden.machine import in_double
from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.run import derived_seed, stream
from onehidden_papers.lab.stochastic import adam, cosine_decay, descend
from onehidden_papers.laws import Logistic
from onehidden_papers.objectives import Objective, ScoreDesigned, SquaredLoss, unit_rows
from onehidden_papers.objectives.sources import GaussianBatch
from onehidden_papers.reproductions import experiment
from onehidden_papers.reproductions.experiment import LOGISTIC_SCALE, REACHED, random_rows, rotation
from onehidden_papers.reproductions.record import EXPLAINED, FAILED, REPRODUCED, Curves, Row, Rows, one_of

# Fig. 3: on Laplace inputs L found the input law, not the network

PRINTED, SIGNED = "L as printed (no sign of κ_4), A* = I", "L, sign of κ_4 added, A* = I"
EMPTY, TURNED = "control: L on y = 1, no network at all", "control: L, A* rotated"
TURNED_PRINTED = "control: L as printed, A* rotated"
OWN_L = "own: logistic x, A* rotated, L with the logistic score"
OWN_G = "own: logistic x, A* rotated, G"


def of_signs(X: np.ndarray, y: np.ndarray) -> GaussianBatch:
    """Moments with what [GMOV] take for the Laplace score, S_4 = sgn(x)^⊗4. It is none: f has a kink at 0.

    That is the term of degree four of the Gaussian form, at sgn(x). Its axes come from the input law alone.
    """
    d = X.shape[1]
    return GaussianBatch(jnp.sign(X), jnp.asarray(y), jnp.zeros(()), jnp.zeros((d, d)))


def judge_l(rows: Sequence[Row]) -> str:
    """Reproduced needs the truth itself, at A* = I and rotated; the printed error alone is not it."""

    def least(error: str, *runs: str) -> float:
        return min(row[error] for row in rows if row["run"] in runs)

    turned = least("honest error", TURNED, TURNED_PRINTED) <= REACHED
    if turned and least("honest error", PRINTED, SIGNED) <= REACHED:
        return REPRODUCED
    seen = least("printed error", PRINTED, SIGNED) <= REACHED
    empty = least("printed error", EMPTY) <= REACHED
    return EXPLAINED if seen and (empty or not turned) else FAILED


def judge_stuck(rows: Sequence[Row], run: str) -> str:
    return one_of(experiment.reached(rows, run) == FAILED)


def judge_fair_law(rows: Sequence[Row]) -> str:
    of = {row["run"]: row["honest error"] for row in rows}
    return one_of(of[OWN_L] <= REACHED < of[OWN_G])


@in_double
def laplace(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Fig. 3 with its controls, then logistic inputs and a rotated A* where the right score decides."""
    d, n, steps = settings.d, settings.n, settings.steps
    seed_of = lambda use: derived_seed(seed, "paper", "gmov-fig3", use)  # noqa: E731
    rows, curves = [], {}

    def add(
        label: str,
        objective: Objective,
        data: object,
        teacher: OneHiddenNet,
        reported: float | str = "",
        use: str = "start",
    ) -> None:
        """Descend by Adam on unit rows."""
        run = descend(
            objective.value_and_grad, random_rows(1, teacher.n_hidden, teacher.n_inputs, seed_of(use)),
            optimiser=adam(cosine_decay(0.02, steps)), steps=steps, data=objective.prepare(data),
            project=unit_rows,
        )  # fmt: skip
        found = [match(B, teacher.weights) for B in run.path[0]]
        rows.append((label, reported, found[-1].printed_error, found[-1].honest_error))
        curves[label] = run.steps, [m.honest_error for m in found]

    plain, turned = (OneHiddenNet(A, np.ones(d)) for A in (np.eye(d), rotation(d, seed_of("teacher"))))
    X = stream(seed, "paper", "gmov-fig3", "inputs").laplace(size=(n, d))
    y, signs, turned_signs = plain.predict(X), *(of_signs(X, net.predict(X)) for net in (plain, turned))
    L, printed = (ScoreDesigned(settings.mu, 1.0, sign=sign) for sign in (None, 1.0))
    add(PRINTED, printed, signs, plain, 0.0)
    add(SIGNED, L, signs, plain, 0.0)
    add("G, A* = I", L, (X, y), plain, 0.458)
    add("ℓ2, A* = I", SquaredLoss(), (X, y), plain, 0.156)
    add(EMPTY, L, of_signs(X, np.ones(n)), plain)
    add(TURNED_PRINTED, printed, turned_signs, turned)
    add(TURNED, L, turned_signs, turned)
    # At d = 8: the fourth score moment of the logistic law has so large a variance that at d = 50 even
    # 262 144 samples leave L at honest error .995 (and G at .989).
    d = settings.own_d
    own = OneHiddenNet(rotation(d, seed_of("own teacher")), np.ones(d))
    X = stream(seed, "paper", "gmov-fig3", "own inputs").logistic(
        scale=LOGISTIC_SCALE, size=(settings.own_n, d)
    )
    y = experiment.without_degree_two(X, own.predict(X))
    for label, score in ((OWN_L, Logistic(d, LOGISTIC_SCALE)), (OWN_G, None)):
        add(label, ScoreDesigned(settings.own_mu, 1.0, score), (X, y), own, use="own start")
    return rows, curves


# Fig. 4: L with the estimated score (local likelihood of degree 2), d = k = 2

Sources = dict[str, Callable[[np.ndarray], Any]]
NORMAL, MIXTURE, FAIR = "N(0, I)", "mixture ±1", "mixture ±½"
IDENTITY, ROTATED, CONSTANT = "A* = I", "A* rotated by 30°", "y = 1"
G_ROW, EXACT, ESTIMATED = "G", "L, exact score", "L, estimated score"
HONEST = "honest error, μ = 0.1"
# The paper has μ = 30, where two rows on one unit are a local minimum, and its theorem at most 0.01. Once
# prepared, all sources are read by one objective: a score object of its own would compile anew.
_L = ScoreDesigned(0.1, 1.0, None)


def _found(rows: Sequence[Row], law: str, truth: str, *objectives: str, honest: float = 0.05) -> bool:
    """Whether all these objectives find the network, to that honest error."""
    errors = {(row["inputs and truth"], row["objective"]): row[HONEST] for row in rows}
    return all(errors[f"{law}, {truth}", who] <= honest for who in objectives)


def judge_normal(rows: Sequence[Row]) -> str:
    return one_of(all(_found(rows, NORMAL, truth, G_ROW, ESTIMATED) for truth in (IDENTITY, ROTATED)))


def judge_mixture(rows: Sequence[Row]) -> str:
    """Ask that the exact score sees the network too, and that nothing is found without a network."""
    if not _found(rows, MIXTURE, IDENTITY, ESTIMATED):
        return FAILED
    without = _found(rows, MIXTURE, CONSTANT, ESTIMATED)
    return one_of(_found(rows, MIXTURE, IDENTITY, EXACT) and not without, EXPLAINED)


def judge_fair_estimate(rows: Sequence[Row]) -> str:
    return one_of(_found(rows, FAIR, ROTATED, EXACT, ESTIMATED))


def plane(settings: Any, seed: int) -> tuple[Rows, Curves]:
    """Gaussian and mixture inputs: G, L with the exact and the estimated score; rotated A*, constant y."""
    n, trials = settings.n, settings.trials
    angle = np.pi / 6
    turned = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    places = [
        (NORMAL, IDENTITY, np.eye(2), {G_ROW: 0.0036, ESTIMATED: 0.0045}),
        (NORMAL, ROTATED, turned, {}),
        (MIXTURE, IDENTITY, np.eye(2), {G_ROW: 0.1375, ESTIMATED: 0.0223}),
        (MIXTURE, ROTATED, turned, {}),
        (MIXTURE, CONSTANT, np.eye(2), {}),
        (FAIR, ROTATED, turned, {}),
    ]
    rows = []
    for law, truth, A, reported in places:
        teacher = OneHiddenNet(A, np.ones(2))
        errors: dict[str, list[tuple[float, ...]]] = {}
        for trial in range(trials):
            X, sources = _inputs(law, n, seed, trial)
            y = np.ones(n) if truth == CONSTANT else teacher.predict(X)
            for name, source in sources.items():
                start = random_rows(1, 2, 2, seed, "gmov-fig4", "start", trial)
                run = descend(
                    _L.value_and_grad,
                    start,
                    optimiser=adam(0.02),
                    steps=800,
                    data=source(y),
                    project=unit_rows,
                )
                found = match(run.params[0], A)
                errors.setdefault(name, []).append((found.printed_error, found.honest_error))
        for name, values in errors.items():
            middle = (float(v) for v in np.median(np.array(values), axis=0))
            rows.append((f"{law}, {truth}", name, reported.get(name, ""), *middle))
    return rows, {}


@lru_cache(maxsize=64)
def _inputs(law: str, n: int, seed: int, trial: int) -> tuple[np.ndarray, Sources]:
    """Return the inputs and the sources of each objective; scores are estimated once a trial."""
    from onehidden_papers.scores import LocalLikelihood

    mixture = experiment.mixture(2, {NORMAL: 0.0, MIXTURE: 1.0, FAIR: 0.5}[law])
    X = mixture.sample(n, derived_seed(seed, "paper", "gmov-fig4", "inputs", law, trial))
    true, estimate = mixture.score(X, 4), LocalLikelihood(degree=2).fit(X)
    with warnings.catch_warnings():  # the bias of degree 2 is what the figure is about
        warnings.simplefilter("ignore", UserWarning)
        found = estimate.score(X, 4)
    return X, {
        G_ROW: lambda y: _L.prepare((X, y)),
        EXACT: lambda y: _L.prepare({4: np.tensordot(y, true, 1) / len(y)}),
        ESTIMATED: lambda y: _L.prepare({4: np.tensordot(y, found, 1) / len(y)}),
    }
