"""Nonlinear least squares: Levenberg–Marquardt over normal equations or over a linear operator."""

from onehidden.solvers.levenberg import Dense, LevenbergMarquardt, Status, damped_least_squares

__all__ = ["Dense", "LevenbergMarquardt", "Status", "damped_least_squares"]
