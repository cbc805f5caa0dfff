"""What the papers ask about loss surfaces: curvature, basins, minima, pictures, plain descent."""

from onehidden.lab.basin import Basin, basin
from onehidden.lab.convexity import LocalConvexity, empirical_hessian, local_convexity, population_hessian
from onehidden.lab.gradient import Descent, descend, linear_rate
from onehidden.lab.landscape import LandscapeRecord, landscape
from onehidden.lab.perturbed import PerturbedDescent, perturbed_descent
from onehidden.lab.surfaces import Surface, angle_surface, slice_surface

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
    "linear_rate",
    "local_convexity",
    "perturbed_descent",
    "population_hessian",
    "slice_surface",
]
