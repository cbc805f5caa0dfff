"""Levenberg–Marquardt against optimistix, automatic differentiation, and products with J."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from onehidden import activations
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import Parametrisation, residuals, residuals_and_jacobian
from onehidden.fit.problem import descend
from onehidden.machine import double
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt, Status
from onehidden.solvers.levenberg import NormalModel


def setup(name="tanh", n=300, d=3, k=2, noise=0.0, **free):
    form = Parametrisation(activations.get(name), d, k, **free)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    truth = rng.standard_normal(form.size)
    with double():
        y = np.asarray(residuals(form, jnp.asarray(truth), X, np.zeros(n), np.ones(n)))
    return form, X, y + noise * rng.standard_normal(n), truth


GOOD = Status.EXACT, Status.STATIONARY, Status.NO_PROGRESS
GENERAL = {"bias": True, "skip": True, "symmetrised": True}


@pytest.mark.parametrize(
    ("name", "free"),
    [*((name, GENERAL) for name in activations.names()), ("tanh", {}), ("tanh", {"intercept": False})],
)
def test_jacobian_matches_automatic_differentiation(name, free):
    form, X, y, truth = setup(name, n=20, **free)
    with double():
        theta = jnp.asarray(truth)
        expected = jax.jacfwd(lambda t: residuals(form, t, X, y, np.ones(20)))(theta)
        r, J = residuals_and_jacobian(form, theta, X, y, np.ones(20))
        np.testing.assert_allclose(J, expected, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(r, residuals(form, theta, X, y, np.ones(20)), atol=1e-15)


def test_exact_data_are_fitted_to_rounding():
    form, X, y, truth = setup()
    start = truth + 0.1 * np.random.default_rng(1).standard_normal(form.size)
    solution = LevenbergMarquardt(floor=1e-29 * len(y)).solve(InMemoryLeastSquares(form, X, y), start)
    assert solution.status is Status.EXACT
    np.testing.assert_allclose(solution.theta, truth, atol=1e-12)
    assert np.abs(start - truth).max() > 0.05  # the start itself does not pass


def test_noisy_minimum_agrees_with_optimistix():
    optimistix = pytest.importorskip("optimistix")
    form, X, y, truth = setup(noise=0.1)
    ours = LevenbergMarquardt(predicted_rtol=0.0).solve(InMemoryLeastSquares(form, X, y), truth)
    assert ours.status in GOOD
    with double():
        data = jnp.asarray(X), jnp.asarray(y)
        theirs = optimistix.least_squares(
            lambda t, args: residuals(form, t, *args, jnp.ones(len(y))),
            optimistix.LevenbergMarquardt(rtol=1e-12, atol=1e-12),
            jnp.asarray(truth),
            args=data,
            max_steps=500,
        )
    np.testing.assert_allclose(ours.theta, np.asarray(theirs.value), rtol=1e-6, atol=1e-7)
    assert np.abs(ours.theta - truth).max() > 1e-3  # standing still does not pass


def test_an_ill_conditioned_matrix_gets_more_damping():
    """Columns nearly parallel to 1e-9: J'J is singular in float64, J is not."""
    rng = np.random.default_rng(3)
    J = rng.standard_normal((50, 3))
    J[:, 2] = J[:, 1] + 1e-9 * rng.standard_normal(50)
    target = np.array([1.0, 2.0, 3.0])

    class Linear:
        def loss(self, theta):
            return float(np.sum((J @ (theta - target)) ** 2))

        def normal_equations(self, theta, rough=False):
            r = J @ (theta - target)
            return J.T @ J, J.T @ r, float(r @ r)

    assert NormalModel(J.T @ J, np.ones(3), 1.0).step(1e-30) is None
    solution = LevenbergMarquardt(damping=1e-30).solve(Linear(), np.zeros(3))
    assert solution.loss < 1e-15
    np.testing.assert_allclose(solution.theta.sum(), target.sum(), atol=1e-6)


def test_normal_equations_that_are_not_finite_end_the_descent():
    class Broken:
        def loss(self, theta):
            return 1.0

        def normal_equations(self, theta, rough=False):
            return np.full((2, 2), np.nan), np.ones(2), 1.0

    assert LevenbergMarquardt().solve(Broken(), np.zeros(2)).status is Status.NO_PROGRESS


def test_limits_of_steps_and_time_end_a_descent():
    form, X, y, truth = setup()
    fit = InMemoryLeastSquares(form, X, y)
    assert LevenbergMarquardt(max_steps=1).solve(fit, truth + 0.5).status is Status.STEP_LIMIT
    late = Run(max_seconds=1e-9)
    theta, loss = descend(LevenbergMarquardt(), fit, truth + 0.5, late, "late", fit.n)
    np.testing.assert_array_equal(theta, truth + 0.5)
    assert loss == fit.loss(theta)
    assert LevenbergMarquardt().solve(fit, np.full(form.size, np.nan)).status is Status.NOT_FINITE


def states(solver, problem, state):
    """The states that follow, one for each step taken, the last one with its status."""
    while not solver.done(state):
        before, state = state.steps, solver.step(problem, state)
        if state.steps > before or solver.done(state):
            yield state


def test_a_descent_goes_on_from_a_kept_state_to_the_same_end():
    form, X, y, truth = setup(noise=0.1)
    fit, solver = InMemoryLeastSquares(form, X, y), LevenbergMarquardt(max_steps=30)
    start = truth + 0.3 * np.random.default_rng(2).standard_normal(form.size)
    whole = solver.solve(fit, start)
    seen = list(states(solver, fit, solver.init(fit, start)))
    assert [state.steps for state in seen][:3] == [1, 2, 3]
    kept = {name: np.asarray(value) for name, value in seen[2].to_arrays().items()}
    resumed = solver.init(fit, start, kept)
    assert not solver.done(resumed)
    *_, last = states(solver, fit, resumed)
    np.testing.assert_array_equal(last.theta, whole.theta)
    assert last.trace == whole.trace
    assert last.status is whole.status
    ended = {name: np.asarray(value) for name, value in last.to_arrays().items()}
    assert solver.done(solver.init(fit, start, ended))
    assert np.abs(seen[2].theta - whole.theta).max() > 1e-6  # the state itself is not the end


def test_descent_ends_when_two_steps_in_a_row_gain_too_little():
    class Valley:
        """A flat end: from theta = 10 down, (theta^2 + 1)^2 + 10 gains ever less."""

        def _residuals(self, theta):
            return np.array([theta[0] ** 2 + 1, np.sqrt(10.0)])

        def loss(self, theta):
            return float(np.sum(self._residuals(theta) ** 2))

        def normal_equations(self, theta, rough=False):
            r, J = self._residuals(theta), np.array([[2 * theta[0]], [0.0]])
            return J.T @ J, J.T @ r, float(r @ r)

    start = np.array([10.0])
    short, long = (
        LevenbergMarquardt(rtol=rtol, predicted_rtol=0.0).solve(Valley(), start) for rtol in (1e-3, 0.0)
    )
    drops = -np.diff(short.trace) / np.array(short.trace[:-1])
    assert short.steps < long.steps
    assert np.all(drops[-2:] < 1e-3)
    assert not np.any((drops[:-2] < 1e-3) & (drops[1:-1] < 1e-3))


@pytest.mark.parametrize("rough", [False, True])
def test_a_step_solves_the_damped_equations(rough):
    rng = np.random.default_rng(8)
    J, gradient = rng.standard_normal((400, 150)) * rng.uniform(0.1, 10, 150), rng.standard_normal(150)
    hessian = (J.T @ J).astype(np.float32 if rough else np.float64)
    damped = hessian + 0.1 * np.diag(np.diag(hessian))
    step, expected = (
        NormalModel(hessian, gradient, 1.0).step(0.1),
        -np.linalg.solve(damped.astype(float), gradient),
    )
    assert np.abs(step - expected).max() < (1e-4 if rough else 1e-12) * np.abs(expected).max()
    assert NormalModel(np.ones((150, 150)), gradient, 1.0).step(1e-16) is None  # of rank one: no digits left


class Operator:
    """A dense problem seen through products with its Jacobian only."""

    def __init__(self, form, X, y):
        self.form, self.rows, self.products = form, (X, y, np.ones(len(y))), 0

    def loss(self, theta):
        with double():
            return float(np.sum(np.asarray(residuals(self.form, theta, *self.rows)) ** 2))

    def linearise(self, theta):
        with double():
            self.residual, self.J = residuals_and_jacobian(self.form, theta, *self.rows)
        self.lengths = np.linalg.norm(self.J, axis=0)
        return self

    def jvp(self, step):
        self.products += 1
        return self.J @ step

    def vjp(self, residual):
        return self.J.T @ residual


def test_products_with_the_jacobian_lead_to_the_minimum_of_normal_equations():
    form, X, y, truth = setup(noise=0.1)
    start = truth + 0.1 * np.random.default_rng(1).standard_normal(form.size)
    problem = Operator(form, X, y)
    found = LevenbergMarquardt(damping=1e-4).solve(problem, start)
    wanted = LevenbergMarquardt().solve(InMemoryLeastSquares(form, X, y), start)
    assert found.status in GOOD
    assert problem.products > found.steps
    np.testing.assert_allclose(found.theta, wanted.theta, atol=1e-5)
    assert np.abs(start - wanted.theta).max() > 1e-2  # the start itself does not pass


def test_products_with_the_jacobian_fit_exact_data_to_rounding():
    form, X, y, truth = setup()
    start = truth + 0.05 * np.random.default_rng(1).standard_normal(form.size)
    found = LevenbergMarquardt(floor=1e-28 * len(y), damping=1e-6).solve(Operator(form, X, y), start)
    assert found.status is Status.EXACT
    np.testing.assert_allclose(found.theta, truth, atol=1e-11)


def test_a_parameter_without_a_column_is_not_moved():
    class Blind(Operator):
        def linearise(self, theta):
            super().linearise(theta)
            self.J = np.array(self.J)
            self.J[:, 0], self.lengths[0] = 0.0, 0.0
            return self

    form, X, y, truth = setup()
    start = truth + 0.05
    found = LevenbergMarquardt(max_steps=3).solve(Blind(form, X, y), start)
    assert found.theta[0] == start[0]
    assert found.loss < LevenbergMarquardt(max_steps=1).init(Blind(form, X, y), start).loss
