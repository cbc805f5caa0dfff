"""recover_oracle(): ask, find the units, finish, certify."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from onehidden import activations, data
from onehidden.activations import Activation
from onehidden.checks import at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.residuals import Form
from onehidden.oracle import design
from onehidden.oracle.assembly import Region, typical
from onehidden.oracle.box import BlackBox
from onehidden.oracle.faint import DEAD, contributions, dead_check, silent, with_faintest
from onehidden.oracle.finish import finish, normalised, tested, within_rounding
from onehidden.oracle.survey import networks
from onehidden.oracle.tails import Tail, tail_of
from onehidden.precision import in_double
from onehidden.recovery.certificate import EXACT_RMS, Certificate, with_check
from onehidden.recovery.clock import Clock, Progress
from onehidden.recovery.outcome import certified, versions
from onehidden.recovery.record import Recovery
from onehidden.recovery.recover import recover

_FRESH = 2000
_FINISHES = 5  # networks from lines that are finished before the best is taken
_SAMPLED_MOST = 40_000  # queries handed to recover()
_SAMPLED_SECONDS = 120.0  # for recover(), when the caller sets no limit


@in_double
def recover_oracle(
    fn: Callable[[np.ndarray], Any],
    n_inputs: int,
    hidden: int | None = None,
    *,
    activation: str | Activation = "relu",
    bias: bool = True,
    intercept: bool = True,
    inputs: Any = None,
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
    clock = Clock(max_seconds, progress)
    g = activations.get(activation)
    _check(fn, n_inputs, hidden, bias, intercept, reach, seed, max_seconds, progress)
    d = int(n_inputs)
    center, scale, names = _region(inputs, d)
    box = BlackBox(fn, center, scale, np.inf if reach is None else float(reach))
    rng = np.random.default_rng(seed)
    box.examine(rng)
    options = {
        "hidden": None if hidden is None else int(hidden),
        "activation": g.name,
        "bias": bool(bias),
        "intercept": bool(intercept),
        "reach": reach,
        "seed": int(seed),
        "max_seconds": max_seconds,
    }
    form = Form(g, d, 1, bool(bias), bool(intercept))
    tail = None if g.polynomial else tail_of(g)
    best: tuple[Certificate, int] | None = None
    if tail is not None and _turnable(g, tail) and (tail.sharp or d > 1):
        best = _along_lines(box, form, tail, options["hidden"], clock, rng, int(seed))
    if best is None:
        sampled = _from_samples(box, form, options["hidden"], clock, rng, int(seed))
        return replace(sampled, feature_names=names, options=options, queries=box.queries)
    certificate, used = best
    return Recovery(
        **certified(certificate, clock),
        signal={},
        origin="switches along lines",
        n_samples=used,
        feature_names=names,
        options=options,
        versions=versions(),
        queries=box.queries,
    )


def _turnable(g: Activation, tail: Tail) -> bool:
    """Whether turning a unit around is understood: without it a switch does not tell the orientation."""
    return g.sign_free or (g.reflection is not None and g.reflection.degree == tail.degree)


def _along_lines(
    box: BlackBox,
    form: Form,
    tail: Tail,
    hidden: int | None,
    clock: Clock,
    rng: np.random.Generator,
    seed: int,
) -> tuple[Certificate, int] | None:
    """The first network from lines that is certified, else the one that fits best; and its queries."""
    region = typical(box, 1000, rng)
    best: tuple[Certificate, int] | None = None
    for tried, net in enumerate(networks(box, tail, region, clock, rng)):
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
            certificate = finish(live, replace(form, k=live.n_hidden), U, y, box, clock, seed)
            certificate = with_faintest(certificate, share[~dead])
            certificate = within_rounding(certificate, box, float(np.max(np.abs(y)) / y.std()))
            certificate = _counted(tested(certificate, box, _FRESH, rng), hidden, left_out, box, region)
            if best is None or _rank(certificate) < _rank(best[0]):
                best = certificate, len(U)
            if certificate.rms > EXACT_RMS or certificate.status == "exact":
                break  # other queries help only where a fit to rounding is not unique
        assert best is not None
        if best[0].rms <= max(EXACT_RMS, 30 * box.rounding) or clock.expired() or tried + 1 == _FINISHES:
            break
    return best


def _rank(certificate: Certificate) -> tuple[bool, float]:
    """Exact first, then by fit."""
    return certificate.status != "exact", certificate.rms


def _named(net: OneHiddenNet, i: int) -> str:
    return f"unit with |a| = {np.linalg.norm(net.weights[i]):.2g}, w = {net.output[i]:.2g}"


def _counted(
    certificate: Certificate, hidden: int | None, left_out: list[str], box: BlackBox, region: Region
) -> Certificate:
    """The certificate with the number of units held against ``hidden``, and the dead ones named."""
    found = certificate.network.n_hidden
    dead = dead_check(hidden, found, left_out)
    certificate = with_check(certificate, dead)
    if hidden is not None:
        check = at_most(
            "units", float(found), float(hidden), "units that switch, against those asked for: ask for more"
        )
        certificate = with_check(certificate, check)
    if certificate.status == "exact":
        quiet = silent(normalised(box).inward(certificate.network), region)
        message = certificate.message.replace("sample", "query")  # the same words for a black box
        if dead.value:
            message += f"; dead units: {dead.advice}"
        if quiet:
            message += f"; constant over typical x, found beyond: units {', '.join(map(str, quiet))}"
        certificate = replace(certificate, message=message)
    return certificate


def _from_samples(
    box: BlackBox,
    form: Form,
    hidden: int | None,
    clock: Clock,
    rng: np.random.Generator,
    seed: int,
) -> Recovery:
    """Gaussian queries handed to ``recover``."""
    size = replace(form, k=hidden or 8).freedom
    count = int(min(max(4000, 20 * size), _SAMPLED_MOST))
    U = np.clip(rng.standard_normal((count, box.d)), -box.reach, box.reach)
    X, y = box.inputs(U), box.ask(U)
    left = _SAMPLED_SECONDS if clock.limit is None else max(clock.limit - clock.seconds(), 1.0)
    found = recover(
        X, y, hidden, activation=form.activation, bias=form.bias, intercept=form.intercept, seed=seed,
        max_seconds=left, progress=lambda r: clock.report(r.stage, r.step, r.loss),
    )  # fmt: skip
    X = box.inputs(np.clip(rng.standard_normal((_FRESH, box.d)), -box.reach, box.reach))
    y = box.ask_at(X)
    error = float(np.max(np.abs(found.network.predict(X) - y)) / y.std())
    check = at_most(
        "fresh queries",
        error,
        1e-8,
        f"largest error at {_FRESH} queries that were not used to fit, as a share of std(y)",
    )
    status, message = found.status, found.message
    if found.converged and not check.passed:
        status, message = "doubtful", f"check failed: {check.name}; {check.advice}"
    return replace(
        found, status=status, message=message, checks=[*found.checks, check], seconds=clock.seconds(),
        trace=clock.trace,
    )  # fmt: skip


def _region(inputs: Any, d: int) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
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


def _check(fn, n_inputs, hidden, bias, intercept, reach, seed, max_seconds, progress) -> None:
    if not callable(fn):
        raise ValueError(f"fn must be a function of an (n, d) array, got {type(fn).__name__}")
    for name, value, least in (("n_inputs", n_inputs, 1), ("hidden", hidden, 1), ("seed", seed, 0)):
        if name == "hidden" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
    for name, value in (("bias", bias), ("intercept", intercept)):
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {value!r}")
    for name, value in (("reach", reach), ("max_seconds", max_seconds)):
        number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        if value is not None and not (number and 0 < value < float("inf")):
            raise ValueError(f"{name} must be a positive number or None, got {value!r}")
    if not (isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress must be True, False or a function, got {progress!r}")
