"""Many descents at once: Levenberg–Marquardt on the hyperplanes of a batch of networks.

Outputs, intercept and skip are least squares for any hyperplanes (variable projection), so that a network is
its k hyperplanes (a_i, b_i) alone. With x~ = (z, 1) and s_i = g'(t_i) the Jacobian of output o has the
columns w_io s_i x~_a, less their projection on the units u_j and on the fixed columns. Their products
(W W')_ij sum_n s_i s_j x~_a x~_b are those of a table of pairs of slopes, one a network, with a table of
pairs of inputs that all networks share: one large matrix product for the whole batch, whatever the outputs.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.compiled import jitted
from onehidden.fit.form import Form
from onehidden.fit.problem import Problem

RIDGE = 1e-6  # of the Gram matrix of the units, in its mean diagonal: ten times the rounding of float32
_FIRST, _LEAST, _MOST = 1e-2, 1e-6, 1e6  # damping of the first step and its bounds, in the diagonal of J'J
_GROWTH = 64.0  # most that one refused step multiplies the damping by
_FLAT = 1e-4  # of the mean diagonal of J'J, damped even where a unit has hardly any output

Planes = Float[jax.Array, "P k e"]
Losses = Float[jax.Array, " P"]
Carry = tuple[jax.Array, jax.Array, jax.Array, "Seen"]  # hyperplanes, damping, its growth, what they say


class Table(NamedTuple):
    """What all networks of a batch share.

    Attributes
    ----------
    x : (n, d + 1) inputs and a one.
    pairs : (n, (d + 1)(d + 2) / 2) products of two of its columns.
    fixed : (n, m) orthonormal columns of what every fit has: the constant and, with a skip, the inputs.
    mixing : (m, m) the matrix that makes those orthonormal.
    root : (n,) roots of the weights of the rows.
    y : (n, q) the targets times those roots, less their projection on ``fixed``.
    """

    x: jax.Array
    pairs: jax.Array
    fixed: jax.Array
    mixing: jax.Array
    root: jax.Array
    y: jax.Array


class Seen(NamedTuple):
    """A batch of networks looked at: everything that their hyperplanes (P, k, e) say about the rows.

    Attributes
    ----------
    units, slopes : (P, k, n) values and slopes of the units, times the roots of the weights.
    output, residual : (P, k, q), (P, n, q) least-squares outputs, and what they leave.
    along : (P, k, m) products of the units with the fixed columns.
    factor : (P, k, k) Cholesky factor of the Gram matrix of the units less the fixed columns.
    """

    units: jax.Array
    slopes: jax.Array
    output: jax.Array
    residual: jax.Array
    along: jax.Array
    factor: jax.Array


def table(problem: Problem, form: Form, kind: type[np.floating] = np.float32, pairs: bool = True) -> Table:
    """The rows of a problem as a table in a floating-point type, without pairs where nobody descends."""
    n = problem.n
    root = np.ones(n) if problem.weight is None else np.sqrt(problem.weight)
    x = np.column_stack([problem.Z, np.ones(n)])
    fixed, triangle = np.linalg.qr(root[:, None] * x[:, _fixed(form)])
    y = root[:, None] * problem.y.reshape(n, -1)
    left, right = np.triu_indices(x.shape[1] if pairs else 0)
    parts = (
        x, x[:, left] * x[:, right], fixed, np.linalg.inv(triangle), root, y - fixed @ (fixed.T @ y),
    )  # fmt: skip
    return Table(*(jnp.asarray(part, kind) for part in parts))


def member_bytes(form: Form, n: int) -> int:
    """Bytes that one network of a batch takes during a step in float32."""
    d, k, e = form.d + 1, form.k, form.d + form.bias
    slopes = (k + 1) * (k + 2) // 2
    return 4 * (n * (slopes + k * k + 4 * k + 2 * form.q) + slopes * d * (d + 1) // 2 + 5 * (k * e) ** 2)


def table_bytes(form: Form, n: int) -> int:
    """Bytes of the shared table in float32."""
    return 4 * n * ((form.d + 1) * (form.d + 2) // 2 + 2 * form.d + 4)


def looked(form: Form, rows: Table, planes: Planes) -> Seen:
    """What the hyperplanes of a batch say about the rows."""
    wide = planes if form.bias else jnp.pad(planes, ((0, 0), (0, 0), (0, 1)))
    t = jnp.einsum("pke,ne->pkn", wide, rows.x)
    units, slopes = form.g(t) * rows.root, form.slope(t) * rows.root
    along = units @ rows.fixed
    gram = units @ units.mT - along @ along.mT
    ridge = RIDGE * jnp.trace(gram, axis1=1, axis2=2) / form.k + jnp.finfo(gram.dtype).tiny
    factor = jnp.linalg.cholesky(gram + ridge[:, None, None] * jnp.eye(form.k, dtype=gram.dtype))
    output = jax.scipy.linalg.cho_solve((factor, True), units @ rows.y)
    fitted = units.mT @ output
    residual = fitted - rows.fixed @ (rows.fixed.T @ fitted) - rows.y
    return Seen(units, slopes, output, residual, along, factor)


def mean_squares(seen: Seen) -> Losses:
    """Mean squared residual of each network."""
    return jnp.mean(seen.residual**2, axis=(1, 2))


def normal_equations(
    form: Form, rows: Table, seen: Seen
) -> tuple[Float[jax.Array, "P p p"], Float[jax.Array, "P p"]]:
    """J'J and J'r of the hyperplanes, p = k e, with outputs, intercept and skip projected out."""
    n, d = rows.x.shape
    k, e = form.k, d - 1 + form.bias
    p, count = k * e, len(seen.output)
    s = seen.slopes
    longer = jnp.concatenate([s, jnp.broadcast_to(rows.root, (count, 1, n))], axis=1)
    i, j = (index[:-1] for index in np.triu_indices(k + 1))  # the last pair is that of the rows alone
    products = ((longer[:, i] * longer[:, j]).reshape(-1, n) @ rows.pairs).reshape(count, -1)
    blocks = products[:, jnp.asarray(_places(form))]
    with_fixed = blocks[..., p:] @ rows.mixing
    # [i, j, a] -> row (i, a), column j
    with_units = ((s[:, :, None] * seen.units[:, None]).reshape(-1, n) @ rows.x).reshape(count, k, k, d)
    with_units = with_units[..., :e].transpose(0, 1, 3, 2).reshape(count, p, k)
    with_units = with_units - with_fixed @ seen.along.mT
    half = jax.scipy.linalg.solve_triangular(seen.factor, with_units.mT, lower=True)
    hessian = blocks[..., :p] - with_fixed @ with_fixed.mT - half.mT @ half
    within = seen.output @ seen.output.mT
    hessian = hessian * jnp.repeat(jnp.repeat(within, e, axis=1), e, axis=2)
    toward = s * (seen.output @ seen.residual.mT)
    gradient = (toward.reshape(-1, n) @ rows.x).reshape(count, k, d)
    return hessian, gradient[..., :e].reshape(count, p)


def descended(form: Form, rows: Table, planes: Planes, steps: jax.Array) -> tuple[Planes, Seen]:
    """The hyperplanes after so many steps each, with Nielsen's damping of their own, and what they say."""
    kind = rows.x.dtype
    count, numbers = len(planes), rows.y.size

    def step(_: jax.Array, carry: Carry) -> Carry:
        planes, damping, growth, seen = carry
        hessian, gradient = normal_equations(form, rows, seen)
        diagonal = jnp.maximum(jnp.diagonal(hessian, axis1=1, axis2=2), 0)
        scale = diagonal + _FLAT * jnp.mean(diagonal, axis=1, keepdims=True) + jnp.finfo(kind).tiny
        weight = damping[:, None] * scale
        factor = jnp.linalg.cholesky(hessian + weight[:, None] * jnp.eye(weight.shape[1], dtype=kind))
        move = -jax.scipy.linalg.cho_solve((factor, True), gradient[..., None])[..., 0]
        trial = normalised(form, planes + move.reshape(planes.shape))
        after = looked(form, rows, trial)
        old, new = mean_squares(seen), mean_squares(after)
        better = new < old  # a factor that broke down left NaN: refused, too
        promised = jnp.sum(move * (weight * move - gradient), axis=1) / numbers
        ratio = (old - new) / jnp.maximum(promised, jnp.finfo(kind).tiny)
        shrink = jnp.clip(1 - (2 * ratio - 1) ** 3, 1 / 3, 2.0)
        damping = jnp.clip(damping * jnp.where(better, shrink, growth), _LEAST, _MOST)
        growth = jnp.where(better, 2.0, jnp.minimum(2 * growth, _GROWTH)).astype(kind)

        def kept(now: jax.Array, before: jax.Array) -> jax.Array:
            return jnp.where(better.reshape(-1, *[1] * (now.ndim - 1)), now, before)

        return kept(trial, planes), damping, growth, jax.tree.map(kept, after, seen)

    planes = normalised(form, planes)
    start = planes, jnp.full(count, _FIRST, kind), jnp.full(count, 2.0, kind), looked(form, rows, planes)
    planes, _, _, seen = jax.lax.fori_loop(0, steps, step, start)
    return planes, seen


@partial(jitted, static_argnums=0)
def descend(form: Form, rows: Table, planes: Planes, steps: jax.Array) -> tuple[Planes, Losses]:
    """The hyperplanes of a batch after so many steps each, and their mean squared residuals."""
    planes, seen = descended(form, rows, planes, steps)
    return planes, mean_squares(seen)


def normalised(form: Form, planes: Planes) -> Planes:
    """Hyperplanes of length one where the length of a unit is its output's."""
    if form.activation.homogeneity is None:
        return planes
    return planes / jnp.maximum(jnp.linalg.norm(planes, axis=-1, keepdims=True), 1e-30)


def _fixed(form: Form) -> slice:
    """The columns of (z, 1) that every fit has."""
    return slice(None) if form.skip else slice(form.d, None)


@lru_cache(maxsize=16)
def _places(form: Form) -> np.ndarray:
    """(k e, k e + m) where the flattened product of both tables of pairs holds ((i, a), (j, b)).

    The last m columns are those of the fixed columns, whose slope is one.
    """
    k, d, e = form.k, form.d + 1, form.d + form.bias
    slopes, inputs = _pair_numbers(k + 1), _pair_numbers(d)
    whole = slopes[:k, None, :, None] * (d * (d + 1) // 2) + inputs[None, :e, None, :]  # i, a, j, b
    units = whole[:, :, :k, :e].reshape(k * e, k * e)
    return np.concatenate([units, whole[:, :, k, _fixed(form)].reshape(k * e, -1)], axis=1)


def _pair_numbers(m: int) -> np.ndarray:
    """(m, m) number of the pair (i, j) in lexicographic order."""
    number = np.zeros((m, m), np.int32)
    i, j = np.triu_indices(m)
    number[i, j] = number[j, i] = np.arange(len(i), dtype=np.int32)
    return number
