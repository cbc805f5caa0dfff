"""What a table can support before recovery is tried: rows, columns, units; and the plain fit below that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onehidden.certify.errors import ParameterRecord
from onehidden.certify.status import Status
from onehidden.checks import About, at_least
from onehidden.fit.coordinates import DEPENDENT
from onehidden.fit.form import Form
from onehidden.network import OneHiddenNet
from onehidden.recovery.line import Affine, measures, ridge_line
from onehidden.recovery.prediction import Prediction
from onehidden.recovery.record import Recovery
from onehidden.streams import stream

_MOST_COPIES = 10  # whole-number weights are written out as repeated rows up to this growth of the table


@dataclass(frozen=True)
class Rows:
    """Samples in a form in which a weight of 2 and a row that stands twice are the same thing."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    repeated: bool = False  # whether rows stand more than once

    @property
    def mean(self) -> Any:
        """Of y; of several outputs (q,)."""
        return np.average(self.y, axis=0, weights=self.weight)


def canonical_rows(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, seed: int) -> Rows:
    """Rows of weight zero left out, repeated rows joined, in an order that depends on their values alone.

    Samples without weights and without repetitions stay as they are. Otherwise the answer does not depend
    on how the same weighted sample was written down: whole-number weights of moderate size come back as
    repeated rows (they count samples), all others as weights.
    """
    if weight is None and len(np.unique(y if y.ndim == 1 else y[:, 0])) == len(y):
        return Rows(X, y, None)
    d = X.shape[1]
    weight = np.ones(len(y)) if weight is None else weight
    table = np.column_stack([X, y])[weight > 0]
    order = np.lexsort(table.T)
    table, weight = table[order], weight[weight > 0][order]
    first = np.ones(len(table), bool)
    first[1:] = np.any(table[1:] != table[:-1], axis=1)
    table, weight = table[first], np.add.reduceat(weight, np.flatnonzero(first))
    # Sorted rows would make any later split by position a split by value.
    mixed = stream(seed, "order of the rows").permutation(len(table))
    table, weight = table[mixed], weight[mixed]
    whole = bool(np.all(weight == np.round(weight)))
    if whole and weight.sum() <= _MOST_COPIES * max(len(table), 1000):
        repeated = np.repeat(table, weight.astype(int), axis=0)
        weight, more = None, len(repeated) > len(table)
        table = repeated
    else:
        more = False
    inputs, target = np.ascontiguousarray(table[:, :d]), np.ascontiguousarray(table[:, d:])
    return Rows(inputs, target[:, 0] if y.ndim == 1 else target, weight, more)


def varying_columns(X: np.ndarray) -> np.ndarray:
    """Indices of the columns that are not constant up to rounding."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.flatnonzero(high > low + 8 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high)))


def rank(X: np.ndarray) -> int:
    """Directions in which varying columns vary: columns less the linear relations among them."""
    if X.shape[1] == 0:
        return 0
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    value = np.linalg.eigvalsh(Z.T @ Z / len(X))
    return int(np.sum(value >= DEPENDENT * value[-1]))


def affordable_units(form: Form, n: int) -> int:
    """Units whose parameters are fewer than the samples."""
    shared = replace(form, k=0).freedom
    return max(0, (n - 1 - shared) // (replace(form, k=1).freedom - shared))


def plain_fit(rows: Rows, columns: np.ndarray, reason: str) -> Recovery:
    """The mean of y, or ridge regression where y and some column vary, as a network of one linear unit."""
    if rows.y.ndim == 2:
        return _plain_fit_of_several(rows, columns, reason)
    d = rows.X.shape[1]
    line, nothing, explained = Affine(np.zeros(d), float(rows.mean)), Affine(np.zeros(d), 0.0), 0.0
    variance = float(np.average((rows.y - rows.mean) ** 2, weights=rows.weight))
    if len(columns) and len(rows.y) > 2 and variance > 0:
        short, outside = ridge_line(rows.X[:, columns], rows.y, rows.weight)
        line = short.on(columns, d)
        explained = 1 - float(np.average(outside**2, weights=rows.weight)) / variance
    net = OneHiddenNet(line.slope[None], [1.0], intercept=line.level, activation="linear")
    residual = rows.y - net.predict(rows.X)
    loss = float(np.average(residual**2, weights=rows.weight))
    fitted = 1 - loss / variance if variance > 0 else float("nan")
    unknown = ParameterRecord(np.full((1, d), np.inf), np.full(1, np.inf), np.full(1, np.inf), np.inf)
    check = at_least("samples per parameter", len(rows.y) / (d + 2), 4.0, reason, About.DATA)
    check = replace(check, passed=False)  # whichever reason it was, no hidden unit was looked for
    return Recovery(
        network=net, status=Status.NOT_IDENTIFIABLE, message=reason, loss=loss, noise_variance=loss,
        seconds=0.0, checks=[check], standard_errors=unknown, trace=[], curvature=np.zeros(0), signal={},
        origin="plain fit", n_samples=len(rows.y), feature_names=tuple(f"x{j}" for j in range(d)), options={},
        versions={}, r_squared=fitted,
        prediction=Prediction(0.0, line, nothing, (), 0.0, 0.0, explained, explained, reason),
        **measures(rows.X, rows.y, rows.weight),
    )  # fmt: skip


def _plain_fit_of_several(rows: Rows, columns: np.ndarray, reason: str) -> Recovery:
    """The same, output by output, as the linear part of a network whose unit adds nothing."""
    each = [plain_fit(replace(rows, y=y), columns, reason) for y in rows.y.T]
    first, q = each[0], len(each)
    slope = np.column_stack([one.network.weights[0] for one in each])
    level = np.array([one.network.intercept for one in each])
    unit = np.eye(len(slope))[:1]
    net = OneHiddenNet(unit, np.zeros((1, q)), intercept=level, activation="linear", linear=slope)
    loss = float(np.mean([one.loss for one in each]))
    measured = measures(rows.X, rows.y, rows.weight)
    explained = float(np.mean([one.r_squared for one in each]))
    return replace(
        first, network=net, loss=loss, noise_variance=loss, standard_errors=ParameterRecord.unknown(net),
        r_squared=explained, prediction=None, **measured,
    )  # fmt: skip


def with_all_columns(found: Recovery, columns: np.ndarray, d: int) -> Recovery:
    """The recovery on some of d columns, seen on all: the others have weight zero and no known error."""
    if len(columns) == d:
        return found
    net, errors = found.network, found.standard_errors
    weights, unknown = np.zeros((net.n_hidden, d)), np.full((net.n_hidden, d), np.inf)
    weights[:, columns], unknown[:, columns] = net.weights, errors.weights
    linear = np.zeros((d, *net.linear.shape[1:]))
    linear[columns] = net.linear
    wide = OneHiddenNet(weights, net.output, net.bias, net.intercept, net.activation, linear)
    of_linear = None
    if errors.linear is not None:
        of_linear = np.full(linear.shape, np.inf)
        of_linear[columns] = errors.linear
    units = tuple(
        replace(unit, weights=weights[unit.index], errors=(unknown[unit.index], *unit.errors[1:]))
        for unit in found.units
    )
    mean, spread = np.zeros(d), np.zeros(d)
    mean[columns], spread[columns] = found.input_mean, found.input_spread
    return replace(
        found, network=wide, standard_errors=replace(errors, weights=unknown, linear=of_linear), units=units,
        input_mean=mean, input_spread=spread, covariance=None,
        prediction=None if found.prediction is None else found.prediction.on(columns, d),
    )  # fmt: skip
