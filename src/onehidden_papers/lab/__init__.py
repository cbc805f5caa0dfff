"""What the papers ask about loss surfaces: curvature, minima, pictures, plain descent."""

from onehidden_papers.lab.convexity import empirical_hessian, population_hessian
from onehidden_papers.lab.descents import Descent, descend
from onehidden_papers.lab.landscape import LandscapeRecord, Surface, angle_surface, landscape, slice_surface
from onehidden_papers.lab.stochastic import PerturbedDescent, perturbed_descent

__all__ = [
    "Descent",
    "LandscapeRecord",
    "PerturbedDescent",
    "Surface",
    "angle_surface",
    "descend",
    "empirical_hessian",
    "landscape",
    "perturbed_descent",
    "population_hessian",
    "slice_surface",
]
