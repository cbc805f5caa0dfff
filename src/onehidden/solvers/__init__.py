"""How to descend."""

from onehidden.solvers.levenberg import LevenbergMarquardt, Solution
from onehidden.solvers.status import Status

__all__ = ["LevenbergMarquardt", "Solution", "Status"]
