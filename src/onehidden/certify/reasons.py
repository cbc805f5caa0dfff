"""Why an answer is doubted, and why a unit is undetermined, in words that need no knowledge of the checks."""

from __future__ import annotations

from collections.abc import Iterable

from onehidden.certify.units import Cause
from onehidden.checks import About, Check

# The first kind that failed is the most decisive: it makes the later ones moot.
ORDER = (About.COLUMNS, About.DATA, About.SEARCH, About.MEAN, About.FIT, About.UNITS, About.ERRORS)

_FAILED = {
    About.COLUMNS: "some columns can be computed from others",
    About.DATA: "there are too few different rows for so many parameters",
    About.SEARCH: "the search has not settled on one answer",
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


def why_undetermined(cause: Cause | None, several: bool) -> str:
    """A clause for a person: why a unit, or several, may not be interpreted."""
    return "several networks fit these rows as well" if cause is None else cause.value[several]
