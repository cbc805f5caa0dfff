"""Wide-and-prune: train a student with many units and weight decay, keep the k that matter.

For activations whose reversal only adds a linear term (ReLU, leaky ReLU, softplus, GELU) the student is
orientation-free: it uses the even part of g and a linear skip, and orientations are read off the skip last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from onehidden.activations import Activation
from onehidden.objectives.residuals import Form, residuals
from onehidden.starts.prune import eliminate_backwards, merge_parallel

_CHUNK = 1000  # steps between looks at the clock


@dataclass(frozen=True)
class WideAndPrune:
    """Settings of the wide student.

    Attributes
    ----------
    width : units of the student.
    steps, batch, rate : Adam steps, rows a step, peak rate (cosine decay to zero).
    decay : weight of |theta|^2 / 2 on rows and outputs; in the product it acts as a sparse penalty.
    """

    width: int
    steps: int = 12_000
    batch: int = 512
    rate: float = 1e-2
    decay: float = 1e-3


def wide_form(activation: Activation, d: int, width: int, bias: bool) -> Form:
    """The student's form: orientation-free with a linear skip where reversal is linear."""
    free = activation.reflection is not None and activation.reflection.degree == 1
    return Form(activation, d, width, bias, intercept=True, skip=free, symmetrised=free)


def train(
    form: Form,
    settings: WideAndPrune,
    X: np.ndarray,
    y: np.ndarray,
    seed: int,
    stop: Callable[[], bool] | None = None,
    report: Callable[[int, float], None] | None = None,
) -> np.ndarray:
    """Parameters of the trained student; float32 throughout, since only a start is wanted.

    ``X`` must be whitened and ``y`` of unit variance.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    with jax.enable_x64(False):
        x, target = jnp.asarray(X[order], jnp.float32), jnp.asarray(y[order], jnp.float32)
        weights = rng.standard_normal((form.k, form.d)) / np.sqrt(form.d)
        output = rng.standard_normal(form.k) / np.sqrt(form.k)
        bias = 0.5 * rng.standard_normal(form.k)
        theta = jnp.asarray(form.pack(weights, output, bias), jnp.float32)
        decayed = jnp.asarray(np.arange(form.size) < form.k * (form.d + 1 + form.bias), jnp.float32)
        optimiser = optax.adam(optax.cosine_decay_schedule(settings.rate, settings.steps))
        state = optimiser.init(theta)
        key = jax.random.key(seed)
        batch = min(settings.batch, len(X))
        for done in range(0, settings.steps, _CHUNK):
            if stop is not None and stop():
                break
            key, draw = jax.random.split(key)
            starts = jax.random.randint(draw, (_CHUNK,), 0, len(X) - batch + 1)
            theta, state, loss = _run_chunk(form, settings, batch, theta, state, decayed, x, target, starts)
            if report is not None:
                report(done + _CHUNK, float(loss))
    return np.asarray(theta, dtype=float)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _run_chunk(form, settings, batch, theta, state, decayed, x, target, starts):
    """A thousand Adam steps on contiguous slices of the shuffled rows."""
    optimiser = optax.adam(optax.cosine_decay_schedule(settings.rate, settings.steps))
    ones = jnp.ones(batch, x.dtype)

    def objective(theta, i):
        rows = jax.lax.dynamic_slice_in_dim(x, i, batch)
        r = residuals(form, theta, rows, jax.lax.dynamic_slice_in_dim(target, i, batch), ones)
        fit = jnp.mean(r**2)
        return 0.5 * fit + 0.5 * settings.decay * jnp.sum(decayed * theta**2), fit

    def step(carry, i):
        theta, state = carry
        (_, fit), gradient = jax.value_and_grad(objective, has_aux=True)(theta, i)
        update, state = optimiser.update(gradient, state)
        return (optax.apply_updates(theta, update), state), fit

    (theta, state), fits = jax.lax.scan(step, (theta, state), starts)
    return theta, state, jnp.mean(fits[-100:])


def prune(form: Form, theta: np.ndarray, X: np.ndarray, y: np.ndarray, keep: int) -> tuple[Form, np.ndarray]:
    """The student cut down to ``keep`` units, outputs refitted by least squares."""
    weights, output, bias, _, _ = form.unpack(theta)
    g = form.activation
    parity_known = form.symmetrised or g.sign_free
    degree = g.homogeneity or 1
    amplitude = output * np.linalg.norm(weights, axis=1) ** degree
    weights, bias = merge_parallel(weights, bias, amplitude, up_to_sign=parity_known)
    features = np.asarray(form.g(jnp.asarray(X @ weights.T + bias)))
    always = np.column_stack([np.ones(len(X)), *([X] if form.skip else [])])
    kept = eliminate_backwards(features, always, y, keep)
    small = Form(g, form.d, len(kept), form.bias, True, form.skip, form.symmetrised)
    design = np.column_stack([features[:, kept], always])
    coefficient = np.linalg.lstsq(design, y, rcond=None)[0]
    k = len(kept)
    beta = coefficient[k + 1 :] if form.skip else None
    return small, small.pack(weights[kept], coefficient[:k], bias[kept], beta, coefficient[k])
