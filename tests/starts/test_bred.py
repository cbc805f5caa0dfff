"""A child has the units of its parents that fit best together."""

import numpy as np
from helpers import normal, planted, teacher

from onehidden.run import Run
from onehidden.starts.bred import bred
from onehidden.starts.candidate import complete, refine, search_form


def half_right(problem, net, right, seed):
    """A candidate that has some true units and random ones in place of the others, not descended."""
    form, rng = search_form(problem), np.random.default_rng(seed)
    weights, bias = rng.standard_normal(net.weights.shape), rng.standard_normal(net.n_hidden)
    inside = problem.begin.inward(net)
    weights[right], bias[right] = inside.weights[right], inside.bias[right]
    return refine(problem, form, complete(problem, form, weights, bias), Run(), "half", max_steps=0)


def test_a_child_of_two_halves_is_the_whole():
    net = teacher("relu", d=6, k=4, output=[1.0, -1.0, 2.0, -2.0], bias=[0.3, -0.2, 0.1, 0.4])
    problem = planted(net, normal(400, 6))
    first, second = half_right(problem, net, [0, 1], 1), half_right(problem, net, [2, 3], 2)
    child = bred(problem, [first, second], Run())
    assert min(first.loss, second.loss) > 1e-3
    assert problem.rows.rounding.found(child.loss)
    assert bred(problem, [first], Run()) is first  # nobody to mix with


def test_a_child_that_is_no_better_is_not_taken():
    net = teacher("tanh", d=3, k=2)
    problem = planted(net, normal(300, 3), noise=0.3)
    form, inside = search_form(problem), problem.begin.inward(net)
    theta = complete(problem, form, inside.weights, np.zeros(2))
    found = refine(problem, form, theta, Run(), "truth", 200)
    assert bred(problem, [found, found], Run()) is found
