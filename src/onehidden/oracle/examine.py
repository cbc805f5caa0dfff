"""The first questions: how many outputs, what kind of answers, how coarse, how far the box can be asked."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.oracle.answers import Answers, finite, noticed
from onehidden.oracle.box import BlackBox
from onehidden.oracle.grain import COARSE, EPS, Grain, stored, third_differences
from onehidden.oracle.probabilities import LogOdds

_FIRST = 256
_FICKLE = 1e-3  # of std(y): answers that differ by more when repeated are no small noise
_CONSTANT = 1e-13  # of the level: a spread below is rounding
_FAR = (3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7)  # scales at which answers are asked for at all
_WIDEST = 3.0  # scales: typical questions of a bounded domain lie within
_ANSWERED = 0.2  # share of typical questions that must be answered
_DISTANT = 1e4  # scales at which the part of the error in proportion to the answers is seen alone


def examine(box: BlackBox, answers: Answers, rng: np.random.Generator) -> Answers:
    """Refuse what cannot be recovered from; set mixture, reading, grain, level and reach of the box."""
    U = box.typical(_FIRST, rng)
    first = box.answers(U[:2])  # so that a function that fails is told of at once
    y = np.concatenate([first, box.answers(U[2:])])
    if not finite(y).any():
        box.must_answer(U, y)
    kind = noticed(y[finite(y)]) if answers is Answers.AUTO else answers
    if kind is Answers.LABEL:
        _labels(box, U, y)
        return kind
    if kind is Answers.PROBABILITY:
        y = _probabilities(box, y, rng)
    good = finite(y)
    box.share = float(good.mean())
    if good.mean() < _ANSWERED:
        box.must_answer(U, y)
    U, y = U[good], y[good]
    spread, level = y.std(axis=0), np.max(np.abs(y), axis=0)
    if np.all(spread <= _CONSTANT * level):
        raise ValueError(f"fn is constant ({y[0, 0]:g}) on its region: there is nothing to recover from it")
    live = spread > _CONSTANT * level
    if y.shape[1] > 1:  # every output in units of its own spread
        box.units = np.where(live, spread, 1.0)
        box.mix = np.where(live, rng.standard_normal(y.shape[1]), 0.0)
        y, spread = y / box.units, spread / box.units
    again = box.answers(U[::-1])[::-1]
    drift = np.nan_to_num(again - y)
    if np.any(np.abs(drift) > _FICKLE * spread):
        raise ValueError(
            "fn gives different answers to the same question: it must be deterministic but for noise below "
            f"{_FICKLE:g} of its spread (sample a noisy function once and use recover(X, y))"
        )
    box.level = float(np.max(np.abs(y @ box.mix)))
    _measure_reach(box, rng)
    box.grain = _grain(box, U, y, drift, rng)
    return kind


def _labels(box: BlackBox, U: Float[np.ndarray, "n d"], y: Float[np.ndarray, "n q"]) -> None:
    """Two labels, always the same for a question; the level of the box is the higher one."""
    seen = np.unique(y[finite(y)])
    if y.shape[1] != 1 or len(seen) > 2:
        raise ValueError(
            f"{len(seen)} different answers over {y.shape[1]} outputs: labels are understood of two classes"
        )
    if len(seen) < 2:
        raise ValueError(f"fn is constant ({seen[0]:g}) on its region: there is nothing to recover from it")
    if not np.array_equal(box.answers(U), y, equal_nan=True):
        raise ValueError("fn gives different labels to the same question: it must be deterministic")
    box.level = float(seen[1])


def _probabilities(
    box: BlackBox, p: Float[np.ndarray, "n q"], rng: np.random.Generator
) -> Float[np.ndarray, "n v"]:
    """The log-odds of the first answers p; the box is read that way from now on."""
    far = [box.answers(box.typical(64, rng) * distance) for distance in _FAR[:3]]
    box.reading = LogOdds.of(np.concatenate([p, *far]))
    y = box.reading(p)
    if finite(y).mean() < _ANSWERED:
        lost = f"{1 - finite(y).mean():.0%}"
        raise ValueError(
            f"in {lost} of typical questions a probability is too close to 0 or 1 to have digits: "
            "set inputs= to rows where the box is less certain, or reach= below 1"
        )
    box.mix, box.units = np.ones(y.shape[1]), np.ones(y.shape[1])
    return y


def _measure_reach(box: BlackBox, rng: np.random.Generator) -> None:
    """Stay where questions are answered as well as near the centre."""
    # What ends with the size of the answers ends on one side: elsewhere questions go on being answered.
    some = box.share < 1 or box.reading is not None
    last, count = 3.0, 64 if some else 16
    for distance in _FAR:
        if _WIDEST * distance > box.reach:
            return
        U = box.typical(count, rng, 1.0) * distance
        share = float(finite(box.answers(U)).mean())
        if share < (0.5 * box.share if some else 1.0):
            box.keep_within(3.0 if distance <= 3.0 else last)
            break
        last = distance
        if distance == _WIDEST:
            box.share = min(box.share, share)


def _grain(
    box: BlackBox,
    U: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, "n q"],
    drift: Float[np.ndarray, "n q"],
    rng: np.random.Generator,
) -> Grain:
    """From repeated questions, from neighbouring ones near and far, and from the format of the answers."""
    kept = [stored(column) for column in (y * box.units).T] if box.reading is None else []
    absolute = float(
        np.sqrt(np.sum([(g.absolute * m) ** 2 for g, m in zip(kept, box.mix / box.units, strict=False)]))
    )
    relative = max([EPS, *(g.relative for g in kept)])
    repeated = float(np.std(drift @ box.mix)) / np.sqrt(2)
    near = _neighbours(box, U[:32], rng)
    if repeated > 0.3 * near and repeated > 0:
        absolute = float(np.hypot(absolute, repeated))
        near = 0.0
    if absolute == 0 and np.isinf(box.reach):
        V = _DISTANT * U[:32]
        size = float(np.max(np.abs(box.ask(V))))
        relative = max(relative, _neighbours(box, V, rng) / size) if size > 0 else relative  # a hat ends
        rest = near**2 - (relative * box.level) ** 2
        if rest > (3 * relative * box.level) ** 2:  # a part that does not grow with the answers
            absolute = float(np.sqrt(rest))
    if absolute == 0:
        relative = max(relative, near / box.level)
    return Grain(relative, absolute)


def _neighbours(box: BlackBox, U: Float[np.ndarray, "n d"], rng: np.random.Generator) -> float:
    """Standard error of answers around rows of u, from third differences over a tiny step.

    Neighbours in single precision share their rounding: where the first step shows a coarse box, a longer one
    is taken, which leaves a tenth of that rounding (h³) of anything smooth.
    """
    v = rng.standard_normal(U.shape)
    size = np.linalg.norm(U, axis=1, keepdims=True)
    v *= size / np.linalg.norm(v, axis=1, keepdims=True)
    level, seen = max(float(np.nanmax(np.abs(box.ask(U)))), np.finfo(float).tiny), 0.0
    step = 1e-6
    for _ in range(2):
        y = box.ask(np.stack([U + j * step * v for j in range(16)]))
        y = y[:, np.all(np.isfinite(y), axis=0)]
        if y.shape[1] < len(U) // 2:
            break
        # A place in a transition, or across a kink, is not typical.
        seen = max(seen, float(np.quantile(third_differences(y), 0.6)))
        if seen < COARSE * level:
            break
        step = min(0.3 * (seen / level) ** (1 / 3), 0.02)
    return seen
