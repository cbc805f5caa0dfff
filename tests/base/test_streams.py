"""Streams: named, repeatable, independent."""

import numpy as np
import pytest
from helpers import problem_of

import onehidden as oh
from onehidden.run import Run, derived_seed, stream
from onehidden.starts import Random


def test_the_same_words_give_the_same_numbers():
    assert np.array_equal(stream(3, "restart", 1).random(5), stream(3, "restart", 1).random(5))
    assert derived_seed(3, "law") == derived_seed(3, "law") < 2**31


def test_streams_differ_by_seed_and_by_every_word():
    draws = [
        stream(3, "restart", 1),
        stream(4, "restart", 1),
        stream(3, "restart", 2),
        stream(3, "restart", "1"),
        stream(3, "teacher", 1),
        stream((3, 1), "restart"),
        stream(3, "restart"),
        np.random.default_rng([3, 1]),
        np.random.default_rng(3),
    ]
    first = [generator.standard_normal() for generator in draws]
    assert len(set(first)) == len(draws)


def test_streams_of_one_seed_are_uncorrelated():
    a, b = stream(0, "teacher").standard_normal(20_000), stream(0, "restart", 0).standard_normal(20_000)
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(20_000)
    assert abs(np.corrcoef(a, a)[0, 1]) > 0.99  # a shared stream would show


def test_a_stream_without_a_name_is_refused():
    with pytest.raises(ValueError, match="name"):
        stream(0)


@pytest.mark.parametrize("name", ["demo", "gaussian-relu-signs", "gaussian-relu-biased", "iris-relu-3"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_search_is_never_handed_the_teacher_of_its_own_seed(name, seed):
    """Teachers, data and solvers share no stream: restarts begin as far from the truth as any random rows."""
    X, y, net = oh.problems.get(name).sample(None if name.startswith("iris") else 500, seed)
    problem = problem_of(X, y, net.activation, net.n_hidden, bool(np.any(net.bias)))
    truth = problem.search_coordinates.inward(net).weights
    drawn = [one.network.weights for one in Random(8, steps=0).propose(problem, Run(seed))]
    assert len(drawn) == 8
    for rows in drawn:
        assert closest_angle(rows, truth) > 1e-3
    # what must fail: the rows of the teacher, however scaled and wherever they stand
    assert closest_angle(2.0 * truth[::-1], truth) < 1e-6


def closest_angle(rows, truth):
    """The least over pairs of the sine between a row and a true one."""
    a, b = (m / np.linalg.norm(m, axis=1, keepdims=True) for m in (rows, truth))
    return float(np.sqrt(np.maximum(1 - (a @ b.T) ** 2, 0)).min())
