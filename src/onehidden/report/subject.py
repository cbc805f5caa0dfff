"""The subject of a report: a recovery with its samples and the true network, gathered and checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.certify.units import UnitVerdict
from onehidden.data import Table, check_arrays
from onehidden.network import OneHiddenNet

if TYPE_CHECKING:
    from onehidden.recovery import Recovery


@dataclass(frozen=True)
class Subject:
    """A recovery, its network, and the samples where these are known."""

    recovery: Recovery
    net: OneHiddenNet  # of several outputs the first
    outputs: tuple[str, ...]  # names of the target columns
    names: tuple[str, ...]  # of the inputs
    X: np.ndarray | None
    Y: np.ndarray | None  # (n, q)
    n_rows: int | None
    offset: np.ndarray | None  # (n,) added to the network's output at these rows

    def get(self, name: str, default: object = None) -> Any:
        """A field of the recovery that an older or simpler one may lack."""
        value = getattr(self.recovery, name, None)
        return default if value is None else value

    def unit(self, i: int) -> UnitVerdict | None:
        """The verdict on unit i, where the recovery has one."""
        return next((unit for unit in self.get("units", ()) if unit.index == i), None)

    @property
    def output_errors(self) -> np.ndarray | None:
        """(k,) standard errors of the output weights, of several outputs those of the first."""
        errors = self.get("standard_errors")
        return None if errors is None else np.asarray(errors.output).reshape(self.net.n_hidden, -1)[:, 0]

    def predictions(self) -> np.ndarray:
        """(n, q) predictions at the rows."""
        assert self.X is not None
        offset = {} if self.offset is None else {"offset": self.offset}
        return self.recovery.predict(self.X, **offset).reshape(len(self.X), -1)

    def residuals(self) -> np.ndarray:
        """(n,) y less the mean that the network gives it, for the first output."""
        assert self.X is not None
        assert self.Y is not None
        eta = self.recovery.network.predict(self.X)
        eta = eta if self.offset is None else (eta.T + self.offset).T
        mean = eta if self.family is None else self.family.mean(eta)
        return self.Y[:, 0] - mean.reshape(len(self.X), -1)[:, 0]

    @property
    def y(self) -> np.ndarray | None:
        """(n,) the first output."""
        return None if self.Y is None else self.Y[:, 0]

    @property
    def n_outputs(self) -> int:
        return len(self.outputs)

    @property
    def target(self) -> str:
        """The names of the target columns in words."""
        return " and ".join(filter(None, (", ".join(self.outputs[:-1]), self.outputs[-1])))

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.get("options", {}))

    @property
    def family(self) -> Any | None:
        """The distribution of y given the network's output; None for normal noise."""
        return self.get("family")

    @property
    def spread(self) -> np.ndarray | None:
        """(d,) standard deviations of the inputs: of the rows fitted, else of the rows given."""
        kept = np.asarray(self.get("input_spread", ()), dtype=float)
        if kept.shape == (self.net.n_inputs,):
            return kept
        return None if self.X is None else self.X.std(axis=0)


def gather(
    recovery: Recovery,
    X: object = None,
    y: object = None,
    most_rows: int = 200_000,
) -> Subject:
    """Validate the pieces and take a fixed, evenly spaced subsample of the rows."""
    net = recovery.network.one_output()
    names = getattr(recovery, "feature_names", None) or [f"x{j}" for j in range(net.n_inputs)]
    if len(names) != net.n_inputs:
        raise ValueError(f"feature_names must have one name an input ({net.n_inputs}), got {len(names)}")
    n_rows, rows, values, offset = None, None, None, None
    if isinstance(X, Table):
        X, y, offset = X.X, X.y if X.y is None or X.trials is None else (X.y.T / X.trials).T, X.offset
    if X is not None:
        rows, values = check_arrays(X, as_indicators(y, getattr(recovery, "classes", ())))
        if rows.shape[1] != net.n_inputs:
            raise ValueError(f"X must be (n, {net.n_inputs}) to fit the network, got shape {rows.shape}")
        n_rows = len(rows)
        keep = thin(n_rows, most_rows)
        rows, values = rows[keep], None if values is None else values[keep].reshape(len(keep), -1)
        offset = None if offset is None else offset[keep]
        outputs = recovery.network.n_outputs
        if values is not None and values.shape[1] != outputs:
            raise ValueError(f"y must have {outputs} columns to fit the network, got {values.shape[1]}")
    elif y is not None:
        raise ValueError("y came without X: give both, or neither")
    return Subject(
        recovery, net, output_names(recovery), tuple(map(str, names)), rows, values, n_rows, offset
    )  # fmt: skip


def output_names(recovery: Any) -> tuple[str, ...]:
    """The names of the outputs of a recovery or network: their columns, the classes after the first, or y."""
    q = getattr(recovery, "network", recovery).n_outputs
    target = dict(getattr(recovery, "options", None) or {}).get("target")
    named = [*map(label, getattr(recovery, "classes", ())[1:])] or target
    named = [named] if isinstance(named, str) else named
    if isinstance(named, (list, tuple)) and len(named) == q:
        return tuple(map(str, named))
    return ("y",) if q == 1 else tuple(f"y{j}" for j in range(q))


def label(one: Any) -> str:
    """The name of a class; a whole number, which a file may hold as 1.0, without its point."""
    return f"{one:.0f}" if isinstance(one, float) and one.is_integer() else str(one)


def as_indicators(y: Any, classes: Sequence[Any]) -> Any:
    """Labels as 0 and 1, a column for every class but the first; other targets as they are."""
    if y is None or not classes or np.ndim(y) > 1:
        return y
    labels = np.asarray(y)
    strange = labels[~np.isin(labels, np.asarray(classes))]
    if strange.size:
        raise ValueError(
            f"y holds {strange[0]!s}, which is none of the classes {', '.join(map(str, classes))}"
        )
    return np.column_stack([labels == label for label in classes[1:]]).astype(float)


def thin(n: int, limit: int = 1500) -> np.ndarray:
    """At most ``limit`` indices evenly spread over range(n)."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(int))


def strongest(values: np.ndarray, most: int) -> list[int]:
    """The places of the largest numbers by size, in that order."""
    return np.argsort(-np.abs(values), kind="stable")[:most].tolist()
