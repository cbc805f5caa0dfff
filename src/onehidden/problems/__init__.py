"""The catalogue: named teachers with exact truth and difficulty tags."""

from onehidden.problems.catalogue import get, names
from onehidden.problems.problem import Problem

__all__ = ["Problem", "get", "names"]
