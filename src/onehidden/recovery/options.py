"""What a caller may ask, validated once for recover, recover_oracle, the estimators and the commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from onehidden import activations, families
from onehidden.activations import Activation
from onehidden.certify.errors import ERRORS
from onehidden.families import Family, Softmax
from onehidden.fit.form import Form
from onehidden.journal import fingerprint
from onehidden.moments.score_protocol import Score
from onehidden.run import Progress
from onehidden.starts.plan import NAMES as STARTS
from onehidden.starts.start import Start
from onehidden.streams import stream

SCORES = ("auto", "gaussian")


@dataclass(frozen=True)
class Options:
    """The choices of a recovery.

    Attributes
    ----------
    hidden : number of units k; chosen from the data when None.
    activation : g, a name of ``activations.names()``, or "auto" to choose it by held-out likelihood.
    bias, intercept : whether the hidden biases b_i and the constant c are free (else zero).
    score : the input model behind score moments: "auto", "gaussian", a law or a fitted score.
    start : "auto", a name, a start, or a list of them.
    seed : same seed, same answer; with another number of threads to its last digits.
    max_seconds : time budget, None for none.
    errors : "classical" standard errors, "robust" ones, or "auto".
    family, link : what y is, by name or as one of ``oh.families``; None for normal noise, labels if text.
    linear : whether a linear part beside the units is free.
    """

    hidden: int | None = None
    activation: str | Activation = "relu"
    bias: bool = True
    intercept: bool = True
    score: str | Score = "auto"
    start: str | Start | Sequence[str | Start] = "auto"
    seed: int = 0
    max_seconds: float | None = None
    errors: str = "auto"
    family: str | Family | None = None
    link: str | None = None
    linear: bool = False
    progress: bool | Progress = field(default=False, repr=False)

    @property
    def g(self) -> Activation:
        """The activation; the first one looked at where it is to be chosen."""
        return activations.get(activations.names()[0] if self.activation == "auto" else self.activation)

    @property
    def start_name(self) -> str:
        """The start in words."""
        return _named(self.start)

    def form(self, d: int, outputs: int | None = None) -> Form:
        """The free parameters for d coordinates; one unit where the width is to be chosen."""
        k = 1 if self.hidden is None else self.hidden
        return Form(self.g, d, k, self.bias, self.intercept, self.linear, outputs=outputs)

    def plain(self) -> dict[str, object]:
        """What was asked for, in plain values, as the record keeps it."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "progress"}
        found["activation"] = "auto" if self.activation == "auto" else self.g.name
        found["score"] = self.score if isinstance(self.score, str) else type(self.score).__name__
        found["start"] = self.start_name
        if isinstance(self.family, Family):
            found["family"], found["link"] = self.family.name, self.family.link
        return found

    def pins(self, d: int) -> dict[str, object]:
        """What a checkpoint belongs to beside its data; functions are known by what they say."""
        at = stream(0, "points that tell laws apart").standard_normal((16, d))
        plain = self.plain() | {"start": repr(self.start), "family": repr(self.family)}
        plain["activation"] = f"{plain['activation']} {fingerprint(self.g(at))}"
        if not isinstance(self.score, str):
            plain["score"] = f"{plain['score']} {fingerprint(np.asarray(self.score.score(at, 1), float))}"
        return plain


def _named(start: str | Start | Sequence[str | Start]) -> str:
    if isinstance(start, str):
        return start
    return start.name if isinstance(start, Start) else ", ".join(_named(one) for one in start)


def checked_options(
    *,
    hidden: int | None = None,
    activation: str | Activation = "relu",
    bias: bool = True,
    intercept: bool = True,
    score: str | Score = "auto",
    start: str | Start | Sequence[str | Start] = "auto",
    seed: int = 0,
    max_seconds: float | None = None,
    errors: str = "auto",
    family: str | Family | None = None,
    link: str | None = None,
    linear: bool = False,
    progress: bool | Progress = False,
) -> Options:
    """Options from what a caller gave; one sentence for what cannot be.

    Numbers of NumPy's types are taken for Python's own.
    """
    _check_whole("seed", seed, 0)
    if hidden is not None:
        _check_whole("hidden", hidden, 1)
    check_positive("max_seconds", max_seconds)
    check_switch("bias", bias)
    check_switch("intercept", intercept)
    check_switch("linear", linear)
    _check_family(family, link)
    if not (isinstance(progress, bool) or callable(progress)):
        raise ValueError(f"progress must be True, False or a function, got {progress!r}")
    if errors not in ERRORS:
        raise ValueError(f"errors must be one of {', '.join(ERRORS)}, got {errors!r}")
    _check_start(start)
    _check_score(score)
    if activation != "auto":
        activations.get(activation)
    return Options(
        hidden=None if hidden is None else int(hidden),
        activation=activation,
        bias=bool(bias),
        intercept=bool(intercept),
        score=score,
        start=start,
        seed=int(seed),
        max_seconds=max_seconds,
        errors=errors,
        family=family,
        link=link,
        linear=bool(linear),
        progress=progress,
    )


def _check_family(family: object, link: object) -> None:
    if isinstance(family, str) and family == Softmax.name:
        return  # how many classes there are, y tells
    if family is not None or link is not None:
        families.get("gaussian" if family is None else family, link)  # type: ignore[arg-type]


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        what = "a whole number of units or None" if name == "hidden" else f"a whole number from {least} on"
        raise ValueError(f"{name} must be {what}, got {value!r}")
    if value < least:
        what = f"at least {least}" if name == "hidden" else f"a whole number from {least} on"
        raise ValueError(f"{name} must be {what}, got {value}")


def check_positive(name: str, value: object) -> None:
    """A positive number, or None."""
    if value is None:
        return
    number = float(value) if isinstance(value, (int, float, np.integer, np.floating)) else 0.0
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise ValueError(f"{name} must be a positive number or None, got {value!r}")


def check_switch(name: str, value: object) -> None:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def _check_start(start: object) -> None:
    if isinstance(start, Start) or (isinstance(start, str) and start in STARTS):
        return
    if isinstance(start, (list, tuple)) and start:
        for one in start:
            _check_start(one)
        return
    raise ValueError(f"start must be one of {', '.join(STARTS)}, or of oh.starts, got {start!r}")


def _check_score(score: object) -> None:
    if isinstance(score, str):
        if score not in SCORES:
            raise ValueError(f"score must be a law or one of {', '.join(SCORES)}, got {score!r}")
    elif not callable(getattr(score, "score", None)):
        raise ValueError(f"score must be a law or one of {', '.join(SCORES)}, got {type(score).__name__}")
    elif not hasattr(score, "n_inputs"):
        raise ValueError(f"the {type(score).__name__} has not been fitted: call .fit(X) first")


def check_inputs(options: Options, d: int) -> None:
    """A given score must be one of as many inputs as there are columns."""
    if not isinstance(options.score, str) and options.score.n_inputs != d:
        raise ValueError(f"the score is one of {options.score.n_inputs} inputs, but X has {d} columns")
