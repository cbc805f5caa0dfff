"""How to descend."""

from onehidden.solvers.levenberg import LeastSquares, LevenbergMarquardt, Solution, State, solution
from onehidden.solvers.status import Status

__all__ = ["LeastSquares", "LevenbergMarquardt", "Solution", "State", "Status", "solution"]
