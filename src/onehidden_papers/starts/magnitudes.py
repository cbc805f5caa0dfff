"""From directions to a network: orientation, length, bias and output weight of every unit.

For homogeneous g without bias the length is a convention and only the orientation and the output weight are
left; otherwise lengths and biases are searched on a grid by exchange, one unit at a time. The descent that
follows a start refines them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, refine
from onehidden_papers.starts.input_law import input_model


def fit_units(
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    directions: Float[np.ndarray, "k d"],
    activation: Activation,
    *,
    bias: bool = False,
    weight: Float[np.ndarray, " n"] | None = None,
) -> OneHiddenNet:
    """Return the network whose rows lie along ``directions`` and that fits y best.

    ``bias`` allows hidden biases; ``weight`` (n,) says how much each row counts. For step 4 of [ZSJBD] the
    orientations are those that fit best, whichever orders carry signal. The intercept is free, as in a
    search: a reversed sigmoid leaves a constant.
    """
    rows, k = slice(0, 20_000), len(directions)
    root = np.sqrt(np.ones(len(X)) if weight is None else weight)[:, None]  # weighted least squares
    t, some = X[rows] @ directions.T, root[rows]
    middle = np.average(t, axis=0, weights=some[:, 0] ** 2)
    variance = np.average((t - middle) ** 2, axis=0, weights=some[:, 0] ** 2)
    spread = np.maximum(np.sqrt(variance), np.finfo(float).tiny)
    grid = _grid(activation, bias)
    columns = [some * activation(t * s / spread + b) for s, b in grid]
    choice = _exchange(np.stack(columns, axis=1), some, some[:, 0] * y[rows])
    scale, shift = np.array(grid)[choice].T
    scale = scale / spread
    if activation.homogeneity is not None:  # unit rows by convention; the sign is the orientation
        shift, scale = shift / np.abs(scale), np.sign(scale)
    weights = scale[:, None] * directions
    columns = np.column_stack([activation(X @ weights.T + shift), np.ones(len(X))])
    output = np.linalg.lstsq(root * columns, root[:, 0] * y, rcond=1e-10)[0]
    return OneHiddenNet(weights, output[:k], shift, float(output[k]), activation)


def _grid(activation: Activation, bias: bool) -> list[tuple[float, float]]:
    """Lengths, negative where a unit is reversed, and biases of a unit."""
    signs = (1.0,) if activation.sign_free and not bias else (1.0, -1.0)
    lengths = [1.0] if activation.homogeneity is not None else np.geomspace(0.25, 6.0, 10)
    biases = np.linspace(-1.5, 1.5, 7) if bias else [0.0]
    return [(sign * length, b) for sign in signs for length in lengths for b in biases]


def _exchange(
    columns: Float[np.ndarray, "n c k"], constant: Float[np.ndarray, "n m"], y: Float[np.ndarray, " n"]
) -> Int[np.ndarray, " k"]:
    """Return the column of each unit: the best common one, then one unit at a time while the fit improves."""
    count, k = columns.shape[1:]

    # Several starts: orientations interact through the polynomial part of g.
    losses = [float(np.sum(_projected(columns[:, c], constant, y)[1] ** 2)) for c in range(count)]
    best, lowest = np.zeros(k, int), np.inf
    for first in np.argsort(losses)[:4]:
        choice, loss = np.full(k, first), np.inf
        for _ in range(12):
            for i in range(k):
                others = np.delete(columns[:, choice, np.arange(k)], i, axis=1)
                basis, rest = _projected(others, constant, y)
                own = columns[:, :, i] - basis @ (basis.T @ columns[:, :, i])
                size = np.sum(columns[:, :, i] ** 2, axis=0)
                gain = (own.T @ rest) ** 2 / np.maximum(np.sum(own**2, axis=0), 1e-9 * size)
                choice[i] = int(np.argmax(gain))
            before, loss = loss, float(np.sum(rest**2) - gain.max())
            if not loss < before * (1 - 1e-12):
                break
        if loss < lowest:
            best, lowest = choice, loss
    return best


def _projected(columns: np.ndarray, constant: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal basis of all columns, and what they leave of y."""
    basis = np.linalg.qr(np.column_stack([columns, constant]))[0]
    return basis, y - basis @ (basis.T @ y)


def refined_copies(
    problem: Problem,
    weights: Float[np.ndarray, "k d"],
    bias: Float[np.ndarray, " k"],
    copies: int,
    run: Run,
    name: str,
    spread: float = 0.7,
) -> Iterator[Candidate]:
    """Yield these hyperplanes refined, then copies of them, each row moved by about ``spread`` of its length.

    Near the least number of samples a copy is three times as likely to succeed as a random start (ReLU,
    k = 5, d = 20, 2 samples an unknown: 22 % against 6 % a descent).
    """
    rng, length = run.rng(f"copies of the {name} start"), np.linalg.norm(weights, axis=1, keepdims=True)
    origin = f"{name}; inputs: {input_model(problem).name}"
    yield refine(problem, weights, bias, run.at(0), origin)
    for i in range(1, 1 + copies):
        if run.expired():
            return
        move = spread * length * rng.standard_normal(weights.shape) / np.sqrt(weights.shape[1])
        yield refine(problem, weights + move, bias, run.at(i), origin)
