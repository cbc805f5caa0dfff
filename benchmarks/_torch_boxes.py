"""Networks trained by PyTorch on real tables, as black boxes: in single precision, and in double."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from fnmatch import fnmatch

import numpy as np

import onehidden as oh
from benchmarks._table import Table
from benchmarks._trained_boxes import TrainedBox, live_part, parameter_error
from onehidden.oracle.adapters import from_torch
from onehidden.recovery.record import Recovery
from onehidden.run import stream

COUNT = 20
PRECISIONS = ("float64", "float32")
# inputs of a table: diabetes, breast cancer, digits
TABLES = {10: "diabetes", 30: "cancer", 64: "digits"}
WIDTHS = (4, 8, 16, 32, 64)
OUTPUTS = (1, 2, 3, 10)
TARGET = 1e-7  # of a box in double precision
HONEST = 4.0  # times what is told: how far off the parameters of a box in single precision may be
LONGEST = 300.0  # seconds for one of them
LIVE = {"float64": 1e-11, "float32": 1e-5}  # of std(y): what a unit must add to be asked back
_EPOCHS, _BATCH, _RATE = 30, 32, 3e-3


def available() -> bool:
    """Whether PyTorch is there."""
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def catalogue() -> list[TrainedBox]:
    """Twenty networks, the same every time."""
    rng, found = stream(0, "benchmark", "oracle", "torch"), []
    for number in range(COUNT):
        d, width = int(rng.choice(list(TABLES))), int(rng.choice(WIDTHS))
        kind = "classifier" if rng.random() < 0.3 and d != 10 else "regressor"
        q = int(rng.choice(OUTPUTS)) if d == 64 else 1
        q = max(q, 2) if kind == "classifier" else q
        activation = str(rng.choice(["relu", "relu", "tanh", "sigmoid"]))
        found.append(TrainedBox(number, kind, d, width, q, activation, "torch"))
    return found


def _rows(box: TrainedBox) -> tuple[np.ndarray, np.ndarray]:
    """Standardised inputs; targets of a regressor as columns, classes of a classifier."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    load = {"diabetes": datasets.load_diabetes, "cancer": datasets.load_breast_cancer}
    X, y = load.get(TABLES[box.inputs], datasets.load_digits)(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    if box.kind == "classifier":
        return X, np.asarray(y, int) % box.outputs
    if TABLES[box.inputs] == "digits":
        return X, np.column_stack([np.cos(y * (j + 1) / 2) for j in range(box.outputs)])
    return X, ((y - y.mean()) / y.std())[:, None]


def trained(
    box: TrainedBox,
) -> tuple[dict[str, Callable[[np.ndarray], np.ndarray]], oh.OneHiddenNet, np.ndarray]:
    """The box in each precision, the network inside it, and the rows it was trained on."""
    import torch

    X, y = _rows(box)
    torch.manual_seed(box.number)
    act = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "sigmoid": torch.nn.Sigmoid}[box.activation]
    body = torch.nn.Sequential(
        torch.nn.Linear(box.inputs, box.width), act(), torch.nn.Linear(box.width, box.outputs)
    )
    many = box.kind == "classifier"
    loss = torch.nn.CrossEntropyLoss() if many else torch.nn.MSELoss()
    inputs = torch.as_tensor(X, dtype=torch.float32)
    target = torch.as_tensor(y) if many else torch.as_tensor(y, dtype=torch.float32)
    step = torch.optim.Adam(body.parameters(), lr=_RATE)
    for _ in range(_EPOCHS):
        for part in torch.randperm(len(inputs)).split(_BATCH):
            step.zero_grad()
            loss(body(inputs[part]), target[part]).backward()
            step.step()
    module = torch.nn.Sequential(*body, torch.nn.Softmax(dim=-1)) if many else body
    A, b, W, c = (one.detach().double().numpy() for one in body.parameters())
    output, level = W.T, c
    if many:  # a softmax loses what all classes share
        output, level = output - output.mean(axis=1, keepdims=True), level - level.mean()
    if many and box.outputs == 2:  # one number, the log-odds
        output, level = np.diff(output, axis=1), np.diff(level)
    if output.shape[1] == 1:
        output, level = output[:, 0], level[0]
    inside = oh.OneHiddenNet(A, output, b, level, box.activation)
    double = copy.deepcopy(module).double()
    return {"float32": from_torch(module), "float64": from_torch(double, "float64")}, inside, X


def told_error(r: Recovery) -> float:
    """The largest error that is told of a row, bias, output or intercept, measured as ``match`` does."""
    net, told = r.network, r.standard_errors
    size = np.linalg.norm(net.weights, axis=1)
    largest = np.abs(net.output).reshape(net.n_hidden, -1).max(axis=1)
    output = np.abs(told.output).reshape(net.n_hidden, -1).max(axis=1)
    return float(
        max(
            np.max(np.linalg.norm(told.weights, axis=1) / size),
            np.max(np.abs(told.bias) / np.maximum(size, np.abs(net.bias))),
            np.max(output / largest),
            np.max(np.abs(told.intercept) / np.maximum(1.0, np.abs(net.intercept))),
        )
    )


def table(quick: bool) -> list[str]:
    """Both precisions of every network; none where PyTorch is not there."""
    rows = Table(
        "network", "answers", "status", "live units", "found", "queries", "CPU seconds", "parameter error",
        "told", "verdict",
    )  # fmt: skip
    if not available():
        rows.say("")
        rows.say("PyTorch is not there: no network was trained by it.")
        return rows.lines
    judged: dict[str, list[str]] = {precision: [] for precision in PRECISIONS}
    for one in catalogue()[: 2 if quick else None]:
        names = {precision: f"torch {one.words[8:]} {precision}" for precision in PRECISIONS}
        asked = [p for p, name in names.items() if fnmatch(name, os.environ.get("BENCH_ONLY", "*"))]
        if asked:
            fns, inside, X = trained(one)
            for precision in asked:
                judged[precision].append(
                    _row(rows, one, precision, fns[precision], live_part(inside, X, LIVE[precision]))
                )
    rows.say("")
    for precision, verdicts in judged.items():
        counts = ", ".join(
            f"{verdicts.count(word)} {word}" for word in ("right", "doubtful", "false", "refused")
        )
        rows.say(f"{precision}: {len(verdicts)} networks, {len(verdicts)} answers: {counts}.")
    return rows.lines


def _row(
    rows: Table,
    one: TrainedBox,
    precision: str,
    fn: Callable[[np.ndarray], np.ndarray],
    live: oh.OneHiddenNet,
) -> str:
    """One box, and what its answer is worth.

    In double precision right is exact to ``TARGET``. In single precision it is a certified answer that is not
    called exact, with errors up to ``HONEST`` times those it tells. A certified answer that is not right is
    false, one that is not certified doubtful.
    """
    began, shape = time.process_time(), f"{one.inputs}-{one.width}-{one.outputs}"
    name = f"torch {one.number} {one.kind} {shape} {one.activation}"
    try:
        r = oh.recover_oracle(fn, one.inputs, activation=one.activation, max_seconds=LONGEST)
    except ValueError as refused:
        rows.row(name, precision, f"refused: {refused}", live.n_hidden, 0, "", "", "", "", "refused")
        return "refused"
    spent, error, told = time.process_time() - began, parameter_error(r.network, live), told_error(r)
    if precision == "float64":
        good, certified = r.status == "exact" and error <= TARGET, r.status == "exact"
    else:
        good = r.status == "consistent" and error <= HONEST * told
        certified = r.status in ("exact", "consistent")
    verdict = "right" if good else "false" if certified else "doubtful"
    rows.row(
        name, precision, r.status, live.n_hidden, r.network.n_hidden, r.queries, f"{spent:.1f}",
        f"{error:.1e}", f"{told:.1e}", verdict,
    )  # fmt: skip
    return verdict
