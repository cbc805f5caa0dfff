"""Black boxes: networks trained by scikit-learn on real tables, given back unit by unit.

Each row trains an ``MLPRegressor`` on a bundled table, hands its ``predict`` to ``recover_oracle`` and
compares with the weights inside. Function error: largest on 10 000 fresh points, as a share of their standard
deviation. Parameter error: the worst of rows, outputs, biases and intercept after matching, relative, over
the units that contribute more than 1e-11 of std(y); the others must be named dead.
"""

from __future__ import annotations

import warnings

import numpy as np

import onehidden as oh
from benchmarks._table import Table
from onehidden.streams import stream

TABLES = ("diabetes", "wine", "cancer", "iris")
ACTIVATIONS = ("relu", "tanh", "logistic")
WIDTHS = (8, 16, 32)
SOLVERS = ("lbfgs", "adam")
TARGET = 1e-7


def main(quick: bool) -> list[str]:
    table = Table(
        "table", "inputs", "activation", "width", "solver", "asked", "status", "queries", "seconds",
        "function error", "parameter error", "dead units",
    )  # fmt: skip
    solvers, widths = (SOLVERS[:1], WIDTHS[:2]) if quick else (SOLVERS, WIDTHS)
    tables = TABLES[:2] if quick else TABLES
    reached = total = 0
    for name in tables:
        for activation in ACTIVATIONS:
            for width in widths:
                for solver in solvers:
                    for hidden in (width, None):
                        reached += row(table, name, activation, width, solver, hidden)
                        total += 1
    table.say("")
    table.say(f"{reached} of {total} recovered to {TARGET:g} in function and parameters and called exact.")
    return table.lines


def real_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A bundled table, standardised: at most 20 inputs and one real target."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    if name == "diabetes":
        X, y = datasets.load_diabetes(return_X_y=True)
    elif name == "wine":  # alcohol from the other twelve measurements
        X = datasets.load_wine(return_X_y=True)[0]
        X, y = X[:, 1:], X[:, 0]
    elif name == "cancer":
        X, y = datasets.load_breast_cancer(return_X_y=True)
        X = X[:, :20]
    else:  # iris: petal width from the other three
        X = datasets.load_iris(return_X_y=True)[0]
        X, y = X[:, :3], X[:, 3]
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def trained(name: str, activation: str, width: int, solver: str) -> tuple[object, oh.OneHiddenNet]:
    """A fitted regressor and the network inside it."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    X, y = real_table(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPRegressor(
            hidden_layer_sizes=(width,), activation=activation, solver=solver, max_iter=500, random_state=0
        ).fit(X, y)
    inside = oh.OneHiddenNet(
        model.coefs_[0].T,
        model.coefs_[1][:, 0],
        model.intercepts_[0],
        model.intercepts_[1][0],
        {"logistic": "sigmoid"}.get(activation, activation),
    )
    return model, inside


def live_part(net: oh.OneHiddenNet, X: np.ndarray, spread: float) -> oh.OneHiddenNet:
    """The network without the units that contribute less than 1e-11 of std(y)."""
    units = net.activation(X @ net.weights.T + net.bias) * net.output
    reach = np.abs(net.output) * np.linalg.norm(net.weights, axis=1)
    live = np.maximum(units.std(axis=0), reach) > 1e-11 * spread
    return oh.OneHiddenNet(net.weights[live], net.output[live], net.bias[live], net.intercept, net.activation)


def row(table: Table, name: str, activation: str, width: int, solver: str, hidden: int | None) -> bool:
    model, inside = trained(name, activation, width, solver)
    d = inside.n_inputs
    r = oh.recover_oracle(model.predict, d, hidden, activation=inside.activation.name)  # type: ignore[attr-defined]
    X = stream(1, "benchmark", "oracle", "inputs").standard_normal((10_000, d))
    y = model.predict(X)  # type: ignore[attr-defined]
    function = float(np.max(np.abs(r.network.predict(X) - y)) / y.std())
    m = oh.match(r.network, live_part(inside, X, float(y.std())))
    parameters = max(m.max_error, m.output_error, m.bias_error, m.intercept_error)
    dead = next((int(c.value) for c in r.checks if c.name == "dead units"), 0)
    table.row(
        name, d, activation, width, solver, "width" if hidden else "none", r.status, r.queries,
        f"{r.seconds:.1f}", f"{function:.1e}", f"{parameters:.1e}", dead,
    )  # fmt: skip
    return r.status == "exact" and function <= TARGET and parameters <= TARGET
