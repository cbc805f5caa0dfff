"""J'J, J'r and r'r of the squared loss as mergeable sums over batches.

J'J needs no J. With x~ = (x, 1), s~ = (slopes, 1) and units u, a column of the Jacobian of an output is one
of the features f = (s~_i x~_a, u_j), times an output weight or one. So J'J = (c'c) * (sum_n f f')[F, F], with
F the feature of each parameter and c (q, p) its factor in each output. The sums of s~_i s~_j x~_a x~_b are
symmetric in (i, j) and in (a, b): all of them are the product of a table of (k+1)(k+2)/2 pairs with one of
(d+1)(d+2)/2, a quarter of the work of J'J written out, and the same whatever the number of outputs. A
homogeneous unit of degree m is u_i = s_i <a~_i, x~> / m (Euler), a~ = (a, b): its sums with the others follow
from the same product.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from onehidden.fit.parametrisation import (
    Inputs,
    Numbers,
    Parametrisation,
    Target,
    Weight,
    jacobian_pieces,
    roots,
)
from onehidden.machine import in_double


def by_pairs(form: Parametrisation, write: float = 60.0) -> bool:
    """Whether the tables of pairs are cheaper than the Jacobian written out and multiplied by itself.

    Writing an entry of a table takes the time of ``write`` multiply-adds of a matrix product. Below 400
    parameters one compiled Jacobian beats many small products.
    """
    if form.free is not None:
        return False
    left, right = _count(form.k + 1), _count(form.d + 1)
    cheaper = 2 * left * right + write * (left + right) < form.q * (form.size**2 + write * form.size)
    return form.size >= 400 and cheaper


@in_double
def normal_equations(
    form: Parametrisation,
    theta: Float[np.ndarray, " p"],
    X: Inputs,
    y: Target,
    weight: Weight = None,
    row: Numbers = None,
    *,
    rough: bool = False,
    pairs: bool | None = None,
    table: int = 11 << 20,
) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"], float]:
    """J'J, J'r and r'r of rows X (n, d), targets y (n,) or (n, q) and weights, one each when None.

    ``rough`` forms J'J in single precision, block by block; sums of blocks and everything else are in double.
    ``pairs`` says whether J'J comes from tables of pairs, by default where that is cheaper; weights that
    differ from output to output need the Jacobian written out. ``table`` bounds the bytes of the largest
    table: 1326 pairs of either kind over 16 384 rows take .95 s in blocks of 411 rows, .78 of 1024, .75 of
    2048, .79 of 4096. ``row`` is not needed: this is a function as ``RowSum`` takes.
    """
    theta = np.asarray(theta, float)
    alike = weight is None or weight.ndim == 1  # for every output
    if alike and by_pairs(form) if pairs is None else pairs:
        sums, gradient, loss = _pair_sums(form, theta, X, y, weight, rough, table)
        return _assembled(form, theta, *sums, rough), gradient, loss
    hessian, gradient, loss = np.zeros((form.size, form.size)), np.zeros(form.size), 0.0
    for r, J in jacobian_pieces(form, theta, X, y, weight):
        # NumPy turns J.T @ J into a symmetric rank-k product, half the work of XLA's on the CPU.
        hessian += J.T @ J
        gradient += J.T @ r
        loss += float(r @ r)
    return hessian, gradient, loss


def _pair_sums(
    form: Parametrisation,
    theta: Float[np.ndarray, " p"],
    X: Inputs,
    y: Target,
    weight: Weight,
    rough: bool,
    table: int,
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], Float[np.ndarray, " p"], float]:
    """Sums of s~_i s~_j x~_a x~_b (i <= j, a <= b), of u_j s~_i x~_a and of u_i u_j; J'r and r'r."""
    k, d, q, n = form.k, form.d, form.q, len(y)
    xt, root = np.ascontiguousarray(X.T), roots(weight, n)
    kind = np.float32 if rough else np.float64
    sizes = _count(k + 1), _count(d + 1)
    columns = min(max(table // (max(sizes) * kind().itemsize), 256), 4096, 1 << max(8, (n - 1).bit_length()))
    tables = [np.zeros((size, columns), kind) for size in sizes]
    pairs, units, gram = np.zeros(sizes), np.zeros((k, k + 1, d + 1)), np.zeros((k, k))
    residuals, loss = np.zeros(((k + 1) * (d + 1) + k, q)), 0.0  # sums of f_i r_o and of r'r
    weights, output, bias, beta, intercept = form.unpack(theta)
    output, beta = output.reshape(k, -1), beta.reshape(d, -1)
    level, y = np.reshape(intercept, (-1, 1)), y.reshape(n, -1).T
    for at in range(0, n, columns):
        part = slice(at, at + columns)
        x, target, scale = np.vstack([xt[:, part], np.ones_like(root[part])]), y[:, part], root[part]
        t = np.zeros((k, columns))  # filled up: one shape, one compilation
        t[:, : len(scale)] = weights @ x[:d] + bias[:, None]
        u, s = (np.asarray(v)[:, : len(scale)] for v in _units_and_slopes(form, jnp.asarray(t)))
        r = scale * (output.T @ u + beta.T @ x[:d] + level - target)
        s, u = np.vstack([s * scale, scale[None, :]]), u * scale
        slopes, inputs = (v.astype(kind, copy=False) for v in (s, x))
        # NumPy's products alone: SciPy has a BLAS of its own, and the idle threads of one, which spin for a
        # while, would take the cores from the other.
        left, right = (_pairs(v, t) for v, t in zip((slopes, inputs), tables, strict=True))
        pairs += left @ right.T
        if not form.activation.homogeneity:
            units += np.stack([(one * slopes) @ inputs.T for one in u.astype(kind)])
            gram += u @ u.T
        along = np.stack([(s * one) @ x.T for one in r], axis=-1)
        residuals += np.vstack([along.reshape(-1, q), u @ r.T])
        loss += float(np.sum(r * r))
    feature, factor = _columns(form, theta)
    return (pairs, units, gram), np.einsum("op,po->p", factor, residuals[feature]), loss


def _assembled(
    form: Parametrisation,
    theta: Float[np.ndarray, " p"],
    pairs: Float[np.ndarray, "kk dd"],
    units: Float[np.ndarray, "k k+1 d+1"],
    gram: Float[np.ndarray, "k k"],
    rough: bool,
) -> Float[np.ndarray, "p p"]:
    """J'J from the sums; those of units follow from the others where a unit is homogeneous."""
    k, d, degree = form.k, form.d, form.activation.homogeneity  # of the even part of g, too
    weights, _, bias, _, _ = form.unpack(theta)
    planes = np.column_stack([weights, bias])
    inner, outer = _places(k + 1), _places(d + 1)
    feature, factor = _columns(form, theta)
    hessian = np.empty((form.size, form.size), np.float32 if rough else np.float64)

    def write(rows: np.ndarray, first: int) -> None:
        """Write what J'J has for features from ``first`` on, given their sums with all features."""
        mine = np.flatnonzero((feature >= first) & (feature < first + len(rows)))
        hessian[mine] = (factor[:, mine].T @ factor) * rows[feature[mine] - first][:, feature]

    for i in range(k + 1):  # the full table would be copied twice at this size
        block = pairs[inner[i]].take(outer, axis=1)  # (k+1, d+1, d+1): [j, a, b]
        if degree:
            units[:, i] = np.matmul(block[:k], planes[:, :, None])[..., 0] / degree
        rows = block.transpose(1, 0, 2).reshape(d + 1, -1)
        write(np.hstack([rows, units[:, i].T]), i * (d + 1))
    if degree:
        gram = np.einsum("jia,ia->ji", units[:, :k], planes) / degree
    write(np.hstack([units.reshape(k, -1), gram]), (k + 1) * (d + 1))
    return hessian


def _columns(
    form: Parametrisation, theta: Float[np.ndarray, " p"]
) -> tuple[Int[np.ndarray, " p"], Float[np.ndarray, "q p"]]:
    """The feature of each parameter, and its factor in each output."""
    k, d, q = form.k, form.d, form.q
    at = np.arange((k + 1) * (d + 1)).reshape(k + 1, d + 1)
    unit = np.repeat((k + 1) * (d + 1) + np.arange(k), q)
    feature = form.pack(at[:k, :d], unit, at[:k, d], np.repeat(at[k, :d], q), at[k, d])
    factor = [
        form.pack(np.repeat(w, d), np.tile(own, k), w, np.tile(own, d), own)
        for w, own in zip(form.unpack(theta)[1].reshape(k, q).T, np.eye(q), strict=True)
    ]
    return feature.astype(int), np.array(factor)


@partial(jax.jit, static_argnums=0)
def _units_and_slopes(form: Parametrisation, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    return form.g(t), form.slope(t)


def _count(m: int) -> int:
    """Pairs i <= j of m rows."""
    return m * (m + 1) // 2


def _pairs(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Products of rows i <= j in lexicographic order, written into the table."""
    at, (m, n) = 0, rows.shape
    for i in range(m):
        np.multiply(rows[i], rows[i:], out=table[at : at + m - i, :n])
        at += m - i
    return table[:, :n]


def _places(m: int) -> Int[np.ndarray, "m m"]:
    """Row of the pair (i, j) in the table of pairs."""
    place = np.zeros((m, m), int)
    i, j = np.triu_indices(m)
    place[i, j] = place[j, i] = np.arange(len(i))
    return place
