"""Units from lines: each line shows some, all are fitted at once, and what they leave is searched again.

The layer of the search is f(u) = c + L u + sum_i m_i e(<n_i, u> + o_i): e is the activation without the
linear part that depends on the orientation of a unit. ReLU has e(z) = |z| / 2, and from far away every
activation with linear tails looks like it. The linear part L of the whole gives the orientations at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onehidden.certify.certificate import Certificate
from onehidden.checks import About, Check, at_most, not_evaluated
from onehidden.fit.parametrisation import Parametrisation
from onehidden.options import Options
from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.certificate import cut_short_check, layer_certificate, left_over, parameter_errors
from onehidden.oracle.domain import EPS, Outputs, PerUnit, Points
from onehidden.oracle.final_fit import fitted, kink_queries, transition_queries
from onehidden.oracle.layer import Layer, Queries
from onehidden.oracle.lines import Kinks, Line, distant_line, random_line
from onehidden.oracle.pieces import continued, kinks_of, straight_pieces
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.transitions import NEARBY, Tail, units_along
from onehidden.refused import Refused
from onehidden.run import Run

_LINEAR = 1e-3  # share by which the linear part of the box may differ from that of its oriented units


@dataclass(frozen=True, eq=False)
class FoundLayer:
    """A layer of units without their orientations, and what lines have shown of it."""

    layer: Layer
    kinks: Kinks  # units as lines have shown them
    broken: int  # kinks whose hyperplane did not go on
    crowded: int  # places of the last line that are no single kinks
    lines: int
    curved: int  # lines that are curved everywhere
    quiet: int  # last lines in a row without anything new
    left: float  # share of the spread of the answers that the layer leaves
    queries: Queries | None  # what the layer was fitted to
    cut_short: str = ""  # why the search ended early, "" if it did not


def expected_queries(n_inputs: int, hidden: int, activation: str = "relu") -> int:
    """About how many queries a box of one output takes, as measured on random networks; steps take more.

    Two lines of 1000 and more, 6000 before and after them, some per unit and per parameter.
    """
    each = 12 if activation in ("tanh", "sigmoid", "erf") else 6
    return 8000 + 60 * hidden + n_inputs + each * hidden * (n_inputs + 2)


def line_answer(box: BlackBox, tail: Tail, options: Options) -> Certificate | list[Check]:
    """The certificate of what was found; where nothing was, the checks that say what was found instead."""
    box.caller.reserve()
    found = Search(box, tail, options.hidden).run()
    box.caller.release()
    if found.layer.k == 0 or not (tail.sharp or found.cut_short or found.left < 1e-2):
        if not tail.sharp:
            return []
        check = _one_layer_check(found, options.g.name)
        if not found.curved and not found.broken:
            raise Refused(f"no {options.g.name} unit was found: {check.advice}")
        return [check]
    checks = [_one_layer_check(found, options.g.name)] if tail.sharp else []
    layer, off = oriented(found.layer, tail, box.run)
    if tail.degree and found.cut_short and not np.isfinite(off):
        checks.append(not_evaluated("linear part", _LINEAR, "units were not oriented", About.FIT))
    elif tail.degree:
        advice = (
            "the linear part of the box against that of its units, oriented as fits best; above the bound "
            "there is a linear part beside the units, or units are missing"
        )
        checks.append(at_most("linear part", off, _LINEAR, advice, About.FIT))
    if found.cut_short:
        checks.append(cut_short_check(found.cut_short))
    queries = None if box.run.expired() else found.queries
    try:
        errors = None if queries is None else parameter_errors(box, layer, queries)
    except BudgetExceeded:
        errors = None
    layer = layer.restricted(box, options.bias, options.intercept)
    return layer_certificate(layer, queries, errors, box, options.hidden, checks)


def oriented(layer: Layer, tail: Tail, run: Run) -> tuple[Layer, float]:
    """The layer as one of g alone, with its units oriented; and how far its linear part is from the box's.

    g = e + h, h(z) = level + slope z: the linear part, slope sum_i s_i w_i n_i over all outputs, gives the
    signs s_i. The distance is relative to the rows w_i n_i, and infinite where no signs fit.
    """
    level, slope = (*tail.activation.orientation_part, 0.0, 0.0)[:2]  # of a step only the first is there
    rows = np.einsum("kq,kd->qdk", layer.output, layer.weights).reshape(-1, layer.k)
    target, signs = layer.linear.T.reshape(-1), np.ones(layer.k)
    found = signs
    if slope:  # 400 000 swaps of a lattice take about 20 s
        swaps = int(min(4e5, 1e4 * run.left()))
        found = solve_signs(slope * rows, target, 1e-12, 1e-9, 1e-6, 1e-3, 0.3, swaps=swaps)
    off = np.inf
    if found is not None:
        signs, off = found, np.linalg.norm(slope * rows @ found - target) / np.linalg.norm(rows)
    bias = layer.bias * signs
    facing = replace(
        layer,
        form=replace(layer.form, skip=False, symmetrised=False),
        weights=layer.weights * signs[:, None],
        bias=bias,
        linear=np.zeros_like(layer.linear),
        constant=layer.constant - layer.output.T @ (level + slope * bias),
    )
    return facing, float(off)


def _one_layer_check(found: FoundLayer, name: str) -> Check:
    """Whether the kinks of the box are those of one hidden layer of this activation."""
    curved, broken, crowded = found.curved, found.broken, found.crowded
    seen = {
        f"{curved} of {found.lines} lines are curved everywhere: no {name} units": curved,
        f"{broken} kinks do not go on along a hyperplane: two hidden layers, a maximum, or pooling": broken,
        f"{crowded} places of the last line are no single kinks: a curve, a jump, or close kinks": crowded,
    }
    parts = [text for text, count in seen.items() if count]
    if not parts and found.layer.k == 0:
        parts = [f"{found.lines} lines are straight: the function is linear as far as it was queried"]
    wrong = curved + broken + (0 if found.quiet else crowded) + (found.layer.k == 0)
    advice = "; ".join(parts) or "every kink goes on along its hyperplane"
    return at_most("one hidden layer", float(wrong), 0.0, advice, About.FIT)


class Search:
    """Lines through a box, the units that they show, and the layer that follows from these.

    Each round surveys what the fitted layer of the round before leaves of the box, and fits all parameters.
    """

    def __init__(self, box: BlackBox, tail: Tail, hidden: int | None) -> None:
        self.box, self.tail, self.hidden = box, tail, hidden
        self.found: FoundLayer | None = None
        count, self.far = max(1000, 2 * box.d), box.exact_far_away if tail.sharp else 1.0
        U, Y = box.answered(count)
        if box.enclosed:
            V, Z = box.answers_at(box.spread_out(count))
            U, Y = np.concatenate([U, V]), np.concatenate([Y, Z])
        self.typical = U, Y
        # Far away absolute errors are small, and biases matter little.
        self.around = (U, Y) if self.far == 1 else box.answered(count, self.far)

    def run(self) -> FoundLayer:
        """Every unit of the box that can be found within its budget."""
        try:
            self._rounds()
        except BudgetExceeded as ended:
            if self.found is None:
                raise
            self.found = replace(self.found, cut_short=str(ended))
        finally:
            self.box.known, self.box.known_error = None, 0.0
        assert self.found is not None
        return self.found

    def _rounds(self) -> None:
        """Survey and fit until the answers are explained to rounding."""
        box, sharp, (U, Y) = self.box, self.tail.sharp, self.typical
        base, kinks = None, Kinks.none(box.d, box.q)
        for radius in _radii(self.tail, box):
            found = self._survey(radius, base, kinks)
            # Units that are missing spoil a fit, and with it the precision with which lines show the others.
            if found.layer.k == 0 or found.left > (1e-2 if not sharp and radius > NEARBY else 0.3):
                if sharp:
                    return
                kinks = found.kinks  # from another distance more are seen
                continue
            found = _optimised(box, self.tail, found)
            left, exact = left_over(found.layer, U, Y, box.rounding)
            found = self.found = replace(found, left=left)
            if found.left <= exact:  # what lines have seen beside single kinks was kinks close to each other
                self.found = replace(found, broken=0, crowded=0)
            if found.left <= (exact if box.low_precision and not sharp else 0.1 * exact):
                return
            base, kinks = found.layer, Kinks.none(box.d, box.q)

    def _survey(self, radius: float, base: Layer | None, kinks: Kinks) -> FoundLayer:
        """The best layer after lines of what the layer ``base`` leaves of the box, and the units beside it.

        There are 16 lines at most, or 32 of a bounded domain, of which each meets some units only; there they
        go through places where the layer before fails.
        """
        box, sharp, low = self.box, self.tail.sharp, self.box.low_precision
        chords = box.domain.bounded and sharp
        points = not low and (sharp or radius > NEARBY)  # outputs as lines show them are exact
        queries = None if self.found is None else self.found.queries
        curved = broken = crowded = quiet = idle = 0
        left, missed, layer, unproven = np.inf, None, base, Kinks.none(box.d, box.q)
        every = kinks if base is None else _kinks_of(base, self.tail).merged(kinks)
        if points and len(kinks):
            every, layer = self._settled(base, kinks, points)[:2]
        for number in range(1, 33 if chords else 17):
            if number > 1 and low:
                box.mix_anew()  # a unit that this mixture hides shows in another
            if points and layer is not None:  # what is missing stands above the errors of the rest
                box.known, box.known_error = layer.predict, _error_far_away(every, box.mix, radius)
            elif base is not None:
                box.known = base.predict
            if sharp:
                line = random_line(box, radius, through=missed)
                new, crowded, bent = _kinks_along(box, line, every if points else kinks.merged(unproven))
                curved += bent
            else:
                line = distant_line(box, radius, 1e3 if radius > NEARBY else 20.0)
                new, bent = units_along(box, line, self.tail, every if points else kinks), 0
            box.known, box.known_error, before = None, 0.0, broken
            box.must_not_change()
            unproven = unproven.merged(new) if sharp else unproven.merged(new, 1e-6, 100.0)
            every, layer, now, missed = self._settled(base, kinks.merged(unproven), points)
            if number > 1 or now < 1e-6 or not sharp:
                if sharp and now > 1e-6:  # something is missing, or what was found is no unit
                    real = ~(continued(box, unproven, float(np.linalg.norm(line.start))) < 0.5)
                    broken, unproven = broken + int(np.sum(~real)), unproven.at(np.flatnonzero(real))
                kinks, unproven = kinks.merged(unproven), Kinks.none(box.d, box.q)
                if broken > before:
                    every, layer, now, missed = self._settled(base, kinks, points)
            quiet = 0 if len(new) or broken > before or crowded or bent else quiet + 1
            box.run.report(f"line {number}, {layer.k} units", box.caller.queries, now**2)
            idle = 0 if now < 0.8 * left else idle + 1
            if idle == 0 or (sharp and not low):
                left = now
                found = FoundLayer(layer, every, broken, crowded, number, curved, quiet, now, queries)
                self.found = found
            # Least squares leads from a rough start of all units to the precision of the answers.
            rough = low and ((left < 0.05 and idle > 1) or (left < 0.3 and idle > 3))
            if rough or (
                left < 1e-6 and (quiet or not chords) if sharp else left < (1e-3 if points else 1e-2)
            ):
                break
            enough = self.hidden is None or len(every) >= self.hidden
            if quiet >= (10 if chords else 1 if enough and sharp else 6 if low else 2):
                break
        return found

    def _settled(self, base: Layer | None, kinks: Kinks, exact: bool) -> tuple[Kinks, Layer, float, Points]:
        """These units and those of ``base``; their layer, the share that it leaves, and where it leaves most.

        Outputs that are ``exact`` stand, others are confirmed by typical answers.
        """
        box, tail, (U, Y) = self.box, self.tail, self.typical
        kinks = kinks if base is None else _kinks_of(base, tail).merged(kinks)
        form = Parametrisation(tail.activation, box.d, len(kinks), True, True, tail.degree > 0, True, box.q)
        nothing, bias = np.zeros((box.d, box.q)), kinks.bias + tail.crossing
        layer = Layer(form, kinks.weights, kinks.output / tail.jump, bias, nothing, nothing[0])
        layer = confirmed(layer, *self.around, np.inf if exact or self.far > 1 else 0.5)
        if self.far > 1:
            layer = placed(layer, kinks.bias_error, U, Y)
        rest = np.abs(layer.predict(U) - Y).max(axis=1)
        return kinks, layer, left_over(layer, U, Y, box.rounding)[0], U[rest > 0.5 * rest.max()]


def _kinks_of(layer: Layer, tail: Tail) -> Kinks:
    """The units of a fitted layer, without errors."""
    zero = np.zeros(layer.k)
    output, point = layer.output * tail.jump, np.zeros(layer.weights.shape)
    return Kinks(layer.weights, layer.bias - tail.crossing, output, zero, zero, point)


def _radii(tail: Tail, box: BlackBox) -> list[float]:
    """Distances of lines, in scales, round by round: from there a smooth unit looks like a point."""
    if tail.sharp:  # far away absolute errors are small beside the answers
        return [float(np.sqrt(box.d)) * box.exact_far_away] * 3
    if box.low_precision:  # rounding of the argument, radius |a| eps, must stay small beside 1
        first = 1e5 * min(1.0, (1e3 * EPS / box.rounding) ** 0.5)
        wanted = [first, 2 * first, 4 * first]
    else:
        wanted = [1e7, 1e7, 1e5, 1e3] if tail.degree else [1e5, 1e3, 1e7]
    return [min(radius, box.reach / 3) for radius in wanted]


def _kinks_along(box: BlackBox, line: Line, known: Kinks) -> tuple[Kinks, int, bool]:
    """New kinks of a line, how many others are no single kinks, and whether it is curved."""
    pieces = straight_pieces(box, line, 4096 if box.low_precision else 1024, known=known)
    if pieces is None:
        return Kinks.none(box.d, box.q), 0, True
    explained = pieces.explained(known, box.mix)
    crowded = int(np.sum(~pieces.single & ~explained & ~pieces.unanswered))
    return kinks_of(box, pieces, ~explained)[0], crowded, False


def _error_far_away(kinks: Kinks, mix: np.ndarray, radius: float) -> float:
    """Standard error of a mixture of the units, for each scale of distance from there on."""
    strength = np.linalg.norm(kinks.weights, axis=1) * np.abs(kinks.output @ mix)
    error = kinks.error / np.sqrt(kinks.weights.shape[1]) + kinks.bias_error / radius
    return float(np.linalg.norm(strength * error))


def confirmed(layer: Layer, U: Points, Y: Outputs, off: float = 0.5) -> Layer:
    """The layer with the affine part that answers Y at U leave, and those units whose outputs they confirm.

    Lines show a unit twice, or units that are none. With rows and biases held, outputs are a linear problem,
    in which such a unit gets another output than it has shown; the worst is removed first. Where ``off`` is
    infinite, or answers are few, outputs stand as they are.
    """
    affine = np.column_stack([np.ones(len(U)), U[:, : U.shape[1] * layer.form.skip]])
    columns, output = layer.levels(U), layer.output
    Q, R = np.linalg.qr(affine)
    outside, target = columns - Q @ (Q.T @ columns), Y - Q @ (Q.T @ Y)
    kept = np.arange(layer.k)
    while np.isfinite(off) and len(U) >= 1.5 * (affine.shape[1] + layer.k):
        output = np.linalg.lstsq(outside[:, kept], target, rcond=None)[0]
        size = np.maximum(np.linalg.norm(layer.output[kept], axis=1), 1e-300)
        away = np.linalg.norm(output - layer.output[kept], axis=1) / size
        if np.max(away, initial=0.0) <= off:
            break
        kept = np.delete(kept, int(np.argmax(away)))
    rest = np.linalg.lstsq(R, Q.T @ (Y - columns[:, kept] @ output), rcond=None)[0]
    linear = rest[1:] if layer.form.skip else layer.linear
    return replace(layer.units(kept), output=output, linear=linear, constant=rest[0])


def placed(
    layer: Layer, bias_error: PerUnit, U: Points, Y: Outputs, grid: int = 81, sweeps: int = 5
) -> Layer:
    """The layer with the biases, and the constant, that fit the answers Y at typical queries U.

    At a distance R an absolute error tilts a row by error / R, but shifts the place of its kink as much as
    anywhere. The rows stand; k biases are searched one after the other on finer and finer grids.
    """
    g, z, rest, output = layer.form.g, U @ layer.weights.T, Y - U @ layer.linear, layer.output
    # Beyond all queries a kink is linear: the search is among them.
    most = np.max(np.abs(z), axis=0)
    bias, width = np.clip(layer.bias, -most, most), np.minimum(3 * bias_error, 2 * most)
    for sweep in range(sweeps):
        for i in np.argsort(-np.linalg.norm(output, axis=1)):
            others = rest - g(z + bias) @ output + g(z[:, [i]] + bias[i]) * output[i]
            tried = np.append(bias[i] + width[i] * 0.25**sweep * np.linspace(-1, 1, grid), bias[i])
            own = g(z[:, [i]] + tried)  # (n, tried)
            own, others = own - own.mean(axis=0), others - others.mean(axis=0)
            # |others - own m|², all outputs, up to what no choice changes
            loss = np.sum(own**2, axis=0) * np.sum(output[i] ** 2) - 2 * (others @ output[i]) @ own
            bias[i] = tried[int(np.argmin(loss))]
    return replace(layer, bias=bias, constant=np.mean(rest - g(z + bias) @ output, axis=0))


def _optimised(box: BlackBox, tail: Tail, found: FoundLayer) -> FoundLayer:
    """The layer after a fit in all parameters, without units that are none."""
    queries = (
        kink_queries(box, found.layer) if tail.sharp else transition_queries(box, found.layer, tail.degree)
    )
    if queries.Y.size < 1.2 * len(found.layer.pack()):
        return found  # too few queries are left: the differences stand as they are
    layer = fitted(box, found.layer, queries)
    if box.low_precision:
        # A unit that is none has an output below its own error.
        real = parameter_errors(box, layer, queries).output < 0.3
        if not real.all() and real.any():
            layer = fitted(box, layer.units(real), queries)
    return replace(found, layer=layer, queries=queries)
