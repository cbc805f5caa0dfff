"""What a report is about: a recovery with its samples and truth, gathered and checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from onehidden.certify.units import UnitVerdict
from onehidden.data.arrays import check_arrays
from onehidden.data.table import Table
from onehidden.matching import Match, match
from onehidden.network import OneHiddenNet

MAX_POINTS = 1500  # drawn points; the eye sees no more and the page stays small
MAX_ROWS = 200_000  # rows that figures of the fit are computed from


@runtime_checkable
class Recovered(Protocol):
    """What a report needs of a recovery; whatever else it has is shown, too."""

    @property
    def network(self) -> OneHiddenNet: ...


@dataclass(frozen=True)
class Subject:
    """A recovery, its network and whatever helps to show it."""

    recovery: Recovered
    net: OneHiddenNet  # of several outputs the first
    outputs: tuple[str, ...]  # what the target columns are called
    names: tuple[str, ...]
    units: tuple[str, ...]
    errors: Any | None  # standard errors: weights, output, bias, intercept
    X: np.ndarray | None
    y: np.ndarray | None  # of several outputs the first
    Y: np.ndarray | None  # (n, q)
    n_rows: int | None
    offset: np.ndarray | None  # (n,) added to the network's output at these rows
    truth: OneHiddenNet | None
    match: Match | None

    def get(self, name: str, default: object = None) -> Any:
        """A field of the recovery that an older or simpler one may lack."""
        value = getattr(self.recovery, name, None)
        return default if value is None else value

    def unit(self, i: int) -> UnitVerdict | None:
        """The verdict on unit i, where the recovery has one."""
        return next((unit for unit in self.get("units", ()) if unit.index == i), None)

    def error(self, name: str, index: int | tuple[int, ...] = ()) -> float | None:
        if self.errors is None:
            return None
        return float(np.asarray(getattr(self.errors, name))[index])

    def predictions(self) -> np.ndarray:
        """(n, q) what the recovery predicts at the rows, which the network may be only a part of."""
        whole: Any = self.recovery
        X = self.X
        assert X is not None
        if hasattr(whole, "predict"):
            beside = {} if self.offset is None else {"offset": self.offset}
            return whole.predict(X, **beside).reshape(len(X), -1)
        guard = self.get("prediction")
        held = whole.network.predict(X) if guard is None else guard.predict(whole.network, X)
        return held.reshape(len(X), -1)

    def left_over(self) -> np.ndarray:
        """(n,) y less what the network alone says of its mean, for the first output."""
        assert self.X is not None
        assert self.Y is not None
        eta = self.recovery.network.predict(self.X)
        eta = eta if self.offset is None else (eta.T + self.offset).T
        mean = eta if self.family is None else self.family.mean(eta)
        return self.Y[:, 0] - mean.reshape(len(self.X), -1)[:, 0]

    @property
    def n_outputs(self) -> int:
        return len(self.outputs)

    @property
    def target(self) -> str:
        """The names of the target columns in words."""
        return " and ".join(filter(None, (", ".join(self.outputs[:-1]), self.outputs[-1])))

    @property
    def family(self) -> Any | None:
        """What y is, given the network's output; None for normal noise."""
        return self.get("family")

    @property
    def spread(self) -> np.ndarray | None:
        """(d,) standard deviations of the inputs: of those fitted, else of the rows given."""
        kept = np.asarray(self.get("input_spread", ()), dtype=float)
        if kept.shape == (self.net.n_inputs,):
            return kept
        return None if self.X is None else self.X.std(axis=0)

    @property
    def has_bias(self) -> bool:
        return bool(np.any(self.net.bias != 0))


def gather(
    recovery: Recovered, X: object = None, y: object = None, truth: OneHiddenNet | None = None
) -> Subject:
    """Validate the pieces and take a fixed, evenly spaced subsample of the rows."""
    net = one_output(recovery.network)
    names = getattr(recovery, "feature_names", None) or [f"x{j}" for j in range(net.n_inputs)]
    if len(names) != net.n_inputs:
        raise ValueError(f"feature_names must have one name an input ({net.n_inputs}), got {len(names)}")
    n_rows, rows, values, beside = None, None, None, None
    if isinstance(X, Table):
        X, y, beside = X.X, X.y if X.y is None or X.trials is None else (X.y.T / X.trials).T, X.offset
    if X is not None:
        rows, values = check_arrays(X, as_indicators(y, getattr(recovery, "classes", ())))
        if rows.shape[1] != net.n_inputs:
            raise ValueError(f"X must be (n, {net.n_inputs}) to fit the network, got shape {rows.shape}")
        n_rows = len(rows)
        keep = np.unique(np.linspace(0, n_rows - 1, min(n_rows, MAX_ROWS)).astype(int))
        rows, values = rows[keep], None if values is None else values[keep].reshape(len(keep), -1)
        beside = None if beside is None else beside[keep]
        outputs = recovery.network.n_outputs
        if values is not None and values.shape[1] != outputs:
            raise ValueError(f"y must have {outputs} columns to fit the network, got {values.shape[1]}")
    elif y is not None:
        raise ValueError("y came without X: give both, or neither")
    return Subject(
        recovery,
        net,
        output_names(recovery),
        tuple(str(name) for name in names),
        tuple(f"unit {i + 1}" for i in range(net.n_hidden)),
        first_output(getattr(recovery, "standard_errors", None)),
        rows,
        None if values is None else values[:, 0],
        values,
        n_rows,
        beside,
        truth,
        None if truth is None else match(recovery.network, truth),
    )


def output_names(recovery: Recovered) -> tuple[str, ...]:
    """What the outputs are called: their columns, the classes after the first, y, or numbers."""
    target = dict(getattr(recovery, "options", None) or {}).get("target")
    named = [*map(label, getattr(recovery, "classes", ())[1:])] or target
    named = [named] if isinstance(named, str) else named
    q = recovery.network.n_outputs
    if isinstance(named, (list, tuple)) and len(named) == q:
        return tuple(map(str, named))
    return ("y",) if q == 1 else tuple(f"y{j + 1}" for j in range(q))


def label(one: Any) -> str:
    """What a class is called: of whole numbers, which a file may hold as 1.0, the number."""
    return f"{one:.0f}" if isinstance(one, float) and one.is_integer() else str(one)


def as_indicators(y: Any, classes: Sequence[Any]) -> Any:
    """Labels as 0 and 1, a column for every class but the first; what is no label is left as it is."""
    if y is None or not classes or np.ndim(y) > 1:
        return y
    labels = np.asarray(y)
    strange = labels[~np.isin(labels, np.asarray(classes))]
    if strange.size:
        raise ValueError(
            f"y holds {strange[0]!s}, which is none of the classes {', '.join(map(str, classes))}"
        )
    return np.column_stack([labels == label for label in classes[1:]]).astype(float)


def one_output(net: OneHiddenNet, which: int = 0) -> OneHiddenNet:
    """One output of a network that may have several."""
    if np.ndim(net.output) == 1:
        return net
    level = float(np.asarray(net.intercept)[which])
    linear = net.linear[:, which]
    return OneHiddenNet(net.weights, net.output[:, which], net.bias, level, net.activation, linear)


def first_output(record: Any) -> Any:
    """Numbers for each parameter, of several outputs those of the first; None where there are none."""
    if record is None or np.ndim(record.output) == 1:
        return record
    first = {"output": np.asarray(record.output)[:, 0], "intercept": float(np.ravel(record.intercept)[0])}
    linear = getattr(record, "linear", None)
    first["linear"] = None if linear is None else np.asarray(linear)[:, 0]
    return SimpleNamespace(weights=record.weights, bias=record.bias, **first)


def thin(n: int, limit: int = MAX_POINTS) -> np.ndarray:
    """At most ``limit`` indices spread over range(n): the same ones every time."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(int))


def field_of(record: object, name: str, place: int) -> Any:
    """A field of a trace record, which may be an object, a mapping or a tuple."""
    if isinstance(record, Mapping):
        return record[name]
    held: Any = record
    return getattr(held, name) if hasattr(held, name) else held[place]
