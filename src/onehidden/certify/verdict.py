"""From evidence to one word and one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from onehidden.activations import Activation
from onehidden.certify.status import Status
from onehidden.certify.units import UnitStatus, UnitVerdict
from onehidden.checks import About, Check

_NAMED = 3  # reasons that a sentence names


@dataclass(frozen=True)
class Evidence:
    """What a verdict follows from.

    Attributes
    ----------
    activation : of the network; a polynomial one hides its units.
    exact : whether the fit is one to rounding.
    checks, units : the answers, and what the rows leave open of each unit.
    finished : whether an answer with noise was held against all alternatives it needs.
    noun : what a row is called. remarks : clauses that a message of success adds.
    grain : relative rounding of y where that is coarser than a double's: such a fit is never called exact.
    left_over : share of var(y) that the data show to be missed.
    stable : whether two halves of the rows lead to the same units.
    """

    activation: Activation
    exact: bool
    checks: list[Check]
    units: tuple[UnitVerdict, ...]
    finished: bool = True
    noun: str = "sample"
    remarks: tuple[str, ...] = ()
    grain: float = 0.0
    left_over: float = 0.0
    stable: bool = False


def verdict(evidence: Evidence) -> tuple[Status, str]:
    """The status that follows from the evidence, and one sentence for a person."""
    failed = [check for check in evidence.checks if not check.passed]
    kinds = {check.about for check in failed}
    if evidence.activation.polynomial:
        name = evidence.activation.name
        return (
            Status.NOT_IDENTIFIABLE,
            f"a {name} activation hides its units: sums of {name} units have many equal decompositions",
        )
    open_ = [unit for unit in evidence.units if unit.status == UnitStatus.UNDETERMINED]
    if About.COLUMNS in kinds:
        reasons = [check.advice for check in failed if check.about is About.COLUMNS]
        return Status.NOT_IDENTIFIABLE, _sentence([*reasons, *(unit.reason for unit in open_)], evidence)
    # What a failed search leaves open is no statement about the data, and units of a network that misses
    # something say nothing about the ones that made the data.
    if About.FIT in kinds and _best_of_its_kind(evidence, kinds, bool(open_)):
        return Status.APPROXIMATE, _approximate(evidence)
    if kinds & {About.SEARCH, About.FIT}:
        return Status.DOUBTFUL, _doubt(failed)
    if open_ or About.UNITS in kinds:
        return Status.NOT_IDENTIFIABLE, _sentence([unit.reason for unit in open_], evidence)
    if kinds - {About.NOTE}:
        return Status.DOUBTFUL, _doubt(failed)
    if not evidence.exact and not evidence.finished:
        return Status.DOUBTFUL, "the answer was not held against other networks: allow more time"
    rows = _plural(evidence.noun)
    if evidence.exact and evidence.grain:
        what = f"every {evidence.noun} is reproduced to the rounding of y itself, {evidence.grain:.1e}"
        return Status.CONSISTENT, "; ".join([what, *evidence.remarks])
    if evidence.exact:
        what = f"every {evidence.noun} is reproduced to rounding and the parameters are determined"
        return Status.EXACT, "; ".join([what, *evidence.remarks])
    what = f"what is left of these {rows} looks like noise and the parameters are determined"
    return Status.CONSISTENT, "; ".join([what, *evidence.remarks])


def _best_of_its_kind(evidence: Evidence, kinds: set[About], open_: bool) -> bool:
    """Whether a network that misses something is yet determined as the best of as many units."""
    asked = all(check.asked for check in evidence.checks if check.about is About.FIT)
    wrong_otherwise = bool(kinds - {About.FIT, About.NOTE}) or open_
    return asked and not (wrong_otherwise or evidence.exact) and evidence.finished and evidence.stable


def _approximate(evidence: Evidence) -> str:
    k = len(evidence.units)
    missed = f", at least {evidence.left_over:.2g} of the variance of y," if evidence.left_over > 0 else ""
    units = "this unit is the best one there is" if k == 1 else f"these {k} units are the best so many"
    return f"the data show more than the network explains{missed} but {units}, and determined as such"


def _doubt(failed: list[Check]) -> str:
    """The most decisive question that failed, in words; then the names of the others."""
    order = [About.DATA, About.SEARCH, About.FIT, About.UNITS, About.ERRORS]
    decisive = sorted(
        (check for check in failed if check.about in order), key=lambda check: order.index(check.about)
    )
    others = ", ".join(check.name for check in decisive[1:])
    also = f"; {others} failed, too" if others else ""
    return f"check failed: {decisive[0].name}; {decisive[0].advice}{also}"


def _plural(noun: str) -> str:
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"


def _sentence(reasons: list[str], evidence: Evidence) -> str:
    """The reasons as one sentence, each once; what is unnamed is said in general; what stands is said."""
    reasons = list(dict.fromkeys(reason for reason in reasons if reason))
    if not reasons:
        return f"the {_plural(evidence.noun)} leave some combination of the parameters undetermined"
    more = len(reasons) - _NAMED
    text = "; ".join(reasons[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
    sound = [unit for unit in evidence.units if unit.status == UnitStatus.DETERMINED]
    compared = evidence.exact or evidence.finished
    if not sound or len(sound) == len(evidence.units) or not compared:
        return text
    stand = "the other unit is" if len(sound) == 1 else f"the other {len(sound)} units are"
    return f"{text}; {stand} determined"
