"""From directions to a network: orientation, length, bias and output weight of every unit.

For homogeneous g without bias the length is a convention and only the orientation and the output weight are
left; otherwise lengths and biases are searched on a grid by exchange, one unit at a time, and refined by a
small least squares with the directions held.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.fit.problem import Problem
from onehidden.moments.weights import Weight, of_rows, rooted, weighted_mean
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, all_orientations, refine_in_two


def fit_units(
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    directions: Float[np.ndarray, "k d"],
    activation: Activation,
    *,
    bias: bool = False,
    weight: Weight = None,
) -> OneHiddenNet:
    """Return the network whose rows lie along ``directions`` (k, d) and that fits y best.

    ``bias`` allows hidden biases and an intercept; ``weight`` (n,) says how much each row counts. For step 4
    of [ZSJBD] the orientations are those that fit best, whichever orders carry signal.
    """
    rows = slice(0, min(len(X), 20_000))
    t = X[rows] @ directions.T
    target, counts = y[rows], of_rows(weight, rows)
    k = len(directions)
    middle = weighted_mean(t, counts)
    spread = np.maximum(np.sqrt(weighted_mean((t - middle) ** 2, counts)), np.finfo(float).tiny)
    # A reversed sigmoid leaves a constant: fit one, and choose the orientations that absorb it last.
    reversible = activation.reversal is not None and activation.reversal.degree == 0 and not bias
    constant = bias or reversible
    grid = _grid(activation, bias)
    columns = np.stack([activation(s * length * t / spread + b) for s, length, b in grid], axis=1)
    chosen = _exchange(columns, target, constant, counts)
    scale = np.array([grid[c][0] * grid[c][1] for c in chosen]) / spread
    shift = np.array([grid[c][2] for c in chosen])
    if activation.homogeneity is None or bias:
        scale, shift = _refined(t, target, activation, scale, shift, bias, constant, counts)
    if activation.homogeneity is not None:  # unit rows by convention; the sign is the orientation
        shift, scale = shift / np.abs(scale), np.sign(scale)
    if reversible:
        output = _outputs(t * scale + shift, target, activation, True, counts)
        scale = scale * _absorbing_signs(output[:k], float(output[k]))
    weights = scale[:, None] * directions
    output = _outputs(X @ weights.T + shift, y, activation, bias, weight)
    return OneHiddenNet(weights, output[:k], shift, float(output[k]) if bias else 0.0, activation)


def perturbed(
    weights: Float[np.ndarray, "k d"], count: int, rng: np.random.Generator, spread: float = 0.7
) -> Iterator[Float[np.ndarray, "k d"]]:
    """So many copies, each row moved by about ``spread`` of its length.

    Near the least number of samples one is three times as likely to succeed as a random start (ReLU, k = 5,
    d = 20, 2 samples an unknown: 22 % against 6 % a descent).
    """
    length = np.linalg.norm(weights, axis=1, keepdims=True)
    for _ in range(count):
        yield weights + spread * length * rng.standard_normal(weights.shape) / np.sqrt(weights.shape[1])


def refined_copies(
    problem: Problem,
    weights: Float[np.ndarray, "k d"],
    bias: Float[np.ndarray, " k"],
    copies: int,
    run: Run,
    name: str,
) -> Iterator[Candidate]:
    """Yield these hyperplanes refined, then so many perturbed copies of them."""
    moved = perturbed(weights, copies, run.rng(f"copies of the {name} start"))
    for i, rows in enumerate([weights, *moved]):
        if i and run.expired():
            return
        yield refine_in_two(problem, rows, bias, run.at(i), name)


def _outputs(
    t: np.ndarray, y: np.ndarray, activation: Activation, constant: bool, weight: Weight
) -> np.ndarray:
    """Output weights, and the intercept last where there is one."""
    features = _features(activation(t), constant)
    return np.linalg.lstsq(rooted(features, weight), rooted(y, weight), rcond=1e-10)[0]


def _features(units: np.ndarray, constant: bool) -> np.ndarray:
    return np.column_stack([units, np.ones(len(units))]) if constant else units


def _absorbing_signs(output: np.ndarray, intercept: float) -> np.ndarray:
    """Signs that bring the intercept of a sigmoid network of at most 16 units to zero: w g(t) = w - w g(-t).

    Every choice with intercept zero is the same function.
    """
    if len(output) > 16:
        return np.ones(len(output))
    patterns = all_orientations(len(output))
    return patterns[int(np.argmin(np.abs(intercept + (1 - patterns) / 2 @ output)))]


def _grid(activation: Activation, bias: bool) -> list[tuple[float, float, float]]:
    """Candidates (orientation, length, bias) of a unit."""
    signs = (1.0,) if activation.sign_free and not bias else (1.0, -1.0)
    lengths = (1.0,) if activation.homogeneity is not None else tuple(np.geomspace(0.25, 6.0, 10))
    biases = tuple(np.linspace(-1.5, 1.5, 7)) if bias else (0.0,)
    return [(s, length, b) for s in signs for length in lengths for b in biases]


def _exchange(
    columns: Float[np.ndarray, "n c k"], y: Float[np.ndarray, " n"], intercept: bool, weight: Weight
) -> Int[np.ndarray, " k"]:
    """(k,) candidate of each unit: best common one first, then one unit at a time while the fit improves."""
    n, count, k = columns.shape
    flat = columns.reshape(n, count * k)
    extra = np.ones((n, 1)) if intercept else np.zeros((n, 0))
    design = rooted(np.column_stack([flat, extra, y]), weight)
    gram = design.T @ design / n
    place = np.arange(count * k).reshape(count, k)
    fixed = np.arange(count * k, count * k + extra.shape[1])
    starts = [np.full(k, c) for c in range(count)]
    own = np.arange(k)
    scores = [_explained(gram, np.append(place[c, own], fixed)) for c in starts]
    best_choice, best_value = starts[int(np.argmax(scores))], max(scores)
    # Exchange from a few of the best starts: orientations interact through the polynomial part of g.
    for start in [starts[i] for i in np.argsort(scores)[::-1][:4]]:
        choice, value = start.copy(), -np.inf
        for _ in range(12):
            for i in range(k):
                others = np.append(np.delete(place[choice, own], i), fixed)
                choice[i] = int(np.argmax(_gains(gram, others, place[:, i])))
            new = _explained(gram, np.append(place[choice, own], fixed))
            if new <= value * (1 + 1e-12):
                break
            value = new
        if value > best_value:
            best_choice, best_value = choice, value
    return best_choice


def _explained(gram: np.ndarray, chosen: np.ndarray) -> float:
    """Return the part of E[y²] that the chosen columns explain."""
    inner = gram[np.ix_(chosen, chosen)]
    right = gram[chosen, -1]
    return float(right @ np.linalg.lstsq(inner, right, rcond=1e-10)[0])


def _gains(gram: np.ndarray, others: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return what each candidate explains beyond the others (Schur complements of the Gram matrix)."""
    inner = gram[np.ix_(others, others)] + 1e-12 * np.trace(gram[:-1, :-1]) * np.eye(len(others))
    solved = np.linalg.solve(inner, gram[np.ix_(others, np.append(candidates, -1))])
    coupling = gram[np.ix_(candidates, others)]
    own = gram[candidates, candidates] - np.sum(coupling * solved[:, :-1].T, axis=1)
    along = gram[candidates, -1] - coupling @ solved[:, -1]
    return along**2 / np.maximum(own, 1e-9 * gram[candidates, candidates] + np.finfo(float).tiny)


def _refined(
    t: np.ndarray,
    y: np.ndarray,
    activation: Activation,
    scale: np.ndarray,
    shift: np.ndarray,
    bias: bool,
    constant: bool,
    weight: Weight,
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and biases by least squares with the output weights eliminated at every step."""
    from scipy.optimize import least_squares

    lengths = len(scale) if activation.homogeneity is None else 0  # else the length is a convention
    target = rooted(y, weight)

    def parts(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (p[:lengths] if lengths else scale), (p[lengths:] if bias else shift)

    def remainder(p: np.ndarray) -> np.ndarray:
        length, b = parts(p)
        q = np.linalg.qr(rooted(_features(activation(t * length + b), constant), weight))[0]
        return target - q @ (q.T @ target)

    start = np.concatenate([scale[:lengths], shift if bias else []])
    return parts(least_squares(remainder, start, method="trf", max_nfev=20).x)
