"""Stages of the oracle, left out in turn on fresh boxes: what does each earn in answers, queries and time?

A box counts as right if its answer is exact with a parameter error below 1e-7, or consistent with errors up
to four times those it reports; a function that is no network of one hidden layer, if it is not certified.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import onehidden as oh
from benchmarks._table import Table, stamp
from onehidden.oracle import (
    certificate,
    examine,
    final_fit,
    pieces,
    search,
)  # fmt: skip
from onehidden.run import stream

Function = Callable[[np.ndarray], np.ndarray]
Made = tuple[Function, int, dict[str, Any], oh.OneHiddenNet | None]
SEEDS = 3
RESULTS = Path(__file__).parent / "results"


def network(seed: int, d: int, k: int, q: int, name: str, weak: float, kind: type) -> oh.OneHiddenNet:
    """A random network whose outputs range from 1 down to ``weak``, rounded to a precision."""
    rng = stream(seed, "benchmark", "oracle", "ablation", name, d, k, q)
    size = 1.0 if name.endswith("relu") else 2.0
    parts = (
        size * rng.standard_normal((k, d)) / np.sqrt(d),
        rng.choice([-1.0, 1.0], (k, q)) * np.exp(rng.uniform(np.log(weak), 0, (k, 1))),
        0.3 * rng.standard_normal(k),
    )
    weights, output, bias = (np.asarray(part, kind).astype(float) for part in parts)
    several = q > 1
    return oh.OneHiddenNet(
        weights, output if several else output[:, 0], bias, np.full(q, 0.25) if several else 0.25, name
    )


def function(net: oh.OneHiddenNet, kind: type = np.float64) -> Function:
    """The network as NumPy computes it in a precision."""
    A, b, w, c = (np.asarray(v, kind) for v in (net.weights, net.bias, net.output, net.intercept))
    g: Callable[[np.ndarray], np.ndarray] = {
        "relu": lambda z: np.maximum(z, 0),
        "squared_relu": lambda z: np.maximum(z, 0) ** 2,
        "tanh": np.tanh,
        "softplus": lambda z: np.logaddexp(0, z).astype(kind),
    }[net.activation.name]
    return lambda X: g(X.astype(kind) @ A.T + b) @ w + c


def box(
    d: int,
    k: int,
    q: int = 1,
    name: str = "relu",
    weak: float = 0.03,
    kind: type = np.float64,
    spoilt: Function | None = None,
    twin: float = 0.0,
    **choices: Any,
) -> Callable[[int], Made]:
    """A random network as a box; ``twin``: distance of a further unit from the first."""

    def make(seed: int) -> Made:
        net = network(seed, d, k, q, name, weak, kind)
        if twin:
            tilt = twin * stream(seed, "benchmark", "oracle", "ablation", "twin").standard_normal(d)
            net = oh.OneHiddenNet(
                np.vstack([net.weights, net.weights[0] + tilt]), np.append(net.output, 0.6),
                np.append(net.bias, net.bias[0]), 0.25, name,
            )  # fmt: skip
        fn = function(net, kind)
        return (lambda X: fn(X) if spoilt is None else spoilt(fn(X))), d, {"activation": name, **choices}, net

    return make


def softmax(seed: int) -> Made:
    """Probabilities of three classes in single precision."""
    net = network(seed, 6, 4, 3, "relu", 0.3, np.float64)
    fn = function(net)

    def p(X: np.ndarray) -> np.ndarray:
        z = np.exp(fn(X))
        return (z / z.sum(axis=1, keepdims=True)).astype(np.float32)

    output = net.output - net.output.mean(axis=1, keepdims=True)
    return p, 6, {}, oh.OneHiddenNet(net.weights, output, net.bias, np.zeros(3))


def other(make: Callable[[np.random.Generator], Function]) -> Callable[[int], Made]:
    """A function of 8 inputs that is no network of one hidden layer."""

    def made(seed: int) -> Made:
        fn = make(stream(seed, "benchmark", "oracle", "ablation", "other"))
        return fn, 8, {"max_queries": 100_000}, None

    return made


def two_layers(rng: np.random.Generator) -> Function:
    A, B, w = rng.standard_normal((8, 6)), rng.standard_normal((6, 5)), rng.standard_normal(5)
    return lambda X: np.maximum(np.maximum(X @ A, 0) @ B + 0.1, 0) @ w


def weak_second_layer(rng: np.random.Generator) -> Function:
    A, w = rng.standard_normal((8, 5)), rng.standard_normal(5)
    v = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    return lambda X: np.maximum(X @ A + 0.2, 0) @ w + 1e-3 * np.maximum(np.maximum(X @ A, 0) @ v, 0)


def noise(y: np.ndarray) -> np.ndarray:
    """Noise that follows from the answers, so that repeated queries are answered alike."""
    digits = np.abs(np.frexp(y)[0] * 2**40) % 997 / 997 - 0.5
    return y + 1e-5 * digits


SINGLE = np.float32
BOXES: dict[str, Callable[[int], Made]] = {
    "relu": box(20, 8),
    "relu, k > d": box(8, 24),
    "relu, one equation a sign": box(3, 16),
    "relu, twins": box(6, 5, twin=1e-3),
    "relu, weak": box(20, 8, weak=1e-5),
    "relu, single": box(30, 16, kind=SINGLE),
    "relu, single, weak": box(30, 12, weak=3e-3, kind=SINGLE),
    "relu, single, 4 outputs": box(20, 20, 4, kind=SINGLE),
    "relu, 3 decimals": box(30, 10, weak=0.3, spoilt=lambda y: np.round(y, 3)),
    "relu, 6 decimals": box(30, 12, weak=0.1, spoilt=lambda y: np.round(y, 6)),
    "relu, noise": box(30, 12, weak=0.3, spoilt=noise),
    "relu, bounded": box(20, 8, domain=(-2, 2)),
    "relu, bounded, single": box(20, 8, kind=SINGLE, domain=(-2, 2)),
    "softmax, single": softmax,
    "squared relu": box(4, 4, name="squared_relu"),
    "tanh": box(5, 8, name="tanh"),
    "tanh, twins": box(4, 4, name="tanh", weak=0.3, twin=1e-3),
    "tanh, single": box(10, 8, name="tanh", weak=0.1, kind=SINGLE),
    "softplus": box(5, 6, name="softplus"),
    "softplus, k > d": box(4, 12, name="softplus"),
    "softplus, single": box(6, 4, name="softplus", weak=0.3, kind=SINGLE),
    "two layers": other(two_layers),
    "weak second layer": other(weak_second_layer),
}
KINKED = [name for name in BOXES if name.startswith("relu")]
LOW = [name for name in KINKED if "single" in name or "decimals" in name or "noise" in name]
SMOOTH = [name for name in BOXES if name.startswith(("tanh", "softplus", "squared"))]
OTHER = ["two layers", "weak second layer"]


@dataclass(frozen=True)
class Stage:
    """How to leave a stage out, and the boxes on which it may matter."""

    boxes: list[str]
    patches: dict[str, Any]


def _no_errors(box: Any, layer: Any, *rest: Any) -> certificate.Errors:
    """No errors while kinks are searched for."""
    zero = np.zeros(layer.k)
    return certificate.Errors(zero, zero, zero, np.zeros(layer.output.shape[1]))


def _coarse_pieces(box: Any, line: Any, cells: int = 1024, zooms: int = 0, *rest: Any, **more: Any) -> Any:
    return pieces.straight_pieces(box, line, cells, 0, *rest, **more)


_ZONES, _RADII = pieces._kinked_zones, search._radii
STAGES: dict[str, Stage] = {
    "confirmation by typical answers": Stage(
        [*LOW, *SMOOTH], {"search.confirmed": lambda layer, *rest: layer}
    ),
    "further rounds": Stage([*KINKED, *SMOOTH], {"search._radii": lambda tail, box: _RADII(tail, box)[:1]}),
    "kinked: false kinks dropped": Stage(LOW, {"search.parameter_errors": _no_errors}),
    "kinked: queries near hyperplanes": Stage(
        KINKED, {"search.kink_queries": partial(final_fit.kink_queries, near=0.0)}
    ),
    "kinked: hyperplanes followed": Stage(
        [*KINKED, *OTHER], {"search.continued": lambda box, kinks, *rest: np.full(len(kinks), np.nan)}
    ),
    "kinked: finer grids": Stage(
        [*KINKED, *OTHER], {"search.straight_pieces": partial(pieces.straight_pieces, zooms=0)}
    ),
    "kinked: biases placed": Stage(LOW, {"search.placed": lambda layer, *rest: layer}),
    "kinked: longer arms": Stage(
        KINKED, {"pieces._kinked_zones": lambda t, y, error, gaps, arms: _ZONES(t, y, error, gaps, (1,))}
    ),
    "kinked: further mixtures": Stage(
        ["relu, single, 4 outputs", "softmax, single"], {"box.BlackBox.mix_anew": lambda box: None}
    ),
    "kinked: far queries for absolute errors": Stage(
        LOW, {"box.BlackBox.exact_far_away": property(lambda box: 1.0)}
    ),
    "orientation: lattice": Stage(
        ["relu, k > d", "relu, one equation a sign", "softplus, k > d"],
        {"signs.relations": lambda *rest: None, "certificate.relations": lambda *rest: None},
    ),
    "smooth: finer grids": Stage(SMOOTH, {"transitions.straight_pieces": _coarse_pieces}),
    "precision: neighbouring queries": Stage(
        [*LOW, *SMOOTH, "softmax, single"], {"examine._error_of_neighbours": lambda *rest: 0.0}
    ),
    "precision: format of the answers": Stage(
        [*LOW, *SMOOTH], {"examine.stored_precision": lambda y: examine.OutputPrecision()}
    ),
    "final: J'J where LSMR stops short": Stage(
        [*KINKED, *SMOOTH],
        {"search.fitted": partial(final_fit.fitted, short=np.inf)},
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What came of one box."""

    right: bool
    queries: float
    seconds: float
    error: float


def outcome(make: Callable[[int], Made], seed: int) -> Outcome:
    """Recover a box, in CPU seconds of one thread."""
    fn, d, choices, truth = make(seed)
    began = time.process_time()
    try:
        r = oh.recover_oracle(fn, d, seed=seed, **choices)
    except ValueError:
        return Outcome(truth is None, np.nan, time.process_time() - began, np.nan)
    seconds = time.process_time() - began
    if truth is None:
        return Outcome(not r.converged, r.queries, seconds, np.nan)
    if r.network.n_hidden != truth.n_hidden:
        return Outcome(False, r.queries, seconds, np.inf)
    m = oh.match(r.network, truth)
    error = float(max(m.max_error, m.output_error, m.bias_error, m.intercept_error))
    reported = next((c.value for c in r.checks if c.name == "attainable error"), np.nan)
    right = r.status == "exact" and error < 1e-7
    right |= r.status == "consistent" and error < 4 * reported
    return Outcome(bool(right), r.queries, seconds, error)


def run_oracle(seeds: int = SEEDS) -> list[str]:
    """The table: every stage left out, on its boxes, beside the whole on the same boxes."""
    table = Table("left out", "boxes", "right", "right with it", "queries", "CPU seconds", "error", "lost on")
    whole = {(name, seed): outcome(make, seed) for name, make in BOXES.items() for seed in range(seeds)}
    wrong = [f"{name} ({seed})" for (name, seed), one in whole.items() if not one.right]
    table.row(
        "nothing", len(whole), sum(one.right for one in whole.values()), "", "", "", "", ", ".join(wrong)
    )
    for name, stage in STAGES.items():
        keys = [(box, seed) for box in stage.boxes for seed in range(seeds)]
        with ExitStack() as stack:
            for target, new in stage.patches.items():
                stack.enter_context(patch(f"onehidden.oracle.{target}", new))
            mine = {key: outcome(BOXES[key[0]], key[1]) for key in keys}
        lost = [f"{box} ({seed})" for box, seed in keys if whole[box, seed].right > mine[box, seed].right]
        table.row(
            name, len(keys), sum(one.right for one in mine.values()), sum(whole[key].right for key in keys),
            *(f"{_ratio(mine, whole, field):.2f}" for field in ("queries", "seconds", "error")),
            ", ".join(lost),
        )  # fmt: skip
    table.say("")
    table.say(
        "Queries, seconds and error: geometric means over the boxes, as multiples of those of the whole."
    )
    return table.lines


def _ratio(mine: dict[tuple[str, int], Outcome], whole: dict[tuple[str, int], Outcome], field: str) -> float:
    pairs = ((getattr(one, field), getattr(whole[key], field)) for key, one in mine.items())
    logs = [np.log(a / b) for a, b in pairs if np.isfinite([a, b]).all() and a > 0 and b > 0]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = stamp()
        lines = run_oracle()
    (RESULTS / "ablation_oracle.md").write_text(
        "\n".join(["# Stages of the oracle, left out in turn", "", said, "", *lines, ""])
    )
