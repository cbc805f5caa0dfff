"""What the data say of an answer: checks, standard errors, units, alternatives, one status."""

from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import Alternative
from onehidden.certify.gauge import curvature
from onehidden.certify.questions import certify
from onehidden.certify.status import Status
from onehidden.certify.units import UnitStatus, UnitVerdict

__all__ = ["Alternative", "Certificate", "Status", "UnitStatus", "UnitVerdict", "certify", "curvature"]
