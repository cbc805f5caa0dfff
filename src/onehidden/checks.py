"""A check is a record: reports, exit codes and tests read the same ones; and words for those that failed."""

from __future__ import annotations

import enum
from collections.abc import Iterable
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


# The first kind that failed is the most decisive: it makes the later ones moot.
ORDER = (About.COLUMNS, About.DATA, About.SEARCH, About.MEAN, About.FIT, About.UNITS, About.ERRORS)

_FAILED = {
    About.COLUMNS: "some columns can be computed from others",
    About.DATA: "there are too few different rows for so many parameters",
    About.SEARCH: "repeated searches have not agreed on one network",
    About.MEAN: "y seems to follow another scale, link or limit than assumed",
    About.FIT: "the rows show something that the network misses",
    About.UNITS: "the rows do not determine the units",
    About.ERRORS: "the standard errors do not hold for these rows",
    About.NOTE: "",
}
_NOT_EVALUATED = {
    **_FAILED,
    About.SEARCH: "the search ended before the answer was checked",
    About.MEAN: "it is not known whether y follows the scale and link assumed",
    About.FIT: "these rows cannot show whether the network misses something",
    About.UNITS: "these rows cannot show whether they are all needed",
    About.ERRORS: "these rows cannot show whether the standard errors hold",
}


def decisive_first(checks: Iterable[Check]) -> list[Check]:
    """The checks that did not pass and decide something, the most decisive kind first.

    That the fit could not be judged comes last: what was measured says more.
    """
    unmet = [check for check in checks if not check.passed and check.about is not About.NOTE]

    def place(check: Check) -> tuple[bool, int, bool]:
        unjudged = check.about is About.FIT and not check.evaluated
        return unjudged, ORDER.index(check.about), not check.evaluated

    return sorted(unmet, key=place)


def reason(check: Check) -> str:
    """A clause for a person: what a check that did not pass means, whatever its name."""
    return (_FAILED if check.evaluated else _NOT_EVALUATED)[check.about]
