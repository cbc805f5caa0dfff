"""Local likelihood of degree at most 2 with the Gaussian kernel: closed form over sums of 1, z and z⊗z."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from onehidden import machine
from onehidden.precision import in_double

_LOWEST = -700.0  # exponent below which numbers are denormal and slow; above 0 is rounding
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
    """By NumPy, whose exp and small products take half of XLA's time, on the threads of matrix products."""
    count, _, rows = B.shape
    # In units of log 2: exp2 saves a seventh of exp.
    A = np.asarray(_left(jnp.asarray(Q), jnp.asarray(h))).T / np.log(2)
    # |x - X|² <= 2 (|x|² + |X|²), and rounding is a part of that.
    reach = 2 * (np.max(np.sum(Q**2, axis=1), initial=0.0) + 2 * np.max(B[:, -1], initial=0.0))
    far = bool(reach / np.min(h, initial=np.inf) ** 2 > -_LOWEST)
    # Threads gain from some hundredths of a second on.
    workers = machine.granted() if len(Q) * count * rows > 1e7 else 1
    with ExitStack() as scope:
        each: Each = map
        if workers > 1:
            scope.enter_context(machine.at_most(1))
            each = scope.enter_context(ThreadPoolExecutor(workers)).map
        return (_mutual if _at_the_sample(Q, h, B) else _one_way)(A, B, F, far, each).T


def _one_way(A: np.ndarray, B: np.ndarray, F: np.ndarray, far: bool, each: Each) -> np.ndarray:
    """Return the sums (p, q), a task for every tile of queries."""
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
    """Return the sums (p, q) at the sample itself: w_ij = w_ji is computed once and used twice.

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
    """Σ F w (p, q) over some tiles of data for one of queries, whose factor A (d+2, q) is in units of log 2.

    ``far`` says whether exponents may leave the range that counts, where exp2 is slow. ``back`` holds F
    (p, q) of the queries and (t, p, s) sums at the data, to which their share is added.
    """
    total = np.zeros((F.shape[1], A.shape[1]))
    weights, part = np.empty((B.shape[2], A.shape[1])), np.empty_like(total)
    for t in range(len(B)):
        np.matmul(B[t].T, A, out=weights)
        if far:
            np.clip(weights, _LOWEST, 0.0, out=weights)
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
    return _centred(kernel_sums(data, Q, h), Q, data[2])


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
    diagonal or a multiple of the identity restricts C the same way; none at all is degree 1, C = h²I. With
    ``leave_out`` the points are rows of the data and each is left out of its own fit: it lies at distance
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
    ok, log_det = _conditioned(cov, h)
    ok &= mass > 1e-6
    cov = np.where(ok[:, None, None], cov, (h**2)[:, None, None] * eye)
    log_det = np.where(ok, log_det, 2 * d * np.log(h))
    precision = np.linalg.inv(cov)
    first = np.einsum("qij,qj->qi", precision, mean)
    second = eye / (h**2)[:, None, None] - precision
    log_density = (
        np.log(np.maximum(mass, np.finfo(float).tiny) / (n - leave_out))
        - 0.5 * np.sum(mean * first, axis=1)
        - 0.5 * (log_det + d * np.log(2 * np.pi))
    )
    return LocalFit(log_density, [first, second], mass, ok)


def _conditioned(
    cov: Float[np.ndarray, "q d d"], h: Float[np.ndarray, " q"]
) -> tuple[Bool[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Whether the smallest eigenvalue of each says something, and its log determinant.

    The other eigenvalues of a positive definite C multiply to at most (tr C/(d-1))^{d-1}, so that det C
    bounds the smallest from below, and Cholesky's factors prove C definite. Eigenvalues, seven times as
    dear, are computed where that does not decide.
    """
    d = cov.shape[1]
    trace = np.trace(cov, axis1=1, axis2=2)
    # Relative to h² the local covariance is of order one; below this a direction holds no information.
    least = 1e-8 * np.maximum(h**2 * 1e-4, trace)
    sign, log_det = np.linalg.slogdet(cov)
    others = (d - 1) * np.log(np.maximum(trace, np.finfo(float).tiny) / max(d - 1, 1))
    ok = (sign > 0) & (log_det - others > np.log(least))
    try:
        np.linalg.cholesky(cov[ok])
    except np.linalg.LinAlgError:
        ok[:] = False
    ok[~ok] = np.linalg.eigvalsh(cov[~ok])[:, 0] > least[~ok]
    return ok, log_det
