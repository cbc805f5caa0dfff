"""recover(): choose, start, polish, certify."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from onehidden import activations, data
from onehidden.activations import Activation
from onehidden.objectives.residuals import Form
from onehidden.precision import in_double
from onehidden.recovery.activation import choose_activation
from onehidden.recovery.certificate import ERRORS
from onehidden.recovery.checkpoint import open_checkpoint
from onehidden.recovery.clock import Clock, Progress
from onehidden.recovery.constant import constant_answer
from onehidden.recovery.coordinates import Coordinates, whitened
from onehidden.recovery.outcome import certified, versions
from onehidden.recovery.race import STARTS
from onehidden.recovery.record import Recovery
from onehidden.recovery.samples import Samples, checked_samples
from onehidden.recovery.search import Effort, Found, search
from onehidden.recovery.streamed import recover_source
from onehidden.recovery.width import choose_width

SCORES = ("auto", "gaussian")


@in_double
def recover(
    X: Any,
    y: Any = None,
    hidden: int | None = None,
    *,
    activation: str | Activation = "relu",
    bias: bool = False,
    intercept: bool = True,
    score: Any = "auto",
    start: str = "auto",
    seed: int = 0,
    max_seconds: float | None = None,
    progress: bool | Progress = False,
    sample_weight: Any = None,
    errors: str = "auto",
    client: Any = None,
    checkpoint: Any = None,
) -> Recovery:
    """Recover the units of y = c + sum_i w_i g(<a_i, x> + b_i) + noise from samples.

    Parameters
    ----------
    X : (n, d) array or table; or a ``data.Table`` or streamed ``data.Source`` that holds the target too.
    y : (n,) target.
    hidden : number of units k; chosen from the data when None.
    activation : g, one of ``activations.names()``, or "auto" to choose it by held-out likelihood.
    bias : whether the hidden biases b_i are free (else zero).
    intercept : whether c is free (else zero).
    score : the input model behind the score moments: "auto" takes whitened inputs for Gaussian unless
        their third and fourth moments say otherwise, and then chooses by ``scores.select``; "gaussian"; or
        a law, or an estimated score, with ``score(X, order, subspace)``.
    start : "auto" races all, or one of "random", "tensor", "localised", "landscape", "wide".
    seed : same seed, same answer.
    max_seconds : time budget; the best answer so far is returned when it runs out.
    progress : True prints lines to stderr; a callable hears each ``TraceRecord``.
    sample_weight : (n,) how much each row counts: the noise of a row has variance sigma^2 / weight. Rows of
        weight zero are left out; only ratios matter.
    errors : "classical" standard errors, for noise as large everywhere; "robust" ones (sandwich); "auto"
        takes the robust where the residuals show unequal spread.
    client : for a ``data.Source``: a Dask client, cluster or scheduler address whose workers read it.
    checkpoint : a folder that remembers finished stages: called again after a kill, the answer is the same.

    Returns
    -------
    Recovery : the network in canonical form with status, checks, standard errors and trace.
    """
    asked = dict(hidden=hidden, activation=activation, bias=bias, intercept=intercept, score=score)
    asked |= dict(start=start, seed=seed, max_seconds=max_seconds, errors=errors)
    if isinstance(X, data.Source):
        _check(asked, progress, X.n_inputs)
        return recover_source(recover, X, y, sample_weight, asked, progress, client, checkpoint)
    if client is not None:
        raise ValueError("a client reads a streamed source: open the data with data.open(…, stream=True)")
    clock = Clock(max_seconds, progress)
    samples = checked_samples(X, y, sample_weight)
    _check(asked, progress, samples.X.shape[1])
    g = activations.get(activations.names()[0] if activation == "auto" else activation)
    options = _options(asked, g, samples.weight is not None)
    around = _around(samples, bool(bias))
    form = Form(g, around.rank, 1 if hidden is None else int(hidden), bool(bias), bool(intercept))
    if hidden is not None:
        _enough_samples(form, len(samples))
    clock.memo = open_checkpoint(checkpoint, samples, {**options, "score": score})
    effort = Effort(start, int(seed), clock, score, errors=errors)

    def find(form: Form, effort: Effort) -> Found:
        if hidden is None:
            return choose_width(samples, form, around, effort)
        return search(samples, form, around, effort)

    if around.scale == 0:
        found = constant_answer(samples, form, around, effort)
    elif activation == "auto":
        found = choose_activation(samples, form, around, effort, find)
    else:
        found = find(form, effort)
    return _record(found, samples, clock, options)


def _options(asked: dict[str, Any], g: Activation, weighted: bool) -> dict[str, Any]:
    """What was asked for, in plain values, as the record keeps it."""
    hidden, score = asked["hidden"], asked["score"]
    return {
        "hidden": None if hidden is None else int(hidden),
        "activation": "auto" if asked["activation"] == "auto" else g.name,
        "bias": bool(asked["bias"]),
        "intercept": bool(asked["intercept"]),
        "score": score if isinstance(score, str) else type(score).__name__,
        "start": asked["start"],
        "seed": int(asked["seed"]),
        "max_seconds": asked["max_seconds"],
        "errors": asked["errors"],
        "weighted": weighted,
    }


def _around(samples: Samples, bias: bool) -> Coordinates:
    """Whitened coordinates; without biases, about the origin where that shows more directions."""
    around = whitened(samples)
    if bias or around.null.shape[1] == 0:
        return around
    raw = whitened(samples, about_mean=False)
    return raw if raw.rank > around.rank else around


def _record(found: Found, samples: Samples, clock: Clock, options: dict[str, Any]) -> Recovery:
    scouting = found.scouting
    return Recovery(
        **certified(found.certificate, clock),
        signal=dict(sorted(scouting.signal.items())),
        origin=found.origin,
        n_samples=len(samples),
        feature_names=samples.names,
        options=options,
        versions=versions(),
        input_model=scouting.model.name,
        score_checks=scouting.model.checks,
    )


def _check(asked: dict[str, Any], progress: Any, d: int) -> None:
    """Every choice, for d inputs; one sentence for what cannot be."""
    _check_choices(asked["start"], asked["seed"], asked["max_seconds"], asked["hidden"])
    _check_switches(
        bias=asked["bias"], intercept=asked["intercept"], progress=progress, errors=asked["errors"]
    )
    _check_score(asked["score"], d)


def _check_score(score: Any, d: int) -> None:
    if isinstance(score, str):
        if score not in SCORES:
            raise ValueError(f"score must be a law or one of {', '.join(SCORES)}, got {score!r}")
    elif not callable(getattr(score, "score", None)):
        raise ValueError(f"score must be a law or one of {', '.join(SCORES)}, got {type(score).__name__}")
    elif not hasattr(score, "n_inputs"):
        raise ValueError(f"the {type(score).__name__} has not been fitted: call .fit(X) first")
    elif score.n_inputs != d:
        raise ValueError(f"the score is one of {score.n_inputs} inputs, but X has {d} columns")


def _check_switches(*, bias: Any, intercept: Any, progress: Any, errors: Any) -> None:
    for name, choice in (("bias", bias), ("intercept", intercept)):
        if not isinstance(choice, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {choice!r}")
    if not (isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress must be True, False or a function, got {progress!r}")
    if errors not in ERRORS:
        raise ValueError(f"errors must be one of {', '.join(ERRORS)}, got {errors!r}")


def _check_choices(start: Any, seed: Any, max_seconds: Any, hidden: Any) -> None:
    if start not in STARTS:
        raise ValueError(f"start must be one of {', '.join(STARTS)}, got {start!r}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ValueError(f"seed must be a whole number from 0 on, got {seed!r}")
    if max_seconds is not None and not (
        isinstance(max_seconds, (int, float, np.number)) and 0 < max_seconds < float("inf")
    ):
        raise ValueError(f"max_seconds must be a positive number or None, got {max_seconds!r}")
    if hidden is not None and (isinstance(hidden, bool) or not isinstance(hidden, (int, np.integer))):
        raise ValueError(f"hidden must be a whole number of units or None, got {hidden!r}")
    if hidden is not None and hidden < 1:
        raise ValueError(f"hidden must be at least 1, got {hidden}")


def _enough_samples(form: Form, n: int) -> None:
    if n <= form.freedom:
        shared = replace(form, k=0).freedom
        most = (n - 1 - shared) // (replace(form, k=1).freedom - shared)
        cure = f"ask for at most {most} units or bring more samples" if most > 0 else "bring more samples"
        raise ValueError(
            f"{form.k} units of {form.d} inputs have {form.freedom} free parameters, but there are only {n} "
            f"samples: {cure}"
        )
