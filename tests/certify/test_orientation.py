"""Other orientations of the units, where noise leaves room for them."""

import numpy as np
from helpers import normal, planted, teacher

from onehidden import match
from onehidden.certify.equivalent import other_orientations
from onehidden.machine import double
from onehidden.run import Run


def crowded(noise):
    """Six units of two inputs: their orientations are hidden in the linear part."""
    output = np.random.default_rng(14).choice([-1.0, 1.0], 6)
    net = teacher(d=2, k=6, seed=14, rows="gaussian", output=output, bias=0.6)
    return planted(net, normal(2000, 2), noise=noise), net


def test_noise_leaves_other_orientations_that_differ_in_some_unit():
    problem, net = crowded(0.5)
    inner = problem.search_coordinates.inward(net)
    with double():
        others = other_orientations(problem, net, 4, Run())
    assert 0 < len(others) <= 4
    assert all(match(problem.search_coordinates.inward(other), inner).max_error > 0.1 for other in others)


def test_units_that_cannot_be_reversed_have_no_other_orientation():
    problem = planted(teacher("tanh", d=3, k=2), normal(500, 3), noise=0.5)
    with double():
        assert other_orientations(problem, problem.network(np.ones(problem.form.size)), 4, Run()) == []
