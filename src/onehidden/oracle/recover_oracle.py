"""recover_oracle(): ask, find the units, finish, certify."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden import data
from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.checks import Check
from onehidden.fit.form import Form
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.oracle import design
from onehidden.oracle.answers import Answers
from onehidden.oracle.assembly import Region, typical
from onehidden.oracle.box import BlackBox, Spent
from onehidden.oracle.by_hinges import by_hinges, cut_short, expected_queries
from onehidden.oracle.choose import noticed_activation
from onehidden.oracle.domain import Domain, checked_domain
from onehidden.oracle.examine import examine
from onehidden.oracle.faint import DEAD, contributions, counts, faintest_check, silent
from onehidden.oracle.finish import finish, normalised, tested
from onehidden.oracle.fit_at_size import fitted_at_size
from onehidden.oracle.survey import networks
from onehidden.oracle.tails import Tail, tail_of
from onehidden.precision import in_double
from onehidden.recovery.options import Options, check_positive, checked_options
from onehidden.recovery.outcome import record
from onehidden.recovery.record import Recovery
from onehidden.recovery.solve import problem_of, solve
from onehidden.refused import Refused
from onehidden.run import Progress, Run

_FRESH = 2000
_SMALL = 3000  # parameters up to which Levenberg–Marquardt holds all of their products
_FINISHES = 5  # networks from lines that are finished before the best is taken
_SAMPLED_MOST = 40_000  # queries handed to recover()
_RECORDED = ("hidden", "activation", "bias", "intercept", "seed", "max_seconds")  # options a record tells
_SAMPLED_SECONDS = 120.0  # for recover(), when the caller sets no limit


@in_double
def recover_oracle(
    fn: Callable[[np.ndarray], npt.ArrayLike],
    n_inputs: int,
    hidden: int | None = None,
    *,
    activation: str | Activation = "relu",
    bias: bool = True,
    intercept: bool = True,
    inputs: npt.ArrayLike | None = None,
    reach: float | None = None,
    domain: object = None,
    answers: str = "auto",
    batch: int | None = None,
    max_queries: int | None = None,
    seed: int = 0,
    max_seconds: float | None = None,
    progress: bool | Progress = False,
) -> Recovery:
    """Recover the units of a black box y = c + sum_i w_i g(<a_i, x> + b_i) that answers any question.

    The box is asked along lines. A piecewise linear one (ReLU, leaky ReLU, |t|) bends where a unit switches,
    and its gradient changes there by the whole row of the unit: d questions a unit and side, at any size.
    From far away a smooth unit is alone where it switches: the place, the height and the shape of the switch
    give its row, bias and output. Orientations of ReLU-like units follow from the polynomial part of the
    function. Least squares on queries near every hyperplane finishes the fit; fresh queries test it. Where
    lines do not help (one input and a smooth g, a small domain) typical queries are handed to ``recover``.

    Parameters
    ----------
    fn : (n, d) float64 array -> (n,) numbers, or (n, q): q outputs over one hidden layer. Single precision,
        rounding and noise below 1e-3 of the spread are measured first, and the errors they leave are told.
    n_inputs : d.
    hidden : number of units, counted from the switches when None; units that leave no trace are named.
    activation : g, one of ``activations.names()``, or "auto".
    bias, intercept : whether the b_i and c are free (else zero).
    inputs : (m, d) typical x, for the centre and scale of each input; standard normal when None.
    reach : how far from the centre the box may be asked, in scales; as far as it answers when None.
    domain : (low, high) bounds of x, numbers or rows of d; with "integer" as a third, whole numbers only. No
        question lies outside.
    answers : "value"; "probability" for the outputs of a softmax or a logistic function, recovered as
        log-odds; "auto" takes rows that sum to one for probabilities.
    batch : most rows of one call of fn.
    max_queries, max_seconds : what may be spent; what was found until then is returned.
    seed : same seed, same questions.
    progress : True prints lines to stderr; a callable hears each ``TraceRecord``.

    Returns
    -------
    Recovery : as from ``recover``; ``queries`` counts the rows asked.
    """
    options = checked_options(
        hidden=hidden, activation=activation, bias=bias, intercept=intercept, seed=seed,
        max_seconds=max_seconds, progress=progress,
    )  # fmt: skip
    kind = _check_box(fn, n_inputs, reach, answers, batch, max_queries)
    run, d = Run(options.seed, options.max_seconds, options.progress), int(n_inputs)
    within = checked_domain(domain, d)
    center, scale, names = _region(inputs, d, within)
    box = BlackBox(fn, center, scale, within, batch, max_queries, run)
    if reach is not None:
        box.keep_within(float(reach))
    rng = run.rng("queries")
    asked = {key: options.plain()[key] for key in _RECORDED} | {"reach": reach, "answers": str(kind)}
    try:
        seen = examine(box, kind, rng)
        if seen is Answers.LABEL:
            raise Refused(
                "fn answers with labels only (0 or 1): give a function that returns values or probabilities"
            )
        certificate, origin, rows = _recovered(box, options, run, rng)
    except Spent as spent:
        raise ValueError(_learned(box, str(spent), options.hidden)) from None
    rows = replace(rows, names=names)
    return record(certificate, origin, rows, None, asked, run, box.queries)


def _recovered(
    box: BlackBox, options: Options, run: Run, rng: np.random.Generator
) -> tuple[Certificate, str, Samples]:
    """The certificate of the best answer, what led to it, and its queries."""
    if options.activation == "auto":
        options = replace(options, activation=noticed_activation(box, rng))
    g, whole = options.g, box.domain.whole
    tail = None if g.polynomial else tail_of(g)
    questions: list[Check] = []
    if tail is not None and tail.sharp and tail.degree == 1 and not whole:
        found = by_hinges(box, tail, options, run, rng)
        if isinstance(found, Certificate):
            return found, "switches along lines", _rows(found.n)
        questions = found
    elif tail is not None and _turnable(g, tail) and box.d > 1 and not whole:
        form = Form(g, box.d, 1, options.bias, options.intercept)
        best = _along_lines(box, form, tail, options.hidden, run, rng)
        if best is not None:
            return best[0], "switches along lines", best[1]
    if box.q > 1:
        raise Refused(
            f"no unit of a {g.name} network of {box.q} outputs was found along lines: name another "
            "activation, or give a function of one output"
        )
    (certificate, rows), origin = _from_samples(box, options, run, rng)
    return certificate.asked(*questions), origin, rows


def _rows(n: int) -> Samples:
    """How many queries a fit was made to, as the record counts rows."""
    return Samples(np.zeros((n, 1)), np.zeros(n))


def _learned(box: BlackBox, spent: str, hidden: int | None) -> str:
    """One sentence on what was learned before any unit was found."""
    need = expected_queries(box.d, hidden or 1)
    said = f"{box.q} output{'s' if box.q > 1 else ''}" if box.queries >= 256 else "nothing yet"
    if box.queries >= 512:
        said += f", answers good to {box.rounding:.1e} of their size"
    units = "each unit" if hidden is None else f"{hidden} units"
    return (
        f"{spent} after {box.queries} queries, before a unit was found (learned so far: {said}); {units} of "
        f"{box.d} inputs takes about {need}"
    )


def _turnable(g: Activation, tail: Tail) -> bool:
    """Whether turning a unit around is understood: without it a switch does not tell the orientation."""
    return g.sign_free or (g.reflection is not None and g.reflection.degree == tail.degree)


def _along_lines(
    box: BlackBox, form: Form, tail: Tail, hidden: int | None, run: Run, rng: np.random.Generator
) -> tuple[Certificate, Samples] | None:
    """The first network from lines that is certified, else the one that fits best; and its queries."""
    region = typical(box, 1000, rng)
    best: tuple[Certificate, Samples] | None = None
    try:
        for found in _finished(box, form, tail, hidden, region, run, rng):
            best = found
    except Spent as spent:
        if best is None:
            raise
        return best[0].asked(cut_short(str(spent))), best[1]
    return best


def _finished(
    box: BlackBox,
    form: Form,
    tail: Tail,
    hidden: int | None,
    region: Region,
    run: Run,
    rng: np.random.Generator,
) -> Iterator[tuple[Certificate, Samples]]:
    """The best answer so far, after each one that was finished."""
    best: tuple[Certificate, Samples] | None = None
    for tried, net in enumerate(networks(box, tail, region, run, rng)):
        share = contributions(net, tail, region)
        dead = share < DEAD
        if dead.all():
            continue
        left_out = [_named(net, int(i)) for i in np.flatnonzero(dead)]
        live = OneHiddenNet(
            net.weights[~dead], net.output[~dead], net.bias[~dead], net.intercept, net.activation
        )
        if box.q > 1 or live.n_hidden * (box.d + 2) > _SMALL:
            certificate, rows = fitted_at_size(live, tail, box, run, rng)
            certificate = certificate.asked(*counts(live.n_hidden, hidden, left_out))
            if best is None or _rank(certificate) < _rank(best[0]):
                best = certificate, rows
            yield best
            if certificate.status.certified or run.expired() or tried + 1 == _FINISHES:
                break
            continue
        for plan in range(design.PLANS):
            U = design.queries(live, tail, box, rng, plan)
            y = box.ask(U)
            here = run.at("network", tried, plan)
            certificate = finish(live, replace(form, k=live.n_hidden), U, y, box, here)
            certificate = tested(certificate.asked(faintest_check(share[~dead])), box, _FRESH, rng)
            certificate = _counted(certificate, hidden, left_out, box, region)
            if best is None or _rank(certificate) < _rank(best[0]):
                best = certificate, Samples(U, y)
            if not certificate.exact or certificate.status.certified:
                break  # other queries help only where a fit to rounding is not unique
        assert best is not None
        yield best
        if best[0].exact or run.expired() or tried + 1 == _FINISHES:
            break


def _rank(certificate: Certificate) -> tuple[bool, float]:
    """Certified first, then by fit."""
    return not certificate.status.certified, certificate.mean_square


def _named(net: OneHiddenNet, i: int) -> str:
    return f"unit with |a| = {np.linalg.norm(net.weights[i]):.2g}, w = {net.output[i]:.2g}"


def _counted(
    certificate: Certificate, hidden: int | None, left_out: list[str], box: BlackBox, region: Region
) -> Certificate:
    """The certificate with the number of units held against ``hidden``, and the dead ones named."""
    dead, *counted = counts(certificate.network.n_hidden, hidden, left_out)
    certificate = certificate.asked(dead, *counted)
    if dead.value:
        certificate = certificate.remarked(f"dead units: {dead.advice}")
    quiet = silent(normalised(box).inward(certificate.network), region)
    if quiet:
        named = ", ".join(map(str, quiet))
        certificate = certificate.remarked(f"constant over typical x, found beyond: units {named}")
    return certificate


def _from_samples(
    box: BlackBox, options: Options, run: Run, rng: np.random.Generator
) -> tuple[tuple[Certificate, Samples], str]:
    """Gaussian queries, searched as samples are; and the start that led to the answer."""
    size = replace(options.form(box.d), k=options.hidden or 8).freedom
    count = int(min(max(4000, 20 * size), _SAMPLED_MOST))
    count = int(min(count, 0.6 * box.left))
    U = box.typical(count, rng)
    y = box.ask(U)
    good = np.isfinite(y)
    samples = Samples(box.inputs(U[good]), y[good], None, tuple(f"x{j}" for j in range(box.d)), box.rounding)
    if run.max_seconds is None:
        run = replace(run, max_seconds=run.seconds() + _SAMPLED_SECONDS)
    found = solve(problem_of(samples, options), options, run)
    certificate = replace(found.certificate, noun="query")
    return (tested(certificate, box, _FRESH, rng), samples), found.origin


def _region(
    inputs: npt.ArrayLike | None, d: int, domain: Domain
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Centre and scale of each input, and the inputs' names."""
    names = tuple(f"x{j}" for j in range(d))
    if inputs is None:
        closed = np.isfinite(domain.low) & np.isfinite(domain.high)
        with np.errstate(invalid="ignore"):
            center = np.where(closed, 0.5 * (domain.low + domain.high), 0.0)
            width = np.where(closed & domain.free, 0.25 * (domain.high - domain.low), 1.0)
        return _one_scale_inside(center, width, domain), width, names
    columns = getattr(inputs, "column_names", None)
    columns = getattr(inputs, "columns", None) if columns is None else columns
    names = names if columns is None else tuple(str(c) for c in columns)
    matrix = _typical_rows(inputs)
    if matrix.shape[1] != d:
        raise ValueError(f"inputs has {matrix.shape[1]} columns, but fn takes n_inputs={d}")
    if len(matrix) < 2:
        raise ValueError("inputs must hold at least 2 rows of typical x, got 1")
    inside = domain.contains(matrix)
    if not inside.all():
        raise ValueError(f"row {int(np.argmin(inside))} of inputs lies outside the domain")
    spread = matrix.std(axis=0)
    # A column that never varies in the data is still an input of the box: it is asked about around its value.
    width = np.where(domain.free, 0.25 * (domain.high - domain.low), np.inf)
    scale = np.where(spread > 0, spread, np.minimum(1.0, width))
    return _one_scale_inside(matrix.mean(axis=0), scale, domain), scale, names


def _one_scale_inside(
    center: Float[np.ndarray, " d"], scale: Float[np.ndarray, " d"], domain: Domain
) -> Float[np.ndarray, " d"]:
    """The centre moved away from bounds: on one there is no room to ask on both sides."""
    low, high = domain.low + scale, domain.high - scale
    return np.where(domain.free, np.clip(center, low, high), domain.low)


def _typical_rows(inputs: npt.ArrayLike) -> np.ndarray:
    """Typical x, checked as samples are; but a column may be constant."""
    try:
        matrix = np.array(inputs, dtype=float)
    except (TypeError, ValueError):
        return data.check_arrays(inputs, None)[0]
    if matrix.ndim != 2 or len(matrix) < 2:
        return data.check_arrays(inputs, None)[0]
    constant = np.all(matrix == matrix[0], axis=0)
    varied = np.where(constant, np.arange(len(matrix))[:, None], matrix)
    return np.where(constant, matrix, data.check_arrays(varied, None)[0])


def _check_box(
    fn: object, n_inputs: object, reach: object, answers: object, batch: object, max_queries: object
) -> Answers:
    if not callable(fn):
        raise ValueError(f"fn must be a function of an (n, d) array, got {type(fn).__name__}")
    for name, value in (("n_inputs", n_inputs), ("batch", batch), ("max_queries", max_queries)):
        if value is None and name != "n_inputs":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}")
    if answers not in list(Answers):
        raise ValueError(f"answers must be one of {', '.join(Answers)}, got {answers!r}")
    check_positive("reach", reach)
    return Answers(str(answers))
