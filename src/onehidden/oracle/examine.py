"""The first queries: number of outputs, kind and precision of the answers, and how far the box answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from onehidden.fit.rounding import decimal_step
from onehidden.oracle.answers import Answers, LogOdds, detected, finite
from onehidden.oracle.box import BlackBox, OutputPrecision
from onehidden.oracle.domain import EPS, Outputs, PerPoint, Points


def measure_box(box: BlackBox, answers: Answers, count: int = 256, noise: float = 1e-3) -> Answers:
    """Set mixture, reading, precision, level and reach of the box; refuse what cannot be recovered from.

    ``count`` typical queries begin; repeated answers may differ by ``noise`` of std(y).
    """
    U = box.typical(count)
    first = box.outputs(U[:2])  # a function that fails is reported after two queries
    y = np.concatenate([first, box.outputs(U[2:])])
    if not finite(y).any():
        _refuse(U, y)
    kind = detected(y[finite(y)]) if answers is Answers.AUTO else answers
    if kind is Answers.LABEL:
        _check_labels(box, U, y)
        box.first = U[:64], y[:64]
        return kind
    if kind is Answers.PROBABILITY:
        y = _read_probabilities(box, y)
    good = finite(y)
    box.share = float(good.mean())
    if box.share < 0.2:
        _refuse(U, y)
    U, y = U[good], y[good]
    spread, level = y.std(axis=0), np.max(np.abs(y), axis=0)
    live = spread > 1e-13 * level  # below, the spread is rounding
    if not live.any():
        raise ValueError(f"fn is constant ({y[0, 0]:g}) on its region: there is nothing to recover from it")
    if y.shape[1] > 1:  # every output in units of its own spread
        box.units = np.where(live, spread, 1.0)
        box.mix = np.where(live, box.rng.standard_normal(y.shape[1]), 0.0)
        y, spread = y / box.units, spread / box.units
    drift = np.nan_to_num(box.outputs(U[::-1])[::-1] - y)
    if np.any(np.abs(drift) > noise * spread):
        raise ValueError(
            "fn gives different answers to the same query: it must be deterministic but for noise below "
            f"{noise:g} of its spread (sample a noisy function once and use recover(X, y))"
        )
    box.level = float(np.max(np.abs(y @ box.mix)))
    _measure_reach(box)
    box.precision = _measured_precision(box, U, y, drift)
    if box.reading is not None:  # the largest error that the reading adds
        own = box.reading.largest_error * float(np.max(np.abs(box.mix) / box.units))
        absolute = float(np.hypot(box.precision.absolute, own))
        box.precision = replace(box.precision, absolute=absolute)
    box.first = U[:64], y[:64]
    return kind


def _refuse(U: Points, y: Outputs) -> None:
    far = float(np.max(np.abs(U[~finite(y)])))
    raise ValueError(
        f"fn returned NaN or infinity, or failed, at a query {far:.3g} scales from the centre; if it "
        "is only defined near its data, set inputs= to typical rows, reach= to a smaller distance or "
        "domain= to its bounds"
    )


def _check_labels(box: BlackBox, U: Points, y: Outputs) -> None:
    """Two labels, always the same for a query; the level of the box is the higher one."""
    labels = np.unique(y[finite(y)])
    if y.shape[1] != 1 or len(labels) > 2:
        raise ValueError(
            f"{len(labels)} different answers over {y.shape[1]} outputs: labels are understood of two classes"
        )
    if len(labels) < 2:
        raise ValueError(f"fn is constant ({labels[0]:g}) on its region: there is nothing to recover from it")
    if not np.array_equal(box.outputs(U), y, equal_nan=True):
        raise ValueError("fn gives different labels to the same query: it must be deterministic")
    box.level = float(labels[1])


def _read_probabilities(box: BlackBox, p: Outputs) -> Float[np.ndarray, "n v"]:
    """The log-odds of the first answers p; all further answers of the box are read that way."""
    far = [box.outputs(box.typical(64) * distance) for distance in (3.0, 10.0, 30.0)]
    box.reading = LogOdds.of(np.concatenate([p, *far]))
    y = box.reading(p)
    if finite(y).mean() < 0.2:
        lost = f"{1 - finite(y).mean():.0%}"
        raise ValueError(
            f"in {lost} of typical queries a probability is too close to 0 or 1 to have digits: "
            "set inputs= to rows where the box is less certain, or reach= below 1"
        )
    box.mix, box.units = np.ones(y.shape[1]), np.ones(y.shape[1])
    return y


def _measure_reach(box: BlackBox) -> None:
    """Keep queries where they are answered as well as near the centre."""
    # Probabilities lose their digits on one side only: elsewhere queries go on being answered.
    partly = box.share < 1 or box.reading is not None
    last = 3.0
    for distance in (3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7):
        if 3 * distance > box.reach:
            return
        U = box.typical(64 if partly else 16) * distance
        share = float(finite(box.outputs(U)).mean())
        if share < (0.5 * box.share if partly else 1.0):
            box.keep_within(last)
            return
        last = distance
        if distance == 3.0:
            box.share = min(box.share, share)


def _measured_precision(box: BlackBox, U: Points, y: Outputs, drift: Outputs) -> OutputPrecision:
    """From repeated queries, from neighbouring ones near and far, and from the format of the answers."""
    live = box.mix != 0  # a constant output has no format of its own
    columns = (y * box.units).T[live] if box.reading is None else []
    formats, weight = [stored_precision(column) for column in columns], (box.mix / box.units)[live]
    absolute = float(np.sqrt(sum((f.absolute * m) ** 2 for f, m in zip(formats, weight, strict=False))))
    relative = max([EPS, *(f.relative for f in formats)])
    repeated = float(np.std(drift @ box.mix)) / np.sqrt(2)
    near = _error_of_neighbours(box, U[:32])
    if repeated > 0.3 * near and repeated > 0:
        absolute, near = float(np.hypot(absolute, repeated)), 0.0
    if absolute == 0 and np.isinf(box.reach):
        V = 1e4 * U[:32]  # where the relative part is seen alone
        size = float(np.max(np.abs(box.mixture(V))))
        if size > 0:
            relative = max(relative, _error_of_neighbours(box, V) / size)
        rest = near**2 - (relative * box.level) ** 2
        if rest > (3 * relative * box.level) ** 2:
            absolute = float(np.sqrt(rest))
    if absolute == 0:
        relative = max(relative, near / box.level)
    return OutputPrecision(relative, absolute)


def stored_precision(y: PerPoint) -> OutputPrecision:
    """The precision of the number format of the answers: half, single, decimals, else double.

    A change of units may have moved the answers a few roundings of a double off the grid of the format.
    """
    for kind in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            if np.all(np.abs(y.astype(kind).astype(float) - y) <= 4 * EPS * np.abs(y)):
                return OutputPrecision(relative=float(np.finfo(kind).eps) / np.sqrt(12))
    return OutputPrecision(absolute=decimal_step(y, 12) / np.sqrt(12))


def _error_of_neighbours(box: BlackBox, U: Points) -> float:
    """Standard error of answers around rows of u: over tiny steps h anything smooth has third differences h³.

    Neighbours in single precision share their rounding: where the first step shows low precision, a longer
    one is taken, which leaves a tenth of that rounding (h³) of anything smooth.
    """
    v = box.rng.standard_normal(U.shape)
    v *= np.linalg.norm(U, axis=1, keepdims=True) / np.linalg.norm(v, axis=1, keepdims=True)
    level, error = max(float(np.nanmax(np.abs(box.mixture(U)))), np.finfo(float).tiny), 0.0
    step = 1e-6
    for _ in range(2):
        y = box.mixture(np.stack([U + j * step * v for j in range(16)]))
        found = np.sqrt(np.mean(np.diff(y, n=3, axis=0) ** 2, axis=0) / 20)  # variance 1 + 9 + 9 + 1
        found = found[np.isfinite(found)]
        if len(found) < len(U) // 2:
            break
        # A place in a transition, or across a kink, is not typical.
        error = max(error, float(np.quantile(found, 0.6)))
        if error < 1e-12 * level:
            break
        step = min(0.3 * (error / level) ** (1 / 3), 0.02)
    return error
