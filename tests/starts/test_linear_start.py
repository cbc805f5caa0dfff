"""The linear start: along the least-squares direction one unit in many inputs is found at once."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import normal, planted, teacher, worst_error

from onehidden.run import Run
from onehidden.starts import Linear
from onehidden.starts.linear import leading_directions
from onehidden.starts.plan import plan

D, N = 60, 600


def many_inputs(k, activation="relu"):
    net = teacher(activation, D, k, output=[1.0, -1.5][:k], bias=0.3)
    return net, planted(net, normal(N, D))


def test_the_first_direction_is_nearly_the_unit():
    net, problem = many_inputs(1)
    true = problem.begin.inward(net).weights[0]
    cosine = abs(leading_directions(problem)[0] @ true) / np.linalg.norm(true)
    # What a ReLU leaves of a linear fit is a quarter of its variance: error of the direction .36 d / n.
    assert cosine > 1 / np.sqrt(1 + 3 * 0.36 * D / N)
    assert cosine > 5 / np.sqrt(D)  # a random direction has one over the root of d


@pytest.mark.parametrize(("k", "activation"), [(1, "relu"), (2, "relu"), (1, "tanh")])
def test_one_or_two_units_in_many_inputs_are_found_at_once(k, activation):
    net, problem = many_inputs(k, activation)
    (found,) = Linear().propose(problem, Run())
    assert problem.rows.rounding.found(found.loss)
    assert worst_error(problem.begin.outward(found.network), net) < 1e-5


def test_the_race_looks_along_it_first_for_one_or_two_units():
    firsts = [plan(many_inputs(k)[1], "auto")[0].start.name for k in (1, 2)]
    assert firsts == ["linear", "linear"]
    wider = many_inputs(2)[1].with_width(3)
    assert "linear" not in {leg.start.name for leg in plan(wider, "auto")}
