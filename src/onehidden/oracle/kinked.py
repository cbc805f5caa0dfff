"""The answer for a piecewise linear box: kinks from lines, fitted, searched again without them, oriented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.certify import levels
from onehidden.certify.certificate import Certificate
from onehidden.checks import About, Check, at_most, not_evaluated
from onehidden.options import Options
from onehidden.oracle.answers import finite
from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.certificate import Errors, cut_short_check, layer_certificate, parameter_errors
from onehidden.oracle.domain import EPS, Outputs, PerUnit, Points
from onehidden.oracle.final_fit import fitted, kink_queries
from onehidden.oracle.layer import Layer, Queries, WithSlope, half_absolute, with_slope
from onehidden.oracle.lines import Kinks, random_line
from onehidden.oracle.pieces import continued, kinks_of, straight_pieces
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.transitions import Tail
from onehidden.refused import Refused


@dataclass(frozen=True, eq=False)
class KinkedLayer:
    """A layer in u, f(u) = c + L u + sum_i m_i |<n_i, u> + o_i| / 2, and what lines have shown of it."""

    layer: Layer
    bias_error: PerUnit
    broken: Float[np.ndarray, "m d"]  # places of kinks whose hyperplane did not go on
    crowded: Float[np.ndarray, "c d"]  # places of the last line that are no single kinks
    lines: int
    curved: int  # lines that are curved everywhere
    quiet: int  # last lines in a row without anything new
    queries: Queries | None = None  # what the layer was fitted to
    cut_short: str = ""  # why the search ended early, "" if it did not


def kinked_layer(box: BlackBox, hidden: int | None, rounds: int = 3) -> KinkedLayer | None:
    """Every kink of the box that can be found within its budget; None if there is none.

    Each round surveys what the layer of the round before leaves of the box, and fits all parameters.
    """
    found: KinkedLayer | None = None
    try:
        U, Y = box.answered(max(1000, 2 * box.d) if box.low_precision else 1000)
        for _ in range(rounds):
            left, idle, low = np.inf, 0, box.low_precision
            for more in _survey(box, found, hidden):
                if low and len(U) > box.d + 100:
                    more = replace(more, layer=confirmed(box, more.layer, more.bias_error, U, Y))
                now = _left_over(more.layer, U, Y)
                box.run.report(f"{more.layer.k} units of lines", more.lines, now**2)
                idle = 0 if now < 0.8 * left else idle + 1
                if idle == 0 or not low:
                    found, left = more, now
                # Least squares leads from a rough start of all units to the precision of the answers.
                if low and ((left < 0.05 and idle > 1) or (left < 0.3 and idle > 3)):
                    break
                if box.domain.bounded and more.quiet and left < 1e-6:
                    break
            if found is None or found.layer.k == 0 or left > 0.3:
                return found
            found = _optimised(box, found)
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


def _survey(
    box: BlackBox, before: KinkedLayer | None, hidden: int | None, lines: int = 16, chords: int = 32
) -> Iterator[KinkedLayer]:
    """The layer after every line of what the layer before leaves of the box.

    There are ``lines`` lines at most, or ``chords`` of a bounded domain, of which each meets some units only.
    """
    bounded, base = box.domain.bounded, None if before is None else before.layer
    basis = np.linalg.qr(box.rng.standard_normal((box.d, box.d)))[0]
    kinks, curved, quiet = Kinks.none(box.d, box.q), 0, 0
    broken = crowded = np.zeros((0, box.d))
    # Far away absolute errors are small beside the answers.
    radius = float(np.sqrt(box.d)) * box.exact_far_away
    for number in range(1, 1 + (chords if bounded else lines)):
        if number > 1 and box.low_precision:
            box.mix_anew()  # a unit that this mixture hides shows in another
        box.known = None if base is None else (lambda U: base.predict(U, half_absolute))
        line = random_line(box, radius)
        pieces = straight_pieces(box, line)
        if pieces is None:
            curved += 1
        else:
            known = pieces.explained(kinks, box.mix)
            crowded = line.at(pieces.place[~pieces.single & ~known & ~pieces.unanswered])
            new, _ = kinks_of(box, pieces, ~known, basis)
            real = ~(continued(box, new, float(np.linalg.norm(line.start))) < 0.5)
            broken = np.concatenate([broken, new.point[~real]])
            kinks = kinks.merged(new.at(np.flatnonzero(real)))
            quiet = quiet + 1 if len(new) == 0 and len(crowded) == 0 else 0
        box.known, every = None, kinks
        if base is not None:
            zero, none = np.zeros(base.k), np.zeros(base.weights.shape)
            every = Kinks(base.weights, base.bias, base.output, zero, zero, none, zero).merged(kinks)
        box.run.report(f"line {number}, {len(every)} units", box.queries, float("nan"))
        yield KinkedLayer(
            _with_affine_part(box, every), every.bias_error, broken, crowded, number, curved, quiet,
            None if before is None else before.queries,
        )  # fmt: skip
        enough = hidden is None or len(every) >= hidden
        if quiet >= (chords // 3 if bounded else 1 if enough else 2):
            break


def _with_affine_part(box: BlackBox, kinks: Kinks) -> Layer:
    """The layer of the kinks, with L and c by least squares on 5/4 d queries.

    Far away absolute errors are small, and biases of low precision matter little.
    """
    layer = Layer(kinks.weights, kinks.bias, kinks.output, np.zeros(box.q))
    count, far = box.d + 8 + box.d // 4, box.exact_far_away
    U, Y = box.answered(count, far)
    if len(U) < count and far > 1:  # the box does not answer there
        far = 1.0
        U, Y = box.answered(count)
    rest = Y - layer.predict(U, half_absolute)
    solved = np.linalg.lstsq(np.column_stack([U / far, np.ones(len(U))]), rest, rcond=None)[0]
    return replace(layer, linear=solved[:-1] / far, constant=solved[-1])


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
    return float(np.max(rest[spread > 0] / spread[spread > 0], initial=0.0))


def _optimised(box: BlackBox, found: KinkedLayer) -> KinkedLayer:
    """The layer after a fit in all parameters, without kinks that are none."""
    queries = kink_queries(box, found.layer)
    if queries.Y.size < 1.2 * len(found.layer.pack()):
        return found  # too few queries are left: the differences stand as they are
    layer = fitted(box, found.layer, queries, half_absolute, 1)
    if box.low_precision:
        # A kink that is none has an output below its own error.
        errors = parameter_errors(box, layer, queries, half_absolute, 1, in_u=True)
        real = np.maximum(errors.output, errors.row) < 0.3
        if not real.all() and real.any():
            layer = fitted(box, layer.units(real), queries, half_absolute, 1)
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
    signs = solve_signs(columns, target, 1e-12, 1e-9, 1e-6, 1e-3, 0.3)
    if signs is None:
        return None
    off = float(np.linalg.norm(columns @ signs - target) / np.linalg.norm(target))
    facing = replace(layer, weights=layer.weights * signs[:, None], bias=layer.bias * signs)
    # m (jump |z| / 2 + e s z): what the biases add is in the constant of the linear part.
    constant = layer.constant - mean * (output.T @ facing.bias)
    return replace(facing, output=output, constant=constant, linear=None), off


_LINEAR = 1e-3  # share by which the linear part of the box may differ from that of its oriented units


def expected_queries(n_inputs: int, hidden: int, activation: str = "relu") -> int:
    """Estimate the queries that a box of this size takes, as measured on ReLU networks of random weights.

    Parameters
    ----------
    n_inputs, hidden : int
        Inputs and units.
    activation : str
        Smooth units take about twice as many.

    Returns
    -------
    int
        Queries: two lines of 9000 with their checks, 6000 before and after them, and some per parameter.
    """
    each = 5 if activation in ("relu", "leaky_relu", "abs") else 12
    return 6000 + 2 * 9000 + 30 * hidden + n_inputs + each * hidden * (n_inputs + 2)


def kinked_answer(box: BlackBox, tail: Tail, options: Options) -> Certificate | list[Check]:
    """The certificate of what was found; where nothing was, the checks that say what was found instead."""
    box.caller.reserve()
    found = kinked_layer(box, options.hidden)
    box.caller.release()
    if found is None or found.layer.k == 0:
        check = _one_layer_check(found, options)
        if found is not None and not found.curved and not len(found.broken):
            raise Refused(f"no {options.g.name} unit was found: {check.advice}")
        return [check]
    facing = oriented(found.layer, tail)
    unoriented = replace(found.layer, output=found.layer.output / tail.jump, linear=None)
    layer, off = (unoriented, float("inf")) if facing is None else facing
    g, queries, errors = options.g, None if box.run.expired() else found.queries, None
    if queries is not None:
        errors = parameter_errors(box, layer, queries, with_slope(g), 1)
        if off <= _LINEAR and not np.any(tail.left):
            layer, errors = _weak_units_alone(box, layer, errors, with_slope(g))
    layer = layer.restricted(box, options.bias, options.intercept)
    broken, crowded = (_unexplained(one, found, box) for one in (found.broken, found.crowded))
    checks = [
        _one_layer_check(replace(found, broken=broken, crowded=crowded), options),
        _linear_part_check(off),
    ]
    if found.cut_short:
        checks.append(cut_short_check(found.cut_short))
    return layer_certificate(layer, queries, errors, g, box, options.hidden, checks)


def _weak_units_alone(
    box: BlackBox,
    layer: Layer,
    errors: Errors,
    g: WithSlope,
    worth: float = 30.0,
    steepest: float = 50.0,
    farthest: float = 1e4,
) -> tuple[Layer, Errors]:
    """The oriented layer in u with weak ReLU units queried where all others are silent, and the errors left.

    Beside units of large output a weak one drowns in their rounding. Where rows are independent there are
    places at which it alone is active: y = c + W (<a, u> + b), and the others add an exact zero. Errors below
    ``worth`` times the rounding of an answer are not refined; nor are rows of a condition above ``steepest``,
    whose places lie far out, and units ``farthest`` times weaker than the constant.
    """
    k, d = layer.weights.shape
    worst = np.maximum(np.maximum(errors.row, errors.bias), errors.output)
    weak = np.flatnonzero(worst > worth * box.rounding)
    # Absolute errors are beaten by distance, which the fit of all units has used.
    absolute = box.reading is not None or box.precision.absolute > 0
    count, silent = int(1.5 * (d + 1)) + 32, 64
    if len(weak) == 0 or k >= d or box.domain.bounded or absolute or count + silent > 0.5 * box.left:
        return layer, errors
    back = np.linalg.pinv(layer.weights)  # (d, k): where to go for given <a_j, u>
    if np.linalg.norm(back, 2) * np.linalg.norm(layer.weights, 2) > steepest:
        return layer, errors

    def places(layer: Layer, active: int | None, scale: float, count: int) -> Points:
        """Typical queries moved along the rows of all units until one unit, or none, is active."""
        U = scale * box.rng.standard_normal((count, d))
        z = U @ layer.weights.T + layer.bias
        wanted = -np.abs(z) - 0.1 * scale
        if active is not None:
            wanted[:, active] *= -1
        # As a box in single precision sees them: what it rounds away would be noise.
        return (U + (wanted - z) @ back.T).astype(np.float32).astype(float)

    # Where no unit is active the box answers its constant, unless it has units that were not found.
    Y = box.outputs(places(layer, None, 1.0, silent))
    if np.all(finite(Y)):
        constant = np.median(Y, axis=0)
        near = np.abs(constant - layer.constant) <= 100 * errors.constant + worth * box.rounding * box.level
        layer = replace(layer, constant=np.where(near, constant, layer.constant))
    for i in weak[np.argsort(-worst[weak])]:
        if box.run.expired() or count > 0.5 * box.left:
            break
        far = float(np.max(np.abs(layer.constant)) / np.max(np.abs(layer.output[i])))
        if far <= farthest:
            U = places(layer, int(i), max(1.0, far), count)
            layer, errors = _unit_alone(box, layer, errors, int(i), U, g)
    return layer, errors


def _unit_alone(
    box: BlackBox, layer: Layer, errors: Errors, i: int, U: Points, g: WithSlope
) -> tuple[Layer, Errors]:
    """Unit i from queries at which it is alone, where they determine it better than the fit did."""
    d, W, a = box.d, layer.output[i], layer.weights[i]
    Y = box.outputs(U)
    if not np.all(finite(Y)):
        return layer, errors
    rest = Y - layer.predict(U, g)  # only the remainder is solved for: its own rounding is small
    scale = float(np.sqrt(np.mean(U**2)))
    Q, R = np.linalg.qr(np.column_stack([U / scale, np.ones(len(U))]))
    inverse = np.linalg.inv(R)
    move = inverse @ (Q.T @ rest)  # (d + 1, q)
    noise = np.sqrt(np.sum((rest - Q @ (Q.T @ rest)) ** 2, axis=0) / (len(U) - d - 1))
    relative = float(np.max(noise)) / float(np.linalg.norm(W))
    # In x, where an input of little spread has a large share.
    size, center = float(np.linalg.norm(a / box.scale)), box.center / box.scale
    row = float(np.linalg.norm(inverse[:d] / box.scale[:, None])) / scale / size
    bias = float(np.linalg.norm(np.append(-center / scale, 1.0) @ inverse))
    bias /= max(size, abs(float(layer.bias[i] - a @ center)))
    along = float(np.linalg.norm(a @ inverse[:d])) / scale
    row, bias, along = np.hypot(relative * np.array([row, bias, along]), 2 * EPS)
    moved = np.outer(a, W) + move[:d] / scale  # (d, q): the row times every output
    normal = moved @ W
    normal /= np.linalg.norm(normal)
    output = normal @ moved
    # A unit that moves by more than its error is not the one that was fitted: another is active there.
    before = max(errors.row[i], errors.bias[i], errors.output[i])
    if row >= errors.row[i] or float(np.linalg.norm(normal - a)) > 100 * before:
        return layer, errors
    weights, biases, outputs = layer.weights.copy(), layer.bias.copy(), layer.output.copy()
    if bias < errors.bias[i]:  # queries of the fit lie around the centre, which determines a bias
        biases[i] = float((W * layer.bias[i] + move[d]) @ output) / float(output @ output)
    weights[i], outputs[i] = normal, output
    index = np.arange(layer.k) == i
    errors = replace(
        errors,
        row=np.where(index, row, errors.row),
        bias=np.where(index, min(bias, errors.bias[i]), errors.bias),
        output=np.where(index, along, errors.output),
    )
    return replace(layer, weights=weights, bias=biases, output=outputs), errors


def _linear_part_check(off: float) -> Check:
    name = "linear part"
    if np.isinf(off):
        advice = (
            "no orientation of the units gives the linear part of the box: units are missing, or too many"
        )
        return not_evaluated(name, _LINEAR, advice, About.FIT)
    advice = (
        "the linear part of the box against that of its units, oriented as fits best; above the bound there "
        "is a linear part beside the units, or units are missing"
    )
    return at_most(name, off, _LINEAR, advice, About.FIT)


def _unexplained(
    places: Float[np.ndarray, "m d"], found: KinkedLayer, box: BlackBox
) -> Float[np.ndarray, "l d"]:
    """Places of kinks that did not go on, or were not single, around which the answer is not the box.

    Where two kinks are so close that they look like one, its row is wrong, and the units are found elsewhere.
    """
    around, count = 12, len(places)
    if found.queries is None or count == 0 or count * around > 0.1 * box.left:
        return places
    size = np.linalg.norm(places, axis=1)[:, None, None]
    aside = box.rng.standard_normal((count, around, box.d)) / np.sqrt(box.d)
    U = places[:, None] + aside * size * np.geomspace(1e-7, 1e-1, around)[:, None]
    U = U.reshape(-1, box.d)
    off = np.max(np.abs(found.layer.predict(U, half_absolute) - box.outputs(U)), axis=1)
    wrong = (
        off > 1e3 * box.error_at(U) + levels.FRESH_QUERIES.value * box.level
    )  # False where the box does not answer
    return places[np.any(wrong.reshape(count, around), axis=1)]


def _one_layer_check(found: KinkedLayer | None, options: Options) -> Check:
    """Whether the kinks of the box are those of one hidden layer of this activation."""
    name = "one hidden layer"
    if found is None:
        return not_evaluated(name, 0.0, "no line was queried", About.FIT)
    curved, broken, crowded = found.curved, len(found.broken), len(found.crowded)
    parts = []
    if curved:
        parts.append(f"{curved} of {found.lines} lines are curved everywhere: no {options.g.name} units")
    if broken:
        parts.append(
            f"{broken} kinks do not go on along a hyperplane: two hidden layers, a maximum, or pooling"
        )
    if crowded:
        parts.append(
            f"{crowded} places of the last line are no single kinks: a curve, a jump, or kinks too close"
        )
    if not parts and found.layer.k == 0:
        parts.append(f"{found.lines} lines are straight: the function is linear as far as it was queried")
    wrong = curved + broken + (0 if found.quiet else crowded) + (found.layer.k == 0)
    advice = "; ".join(parts) or "every kink goes on along its hyperplane"
    return at_most(name, float(wrong), 0.0, advice, About.FIT)
