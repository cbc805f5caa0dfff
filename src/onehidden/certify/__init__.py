"""The certificate of an answer: checks, standard errors, units, alternatives, one status."""

from onehidden.certify.certificate import Alternative, AlternativeKind, Certificate, Status
from onehidden.certify.evaluate import certify
from onehidden.certify.levels import Level
from onehidden.certify.units import UnitStatus, UnitVerdict

__all__ = [
    "Alternative",
    "AlternativeKind",
    "Certificate",
    "Level",
    "Status",
    "UnitStatus",
    "UnitVerdict",
    "certify",
]
