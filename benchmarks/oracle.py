"""Black boxes: networks trained by scikit-learn on real tables, given back unit by unit.

Each row trains an ``MLPRegressor`` on a bundled table, hands its ``predict`` to ``recover_oracle`` and
compares with the weights inside. Function error: largest on 10 000 fresh points, as a share of their standard
deviation. Parameter error: the worst of rows, outputs, biases and intercept after matching, relative, over
the units that contribute more than 1e-11 of std(y); the others must be named dead. Before them, boxes of the
size of the literature, random ReLU networks of N(0, 1)/sqrt(k) weights and small biases; boxes of labels; and
blocks of the shape of a transformer's feed-forward part; units that act in a corner of a bounded domain;
boxes that change; a hundred trained networks of many shapes (--only picks some: "block gelu 64-256-64",
corners, "784-32 single", labels, "trained 1*"), of an endless series: BENCH_FIRST=100 asks those from number
100 on in place of the first. Where PyTorch is there, twenty networks trained by it follow, each in double and
in single precision ("torch *").
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from fnmatch import fnmatch

import numpy as np

import onehidden as oh
from benchmarks import _torch_boxes, _trained_boxes
from benchmarks._table import Table
from onehidden.run import stream

TABLES = ("diabetes", "wine", "cancer", "iris")
ACTIVATIONS = ("relu", "tanh", "logistic")
WIDTHS = (8, 16, 32)
SOLVERS = ("lbfgs", "adam")
TARGET = 1e-7
# inputs, units, how the answers are spoilt
LARGE = (
    (784, 32, "double"), (784, 128, "double"), (3072, 2, "double"), (2048, 4, "double"),
    (784, 32, "single"), (784, 32, "6 decimals"), (784, 32, "3 decimals"), (784, 32, "noise 1e-6"),
)  # fmt: skip
# activation, inputs, units, outputs, seeds
BLOCKS = (
    *((g, 16, 64, 16, 10) for g in ("relu", "gelu", "silu", "softplus", "elu", "tanh", "sigmoid")),
    *((g, 32, 128, 32, 1) for g in ("relu", "gelu", "silu", "tanh")),
    *((g, 64, 256, 64, 1) for g in ("relu", "gelu", "silu", "softplus", "elu", "tanh", "sigmoid")),
    *((g, 64, 256, 1, 1) for g in ("relu", "gelu")),
    *((g, 128, 512, 128, 1) for g in ("relu", "gelu")),
)  # fmt: skip
LONGEST = 1200.0  # seconds for one of the hundred; beside other work they are long
# Seeds of networks of two units: the first ten as they come, then those up to 50 whose labels tell all rows.
PAIRS = (*range(10), 18, 22, 26, 30, 32, 33, 37, 38, 43)
# inputs, units, seed: of 512 inputs random, of 64 trained on digits
LABELS = (*((512, 2, seed) for seed in PAIRS), *((64, 4, seed) for seed in range(6)))
SPOILT = {
    "6 decimals": lambda y, rng: np.round(y, 6),
    "3 decimals": lambda y, rng: np.round(y, 3),
    "noise 1e-6": lambda y, rng: y + 1e-6 * rng.standard_normal(len(y)),
}


def large(quick: bool) -> list[str]:
    """Boxes of many parameters: what they cost, and how well they are known."""
    table = Table(
        "box", "answers", "status", "queries", "log2", "queries a parameter", "seconds", "CPU seconds",
        "peak GiB", "worst relative", "told", "largest difference",
    )  # fmt: skip
    for d, k, answers in LARGE[:1] if quick else LARGE:
        if fnmatch(f"{d}-{k} {answers}", os.environ.get("BENCH_ONLY", "*")):
            large_row(table, d, k, answers)
    return table.lines


def large_row(table: Table, d: int, k: int, answers: str) -> None:
    rng, noise = stream(0, "benchmark", "oracle", d, k), stream(1, "benchmark", "oracle", d, k)
    kind = np.float32 if answers == "single" else np.float64
    A, w, b = (
        (scale * rng.standard_normal(shape) / np.sqrt(k)).astype(kind)
        for shape, scale in (((k, d), 1.0), (k, 1.0), (k, 0.1))
    )

    def box(X: np.ndarray) -> np.ndarray:
        y = np.maximum(X.astype(kind) @ A.T + b, 0) @ w + kind(0.3)
        return SPOILT[answers](y, noise) if answers in SPOILT else y

    began = time.process_time()
    r = oh.recover_oracle(box, d)
    spent = time.process_time() - began
    truth = oh.OneHiddenNet(A.astype(float), w.astype(float), b.astype(float), float(kind(0.3)))
    m = oh.match(r.network, truth)
    worst = max(m.max_error, m.output_error, m.bias_error, m.intercept_error)
    told = next(c.value for c in r.checks if c.name == "attainable error")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    table.row(
        f"{d}-{k}-1", answers, r.status, r.queries, f"{np.log2(r.queries):.2f}",
        f"{r.queries / (k * (d + 2) + 1):.1f}", f"{r.seconds:.0f}", f"{spent:.0f}", f"{peak:.2f}",
        f"{worst:.1e}", f"{told:.1e}", f"{largest_difference(r.network, truth):.1e}",
    )  # fmt: skip


def largest_difference(found: oh.OneHiddenNet, truth: oh.OneHiddenNet) -> float:
    """The largest |theta - theta'| of all parameters, rows of a unit brought to one length.

    So the literature measures (Carlini, Jagielski and Mironov 2020): an absolute difference, in which the row
    of a unit of small output counts as that of any other.
    """
    if found.n_hidden != truth.n_hidden:
        return float("inf")
    order = oh.match(found, truth).permutation
    size = np.linalg.norm(truth.weights, axis=1) / np.linalg.norm(found.weights[order], axis=1)
    parts = (
        (found.weights[order] * size[:, None], truth.weights),
        (found.bias[order] * size, truth.bias),
        (found.output[order] / size, truth.output),
        (found.intercept, truth.intercept),
    )
    return float(max(np.max(np.abs(np.asarray(one) - np.asarray(two))) for one, two in parts))


def blocks(quick: bool) -> list[str]:
    """Random blocks w g(a x + b) + c with rows of length about 1; the worst of the seeds."""
    table = Table(
        "block", "seeds", "exact", "worst error", "queries", "queries a parameter", "CPU seconds", "peak GiB"
    )
    for name, d, k, q, seeds in BLOCKS[:3] if quick else BLOCKS:
        if not fnmatch(f"block {name} {d}-{k}-{q}", os.environ.get("BENCH_ONLY", "*")):
            continue
        found = [block(name, d, k, q, seed) for seed in range(1 if quick else seeds)]
        exact, worst, queries, spent = (np.array(part) for part in zip(*found, strict=True))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        table.row(
            f"{name} {d}-{k}-{q}", len(found), int(exact.sum()), f"{worst.max():.1e}", int(queries.max()),
            f"{queries.max() / (k * (d + 1 + q) + q):.1f}", f"{spent.max():.1f}", f"{peak:.2f}",
        )  # fmt: skip
    return table.lines


def block(name: str, d: int, k: int, q: int, seed: int) -> tuple[bool, float, int, float]:
    """Whether it is exact; the worst relative error of rows, outputs, biases; queries; CPU seconds."""
    rng = stream(seed, "benchmark", "oracle", "block", d, k, q)
    rows, output = rng.standard_normal((k, d)) / np.sqrt(d), rng.standard_normal((k, q)) / np.sqrt(k)
    bias, level = 0.3 * rng.standard_normal(k), 0.3 * rng.standard_normal(q)
    w, c = (output[:, 0], float(level[0])) if q == 1 else (output, level)
    net = oh.OneHiddenNet(rows, w, bias, c, name)
    began = time.process_time()
    r = oh.recover_oracle(lambda X: net.activation(X @ rows.T + bias) @ w + c, d, activation=name)
    spent = time.process_time() - began
    m = oh.match(r.network, net)
    worst = max(m.max_error, m.output_error, m.bias_error, m.intercept_error)
    return r.status == "exact", worst, r.queries, spent


def corners(quick: bool) -> list[str]:
    """Boxes on [-1, 1]^d with a unit that acts on .05 to 5 % of it: how many are found, or falsely exact."""
    if not fnmatch("corners", os.environ.get("BENCH_ONLY", "*")):
        return []
    found, wrong, boxes = 0, 0, 5 if quick else 50
    for seed in range(boxes):
        rng = stream(seed, "benchmark", "oracle", "corner unit")
        d, k = int(rng.choice([2, 3, 4, 5, 6, 8, 10, 12, 16, 20])), int(rng.integers(2, 6))
        rows, share = rng.standard_normal((k + 1, d)), np.exp(rng.uniform(np.log(5e-4), np.log(0.05)))
        bias, output = 0.3 * rng.standard_normal(k + 1), rng.standard_normal(k + 1)
        bias[-1], output[-1] = -np.quantile(rng.uniform(-1, 1, (400_000, d)) @ rows[-1], 1 - share), 1.0
        net = oh.OneHiddenNet(rows, output, bias, 0.3)
        r = oh.recover_oracle(net.predict, d, domain=(-1, 1), seed=seed)
        X = np.concatenate([rng.choice([-1.0, 1.0], (20_000, d)), rng.uniform(-1, 1, (20_000, d))])
        right = r.network.n_hidden == k + 1 and np.max(np.abs(r.predict(X) - net.predict(X))) < 1e-8
        found, wrong = found + right, wrong + (r.status == "exact" and not right)
    return [f"{boxes} boxes with a unit in a corner: {found} right, {wrong} falsely called exact."]


def changes(quick: bool) -> list[str]:
    """Boxes that drift by so much a query, or are another function after so many: how many are noticed."""
    if not fnmatch("changes", os.environ.get("BENCH_ONLY", "*")):
        return []
    noticed: dict[str, list[bool]] = {}
    for seed in range(3 if quick else 20):
        rng = stream(seed, "benchmark", "oracle", "changes")
        d, k, name = (
            int(rng.integers(6, 40)),
            int(rng.integers(8, 40)),
            str(rng.choice(["relu", "gelu", "tanh"])),
        )
        one, two = (
            oh.OneHiddenNet(
                rng.standard_normal((k, d)) / np.sqrt(d), rng.standard_normal(k),
                0.3 * rng.standard_normal(k), 0.3, name,
            )
            for _ in range(2)
        )  # fmt: skip
        for drift, after in ((1e-7, np.inf), (3e-9, np.inf), (0.0, 1500), (0.0, 15_000)):
            seen = [0]

            def fn(X, one=one, two=two, drift=drift, after=after, seen=seen):
                at = seen[0] + np.arange(len(X))
                seen[0] += len(X)
                return np.where(at < after, one.predict(X), two.predict(X)) + drift * at

            try:
                oh.recover_oracle(fn, d, activation=name, seed=seed)
                told = False
            except ValueError as refused:
                told = "the same function from the first query" in str(refused)
            if seen[0] > 1.1 * after or after == np.inf:
                what = f"a drift of {drift:g}" if drift else f"a change after {after}"
                noticed.setdefault(what, []).append(told)
    return [f"{what}: noticed in {sum(told)} of {len(told)} boxes." for what, told in noticed.items()]


def main(quick: bool) -> list[str]:
    lines = [
        *large(quick),
        "",
        *blocks(quick),
        "",
        *corners(quick),
        *changes(quick),
        "",
        *labels(quick),
        "",
        *hundred(quick),
        "",
        *_torch_boxes.table(quick),
    ]
    if os.environ.get("BENCH_ONLY"):
        return lines
    return [*lines, "", *trained_networks(quick)]


def hundred(quick: bool) -> list[str]:
    """A hundred trained networks of many shapes; --only "trained 7 *" runs one of them."""
    table = Table(
        "network", "status", "live units", "found", "queries", "CPU seconds", "parameter error", "verdict"
    )
    told: dict[str, list[tuple[bool, bool, float, float, float]]] = {}
    for one in _trained_boxes.catalogue(int(os.environ.get("BENCH_FIRST", "0")))[: 6 if quick else None]:
        if fnmatch(one.words, os.environ.get("BENCH_ONLY", "*")):
            told.setdefault(f"{one.kind} {one.activation}", []).append(hundred_row(table, one))
    table.say("")
    kinds = Table(
        "kind", "networks", f"exact to {TARGET:g}", "falsely exact", "queries a parameter", "CPU seconds",
        "worst of the exact",
    )  # fmt: skip
    for kind, rows in sorted(told.items()):
        exact, wrong, error, each, spent = (np.array(part) for part in zip(*rows, strict=True))
        kinds.row(
            kind, len(rows), int(exact.sum()), int(wrong.sum()), f"{np.median(each):.1f}",
            f"{spent.sum():.0f}", f"{np.max(error[exact], initial=0.0):.1e}",
        )  # fmt: skip
    rows = [row for part in told.values() for row in part]
    kinds.say("")
    kinds.say(
        f"{len(rows)} networks: {len(rows)} answers, {sum(row[0] for row in rows)} exact to {TARGET:g}, "
        f"{sum(row[1] for row in rows)} falsely called exact."
    )
    return [*table.lines, *kinds.lines]


def hundred_row(table: Table, one: _trained_boxes.TrainedBox) -> tuple[bool, bool, float, float, float]:
    """Whether it is exact and right, exact and wrong; error, queries a parameter, CPU seconds."""
    fn, inside, X = _trained_boxes.trained(one)
    live = _trained_boxes.live_part(inside, X)
    began = time.process_time()
    try:
        r = oh.recover_oracle(fn, one.inputs, activation=inside.activation.name, max_seconds=LONGEST)
    except ValueError as refused:
        spent = time.process_time() - began
        table.row(one.words, "refused", live.n_hidden, 0, 0, f"{spent:.1f}", "", str(refused))
        return False, False, np.inf, np.nan, spent
    spent = time.process_time() - began
    error = _trained_boxes.parameter_error(r.network, live)
    exact, right = r.status == "exact", error <= TARGET
    verdict = "" if exact and right else "false exact" if exact else r.message[:120]
    table.row(
        one.words, r.status, live.n_hidden, r.network.n_hidden, r.queries, f"{spent:.1f}", f"{error:.1e}",
        verdict,
    )  # fmt: skip
    return exact and right, exact and not right, error, r.queries / one.parameters, spent


def labels(quick: bool) -> list[str]:
    """Boxes that answer with the label of one of two classes alone."""
    table = Table(
        "labels of", "labels tell", "status", "queries", "log2", "CPU seconds", "units", "rows to 1e-6",
        "worst row, up to scale",
    )  # fmt: skip
    told = total = 0
    for d, k, seed in LABELS[:1] if quick else LABELS:
        name = f"labels {d}-{k}-1 seed {seed}"
        if fnmatch(name, os.environ.get("BENCH_ONLY", "*")):
            possible, reached = labels_row(table, name, d, k, seed)
            total, told = total + possible, told + (possible and reached)
    table.say("")
    table.say(f"{told} of {total} networks of two units whose labels tell all rows: rows to 1e-6.")
    return table.lines


def tell(net: oh.OneHiddenNet) -> str:
    """What the labels of a network of two units can tell.

    Outputs of one sign: the boundary is that of their sum, and each unit bends it, if the intercept has the
    other sign; else there is none. Outputs of two signs: labels are those of min(f_1, f_12) > 0 or its
    mirror image, one affine function with the second unit active and one without, each known up to a factor
    of its own, and rows that differ by it give the same labels.
    """
    if np.ptp(np.sign(net.output)) > 0:
        return "not all rows"
    return "all rows" if np.sign(net.intercept) != np.sign(net.output[0]) else "nothing: constant"


def labels_row(table: Table, name: str, d: int, k: int, seed: int) -> tuple[bool, bool]:
    """A random network of 512 inputs, or a trained classifier of digits; can labels tell it, and did they."""
    if d == 64:
        box = _trained_boxes.TrainedBox(seed, "classifier", d, k, 2, "relu", "adam")
        _, inside, _ = _trained_boxes.trained(box)
    else:
        rng = stream(seed, "benchmark", "oracle", "labels", d, k)
        rows, level = rng.standard_normal((k, d)) / np.sqrt(k), 0.3 * rng.standard_normal()
        inside = oh.OneHiddenNet(rows, rng.standard_normal(k), 0.3 * rng.standard_normal(k), level)
    can = tell(inside) if k == 2 else ""
    began = time.process_time()
    try:
        r = oh.recover_oracle(lambda X: (inside.predict(X) > 0).astype(float), d)
    except ValueError as refused:
        table.row(name, can, f"refused: {refused}", "", "", f"{time.process_time() - began:.1f}", "", "", "")
        return can == "all rows", False
    unit = [net.weights / np.linalg.norm(net.weights, axis=1, keepdims=True) for net in (r.network, inside)]
    cosine = unit[0] @ unit[1].T
    best = np.argmax(np.abs(cosine), axis=0)
    sign = np.sign(cosine[best, np.arange(k)])[:, None]
    error = np.linalg.norm(unit[0][best] * sign - unit[1], axis=1)
    beside = " and a linear part" if r.network.has_linear else ""
    table.row(
        name, can, r.status, r.queries, f"{np.log2(r.queries):.2f}", f"{time.process_time() - began:.1f}",
        f"{r.network.n_hidden} of {k}{beside}", int(np.sum(error <= 1e-6)), f"{np.max(error):.1e}",
    )  # fmt: skip
    return can == "all rows", bool(np.max(error) <= 1e-6) and r.queries <= 2**19


def trained_networks(quick: bool) -> list[str]:
    table = Table(
        "table", "inputs", "activation", "width", "solver", "asked", "status", "queries", "seconds",
        "function error", "parameter error", "dead units",
    )  # fmt: skip
    solvers, widths = (SOLVERS[:1], WIDTHS[:2]) if quick else (SOLVERS, WIDTHS)
    tables = TABLES[:2] if quick else TABLES
    reached = total = 0
    for name in tables:
        for activation in ACTIVATIONS:
            for width in widths:
                for solver in solvers:
                    for hidden in (width, None):
                        reached += row(table, name, activation, width, solver, hidden)
                        total += 1
    table.say("")
    table.say(f"{reached} of {total} recovered to {TARGET:g} in function and parameters and called exact.")
    return table.lines


def real_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A bundled table, standardised: at most 20 inputs and one real target."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    if name == "diabetes":
        X, y = datasets.load_diabetes(return_X_y=True)
    elif name == "wine":  # alcohol from the other twelve measurements
        X = datasets.load_wine(return_X_y=True)[0]
        X, y = X[:, 1:], X[:, 0]
    elif name == "cancer":
        X, y = datasets.load_breast_cancer(return_X_y=True)
        X = X[:, :20]
    else:  # iris: petal width from the other three
        X = datasets.load_iris(return_X_y=True)[0]
        X, y = X[:, :3], X[:, 3]
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def trained(name: str, activation: str, width: int, solver: str) -> tuple[object, oh.OneHiddenNet]:
    """A fitted regressor and the network inside it."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    X, y = real_table(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPRegressor(
            hidden_layer_sizes=(width,), activation=activation, solver=solver, max_iter=500, random_state=0
        ).fit(X, y)
    inside = oh.OneHiddenNet(
        model.coefs_[0].T,
        model.coefs_[1][:, 0],
        model.intercepts_[0],
        model.intercepts_[1][0],
        {"logistic": "sigmoid"}.get(activation, activation),
    )
    return model, inside


def live_part(net: oh.OneHiddenNet, X: np.ndarray, spread: float) -> oh.OneHiddenNet:
    """The network without the units that contribute less than 1e-11 of std(y)."""
    units = net.activation(X @ net.weights.T + net.bias) * net.output
    reach = np.abs(net.output) * np.linalg.norm(net.weights, axis=1)
    live = np.maximum(units.std(axis=0), reach) > 1e-11 * spread
    return oh.OneHiddenNet(net.weights[live], net.output[live], net.bias[live], net.intercept, net.activation)


def row(table: Table, name: str, activation: str, width: int, solver: str, hidden: int | None) -> bool:
    model, inside = trained(name, activation, width, solver)
    d = inside.n_inputs
    r = oh.recover_oracle(model.predict, d, hidden, activation=inside.activation.name)  # type: ignore[attr-defined]
    X = stream(1, "benchmark", "oracle", "inputs").standard_normal((10_000, d))
    y = model.predict(X)  # type: ignore[attr-defined]
    function = float(np.max(np.abs(r.network.predict(X) - y)) / y.std())
    m = oh.match(r.network, live_part(inside, X, float(y.std())))
    parameters = max(m.max_error, m.output_error, m.bias_error, m.intercept_error)
    dead = next((int(c.value) for c in r.checks if c.name == "dead units"), 0)
    table.row(
        name, d, activation, width, solver, "width" if hidden else "none", r.status, r.queries,
        f"{r.seconds:.1f}", f"{function:.1e}", f"{parameters:.1e}", dead,
    )  # fmt: skip
    return r.status == "exact" and function <= TARGET and parameters <= TARGET
