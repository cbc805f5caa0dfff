"""No answer is worse than the linear function its form can be, however little time there was."""

import numpy as np
import pytest
from helpers import teacher

import onehidden as oh
from onehidden.fit.problem import Optimum, linear_network
from onehidden.machine import in_double
from onehidden.options import Options
from onehidden.recovery.line import no_worse_than_linear, with_linear_units
from onehidden.recovery.solve import problem_of
from onehidden.recovery.target import checked_samples
from onehidden.run import Run, stream

DEFAULTS = dict(intercept=True, score="auto", start="auto", seed=0, errors="auto", progress=False)


def linear_problem(name, k, bias=True):
    draw = stream(0, "test", "no worse", name)
    X = 5 + draw.standard_normal((300, 3))
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.1 * draw.standard_normal(300)
    options = Options(hidden=k, activation=name, bias=bias, max_seconds=None, **DEFAULTS)
    design = np.column_stack([np.ones(300), X])
    best = float(np.mean((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2))
    return problem_of(checked_samples(X, y, None), options), X, y, best


@pytest.mark.parametrize("name", ["relu", "tanh", "gelu", "sigmoid", "squared_relu", "leaky_relu", "abs"])
@pytest.mark.parametrize("k", [1, 3])
@in_double
def test_a_unit_of_any_activation_can_be_the_linear_fit(name, k):
    problem, X, y, best = linear_problem(name, k)
    net = with_linear_units(teacher(name, 3, k, 1), linear_network(problem), problem)
    # What bends is 1e-4 of what is linear, its square 1e-8 of var(y); the linear fit leaves 2e-3 of that.
    assert np.mean((net.predict(X) - y) ** 2) <= best * (1 + 1e-3)
    assert best < 0.01 * np.var(y)  # a constant is a hundred times worse


@in_double
def test_an_answer_worse_than_linear_is_replaced_and_a_better_one_kept():
    problem, X, y, best = linear_problem("relu", 2)
    worse = Optimum(teacher("relu", 3, 2, 2), 40.0)
    found = no_worse_than_linear(worse, problem, Run())
    assert np.mean((found.network.predict(X) - y) ** 2) <= best * (1 + 1e-3)
    assert found.mean_square * y.var() == pytest.approx(best, rel=0.05)  # six more parameters gain 2 %
    better = Optimum(worse.network, 1e-9)
    assert no_worse_than_linear(better, problem, Run()) is better


def test_no_time_at_all_still_gives_the_linear_fit():
    draw = stream(1, "test", "no time")
    X = draw.standard_normal((400, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    design = np.column_stack([np.ones(400), X])
    best = np.mean((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2)
    r = oh.recover(X, y, 3, activation="gelu", max_seconds=1e-3)
    assert r.loss <= best * (1 + 1e-3)
    assert r.status == "doubtful"


@in_double
def test_the_loss_of_a_linear_function_is_that_of_its_predictions():
    problem, _, y, best = linear_problem("relu", 2)
    mean = float(np.mean(problem.row_losses(linear_network(problem))))
    assert mean == pytest.approx(best / np.var(y), rel=1e-9)
    assert mean < 0.01  # that of a constant is one
