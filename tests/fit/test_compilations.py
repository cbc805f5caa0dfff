"""Compilations do not grow with steps: a function traced anew at every step would be slow beyond use."""

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import normal, planted, teacher

from onehidden.activations import Activation
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.normal_equations import by_pairs
from onehidden.fit.parametrisation import Parametrisation
from onehidden.machine import double
from onehidden.run import Run
from onehidden.solvers import LevenbergMarquardt
from onehidden.starts import Wide
from onehidden.starts.wide import train


class Counted:
    """A tanh of its own whose function runs in Python only while JAX traces: every call is a trace."""

    def __init__(self):
        self.traces = 0

        def g(t):
            self.traces += 1
            return jnp.tanh(t)

        self.activation = Activation("counted tanh", g, lambda t: 1 - jnp.tanh(t) ** 2)


def steps_and_traces(k, d, most):
    """Accepted steps of a descent with so many at most, and how often its functions were traced."""
    counted = Counted()
    net, X = teacher("tanh", d, k), normal(600, d)
    form = Parametrisation(counted.activation, d, k)
    y = net.predict(X) + 0.1 * np.random.default_rng(0).standard_normal(600)
    start = form.pack(net.weights + 0.3, net.output)
    solver = LevenbergMarquardt(max_steps=most, predicted_rtol=0.0)
    solution = solver.solve(InMemoryLeastSquares(form, X, y), start)
    return solution.steps, counted.traces, by_pairs(form)


@pytest.mark.parametrize(("k", "d", "pairs"), [(2, 3, False), (24, 24, True)])
def test_a_descent_compiles_as_often_for_few_steps_as_for_many(k, d, pairs):
    few, traced, paired = steps_and_traces(k, d, 2)
    many, again, _ = steps_and_traces(k, d, 12)
    assert paired == pairs
    assert few == 2
    assert many >= 8
    assert 1 <= traced == again  # what must fail: one more trace for every step
    assert again < many


def test_a_student_compiles_as_often_for_few_chunks_as_for_many():
    found = []
    for steps in (500, 2000):
        counted, heard = Counted(), []
        problem = planted(teacher("tanh", 3, 2), normal(200, 3))
        run = Run(listener=heard.append)
        train(Parametrisation(counted.activation, 3, 8), Wide(8, steps, batch=50), problem, run, "student")
        found.append((len(heard), counted.traces))
    (few, traced), (many, again) = found
    assert (few, many) == (1, 4)
    assert 1 <= traced == again


def test_a_trace_is_counted():
    """What must fail: a function of a new shape at every step is traced at every step."""
    counted = Counted()
    form = Parametrisation(counted.activation, 3, 2)
    theta = np.random.default_rng(0).standard_normal(form.size)
    with double():
        for n in (200, 300, 600, 1200, 2400, 2000):  # rows are filled up to a power of two
            InMemoryLeastSquares(form, normal(n, 3), np.zeros(n)).loss(theta)
    assert counted.traces == 5
