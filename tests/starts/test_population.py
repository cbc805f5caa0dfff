"""The population start: children against their parents, and units that restarts do not find."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import normal, one_sentence, planted, teacher, worst_error

import onehidden as oh
from onehidden.fit.samples import Samples
from onehidden.run import Run
from onehidden.starts import Population
from onehidden.starts.batch import Networks, evaluated, networks, table
from onehidden.starts.candidate import Candidate, complete, search_fit, search_form
from onehidden.starts.repair import best_units
from onehidden.starts.restarts import distinct


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_loss_of_a_batch_is_that_of_least_squares(activation):
    net = teacher(activation, 4, 3, rows="uneven", output="uneven", bias=0.5)
    weight = np.random.default_rng(5).uniform(0.5, 1.5, 60)
    problem = planted(net, normal(60, 4))
    problem = replace(problem, rows=Samples(problem.samples.X, problem.samples.y, weight / weight.mean()))
    form = search_form(problem)
    planes = np.random.default_rng(3).standard_normal((4, 3, 5))
    found = np.asarray(evaluated(form, table(problem, form), planes.astype(np.float32)).loss)
    for plane, loss in zip(planes, found, strict=True):
        theta = complete(problem, form, plane[:, :4], plane[:, 4])
        assert loss == pytest.approx(search_fit(problem, form).loss(theta) / problem.n, rel=1e-3)
        assert loss > 1e-3


def test_networks_are_sorted_and_finite():
    planes = np.arange(5.0).reshape(5, 1, 1)
    found = networks(planes, np.array([3.0, np.nan, 1.0, 1.5, 2.0]))
    assert found.planes.ravel().tolist() == [2.0, 3.0, 4.0, 0.0]
    both = found.best(1).joined(Networks(planes[:1], np.array([0.5])))
    assert both.loss.tolist() == [0.5, 1.0]


def test_the_best_units_of_both_parents_are_the_true_ones():
    net = teacher("relu", 6, 4, rows="uneven", output="uneven", bias=0.5)
    problem = planted(net, normal(200, 6))
    truth, rng = problem.search_coordinates.inward(net), np.random.default_rng(0)
    weights = np.vstack([rng.standard_normal((4, 6)), truth.weights])
    bias = np.append(rng.standard_normal(4), truth.bias)
    assert sorted(best_units(problem, search_form(problem), weights, bias, 4)) == [4, 5, 6, 7]


def test_parents_have_losses_of_their_own():
    net = teacher(d=3, k=2)
    losses = [1.0, 1.0 + 1e-6, 2.0, 3.0]
    candidates = [Candidate(net, loss, "staged", net.weights, net.bias) for loss in losses]
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
