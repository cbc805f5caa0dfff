"""The same problems through two source trees: what a change of the code costs in answers and time.

``python -m benchmarks regression --src OLD/src/onehidden`` compares the tree OLD with this one. Each tree
runs in a process of its own, on one thread, and prints one JSON line a problem; times are CPU seconds of
that process. Problems are drawn from streams that no solver uses. Only names of the contract are called.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks._table import Table

ROOT = Path(__file__).parents[1]
SECONDS = 60.0  # allowed to one recovery
COLUMNS = ("right", "certified", "wrong and certified")


def main(quick: bool) -> list[str]:
    kept = os.environ.get("BENCH_ROWS")  # a file with the rows of the tree before, from an earlier run
    old = Path(os.environ.get("BENCH_SRC", ROOT / "src" / "onehidden")).resolve().parent
    earlier = rows(Path(kept).read_text() if kept else printed(old, quick))
    now = rows(printed(ROOT / "src", quick))
    table = Table(
        "group", "problems", *(f"{c}, before → now" for c in COLUMNS), "CPU s, before → now", "changed"
    )
    for group in dict.fromkeys(row["group"] for row in now.values()):
        both = [
            (earlier[name], row) for name, row in now.items() if row["group"] == group and name in earlier
        ]
        counts = [f"{sum(b[c] for b, _ in both)} → {sum(n[c] for _, n in both)}" for c in COLUMNS]
        seconds = f"{sum(b['cpu'] for b, _ in both):.0f} → {sum(n['cpu'] for _, n in both):.0f}"
        changed = [
            f"{n['name']}: {b['status']} → {n['status']}" for b, n in both if b["status"] != n["status"]
        ]
        table.row(group, len(both), *counts, seconds, "; ".join(changed))
    return table.lines


def printed(src: Path, quick: bool) -> str:
    """What a process on one thread prints of the tree ``src``."""
    one = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    env = os.environ | one | {"PYTHONPATH": f"{src}{os.pathsep}{ROOT}"}
    call = [sys.executable, "-m", "benchmarks.regression", *(["--quick"] if quick else [])]
    return subprocess.run(call, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def rows(text: str) -> dict[str, dict]:
    """Rows by the name of the problem."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return {row["name"]: row for row in found}


def problems(quick: bool) -> Iterator[tuple[str, str, Callable]]:
    """Group, name, and a function that returns (keywords of ``recover``, the true network)."""
    import onehidden as oh

    rng = stream("choice of problems")
    names = [name for name in oh.problems.names() if "linear-" not in name and "quadratic-" not in name]
    inputs = [name for name in names if name.rsplit("-relu-", 1)[0] in REAL]
    for noise in (0.0, 0.1):
        for group, pool, count in (("catalogue", names, 40), ("real inputs", inputs, 10)):
            for name in rng.choice(sorted(set(pool)), 4 if quick else count, replace=False):
                yield f"{group}, noise {noise:g}", f"{name} {noise:g}", catalogued(str(name), noise)
    for seed in range(1 if quick else 4):
        for family in FAMILIES:
            yield "families", f"{family} {seed}", of_family(family, seed)
        for q, noise in ((2, 0.0), (4, 0.1)):
            yield "several outputs", f"{q} outputs {noise:g} {seed}", planted(8, 4, 600, noise, seed, q=q)
        for d, k, ratio in ((10, 10, 1.8), (20, 20, 2.2), (30, 5, 1.6)):
            n = round(ratio * (k * (d + 2) + 1))
            yield "few samples", f"{d} x {k} {ratio} {seed}", planted(d, k, n, 0.0, seed)
        for activation in ("tanh", "softplus", "gelu"):
            yield "smooth", f"{activation} {seed}", planted(10, 5, 900, 0.05, seed, activation)
        yield "width unknown", f"width {seed}", planted(6, 3, 800, 0.05 * (seed % 2), seed, hidden=None)
        yield "linear part", f"linear {seed}", planted(6, 3, 900, 0.05 * (seed % 2), seed, linear=True)
    for seed in range(1 if quick else 2):
        for kind in BOXES:
            for d, k, q in ((12, 8, None), (8, 12, 4), (64, 32, None)):
                shape = f"{d}-{k}-{1 if q is None else q}"
                yield "black boxes", f"{kind} {shape} {seed}", black_box(kind, d, k, q, seed)
    if not quick:
        yield "large", "d = k = 50", planted(50, 50, 16_384, 0.0, 0)


REAL = ("diabetes", "wine", "breast-cancer", "digits", "iris", "google", "eeg", "terrain", "photo")
FAMILIES = ("poisson", "bernoulli", "gamma", "negative_binomial")


def stream(*words: object) -> np.random.Generator:
    """A random stream of a problem."""
    return np.random.default_rng(zlib.crc32("/".join(map(str, ("regression", *words))).encode()))


def catalogued(name: str, noise: float) -> Callable:
    def make():
        import onehidden as oh

        X, y, teacher = oh.problems.get(name).sample(None, 77)
        y = y + noise * np.std(y) * stream(name, "noise").standard_normal(np.shape(y))
        bias = bool(np.any(teacher.bias))
        keywords = {"hidden": teacher.n_hidden, "activation": teacher.activation.name, "bias": bias}
        return {"X": X, "y": y, **keywords}, teacher

    return make


def planted(
    d: int,
    k: int,
    n: int,
    noise: float,
    seed: int,
    activation: str = "relu",
    *,
    q: int | None = None,
    linear: bool = False,
    hidden: int | None = 0,
) -> Callable:
    def make():
        import onehidden as oh

        rng = stream(d, k, n, noise, seed, activation, q, linear)
        X = rng.standard_normal((n, d))
        A = np.linalg.qr(rng.standard_normal((max(d, k), max(d, k))))[0][:k, :d]
        signs = rng.choice([-1.0, 1.0], k)
        W = signs if q is None else rng.standard_normal((k, q))
        v = rng.standard_normal(d) if linear else None
        extra = {} if v is None else {"linear": v}
        c = 0.3 if q is None else np.full(q, 0.3)
        truth = oh.OneHiddenNet(2 * A, W, 0.3 * rng.standard_normal(k), c, activation, **extra)
        f = truth.predict(X)
        y = f + noise * np.std(f) * rng.standard_normal(f.shape)
        asked = k if hidden == 0 else hidden
        return {"X": X, "y": y, "hidden": asked, "activation": activation, "linear": linear}, truth

    return make


def of_family(family: str, seed: int) -> Callable:
    def make():
        import onehidden as oh

        rng = stream(family, seed)
        X = rng.standard_normal((2500, 4))
        truth = oh.OneHiddenNet(rng.standard_normal((2, 4)), [1.0, -0.8], [0.2, -0.1], 0.4)
        eta = truth.predict(X)
        mean = np.exp(eta)
        y = {
            "poisson": lambda: rng.poisson(mean),
            "bernoulli": lambda: rng.random(len(X)) < 1 / (1 + np.exp(-2 * eta)),
            "gamma": lambda: mean * rng.gamma(5, 0.2, len(X)),
            "negative_binomial": lambda: rng.poisson(mean * rng.gamma(2, 0.5, len(X))),
        }[family]()
        if family == "bernoulli":
            truth = oh.OneHiddenNet(truth.weights, 2 * truth.output, truth.bias, 2 * truth.intercept)
        link = {"link": "log"} if family == "gamma" else {}
        return {"X": X, "y": y.astype(float), "hidden": 2, "family": family, **link}, truth

    return make


def black_box(kind: str, d: int, k: int, q: int | None, seed: int) -> Callable:
    def make():
        import onehidden as oh

        rng = stream("black box", kind, d, k, q, seed)
        activation, spoil = BOXES[kind]
        W = rng.standard_normal(k if q is None else (k, q))
        c = 0.3 if q is None else rng.standard_normal(q)
        weights = rng.standard_normal((k, d)) / np.sqrt(d)
        truth = oh.OneHiddenNet(weights, W, 0.5 * rng.standard_normal(k), c, activation)
        return {"fn": lambda X: spoil(truth.predict(X)), "n_inputs": d, "activation": activation}, truth

    return make


BOXES: dict[str, tuple[str, Callable]] = {
    "relu": ("relu", lambda y: y),
    "leaky_relu": ("leaky_relu", lambda y: y),
    "softplus": ("softplus", lambda y: y),
    "gelu": ("gelu", lambda y: y),
    "tanh": ("tanh", lambda y: y),
    "relu, single precision": ("relu", lambda y: np.float32(y)),
    "relu, four decimals": ("relu", lambda y: np.round(y, 4)),
}


def right(r, truth, noisy: bool) -> bool:
    """Whether every unit is the true one: to 1e-6, or with noise to a third of its length."""
    import onehidden as oh

    if r.network.n_hidden != truth.n_hidden:
        return False
    m = oh.match(r.network, truth)
    bound = 0.33 if noisy else 1e-6
    return bool(m.max_error < bound and m.output_error < 2 * bound)


def child(quick: bool) -> None:
    for group, name, make in problems(quick):
        print(json.dumps({"group": group, "name": name} | solved(make)), flush=True)


def solved(make: Callable) -> dict[str, object]:
    """Status, CPU seconds and what the truth says of the answer."""
    import onehidden as oh

    keywords, truth = make()
    solve = oh.recover_oracle if "fn" in keywords else oh.recover
    began = time.process_time()
    try:
        r = solve(max_seconds=SECONDS, **keywords)
    except ArithmeticError as error:  # a defect of the tree, and a row of the table
        missing = dict.fromkeys(("right", "certified", "wrong and certified"), 0)
        return {"status": type(error).__name__, "cpu": time.process_time() - began, **missing}
    cpu, status = time.process_time() - began, str(r.status)
    ok, certified = right(r, truth, status != "exact"), status in ("exact", "consistent")
    wrong = certified and not ok and r.network.n_hidden >= truth.n_hidden
    counts = {"right": int(ok), "certified": int(certified), "wrong and certified": int(wrong)}
    return {"status": status, "cpu": cpu, **counts}


if __name__ == "__main__":
    child("--quick" in sys.argv)
