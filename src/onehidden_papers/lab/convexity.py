"""Local strong convexity at a network [ZSJBD]: extreme eigenvalues of the Hessian over the first layer.

f(W) = ½ E(Σ v_i g(<w_i, x> + b_i) + c - y)². At the truth its Hessian has the blocks
v_i v_j E[g'(t_i) g'(t_j) x x'], which for x ~ N(0, I) are integrals over the plane of w_i and w_j.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.activations import Activation
from onehidden.checks import Check, at_least
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet

_REACH, _PANEL, _OUTER, _INNER = 9.0, 0.5, 8, 96
_BATCH_ENTRIES = 1 << 22


@dataclass(frozen=True)
class LocalConvexity:
    """What the theorem speaks of, measured.

    Attributes
    ----------
    population : tuple of float
        Smallest and largest eigenvalue of the expected Hessian at the network, x ~ N(0, I).
    empirical : tuple of float
        The same of the Hessian on the data given (NaN without data).
    kappa, lam : float
        σ_1/σ_k and Π σ_i / σ_k^k of the weights.
    rho : float
        ρ(σ_k); 0 means that the theorem promises nothing.
    power : int or None
        p of P1 (None where P1 fails).
    m0, M0 : float
        v_min² ρ(σ_k)/(κ² λ) and k v_max² σ_1^(2p): the theorem's bounds up to its constants.
    """

    population: tuple[float, float]
    empirical: tuple[float, float]
    kappa: float
    lam: float
    rho: float
    power: int | None
    m0: float
    M0: float

    @property
    def checks(self) -> list[Check]:
        unseen = "a zero eigenvalue leaves a direction that the loss cannot see: the units are not determined"
        few = "more samples, or fewer units, make the loss strictly convex around the answer"
        measured = [("expected Hessian", self.population, unseen)]
        if np.isfinite(self.empirical[0]):
            measured.append(("Hessian on the data", self.empirical, few))
        name = "{} is positive definite (smallest over largest eigenvalue)"
        return [
            at_least(name.format(which), low / high if high > 0 else float("nan"), 1e-10, advice)
            for which, (low, high), advice in measured
        ]


def local_convexity(
    network: OneHiddenNet, X: npt.ArrayLike | None = None, y: npt.ArrayLike | None = None
) -> LocalConvexity:
    """Curvature at a network: expected under N(0, I), on data where given, and the theorem's quantities.

    Parameters
    ----------
    network : OneHiddenNet
        The network.
    X : array_like of shape (n, d), optional
        Inputs.
    y : array_like of shape (n,), optional
        Target, with X.

    Returns
    -------
    LocalConvexity
        Eigenvalues and quantities of the theorem.
    """
    values = population_eigenvalues(network)
    empirical = (float("nan"), float("nan"))
    if X is not None:
        y = network.predict(X) if y is None else y
        spectrum = np.linalg.eigvalsh(empirical_hessian(network, X, y))
        empirical = (float(spectrum[0]), float(spectrum[-1]))
    singular = np.linalg.svd(network.weights, compute_uv=False)
    k = network.n_hidden
    smallest = float(singular[-1]) if k <= network.n_inputs else 0.0
    with np.errstate(divide="ignore"):
        kappa = float(singular[0]) / smallest if smallest > 0 else float("inf")
        lam = float(np.exp(np.sum(np.log(singular / smallest)))) if smallest > 0 else float("inf")
    properties = network.activation.properties()
    rho = network.activation.rho(smallest) if smallest > 0 else 0.0
    power = properties["power"] if properties["P1"] else None
    v = np.abs(network.output)
    m0 = float(np.min(v) ** 2 * rho / (kappa**2 * lam)) if np.isfinite(lam) else 0.0
    M0 = float(k * np.max(v) ** 2 * singular[0] ** (2 * power)) if power is not None else float("nan")
    return LocalConvexity((float(values[0]), float(values[-1])), empirical, kappa, lam, rho, power, m0, M0)


def population_eigenvalues(network: OneHiddenNet) -> Float[np.ndarray, " r"]:
    """All distinct eigenvalues of the expected Hessian, rising, without forming (kd)²."""
    A = network.weights
    rank = max(int(np.linalg.matrix_rank(A)), 1)
    # Outside the span every direction sees the same matrix: one such direction stands for all.
    coordinates = A @ np.linalg.svd(A)[2][: rank + 1].T
    inside = OneHiddenNet(coordinates, network.output, network.bias, activation=network.activation)
    return np.linalg.eigvalsh(population_hessian(inside))


def population_hessian(network: OneHiddenNet) -> Float[np.ndarray, "kd kd"]:
    """Expected Hessian in the rows at the truth, x ~ N(0, I), by quadrature.

    Parameters
    ----------
    network : OneHiddenNet
        The network, which gives the labels, too.

    Returns
    -------
    ndarray of shape (k d, k d)
        The Hessian.
    """
    A, v = network.weights, network.output
    k, d = A.shape
    H = np.zeros((k, d, k, d))
    for i in range(k):
        for j in range(i, k):
            zeroth, second, frame = _plane(network, i, j)
            block = zeroth * np.eye(d) + frame.T @ (second - zeroth * np.eye(len(frame))) @ frame
            H[i, :, j, :] = v[i] * v[j] * block
            H[j, :, i, :] = H[i, :, j, :].T
    return H.reshape(k * d, k * d)


def _plane(network: OneHiddenNet, i: int, j: int) -> tuple[float, np.ndarray, np.ndarray]:
    """E[g'_i g'_j], E[g'_i g'_j u u'] and the orthonormal frame (1 or 2 rows) in which u = frame x."""
    a, b, g = network.weights, network.bias, network.activation
    length = np.linalg.norm(a, axis=1)
    first = a[i] / length[i] if length[i] > 0 else np.eye(a.shape[1])[0]
    s, weight = _line(-b[i] / length[i] if length[i] > 0 else 0.0)
    slope_i = g.derivative(length[i] * s + b[i])
    along = float(a[j] @ first)
    across = a[j] - along * first
    width = float(np.linalg.norm(across))
    if width <= 1e-12 * max(length[j], np.finfo(float).tiny):  # one line carries both
        both = weight * slope_i * g.derivative(along * s + b[j])
        return float(np.sum(both)), np.array([[float(np.sum(both * s**2))]]), first[None]
    t, inner = _split_line(-(along * s + b[j]) / width)
    both = weight[:, None] * inner * slope_i[:, None] * g.derivative(along * s[:, None] + width * t + b[j])
    cross = float(np.sum(both * s[:, None] * t))
    second = np.array([[float(np.sum(both * s[:, None] ** 2)), cross], [cross, float(np.sum(both * t**2))]])
    return float(np.sum(both)), second, np.stack([first, across / width])


def _line(kink: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes on [-9, 9] with normal weights; the kink and zero are panel edges."""
    t, w = np.polynomial.legendre.leggauss(_OUTER)
    edges = np.linspace(-_REACH, _REACH, round(2 * _REACH / _PANEL) + 1)
    edges = np.unique(np.concatenate([edges, np.clip([kink], -_REACH, _REACH)]))
    half = np.diff(edges)[:, None] / 2
    s = (edges[:-1, None] + half * (t + 1)).ravel()
    return s, (half * w).ravel() * _normal(s)


def _split_line(kink: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(q, 2·_INNER) nodes for every outer node, split where the second unit has its kink."""
    t, w = np.polynomial.legendre.leggauss(_INNER)
    middle = np.clip(kink, -_REACH, _REACH)[:, None]
    nodes, weights = [], []
    for low, high in ((np.full_like(middle, -_REACH), middle), (middle, np.full_like(middle, _REACH))):
        half = (high - low) / 2
        nodes.append(low + half * (t + 1))
        weights.append(half * w * _normal(nodes[-1]))
    return np.concatenate(nodes, axis=1), np.concatenate(weights, axis=1)


def _normal(s: np.ndarray) -> np.ndarray:
    return np.exp(-(s**2) / 2) / np.sqrt(2 * np.pi)


def empirical_hessian(
    network: OneHiddenNet, X: npt.ArrayLike, y: npt.ArrayLike
) -> Float[np.ndarray, "kd kd"]:
    """Hessian of 1/(2n) Σ (prediction - y)² in the rows of the network; at a kink g'' counts as 0.

    Parameters
    ----------
    network : OneHiddenNet
        The network.
    X : array_like of shape (n, d)
        Inputs.
    y : array_like of shape (n,)
        Target.

    Returns
    -------
    ndarray of shape (k d, k d)
        The Hessian.
    """
    X, y = np.asarray(X, float), np.asarray(y, float)
    if X.ndim != 2 or X.shape[1] != network.n_inputs or y.shape != (len(X),):
        raise ValueError(f"expected X (n, {network.n_inputs}) and y (n,), got {X.shape} and {y.shape}")
    n, d = X.shape
    k = network.n_hidden
    H = np.zeros((k * d, k * d))
    step = max(1, _BATCH_ENTRIES // (k * d))
    for i in range(0, n, step):
        x, target = X[i : i + step], y[i : i + step]
        t = x @ network.weights.T + network.bias
        slope = network.activation.derivative(t) * network.output
        J = (slope[:, :, None] * x[:, None, :]).reshape(len(x), k * d)
        H += J.T @ J
        remainder = network.activation(t) @ network.output + network.intercept - target
        if np.any(np.abs(remainder) > 1e-12 * (1 + np.abs(target))):
            curve = remainder[:, None] * _second_derivative(network.activation, t) * network.output
            for u in range(k):
                own = slice(u * d, (u + 1) * d)
                H[own, own] += (curve[:, u, None] * x).T @ x
    return H / n


@in_double
def _second_derivative(activation: Activation, t: np.ndarray) -> np.ndarray:
    flat = jnp.asarray(t).ravel()
    return np.asarray(jax.vmap(jax.grad(lambda z: activation.slope(z)))(flat)).reshape(t.shape)
