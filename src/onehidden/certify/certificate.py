"""The certificate of an answer: checks, standard errors, units, alternatives; status and message follow."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from onehidden.certify import levels
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.groups import GroupedFreedom
from onehidden.certify.units import Cause, Undetermined, UnitStatus, UnitVerdict, plural
from onehidden.checks import About, Check, decisive_first, reason
from onehidden.network import OneHiddenNet


class Status(enum.StrEnum):
    """How far an answer can be trusted; a member equals its text.

    Attributes
    ----------
    EXACT
        Every row is reproduced to rounding, and no check found another network of this form that does it.
    CONSISTENT
        The residuals look like noise, and the units are determined.
    APPROXIMATE
        The data show more than the network, whose units are determined as the best of their number.
    DOUBTFUL
        Not to be used as it is.
    NOT_IDENTIFIABLE
        The data cannot determine some of it, whatever the search.
    """

    EXACT = "exact"
    CONSISTENT = "consistent"
    APPROXIMATE = "approximate"
    DOUBTFUL = "doubtful"
    NOT_IDENTIFIABLE = "not identifiable"

    @property
    def certified(self) -> bool:
        """Whether every check passed: what they cannot show is in ``Recovery.assumptions``."""
        return self in (Status.EXACT, Status.CONSISTENT)


class AlternativeKind(enum.StrEnum):
    """What an alternative is; the text is the name of the check that compares it."""

    MORE = "a larger model"
    FEWER = "a smaller model"
    LINEAR = "linear function"
    ORIENTATION = "orientation"
    MINIMUM = "other minimum"
    SIMILAR_ACTIVATION = "rival activation"
    SELECTED_ACTIVATION = "activation"


@dataclass(frozen=True)
class Alternative:
    """Another answer for the same data.

    Attributes
    ----------
    kind : AlternativeKind
        What it is.
    label : str
        The same in words ("3 units", "tanh", "unit 2 reversed").
    behind : float
        Twice the log likelihood by which it is behind the answer, each under a noise model of its own, or the
        deviance of a family over its dispersion; negative where it is ahead.
    network : OneHiddenNet or None
        The network in x; None where it is no network.
    units : tuple of int
        The units of the answer that it does not share.
    needed : float
        What ``behind`` must be for the data to rule it out.
    """

    kind: AlternativeKind
    label: str
    behind: float
    network: OneHiddenNet | None = field(default=None, repr=False)
    units: tuple[int, ...] = ()
    needed: float = levels.LIKELIHOOD.value

    @property
    def close(self) -> bool:
        """Whether the data do not rule it out."""
        return self.behind < self.needed

    @property
    def distance(self) -> str:
        """How likely it makes these rows beside the answer, and what would rule it out, in words."""
        side = "less" if self.behind >= 0 else "more"
        less, needed = (f"{np.exp(min(abs(gap), 1000) / 2):.2g}" for gap in (self.behind, self.needed))
        return f"these rows are {side} likely under it by a factor of {less}; {needed} less would rule it out"


@dataclass(frozen=True)
class Certificate:
    """What the data say about a network; made by ``certificate_of``."""

    network: OneHiddenNet  # in canonical form
    own: tuple[Check, ...]  # checks of the network itself
    unit_verdicts: tuple[UnitVerdict, ...]  # what the rows leave undetermined of each unit
    loss: float  # mean squared residual
    noise_variance: float  # the same over n - n_parameters
    standard_errors: ParameterRecord
    mean_square: float  # of the residuals, as a share of var(y)
    exact: bool  # whether that is rounding
    n: int
    n_parameters: int  # free ones
    comparisons: tuple[Check, ...] = ()  # checks against alternatives
    alternatives: tuple[Alternative, ...] = ()  # other answers that were compared
    noun: str = "sample"  # what a row is called: sample or query
    remarks: tuple[str, ...] = ()  # clauses that a message of success adds
    compared: bool = False  # whether all comparisons that an answer with noise needs were made
    output_precision: float = 0.0  # relative rounding of y where that is coarser than a double's
    missed_share: float = 0.0  # share of var(y) that the residuals show to be missed
    # Standard deviation, for each output, of what a unit too weak to be detected adds and others cannot fit.
    undetected: Any = float("nan")
    likelihood: Any = field(default=None, repr=False)  # the ``OwnLikelihood`` of the network, where compared
    covariance: Float[np.ndarray, "p p"] | None = field(default=None, repr=False)  # in x; None if too large
    freedom: ParameterRecord | None = field(default=None, repr=False)  # of errors by group
    by_group: GroupedFreedom | None = field(repr=False, default=None)  # that of the mean, likewise
    covariance_type: str = ""

    @property
    def checks(self) -> list[Check]:
        """All checks."""
        return [*self.own, *self.comparisons]

    @property
    def status(self) -> Status:
        return _verdict(self)[0]

    @property
    def message(self) -> str:
        """One sentence for a person."""
        return _verdict(self)[1]

    @property
    def status_if_comparisons_pass(self) -> Status:
        """The status if the answer stands against all alternatives."""
        return replace(self, compared=True).status

    @property
    def units(self) -> tuple[UnitVerdict, ...]:
        """The verdict on each unit; all are doubtful where the whole is doubtful or was not compared."""
        if self.status != Status.DOUBTFUL and (self.exact or self.compared):
            return self.unit_verdicts
        return tuple(
            unit if unit.status == UnitStatus.UNDETERMINED else replace(unit, status=UnitStatus.DOUBTFUL)
            for unit in self.unit_verdicts
        )

    def failed(self, *about: About) -> bool:
        """Whether a check about one of these failed, or was not evaluated."""
        return any(not check.passed and check.about in about for check in self.checks)

    @property
    def needs_no_comparison(self) -> bool:
        """Whether no further start can do better: the fit is exact, or g hides the units."""
        return self.exact or self.network.activation.polynomial

    @property
    def undetermined(self) -> bool:
        """Whether some unit is undetermined, units that few rows tell apart not counted."""
        found = any(unit.cause not in (None, Cause.APART) for unit in self.unit_verdicts)
        return found or self.failed(About.UNITS)

    @property
    def search_done(self) -> bool:
        """Whether further starts have nothing to improve: what else fails depends on the samples."""
        return self.needs_no_comparison or not (self.undetermined or self.failed(About.FIT, About.SEARCH))

    @property
    def search_done_and_determined(self) -> bool:
        """Whether further starts have nothing to improve and every unit is determined by enough rows."""
        determined = all(unit.cause is None for unit in self.unit_verdicts)
        return self.search_done and (self.needs_no_comparison or determined)

    def with_checks(self, *checks: Check) -> Certificate:
        """Add checks of the network itself."""
        return replace(self, own=(*self.own, *checks))

    def with_comparisons(
        self, checks: Sequence[Check], alternatives: Sequence[Alternative] = ()
    ) -> Certificate:
        """Add checks against alternatives."""
        every = (*self.alternatives, *alternatives)
        return replace(self, comparisons=(*self.comparisons, *checks), alternatives=every)

    def with_remark(self, clause: str) -> Certificate:
        """Add a clause to a message of success."""
        return replace(self, remarks=(*self.remarks, clause))

    def with_undetermined(self, units: Undetermined) -> Certificate:
        """Mark these units as undetermined."""
        found = tuple(
            unit.undetermined(*units[unit.index]) if unit.index in units else unit
            for unit in self.unit_verdicts
        )
        return replace(self, unit_verdicts=found)


def certificate_of(
    network: OneHiddenNet,
    checks: Sequence[Check],
    *,
    loss: float,
    n: int,
    n_parameters: int,
    exact: bool,
    noise_variance: float | None = None,
    mean_square: float | None = None,
    errors: ParameterRecord | None = None,
    shares: Float[np.ndarray, " k"] | None = None,
    sides: Int[np.ndarray, " k"] | None = None,
    undetermined: Undetermined | None = None,
    unit_status: UnitStatus = UnitStatus.DETERMINED,
    **more: object,
) -> Certificate:
    """The certificate of a network, in x and canonical: the only place that makes one.

    Samples in memory, streams and black boxes give it what they found. ``checks`` are those of the network
    itself; ``noise_variance`` and ``mean_square`` are the loss if not given, ``errors`` infinite, ``shares``
    and ``sides`` of the units zero. Units are undetermined as said, the others have ``unit_status``; ``more``
    are further fields.
    """
    errors = ParameterRecord.unknown(network) if errors is None else errors
    shares = np.zeros(network.n_hidden) if shares is None else shares
    sides = np.zeros(network.n_hidden, int) if sides is None else sides
    several, units = network.output.ndim == 2, list[UnitVerdict]()
    for i, share in enumerate(shares.tolist()):
        output, error = (one[i] if several else float(one[i]) for one in (network.output, errors.output))
        own, bias = (errors.weights[i], float(errors.bias[i]), error), float(network.bias[i])
        unit = UnitVerdict(i, network.weights[i], bias, output, own, share, unit_status, side=int(sides[i]))
        units.append(unit)
    return Certificate(
        network,
        tuple(checks),
        tuple(units),
        loss=loss,
        noise_variance=loss if noise_variance is None else noise_variance,
        standard_errors=errors,
        mean_square=loss if mean_square is None else mean_square,
        exact=exact,
        n=n,
        n_parameters=n_parameters,
        **more,  # pyright: ignore[reportArgumentType]
    ).with_undetermined(undetermined or {})


# Order of precedence of the verdict; the first row that applies decides.
#
#   polynomial activation                                      not identifiable
#   a check of the columns failed                              not identifiable
#   only checks of fit or mean failed, all of fit evaluated,
#     it was compared and all units are determined             approximate
#   a check of the search, the fit or the mean failed          doubtful
#   a unit is undetermined or a check of the units failed      not identifiable
#   any other check failed, notes not counted                  doubtful
#   not exact and not compared with other networks             doubtful
#   exact, y rounded more coarsely than a double               consistent
#   exact                                                      exact
#   otherwise                                                  consistent
def _verdict(one: Certificate) -> tuple[Status, str]:
    """The status that follows from the evidence, and one sentence for a person."""
    failed = [check for check in one.checks if not check.passed]
    kinds = {check.about for check in failed}
    if one.network.activation.polynomial:
        name = one.network.activation.name
        why = f"a {name} activation hides its units: sums of {name} units have many equal decompositions"
        return Status.NOT_IDENTIFIABLE, why
    undetermined_units = [unit for unit in one.unit_verdicts if unit.status == UnitStatus.UNDETERMINED]
    if About.COLUMNS in kinds:
        reasons = [check.advice for check in failed if check.about is About.COLUMNS]
        reasons += [unit.reason for unit in undetermined_units]
        return Status.NOT_IDENTIFIABLE, _reasons(reasons, one)
    # If the search failed, undetermined units may be its fault. If the model is wrong, its units are not the
    # true ones.
    if kinds & {About.SEARCH, About.FIT, About.MEAN}:
        evaluated = all(check.evaluated for check in one.checks if check.about is About.FIT)
        wrong_otherwise = kinds - {About.FIT, About.MEAN, About.NOTE} or undetermined_units
        if evaluated and not (wrong_otherwise or one.exact) and one.compared:
            return Status.APPROXIMATE, _approximate(one)
        return Status.DOUBTFUL, _doubt(failed, one.noun)
    if undetermined_units or About.UNITS in kinds:
        return Status.NOT_IDENTIFIABLE, _reasons([unit.reason for unit in undetermined_units], one)
    if kinds - {About.NOTE}:
        return Status.DOUBTFUL, _doubt(failed, one.noun)
    if not one.exact and not one.compared:
        return Status.DOUBTFUL, "the answer was not compared with other networks: allow more time"
    status = Status.CONSISTENT
    what = f"the residuals of these {plural(one.noun)} look like noise and the parameters are determined"
    if one.exact and one.output_precision:
        what = f"every {one.noun} is reproduced to the rounding of y itself, {one.output_precision:.1e}"
    elif one.exact:
        status = Status.EXACT
        what = f"every {one.noun} is reproduced to rounding and the parameters are determined"
    return status, "; ".join([what, *one.remarks])


def _approximate(one: Certificate) -> str:
    k = len(one.unit_verdicts)
    missed = f", at least {one.missed_share:.2g} of the variance of y," if one.missed_share > 0 else ""
    units = "this unit is the best one" if k == 1 else f"these {k} units are the best {k}"
    failed = [check for check in one.checks if check.about is About.MEAN and not check.passed]
    why = "".join(f"; {check.advice}" for check in failed[:1])
    shown = f"the data show more than the network explains{missed}"
    return f"{shown} but {units} found, and determined as such{why}"


def _doubt(failed: list[Check], noun: str, most: int = 2) -> str:
    """Why the answer is doubted: the most decisive kinds of checks that failed, in words."""
    found = []
    for check in decisive_first(failed):
        # What speaks against the assumed mean, or against the form of a box, is particular to the case.
        particular = check.about is About.MEAN or (noun == "query" and check.about is About.FIT)
        found.append(check.advice if particular and check.evaluated else check.clause or reason(check))
        if check.about is About.SEARCH and not check.evaluated:
            found[-1] += ": allow more time"
    return "; ".join(list(dict.fromkeys(found))[:most])


def _reasons(reasons: list[str], one: Certificate, most: int = 3) -> str:
    """The reasons as one sentence, each once; then the number of units that are determined."""
    reasons = list(dict.fromkeys(reason for reason in reasons if reason))
    if not reasons:
        return f"the {plural(one.noun)} leave some combination of the parameters undetermined"
    more = len(reasons) - most
    text = "; ".join(reasons[:most]) + (f"; and {more} more" if more > 0 else "")
    sound = sum(unit.status == UnitStatus.DETERMINED for unit in one.unit_verdicts)
    if sound in (0, len(one.unit_verdicts)) or not (one.exact or one.compared):
        return text
    rest = "the other unit is" if sound == 1 else f"the other {sound} units are"
    return f"{text}; {rest} determined"
