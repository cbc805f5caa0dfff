"""The least-squares problem of a network: rows, form, coordinates, normal equations; polish() ends it."""

from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.polish import Polished, polish
from onehidden.fit.problem import Problem
from onehidden.fit.rows import Rows
from onehidden.fit.samples import Samples

__all__ = ["Coordinates", "Form", "Polished", "Problem", "Rows", "Samples", "polish"]
