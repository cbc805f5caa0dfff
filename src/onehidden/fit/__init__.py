"""The least-squares problem of a network: rows, parametrisation, coordinates, and its final optimisation."""

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Optimum, Problem, optimise
from onehidden.fit.samples import Rows, Samples

__all__ = ["Coordinates", "Optimum", "Parametrisation", "Problem", "Rows", "Samples", "optimise"]
