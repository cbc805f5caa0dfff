"""Iterative pruning: the true units stay, the others go, whatever the rows per step."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import FOUND, normal, planted, teacher, worst_error

from onehidden.machine import double
from onehidden.run import Run
from onehidden.starts import Thinned
from onehidden.starts.wide import iteratively_pruned, merged_units, train


class Watched:
    """Every training of a start: parametrisation, settings, where it began, its shares, where it ended.

    ``answer`` gives the parameters after the training in place of one.
    """

    def __init__(self, answer=None):
        self.calls, self.rounds, self.answer = [], [], answer

    def train(self, form, settings, problem, run, stage, begin, share):
        if self.answer is None:
            end = train(form, settings, problem, run, stage, begin, share)
        else:
            end = self.answer(len(self.calls), form, begin)
        self.calls.append((form, settings, begin, share, end))
        self.rounds.append(run.path[run.path.index("round") + 1])
        return end

    @property
    def last(self):
        """Parametrisation and parameters of the last network."""
        return self.calls[-1][0], self.calls[-1][-1]

    def found(self, problem, settings):
        with double():
            return iteratively_pruned(problem, settings, Run(), self.train)


def values(form, theta, Z):
    """The function of a network in double precision."""
    weights, output, bias, beta, constant = form.unpack(theta)
    with double():
        return np.asarray(form.g(Z @ weights.T + bias)) @ output + Z @ beta + constant


@pytest.mark.parametrize("name", ["relu", "tanh", "squared_relu"])
def test_a_network_keeps_its_function_when_it_is_made_narrower(name):
    """Nothing is lost with the units that are not there, and homogeneous ones end balanced."""
    net = teacher(name, 6, 4, bias=0.5)
    problem = planted(net, normal(800, 6))
    inner = problem.search_coordinates.inward(net)

    def network(call, form, begin):
        """Four units of no balanced scale, and many that are not there."""
        if call:
            return begin
        rows = np.zeros((form.k, form.d))
        rows[:4] = 3.0 * inner.weights
        more = form.k - 4
        return form.pack(rows, np.pad(inner.output, (0, more)), np.pad(inner.bias, (0, more)))

    watched = Watched(network)
    watched.found(problem, Thinned(64, even=(2,), weighted=(), rounds=1))
    (wide, *_, theta), (narrow, _, begun, _, _) = watched.calls
    assert (wide.k, narrow.k) == (64, 8)
    before, after = values(wide, theta, problem.Z), values(narrow, begun, problem.Z)
    np.testing.assert_allclose(after, before, atol=1e-9 * np.abs(before).max())
    weights, output, bias, *_ = narrow.unpack(begun)
    assert np.all(np.any(weights[:4] != 0, axis=1))
    assert not np.any(weights[4:])
    h = net.activation.homogeneity
    if h is not None:  # the least of |a|^2 + b^2 + w^2 at a given w |a|^h
        np.testing.assert_allclose(np.sum(weights**2, axis=1) + bias**2, h * output**2, rtol=1e-9)


def test_thinning_leaves_the_true_units_alone():
    """Two and a half samples per parameter: units still beside the true ones after even stages are gone."""
    net = teacher(d=12, k=10)
    problem = planted(net, normal(300, 12))
    settings = Thinned(160, steps=4000, stage_steps=2000, rounds=1)
    truth = problem.search_coordinates.inward(net).weights
    truth = truth / np.linalg.norm(truth, axis=1, keepdims=True)
    left = []
    for stages in (replace(settings, weighted=()), settings):
        watched = Watched()
        found = watched.found(problem, stages)
        units = merged_units(*watched.last)[0]
        left.append(len(units))
        cosine = np.abs(truth @ (units / np.linalg.norm(units, axis=1, keepdims=True)).T)
        assert cosine.max(axis=1).min() > 0.9
    assert left[0] > 20
    assert left[1] == 10
    assert found.loss < 1e-14
    assert worst_error(problem.search_coordinates.outward(found.network), net) < FOUND


@pytest.mark.parametrize(
    ("name", "turn", "free"),
    [
        ("relu", 1.0, True),
        ("relu", -1.0, True),  # with a skip the reverse of a unit is the same one
        ("squared_relu", 1.0, True),
        ("squared_relu", -1.0, False),  # without, it is another
    ],
)
def test_what_a_round_keeps_bears_little_decay_in_the_next(name, turn, free):
    net = teacher(name, 6, 4)
    problem = planted(net, normal(800, 6), noise=0.5)
    inner, rng = problem.search_coordinates.inward(net), np.random.default_rng(4)

    def network(call, form, begin):
        """The true units and weaker ones; in the second round what was begun with, or its reverse."""
        if call:
            return form.pack(turn * form.unpack(begin)[0], *form.unpack(begin)[1:])
        more = form.k - 4
        rows = np.vstack([inner.weights, rng.standard_normal((more, form.d))])
        return form.pack(rows, np.append(inner.output, 1e-2 * rng.choice([-1, 1], more)))

    watched = Watched(network)
    watched.found(problem, Thinned(9, even=(2,), weighted=(), rounds=2, free=0.2))
    assert watched.rounds == [0, 0, 1, 1]
    _, (_, _, _, plain, _), (form, _, begun, first, _), (_, _, _, later, _) = watched.calls
    np.testing.assert_array_equal(plain, np.ones(8))
    np.testing.assert_array_equal(first, [0.2] * 4 + [1.0] * 5)
    weights, output, *_ = form.unpack(begun)
    h = net.activation.homogeneity
    kept = weights[:4] / np.linalg.norm(weights[:4], axis=1, keepdims=True)
    truth = inner.weights / np.linalg.norm(inner.weights, axis=1, keepdims=True)
    assert np.abs(kept @ truth.T).max(axis=0).min() > 1 - 1e-9
    strength = np.abs(inner.output) * np.linalg.norm(inner.weights, axis=1) ** h
    found = np.abs(output[:4]) * np.linalg.norm(weights[:4], axis=1) ** h
    np.testing.assert_allclose(np.sort(found), np.sort(strength), rtol=1e-6)
    assert np.sum(later == 0.2) == (4 if free else 0)


def test_batches_will_do():
    net = teacher(d=8, k=5)
    problem = planted(net, normal(1000, 8))
    watched = Watched()
    found = watched.found(problem, Thinned(64, steps=3000, stage_steps=1000, batch=128))
    assert {settings.batch for _, settings, *_ in watched.calls} == {128}
    assert found.loss < 1e-14
    assert worst_error(problem.search_coordinates.outward(found.network), net) < FOUND


@pytest.mark.slow
def test_noise_does_not_make_every_round_of_thinning_go_on():
    """Units beside the true ones never all vanish then; two rounds that end at one loss are enough."""
    problem = planted(teacher(d=8, k=5), normal(1500, 8), noise=0.1)
    watched = Watched()
    watched.found(problem, Thinned(64, steps=2000, stage_steps=1000, weighted=(), rounds=6))
    assert sorted(set(watched.rounds)) == [0, 1]
