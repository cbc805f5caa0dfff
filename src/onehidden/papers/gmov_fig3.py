"""[GMOV] Fig. 3: on Laplace inputs L found the input law, not the network; and a law where L is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden.objectives import ProductScore, ScoreDesigned, SquaredLoss, unit_rows
from onehidden.papers.fresh import random_rows, rotation
from onehidden.papers.record import Reproduction
from onehidden.solvers.stochastic import adam, cosine_decay, descend
from onehidden.streams import derived_seed, stream

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MU, LAM = 30.0, 1.0  # rows are kept at unit norm by projection, so λ plays no part
OWN_D = 8  # inputs and units of the setting of our own
OWN_MU = 0.3  # from μ = 1 on, two rows on one unit are a local minimum of L
COLUMNS = ("run", "reported", "printed error", "honest error", "recovered")
RECOVERED = 0.1
# Scale of the logistic law of unit variance.
_SCALE = float(np.sqrt(3) / np.pi)


class LaplaceSign:
    """What [GMOV] take for the score of the Laplace law: S_m = sgn(x)^{⊗m}. It is none: f has a kink at 0."""

    def log_derivatives(self, X: jax.Array) -> tuple[jax.Array, ...]:
        zero = jnp.zeros_like(X)
        return -jnp.sign(X), zero, zero, zero


def unit_logistic(t: jax.Array) -> jax.Array:
    """Log-density of the logistic law of unit variance, up to a constant."""
    u = jnp.abs(t) / _SCALE
    return -u - 2 * jnp.log1p(jnp.exp(-u))


_SIGN, _LOGISTIC = LaplaceSign(), ProductScore(unit_logistic)


def fig3(full: bool = False, seed: int = 0) -> Reproduction:
    """Fig. 3 with its controls, then logistic inputs and a rotated A* where the right score decides."""
    d, n, steps = (50, 8192, 4000) if full else (8, 8192, 600)
    rows: list[tuple[object, ...]] = []
    traces: dict[str, tuple[np.ndarray, list[float]]] = {}
    X = stream(seed, "paper", "gmov-fig3", "inputs").laplace(size=(n, d))
    truth = rotation(d, derived_seed(seed, "paper", "gmov-fig3", "teacher"))
    plain, turned = (OneHiddenNet(A, np.ones(d)) for A in (np.eye(d), truth))
    first = random_rows(1, d, d, derived_seed(seed, "paper", "gmov-fig3", "start"))

    def add(
        label: str,
        objective: ScoreDesigned | SquaredLoss,
        batch: tuple[np.ndarray, np.ndarray],
        teacher: OneHiddenNet,
        reported: float | str,
        start: np.ndarray = first,
    ) -> float:
        run = descend(
            objective.value_and_grad, start, optimiser=adam(cosine_decay(0.02, steps)),
            steps=steps, data=objective.prepare(batch), project=unit_rows, seed=seed,
        )  # fmt: skip
        m = match(run.params[0], teacher.weights)
        rows.append((label, reported, m.printed_error, m.honest_error, m.honest_error <= RECOVERED))
        traces[label] = (run.steps, [match(B, teacher.weights).honest_error for B in run.path[0]])
        return m.honest_error

    y, yr = plain.predict(X), turned.predict(X)
    L, printed = ScoreDesigned(MU, LAM, _SIGN), ScoreDesigned(MU, LAM, _SIGN, sign=1.0)
    G = ScoreDesigned(MU, LAM, None)
    add("L as printed (no sign of κ_4), A* = I", printed, (X, y), plain, 0.0)
    add("L, sign of κ_4 added, A* = I", L, (X, y), plain, 0.0)
    add("G, A* = I", G, (X, y), plain, 0.458)
    add("ℓ2, A* = I", SquaredLoss(), (X, y), plain, 0.156)
    add("control: L on y − mean(y)", L, (X, y - y.mean()), plain, "")
    add("control: L on y = 1, no network at all", L, (X, np.ones(n)), plain, "")
    rotated = min(
        add("control: L as printed, A* rotated", printed, (X, yr), turned, ""),
        add("control: L, A* rotated", L, (X, yr), turned, ""),
    )
    add("control: G, A* rotated", G, (X, yr), turned, "")
    notes = [
        "Full batch, Adam with cosine decay, rows projected to unit norm; the paper leaves λ open.",
        "sgn^{⊗4} is no score: E[y sgn^{⊗4}] = E[y] E[sgn^{⊗4}], so its axes come from the input law alone.",
        *_recovered(X, yr, turned, seed, rows),
    ]
    own = _own_setting(add, seed)
    notes.append(
        f"Own setting: logistic inputs of unit variance, A* rotated, n = {own[2]}: L with the logistic score "
        f"{own[0]:.3g}, G {own[1]:.3g} (honest error)."
    )
    verdict = "explained by a control" if rotated > RECOVERED else "reproduced"
    return Reproduction(
        "gmov-fig3",
        f"L, G and ℓ2 on Laplace inputs, k = d = {d}, n = {n}",
        "[GMOV] Fig. 3",
        COLUMNS,
        tuple(rows),
        verdict,
        tuple(notes),
        lambda figure: _draw(figure, traces),
    )


def _own_setting(add: Callable[..., float], seed: int) -> tuple[float, float, int]:
    """Logistic inputs, rotated A*: y freed of its degree-2 part, which moves no score moment of order 4.

    At d = 8: the fourth score moment of the logistic law has so large a variance that at d = 50 even
    262 144 samples leave L at honest error .995 (and G at .989).
    """
    d, n = OWN_D, 32_768
    start = random_rows(1, d, d, derived_seed(seed, "paper", "gmov-fig3", "own start"))
    truth = rotation(d, derived_seed(seed, "paper", "gmov-fig3", "own teacher"))
    teacher = OneHiddenNet(truth, np.ones(d))
    X = stream(seed, "paper", "gmov-fig3", "own inputs").logistic(scale=_SCALE, size=(n, d))
    y = without_degree_two(X, teacher.predict(X))
    right = add(
        "own: logistic x, A* rotated, L with the logistic score",
        _score(_LOGISTIC),
        (X, y),
        teacher,
        "",
        start,
    )
    wrong = add("own: logistic x, A* rotated, G", _score(None), (X, y), teacher, "", start)
    return right, wrong, n


def _score(score: ProductScore | None) -> ScoreDesigned:
    return ScoreDesigned(OWN_MU, LAM, score)


def without_degree_two(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Residual of y after least squares on all polynomials of degree ≤ 2."""
    upper = np.triu_indices(X.shape[1])
    features = np.column_stack([np.ones(len(y)), X, X[:, upper[0]] * X[:, upper[1]]])
    gram = features.T @ features
    return y - features @ np.linalg.solve(gram, features.T @ y)


def _recovered(
    X: np.ndarray, y: np.ndarray, teacher: OneHiddenNet, seed: int, rows: list[tuple[object, ...]]
) -> list[str]:
    """What ``recover`` makes of the rotated data of the figure."""
    try:
        from onehidden import recover  # type: ignore[attr-defined]
    except ImportError:
        return ["recover is not part of this installation: its row is left out."]
    result = recover(X, y, hidden=teacher.n_hidden, bias=False, seed=seed)
    m = match(result.network, teacher)
    rows.append(
        ("recover on the same data, A* rotated", "", m.printed_error, m.honest_error, m.max_error <= 1e-6)
    )
    return [
        f"recover: worst row error {m.max_error:.2g}, outputs {m.output_error:.2g}, {result.seconds:.1f} s."
    ]


def _draw(figure: Figure, traces: dict[str, tuple[np.ndarray, list[float]]]) -> None:
    axes = figure.subplots()
    for label, (steps, errors) in traces.items():
        axes.plot(steps, errors, label=label, linestyle="--" if label.startswith("control") else "-")
    axes.set(xlabel="steps", ylabel="honest error", ylim=(0, 1))
    axes.legend(fontsize="x-small")
