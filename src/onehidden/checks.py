"""A check is a record: reports, exit codes and tests read the same ones."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass


class About(enum.StrEnum):
    """What a check is about; verdicts follow from this, never from a name.

    Attributes
    ----------
    FIT
        Whether the network misses something.
    MEAN
        Whether the mean of y follows from the network by the scale and the link that were assumed.
    UNITS
        Whether its units are determined.
    COLUMNS
        Whether the inputs are independent.
    SEARCH
        Whether a better answer may have been missed.
    ERRORS
        Whether the standard errors hold.
    DATA
        Whether the samples can carry an answer at all.
    NOTE
        Reported, decides nothing.
    """

    FIT = "fit"
    MEAN = "mean"
    UNITS = "units"
    COLUMNS = "columns"
    SEARCH = "search"
    ERRORS = "errors"
    DATA = "data"
    NOTE = "note"


@dataclass(frozen=True)
class Check:
    """One check of a result.

    Attributes
    ----------
    name : str
        What is checked.
    value : float
        The measured quantity; NaN where it was not evaluated.
    threshold : float
        The bound of the value.
    passed : bool
        The verdict; False where the check was not evaluated.
    advice : str
        One line: what the verdict means and what to do.
    about : About
        What kind of check it is.
    evaluated : bool
        Whether it could be evaluated.
    clause : str
        What it means for a person that it did not pass, where that is particular to the case.
    """

    name: str
    value: float
    threshold: float
    passed: bool
    advice: str
    about: About = About.NOTE
    evaluated: bool = True
    clause: str = ""

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "about": str(self.about)}


def at_most(name: str, value: float, threshold: float, advice: str, about: About = About.NOTE) -> Check:
    """A check that passes when ``value <= threshold``; NaN fails."""
    return Check(name, float(value), float(threshold), bool(value <= threshold), advice, about)


def at_least(name: str, value: float, threshold: float, advice: str, about: About = About.NOTE) -> Check:
    """A check that passes when ``value >= threshold``; NaN fails."""
    return Check(name, float(value), float(threshold), bool(value >= threshold), advice, about)


def not_evaluated(name: str, threshold: float, advice: str, about: About = About.NOTE) -> Check:
    """A check that could not be evaluated: it has not passed."""
    return Check(name, float("nan"), float(threshold), False, advice, about, evaluated=False)
