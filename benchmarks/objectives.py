"""Time of one gradient step of G and L against einsum on S_4, PyTorch, and the two products that bound it.

Every row is the best of repeated calls on prepared data in float64 (a shared machine only ever adds time).
"Bound" is X Bᵀ followed by Zᵀ X, which no method that looks at the samples can avoid. G and L under N(0, I)
need no other product; L under a product law needs seven (derivatives 1 and 2 of log f in place of x,
forwards and backwards), and is set against that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._table import Table
from onehidden.machine import double
from onehidden.run import stream
from onehidden_papers.objectives import GaussianDesigned, ScoreDesigned
from onehidden_papers.objectives.base import _value_and_grad

# Pinned to one core, processor time is what a quiet machine would show; otherwise the wall clock.
_clock = time.process_time if len(os.sched_getaffinity(0)) == 1 else time.perf_counter


def race(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Best milliseconds of each call, taken in turns so that a busy moment hits all alike."""
    best = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()  # compile, touch the data
    for _ in range(rounds):
        for name, call in calls.items():
            start = _clock()
            call()
            best[name] = min(best[name], 1e3 * (_clock() - start))
    return best


@jax.jit
def two_products(X, B):
    """X Bᵀ, then Zᵀ X: nothing else."""
    return (X @ B.T).T @ X


@jax.jit
def two_products_blocked(X, B):
    """The same in blocks that stay in cache."""
    blocks = X.reshape(-1, 2048, X.shape[1])
    return jax.lax.scan(lambda total, x: (total + (x @ B.T).T @ x, None), jnp.zeros_like(B), blocks)[0]


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


def ready(function: Callable, *args: Any) -> Callable[[], Any]:
    return lambda: jax.block_until_ready(function(*args))


def contenders(n: int, d: int, rng: np.random.Generator) -> dict[str, tuple[Callable[[], Any], int]]:
    """name -> (one gradient step, products it needs)."""
    X, B = rng.standard_normal((n, d)), rng.standard_normal((d, d)) / np.sqrt(d)
    y = np.maximum(X, 0).sum(axis=1)
    Xj, Bj, yj = (jnp.asarray(part) for part in (X, B, y))
    G, L = GaussianDesigned(1.0, 1.0), ScoreDesigned(1.0, 1.0, None)
    fresh = jax.jit(lambda B, X, y: G.value_and_grad(B, G.from_batch(X, y)))
    calls = {
        "two matrix products": (ready(two_products, Xj, Bj), 2),
        "two matrix products, blocked": (ready(two_products_blocked, Xj, Bj), 2),
        "G": (ready(_value_and_grad, G, Bj, G.prepare((X, y))), 2),
        "L, Gaussian score": (ready(_value_and_grad, L, Bj, L.prepare((X, y))), 2),
        "G, fresh batch (with E[y x xᵀ])": (ready(fresh, Bj, Xj, yj), 3),
    }
    peer = torch_step(X, y, B)
    if peer is not None:
        calls["G, PyTorch autograd, 1 thread"] = (peer, 2)
    if d <= 30:
        calls["einsum on S_4, tensor rebuilt each step"] = (ready(einsum_gradient(Xj, yj), Bj, Xj, yj), 2)
    return calls


def main(quick: bool) -> list[str]:
    table = Table("step", "n", "d = k", "ms", "bound, ms", "ratio to bound", "products in the bound")
    rng = stream(0, "benchmark", "objectives", "samples")
    sizes = ((8192, 20, 5), (8192, 50, 20))
    if not quick:
        sizes = ((8192, 30, 5), (8192, 50, 40), (262_144, 50, 5))
    with double():
        for n, d, rounds in sizes:
            calls = contenders(n, d, rng)
            best = race({name: call for name, (call, _) in calls.items()}, rounds)
            two = min(best["two matrix products"], best["two matrix products, blocked"])
            for name, (_, products) in calls.items():
                bound = two * products / 2
                table.row(name, n, d, best[name], bound, best[name] / bound, products)
    return table.lines
