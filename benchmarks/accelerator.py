"""Moments, local-likelihood scores and a step of the finish on the device JAX has, as shares of its peak.

The peak is the float64 matrix product measured in the same run. Nominal work, of which the symmetric sums do
less (T_4 about a quarter), so that a share above one is possible: T_4 2 n (d (d + 1) / 2)^2;
scores 2 q n (d + 2) + 2 q n (1 + d + d (d + 1) / 2) for the two products over all pairs, the exponential not
counted; normal equations 2 n p^2. Unless said otherwise times are from host arrays to host arrays, with
nothing left to compile.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._table import Table
from benchmarks._truth import device
from benchmarks.scale import seconds
from onehidden import activations, laws
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation
from onehidden.machine import double
from onehidden.run import derived_seed, stream
from onehidden_papers.moments import score_moments
from onehidden_papers.moments.products import product_sums, unpack
from onehidden_papers.moments.rows import hermite_scores
from onehidden_papers.scores.local_gaussian import local_moments, prepare


def main(quick: bool) -> list[str]:
    small = quick or jax.default_backend() == "cpu"
    with double():
        peak = matrix_product(1024 if small else 8192)
        table = Table(
            f"on {device()}", "nominal share of the peak", "seconds", "TFLOP/s, nominal", "relative error"
        )
        table.row(f"float64 matrix product, {1024 if small else 8192}", "1.00", "", peak / 1e12, "")
        _moments(table, 8192 if small else 262_144, 20 if quick else 50, peak)
        for d in (2, 4, 8):
            _scores(table, 4000 if small else 131_072, d, peak)
        for n in (2048,) if small else (16_384, 262_144):
            _normal_equations(table, n, 20 if quick else 50, peak)
    return table.lines


def best(work: Callable[[], object], repeats: int = 3) -> float:
    """Least seconds of a call after one that compiles; the work must wait for its own result."""
    work()
    return seconds(work, repeats)


def matrix_product(size: int) -> float:
    A = jax.random.normal(
        jax.random.key(derived_seed(0, "benchmark", "accelerator", "matrix")), (size, size), jnp.float64
    )
    product = jax.jit(lambda a: a @ a)
    return 2 * size**3 / best(lambda: product(A).block_until_ready(), 5)


def _row(table: Table, what: str, work: float, took: float, peak: float, error: float | None) -> None:
    rate = work / took
    table.row(what, f"{rate / peak:.2f}", took, rate / 1e12, "" if error is None else f"{error:.1e}")


def _moments(table: Table, n: int, d: int, peak: float) -> None:
    rng = stream(0, "benchmark", "accelerator", "moments")
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    law = laws.Gaussian(np.zeros(d), np.eye(d))
    nominal = 2 * n * (d * (d + 1) // 2) ** 2
    scores = hermite_scores(jnp.asarray(X.T))
    weight = jnp.asarray(y)

    def sums(rows: int) -> np.ndarray:
        totals = {m: 0.0 for m in (2, 4)}
        for at in range(0, n, rows):
            part = tuple(s[:, at : at + rows] for s in scores)
            for m in totals:
                totals[m] = totals[m] + product_sums(m, weight[at : at + rows], part)
        return np.asarray(totals[4])

    wanted = product_sums(4, y, tuple(np.asarray(s) for s in scores))
    for rows in sorted({min(rows, n) for rows in (8192, 65_536, 262_144)}):
        error = float(np.linalg.norm(sums(rows) - wanted) / np.linalg.norm(wanted))
        what = f"T_2 and T_4, d = {d}, n = {n}, scores on the device, {rows} rows at a time"
        _row(table, what, nominal, best(lambda rows=rows: sums(rows)), peak, error)
    dense = unpack(wanted / n, d, 4)
    for title, degree in (("with standard errors", -1), ("with control variates too", 2)):
        call = lambda degree=degree: score_moments(X, y, law, (2, 4), control_degree=degree)  # noqa: E731
        found = call()[4] if degree < 0 else None
        error = None if found is None else float(np.linalg.norm(found - dense) / np.linalg.norm(dense))
        _row(table, f"T_2 and T_4 from the host, {title}", nominal, best(call, 2), peak, error)


def _scores(table: Table, n: int, d: int, peak: float) -> None:
    X = stream(0, "benchmark", "accelerator", "scores").standard_normal((n, d))
    h, data = np.full(n, 0.6), prepare(X)
    work = 2.0 * n * n * (d + 2 + 1 + d + d * (d + 1) // 2)
    few = X[:200]
    weight = np.exp(-np.sum((few[:, None] - X[None]) ** 2, axis=2) / (2 * 0.6**2)).sum(axis=1)
    mass = local_moments(data, X, h)[0][:200]
    error = float(np.linalg.norm(mass - weight) / np.linalg.norm(weight))
    took = best(lambda: local_moments(data, X, h), 2)
    _row(
        table,
        f"LLSFE, n = q = {n}, d = {d}: {n * n / took / 1e9:.1f} Gpairs/s",
        work,
        took,
        peak,
        error,
    )


def _normal_equations(table: Table, n: int, k: int, peak: float) -> None:
    rng = stream(0, "benchmark", "accelerator", "normal equations")
    form = Parametrisation(activations.get("relu"), k, k)
    X, y = rng.standard_normal((n, k)), rng.standard_normal(n)
    theta = rng.standard_normal(form.size) / np.sqrt(k)
    fit = InMemoryLeastSquares(form, X, y)
    hessian = fit.normal_equations(theta)[0]
    column = rng.standard_normal((form.size, 1))
    product = np.zeros_like(column)
    for at in range(0, n, 8192):
        J = fit.jacobian(theta, slice(at, at + 8192))
        product += J.T @ (J @ column)
    error = float(np.linalg.norm(hessian @ column - product) / np.linalg.norm(product))
    took = best(lambda: fit.normal_equations(theta))
    what = f"J'J, d = k = {k}, n = {n}, p = {form.size}"
    _row(table, what, 2.0 * n * form.size**2, took, peak, error)
