"""A wide network on few samples: the true units stay, the others go, whatever the rows per step."""

import pytest
from helpers import FOUND, normal, planted, teacher, worst_error

from onehidden.machine import double
from onehidden.run import Run
from onehidden.starts import Thinned


@pytest.mark.parametrize("batch", [None, 128])
def test_pruning_leaves_the_true_units_alone(batch):
    """Two and a half samples per parameter; batches will do with more."""
    net = teacher(d=12, k=10)
    problem = planted(net, normal(300 if batch is None else 1000, 12))
    with double():
        (found,) = Thinned(steps=4000, batch=batch).propose(problem, Run())
    assert found.origin == "thinned" or found.loss < 1e-14
    assert found.loss < 1e-14
    assert worst_error(problem.search_coordinates.outward(found.network), net) < FOUND
