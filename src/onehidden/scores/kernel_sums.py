"""Gaussian kernel sums of 1, z and z⊗z at many points: matrix products over tiles that stay in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden import threads

_RANGE = -700.0, 0.0  # of exponents that count: below, numbers are denormal and slow; above is rounding
_WORTH = 1e7  # pairs of a query and a sample, some hundredths of a second, from which threads gain
# B and F of ``prepare``, and the places of the upper triangle.
Each = Callable[[Callable[[int], None], Iterable[int]], Iterable[None]]  # map, or that of a pool of threads
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
    return jnp.exp(jnp.clip(A @ B, *_RANGE))


def prepare(Z: Float[np.ndarray, "n d"]) -> Tiles:
    """Data in tiles: columns of B are (z, 1, |z|²/2), of F 1, z, z⊗z (upper triangle); padding is zero."""
    n, d = Z.shape
    upper = np.triu_indices(d)
    B = np.concatenate([Z, np.ones((n, 1)), 0.5 * np.sum(Z**2, axis=1, keepdims=True)], axis=1)
    F = np.concatenate([np.ones((n, 1)), Z, Z[:, upper[0]] * Z[:, upper[1]]], axis=1)
    tile = min(_tiles()[1], n)
    return _in_tiles(B, tile), _in_tiles(F, tile), upper


def _in_tiles(rows: np.ndarray, tile: int) -> np.ndarray:
    """(t, columns, tile). A product with F that lies so takes 9 % less at d = 8, and 12 and 35 % more, of a
    smaller share, at d = 4 and 2.
    """
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
    """By NumPy, whose exp and small products take half of XLA's time, on the threads of matrix products."""
    count, _, rows = B.shape
    # In units of log 2: exp2 saves a seventh of exp.
    A = np.asarray(_left(jnp.asarray(Q), jnp.asarray(h))).T / np.log(2)
    # |x - X|² <= 2 (|x|² + |X|²), and rounding is a part of that.
    reach = 2 * (np.max(np.sum(Q**2, axis=1), initial=0.0) + 2 * np.max(B[:, -1], initial=0.0))
    far = bool(reach / np.min(h, initial=np.inf) ** 2 > -_RANGE[0])
    workers = threads.granted() if len(Q) * count * rows > _WORTH else 1
    with ExitStack() as scope:
        each: Each = map
        if workers > 1:
            scope.enter_context(threads.at_most(1))
            each = scope.enter_context(ThreadPoolExecutor(workers)).map
        return (_mutual if _at_the_sample(Q, h, B) else _one_way)(A, B, F, far, each).T


def _one_way(A: np.ndarray, B: np.ndarray, F: np.ndarray, far: bool, each: Each) -> np.ndarray:
    """The sums (p, q), a task for every tile of queries."""
    tile, total = _tiles()[0], np.zeros((F.shape[1], A.shape[1]))

    def one(i: int) -> None:
        total[:, i : i + tile] = _added(np.ascontiguousarray(A[:, i : i + tile]), B, F, far)

    list(each(one, range(0, A.shape[1], tile)))
    return total


def _at_the_sample(Q: np.ndarray, h: np.ndarray, B: np.ndarray) -> bool:
    """Whether the queries are the rows of the data, in their order, with one bandwidth."""
    q, d = Q.shape
    if np.sum(B[:, d]) != q or np.ptp(h):  # ones, and zeros in the padding
        return False
    return np.array_equal(B[:, :d].transpose(0, 2, 1).reshape(-1, d)[:q], Q)


def _mutual(A: np.ndarray, B: np.ndarray, F: np.ndarray, far: bool, each: Each) -> np.ndarray:
    """The sums (p, q) at the sample itself: w_ij = w_ji, so that a weight is computed once and used twice.

    Blocks of rows sit around a circle, and in round r each meets the one r places on; half the circle is
    every pair once. In a round a block asks once and is asked once: threads never write to the same place,
    and how many there are does not change the order of the sums.
    """
    (count, p, s), q = F.shape, A.shape[1]
    tiles = max(_tiles()[0] // s, 1)
    at = [slice(i, min(i + tiles, count)) for i in range(0, count, tiles)]
    A = np.pad(A, ((0, 0), (0, count * s - q)))
    asking = [np.ascontiguousarray(A[:, i.start * s : i.stop * s]) for i in at]
    own = [np.ascontiguousarray(F[i].transpose(1, 0, 2)).reshape(p, -1) for i in at]
    asks = [np.zeros_like(part) for part in own]
    asked = np.zeros((count, p, s))
    for shift in range(len(at) // 2 + 1):

        def meet(i: int, shift: int = shift) -> None:
            other = at[(i + shift) % len(at)]
            back = (own[i], asked[other]) if shift else None
            asks[i] += _added(asking[i], B[other], F[other], far, back)

        list(each(meet, range(shift if 2 * shift == len(at) else len(at))))
    return (np.hstack(asks) + asked.transpose(1, 0, 2).reshape(p, -1))[:, :q]


def _added(
    A: np.ndarray,
    B: np.ndarray,
    F: np.ndarray,
    far: bool,
    back: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Σ F w (p, q) over some tiles of data for one of queries.

    Parameters
    ----------
    A : (d+2, q) of the queries, in units of log 2.
    far : whether exponents may leave the range that counts, where exp2 is slow.
    back : F (p, q) of the queries and (t, p, s) sums at the data, to which their share is added.
    """
    total = np.zeros((F.shape[1], A.shape[1]))
    weights, part = np.empty((B.shape[2], A.shape[1])), np.empty_like(total)
    for t in range(len(B)):
        np.matmul(B[t].T, A, out=weights)
        if far:
            np.clip(weights, *_RANGE, out=weights)
        np.exp2(weights, out=weights)
        total += np.matmul(F[t], weights, out=part)
        if back is not None:
            back[1][t] += back[0] @ weights.T
    return total


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
