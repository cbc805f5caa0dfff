"""A check is a record: reports, exit codes and tests read the same ones."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass


class About(enum.StrEnum):
    """What a check is about; verdicts follow from this, never from a name."""

    FIT = "fit"  #: whether the network misses something
    MEAN = "mean"  #: whether the mean of y follows from the network by the assumed scale and link
    UNITS = "units"  #: whether its units are determined
    COLUMNS = "columns"  #: whether the inputs are independent
    SEARCH = "search"  #: whether a better answer may have been missed
    ERRORS = "errors"  #: whether the standard errors hold
    DATA = "data"  #: whether the samples can carry an answer at all
    NOTE = "note"  #: reported, decides nothing


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
