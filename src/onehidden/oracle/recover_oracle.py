"""recover_oracle(): query, find the units, fit all parameters, certify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from onehidden import machine
from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.checks import Check
from onehidden.fit.samples import Samples
from onehidden.machine import in_double
from onehidden.options import Options, check_positive, check_whole, documented, hinting
from onehidden.oracle.answers import Answers
from onehidden.oracle.box import BlackBox, BudgetExceeded
from onehidden.oracle.certificate import fresh_check
from onehidden.oracle.domain import checked_domain, typical_region
from onehidden.oracle.examine import measure_box
from onehidden.oracle.labels import label_answer
from onehidden.oracle.lines import random_line
from onehidden.oracle.pieces import straight_pieces
from onehidden.oracle.search import expected_queries, line_answer
from onehidden.oracle.transitions import tail_of
from onehidden.recovery.record import Recovery
from onehidden.recovery.solve import problem_of, record, solve
from onehidden.run import Progress, Run


@documented
@hinting
@in_double
def recover_oracle(
    fn: Callable[[np.ndarray], npt.ArrayLike],
    n_inputs: int,
    hidden: int | None = None,
    *,
    activation: str | Activation = "relu",
    bias: bool = True,
    intercept: bool = True,
    seed: int = 0,
    max_seconds: float | None = None,
    progress: bool | Progress = False,
    inputs: npt.ArrayLike | None = None,
    reach: float | None = None,
    domain: object = None,
    answers: str = "auto",
    batch: int | None = None,
    max_queries: int | None = None,
) -> Recovery:
    """Recover the units of a black box y = c + sum_i w_i g(<a_i, x> + b_i) that answers any query.

    The box is queried along lines. A piecewise linear one (ReLU, leaky ReLU, |t|) has a kink for each unit,
    across which its gradient changes by the whole row of the unit: d queries per unit and side, at any size.
    From far away a smooth unit is alone at its transition, whose place, height and shape give its row, bias
    and output. The polynomial part of the function gives the orientations of ReLU-like units. A least-squares
    fit to queries near every hyperplane gives all parameters; fresh queries check them. Where lines do not
    help (one input and a smooth g, a small domain) typical queries are handed to ``recover``.

    Parameters
    ----------
    fn : callable
        (n, d) float64 array -> (n,) numbers, or (n, q): q outputs over one hidden layer. Single precision,
        rounding and noise below 1e-3 of the spread are measured first, and the errors they leave reported.
    n_inputs : int
        d.
    **options : Options
        One field of ``onehidden.options.Options`` each; units that no query detects are reported.
    inputs : array_like of shape (m, d), optional
        Typical x, for the centre and scale of each input; standard normal when None.
    reach : float, optional
        How far from the centre the box may be queried, in scales; as far as it answers when None.
    domain : tuple or "integer", optional
        (low, high) bounds of x, numbers or rows of d; with "integer" as a third, whole numbers only. No query
        lies outside.
    answers : {"auto", "value", "probability", "label"}
        "probability" for the outputs of a softmax or a logistic function, recovered as log-odds; "label" for
        two classes, whose boundary determines rows up to scale; "auto" takes rows that sum to one for
        probabilities, and answers of 0 and 1 for labels.
    batch : int, optional
        Most rows of one call of fn.
    max_queries : int, optional
        Most rows in all; what was found until then is returned.

    Returns
    -------
    Recovery
        As from ``recover``; ``queries`` counts the rows queried.

    Raises
    ------
    ValueError
        If an argument is wrong, fn fails or is constant, or the budget ends before a unit is found.

    Examples
    --------
    >>> import onehidden as oh
    >>> box = oh.OneHiddenNet([[3.0, 4.0]], [2.0], bias=[1.0])
    >>> found = oh.recover_oracle(box.predict, n_inputs=2, hidden=1)
    >>> print(found.status)
    exact
    >>> bool(oh.match(found.network, box).max_error < 1e-6)
    True
    """
    options = Options.from_arguments(locals())
    kind = _checked_answers(fn, n_inputs, reach, answers, batch, max_queries)
    run, d = Run(options.seed, options.max_seconds, options.progress), int(n_inputs)
    bounds = checked_domain(domain, d)
    center, scale, names = typical_region(inputs, d, bounds)
    box = BlackBox(fn, center, scale, bounds, batch, max_queries, run)
    if reach is not None:
        box.keep_within(float(reach))
    stored = ("hidden", "activation", "bias", "intercept", "seed", "max_seconds")
    choices = {key: options.to_dict()[key] for key in stored} | {"reach": reach, "answers": str(kind)}
    try:
        with machine.threads_for((options.hidden or 8) * (d + 1)):
            if measure_box(box, kind) is Answers.LABEL:
                certificate, origin = label_answer(box, options), "tracing the decision boundary"
                rows = None
            else:
                certificate, origin, rows = _from_values(box, options)
    except BudgetExceeded as ended:
        units = "each unit" if options.hidden is None else f"{options.hidden} units"
        raise ValueError(
            f"{ended} after {box.caller.queries} queries, before a unit was found; {units} of {d} inputs "
            f"takes about {expected_queries(d, options.hidden or 1)}"
        ) from None
    except ValueError:
        box.caller.release()
        box.must_not_change()  # which would explain it
        raise
    if rows is None:  # no samples exist here; placeholder rows carry the count
        rows = Samples(np.zeros((certificate.n, 1)), np.zeros(certificate.n))
    return record(certificate, origin, replace(rows, names=names), choices, run, queries=box.caller.queries)


def _from_values(box: BlackBox, options: Options) -> tuple[Certificate, str, Samples | None]:
    """The certificate of the best answer, what led to it, and the samples if there are any."""
    if options.activation == "auto":
        options = replace(options, activation=_detected_activation(box))
    tail = None if options.g.polynomial or box.domain.whole else tail_of(options.g)
    checks: list[Check] = []
    if tail is not None and (tail.sharp or box.d > 1):
        found = line_answer(box, tail, options)
        if isinstance(found, Certificate):
            return found, "kinks along lines" if tail.sharp else "transitions along lines", None
        checks = found
    certificate, origin, samples = _from_samples(box, options)
    return certificate.with_checks(*checks), origin, samples


def _from_samples(
    box: BlackBox, options: Options, most: int = 40_000, seconds: float = 120.0
) -> tuple[Certificate, str, Samples]:
    """Typical queries, up to ``most``, searched as samples are, in ``seconds`` where there is no limit."""
    size = replace(options.form(box.d), k=options.hidden or 8).freedom
    U, Y = box.answered(int(min(max(4000, 20 * size), most, 0.6 * box.caller.left)))
    y, names = Y * box.units, tuple(f"x{j}" for j in range(box.d))
    samples = Samples(box.inputs(U), y[:, 0] if box.q == 1 else y, None, names, box.rounding)
    run = box.run
    if run.max_seconds is None:
        run = replace(run, max_seconds=run.seconds() + seconds)
    found = solve(problem_of(samples, options), options, run)
    box.caller.release()  # the clock may have run out over the search: a few queries check what it found
    check, where = fresh_check(found.certificate.network, box)
    certificate = replace(found.certificate, noun="query").with_checks(check)
    return certificate.with_remark(where), found.origin, samples


def _detected_activation(box: BlackBox) -> str:
    """ReLU for straight pieces with single kinks; else tanh if the function levels off, softplus if not."""
    pieces = straight_pieces(box, random_line(box, float(np.sqrt(box.d))))
    if pieces is not None and np.any(~pieces.unanswered):
        if pieces.single[~pieces.unanswered].mean() > 0.5:
            return "relu"
    if np.isfinite(box.reach):
        return "tanh"
    U = box.rng.standard_normal((64, box.d))
    near, far = (float(np.std(box.mixture(1e4 * distance * U))) for distance in (1.0, 100.0))
    return "tanh" if far < 3 * near else "softplus"


def _checked_answers(
    fn: object, n_inputs: object, reach: object, answers: object, batch: object, max_queries: object
) -> Answers:
    if not callable(fn):
        raise ValueError(f"fn must be a function of an (n, d) array, got {type(fn).__name__}")
    check_whole("n_inputs", n_inputs)
    for name, value in (("batch", batch), ("max_queries", max_queries)):
        if value is not None:
            check_whole(name, value)
    if answers not in list(Answers):
        raise ValueError(f"answers must be one of {', '.join(Answers)}, got {answers!r}")
    check_positive("reach", reach)
    return Answers(str(answers))
