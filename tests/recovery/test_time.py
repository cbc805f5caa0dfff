"""The time budget: what it cuts short is not certified, and little is done once it has run out."""

import numpy as np
import pytest
from helpers import normal, teacher

import onehidden as oh
from onehidden.run import Run

K, N = 3, 3000


def problem(name="relu", noise=0.3):
    X = normal(N, seed=3)
    y = teacher(name, output=[1.0, -1.0, 1.5], seed=3).predict(X)
    return X, y + noise * np.random.default_rng(4).standard_normal(N)


class Watched:
    """Runs that are late when asked for the ``last``-th time, and what their traces held by then."""

    def __init__(self, monkeypatch, last=None):
        self.asked, self.last, self.trace, self.records = 0, last, None, 0

        def expired(run):
            self.asked += 1
            if self.last is None or self.asked < self.last:
                return False
            if self.trace is None:
                self.trace, self.records = run.trace, len(run.trace)
            return True

        monkeypatch.setattr(Run, "expired", expired)

    @property
    def after(self):
        """Stages heard of once the time had run out."""
        return [] if self.trace is None else [record.stage for record in self.trace[self.records :]]


@pytest.mark.parametrize(
    ("samples", "options", "shares"),
    [
        (problem(), {"hidden": K}, (0.0, 0.3, 0.8, 0.97, 1.0)),
        pytest.param(problem(), {}, (0.0, 0.3, 0.8, 1.0), marks=pytest.mark.slow),
        pytest.param(
            problem("tanh", 0.1), {"hidden": K, "activation": "auto"}, (0.9, 1.0), marks=pytest.mark.slow
        ),
    ],
    ids=["width given", "width sought", "activation sought"],
)
def test_an_answer_that_missed_a_check_is_never_called_consistent(samples, options, shares, monkeypatch):
    with monkeypatch.context() as patch:
        whole = Watched(patch)
        full = oh.recover(*samples, **options)
    assert full.status == "consistent"
    for share in shares:
        with monkeypatch.context() as patch:
            watched = Watched(patch, max(1, int(whole.asked * share)))
            r = oh.recover(*samples, **options)
        assert watched.trace is not None
        assert not r.converged, share
        assert share == 0 or "more time" in r.message, share
        # descents stop before their next step; an answer in hand is still certified
        steps = [stage for stage in watched.after if not stage.startswith(("certified", "activation"))]
        assert steps == [], share
        assert len(watched.after) <= 2, share


def test_a_check_that_the_sample_of_a_stream_missed_is_missed_by_the_whole(monkeypatch):
    source = oh.data.open(problem(), stream=True)
    with monkeypatch.context() as patch:
        whole = Watched(patch)
        assert oh.recover(source, hidden=K).status == "consistent"
    with monkeypatch.context() as patch:
        Watched(patch, int(0.6 * whole.asked))
        r = oh.recover(source, hidden=K)
    assert r.status == "doubtful"
    assert "more time" in r.message


def test_a_tiny_budget_costs_a_small_share_of_the_whole():
    X, y = problem()
    full = oh.recover(X, y, K)  # compiles, too
    full = oh.recover(X, y, K)
    hasty = oh.recover(X, y, K, max_seconds=1e-3)
    assert (full.status, hasty.status) == ("consistent", "doubtful")
    assert hasty.seconds < 0.5 * full.seconds
    assert len(hasty.trace) < 0.1 * len(full.trace)
    ample = oh.recover(X, y, K, max_seconds=1000.0)
    assert ample.status == "consistent"
    assert ample.network == full.network


def test_an_answer_without_time_for_questions_says_so_and_keeps_its_loss(monkeypatch):
    X, y = problem()
    with monkeypatch.context() as patch:
        patch.setattr(Run, "within_budget", lambda run, operations: False)
        r = oh.recover(X, y, K, max_seconds=3.0)
    assert r.status == "doubtful"
    assert "more time" in r.message
    assert [check.evaluated for check in r.checks[:1]] == [False]
    assert np.all(np.isinf(r.standard_errors.weights))
    assert {unit.status for unit in r.units} == {"doubtful"}
    assert np.isclose(r.loss, np.mean((r.network.predict(X) - y) ** 2), rtol=1e-12)
    parts = np.maximum(X @ r.network.weights.T + r.network.bias, 0) * r.network.output
    np.testing.assert_allclose([unit.share for unit in r.units], parts.var(axis=0) / y.var(), rtol=1e-8)
    assert r.loss < 2 * 0.3**2 < 0.5 * np.var(y)
    assert "doubtful" in r.summary()
