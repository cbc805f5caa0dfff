"""A hundred networks trained by scikit-learn, as black boxes: what they are, and how they are scored."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import onehidden as oh
from onehidden.run import stream

ACTIVATIONS = ("relu", "relu", "tanh", "logistic")
INPUTS = (8, 10, 16, 30, 64, 100, 200, 400, 784)
WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64)
OUTPUTS = (1, 1, 2, 3, 10)
COUNT = 100
LIVE = 1e-11  # of std(y): what a unit must add to be asked back
_WORK = 25_000  # weights of the largest network


@dataclass(frozen=True)
class TrainedBox:
    """One network: how it is trained, and what of it is asked."""

    number: int
    kind: str  # regressor, or classifier through predict_proba
    inputs: int
    width: int
    outputs: int
    activation: str
    solver: str

    @property
    def parameters(self) -> int:
        return self.width * (self.inputs + 1 + self.outputs) + self.outputs

    @property
    def words(self) -> str:
        shape = f"{self.inputs}-{self.width}-{self.outputs}"
        return f"trained {self.number} {self.kind} {shape} {self.activation} {self.solver}"


def catalogue(first: int = 0) -> list[TrainedBox]:
    """A hundred of an endless series, the same every time: sizes drawn independently of each other.

    A network of too many weights is made narrower. Rows and the seed of the training follow the number.
    """
    rng, found = stream(0, "benchmark", "oracle", "trained"), []
    for number in range(first + COUNT):
        d, width, q = (int(rng.choice(part)) for part in (INPUTS, WIDTHS, OUTPUTS))
        while d * width > _WORK:
            width //= 2
        activation, solver = str(rng.choice(ACTIVATIONS)), str(rng.choice(["adam", "lbfgs"]))
        kind = "classifier" if rng.random() < 0.3 else "regressor"
        q = max(q, 2) if kind == "classifier" else q
        found.append(TrainedBox(number, kind, d, width, q, activation, solver))
    return found[first:]


def _rows(box: TrainedBox, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Digits, all or some of their pixels, for up to 64 inputs; else random pictures with a smooth target."""
    from sklearn.datasets import load_digits

    if box.inputs <= 64:
        X, digit = load_digits(return_X_y=True)
        X = X[:, rng.permutation(64)[: box.inputs]] / 16
        target = np.column_stack([np.cos(digit * (j + 1) / 2) for j in range(box.outputs)])
        return X, (digit % box.outputs) if box.kind == "classifier" else target
    X = rng.random((600, box.inputs)) * (rng.random((600, box.inputs)) < 0.3)
    B = rng.standard_normal((box.inputs, box.outputs)) * 2 / np.sqrt(box.inputs)
    target = np.sin(X @ B) + 0.5 * np.abs(X @ B[::-1])
    return X, np.argmax(X @ B, axis=1) if box.kind == "classifier" else target


def trained(box: TrainedBox) -> tuple[Callable[[np.ndarray], np.ndarray], oh.OneHiddenNet, np.ndarray]:
    """The function that is asked, the network inside it, and the rows it was trained on."""
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    X, y = _rows(box, stream(box.number, "benchmark", "oracle", "trained", "rows"))
    kind = MLPClassifier if box.kind == "classifier" else MLPRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(
            hidden_layer_sizes=(box.width,),
            activation=box.activation,
            solver=box.solver,
            max_iter=30,
            random_state=box.number,
        ).fit(X, np.ravel(y) if np.ndim(y) == 2 and y.shape[1] == 1 else y)
    output, level = model.coefs_[1], model.intercepts_[1]
    if output.shape[1] == 1:
        output, level = output[:, 0], level[0]
    elif box.kind == "classifier":  # a softmax loses what all classes share
        output, level = output - output.mean(axis=1, keepdims=True), level - level.mean()
    name = {"logistic": "sigmoid"}.get(box.activation, box.activation)
    inside = oh.OneHiddenNet(model.coefs_[0].T, output, model.intercepts_[0], level, name)
    return (model.predict_proba if box.kind == "classifier" else model.predict), inside, X


def live_part(net: oh.OneHiddenNet, U: np.ndarray, least: float = LIVE) -> oh.OneHiddenNet:
    """The network without the units that add less than ``least`` of std(y) to every output."""
    level = np.asarray(net.activation(U @ net.weights.T + net.bias))
    strength = np.abs(net.output).reshape(net.n_hidden, -1).max(axis=1)
    spread = float(np.max(np.std(net.predict(U), axis=0)))
    live = strength * np.maximum(level.std(axis=0), np.linalg.norm(net.weights, axis=1)) > least * spread
    return oh.OneHiddenNet(net.weights[live], net.output[live], net.bias[live], net.intercept, net.activation)


def parameter_error(found: oh.OneHiddenNet, inside: oh.OneHiddenNet) -> float:
    """The worst of rows, outputs, biases and intercept after matching; infinite where units are missing."""
    if found.n_hidden != inside.n_hidden:
        return float("inf")
    m = oh.match(found, inside)
    return float(max(m.max_error, m.output_error, m.bias_error, m.intercept_error))
