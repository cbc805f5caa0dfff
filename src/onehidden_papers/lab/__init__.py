"""What the papers ask about loss surfaces: curvature, minima, pictures, plain descent."""

from onehidden_papers.lab.convexity import empirical_hessian, population_hessian
from onehidden_papers.lab.descents import Descent, NewtonDescent, descend, saddle_free_newton
from onehidden_papers.lab.landscape import LandscapeRecord, Surface, landscape, slice_surface

__all__ = [
    "Descent",
    "LandscapeRecord",
    "NewtonDescent",
    "Surface",
    "descend",
    "empirical_hessian",
    "landscape",
    "population_hessian",
    "saddle_free_newton",
    "slice_surface",
]
