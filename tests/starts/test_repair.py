"""The unit put in place of another is the one that lowers the sum of squares most, found in little memory."""

import tracemalloc

import numpy as np
import pytest
from helpers import normal, planted, teacher

from onehidden.starts.candidate import least_squares_columns
from onehidden.starts.repair import with_best_addition


def left(problem, weights, bias):
    """The sum of squares that a least-squares fit of these units leaves."""
    design = least_squares_columns(problem, weights, bias)
    y = problem.weighted(problem.y)
    return float(np.sum((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2))


@pytest.mark.parametrize("activation", ["relu", "softplus"])
def test_the_unit_added_does_not_depend_on_how_many_are_tried_at_a_time(activation):
    net = teacher(activation, d=4, k=3)
    problem = planted(net, normal(500, 4), noise=0.1)
    kept = np.random.default_rng(1).standard_normal((2, 4))
    found = []
    for entries in (1, 3000, 1 << 30):  # one unit, six, all
        rng = np.random.default_rng(2)
        found.append(with_best_addition(problem, kept, np.zeros(2), rng, entries=entries))
    for weights, bias in found[1:]:
        np.testing.assert_array_equal(weights, found[0][0])
        np.testing.assert_array_equal(bias, found[0][1])
    with_it = left(problem, *found[0])
    rng = np.random.default_rng(3)
    others = [left(problem, np.vstack([kept, rng.standard_normal(4)]), np.zeros(3)) for _ in range(20)]
    assert with_it < min(others)  # what must fail: any other unit


def test_proposals_are_tried_in_little_memory():
    problem = planted(teacher(d=2, k=1), normal(20_000, 2), noise=0.2)
    problem.Z, problem.y  # noqa: B018 - held by the problem
    tracemalloc.start()
    with_best_addition(problem, np.zeros((0, 2)), np.zeros(0), np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    assert 1 < peak < 30  # the columns of all proposals alone are 38 MiB, and there were four copies
