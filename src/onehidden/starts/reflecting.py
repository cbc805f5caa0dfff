"""Reflections between two sets that meet in the network sought, for units with one kink.

In the orientation-free form y = l(x) + sum_i s_i |t_i(x)| with signs s_i a network is what its k units and
its linear part say about the rows, T = (t_1, ..., t_k, l), (k + 1, n). It lies in two sets at once:

- R: at every row s_1 |t_1| + ... + s_k |t_k| + l = y. A row is a problem of k + 1 numbers for itself.
- I: every t_i is a linear function of the inputs, and so is l. A linear subspace.

Both have simple projections, and neither knows of a loss: with N = P_R(T) the step
T <- T + beta (P_I(N + gamma (N - T)) - N) has no minima to end in; what it stops at lies in both sets (the
difference map, Elser 2003; relaxed reflections, Elser 2021, there for phases, codes and networks). A step
costs n (k + 1) (4 d + 50) operations, a hundredth or less of one of Levenberg-Marquardt.

The measurements behind the constants: d = k = 8 with biases, 130 rows for 81 parameters, 3 teachers of 32
members, networks found a million steps. beta .5, gamma 1, ease 1, size .3: 5; ease .3, 3, 10: 1.4, 13, 32;
beta .3 with ease 10: 41, with ease 30: 35; size .1: 60. Under pressure
(``pressure``) beta gamma should be next to two, where a step at right angles to both sets turns the distance
around: with 94 rows and lives of 16 000 steps beta .3 with gamma 2, 3, 4 and 6 .7, 4.2, 4.6 and 6.2, beta .5
with gamma 4 6.5. Which of the two is large hangs on the problem. Wine with seven units, three teachers of 64
members: 31 networks with BOLD and 33 with STEADY, but of the hardest teacher two and none; d = k = 20 with
equal outputs at 2.0 samples a weight, three teachers of 8 members, 12 000 steps: none and 14.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from onehidden.compiled import jitted
from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.starts.descents import Losses, Planes, Table, looked, mean_squares, table

BOLD, STEADY = (0.3, 6.0), (0.6, 3.0)  # beta, gamma
SIZE = 0.1  # of the units at first, in standard deviations of y
_EASE, _EASED = 10.0, 0.1  # ``ease`` at most, and of the square of the width
_SOLVES = 3  # Newton steps of a row's projection: two lose a fifth of the answers, four gain nothing

Values = Float[jax.Array, "P k+1 n"]
Signs = Float[jax.Array, "P k"]
Kept = Float[jax.Array, "e e"]  # what a pressure leaves of a unit's coordinates; the unit matrix: all


class Mirror(NamedTuple):
    """What all members share.

    Attributes
    ----------
    basis : (n, e) orthonormal columns of the functions a unit may be: inputs and, with biases, the constant.
    back : (e, e) hyperplane of a unit from its coordinates in that basis.
    rows : fixed columns and target, as descents have them.
    """

    basis: jax.Array
    back: jax.Array
    rows: Table


class Reflected(NamedTuple):
    """Members after some steps: values, signs, and the hyperplanes they have come to with their losses."""

    values: Values
    signs: Signs
    planes: Planes
    loss: Losses


def mirror(problem: Problem, form: Form) -> Mirror:
    """The rows of a problem as both sets need them; weights multiply rows, which no kink notices."""
    rows = table(problem, form, pairs=False)
    inputs = np.asarray(rows.root, float)[:, None] * np.asarray(rows.x, float)[:, : form.d + form.bias]
    basis, triangle = np.linalg.qr(inputs)
    return Mirror(jnp.asarray(basis, jnp.float32), jnp.asarray(np.linalg.inv(triangle), jnp.float32), rows)


def ease(k: int) -> float:
    """How much easier than one of k units the linear part moves, in the metric of the projections.

    Ten from ten units on. Of five units in fifty inputs, 1.5 samples a weight, 8 teachers of 16 members find
    11 networks in 12 000 steps with 2, 3 with 4, 1 with 10; five and six units in as many inputs do not mind.
    """
    return min(_EASE, _EASED * k**2)


def onto_rows(values: Values, signs: Signs, y: Float[jax.Array, " n"]) -> Values:
    """The nearest values whose units and linear part add up to the target at every row.

    A unit keeps its side and is |t| = a >= 0: with a multiplier m a row moves to a_i = max(a_i + s_i m, 0)
    and l + ease m, where m is the root of an increasing, piecewise linear function.
    """
    t, linear = values[:, :-1], values[:, -1]
    size, sign, easy = jnp.abs(t), signs[..., None], ease(t.shape[1])
    m = jnp.zeros_like(linear)
    for _ in range(_SOLVES):
        moved = size + sign * m[:, None]
        on = moved > 0
        excess = jnp.sum(jnp.where(on, sign * moved, 0.0), axis=1) + linear + easy * m - y
        m = m - excess / (easy + jnp.sum(on, axis=1, dtype=m.dtype))
    moved = jnp.copysign(jnp.maximum(size + sign * m[:, None], 0.0), t)
    return jnp.concatenate([moved, (linear + easy * m)[:, None]], axis=1)


def onto_inputs(sides: Mirror, values: Values, inward: Float[jax.Array, "n e"]) -> Values:
    """The nearest values that are linear functions of the inputs; ``inward``: the basis, or less of it."""
    units = (values[:, :-1] @ inward) @ sides.basis.T
    linear = (values[:, -1:] @ sides.rows.fixed) @ sides.rows.fixed.T
    return jnp.concatenate([units, linear], axis=1)


@partial(jitted, static_argnums=(0, 7))
def reflect(
    form: Form,
    sides: Mirror,
    kept: Kept,
    temper: Float[jax.Array, " two"],
    values: Values,
    signs: Signs,
    flipped: Bool[jax.Array, " P"],
    steps: int,
) -> Reflected:
    """Members after so many steps with these beta and gamma, then with the signs that least squares gives.

    ``flipped``: members whose weakest unit gets the other sign, since least squares seldom says so of a unit
    that fits noise either way. The number of steps is compiled in: an accelerator asks the host about every
    step of a loop whose end it does not know.
    """
    y, inward = target(sides), sides.basis @ kept
    beta, gamma = temper

    def step(_: jax.Array, values: Values) -> Values:
        near = onto_rows(values, signs, y)
        return values + beta * (onto_inputs(sides, near + gamma * (near - values), inward) - near)

    values = jax.lax.fori_loop(0, steps, step, values)
    near = onto_rows(values, signs, y)
    units = (near + gamma * (near - values))[:, :-1] @ sides.basis
    planes = units @ sides.back.T
    seen = looked(form, sides.rows, planes)
    output = seen.output[..., 0]
    share = jnp.abs(output) * jnp.linalg.norm(seen.units, axis=2)
    weakest = jnp.argmin(share, axis=1)[:, None] == jnp.arange(form.k)
    told = jnp.isfinite(output)  # not by units that coincide
    signs = jnp.where(told, jnp.where(output < 0, -1.0, 1.0), signs)
    signs = jnp.where(weakest & flipped[:, None], -signs, signs).astype(values.dtype)
    return Reflected(values, signs, planes, mean_squares(seen))


def target(sides: Mirror) -> Float[jax.Array, " n"]:
    """The target, less what the fixed columns explain: the linear part adds that back for nothing."""
    return sides.rows.y[:, 0]


def first_values(sides: Mirror, rng: np.random.Generator, count: int, k: int) -> np.ndarray:
    """(count, k + 1, n) small random linear functions of the inputs."""
    n, e = sides.basis.shape
    scale = SIZE * float(np.std(np.asarray(target(sides)))) * np.sqrt(n / e)
    drawn = scale * rng.standard_normal((count, k + 1, e))
    return (drawn.astype(np.float32) @ np.asarray(sides.basis).T).astype(np.float32)
