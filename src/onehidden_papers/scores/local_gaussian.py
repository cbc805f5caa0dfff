"""Local likelihood of degree at most 2 with the Gaussian kernel: closed form over sums of 1, z and z⊗z."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden import machine
from onehidden.machine import in_double

_LOWEST = -700.0  # exponent below which numbers are denormal and slow; above 0 is rounding


class Tiles(NamedTuple):
    """A sample in tiles of rows, padded with zeros."""

    places: Float[np.ndarray, "tiles d+2 rows"]  # z, 1, |z|²/2: the factor of the exponents
    terms: Float[np.ndarray, "tiles p rows"]  # 1, z and the upper triangle of z⊗z


def _tile_sizes() -> tuple[int, int]:
    """Rows of queries and of data held at once: half a MiB of weights on a CPU, more on an accelerator."""
    return (512, 128) if jax.default_backend() == "cpu" else (4096, 16384)


def prepare(Z: Float[np.ndarray, "n d"]) -> Tiles:
    """Return the sample in tiles."""
    n, d = Z.shape
    i, j = np.triu_indices(d)
    places = np.column_stack([Z, np.ones(n), 0.5 * np.sum(Z**2, axis=1)])
    terms = np.column_stack([np.ones(n), Z, Z[:, i] * Z[:, j]])
    tile = min(_tile_sizes()[1], n)
    return Tiles(_in_tiles(places, tile), _in_tiles(terms, tile))


def _in_tiles(rows: np.ndarray, tile: int) -> np.ndarray:
    """(t, columns, tile): products with the terms take 9 % less so at d = 8."""
    count = -(-len(rows) // tile)
    padded = np.pad(rows, ((0, count * tile - len(rows)), (0, 0)))
    return np.ascontiguousarray(padded.reshape(count, tile, -1).transpose(0, 2, 1))


def kernel_sums(
    data: Tiles, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]
) -> Float[np.ndarray, "q p"]:
    """Σ_i terms_i exp(-|z_i - x|²/2h²) at every query x with its bandwidth h.

    Two matrix products and one exp: -|z - x|²/2h² = ⟨(x, -|x|²/2, -1), (z, 1, |z|²/2)⟩/h². The cancellation
    costs eps·|x|²/h², harmless in centred coordinates.
    """
    queries = np.column_stack([Q, -0.5 * np.sum(Q**2, axis=1), -np.ones(len(Q))]) / h[:, None] ** 2
    return (_on_cpu if jax.default_backend() == "cpu" else _on_device)(queries, data)


def _on_cpu(queries: np.ndarray, data: Tiles) -> np.ndarray:
    """By NumPy, whose exp and small products take half of XLA's time, on the threads of matrix products."""
    factor = np.ascontiguousarray(queries.T) / np.log(2)  # exp2 takes a seventh less than exp
    (count, p, rows), q = data.terms.shape, len(queries)

    def one(begin: int) -> np.ndarray:
        mine = np.ascontiguousarray(factor[:, begin : begin + _tile_sizes()[0]])
        weights, sums = np.empty((rows, mine.shape[1])), np.zeros((p, mine.shape[1]))
        for places, terms in zip(data.places, data.terms, strict=True):
            np.matmul(places.T, mine, out=weights)
            np.exp2(np.maximum(weights, _LOWEST, out=weights), out=weights)
            sums += terms @ weights
        return sums

    begins = range(0, q, _tile_sizes()[0])
    # Threads gain from some hundredths of a second on.
    workers = machine.granted() if q * count * rows > 1e7 else 1
    if workers == 1:
        return np.concatenate([one(begin) for begin in begins], axis=1).T
    with machine.at_most(1), ThreadPoolExecutor(workers) as threads:
        return np.concatenate(list(threads.map(one, begins)), axis=1).T


def _on_device(queries: np.ndarray, data: Tiles) -> np.ndarray:
    q, tile = len(queries), min(_tile_sizes()[0], max(len(queries), 1))
    padded = np.pad(queries, ((0, -q % tile), (0, 0)))  # one compiled shape for every tile
    on_device = jnp.asarray(data.places), jnp.asarray(data.terms)
    parts = [_sums(padded[i : i + tile], *on_device) for i in range(0, len(padded), tile)]
    return np.concatenate([np.asarray(part) for part in parts])[:q]


@jax.jit
def _sums(queries: jax.Array, places: jax.Array, terms: jax.Array) -> jax.Array:
    def one(total: jax.Array, tile: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        weights = jnp.exp(jnp.clip(queries @ tile[0], _LOWEST, 0.0))
        return total + weights @ tile[1].T, None

    return jax.lax.scan(one, jnp.zeros((queries.shape[0], terms.shape[1])), (places, terms))[0]


class LocalFit(NamedTuple):
    """Derivatives of log f at q points in working coordinates."""

    derivatives: list[np.ndarray]  # Â_1 (q, d), Â_2 (q, d, d), …
    mass: np.ndarray  # (q,) kernel-weighted number of neighbours
    ok: np.ndarray  # (q,) whether the local problem has a well conditioned solution
    constant: np.ndarray = np.zeros(0)  # (q,) Â_0, where Newton's method found it


@in_double
def local_moments(
    data: Tiles, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q d"], Float[np.ndarray, "q d d"]]:
    """M_0 (q,), the local mean minus x (q, d) and the local covariance (q, d, d)."""
    sums, (q, d) = kernel_sums(data, Q, h), Q.shape
    i, j = np.triu_indices(d)
    mass = sums[:, 0]
    safe = np.maximum(mass, np.finfo(float).tiny)[:, None]
    centre = sums[:, 1 : d + 1] / safe
    second = np.empty((q, d, d))
    second[:, i, j] = second[:, j, i] = sums[:, d + 1 :] / safe
    return mass, centre - Q, second - centre[:, :, None] * centre[:, None, :]


def gaussian_fit(
    data: Tiles, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"], curvature: str = "full"
) -> LocalFit:
    """(14)–(15) of [GMOV]: â_1 = C⁻¹m̄, Â_2 = h⁻²I - C⁻¹, with C restricted where asked.

    The kernel times the local density is Gaussian of mean m̄ and covariance C, so a quadratic term that is
    ``diagonal`` or ``spherical`` restricts C the same way; ``none`` at all is degree 1, C = h²I.
    """
    mass, mean, cov = local_moments(data, Q, h)
    eye, d = np.eye(Q.shape[1]), Q.shape[1]
    kernel = (h**2)[:, None, None] * eye
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
    precision = np.linalg.inv(np.where(ok[:, None, None], cov, kernel))
    first = np.einsum("qij,qj->qi", precision, mean)
    return LocalFit([first, eye / (h**2)[:, None, None] - precision], mass, ok)
