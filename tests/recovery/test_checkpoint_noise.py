"""A checkpoint remembers every step of a noisy answer, and those of rows left out, each by its name."""

import numpy as np

import onehidden as oh
from onehidden.run import stream


def test_an_uncertified_answer_with_few_rows_is_the_same_with_and_without_a_checkpoint(tmp_path):
    draw = stream(3, "test", "checkpoint with noise")
    X = draw.standard_normal((60, 3))
    y = np.sin(3 * X[:, 0]) + 0.3 * draw.standard_normal(60)  # no network: the guard searches anew
    plain = oh.recover(X, y, 2)
    kept = oh.recover(X, y, 2, checkpoint=tmp_path / "steps")
    again = oh.recover(X, y, 2, checkpoint=tmp_path / "steps")
    assert not plain.converged
    for other in (kept, again):
        np.testing.assert_array_equal(plain.network.weights, other.network.weights)
        np.testing.assert_array_equal(plain.predict(X), other.predict(X))
