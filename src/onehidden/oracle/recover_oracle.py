"""recover_oracle(): ask, find the units, finish, certify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from onehidden import data
from onehidden.activations import Activation
from onehidden.certify.certificate import Certificate
from onehidden.checks import About, at_most
from onehidden.fit.form import Form
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.oracle import design
from onehidden.oracle.assembly import Region, typical
from onehidden.oracle.box import BlackBox
from onehidden.oracle.faint import DEAD, contributions, dead_check, faintest_check, silent
from onehidden.oracle.finish import finish, normalised, tested
from onehidden.oracle.survey import networks
from onehidden.oracle.tails import Tail, tail_of
from onehidden.precision import in_double
from onehidden.recovery.options import Options, check_positive, checked_options
from onehidden.recovery.outcome import record
from onehidden.recovery.record import Recovery
from onehidden.recovery.solve import problem_of, solve
from onehidden.run import Progress, Run

_FRESH = 2000
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
    seed: int = 0,
    max_seconds: float | None = None,
    progress: bool | Progress = False,
) -> Recovery:
    """Recover the units of a black box y = c + sum_i w_i g(<a_i, x> + b_i) that answers any question.

    The box is asked along lines. From far away every unit is alone where it switches: the place, the
    height and the shape of the switch give its row, bias and output to rounding. Orientations of ReLU-like
    units follow from the polynomial part of the function. Least squares on queries near every hyperplane
    finishes the fit; fresh queries test it. Where lines do not help (one input and a smooth g, or a small
    ``reach``), Gaussian queries are handed to ``recover``.

    Parameters
    ----------
    fn : (n, d) float64 array -> (n,) numbers; deterministic.
    n_inputs : d.
    hidden : number of units, counted from the switches when None; units that leave no trace are named.
    activation : g, one of ``activations.names()``.
    bias, intercept : whether the b_i and c are free (else zero).
    inputs : (m, d) typical x, for the centre and scale of each input; standard normal when None.
    reach : how far from the centre the box may be asked, in scales; anywhere when None.
    seed : same seed, same questions.
    max_seconds : time budget; the best answer so far is returned when it runs out.
    progress : True prints lines to stderr; a callable hears each ``TraceRecord``.

    Returns
    -------
    Recovery : as from ``recover``; ``queries`` counts the rows asked.
    """
    options = checked_options(
        hidden=hidden, activation=activation, bias=bias, intercept=intercept, seed=seed,
        max_seconds=max_seconds, progress=progress,
    )  # fmt: skip
    _check_box(fn, n_inputs, options, reach)
    run, d = Run(options.seed, options.max_seconds, options.progress), int(n_inputs)
    center, scale, names = _region(inputs, d)
    box = BlackBox(fn, center, scale, np.inf if reach is None else float(reach))
    rng = run.rng("queries")
    box.examine(rng)
    asked = {key: options.plain()[key] for key in _RECORDED} | {"reach": reach}
    g = options.g
    form = Form(g, d, 1, options.bias, options.intercept)
    tail = None if g.polynomial else tail_of(g)
    best, origin = None, "switches along lines"
    if tail is not None and _turnable(g, tail) and (tail.sharp or d > 1):
        best = _along_lines(box, form, tail, options.hidden, run, rng)
    if best is None:
        best, origin = _from_samples(box, options, run, rng)
    certificate, rows = best
    rows = replace(rows, names=names)
    return record(certificate, origin, rows, None, asked, run, box.queries)


def _turnable(g: Activation, tail: Tail) -> bool:
    """Whether turning a unit around is understood: without it a switch does not tell the orientation."""
    return g.sign_free or (g.reflection is not None and g.reflection.degree == tail.degree)


def _along_lines(
    box: BlackBox, form: Form, tail: Tail, hidden: int | None, run: Run, rng: np.random.Generator
) -> tuple[Certificate, Samples] | None:
    """The first network from lines that is certified, else the one that fits best; and its queries."""
    region = typical(box, 1000, rng)
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
        if best[0].exact or run.expired() or tried + 1 == _FINISHES:
            break
    return best


def _rank(certificate: Certificate) -> tuple[bool, float]:
    """Certified first, then by fit."""
    return not certificate.status.certified, certificate.mean_square


def _named(net: OneHiddenNet, i: int) -> str:
    return f"unit with |a| = {np.linalg.norm(net.weights[i]):.2g}, w = {net.output[i]:.2g}"


def _counted(
    certificate: Certificate, hidden: int | None, left_out: list[str], box: BlackBox, region: Region
) -> Certificate:
    """The certificate with the number of units held against ``hidden``, and the dead ones named."""
    found = certificate.network.n_hidden
    dead = dead_check(hidden, found, left_out)
    certificate = certificate.asked(dead)
    if hidden is not None:
        advice = "units that switch, against those asked for: ask for more"
        certificate = certificate.asked(at_most("units", float(found), float(hidden), advice, About.FIT))
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
    U = np.clip(rng.standard_normal((count, box.d)), -box.reach, box.reach)
    samples = Samples(box.inputs(U), box.ask(U), None, tuple(f"x{j}" for j in range(box.d)), box.rounding)
    if run.max_seconds is None:
        run = replace(run, max_seconds=run.seconds() + _SAMPLED_SECONDS)
    found = solve(problem_of(samples, options), options, run)
    certificate = replace(found.certificate, noun="query")
    return (tested(certificate, box, _FRESH, rng), samples), found.origin


def _region(inputs: npt.ArrayLike | None, d: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Centre and scale of each input, and the inputs' names."""
    if inputs is None:
        return np.zeros(d), np.ones(d), tuple(f"x{j}" for j in range(d))
    columns = getattr(inputs, "column_names", None) or getattr(inputs, "columns", None)
    names = tuple(f"x{j}" for j in range(d)) if columns is None else tuple(str(c) for c in columns)
    matrix, _ = data.check_arrays(inputs, None)
    if matrix.shape[1] != d:
        raise ValueError(f"inputs has {matrix.shape[1]} columns, but fn takes n_inputs={d}")
    if len(matrix) < 2:
        raise ValueError("inputs must hold at least 2 rows of typical x, got 1")
    spread = matrix.std(axis=0)
    return matrix.mean(axis=0), np.where(spread > 0, spread, 1.0), names


def _check_box(fn: object, n_inputs: object, options: Options, reach: object) -> None:
    if not callable(fn):
        raise ValueError(f"fn must be a function of an (n, d) array, got {type(fn).__name__}")
    if isinstance(n_inputs, bool) or not isinstance(n_inputs, (int, np.integer)) or n_inputs < 1:
        raise ValueError(f"n_inputs must be a whole number from 1 on, got {n_inputs!r}")
    if options.activation == "auto":
        raise ValueError("a black box needs its activation named: activation='auto' is for samples")
    check_positive("reach", reach)
