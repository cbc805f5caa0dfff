"""Checks of a recovered network: curvature, structure left in residuals."""

from onehidden.certify.gauge import curvature
from onehidden.certify.structure import structure_p_value

__all__ = [
    "curvature",
    "structure_p_value",
]
