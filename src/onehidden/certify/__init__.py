"""Checks of a recovered network: curvature, structure left in residuals, landscapes, local convexity."""

from onehidden.certify.basin import basin
from onehidden.certify.convexity import local_convexity
from onehidden.certify.gauge import curvature
from onehidden.certify.landscape import landscape
from onehidden.certify.structure import structure_p_value
from onehidden.certify.surfaces import angle_surface, slice_surface

__all__ = [
    "angle_surface",
    "basin",
    "curvature",
    "landscape",
    "local_convexity",
    "slice_surface",
    "structure_p_value",
]
