"""A check is a record: reports, exit codes and tests read the same ones."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass


class About(enum.StrEnum):
    """What a question is about; verdicts follow from this, never from a name.

    FIT : whether the network misses something. UNITS : whether its units are determined. COLUMNS : whether
    the inputs are independent. SEARCH : whether a better answer may have been missed. ERRORS : whether the
    standard errors hold. DATA : whether the samples can carry an answer at all. NOTE : told, decides nothing.
    """

    FIT = "fit"
    UNITS = "units"
    COLUMNS = "columns"
    SEARCH = "search"
    ERRORS = "errors"
    DATA = "data"
    NOTE = "note"


@dataclass(frozen=True)
class Check:
    """One question asked of a result, with its answer.

    Attributes
    ----------
    name : what was asked.
    value : the measured quantity.
    threshold : the bound it was held against.
    passed : the verdict; False where the question could not be asked.
    advice : one line: what the verdict means and what to do.
    about : what kind of question it is.
    asked : whether it could be asked at all.
    """

    name: str
    value: float
    threshold: float
    passed: bool
    advice: str
    about: About = About.NOTE
    asked: bool = True

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "about": str(self.about)}


def at_most(name: str, value: float, threshold: float, advice: str, about: About = About.NOTE) -> Check:
    """A check that passes when ``value <= threshold`` (NaN fails)."""
    return Check(name, float(value), float(threshold), bool(value <= threshold), advice, about)


def at_least(name: str, value: float, threshold: float, advice: str, about: About = About.NOTE) -> Check:
    """A check that passes when ``value >= threshold`` (NaN fails)."""
    return Check(name, float(value), float(threshold), bool(value >= threshold), advice, about)


def not_asked(name: str, threshold: float, advice: str, about: About = About.NOTE) -> Check:
    """A question that could not be asked: it has not passed."""
    return Check(name, float("nan"), float(threshold), False, advice, about, asked=False)
