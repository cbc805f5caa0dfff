"""Streams: named, repeatable, independent."""

import numpy as np
import pytest

from onehidden.streams import derived_seed, stream


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
