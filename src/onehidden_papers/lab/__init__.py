"""What the papers ask about loss surfaces: curvature, minima, pictures, plain descent."""

from onehidden_papers.lab.descents import descend, empirical_hessian, newton_descent
from onehidden_papers.lab.landscape import LandscapeRecord, landscape, slice_surface

__all__ = [
    "LandscapeRecord",
    "descend",
    "empirical_hessian",
    "landscape",
    "newton_descent",
    "slice_surface",
]
