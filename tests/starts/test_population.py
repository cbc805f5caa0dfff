"""The population start: children against their parents, and units that restarts do not find."""

import numpy as np
import pytest
from helpers import normal, one_sentence, planted, teacher, worst_error

import onehidden as oh
from onehidden.run import Run
from onehidden.starts import Population
from onehidden.starts.candidate import Candidate
from onehidden.starts.repair import best_units
from onehidden.starts.restarts import distinct


def test_the_best_units_of_both_parents_are_the_true_ones():
    net = teacher("relu", 6, 4, rows="uneven", output="uneven", bias=0.5)
    problem = planted(net, normal(200, 6))
    truth, rng = problem.search_coordinates.inward(net), np.random.default_rng(0)
    weights = np.vstack([rng.standard_normal((4, 6)), truth.weights])
    bias = np.append(rng.standard_normal(4), truth.bias)
    assert sorted(best_units(problem, weights, bias, 4)) == [4, 5, 6, 7]


def test_parents_have_losses_of_their_own():
    net = teacher(d=3, k=2)
    losses = [1.0, 1.0 + 1e-6, 2.0, 3.0]
    candidates = [Candidate(net, loss, "staged") for loss in losses]
    assert [one.loss for one in distinct(candidates, 2)] == [1.0, 2.0]


def test_a_population_finds_units_where_restarts_do_not():
    net = teacher("relu", 6, 6, seed=3, rows="uneven", output="uneven", bias=0.5)
    problem = planted(net, normal(100, 6, seed=4))  # 100 rows, 49 parameters
    heard = []
    (found,) = Population(members=32).propose(problem, Run(0, listener=heard.append))
    alone = list(oh.starts.Random(4).propose(problem, Run(0)))
    assert problem.rows.rounding.found(found.loss)
    assert not any(problem.rows.rounding.found(one.loss) for one in alone)
    assert worst_error(problem.search_coordinates.outward(found.network), net) < 1e-6
    generations = [record.step for record in heard if record.stage == "population"]
    assert set(range(max(generations) + 1)) <= set(generations)


@pytest.mark.parametrize("wrong", [{"members": 2}, {"generations": 0}])
def test_what_a_population_cannot_be_is_said_in_a_sentence(wrong):
    with pytest.raises(ValueError) as error:
        Population(**wrong)
    one_sentence(error, "members", "generation")
