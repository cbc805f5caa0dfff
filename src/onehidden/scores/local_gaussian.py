"""Local likelihood of degree at most 2 with the Gaussian kernel: closed form over tiled sums."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden import threads
from onehidden.precision import in_double

CURVATURES = ("full", "diagonal", "spherical", "none")
_RANGE = -700.0, 0.0  # of exponents that count: below, numbers are denormal and slow; above is rounding
_WORTH = 1e7  # pairs of a query and a sample, some hundredths of a second, from which threads gain
# B and F of ``prepare``, and the places of the upper triangle.
Tiles = tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]


class LocalFit(NamedTuple):
    """Derivatives of log f at q points in working coordinates.

    Attributes
    ----------
    log_density : (q,) â_0, not normalised to mass one over space.
    derivatives : Â_1 (q, d), Â_2 (q, d, d), …
    mass : (q,) kernel-weighted number of neighbours.
    ok : (q,) whether the local problem has a well conditioned solution.
    """

    log_density: np.ndarray
    derivatives: list[np.ndarray]
    mass: np.ndarray
    ok: np.ndarray


def _tiles() -> tuple[int, int]:
    """Rows of queries and of data held at once: half a MiB of weights on a CPU, more on an accelerator."""
    return (512, 128) if jax.default_backend() == "cpu" else (4096, 16384)


@jax.jit
def _sums(Q: jax.Array, h: jax.Array, B: jax.Array, F: jax.Array) -> jax.Array:
    """Σ_i F_i exp(-|X_i - x|²/2h²) for one tile of queries; B (t, d+2, s) and F (t, s, p) come in tiles.

    Two matrix products and one exp: -|X - x|²/2h² = ⟨(x, -|x|²/2, -1), (X, 1, |X|²/2)⟩/h². The cancellation
    costs eps·|x|²/h², harmless in centred coordinates.
    """
    A = _left(Q, h)

    def one(total: jax.Array, tile: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        Bt, Ft = tile
        return total + _weights(A, Bt) @ Ft, None

    return jax.lax.scan(one, jnp.zeros((Q.shape[0], F.shape[2])), (B, F))[0]


def _sums_on_cpu(A: np.ndarray, B: np.ndarray, F: np.ndarray, far: bool) -> np.ndarray:
    """The same sums (p, q) by NumPy, whose exp and small products take half of XLA's time on a CPU.

    A (d+2, q) is in units of log 2: exp2 saves a seventh of exp. ``far``: whether exponents may leave the
    range that counts, where exp2 is slow.
    """
    total = np.zeros((F.shape[2], A.shape[1]))
    weights, part = np.empty((B.shape[2], A.shape[1])), np.empty_like(total)
    for Bt, Ft in zip(B, F, strict=True):
        np.matmul(Bt.T, A, out=weights)
        if far:
            np.clip(weights, *_RANGE, out=weights)
        np.exp2(weights, out=weights)
        total += np.matmul(Ft.T, weights, out=part)
    return total


def _left(Q: jax.Array, h: jax.Array) -> jax.Array:
    rate = (1 / h**2)[:, None]
    return jnp.concatenate([Q * rate, -0.5 * jnp.sum(Q**2, axis=1, keepdims=True) * rate, -rate], axis=1)


def _weights(A: jax.Array, B: jax.Array) -> jax.Array:
    return jnp.exp(jnp.clip(A @ B, *_RANGE))


def prepare(Z: Float[np.ndarray, "n d"]) -> Tiles:
    """Data in tiles: B = (z, 1, |z|²/2) transposed, and F = 1, z, z⊗z (upper triangle); padding has F = 0."""
    n, d = Z.shape
    upper = np.triu_indices(d)
    B = np.concatenate([Z, np.ones((n, 1)), 0.5 * np.sum(Z**2, axis=1, keepdims=True)], axis=1)
    F = np.concatenate([np.ones((n, 1)), Z, Z[:, upper[0]] * Z[:, upper[1]]], axis=1)
    tile = min(_tiles()[1], n)
    count = -(-n // tile)
    pad = ((0, count * tile - n), (0, 0))
    B = np.pad(B, pad).reshape(count, tile, d + 2).transpose(0, 2, 1)
    return np.ascontiguousarray(B), np.pad(F, pad).reshape(count, tile, -1), upper


@in_double
def local_moments(
    data: Tiles, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q d"], Float[np.ndarray, "q d d"]]:
    """M_0 (q,), the local mean minus x (q, d) and the local covariance (q, d, d)."""
    B, F, upper = data
    sums = _tiled if jax.default_backend() == "cpu" else _tiled_on_device
    return _centred(sums(Q, h, B, F), Q, upper)


def _tiled(Q: np.ndarray, h: np.ndarray, B: np.ndarray, F: np.ndarray) -> np.ndarray:
    """The sums of all queries, tile by tile, on as many threads as matrix products may use."""
    A, tile = np.asarray(_left(jnp.asarray(Q), jnp.asarray(h))).T / np.log(2), _tiles()[0]
    # |x - X|² <= 2 (|x|² + |X|²), and rounding is a part of that.
    reach = 2 * (np.max(np.sum(Q**2, axis=1), initial=0.0) + 2 * np.max(B[:, -1], initial=0.0))
    far = bool(reach / np.min(h, initial=np.inf) ** 2 > -_RANGE[0])
    parts = [np.ascontiguousarray(A[:, i : i + tile]) for i in range(0, len(Q), tile)]
    workers = min(threads.granted(), len(parts)) if len(Q) * B.shape[0] * B.shape[2] > _WORTH else 1
    if workers < 2:
        found = [_sums_on_cpu(part, B, F, far) for part in parts]
    else:
        with threads.at_most(1), ThreadPoolExecutor(workers) as pool:
            found = list(pool.map(lambda part: _sums_on_cpu(part, B, F, far), parts))
    return np.hstack([np.zeros((F.shape[2], 0)), *found]).T


def _tiled_on_device(Q: np.ndarray, h: np.ndarray, B: np.ndarray, F: np.ndarray) -> np.ndarray:
    q, tile = len(Q), min(_tiles()[0], max(len(Q), 1))
    on_device, parts = (jnp.asarray(B), jnp.asarray(F)), []
    for i in range(0, q, tile):
        rows, width = Q[i : i + tile], h[i : i + tile]
        short = tile - len(rows)
        if short:  # one compiled shape for every tile
            rows, width = np.pad(rows, ((0, short), (0, 0))), np.pad(width, (0, short), constant_values=1.0)
        parts.append(_sums(rows, width, *on_device))
    return np.concatenate([np.asarray(part) for part in parts])[:q]


def _centred(
    M: np.ndarray, Q: np.ndarray, upper: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, mean minus query and covariance from the raw sums."""
    q, d = Q.shape
    mass = M[:, 0]
    safe = np.maximum(mass, np.finfo(float).tiny)[:, None]
    centre = M[:, 1 : d + 1] / safe
    second = np.empty((q, d, d))
    second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = M[:, d + 1 :] / safe
    return mass, centre - Q, second - centre[:, :, None] * centre[:, None, :]


def gaussian_fit(
    data: Tiles,
    n: int,
    Q: Float[np.ndarray, "q d"],
    h: Float[np.ndarray, " q"],
    curvature: str = "full",
    leave_out: bool = False,
) -> LocalFit:
    """(14)–(15) of [GMOV]: â_1 = C⁻¹m̄, Â_2 = h⁻²I - C⁻¹, with C restricted where asked.

    The kernel times the local density is Gaussian of mean m̄ and covariance C, so a quadratic term that is
    diagonal or a multiple of the identity restricts C the same way; none at all is degree 1, C = h²I.

    Parameters
    ----------
    data : of ``prepare``; n its number of rows.
    Q, h : (q, d) points and (q,) bandwidths.
    leave_out : the points are rows of the data and each is left out of its own fit: it lies at distance
        zero, so only M_0 changes.
    """
    mass, mean, cov = local_moments(data, Q, h)
    if leave_out:
        rest = np.maximum(mass - 1.0, 0.0)
        ratio = (mass / np.maximum(rest, 1e-12))[:, None]
        raw = cov + mean[:, :, None] * mean[:, None, :]
        mean = mean * ratio
        cov = raw * ratio[:, :, None] - mean[:, :, None] * mean[:, None, :]
        mass = rest
    d = Q.shape[1]
    eye = np.eye(d)
    if curvature == "diagonal":
        cov = cov * eye
    elif curvature == "spherical":
        cov = (np.trace(cov, axis1=1, axis2=2) / d)[:, None, None] * eye
    elif curvature == "none":
        cov = (h**2)[:, None, None] * eye
    # Relative to h² the local covariance is of order one; below this a direction holds no information.
    smallest = np.linalg.eigvalsh(cov)[:, 0]
    ok = (smallest > 1e-8 * np.maximum(h**2 * 1e-4, np.trace(cov, axis1=1, axis2=2))) & (mass > 1e-6)
    cov = np.where(ok[:, None, None], cov, (h**2)[:, None, None] * eye)
    precision = np.linalg.inv(cov)
    first = np.einsum("qij,qj->qi", precision, mean)
    second = eye / (h**2)[:, None, None] - precision
    log_density = (
        np.log(np.maximum(mass, np.finfo(float).tiny) / (n - leave_out))
        - 0.5 * np.sum(mean * first, axis=1)
        - 0.5 * (np.linalg.slogdet(cov)[1] + d * np.log(2 * np.pi))
    )
    return LocalFit(log_density, [first, second], mass, ok)
