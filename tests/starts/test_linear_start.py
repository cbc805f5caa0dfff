"""The linear start: along the least-squares direction one unit in many inputs is found at once."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import normal, planted, teacher, worst_error

from onehidden.run import Run
from onehidden.starts import Linear
from onehidden.starts.restarts import leading_directions
from onehidden.starts.schedule import Case, planned

D, N = 60, 600


def many_inputs(k, activation="relu"):
    net = teacher(activation, D, k, output=[1.0, -1.5][:k], bias=0.3)
    return net, planted(net, normal(N, D))


def test_the_first_direction_is_nearly_the_unit():
    net, problem = many_inputs(1)
    true = problem.search_coordinates.inward(net).weights[0]
    cosine = abs(leading_directions(problem)[0] @ true) / np.linalg.norm(true)
    # What a ReLU leaves of a linear fit is a quarter of its variance: error of the direction .36 d / n.
    assert cosine > 1 / np.sqrt(1 + 3 * 0.36 * D / N)
    assert cosine > 5 / np.sqrt(D)  # a random direction has one over the root of d


@pytest.mark.parametrize(("k", "activation"), [(1, "relu"), (2, "relu"), (1, "tanh")])
def test_one_or_two_units_in_many_inputs_are_found_at_once(k, activation):
    net, problem = many_inputs(k, activation)
    (found,) = Linear().propose(problem, Run())
    assert problem.rows.rounding.found(found.loss)
    assert worst_error(problem.search_coordinates.outward(found.network), net) < 1e-5


def test_the_schedule_begins_with_it_for_one_or_two_units():
    def names(problem):
        return [start.name for start, _ in planned("auto", Case(problem))]

    assert [names(many_inputs(k)[1])[0] for k in (1, 2)] == ["linear", "linear"]
    assert "linear" not in names(many_inputs(2)[1].with_width(3))
