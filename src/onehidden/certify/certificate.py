"""The certificate: evidence about an answer, and the verdict that follows from it; one path for all rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from jaxtyping import Float

from onehidden.certify.adequacy import Adequacy, adequacy
from onehidden.certify.compare import Alternative, Kind
from onehidden.certify.dependence import dependence_p_value
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.lattice import distinct_rows, lattice_gap
from onehidden.certify.local_fit import LocalFit, local_fit
from onehidden.certify.patterns import CountPatterns, Patterns, rows_needed
from onehidden.certify.shared_units import named
from onehidden.certify.spread import SpreadTest
from onehidden.certify.status import Status
from onehidden.certify.ties import EXACT, ties
from onehidden.certify.units import (
    CLEAR_OF_ZERO,
    NOTHING,
    Cause,
    UnitStatus,
    UnitVerdict,
    unit_verdicts,
)
from onehidden.certify.verdict import Evidence, verdict
from onehidden.checks import About, Check, at_least, at_most, not_asked
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.fit.together import Together
from onehidden.network import OneHiddenNet
from onehidden.run import Run

MISSED_P = 0.01  # a right answer is said to miss something once in a hundred, whatever the noise
DEPENDENT_P = 0.01  # independent rows are called dependent once in a hundred
_LATTICE = 0.5  # share of distinct rows up to which inputs are looked at as a lattice
# Parameters up to which "auto" takes the larger of both errors where the spread looks equal.
_BOTH = 1000
SPREAD_P = (
    0.05  # robust errors are right for equal noise, too: the usual level costs a little width in 1 of 20
)


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


def certify(
    network: OneHiddenNet,
    problem: Problem,
    run: Run,
    errors: str = "auto",
    noun: str = "sample",
    nothing: float = NOTHING,
) -> Certificate:
    """The certificate of a network, in x, as far as it can be asked of the network alone.

    Parameters
    ----------
    errors : "classical", "robust", or "auto": robust where the spread of the residuals is unequal.
    noun : what a row is called.
    nothing : share of std(y) below which a unit of a fit to rounding adds nothing.
    """
    local = local_fit(network, problem)
    counts, spread = problem.fold(partial(_counters, local.inner)).parts
    assert isinstance(counts, CountPatterns)
    assert isinstance(spread, SpreadTest)
    patterns, equal_p = counts.result(), 1.0 if local.exact else spread.result()
    missed = None if local.exact else _adequacy(local, run)
    robust = not local.exact and (errors == "robust" or (errors == "auto" and equal_p < SPREAD_P))
    deviations = local.errors(local.covariance(robust))
    if errors == "auto" and not (robust or local.exact) and problem.form.size <= _BOTH:
        deviations = deviations.at_least(local.errors(local.covariance(True)))
    exact = local.exact
    units = unit_verdicts(local.network, local.inner, patterns, deviations, local.blind, exact, noun, nothing)
    scale = problem.end.scale
    of_noise = [*_repeated_rows(problem), _spread_check(equal_p, errors, robust), *_dependence(local)]
    certificate = Certificate(
        local.network,
        (
            _fit_check(local, missed),
            *_local_checks(local, patterns, deviations, nothing),
            *([] if exact else of_noise),
            *_columns_check(problem),
        ),
        units,
        loss=local.mean_square * scale**2,
        noise_variance=local.variance * scale**2,
        standard_errors=deviations,
        curvature=local.bend.values,
        mean_square=local.mean_square,
        exact=exact,
        n=local.n,
        freedom=local.freedom,
        noun=noun,
        grain=problem.rows.rounding.grain if problem.rows.rounding.coarse else 0.0,
        missed=missed,
    )
    if not exact:
        return certificate
    certificate = certificate.with_open(_steps(local)).asked(*_lattice_check(local))
    return with_ties(certificate, problem)


def _steps(local: LocalFit) -> dict[int, tuple[Cause, str]]:
    """Units of a fit to rounding that are steps on these rows: steeper ones reproduce them as well.

    The Jacobian of a saturated unit is small but, each column brought to its own scale, of full rank.
    """
    form, problem = local.problem.form, local.problem
    if form.activation.homogeneity is not None:
        return {}
    weights, output, bias, _, constant = form.unpack(local.theta)
    found = {}
    for i in range(form.k):
        scale = np.where(np.arange(form.k) == i, 2.0, 1.0)
        steeper = form.pack(weights * scale[:, None], output, bias * scale, None, float(constant))
        if problem.rows.rounding.reproduces(problem.sums.loss(steeper) / local.n):
            found[i] = Cause.BLIND, f"unit {i + 1} is a step on these rows: steeper ones fit as well"
    return found


def _lattice_check(local: LocalFit) -> list[Check]:
    """Asked of kinked units where rows in memory repeat each other: whether the rows hold the kinks."""
    problem = local.problem
    if not isinstance(problem.rows, Samples) or not problem.form.activation.kinked:
        return []
    X = problem.rows.X
    if len(distinct_rows(X)) > _LATTICE * len(X):
        return []
    gap = lattice_gap(local.network, X, bias=problem.form.bias, intercept=problem.form.intercept)
    return [
        at_least(
            "kinks held by distinct rows",
            float(gap.apart if gap.absorbed == 0 else -gap.absorbed),
            float(gap.needed),
            "fewest distinct rows that tell two units apart, or less the directions in which units imitate a "
            "linear function; below the bound kinks can lie elsewhere in the gaps of a lattice",
            About.UNITS,
        )
    ]


def with_ties(certificate: Certificate, problem: Problem) -> Certificate:
    """Held against every other choice of sides: a search of all sets of units that could be turned together.

    No Jacobian sees these ties; a fit to rounding is unique only if there are none.
    """
    network, around = certificate.network, problem.around
    tolerance = EXACT if not certificate.grain else 100 * problem.rows.rounding.exact
    spread = around.unwhiten.T
    found = ties(
        network, centre=around.shift, spread=spread, intercept=problem.form.intercept, tolerance=tolerance
    )
    if not found.complete and not found.sets:
        reason = f"whether units can be turned around could not be settled: {found.reason}"
        return certificate.held([not_asked(Kind.SIDES.value, 0.0, reason, About.UNITS)], [])
    alternatives, open_ = [], {}
    for units, other in zip(found.sets, found.networks, strict=True):
        label = f"{named(units)} on {'its' if len(units) == 1 else 'their'} other side"
        alternatives.append(Alternative(Kind.SIDES, label, 0.0, other, units))
        open_ |= {i: (Cause.TIE, f"the network with {label} computes the same function") for i in units}
    advice = "sets of units that can be turned around together without changing the function"
    check = at_most(Kind.SIDES.value, float(len(found.sets)), 0.0, f"{advice}: {found.reason}", About.UNITS)
    return certificate.held([check], alternatives).with_open(open_)


def _counters(inner: OneHiddenNet) -> Together:
    return Together(CountPatterns(inner), SpreadTest(inner))


def _adequacy(local: LocalFit, run: Run) -> Adequacy:
    problem = local.problem
    mean = (problem.around.shift - problem.end.shift) @ problem.end.whiten
    seed = run.seed_of("looks at the residuals")
    return adequacy(problem.fold, problem.form, local.theta, local.hessian, local.n, seed, mean)


def _fit_check(local: LocalFit, missed: Adequacy | None) -> Check:
    if missed is None:
        bound = local.problem.rows.rounding.exact
        rms = float(np.sqrt(local.mean_square))
        return at_most("fit", rms, bound, "the network reproduces y to rounding", About.FIT)
    if not missed.asked:
        return not_asked(
            "fit", MISSED_P, f"whether something is missed could not be asked: {missed.reason}", About.FIT
        )
    return at_least(
        "fit",
        missed.p_value,
        MISSED_P,
        "p-value of noise as the only thing left in the residuals; below the bound the network misses "
        "something: more units, another activation, biases, or another start",
        About.FIT,
    )


def _dependence(local: LocalFit) -> list[Check]:
    """Asked of rows in memory, whose order is known."""
    problem = local.problem
    if not isinstance(problem.rows, Samples):
        return []
    root = 1.0 if problem.rows.weight is None else np.sqrt(problem.rows.weight)
    residual = root * (local.network.predict(problem.rows.X) - problem.rows.y)
    p_value = dependence_p_value(residual, problem.rows.y)
    if p_value is None:
        why = "the order of the rows says nothing: they are few, or sorted by y"
        return [not_asked("independent rows", DEPENDENT_P, why)]
    return [
        at_least(
            "independent rows",
            p_value,
            DEPENDENT_P,
            "p-value of residuals that do not depend on those of the rows before; below the bound "
            "neighbouring rows are not independent evidence and the standard errors are too small: thin the "
            "rows out, or shuffle them if their order means nothing",
            About.ERRORS,
        )
    ]


def _local_checks(
    local: LocalFit, patterns: Patterns, errors: ParameterRecord, nothing: float
) -> list[Check]:
    bend, exact, form = local.bend, local.exact, local.problem.form
    found = [
        at_most(
            "gradient",
            local.cosine,
            _gradient_bound(local.n, form.activation.kinked),
            "largest cosine between the residuals and a column of the Jacobian, against a twentieth of a "
            "standard error; if above, the descent has not ended: allow more time",
            About.SEARCH,
        ),
        at_least(
            "smallest curvature",
            float(bend.values[0] / max(bend.values[-1], np.finfo(float).tiny)),
            1e-10,
            "the flattest direction of the loss against the steepest; below the bound some combination of "
            "parameters is not determined by these rows",
            About.UNITS,
        ),
        at_least(
            "identifiability",
            float(bend.rank),
            float(bend.freedom),
            "rank of the Jacobian against the number of free parameters; a gap means that different networks "
            "fit these rows equally well",
            About.UNITS,
        ),
        _weakest_unit(local, patterns, errors, nothing),
    ]
    if form.activation.homogeneity is not None:
        found += _switched(patterns, form.d)
    found.append(
        at_least(
            "samples per parameter",
            local.n / bend.freedom,
            1.0 if exact else 4.0,
            "fewer samples than parameters cannot tell networks apart; with noise, fewer than four each "
            "cannot tell noise from a wrong network",
            About.DATA,
        )
    )
    return found


def _weakest_unit(local: LocalFit, patterns: Patterns, errors: ParameterRecord, nothing: float) -> Check:
    """A unit that adds nothing has no direction to recover: each must stand clear of zero."""
    advice = "a unit that adds nothing to y has no direction to speak of"
    if local.exact:
        return at_least("weakest unit", float(np.min(patterns.spread)), nothing, advice, About.UNITS)
    in_errors = np.abs(local.network.output) / np.maximum(errors.output, np.finfo(float).tiny)
    return at_least("weakest unit", float(np.min(in_errors)), CLEAR_OF_ZERO, advice, About.UNITS)


def _switched(patterns: Patterns, d: int) -> list[Check]:
    """A homogeneous unit that all rows see from one side is a polynomial there, whatever the rank says."""
    return [
        at_least(
            "switched units",
            float(np.min(patterns.beyond)),
            1.0,
            "fewest rows on the lesser side of a unit; with none it acts as a polynomial and could be "
            "another unit, or none",
            About.UNITS,
        ),
        at_least(
            "units apart",
            float(patterns.closest()[0]),
            float(rows_needed(d)),
            "fewest rows that see one of two units switch and not the other, against the numbers of an "
            "affine function; below, other units fit these rows as well",
            About.NOTE,  # the units concerned are named one by one
        ),
    ]


def _gradient_bound(n: int, kinked: bool) -> float:
    """A twentieth of a standard error; at a kink the gradient jumps by whole rows, about 1/n each."""
    return max(0.05 / np.sqrt(n), 20 / n if kinked else 0.0)


def _repeated_rows(problem: Problem) -> list[Check]:
    """Asked of rows in memory: whole rows, noise and all, that are copies of another."""
    if not isinstance(problem.rows, Samples):
        return []
    rows = problem.rows
    table = np.ascontiguousarray(np.column_stack([rows.X, rows.y]))
    keys = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    copies = 1 - len(set(map(hash, map(bytes, keys)))) / len(rows)
    return [
        at_most(
            "repeated rows",
            copies,
            0.02,
            "share of rows that are copies of another, noise and all; copies are no evidence: drop them or "
            "give each distinct row its count as sample_weight",
            About.DATA,
        )
    ]


def _spread_check(p_value: float, errors: str, robust: bool) -> Check:
    """Whether the noise is as large everywhere; only classical errors need it to be."""
    if errors == "classical":
        return at_least(
            "equal spread",
            p_value,
            SPREAD_P / 50,
            "p-value of noise as large everywhere; below the bound the standard errors are wrong: use "
            "errors='robust', or sample_weight if you know where the noise is large",
            About.ERRORS,
        )
    used = "sandwich" if robust else "classical"
    return at_least(
        "equal spread", p_value, SPREAD_P, f"p-value of noise as large everywhere; standard errors are {used}"
    )


def _columns_check(problem: Problem) -> list[Check]:
    """Whether the columns of X are independent, asked where they are not."""
    coordinates, names = problem.end, problem.rows.names
    if coordinates.null.shape[1] == 0:
        return []
    size = np.abs(coordinates.null).max(axis=1) * coordinates.unwhiten.std(axis=0)
    involved = np.flatnonzero(size > 1e-6 * size.max())
    named = ", ".join(names[j] for j in involved[:4]) + (" and others" if len(involved) > 4 else "")
    return [
        at_least(
            "independent columns",
            float(coordinates.rank),
            float(len(coordinates.shift)),
            f"the columns {named} are linearly dependent: their weights cannot be told apart; leave one out",
            About.COLUMNS,
        )
    ]
