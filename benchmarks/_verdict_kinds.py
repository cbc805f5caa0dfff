"""Kinds of data that break a model's assumptions, and honest ones beside them, for ``verdict_kinds``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks._verdict_data import network

Rng = np.random.Generator


@dataclass(frozen=True)
class Data:
    """What the library is given, and the network behind it (None: no network made it)."""

    X: np.ndarray
    y: np.ndarray
    hidden: int | None
    truth: oh.OneHiddenNet | None
    options: dict[str, Any] = field(default_factory=dict)
    mean: np.ndarray | None = None  # of y at the rows, where it is known
    law: str = ""  # the true link, scale or activation, where another one is assumed


@dataclass(frozen=True)
class Kind:
    """A kind of data: its group in the table and what makes it."""

    group: str
    make: Callable[[Rng], Data]


def teacher(rng: Rng, scale: float = 1.0, rows: tuple[int, ...] = (300, 600, 1200), k: int | None = None):
    """Draw inputs, a network whose values have this standard deviation, and its values."""
    d, k = int(rng.integers(2, 5)), int(rng.integers(1, 3)) if k is None else k
    g = ("relu", "relu", "tanh", "softplus")[rng.integers(4)]
    X = rng.standard_normal((int(rng.choice(rows)), d)) * rng.uniform(0.5, 3, d) + rng.uniform(-1, 1, d)
    net = network(rng, X, g, k, False)
    size = scale / np.std(net.predict(X))
    net = oh.OneHiddenNet(net.weights, net.output * size, net.bias, net.intercept, net.activation)
    return X, net, net.predict(X)


def noise(rng: Rng, n: int, kind: str) -> np.ndarray:
    """Errors of unit variance."""
    if kind == "t3":
        return rng.standard_t(3, n) / np.sqrt(3)
    if kind == "skewed":
        return (rng.gamma(2, 1, n) - 2) / np.sqrt(2)
    return rng.standard_normal(n)


def gaussian(
    kind: str = "equal",
    change: Callable[..., Any] | None = None,
    level: float | None = None,
    law: str = "",
    mean: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
):
    """Return a kind of Gaussian y; ``change(rng, X, y, f)`` returns the X and y that are given.

    ``mean(f, y)`` is the mean of what is given, y being what it was before the change.
    """

    def make(rng: Rng) -> Data:
        X, net, f = teacher(rng)
        s = rng.uniform(0.15, 0.7) if level is None else level
        e = s * noise(rng, len(f), kind)
        if kind == "unequal":
            z = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
            e = e * np.exp(0.7 * z) / np.exp(0.49)
        y = f + e
        middle = f if change is None else None if mean is None else mean(f, y)
        X, y = (X, y) if change is None else change(rng, X, y, f)
        return Data(X, y, net.n_hidden, net, {"activation": net.activation.name}, middle, law)

    return make


def family(
    name: str,
    draw: Callable[..., np.ndarray],
    mean: Callable[[np.ndarray], np.ndarray] | None = None,
    scale: float = 1.0,
    shift: float = 0.0,
    law: str = "",
    factor: float = 1.0,
):
    """Return a kind of y drawn by ``draw(rng, eta)``, with this mean, and told to be of a family.

    ``factor`` times the mean of the family with the log link is the mean: the true intercept holds it.
    """

    def make(rng: Rng) -> Data:
        X, net, f = teacher(rng, scale, (600, 900, 1500))
        level = net.intercept + shift - f.mean()
        net = oh.OneHiddenNet(net.weights, net.output, net.bias, level, net.activation)
        eta = net.predict(X)
        y = np.asarray(draw(rng, eta), float)
        options = {"activation": net.activation.name, "family": name}
        truth = oh.OneHiddenNet(net.weights, net.output, net.bias, level + np.log(factor), net.activation)
        return Data(X, y, net.n_hidden, truth, options, None if mean is None else mean(eta), law)

    return make


def function(values: Callable[[Rng, np.ndarray], np.ndarray], hidden: int | None = 2):
    """Return a kind that no network made: a function of standardised inputs with noise."""

    def make(rng: Rng) -> Data:
        X = rng.standard_normal((int(rng.choice([300, 600, 1200])), 4))
        f = values(rng, X @ np.linalg.qr(rng.standard_normal((4, 4)))[0])
        y = f + rng.uniform(0.1, 0.5) * max(np.std(f), 0.3) * rng.standard_normal(len(X))
        return Data(X, y, hidden, None, {"activation": ("relu", "tanh")[rng.integers(2)]})

    return make


def asked(more: int = 0, other: str | None = None):
    """Return a kind asked for another number of units, or with another activation: no answer is right."""

    def make(rng: Rng) -> Data:
        X, net, f = teacher(rng, k=2)
        y = f + rng.uniform(0.05, 0.3) * rng.standard_normal(len(f))
        g = net.activation.name
        if other is not None:
            g = "relu" if g == "tanh" else "tanh"
        law = "" if other is None else net.activation.name
        return Data(X, y, net.n_hidden + more, None, {"activation": g}, f, law)

    return make


def linear_part(rng: Rng) -> Data:
    X, net, f = teacher(rng, k=1)
    v = rng.standard_normal(X.shape[1]) / X.std(axis=0) / 2
    whole = oh.OneHiddenNet(net.weights, net.output, net.bias, net.intercept, net.activation, v)
    y = f + X @ v + 0.3 * rng.standard_normal(len(f))
    return Data(X, y, 1, whole, {"activation": net.activation.name, "linear": True})


def sigmoid(t: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-t))


def _floor(low: float, high: float):
    def change(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
        return X, np.clip(y, np.quantile(y, low), np.quantile(y, high))

    return change


def _imputed(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    X, gone = X.copy(), rng.random(len(X)) < rng.uniform(0.15, 0.35)
    X[gone, 0] = X[~gone, 0].mean()
    return X, y


def _copies(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    rows = np.repeat(rng.permutation(len(X))[: len(X) // 2], 2)
    rows = rng.permutation(rows)
    return X[rows], y[rows]


def _blocks(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    """Blocks of ten neighbouring rows share an effect as large as the noise, and an input."""
    block = np.arange(len(X)) // 10
    shared = rng.standard_normal(block[-1] + 1)[block]
    return X, y + np.std(y - f) * shared


def _series(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    e = y - f
    for i in range(1, len(e)):
        e[i] = 0.6 * e[i - 1] + 0.8 * e[i]
    return X, f + e


def _outliers(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    bad = rng.random(len(X)) < 0.03
    return X, np.where(bad, y + 8 * np.std(y - f) * (1 + rng.random(len(X))), y)


def _regimes(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    other = rng.random(len(X)) < 0.25
    return X, np.where(other, y - 1.6 * (f - f.mean()), y)


def _truncated(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    kept = y < np.quantile(y, rng.uniform(0.7, 0.85))
    return X[kept], y[kept]


def _measured_inputs(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    return X + 0.3 * X.std(axis=0) * rng.standard_normal(X.shape), y


def _groups_shuffled(rng: Rng, X: np.ndarray, y: np.ndarray, f: np.ndarray):
    X, y = _blocks(rng, X, y, f)
    order = rng.permutation(len(X))
    return X[order], y[order]


def _identity(eta: np.ndarray) -> np.ndarray:
    return eta - eta.min() + 0.4


def _square(eta: np.ndarray) -> np.ndarray:
    return (eta - eta.min() + 0.3) ** 2


def _cloglog(eta: np.ndarray) -> np.ndarray:
    return -np.expm1(-np.exp(eta))


def _some_flipped(eta: np.ndarray) -> np.ndarray:
    return 0.07 + 0.86 * sigmoid(eta)


def _with_floor(eta: np.ndarray) -> np.ndarray:
    return 0.15 + 0.85 * sigmoid(eta)


def _labels(mean: Callable[[np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda rng, eta: rng.random(len(eta)) < mean(eta)


def _negative_binomial(rng: Rng, eta: np.ndarray, size: float = 3.0) -> np.ndarray:
    return rng.poisson(np.exp(eta) * rng.gamma(size, 1 / size, len(eta)))


RIGHT, WRONG, NONE, UNSEEN = (
    "right model", "wrong model of y or its errors", "no such network", "what no sample shows"
)  # fmt: skip
KINDS: dict[str, Kind] = {
    "equal noise": Kind(RIGHT, gaussian()),
    "unequal noise": Kind(RIGHT, gaussian("unequal")),
    "t3 noise": Kind(RIGHT, gaussian("t3")),
    "skewed noise": Kind(RIGHT, gaussian("skewed")),
    "y in three digits": Kind(RIGHT, gaussian(change=lambda rng, X, y, f: (X, np.round(y, 1)))),
    "x in two digits": Kind(RIGHT, gaussian(change=lambda rng, X, y, f: (np.round(X, 1), y))),
    "linear part": Kind(RIGHT, linear_part),
    "logit": Kind(RIGHT, family("bernoulli", _labels(sigmoid), sigmoid, 2.0)),
    "rare events": Kind(RIGHT, family("bernoulli", _labels(sigmoid), sigmoid, 2.0, -2.5)),
    "poisson": Kind(RIGHT, family("poisson", lambda rng, e: rng.poisson(np.exp(e)), np.exp, shift=1.0)),
    "gamma": Kind(RIGHT, family("gamma", lambda rng, e: np.exp(e) * rng.gamma(5, 0.2, len(e)), np.exp)),
    "negative binomial": Kind(RIGHT, family("negative_binomial", _negative_binomial, np.exp, shift=1.0)),
    "over-dispersed counts": Kind(RIGHT, family("poisson", _negative_binomial, np.exp, shift=1.0)),
    "floor": Kind(WRONG, gaussian(change=_floor(0.25, 1.0), level=0.6)),
    "ceiling": Kind(WRONG, gaussian(change=_floor(0.0, 0.7), level=0.5)),
    "floor and ceiling": Kind(WRONG, gaussian(change=_floor(0.15, 0.85), level=0.5)),
    "imputed gaps": Kind(WRONG, gaussian(change=_imputed)),
    "copies of rows": Kind(WRONG, gaussian(change=_copies)),
    "blocks in order": Kind(WRONG, gaussian(change=_blocks)),
    "series": Kind(WRONG, gaussian(change=_series)),
    "outliers on one side": Kind(WRONG, gaussian(change=_outliers)),
    "two regimes": Kind(WRONG, gaussian(change=_regimes)),
    "exponential of y": Kind(
        WRONG,
        gaussian(
            change=lambda rng, X, y, f: (X, np.exp(y / np.std(y))),
            level=0.4,
            law="log(y)",
            mean=lambda f, y: np.exp(f / np.std(y) + 0.5 * 0.4**2 / np.var(y)),
        ),
    ),
    "cube of y": Kind(WRONG, gaussian(change=lambda rng, X, y, f: (X, np.cbrt(y - y.mean())), level=0.3)),
    "five levels of y": Kind(
        WRONG,
        gaussian(change=lambda rng, X, y, f: (X, np.digitize(y, np.quantile(y, [0.2, 0.4, 0.6, 0.8])) * 1.0)),
    ),
    "log1p of counts": Kind(
        WRONG, family("gaussian", lambda rng, e: np.log1p(rng.poisson(np.exp(e))), shift=0.5)
    ),
    "flipped labels": Kind(
        WRONG, family("bernoulli", _labels(_some_flipped), _some_flipped, 2.5, law="labels that flip")
    ),
    "floor of probability": Kind(
        WRONG, family("bernoulli", _labels(_with_floor), _with_floor, 2.5, law="labels that flip")
    ),
    "cloglog for logit": Kind(WRONG, family("bernoulli", _labels(_cloglog), _cloglog, 1.5, law="cloglog")),
    "gamma with identity mean": Kind(
        WRONG,
        family("gamma", lambda rng, e: _identity(e) * rng.gamma(5, 0.2, len(e)), _identity, law="identity"),
    ),
    "poisson with root mean": Kind(
        WRONG, family("poisson", lambda rng, e: rng.poisson(_square(e)), _square, 1.5, law="sqrt")
    ),
    "zeros beside counts": Kind(
        WRONG,
        family(
            "poisson",
            lambda rng, e: rng.poisson(np.exp(e)) * (rng.random(len(e)) > 0.2),
            lambda e: 0.8 * np.exp(e),
            shift=1.0,
            factor=0.8,
        ),
    ),
    "saturating counts": Kind(
        WRONG, family("poisson", lambda rng, e: np.minimum(rng.poisson(np.exp(e)), 6), shift=1.2)
    ),
    "interaction": Kind(NONE, function(lambda rng, Z: Z[:, 0] * Z[:, 1] + np.maximum(Z[:, 2], 0))),
    "wave": Kind(NONE, function(lambda rng, Z: np.sin(2.5 * Z[:, 0]) + 0.4 * Z[:, 1])),
    "step": Kind(NONE, function(lambda rng, Z: 1.0 * (Z[:, 0] > 0.3) + np.maximum(Z[:, 1], 0))),
    "maximum of three": Kind(NONE, function(lambda rng, Z: np.max(Z[:, :3], axis=1))),
    "length": Kind(NONE, function(lambda rng, Z: np.linalg.norm(Z, axis=1))),
    "ratio": Kind(NONE, function(lambda rng, Z: Z[:, 0] / (1 + Z[:, 1] ** 2))),
    "linear function": Kind(NONE, function(lambda rng, Z: Z[:, 0], 1)),
    "pure noise": Kind(NONE, function(lambda rng, Z: np.zeros(len(Z)), 1)),
    "pure noise, width open": Kind(NONE, function(lambda rng, Z: np.zeros(len(Z)), None)),
    "a unit fewer": Kind(NONE, asked(-1)),
    "a unit more": Kind(NONE, asked(1)),
    "other activation": Kind(NONE, asked(other="tanh")),
    "rows left out by y": Kind(UNSEEN, gaussian(change=_truncated)),
    "errors in x": Kind(UNSEEN, gaussian(change=_measured_inputs)),
    "groups, shuffled": Kind(UNSEEN, gaussian(change=_groups_shuffled)),
}
