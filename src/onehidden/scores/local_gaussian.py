"""Local likelihood of degree at most 2 with the Gaussian kernel: closed form over sums of 1, z and z⊗z."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden import machine
from onehidden.machine import in_double

_LOWEST = -700.0  # exponent below which numbers are denormal and slow; above 0 is rounding
# B and F of ``prepare``, and the places of the upper triangle.
Tiles = tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]


def _tiles() -> tuple[int, int]:
    """Rows of queries and of data held at once: half a MiB of weights on a CPU, more on an accelerator."""
    return (512, 128) if jax.default_backend() == "cpu" else (4096, 16384)


@jax.jit
def _sums(Q: jax.Array, h: jax.Array, B: jax.Array, F: jax.Array) -> jax.Array:
    """Σ_i F_i exp(-|X_i - x|²/2h²) for one tile of queries; B (t, d+2, s) and F (t, p, s) come in tiles.

    Two matrix products and one exp: -|X - x|²/2h² = ⟨(x, -|x|²/2, -1), (X, 1, |X|²/2)⟩/h². The cancellation
    costs eps·|x|²/h², harmless in centred coordinates.
    """
    A = _left(Q, h)

    def one(total: jax.Array, tile: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        Bt, Ft = tile
        return total + _weights(A, Bt) @ Ft.T, None

    return jax.lax.scan(one, jnp.zeros((Q.shape[0], F.shape[1])), (B, F))[0]


def _left(Q: jax.Array, h: jax.Array) -> jax.Array:
    rate = (1 / h**2)[:, None]
    return jnp.concatenate([Q * rate, -0.5 * jnp.sum(Q**2, axis=1, keepdims=True) * rate, -rate], axis=1)


def _weights(A: jax.Array, B: jax.Array) -> jax.Array:
    return jnp.exp(jnp.clip(A @ B, _LOWEST, 0.0))


def prepare(Z: Float[np.ndarray, "n d"]) -> Tiles:
    """Tile the data: columns of B are (z, 1, |z|²/2), of F 1, z, z⊗z (upper triangle); padding is zero."""
    n, d = Z.shape
    upper = np.triu_indices(d)
    B = np.concatenate([Z, np.ones((n, 1)), 0.5 * np.sum(Z**2, axis=1, keepdims=True)], axis=1)
    F = np.concatenate([np.ones((n, 1)), Z, Z[:, upper[0]] * Z[:, upper[1]]], axis=1)
    tile = min(_tiles()[1], n)
    return _in_tiles(B, tile), _in_tiles(F, tile), upper


def _in_tiles(rows: np.ndarray, tile: int) -> np.ndarray:
    """(t, columns, tile): products with F take 9 % less so at d = 8, where they are the largest share."""
    count = -(-len(rows) // tile)
    padded = np.pad(rows, ((0, count * tile - len(rows)), (0, 0)))
    return np.ascontiguousarray(padded.reshape(count, tile, -1).transpose(0, 2, 1))


def kernel_sums(
    data: Tiles, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]
) -> Float[np.ndarray, "q p"]:
    """Σ_i F_i exp(-|X_i - x|²/2h²) at every query x with its bandwidth h."""
    B, F, _ = data
    return (_on_cpu if jax.default_backend() == "cpu" else _on_device)(Q, h, B, F)


def _on_cpu(Q: np.ndarray, h: np.ndarray, B: np.ndarray, F: np.ndarray) -> np.ndarray:
    """By NumPy, whose exp and small products take half of XLA's time, on the threads of matrix products.

    At the sample itself w_ij = w_ji: a weight is computed once, by the first of the two rows.
    """
    # In units of log 2: exp2 saves a seventh of exp.
    A = np.asarray(_left(jnp.asarray(Q), jnp.asarray(h))).T / np.log(2)
    # |x - X|² <= 2 (|x|² + |X|²): whether exponents may leave the range where exp2 is fast.
    reach = 2 * (np.max(np.sum(Q**2, axis=1), initial=0.0) + 2 * np.max(B[:, -1], initial=0.0))
    far = bool(reach / np.min(h, initial=np.inf) ** 2 > -_LOWEST)
    (count, p, rows), q = F.shape, len(Q)
    flat = F.transpose(1, 0, 2).reshape(p, -1)
    itself = flat[0].sum() == q and np.array_equal(flat[1 : len(A) - 1, :q].T, Q)
    mutual = bool(itself and np.ptp(h) == 0)
    tile = rows * max(_tiles()[0] // rows, 1)

    def one(i: int) -> np.ndarray:
        """Sums at a tile of queries; at the sample from there on, with what the tile adds to later rows."""
        mine = np.ascontiguousarray(A[:, i : i + tile])
        width, own = mine.shape[1], flat[:, i : i + mine.shape[1]]
        weights, sums = np.empty((rows, width)), np.zeros((p, count * rows - i if mutual else width))
        for t in range(i // rows if mutual else 0, count):
            np.matmul(B[t].T, mine, out=weights)
            if far:
                np.maximum(weights, _LOWEST, out=weights)
            np.exp2(weights, out=weights)
            sums[:, :width] += F[t] @ weights
            if mutual and t * rows >= i + tile:
                sums[:, t * rows - i :][:, :rows] += own @ weights.T
        return sums

    # Threads gain from some hundredths of a second on.
    workers = machine.granted() if q * count * rows > 1e7 else 1
    begins, total = range(0, q, tile), np.zeros((p, count * rows if mutual else q))
    with machine.at_most(1) if workers > 1 else nullcontext(), ThreadPoolExecutor(workers) as threads:
        for i, sums in zip(begins, (threads.map if workers > 1 else map)(one, begins), strict=True):
            total[:, i : i + sums.shape[1]] += sums
    return total[:, :q].T


def _on_device(Q: np.ndarray, h: np.ndarray, B: np.ndarray, F: np.ndarray) -> np.ndarray:
    q, tile = len(Q), min(_tiles()[0], max(len(Q), 1))
    on_device, parts = (jnp.asarray(B), jnp.asarray(F)), []
    for i in range(0, q, tile):
        rows, width = Q[i : i + tile], h[i : i + tile]
        short = tile - len(rows)
        if short:  # one compiled shape for every tile
            rows, width = np.pad(rows, ((0, short), (0, 0))), np.pad(width, (0, short), constant_values=1.0)
        parts.append(_sums(rows, width, *on_device))
    return np.concatenate([np.asarray(part) for part in parts])[:q]


CURVATURES = ("full", "diagonal", "spherical", "none")


class LocalFit(NamedTuple):
    """Derivatives of log f at q points in working coordinates."""

    log_density: np.ndarray  # (q,) Â_0, not normalised to mass one over space
    derivatives: list[np.ndarray]  # Â_1 (q, d), Â_2 (q, d, d), …
    mass: np.ndarray  # (q,) kernel-weighted number of neighbours
    ok: np.ndarray  # (q,) whether the local problem has a well conditioned solution


@in_double
def local_moments(
    data: Tiles, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q d"], Float[np.ndarray, "q d d"]]:
    """M_0 (q,), the local mean minus x (q, d) and the local covariance (q, d, d)."""
    sums, upper, (q, d) = kernel_sums(data, Q, h), data[2], Q.shape
    mass = sums[:, 0]
    safe = np.maximum(mass, np.finfo(float).tiny)[:, None]
    centre = sums[:, 1 : d + 1] / safe
    second = np.empty((q, d, d))
    second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = sums[:, d + 1 :] / safe
    return mass, centre - Q, second - centre[:, :, None] * centre[:, None, :]


def gaussian_fit(
    data: Tiles,
    n: int,
    Q: Float[np.ndarray, "q d"],
    h: Float[np.ndarray, " q"],
    curvature: str = "full",
) -> LocalFit:
    """(14)–(15) of [GMOV]: â_1 = C⁻¹m̄, Â_2 = h⁻²I - C⁻¹, with C restricted where asked.

    The kernel times the local density is Gaussian of mean m̄ and covariance C, so a quadratic term that is
    diagonal or a multiple of the identity restricts C the same way; none at all is degree 1, C = h²I.
    """
    mass, mean, cov = local_moments(data, Q, h)
    d = Q.shape[1]
    eye, kernel = np.eye(d), (h**2)[:, None, None] * np.eye(d)
    if curvature == "diagonal":
        cov = cov * eye
    elif curvature == "spherical":
        cov = (np.trace(cov, axis1=1, axis2=2) / d)[:, None, None] * eye
    elif curvature == "none":
        cov = kernel
    # Relative to h² the local covariance is of order one; below this a direction holds no information.
    trace = np.trace(cov, axis1=1, axis2=2)
    ok = np.linalg.eigvalsh(cov)[:, 0] > 1e-8 * np.maximum(h**2 * 1e-4, trace)
    ok &= mass > 1e-6
    cov = np.where(ok[:, None, None], cov, kernel)
    precision = np.linalg.inv(cov)
    first = np.einsum("qij,qj->qi", precision, mean)
    log_density = (
        np.log(np.maximum(mass, np.finfo(float).tiny) / n)
        - 0.5 * np.sum(mean * first, axis=1)
        - 0.5 * (np.linalg.slogdet(cov)[1] + d * np.log(2 * np.pi))
    )
    return LocalFit(log_density, [first, eye / (h**2)[:, None, None] - precision], mass, ok)
