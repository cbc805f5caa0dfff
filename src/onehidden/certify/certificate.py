"""The certificate: evidence about an answer, and the verdict that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from onehidden.certify.adequacy import Adequacy
from onehidden.certify.compare import Alternative
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.status import Status
from onehidden.certify.units import Cause, UnitStatus, UnitVerdict
from onehidden.certify.verdict import Evidence, verdict
from onehidden.checks import About, Check
from onehidden.network import OneHiddenNet


@dataclass(frozen=True)
class Certificate:
    """What the data say about a network. Status, message and the units' verdicts follow from the evidence.

    Attributes
    ----------
    network : in canonical form.
    own : questions put to the network itself. compared : those that held it against alternatives.
    alternatives : other answers that were looked at.
    open_units : what the rows leave open of each unit.
    loss, noise_variance : mean squared residual, and over n - (free parameters), in the units of y squared.
    standard_errors, curvature : of the parameters; the spectrum of the Gauss–Newton matrix.
    mean_square : of the residuals as a share of var(y). exact : whether that is rounding.
    n, freedom : rows, free parameters.
    noun : what a row is called: sample or query.
    remarks : clauses that a message of success adds.
    finished : whether all comparisons that an answer with noise needs were made.
    grain : relative rounding of y, where that is coarser than a double's; else 0.
    missed : the test for something missed, for a fit that is not one to rounding.
    stable : whether two halves of the rows lead to the same units.
    covariance : of the free parameters, in x; None where they are too many.
    """

    network: OneHiddenNet
    own: tuple[Check, ...]
    open_units: tuple[UnitVerdict, ...]
    loss: float
    noise_variance: float
    standard_errors: ParameterRecord
    curvature: Float[np.ndarray, " f"] = field(repr=False)
    mean_square: float
    exact: bool
    n: int
    freedom: int
    compared: tuple[Check, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    noun: str = "sample"
    remarks: tuple[str, ...] = ()
    finished: bool = False
    grain: float = 0.0
    missed: Adequacy | None = field(default=None, repr=False)
    stable: bool = False
    covariance: Float[np.ndarray, "p p"] | None = field(default=None, repr=False)

    @property
    def checks(self) -> list[Check]:
        """All questions."""
        return [*self.own, *self.compared]

    @property
    def evidence(self) -> Evidence:
        return Evidence(
            self.network.activation, self.exact, self.checks, self.open_units, self.finished, self.noun,
            self.remarks, self.grain, self.left_over, self.stable,
        )  # fmt: skip

    @property
    def status(self) -> Status:
        return verdict(self.evidence)[0]

    @property
    def message(self) -> str:
        return verdict(self.evidence)[1]

    @property
    def units(self) -> tuple[UnitVerdict, ...]:
        """The verdict on each unit; none stands where the whole is doubtful or was not compared."""
        if self.status != Status.DOUBTFUL and (self.exact or self.finished):
            return self.open_units
        return tuple(
            unit if unit.status == UnitStatus.UNDETERMINED else replace(unit, status=UnitStatus.DOUBTFUL)
            for unit in self.open_units
        )

    def failed(self, *about: About) -> bool:
        """Whether a question of one of these kinds was not answered well."""
        return any(not check.passed and check.about in about for check in self.checks)

    @property
    def final(self) -> bool:
        """Whether no further start can do better: a fit to rounding, or units that g hides."""
        return self.exact or self.network.activation.polynomial

    @property
    def undetermined(self) -> bool:
        """Whether some parameter of the units is left open, two units that look alike set aside."""
        open_ = any(unit.cause not in (None, Cause.APART) for unit in self.open_units)
        return open_ or self.failed(About.UNITS)

    @property
    def settled(self) -> bool:
        """Whether another start has nothing to better: what else fails is a matter of the samples."""
        return self.final or not (self.undetermined or self.failed(About.FIT, About.SEARCH))

    @property
    def clear(self) -> bool:
        """Settled, without two units that hardly a row tells apart: local minima have such units, too."""
        return self.settled and (self.final or all(unit.cause is None for unit in self.open_units))

    def asked(self, *checks: Check) -> Certificate:
        """The certificate with further questions about the network itself."""
        return replace(self, own=(*self.own, *checks))

    def held(self, checks: list[Check], alternatives: list[Alternative]) -> Certificate:
        """The certificate held against further alternatives."""
        return replace(
            self,
            compared=(*self.compared, *checks),
            alternatives=(*self.alternatives, *alternatives),
        )

    def remarked(self, clause: str) -> Certificate:
        """The certificate with a clause that a message of success adds."""
        return replace(self, remarks=(*self.remarks, clause))

    @property
    def left_over(self) -> float:
        """Share of var(y) that the data show to be missed."""
        return 0.0 if self.missed is None or not self.missed.asked else self.missed.left_over

    def completed(self) -> Certificate:
        """The certificate after all comparisons."""
        return replace(self, finished=True)

    @property
    def prospect(self) -> Status:
        """What an answer with noise will be called if it stands against all alternatives."""
        return verdict(replace(self, finished=True, stable=True).evidence)[0]

    def with_open(self, units: dict[int, tuple[Cause, str]]) -> Certificate:
        """The certificate with these units left open, for a cause and in words."""
        found = tuple(
            unit.undetermined(*units[unit.index]) if unit.index in units else unit for unit in self.open_units
        )
        return replace(self, open_units=found)
