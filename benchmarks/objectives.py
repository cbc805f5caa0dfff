"""Time of one gradient step of G and L against einsum on S_4, PyTorch, and the two products that bound it.

Every row is the best of repeated calls on prepared data in float64 (a shared machine only ever adds time).
"Bound" is X Bᵀ followed by Zᵀ X, which no method that looks at the samples can avoid. G and L under N(0, I)
need no other product; L under a product law needs seven (derivatives 1 and 2 of log f in place of x,
forwards and backwards), and is set against that.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._table import Table
from onehidden.objectives import GaussianDesigned, ProductScore, ScoreDesigned
from onehidden.objectives.base import _value_and_grad
from onehidden.precision import double


def best_ms(call: Callable[[], Any], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        clock = time.perf_counter()
        call()
        times.append(time.perf_counter() - clock)
    return 1e3 * min(times)


def logistic(t):
    return -t - 2 * jnp.log1p(jnp.exp(-t))


@jax.jit
def two_products(X, B):
    # The sum keeps the compiler from dropping or reassociating the pair of products.
    Z = X @ B.T
    return Z.T @ X, jnp.sum(Z[0])


def einsum_gradient(X, y):
    """Σ_{j≠l} H_jl − μ Σ_j H_jj and its gradient through the dense tensor mean(y S_4)."""
    eye = jnp.eye(X.shape[1])

    @jax.jit
    def step(B, X, y):
        n = X.shape[0]
        T = jnp.einsum("n,na,nb,nc,nd->abcd", y, X, X, X, X, optimize=True) / n
        M, m = jnp.einsum("n,na,nb->ab", y, X, X) / n, jnp.mean(y)
        for spec in ("ab,cd", "ac,bd", "ad,bc", "cd,ab", "bd,ac", "bc,ad"):
            T -= jnp.einsum(f"{spec}->abcd", M, eye)
        for spec in ("ab,cd", "ac,bd", "ad,bc"):
            T += m * jnp.einsum(f"{spec}->abcd", eye, eye)

        def value(B):
            H = jnp.einsum("abcd,ja,jb,lc,ld->jl", T, B, B, B, B, optimize=True)
            return -(jnp.sum(H) - 2 * jnp.trace(H)) + jnp.sum((jnp.sum(B**2, axis=1) - 1) ** 2)

        return jax.value_and_grad(value)(B)

    return step


def torch_step(X: np.ndarray, y: np.ndarray, B: np.ndarray) -> Callable[[], Any] | None:
    """G as (2.7)–(2.9) of [GLM] print it, with autograd; the pair sum already reduced to s²."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    Xt, yt = torch.from_numpy(X), torch.from_numpy(y)
    Bt = torch.from_numpy(B.copy()).requires_grad_(True)

    def call():
        Bt.grad = None
        Z, gram = Xt @ Bt.T, Bt @ Bt.T
        norms, square = torch.diagonal(gram), Z**2
        s = square.sum(1)
        pairs = (
            s**2 - 2 * norms.sum() * s - 4 * ((Z @ gram) * Z).sum(1) + norms.sum() ** 2 + 2 * (gram**2).sum()
        )
        own = square**2 - 6 * norms * square + 3 * norms**2
        value = -(yt * (0.5 * pairs - (0.5 + 1 / 24) * own.sum(1))).mean() + ((norms - 1) ** 2).sum()
        value.backward()
        return Bt.grad

    return call


def main(quick: bool) -> list[str]:
    table = Table("step", "n", "d = k", "ms", "bound, ms", "ratio to bound", "bound counts")
    rng = np.random.default_rng(0)
    sizes = ((8192, 50),) if quick else ((8192, 50), (262_144, 50))
    with double():
        for n, d in sizes:
            repeats = 60 if n < 100_000 else 8
            X, B = rng.standard_normal((n, d)), rng.standard_normal((d, d)) / np.sqrt(d)
            y = np.maximum(X, 0).sum(axis=1)
            Xj, Bj, yj = (jnp.asarray(part) for part in (X, B, y))
            bound = best_ms(lambda: jax.block_until_ready(two_products(Xj, Bj)), repeats)  # noqa: B023
            table.row("two matrix products", n, d, bound, bound, 1.0, "2 products")
            G, L = GaussianDesigned(1.0, 1.0), ScoreDesigned(1.0, 1.0, None)
            product = ScoreDesigned(1.0, 1.0, ProductScore(logistic))
            for name, objective, count in (
                ("G", G, 2),
                ("L, Gaussian score", L, 2),
                ("L, logistic score", product, 7),
            ):
                source = objective.prepare((X, y))
                ms = best_ms(
                    lambda: jax.block_until_ready(_value_and_grad(objective, Bj, source)),  # noqa: B023
                    repeats,
                )
                table.row(name, n, d, ms, bound * count / 2, ms / (bound * count / 2), f"{count} products")
            fresh = jax.jit(lambda B, X, y: G.value_and_grad(B, G.from_batch(X, y)))  # noqa: B023
            ms = best_ms(lambda: jax.block_until_ready(fresh(Bj, Xj, yj)), repeats)  # noqa: B023
            table.row(
                "G, fresh batch (with E[y x xᵀ])", n, d, ms, 1.5 * bound, ms / (1.5 * bound), "3 products"
            )
            peer = torch_step(X, y, B)
            if peer is not None:
                ms = best_ms(peer, repeats)
                table.row("G, PyTorch autograd, 1 thread", n, d, ms, bound, ms / bound, "2 products")
        for n, d in ((8192, 20),) if quick else ((8192, 20), (8192, 30)):
            X, B = (
                jnp.asarray(rng.standard_normal((n, d))),
                jnp.asarray(rng.standard_normal((d, d)) / np.sqrt(d)),
            )
            y = jnp.sum(jnp.maximum(X, 0), axis=1)
            bound = best_ms(lambda: jax.block_until_ready(two_products(X, B)), 20)  # noqa: B023
            step = einsum_gradient(X, y)
            ms = best_ms(lambda: jax.block_until_ready(step(B, X, y)), 3)  # noqa: B023
            table.row("einsum on S_4, tensor rebuilt each step", n, d, ms, bound, ms / bound, "2 products")
            objective = GaussianDesigned(1.0, 1.0)
            source = objective.prepare((np.asarray(X), np.asarray(y)))
            ms = best_ms(lambda: jax.block_until_ready(_value_and_grad(objective, B, source)), 20)  # noqa: B023
            table.row("G", n, d, ms, bound, ms / bound, "2 products")
    return table.lines
