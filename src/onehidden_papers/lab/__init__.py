"""What the papers ask about loss surfaces: curvature, basins, minima, pictures, plain descent."""

from onehidden_papers.lab.convexity import (
    LocalConvexity,
    empirical_hessian,
    local_convexity,
    population_hessian,
)
from onehidden_papers.lab.descents import Basin, Descent, basin, descend
from onehidden_papers.lab.landscape import LandscapeRecord, Surface, angle_surface, landscape, slice_surface
from onehidden_papers.lab.stochastic import PerturbedDescent, perturbed_descent

__all__ = [
    "Basin",
    "Descent",
    "LandscapeRecord",
    "LocalConvexity",
    "PerturbedDescent",
    "Surface",
    "angle_surface",
    "basin",
    "descend",
    "empirical_hessian",
    "landscape",
    "local_convexity",
    "perturbed_descent",
    "population_hessian",
    "slice_surface",
]
