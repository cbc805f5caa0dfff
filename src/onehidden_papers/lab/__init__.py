"""What the papers ask about loss surfaces: curvature, minima, pictures, plain descent."""

from onehidden_papers.lab.convexity import empirical_hessian, population_hessian
from onehidden_papers.lab.descents import Descent, NewtonDescent, descend, newton_descent
from onehidden_papers.lab.landscape import LandscapeRecord, Surface, landscape, slice_surface

__all__ = [
    "Descent",
    "LandscapeRecord",
    "NewtonDescent",
    "Surface",
    "descend",
    "empirical_hessian",
    "landscape",
    "newton_descent",
    "population_hessian",
    "slice_surface",
]
