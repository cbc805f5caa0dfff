"""The catalogue: named teachers with exact truth and difficulty tags."""

from onehidden_papers.problems.catalogue import LAWS, TABLES, get, names
from onehidden_papers.problems.problem import Problem

__all__ = ["LAWS", "TABLES", "Problem", "get", "names"]
