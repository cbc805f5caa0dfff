"""Intervals by profile likelihood, where the likelihood is far from quadratic and the delta method is poor.

For a quantity h with estimate h_0 and standard error s, and L(c) the least loss (or deviance) of a network
with h = c, the interval holds the c with

    kappa (L(c) - L(h_0)) <= t^2,    kappa = (g' H^+ g) / s^2,

g the gradient of h, H half the Hessian of the loss and t Student's quantile. kappa brings the curvature of L
to the standard error, be it classical, robust or by group; of classical errors it is one over the noise
variance.

The networks with h = c are met as minima of L + W (h - c')^2: each is the best with its own value of h,
whatever W and c' are. Parameters move along a root of their covariance, in which each has the error one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq

from onehidden.fit.least_squares import FisherScoring, InMemoryLeastSquares
from onehidden.fit.parametrisation import roots
from onehidden.fit.shared_noise import SharedNoise, SharedNoiseLeastSquares
from onehidden.network import OneHiddenNet
from onehidden.recovery.prediction import Derived, fitted_parameters, quantile_of
from onehidden.recovery.target import inputs_of, read_target
from onehidden.solvers import LevenbergMarquardt

if TYPE_CHECKING:
    from onehidden.recovery.record import Recovery


def profiled(
    record: Recovery,
    quantity: Callable[[OneHiddenNet], Any],
    wald: Derived,
    X: object,
    y: object,
    of_rows: dict[str, Any],
) -> Derived:
    """A quantity with its interval by profile likelihood, see ``Recovery.derive``."""
    profile = Profile(record, quantity, _loss(record, X, y, of_rows))
    ends = [profile.interval(place, wald.level, error) for place, error in enumerate(np.ravel(wald.error))]
    lower, upper = (np.reshape(one, wald.estimate.shape) for one in np.transpose(ends))
    return replace(wald, lower=lower, upper=upper)


def _loss(record: Recovery, X: object, y: object, of_rows: dict[str, Any]) -> Any:
    """The loss of the fit over its rows, which are read anew."""
    if record.network.output.ndim == 2:
        raise ValueError("intervals by profile likelihood are those of one output: leave X and y out")
    known = {} if record.family is None else {"family": record.family.name, "link": record.family.link}
    target = read_target(inputs_of(record, X), y, **known, **of_rows)
    form, theta, _ = fitted_parameters(record)
    rows = target.samples
    if record.family is not None:
        fit: Any = FisherScoring(form, rows.X, rows.y, record.family, rows.weight, target.offset)
    elif rows.groups is not None and record.group_variance > 0:
        ratio = record.group_variance / (record.noise_variance - record.group_variance)
        shared = SharedNoise(rows.groups, roots(rows.weight, rows.n), ratio)
        fit = SharedNoiseLeastSquares(form, rows.X, rows.y, rows.weight, shared)
    else:
        fit = InMemoryLeastSquares(form, rows.X, rows.y, rows.weight)
    plain = rows.share @ (record.network.predict(rows.X) - rows.y) ** 2
    loss = plain if record.family is None else fit.loss(theta) / rows.n
    if not np.isclose(loss, record.loss, rtol=1e-5):
        raise ValueError(
            "these are not the rows of the fit: give X, y, weights, offset and groups as they were"
        )
    return fit


class Profile:
    """The loss about a fit, and the best networks with other values of a quantity."""

    def __init__(self, record: Recovery, quantity: Callable[[OneHiddenNet], Any], fit: Any) -> None:
        self._record, self._quantity, self._fit = record, quantity, fit
        self._form, self._theta, _ = fitted_parameters(record)
        assert record.covariance is not None
        size = np.sqrt(np.diag(record.covariance))
        size = np.where(size > 0, size, 1.0)
        value, vector = np.linalg.eigh(record.covariance / np.outer(size, size))
        kept = value > 1e-10 * value[-1]  # the others are not free: the scale of a homogeneous unit
        self._factor = size[:, None] * vector[:, kept] * np.sqrt(value[kept])
        self._origin = np.zeros(self._factor.shape[1])
        self._place, self._weight, self._wanted = 0, 0.0, 0.0

    def value(self, u: Float[np.ndarray, " f"]) -> float:
        """The quantity at parameters u standard errors from the fit."""
        weights, output, bias, linear, intercept = self._form.unpack(self._theta + self._factor @ u)
        degree = self._form.activation.homogeneity
        if degree is not None:  # rows keep their length
            length = np.linalg.norm(weights, axis=1) / np.linalg.norm(self._record.network.weights, axis=1)
            weights, output, bias = weights / length[:, None], output * length**degree, bias / length
        net = OneHiddenNet(weights, output, bias, intercept, self._form.activation, linear)
        return float(np.ravel(np.asarray(self._quantity(net), float))[self._place])

    def slope(self, u: Float[np.ndarray, " f"], step: float = 1e-4) -> Float[np.ndarray, " f"]:
        """Its gradient, by central differences."""
        return np.array([self.value(u + e) - self.value(u - e) for e in step * np.eye(len(u))]) / (2 * step)

    def loss(self, theta: Float[np.ndarray, " f"]) -> float:
        """The loss, and the pull towards the wanted value."""
        with np.errstate(all="ignore"):
            away = self.value(theta) - self._wanted
            return self._fit.loss(self._theta + self._factor @ theta) + self._weight * away**2

    def normal_equations(
        self, theta: Float[np.ndarray, " f"], rough: bool = False
    ) -> tuple[Float[np.ndarray, "f f"], Float[np.ndarray, " f"], float]:
        """Half the Hessian, half the gradient and the loss."""
        hessian, gradient, loss = self._fit.normal_equations(self._theta + self._factor @ theta)
        hessian, gradient = self._factor.T @ hessian @ self._factor, self._factor.T @ gradient
        slope, away = self.slope(theta), self.value(theta) - self._wanted
        pull = self._weight * slope
        return hessian + np.outer(pull, slope), gradient + away * pull, loss + self._weight * away**2

    def interval(self, place: int, level: float, error: float) -> tuple[float, float]:
        """Ends of the interval of one number of the quantity; infinite where the likelihood does not fall."""
        self._place, self._weight = place, 0.0
        hessian, _, least = self.normal_equations(self._origin)
        slope, estimate = self.slope(self._origin), self.value(self._origin)
        spread = float(slope @ np.linalg.pinv(hessian, rcond=1e-12, hermitian=True) @ slope)
        if not (error > 0 and spread > 0):
            return estimate, estimate
        self._weight = 100 / spread
        freedom = self._record.mean_freedom((slope @ np.linalg.pinv(self._factor))[None])
        reach = float(quantile_of(level, freedom)[0])
        low, high = (self._end(side, estimate, error, reach, spread, least) for side in (-1, 1))
        return low, high

    def _end(
        self, side: int, estimate: float, error: float, reach: float, spread: float, least: float
    ) -> float:
        """Where the root of the scaled rise of the loss is ``reach``, on one side of the estimate."""
        near, solver = {0.0: self._origin}, LevenbergMarquardt(max_steps=50, damping=1e-3, rtol=1e-9)

        @cache
        def beyond(distance: float) -> float:
            self._wanted = estimate + side * distance * error
            begin = near[max(key for key in near if key <= distance)]
            near[distance] = u = solver.solve(self, begin).theta
            rise = self._fit.loss(self._theta + self._factor @ u) - least
            return np.sqrt(max(rise * spread, 0.0)) / error - reach

        far = reach
        while beyond(far) < 0:
            far *= 2
            if far > 50 * reach:  # as good as none
                return side * np.inf
        brentq(beyond, 0.0 if far == reach else far / 2, far, xtol=1e-5)
        return self.value(near[min(near, key=lambda distance: abs(beyond(distance)))])
