"""Certificate: checks, standard errors, one status, and how the status follows from the checks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onehidden.certify.reasons import sentence
from onehidden.checks import Check
from onehidden.network import OneHiddenNet
from onehidden.objectives.residuals import Form
from onehidden.recovery.record import ParameterRecord

EXACT_RMS = 1e-10  # residuals below this share of std(y) are rounding, not noise
STRUCTURE_P = 1e-4  # a right answer is called structured once in ten thousand
SPREAD_P = 1e-4  # noise of equal spread is called unequal once in ten thousand
ERRORS = ("auto", "classical", "robust")
CONSISTENT = "the residuals look like independent noise and the parameters are determined"
UNDETERMINED = {"identifiability", "smallest curvature", "weakest unit", "switched units"}


@dataclass(frozen=True)
class Certificate:
    """What the data say about a network; ``rms`` is its residual as a share of std(y)."""

    network: OneHiddenNet
    checks: list[Check]
    status: str
    message: str
    loss: float
    noise_variance: float
    standard_errors: ParameterRecord
    curvature: np.ndarray
    rms: float
    freedom: int

    @property
    def final(self) -> bool:
        """Whether no further start can do better: a fit to rounding, or units that g hides."""
        return self.rms <= EXACT_RMS or self.network.activation.polynomial

    @property
    def failed(self) -> set[str]:
        """Names of the checks that did not pass."""
        return {check.name for check in self.checks if not check.passed}

    @property
    def undetermined(self) -> bool:
        """Whether the units themselves, not the columns of X, leave some parameter open."""
        return bool(self.failed & UNDETERMINED)

    @property
    def settled(self) -> bool:
        """Whether another start has nothing to better: what else fails is a matter of the samples."""
        return self.final or not self.failed & {*UNDETERMINED, "fit", "gradient"}

    @property
    def clear(self) -> bool:
        """Settled, without two units that hardly a sample tells apart: local minima have such units, too."""
        return self.settled and (self.final or "units apart" not in self.failed)


def with_check(certificate: Certificate, check: Check) -> Certificate:
    """The certificate with one question more; a failure makes a consistent answer doubtful."""
    checks = [*certificate.checks, check]
    if check.passed or certificate.status not in ("exact", "consistent"):
        return replace(certificate, checks=checks)
    message = f"check failed: {check.name}; {check.advice}"
    return replace(certificate, checks=checks, status="doubtful", message=message)


def doubted(certificate: Certificate) -> Certificate:
    """What a fit that a single start came to leaves open is no statement about the data."""
    if certificate.status != "not identifiable" or "independent columns" in certificate.failed:
        return certificate
    message = (
        "the starts did not come to one answer, so the search may have failed rather than the data; in the "
        f"best answer {certificate.message}"
    )
    return replace(certificate, status="doubtful", message=message)


def verdict(checks: list[Check], exact: bool, form: Form, reasons: list[str]) -> tuple[str, str]:
    """The status that follows from the checks, and one sentence; ``reasons`` name what is left open."""
    failed = [c for c in checks if not c.passed]
    names = {c.name for c in failed}
    if form.activation.polynomial:
        name = form.activation.name
        return (
            "not identifiable",
            f"a {name} activation hides its units: sums of {name} units have many equal decompositions",
        )
    if "independent columns" in names:
        reasons = [next(c.advice for c in failed if c.name == "independent columns"), *reasons]
    open_ = names & {*UNDETERMINED, "units apart"}
    # Units of a network that misses something say nothing about the ones that made the data.
    if "independent columns" in names or (open_ and "fit" not in names):
        return "not identifiable", sentence(reasons)
    if failed:
        return "doubtful", f"check failed: {', '.join(c.name for c in failed)}; {failed[0].advice}"
    if exact:
        return "exact", "every sample is reproduced to rounding and the parameters are determined"
    return "consistent", CONSISTENT
