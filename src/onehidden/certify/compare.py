"""One idea: an answer held against alternatives. Each falls behind by so much, or does not."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np

from onehidden.checks import About, Check, at_least, at_most, not_asked
from onehidden.network import OneHiddenNet

# Difference in n log(loss) below which the data do not tell two answers of the same size apart: a likelihood
# ratio of e^3, and two standard deviations of that difference between two minima that are equally good.
TIE = 6.0
# The same where rows are compared, in standard deviations of the difference: an equally good answer is called
# worse once in a hundred. Between minima near the truth that is 22 of n log(loss); where both are far from it
# (few rows, unequal noise) one unit elsewhere gains more than that by chance.
CLEAR = 2.33
# One unit more is asked for, though there is none, in .2 % (equal noise) to .6 % (noise of sd exp(.8 x_1)).
MORE_P = 2e-3
# A unit that is not there is taken for one that is in 1 to 2 %; at 1e-3 a unit of a fifth of the signal is
# missed half the time with ten rows a parameter and noise of half the signal.
FEWER_P = 1e-2
LINEAR_P = 1e-3  # a linear function, or nothing at all, is taken for a unit: 0 of 360 samples of pure noise


class Kind(enum.StrEnum):
    """What an alternative is; the text is the name of the question."""

    MORE = "one unit more"
    FEWER = "one unit fewer"
    LINEAR = "linear function"
    SIDES = "orientation"
    MINIMUM = "other minimum"
    ACTIVATION = "rival activation"
    CHOICE = "activation"


@dataclass(frozen=True)
class Alternative:
    """Another answer to the same question.

    Attributes
    ----------
    kind, label : what it is, and in words for a person ("3 units", "tanh", "unit 2 on its other side").
    behind : n log(loss) by which it falls behind the answer; negative when it is ahead.
    deviations : the same row by row, in standard deviations of that difference, each charged its freedom;
        NaN where rows were not compared.
    network : it, in x; None where it is no network.
    units : which units of the answer it does not share.
    """

    kind: Kind
    label: str
    behind: float
    network: OneHiddenNet | None = field(default=None, repr=False)
    units: tuple[int, ...] = ()
    deviations: float = float("nan")

    @property
    def close(self) -> bool:
        """Whether the data do not tell it from the answer."""
        return self.behind < TIE if np.isnan(self.deviations) else self.deviations < CLEAR


_FALLS_BEHIND = {
    Kind.SIDES: (About.UNITS, "the next best choice of which side each unit is on"),
    Kind.MINIMUM: (About.UNITS, "the next best network with other units that a start came to"),
    Kind.CHOICE: (About.NOTE, "the runner-up among activations, by held-out likelihood,"),
}


def falls_behind(alternatives: list[Alternative], kind: Kind) -> Check:
    """The check that every alternative of one kind falls behind; none of them: none is close."""
    about, what = _FALLS_BEHIND[kind]
    mine = [one for one in alternatives if one.kind is kind]
    by_rows = kind is not Kind.CHOICE
    closest = min(mine, key=lambda one: one.deviations if by_rows else one.behind, default=None)
    named = "there is none" if closest is None else f"closest: {closest.label}"
    value = float("inf") if closest is None else closest.deviations if by_rows else closest.behind
    measure = "standard deviations, row by row," if by_rows else "n log(loss)"
    advice = f"{measure} by which {what} falls behind; below the bound the data do not tell ({named})"
    return at_least(kind.value, value, CLEAR if by_rows else TIE, advice, about)


def asks_for_no_more(p_value: float, detectable: float) -> Check:
    """The check that the data do not ask for a further unit."""
    return at_least(
        Kind.MORE.value,
        p_value,
        MORE_P,
        "p-value of a further unit that explains so much of the residuals by chance; below the bound the "
        f"data ask for more units (one weaker than {detectable:.2g} of the variance of y would not have been "
        "seen)",
        About.FIT,
    )


def asks_for_all(p_value: float, kind: Kind, dropped: int | None = None) -> Check:
    """The check that a smaller model leaves something that a unit explains."""
    smaller = "a linear function" if kind is Kind.LINEAR else f"the network without unit {(dropped or 0) + 1}"
    return at_most(
        kind.value,
        p_value,
        LINEAR_P if kind is Kind.LINEAR else FEWER_P,
        f"p-value of what {smaller}, fitted again, leaves for a unit to explain; above the bound these rows "
        f"do not rule out {smaller}",
        About.UNITS,
    )


def agreement(starts: int) -> Check:
    """The check that more than one start came to an answer."""
    return at_least(
        "agreement",
        float(starts),
        2.0,
        "starts that came to this answer; with noise a single one may be a local minimum: allow more time",
        About.SEARCH,
    )


def not_compared(kind: Kind, reason: str) -> Check:
    """A comparison that could not be made: it has not passed."""
    about = About.UNITS if kind in (Kind.FEWER, Kind.LINEAR, Kind.SIDES, Kind.MINIMUM) else About.FIT
    return not_asked(kind.value, float("nan"), f"could not be asked: {reason}", about)
