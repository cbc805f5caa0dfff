"""Units that live in a corner of a bounded domain, and boxes that do not stay the same function."""

import numpy as np
import pytest

import onehidden as oh
from onehidden.oracle.box import BlackBox
from onehidden.oracle.domain import checked_domain
from onehidden.run import stream


def with_a_corner_unit(seed, d, share):
    """Three units, and one that is active on ``share`` of [-1, 1]^d."""
    rng = stream(seed, "test", "corner unit", d)
    A, a = rng.standard_normal((3, d)), rng.standard_normal(d)
    b = -np.quantile(rng.uniform(-1, 1, (200_000, d)) @ a, 1 - share)
    return oh.OneHiddenNet(
        np.vstack([A, a]), [1.0, -2.0, 0.7, 1.5], [*(0.3 * rng.standard_normal(3)), b], 0.3
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("d", "share"), [(3, 1e-3), (5, 5e-3), (8, 0.02)])
def test_a_unit_of_a_corner_is_found(seed, d, share):
    truth = with_a_corner_unit(seed, d, share)
    r = oh.recover_oracle(truth.predict, d, domain=(-1, 1), seed=seed)
    rng = stream(seed, "test", "corners")
    X = np.concatenate([rng.choice([-1.0, 1.0], (2000, d)), rng.uniform(-1, 1, (2000, d))])
    assert r.status == "exact"
    assert np.max(np.abs(r.network.predict(X) - truth.predict(X))) < 1e-8
    without = oh.OneHiddenNet(truth.weights[:3], truth.output[:3], truth.bias[:3], 0.3)
    assert np.max(np.abs(without.predict(X) - truth.predict(X))) > 1e-2
    assert "corner" in r.message


def test_fresh_queries_reach_corners_faces_and_the_inside():
    low, high = np.array([-1.0, 0.0, 2.0, -np.inf]), np.array([1.0, 3.0, 2.0, np.inf])
    box = BlackBox(
        lambda X: X[:, 0], np.array([0.0, 1.0, 2.0, 0.0]), np.ones(4), checked_domain((low, high), 4)
    )
    X = box.inputs(box.spread_out(1000))
    on = (X[:, :2] == low[:2]) | (X[:, :2] == high[:2])
    assert len(np.unique(X[on.all(axis=1), :2], axis=0)) == 4
    assert {0, 1, 2} <= set(on.sum(axis=1))
    assert box.domain.contains(X).all()


def drifting(a_query):
    """A network whose intercept moves with every query."""
    truth, seen = with_a_corner_unit(0, 6, 0.3), [0]

    def fn(X):
        seen[0] += len(X)
        return truth.predict(X) + a_query * (seen[0] + np.arange(len(X)))

    return fn


def replaced(after):
    """One network at first, another one later."""
    first, second, seen = with_a_corner_unit(0, 6, 0.3), with_a_corner_unit(1, 6, 0.3), [0]

    def fn(X):
        later = seen[0] + np.arange(len(X)) >= after
        seen[0] += len(X)
        return np.where(later, second.predict(X), first.predict(X))

    return fn


@pytest.mark.parametrize("fn", [drifting(1e-7), drifting(3e-9), replaced(1000), replaced(4000)])
def test_a_box_that_changes_is_refused(fn):
    with pytest.raises(ValueError, match="the same function from the first query to the last"):
        oh.recover_oracle(fn, 6)


def test_labels_that_change_are_refused():
    fn = replaced(4000)
    with pytest.raises(ValueError, match="the same function from the first query"):
        oh.recover_oracle(lambda X: (fn(X) > 0.5) * 1.0, 6, answers="label")
