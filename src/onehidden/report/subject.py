"""The subject of a report: a recovery with its samples, gathered and checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

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
    X: np.ndarray | None = None
    Y: np.ndarray | None = None  # (n, q)
    n_rows: int = 0
    offset: np.ndarray | None = None  # (n,) added to the network's output at these rows

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return self.recovery.feature_names

    def unit(self, i: int) -> UnitVerdict | None:
        """The verdict on unit i; records of version 0.1 have none."""
        return next((unit for unit in self.recovery.units if unit.index == i), None)

    @property
    def output_errors(self) -> np.ndarray:
        """(k,) standard errors of the output weights, of several outputs those of the first."""
        return self.recovery.standard_errors.output.reshape(self.net.n_hidden, -1)[:, 0]

    @property
    def effects(self) -> Float[np.ndarray, "k d"]:
        """e_ij = w_i a_ij sd(x_j): the change of y for one sd of x_j where unit i has slope one."""
        return self.net.output[:, None] * self.net.weights * self.spread

    @property
    def effect_errors(self) -> Float[np.ndarray, "k d"]:
        """Their standard errors, infinite where the data leave a number open.

        The error of a product is that of independent factors, (e_a w)² + (e_w a)²: weights are rows of unit
        length, whose errors are nearly uncorrelated with those of the outputs.
        """
        of_weight = self.recovery.standard_errors.weights * np.abs(self.net.output)[:, None]
        of_output = self.output_errors[:, None] * np.abs(self.net.weights)
        with np.errstate(invalid="ignore"):  # an open number times the spread zero of a constant input
            found = np.hypot(of_weight, of_output) * self.spread
        return np.nan_to_num(found, nan=np.inf, posinf=np.inf)

    def predictions(self) -> np.ndarray:
        """(n, q) predictions at the rows."""
        assert self.X is not None
        return self.recovery.predict(self.X, self.offset).reshape(len(self.X), -1)

    def mean(self, X: np.ndarray) -> np.ndarray:
        """(m, q) predictions at other rows; exposures differ from row to row: those of the mean one."""
        offset = None if self.offset is None else np.full(len(X), self.offset.mean())
        return self.recovery.predict(X, offset).reshape(len(X), -1)

    @property
    def spread(self) -> np.ndarray:
        """(d,) standard deviations of the inputs on the rows fitted; ones where they were not kept."""
        kept = self.recovery.input_spread
        return kept if len(kept) else np.ones(self.net.n_inputs)


def gather(recovery: Recovery, X: object = None, y: object = None, most_rows: int = 200_000) -> Subject:
    """Validate the pieces and take a fixed, evenly spaced subsample of the rows."""
    found, offset = Subject(recovery, recovery.network.one_output(), output_names(recovery)), None
    if isinstance(X, Table):
        own = X.y if X.y is None or X.trials is None else (X.y.T / X.trials).T
        X, y, offset = X.X, own if y is None else y, X.offset
    if X is None:
        if y is not None:
            raise ValueError("y came without X: give both, or neither")
        return found
    rows, values = check_arrays(X, as_indicators(y, recovery.classes))
    d, q = recovery.network.n_inputs, recovery.network.n_outputs
    if rows.shape[1] != d:
        raise ValueError(f"X must be (n, {d}) to fit the network, got shape {rows.shape}")
    values = None if values is None else values.reshape(len(rows), -1)
    if values is not None and values.shape[1] != q:
        raise ValueError(f"y must have {q} columns to fit the network, got {values.shape[1]}")
    keep = thin(len(rows), most_rows)
    drawn = (None if one is None else one[keep] for one in (values, offset))
    return replace(found, X=rows[keep], Y=next(drawn), n_rows=len(rows), offset=next(drawn))


def output_names(recovery: Any) -> tuple[str, ...]:
    """The names of the outputs of a recovery or network: their columns, the classes after the first, or y."""
    q = getattr(recovery, "network", recovery).n_outputs
    target = getattr(recovery, "options", {}).get("target")
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
