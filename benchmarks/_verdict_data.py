"""Truths, inputs and noise of the verdict's catalogue, every draw from a stream of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

import onehidden as oh
from benchmarks._verdict_cases import Case
from onehidden.run import stream

TABLES = {"iris": 4, "wine": 13, "diabetes": 10, "breast-cancer": 10}  # columns used
RHO = 0.9  # of autocorrelated inputs and noise
MISSING = 0.8  # length of the part of a row that falls on the column withheld
_CROWDED = 0.8  # units whose bends correlate more on these rows are drawn again


@dataclass(frozen=True)
class Sample:
    """What the library is given, and what it is not told.

    Attributes
    ----------
    X, y : (n, d) and (n,), as given.
    clean : (n,) the true function at the true inputs; of a family the mean of y.
    noise : standard deviation of y - clean; 0 without noise.
    truth : the network behind it, None where there is none in the family.
    family : what the library is told of y; empty for a number with noise.
    """

    X: Float[np.ndarray, "n d"]
    y: Float[np.ndarray, " n"]
    clean: Float[np.ndarray, " n"]
    noise: float
    truth: oh.OneHiddenNet | None
    family: str = ""


# Family told, standard deviation and mean of the linear predictor.
_TOLD = {
    "logit": ("bernoulli", 2.0, 0.0),
    "rare events": ("bernoulli", 2.0, -2.5),
    "poisson": ("poisson", 1.0, 1.0),
    "over-dispersed": ("poisson", 1.0, 1.0),
    "negative binomial": ("negative_binomial", 1.0, 1.0),
    "gamma": ("gamma", 1.0, 0.0),
}


def sample(case: Case) -> Sample:
    """The rows of a case."""
    X = inputs(case)
    truth, clean = target(case, X)
    if case.is_family:
        return _of_family(case, X, truth, clean)
    given, y = disturbed(case, X, clean)
    if case.truth == "missing":
        given = given[:, :-1]
    return Sample(given, y, clean, float(np.std(y - clean)) if case.noise != "none" else 0.0, truth)


def _of_family(case: Case, X: np.ndarray, net: oh.OneHiddenNet | None, eta: np.ndarray) -> Sample:
    """Rows of a family: the network is brought to the size and the level of a linear predictor."""
    assert net is not None
    told, size, level = _TOLD[case.noise]
    rng, scale = _stream(case, "noise"), size / np.std(eta)
    intercept = level + scale * (net.intercept - np.mean(eta))
    net = oh.OneHiddenNet(net.weights, scale * net.output, net.bias, intercept, net.activation)
    eta = net.predict(X)
    if told == "bernoulli":
        mean = 1 / (1 + np.exp(-eta))
        y = (rng.random(len(eta)) < mean).astype(float)
    else:
        mean, shape = np.exp(eta), 5.0 if told == "gamma" else 3.0
        rate = mean if case.noise == "poisson" else mean * rng.gamma(shape, 1 / shape, len(eta))
        y = rate if told == "gamma" else rng.poisson(rate).astype(float)
    return Sample(X, y, mean, float(np.std(y - mean)), net, told)


def inputs(case: Case) -> Float[np.ndarray, "n d"]:
    """(n, d) inputs of the case's law, columns of variance about one; one column more to be withheld."""
    rng = _stream(case, "inputs")
    n, d = case.n, case.d + (case.truth == "missing")
    if case.law in TABLES:
        rows = oh.problems.TABLES[case.law].rows[:, :d]
        return rows[rng.permutation(len(rows))[:n]]
    Z = rng.standard_normal((n, d))
    label = rng.random(n)
    if case.noise == "autocorrelated":
        Z = _autoregressive(Z)
        label = np.repeat(label, 20)[:n]  # a cluster lasts
    if case.law == "correlated":
        return Z @ (0.6 * np.eye(d) + 0.8 * rng.standard_normal((d, d)) / np.sqrt(d)) + rng.standard_normal(d)
    if case.law == "skewed":
        return (np.exp(0.6 * Z) - np.exp(0.18)) / np.sqrt(np.exp(0.72) - np.exp(0.36))
    if case.law == "heavy":
        return np.sinh(Z) / np.sqrt((np.exp(2.0) - 1) / 2)
    if case.law == "clusters":
        centres = 1.2 * rng.standard_normal((3, d))
        return 0.6 * Z + centres[(3 * label).astype(int)]
    return Z


def target(case: Case, X: np.ndarray) -> tuple[oh.OneHiddenNet | None, Float[np.ndarray, " n"]]:
    """The truth where it is a network of the family, and the function at the rows."""
    rng = _stream(case, "teacher")
    d = X.shape[1]
    if case.truth in ("network", "weak", "missing"):
        net = network(rng, X, case.activation, case.k, case.truth == "missing")
        if case.truth == "weak":
            # The last unit has a tenth to a third of the others' strength: at the edge of what noise shows.
            net = _with_output(net, net.output * np.append(np.ones(case.k - 1), rng.uniform(0.1, 0.35)))
        return (None if case.truth == "missing" else net), net.predict(X)
    if case.is_tie:
        net = tie(rng, X, case.truth, case.activation)
        return net, net.predict(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    Z = Z @ np.linalg.qr(rng.standard_normal((d, d)))[0] if case.truth != "tree" else Z
    return None, FUNCTIONS[case.truth](rng, Z)


FUNCTIONS = {
    "noise": lambda rng, Z: np.zeros(len(Z)),
    "linear": lambda rng, Z: Z[:, 0],
    "sine": lambda rng, Z: np.sin(3 * Z[:, 0]) + 0.5 * Z[:, 1],
    "product": lambda rng, Z: Z[:, 0] * Z[:, 1] * Z[:, min(2, Z.shape[1] - 1)] + np.maximum(Z[:, 0], 0),
    "tree": lambda rng, Z: (Z[:, 0] > rng.uniform(-0.4, 0.4)) + 1.5 * (Z[:, 0] > 0) * (Z[:, 1] > 0.2),
    # A maximum of four is no sum of bent units: it needs two layers.
    "max": lambda rng, Z: np.max(np.column_stack([Z[:, :3], np.zeros(len(Z))]), axis=1),
    "two-layer": lambda rng, Z: _two_layers(rng, Z),
}


def network(
    rng: np.random.Generator, X: np.ndarray, activation: str, k: int, spread: bool
) -> oh.OneHiddenNet:
    """Random units with biases, each worth .7 to 1.3 of a standard deviation on these rows.

    Drawn again while two of them bend alike on these rows; ``spread`` leans every row on the last column.
    """
    best, least = None, np.inf
    for _ in range(100):
        net = _draw(rng, X, activation, k, spread)
        alike = _crowding(net, X)
        if alike < least:
            best, least = net, alike
        if alike < _CROWDED:
            break
    assert best is not None
    return best


def _draw(rng: np.random.Generator, X: np.ndarray, activation: str, k: int, spread: bool) -> oh.OneHiddenNet:
    A = rng.standard_normal((k, X.shape[1]))
    if spread:
        A[:, :-1] *= np.sqrt(1 - MISSING**2) / np.linalg.norm(A[:, :-1], axis=1, keepdims=True)
        A[:, -1] = MISSING
    # Rows see a projection of unit spread; smooth units of that gain bend well inside the data.
    A *= {"tanh": 1.5, "softplus": 2.5}.get(activation, 1.0) / np.std(X @ A.T, axis=0)[:, None]
    t = X @ A.T
    b = -np.mean(t, axis=0) + rng.uniform(-0.7, 0.7, k) * np.std(t, axis=0)
    size = np.std(oh.activations.get(activation)(t + b), axis=0)
    w = rng.choice([-1.0, 1.0], k) * rng.uniform(0.7, 1.3, k) / size
    return oh.OneHiddenNet(A, w, b, rng.uniform(-1, 1), activation)


def _crowding(net: oh.OneHiddenNet, X: np.ndarray) -> float:
    """The largest correlation of two units' values once a linear function of the rows is taken out."""
    design = np.column_stack([X, np.ones(len(X))])
    values = net.activation(X @ net.weights.T + net.bias)
    values = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    length = np.linalg.norm(values, axis=0)
    if np.any(length == 0):
        return 1.0
    values = values / length
    return float(np.max(np.abs(np.triu(values.T @ values, 1)), initial=0.0))


def tie(rng: np.random.Generator, X: np.ndarray, kind: str, activation: str) -> oh.OneHiddenNet:
    """Units whose other sides, turned together, compute the same function: sum_S w_i <a_i, x> = 0."""
    d = X.shape[1]
    # Two orthonormal directions; rows read centred columns of unit spread.
    U = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    gain = 1.0 if activation in ("relu", "squared_relu") else 3.0
    if kind == "clip":  # between two levels
        A, w, b = U[[0, 0]], [1.0, -1.0], [0.5, -0.5]
    elif kind == "hat":
        A, w, b = U[[0, 0, 0]], [1.0, -2.0, 1.0], [0.8, 0.0, -0.8]
    elif kind == "three":  # directions at 120 degrees
        angle = 2 * np.pi * np.arange(3) / 3
        A, w, b = np.column_stack([np.cos(angle), np.sin(angle)]) @ U, [1.0] * 3, rng.uniform(-0.4, 0.4, 3)
    elif kind == "bump":  # the quadratic spline: also sum_S w_i b_i <a_i, x> = 0
        A, w, b = U[[0, 0, 0]], [1.0, -2.0, 1.0], [1.0, 0.0, -1.0]
    else:  # "frame": sum w_i a_i a_i' = 0
        half = np.sqrt(0.5) * (U[0] + U[1]), np.sqrt(0.5) * (U[0] - U[1])
        A, w, b = np.array([U[0], U[1], *half]), [1.0, 1.0, -1.0, -1.0], np.zeros(4)
    A = gain * np.asarray(A) / X.std(axis=0)
    return oh.OneHiddenNet(A, w, gain * np.asarray(b) - A @ X.mean(axis=0), rng.uniform(-1, 1), activation)


def disturbed(case: Case, X: np.ndarray, clean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and target as they are recorded: noise of ``level`` standard deviations of the function."""
    rng = _stream(case, "noise")
    n = len(clean)
    scale = 1.0 if case.truth == "noise" else case.level * float(np.std(clean))
    e = rng.standard_normal(n)
    if case.noise == "none":
        return X, clean
    if case.noise == "unequal":
        z = np.clip((X[:, 0] - X[:, 0].mean()) / X[:, 0].std(), -3, 3)
        size = np.exp(0.8 * z)
        e = e * size / np.sqrt(np.mean(size**2))
    elif case.noise == "heavy":
        e = rng.standard_t(3, n) / np.sqrt(3)
    elif case.noise == "skewed":
        e = (rng.gamma(2, 1, n) - 2) / np.sqrt(2)
    elif case.noise == "autocorrelated":
        e = _autoregressive(e[:, None])[:, 0]
    elif case.noise == "rounded":
        y = clean + 0.5 * scale * e
        return X, scale * np.round(y / scale)
    elif case.noise == "error in x":
        # A quarter of the level: the regression on the recorded inputs is then still this network, up to
        # about its standard errors; larger errors bend it away, which no certificate can see.
        given = X + 0.25 * case.level * X.std(axis=0) * rng.standard_normal(X.shape)
        return given, clean + 0.5 * scale * e
    return X, clean + scale * e


def _autoregressive(e: np.ndarray) -> np.ndarray:
    """AR(1) along the rows with unit variance."""
    out = e.copy()
    for i in range(1, len(e)):
        out[i] = RHO * out[i - 1] + np.sqrt(1 - RHO**2) * e[i]
    return out


def _two_layers(rng: np.random.Generator, Z: np.ndarray) -> np.ndarray:
    first = np.maximum(Z @ rng.standard_normal((Z.shape[1], 4)) + rng.uniform(-0.5, 0.5, 4), 0)
    second = first - first.mean(axis=0)
    second = second @ rng.standard_normal((4, 3))
    return np.maximum(second / second.std(axis=0), 0) @ np.array([1.0, -1.0, 1.0])


def _with_output(net: oh.OneHiddenNet, output: np.ndarray) -> oh.OneHiddenNet:
    return oh.OneHiddenNet(net.weights, output, net.bias, net.intercept, net.activation)


def _stream(case: Case, what: str) -> np.random.Generator:
    return stream(case.seed, "verdict", *case.words, what)
