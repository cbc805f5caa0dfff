"""The score test for one more unit has its size and power for every noise; rivals are compared row by row."""

import tracemalloc

import numpy as np
import pytest
from scipy.stats import binom

from onehidden import activations
from onehidden.certify.score_test import ErrorVectors, UnitSearch, Whitening, score_test
from onehidden.run import stream

NOISES = ("equal", "unequal", "t3")


def errors(draw, Z, noise):
    if noise == "t3":
        return draw.standard_t(3, len(Z)) / np.sqrt(3)
    e = draw.standard_normal(len(Z))
    return e * np.exp(0.8 * Z[:, 0] - 0.64) if noise == "unequal" else e


def constant(y):
    return np.ones((len(y), 1)), y - y.mean()


def linear(Z, y):
    J = np.column_stack([np.ones(len(y)), Z])
    return J, y - J @ np.linalg.lstsq(J, y, rcond=None)[0]


@pytest.mark.parametrize("noise", NOISES)
def test_pure_noise_asks_for_no_unit(noise):
    runs, p_values = 50, []
    for seed in range(runs):
        draw = stream(seed, "test", "pure noise", noise)
        Z = draw.standard_normal((200, 8))
        p_values.append(score_test(*constant(errors(draw, Z, noise)), Z, "relu", True, seed).p_value)
    # Rejections at a true level are binomial; a rule that rejects twice as often as it says at .05, as a
    # likelihood ratio here nearly always does, fails the first bound.
    assert np.sum(np.array(p_values) < 0.05) <= binom.isf(1e-3, runs, 0.05)
    assert np.sum(np.array(p_values) < 1e-3) <= binom.isf(1e-4, runs, 1e-3)
    assert np.median(p_values) > 0.25  # and the p-values are not all at the edge


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", ["relu", "tanh", "softplus", "abs"])
def test_a_planted_unit_is_seen_beyond_a_linear_function(name, noise):
    draw = stream(3, "test", "planted", noise)
    Z = draw.standard_normal((600, 6))
    a = np.array([0.8, 0.6, 0, 0, 0, 0]) * 2
    unit = activations.get(name)(Z @ a + 0.5)
    y = Z[:, 2] + unit / unit.std() + 0.3 * errors(draw, Z, noise)
    J, r = linear(Z, y)
    found = score_test(J, r, Z, name, True, 0, variance=y.var())
    assert found.evaluated
    assert found.p_value < 1e-4  # the same unit on a residual of random signs is nothing:
    flipped = r * draw.choice([-1.0, 1.0], len(r))
    flipped -= J @ np.linalg.lstsq(J, flipped, rcond=None)[0]
    assert score_test(J, flipped, Z, name, True, 0).p_value > 1e-3
    cosine = abs(found.direction @ a) / np.linalg.norm(found.direction) / np.linalg.norm(a)
    assert cosine > 0.8  # a random direction in six dimensions: .33 on average
    assert 0 < found.gain <= r.var() / y.var()
    assert found.detectable < 1


def test_a_missing_unit_is_asked_for_and_a_complete_network_is_not():
    draw = stream(1, "test", "network")
    Z = draw.standard_normal((500, 5))
    A, w, b = draw.standard_normal((2, 5)), np.array([1.0, -1.0]), np.array([0.2, -0.3])

    def tangent(units):
        t = Z @ A[units].T + b[units]
        slope = (t > 0) * w[units]
        moved = (slope[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)
        return np.column_stack([moved, slope, np.maximum(t, 0), np.ones(len(Z))])

    y = np.maximum(Z @ A.T + b, 0) @ w + 0.3 * draw.standard_normal(500)
    for units, complete in ((slice(0, 2), True), (slice(0, 1), False)):
        J = tangent(units)
        r = y - J @ np.linalg.lstsq(J, y, rcond=None)[0]
        p_value = score_test(J, r, Z, "relu", True, 0).p_value
        assert (p_value > 0.01) if complete else (p_value < 1e-4)


def test_units_of_measurement_do_not_matter():
    draw = stream(2, "test", "units")
    Z = draw.standard_normal((300, 4))
    y = np.maximum(Z[:, 0] + 0.3 * Z[:, 1], 0) + draw.standard_normal(300)
    plain = score_test(*linear(Z, y), Z, "relu", True, 5, variance=y.var())
    moved = Z * [1e4, 1, 1e-3, 10] + [1e5, 0, 2, -3]
    scaled = score_test(*linear(moved, 1e3 * y), moved, "relu", True, 5, variance=1e6 * y.var())
    # Whitened axes are the same up to signs and order, so that the random units differ: p-values agree as
    # those of two searches do, within the error of 199 draws; an unwhitened search would see one column only.
    assert abs(np.log(plain.p_value / scaled.p_value)) < 2.5
    assert scaled.detectable == pytest.approx(plain.detectable, rel=0.3)


def test_all_rows_count_when_directions_are_searched_on_some():
    draw = stream(4, "test", "rows")
    Z = draw.standard_normal((6000, 3))
    y = Z[:, 1] + 0.25 * np.abs(Z[:, 0]) + draw.standard_normal(6000)
    J, r = linear(Z, y)
    everything = score_test(J, r, Z, "relu", True, 0)
    some = score_test(lambda rows: J[rows], r, Z, "relu", True, 0, effort=1e6)
    # The thirds alone have a third of the score each.
    thirds = [slice(i, i + 2000) for i in range(0, 6000, 2000)]
    alone = [score_test(J[t], r[t], Z[t], "relu", True, 0).p_value for t in thirds]
    assert some.p_value < 1e-6 < np.sqrt(np.median(alone))
    assert everything.p_value < 1e-6


def test_search_does_no_worse_than_the_planted_direction():
    draw = stream(6, "test", "search")
    Z = draw.standard_normal((500, 8))
    f = np.maximum(Z[:, 0] + 0.4, 0)
    e = f - f.mean() + 0.5 * draw.standard_normal(500)
    e -= e.mean()
    span = np.full((500, 1), 500**-0.5, np.float32)
    ones = np.ones(500, np.float32)
    rows = ErrorVectors(Whitening.of(Z, True)(Z), span, e[:, None].astype(np.float32), ones, ones)
    found = UnitSearch().best_units(rows, activations.get("relu"), True, stream(0, "test"))
    centred = f - f.mean()
    planted = (centred @ e) ** 2 / (centred @ centred)
    assert found.score[0] > 0.97 * planted
    other = np.maximum(Z[:, 1], 0) - np.maximum(Z[:, 1], 0).mean()
    assert (other @ e) ** 2 / (other @ other) < 0.1 * planted


def test_a_test_without_enough_data_is_not_evaluated():
    draw = stream(7, "test", "not asked")
    Z, y = draw.standard_normal((30, 5)), draw.standard_normal(30)
    for result in (
        score_test(np.ones((30, 1)), np.zeros(30), Z, "relu", True, 0),  # nothing left
        score_test(draw.standard_normal((30, 17)), y, Z, "relu", True, 0),  # too few rows
        score_test(*linear(Z, y), Z, "linear", True, 0),  # a unit the model has already
    ):
        assert not result.evaluated
        assert result.reason
        assert np.isnan(result.p_value)
    assert score_test(*constant(y), Z, "relu", True, 0).evaluated


def test_same_seed_same_answer():
    draw = stream(8, "test", "seed")
    Z, y = draw.standard_normal((100, 3)), draw.standard_normal(100)
    first, again, other = (score_test(*constant(y), Z, "tanh", False, s).p_value for s in (1, 1, 2))
    assert first == again != other


def test_a_weighted_row_counts_as_so_many_rows():
    draw = stream(11, "test", "weights")
    Z = draw.standard_normal((300, 4))
    y = Z[:, 1] + 0.4 * np.maximum(Z[:, 0] + 0.5, 0) + 0.3 * draw.standard_normal(300)
    weight = draw.integers(1, 4, 300)
    root = np.sqrt(weight)
    J = np.column_stack([np.ones(300), Z])
    r = y - J @ np.linalg.lstsq(J * root[:, None], y * root, rcond=None)[0]
    weighted = score_test(J * root[:, None], r * root, Z, "relu", True, 0, root=root)
    many = np.repeat(np.arange(300), weight)
    repeated = score_test(J[many], r[many], Z[many], "relu", True, 0)
    # The same unit is best for both; one that forgot the weights of its own values points elsewhere.
    unit = np.append(weighted.direction, weighted.bias)
    same = np.append(repeated.direction, repeated.bias)
    # Beside a linear function a unit and its reversal are the same.
    cosine = abs(unit @ same) / np.linalg.norm(unit) / np.linalg.norm(same)
    assert cosine > 0.98


def test_units_do_not_depend_on_how_many_vectors_ascend_together():
    rng, m = np.random.default_rng(3), 600
    inputs = np.column_stack([rng.standard_normal((m, 2)), np.ones(m)]).astype(np.float32)
    span = np.linalg.qr(rng.standard_normal((m, 4)))[0].astype(np.float32)
    errors, one = rng.standard_normal((m, 9)).astype(np.float32), np.ones(m, np.float32)
    rows, scores, peaks = ErrorVectors(inputs, span, errors, one, one), [], []
    for together in (2 * m, 1 << 20):  # two vectors at a time, all
        tracemalloc.start()
        found = UnitSearch(together=together).best_units(
            rows, activations.get("relu"), True, np.random.default_rng(5)
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        scores.append(found.score)
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3)  # single precision, a few dozen steps
    assert np.ptp(scores[0]) > 0.1
    assert peaks[0] < peaks[1] / 4
