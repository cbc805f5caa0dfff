"""The catalogue: named teachers with exact truth and difficulty tags."""

from onehidden.problems.catalogue import get, names
from onehidden.problems.inputs import LAWS
from onehidden.problems.problem import Problem
from onehidden.problems.tables import TABLES

__all__ = ["LAWS", "TABLES", "Problem", "get", "names"]
