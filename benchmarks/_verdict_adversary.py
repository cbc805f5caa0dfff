"""Thirty kinds of data that no rule of the verdict was made with: faults of real tables, and honest ones."""

from __future__ import annotations

import numpy as np

import onehidden as oh
from benchmarks._verdict_kinds import (
    NONE,
    RIGHT,
    UNSEEN,
    WRONG,
    Data,
    Kind,
    Rng,
    family,
    function,
    gaussian,
    sigmoid,
    teacher,
)


def inputs(draw, level: float = 0.4):
    """Return a kind with inputs ``draw(rng, n, d)`` and equal noise: a right model of unusual columns."""

    def make(rng: Rng) -> Data:
        d, n = int(rng.integers(2, 5)), int(rng.choice([300, 600, 1200]))
        X = draw(rng, n, d)
        A = rng.standard_normal((1, X.shape[1])) / X.std(axis=0)
        t = X @ A.T
        net = oh.OneHiddenNet(A / np.std(t), [1.0], -np.mean(t, axis=0) / np.std(t), 0.5)
        f = net.predict(X)
        y = f + level * np.std(f) * rng.standard_normal(n)
        return Data(X, y, 1, net, {"activation": "relu"}, f)

    return make


def noisy(errors):
    """Return a kind with errors ``errors(rng, X, f)`` of mean zero: the network is right."""

    def make(rng: Rng) -> Data:
        X, net, f = teacher(rng)
        y = f + errors(rng, X, f)
        return Data(X, y, net.n_hidden, net, {"activation": net.activation.name}, f)

    return make


def seen(change):
    """Return a kind whose noise is .4 and whose rows are ``change(rng, X, y, f)``."""
    return gaussian(change=change, level=0.4)


def _over_time(drift):
    return seen(lambda rng, X, y, f: (X, y + drift(rng, np.arange(len(y)) / len(y))))


def _missing_column(rng: Rng) -> Data:
    X, net, f = teacher(rng, k=2)
    return Data(
        X[:, :-1], f + 0.3 * rng.standard_normal(len(f)), 2, None, {"activation": net.activation.name}
    )


def _twin_column(rng: Rng, noise: float) -> Data:
    X, net, f = teacher(rng, k=1)
    twin = X[:, :1] + noise * X[:, :1].std() * rng.standard_normal((len(X), 1))
    y = f + 0.3 * rng.standard_normal(len(f))
    wide = oh.OneHiddenNet(
        np.column_stack([net.weights, np.zeros(1)]), net.output, net.bias, net.intercept, net.activation
    )
    truth, mean = (wide, f) if noise else (None, None)
    return Data(np.column_stack([X, twin]), y, 1, truth, {"activation": net.activation.name}, mean)


def _clipped(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    X = X.copy()
    X[:, 0] = np.minimum(X[:, 0], np.quantile(X[:, 0], 0.75))
    return X, y


def _left_out(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    kept = X[:, 0] < np.quantile(X[:, 0], 0.7)
    return X[kept], y[kept]


def _mistyped(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    X, bad = X.copy(), rng.random(len(X)) < 0.02
    X[bad, 0] *= 10
    return X, y


def _unit_of_another_kind(rng: Rng) -> Data:
    X, net, _ = teacher(rng, k=1)
    t = X @ net.weights.T + net.bias
    t = (t[:, 0] - t[:, 0].mean()) / t[:, 0].std()
    y = np.where(t > 0, t, 0.4 * t) + 0.25 * rng.standard_normal(len(t))
    return Data(X, y, 1, None, {"activation": "relu"})


def _positive(rng: Rng) -> Data:
    """Positive amounts with equal normal errors, told to be gamma with a logarithmic link."""
    X, net, f = teacher(rng)
    mean = f - f.min() + 1.5
    y = np.maximum(mean + 0.3 * rng.standard_normal(len(f)), 0.05)
    told = {"activation": net.activation.name, "family": "gamma"}
    return Data(X, y, net.n_hidden, net, told, mean, "identity")


def _probit(eta: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(eta)


def _counts(rng: Rng, n: int, d: int) -> np.ndarray:
    return rng.poisson(3, (n, d)).astype(float)


def _dummies(rng: Rng, n: int, d: int) -> np.ndarray:
    return np.column_stack([rng.standard_normal((n, d)), rng.random(n) < 0.4, rng.random(n) < 0.2]).astype(
        float
    )


def _series(rng: Rng, n: int, d: int) -> np.ndarray:
    X = rng.standard_normal((n, d))
    for i in range(1, n):
        X[i] = 0.9 * X[i - 1] + np.sqrt(1 - 0.81) * X[i]
    return X


ADVERSARY: dict[str, Kind] = {
    "skewed and unequal": Kind(RIGHT, noisy(
        lambda rng, X, f: (rng.gamma(2, 1, len(f)) - 2) * 0.3 * np.exp(0.5 * X[:, 1] / X[:, 1].std()))),
    "two sites of unlike noise": Kind(RIGHT, noisy(
        lambda rng, X, f: rng.choice([0.15, 0.6], len(f)) * rng.standard_normal(len(f)))),
    "noise by distance": Kind(RIGHT, noisy(
        lambda rng, X, f: (0.1 + 0.4 * np.abs((X[:, 0] - X[:, 0].mean()) / X[:, 0].std()))
        * rng.standard_normal(len(f)))),
    "noise in proportion": Kind(RIGHT, noisy(lambda rng, X, f: 0.4 * f * rng.standard_normal(len(f)))),
    "lognormal noise": Kind(RIGHT, noisy(
        lambda rng, X, f: 0.3 * (rng.lognormal(0, 1, len(f)) - np.exp(0.5)))),
    "uniform noise": Kind(RIGHT, noisy(lambda rng, X, f: rng.uniform(-0.7, 0.7, len(f)))),
    "inputs of heavy tails": Kind(RIGHT, inputs(lambda rng, n, d: rng.standard_t(2.5, (n, d)))),
    "inputs that are counts": Kind(RIGHT, inputs(_counts)),
    "inputs with two dummies": Kind(RIGHT, inputs(_dummies)),
    "inputs that are a series": Kind(RIGHT, inputs(_series)),
    "nearly a twin column": Kind(RIGHT, lambda rng: _twin_column(rng, 0.1)),
    "rows sorted by y": Kind(RIGHT, seen(lambda rng, X, y, f: (X[np.argsort(y)], np.sort(y)))),
    "rows left out by x": Kind(RIGHT, seen(_left_out)),
    "a twin column": Kind(WRONG, lambda rng: _twin_column(rng, 0.0)),
    "trend over time": Kind(WRONG, _over_time(lambda rng, t: 1.5 * t)),
    "season": Kind(WRONG, _over_time(lambda rng, t: 0.5 * np.sin(40 * t))),
    "shift halfway": Kind(WRONG, _over_time(lambda rng, t: 0.8 * (t > 0.5))),
    "half the rows of another sign": Kind(WRONG, seen(
        lambda rng, X, y, f: (X, np.where(rng.random(len(y)) < 0.4, 2 * f.mean() - y, y)))),
    "wrong rows of one input": Kind(WRONG, seen(_mistyped)),
    "probit for logit": Kind(WRONG, family(
        "bernoulli", lambda rng, e: rng.random(len(e)) < _probit(e), _probit, 1.5, law="probit")),
    "positives that were missed": Kind(WRONG, family(
        "bernoulli", lambda rng, e: rng.random(len(e)) < 0.75 * sigmoid(e), lambda e: 0.75 * sigmoid(e), 2.0,
        law="labels that flip")),
    "shares told to be counts": Kind(WRONG, family("poisson", lambda rng, e: rng.binomial(6, sigmoid(e)))),
    "normal amounts told to be gamma": Kind(WRONG, _positive),
    "missing amounts as zeros": Kind(WRONG, seen(
        lambda rng, X, y, f: (X, np.where(rng.random(len(y)) < 0.1, 0.0, y - y.min() + 0.5)))),
    "slope below the kink": Kind(NONE, _unit_of_another_kind),
    "product of two units": Kind(NONE, function(
        lambda rng, Z: np.maximum(Z[:, 0] + 0.5, 0) * np.maximum(Z[:, 1] + 0.5, 0))),
    "sum of smooth curves": Kind(NONE, function(lambda rng, Z: np.cos(1.5 * Z[:, 0]) + 0.3 * Z[:, 1] ** 3)),
    "two splits of a tree": Kind(NONE, function(
        lambda rng, Z: 1.0 * (Z[:, 0] > 0) + 1.0 * ((Z[:, 0] > 0) & (Z[:, 1] > 0)))),
    "a column that is missing": Kind(UNSEEN, _missing_column),
    "inputs cut off": Kind(UNSEEN, seen(_clipped)),
}  # fmt: skip
