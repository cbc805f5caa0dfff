"""The layer of a piecewise linear box: kinks from lines, fitted, searched again without them, oriented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.domain import Outputs, PerUnit, Points
from onehidden.oracle.errors import parameter_errors
from onehidden.oracle.final_fit import fitted, kink_queries
from onehidden.oracle.layer import Layer, Queries, half_absolute
from onehidden.oracle.lines import Kinks, random_line
from onehidden.oracle.pieces import continued, kinks_of, straight_pieces
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.tails import Tail
from onehidden.run import Run


@dataclass(frozen=True, eq=False)
class Survey:
    """What lines have shown so far."""

    kinks: Kinks
    broken: Float[np.ndarray, "m d"]  # places of kinks whose hyperplane did not go on
    crowded: Float[np.ndarray, "c d"]  # places of the last line that are no single kinks
    lines: int = 0
    curved: int = 0  # lines that are curved everywhere
    quiet: int = 0  # last lines in a row without anything new


def survey(
    box: BlackBox, run: Run, rng: np.random.Generator, lines: int = 16, chords: int = 32
) -> Iterator[Survey]:
    """Yield what is known after each line; the caller stops when it is enough.

    There are ``lines`` lines at most, or ``chords`` of a bounded domain, of which each meets some units only.
    """
    bounded = box.domain.bounded
    basis = np.linalg.qr(rng.standard_normal((box.d, box.d)))[0]
    kinks, curved, quiet = Kinks.none(box.d, box.q), 0, 0
    broken = crowded = np.zeros((0, box.d))
    # Far away absolute errors are small beside the answers.
    radius = float(np.sqrt(box.d)) * box.exact_far_away
    for number in range(1, 1 + (chords if bounded else lines)):
        if number > 1 and box.low_precision:
            box.mix_anew(rng)  # a unit that this mixture hides shows in another
        line = random_line(box, radius, rng)
        pieces = straight_pieces(box, line)
        if pieces is None:
            curved += 1
        else:
            known = pieces.explained(kinks, box.mix)
            crowded = line.at(pieces.place[~pieces.single & ~known & ~pieces.unanswered])
            new, _ = kinks_of(box, pieces, ~known, basis)
            real = ~(continued(box, new, float(np.linalg.norm(line.start)), rng) < 0.5)
            broken = np.concatenate([broken, new.point[~real]])
            kinks = kinks.merged(new.at(np.flatnonzero(real)))
            quiet = quiet + 1 if len(new) == 0 and len(crowded) == 0 else 0
        run.report(f"line {number}, {len(kinks)} units", box.queries, float("nan"))
        yield Survey(kinks, broken, crowded, number, curved, quiet)
        if quiet >= (chords // 3 if bounded else 2):
            break


def affine_part(
    box: BlackBox, kinks: Kinks, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "d q"], Float[np.ndarray, " q"]]:
    """L and c of f(u) = c + L u + sum_i m_i |<n_i, u> + o_i| / 2, by least squares on 5/4 d queries.

    Far away absolute errors are small, and biases of low precision matter little.
    """
    count, far = box.d + 8 + box.d // 4, box.exact_far_away
    U, y = box.answered(count, rng, far)
    if len(U) < count and far > 1:  # the box does not answer there
        far = 1.0
        U, y = box.answered(count, rng)
    rest = y - 0.5 * np.abs(U @ kinks.weights.T + kinks.bias) @ kinks.output
    solved = np.linalg.lstsq(np.column_stack([U / far, np.ones(len(U))]), rest, rcond=None)[0]
    return solved[:-1] / far, solved[-1]


@dataclass(frozen=True, eq=False)
class KinkedLayer:
    """A layer in u, f(u) = c + L u + sum_i m_i |<n_i, u> + o_i| / 2, and how it was found."""

    layer: Layer
    queries: Queries | None  # what it was fitted to
    survey: Survey
    cut_short: str = ""  # why the search ended early, "" if it did not


def kinked_layer(
    box: BlackBox, hidden: int | None, run: Run, rng: np.random.Generator, rounds: int = 3
) -> KinkedLayer | None:
    """Every kink of the box that can be found within its budget; None if there is none.

    Each round surveys what the layer of the round before leaves of the box, and fits all parameters.
    """
    found: KinkedLayer | None = None
    try:
        U, Y = box.answered(max(1000, 2 * box.d) if box.low_precision else 1000, rng)
        for _ in range(rounds):
            left, idle, low = np.inf, 0, box.low_precision
            for more in _surveyed(box, found, hidden, run, rng):
                if low and len(U) > box.d + 100:
                    more = replace(more, layer=confirmed(box, more.layer, more.survey.kinks.bias_error, U, Y))
                now = _left_over(more.layer, U, Y)
                run.report(f"{more.layer.k} units of lines", more.survey.lines, now**2)
                idle = 0 if now < 0.8 * left else idle + 1
                if idle == 0 or not low:
                    found, left = more, now
                # Least squares leads from a rough start of all units to the precision of the answers.
                if low and ((left < 0.05 and idle > 1) or (left < 0.3 and idle > 3)):
                    break
                if box.domain.bounded and more.survey.quiet and left < 1e-6:
                    break
            if found is None or found.layer.k == 0 or left > 0.3:
                return found
            found = _optimised(box, found, run, rng)
            size = float(np.max(np.abs(Y) / np.maximum(Y.std(axis=0), 1e-300)))
            if _left_over(found.layer, U, Y) <= 3 * max(1e-11, box.rounding * size):
                return found
    except BudgetExceeded as ended:
        if found is None:
            raise
        found = replace(found, cut_short=str(ended))
    finally:
        box.known = None
    return found


def confirmed(
    box: BlackBox, layer: Layer, bias_error: PerUnit, U: Points, Y: Outputs, off: float = 0.5
) -> Layer:
    """The layer of those kinks whose outputs typical answers Y at U confirm, for a box of low precision.

    Lines of such a box show a unit twice, or kinks that are none. With rows and biases held, outputs are a
    linear problem, in which such a kink gets another output than it has shown; the worst is removed first.
    Far from the centre, where absolute errors are small, biases are badly known: they are searched for.
    """
    if box.exact_far_away > 1:
        return placed(layer, bias_error, U, Y)
    if len(U) < 1.5 * (box.d + 1 + layer.k):
        return layer
    columns = half_absolute(U @ layer.weights.T + layer.bias)[0]
    Q, R = np.linalg.qr(np.column_stack([U, np.ones(len(U))]))
    outside, target = columns - Q @ (Q.T @ columns), Y - Q @ (Q.T @ Y)
    kept = np.arange(layer.k)
    while len(kept):
        output = np.linalg.lstsq(outside[:, kept], target, rcond=None)[0]
        size = np.maximum(np.linalg.norm(layer.output[kept], axis=1), 1e-300)
        away = np.linalg.norm(output - layer.output[kept], axis=1) / size
        if np.max(away) <= off:
            rest = np.linalg.solve(R, Q.T @ (Y - columns[:, kept] @ output))
            return Layer(layer.weights[kept], layer.bias[kept], output, rest[-1], rest[:-1])
        kept = np.delete(kept, int(np.argmax(away)))
    return layer


def placed(
    layer: Layer, bias_error: PerUnit, U: Points, Y: Outputs, grid: int = 81, sweeps: int = 4, steps: int = 8
) -> Layer:
    """The layer with the biases, and the constant, that fit the answers Y at typical queries U.

    At a distance R an absolute error tilts a row by error / R, but shifts the place of its kink as much as
    anywhere. The rows stand; k biases are searched one after the other on finer and finer grids, and all
    together by Gauss–Newton steps.
    """
    assert layer.linear is not None
    z, rest = U @ layer.weights.T, Y - U @ layer.linear
    bias, output = layer.bias.copy(), layer.output
    width = np.minimum(3 * bias_error, np.max(np.abs(z), axis=0))  # beyond all queries a kink is linear

    def left(at: np.ndarray) -> np.ndarray:
        off = rest - 0.5 * np.abs(z + at) @ output
        return off - off.mean(axis=0)

    for sweep in range(sweeps):
        for i in np.argsort(-np.linalg.norm(output, axis=1)):
            others = left(bias) + 0.5 * np.abs(z[:, [i]] + bias[i]) * output[i]
            tried = np.append(bias[i] + width[i] * 0.25**sweep * np.linspace(-1, 1, grid), bias[i])
            own = 0.5 * np.abs(z[:, [i]] + tried)  # (n, tried)
            own -= own.mean(axis=0)
            others -= others.mean(axis=0)
            # |others - own m|², all outputs, up to what no choice changes
            loss = np.sum(own**2, axis=0) * np.sum(output[i] ** 2) - 2 * (others @ output[i]) @ own
            bias[i] = tried[int(np.argmin(loss))]
    for _ in range(steps):
        slope = 0.5 * np.sign(z + bias)[:, None, :] * output.T  # (n, q, k)
        slope = (slope - slope.mean(axis=0)).reshape(-1, len(bias))
        now = left(bias)
        step = np.linalg.lstsq(slope, now.ravel(), rcond=1e-6)[0]
        if not np.sum(left(bias + step) ** 2) < np.sum(now**2):
            break
        bias = bias + step
    constant = np.mean(rest - 0.5 * np.abs(z + bias) @ output, axis=0)
    return replace(layer, bias=bias, constant=constant)


def _left_over(layer: Layer, U: Points, Y: Outputs) -> float:
    """Share of the spread of an output, the largest, that the layer leaves at typical queries."""
    spread = Y.std(axis=0)
    rest = np.sqrt(np.mean((layer.predict(U, half_absolute) - Y) ** 2, axis=0))
    return float(np.max(np.where(spread > 0, rest / np.where(spread > 0, spread, 1.0), 0.0)))


def _surveyed(
    box: BlackBox, before: KinkedLayer | None, hidden: int | None, run: Run, rng: np.random.Generator
) -> Iterator[KinkedLayer]:
    """The layer after every line of what the layer before leaves of the box."""
    base = None if before is None else before.layer
    remainder = None if base is None else (lambda U: base.predict(U, half_absolute))
    box.known = remainder
    for one in survey(box, run, rng):
        kinks = one.kinks
        if base is not None:
            zero, none = np.zeros(base.k), np.zeros(base.weights.shape)
            kinks = Kinks(base.weights, base.bias, base.output, zero, zero, none, zero).merged(kinks)
        box.known = None
        linear, constant = affine_part(box, kinks, rng)
        box.known = remainder
        layer = Layer(kinks.weights, kinks.bias, kinks.output, constant, linear)
        yield KinkedLayer(layer, None if before is None else before.queries, replace(one, kinks=kinks))
        enough = hidden is None or len(kinks) >= hidden or one.quiet > 2
        if one.quiet and enough and not box.domain.bounded:
            break
    box.known = None


def _optimised(box: BlackBox, found: KinkedLayer, run: Run, rng: np.random.Generator) -> KinkedLayer:
    box.known = None
    queries = kink_queries(box, found.layer, rng)
    if queries.Y.size < 1.2 * len(found.layer.pack()):
        return found  # too few queries are left: the differences stand as they are
    layer = fitted(found.layer, queries, half_absolute, run, 1, box.low_precision)
    if box.low_precision:
        # A kink that is none has an output below its own error.
        errors = parameter_errors(layer, queries, half_absolute, rng, 1)
        real = np.maximum(errors.output, errors.row) < 0.3
        if not real.all() and real.any():
            layer = fitted(layer.units(real), queries, half_absolute, run, 1, True)
    return replace(found, layer=layer, queries=queries)


def oriented(layer: Layer, tail: Tail) -> tuple[Layer, float] | None:
    """The layer as one of g alone, with its units oriented; and how far its linear part is from the box's.

    g(z) = jump |z| / 2 + e z: the linear part is e sum_i s_i w_i n_i over all outputs, which gives the signs.
    """
    assert layer.linear is not None
    mean = 0.5 * float(tail.left[1] + tail.right[1])
    output = layer.output / tail.jump
    if mean == 0:
        size = float(np.max(np.abs(layer.output)))
        off = float(np.max(np.abs(layer.linear))) / max(size, 1e-300)
        return replace(layer, output=output, linear=None), off
    columns = mean * np.einsum("kq,kd->qdk", output, layer.weights).reshape(-1, layer.k)
    target = layer.linear.T.reshape(-1)
    tried = (solve_signs(columns, target, tolerance) for tolerance in (1e-12, 1e-9, 1e-6, 1e-3, 0.3))
    signs = next((one for one in tried if one is not None), None)
    if signs is None:
        return None
    off = float(np.linalg.norm(columns @ signs - target) / np.linalg.norm(target))
    facing = replace(layer, weights=layer.weights * signs[:, None], bias=layer.bias * signs)
    # m (jump |z| / 2 + e s z): what the biases add is in the constant of the linear part.
    constant = layer.constant - mean * (output.T @ facing.bias)
    return replace(facing, output=output, constant=constant, linear=None), off
