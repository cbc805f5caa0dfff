"""recover_oracle(): ask, find the units, finish, certify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from onehidden import threads
from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.checks import Check
from onehidden.fit.form import Form
from onehidden.fit.samples import Samples
from onehidden.oracle.answers import Answers
from onehidden.oracle.box import BlackBox
from onehidden.oracle.by_hinges import by_hinges, expected_queries
from onehidden.oracle.by_labels import by_labels
from onehidden.oracle.by_switches import FRESH_QUERIES, by_switches, turnable
from onehidden.oracle.caller import Spent
from onehidden.oracle.choose import noticed_activation
from onehidden.oracle.domain import checked_domain
from onehidden.oracle.examine import examine
from onehidden.oracle.finish import tested
from onehidden.oracle.region import typical_region
from onehidden.oracle.tails import tail_of
from onehidden.precision import in_double
from onehidden.recovery.options import Options, check_positive, checked_options
from onehidden.recovery.outcome import record
from onehidden.recovery.record import Recovery
from onehidden.recovery.solve import problem_of, solve
from onehidden.refused import Refused
from onehidden.run import Progress, Run

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
        log-odds; "label" for two classes, whose boundary tells rows up to scale; "auto" takes rows that sum
        to one for probabilities, and answers of 0 and 1 for labels.
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
    center, scale, names = typical_region(inputs, d, within)
    box = BlackBox(fn, center, scale, within, batch, max_queries, run)
    if reach is not None:
        box.keep_within(float(reach))
    rng = run.rng("queries")
    asked = {key: options.plain()[key] for key in _RECORDED} | {"reach": reach, "answers": str(kind)}
    try:
        with threads.fit_for((options.hidden or 8) * (d + 1)):
            seen = examine(box, kind, rng)
            if seen is Answers.LABEL:
                certificate = by_labels(box, box.level, options, run, rng)
                origin, rows = "walks along the decision boundary", _rows(certificate.n)
            else:
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
    elif tail is not None and turnable(g, tail) and box.d > 1 and not whole:
        form = Form(g, box.d, 1, options.bias, options.intercept)
        best = by_switches(box, form, tail, options.hidden, run, rng)
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
    box.caller.let_go()  # the clock may have run out over the search: a few questions test what it found
    return (tested(certificate, box, FRESH_QUERIES, rng), samples), found.origin


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
