"""Nonlinear least squares: Levenberg–Marquardt over normal equations or over a linear operator.

A problem with few thousand parameters offers ``normal_equations`` (``Dense``); one whose J'J is too large
offers ``linearise`` with products J v and J' r (``MatrixFree``). ``damped_least_squares`` is one step of the
latter. Callers with a clock and a journal use ``onehidden.fit.problem.descend``.
"""

from onehidden.solvers.levenberg import LevenbergMarquardt, Status
from onehidden.solvers.linearised import Dense, damped_least_squares

__all__ = ["Dense", "LevenbergMarquardt", "Status", "damped_least_squares"]
