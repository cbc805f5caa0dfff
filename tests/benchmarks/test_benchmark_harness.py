"""The benchmarks judge honestly: false certificates are seen, equal functions are not accused."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import halved

import onehidden as oh
from benchmarks import _pool, _table, _truth
from benchmarks.noise import cramer_rao


def certified(network, status, size=1e-3):
    """A recovery that claims ``status`` with standard errors of that size."""
    error = oh.OneHiddenNet(*(np.full_like(v, size) for v in (network.weights, network.output)))
    record = SimpleNamespace(
        weights=error.weights, output=error.output, bias=np.full(network.n_hidden, size), intercept=size
    )
    return SimpleNamespace(
        network=network.canonical(), status=status, standard_errors=record, message="", seconds=0.0, origin=""
    )


def moved(net, weights=0.0, output=0.0, bias=0.0):
    first = np.zeros(net.n_hidden)
    first[0] = 1
    A = net.weights.copy()
    A[0, 0] += weights
    return oh.OneHiddenNet(
        A, net.output + output * first, net.bias + bias * first, net.intercept, net.activation
    )


@pytest.mark.parametrize("g", ["relu", "tanh", "sigmoid", "abs", "softplus", "gelu"])
def test_the_truth_itself_is_never_a_false_certificate(g):
    X, _, truth = oh.problems.get(f"gaussian-{g}-biased").sample(50, 0)
    for status in ("exact", "consistent"):
        r = certified(truth, status)
        assert np.allclose(r.network.predict(X), truth.predict(X))
        assert _truth.false_certificate(r, truth) == ""
        assert _truth.judged(r, truth)["right"]


@pytest.mark.parametrize("change", [{"weights": 1e-4}, {"output": 1e-4}, {"bias": 1e-4}])
def test_an_exact_verdict_on_a_wrong_network_is_seen(change):
    truth = oh.problems.get("gaussian-tanh-biased").teacher(0)
    assert "exact with a worst" in _truth.false_certificate(certified(moved(truth, **change), "exact"), truth)
    assert _truth.false_certificate(certified(moved(truth, **change), "doubtful"), truth) == ""
    assert not _truth.judged(certified(moved(truth, **change), "exact"), truth)["right"]


@pytest.mark.parametrize("part", ["weights", "output", "bias"])
def test_a_consistent_verdict_is_judged_in_standard_errors(part):
    truth = oh.problems.get("gaussian-tanh-biased").teacher(0)
    near, far = (moved(truth, **{part: size}) for size in (4e-3, 8e-3))
    assert _truth.false_certificate(certified(near, "consistent"), truth) == ""
    assert "8.0 standard errors" in _truth.false_certificate(certified(far, "consistent"), truth)


@pytest.mark.parametrize("status", ["exact", "consistent"])
def test_another_width_or_activation_is_seen(status):
    truth = oh.problems.get("gaussian-relu-signs").teacher(0)
    fewer = oh.OneHiddenNet(truth.weights[1:], truth.output[1:])
    assert "5 units" in _truth.false_certificate(certified(fewer, status), truth)
    leaky = oh.OneHiddenNet(truth.weights, truth.output, activation="leaky_relu")
    assert "leaky_relu" in _truth.false_certificate(certified(leaky, status), truth)


def test_evidence_tells_near_activations_from_far_ones():
    """The truth itself is within chance of its own fit; a constant answer is not."""
    X, y, truth = oh.problems.get("gaussian-relu-signs").sample(2000, 0)
    y = y + 0.1 * y.std() * np.random.default_rng(0).standard_normal(len(y))
    own = float(np.mean((truth.predict(X) - y) ** 2))
    # The truth unfitted loses to its own fit by about the number of free parameters.
    assert 0 <= _truth.evidence(X, y, own, truth, False) < 60 + 6 * np.sqrt(2 * 60)
    assert _truth.evidence(X, y, float(y.var()), truth, False) > 1000


def test_tanh_and_sigmoid_are_one_family():
    """tanh(t) = 2 sigmoid(2t) - 1: either name of the same function is a right answer."""
    X, y, truth = oh.problems.get("gaussian-tanh-biased").sample(100, 0)
    other = _truth.in_terms_of(truth, "sigmoid")
    assert other.activation.name == "sigmoid"
    assert np.allclose(other.predict(X), y, atol=1e-13)
    assert _truth.false_certificate(certified(other, "exact"), truth) == ""
    assert "worst relative" in _truth.false_certificate(certified(moved(other, output=1e-3), "exact"), truth)


def test_the_bound_is_that_of_least_squares_when_rows_are_known_to_be_free():
    """One unit in one dimension: the row is fixed at unit norm, output and intercept are a regression."""
    X = np.random.default_rng(0).standard_normal((500, 1))
    net = oh.OneHiddenNet([[1.0]], [2.0])
    design = np.column_stack([np.maximum(X[:, 0], 0), np.ones(500)])
    plain = 0.3 * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    assert np.allclose(cramer_rao(net, X, 0.3), [0.0, *plain], rtol=1e-10, atol=1e-14)
    assert not np.allclose(cramer_rao(net, X, 0.3), [0.0, *2 * plain], rtol=0.1)


def test_finished_rows_are_kept_and_broken_runs_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_ROWS", str(tmp_path / "rows"))
    monkeypatch.setenv("BENCH_JOBS", "1")
    monkeypatch.setattr(_pool, "_RUNS", 2)  # the third run needs a second process
    for name in ("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")  # the pool sets them; undone afterwards
    log = str(tmp_path / "log")
    cells = [(4, log), (0, log), (2, log)]
    first = _pool.run(halved, cells)
    assert [row.get("half") for _, row in first] == [2.5, None, 5.0]
    assert "ZeroDivisionError" in first[1][1]["broke"]
    assert _pool.run(halved, cells)[0] == first[0]
    assert (tmp_path / "log").read_text().split() == ["4", "0", "2", "0"]  # only the broken one again
    monkeypatch.setenv("BENCH_ONLY", "2 *")
    assert [cell[0] for cell, _ in _pool.run(halved, cells)] == [2]


def test_a_stored_table_says_what_code_made_it():
    for path in (Path(_table.__file__).parent / "results").glob("*.md"):
        head = "\n".join(path.read_text().splitlines()[:9]).lower()
        assert "commit" in head or "made by version 0.1" in head, path.name


def test_the_stamp_names_the_commit_and_tells_changed_code(tmp_path):
    def git(*words):
        named = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(
            ["git", "-C", tmp_path, *named, *words], check=True, capture_output=True, text=True
        )

    assert _table.code(tmp_path / "nowhere") == "commit not known"
    git("init")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("a = 1\n")
    git("add", "src")
    git("commit", "-m", "a")
    commit = git("rev-parse", "--short", "HEAD").stdout.strip()
    assert _table.code(tmp_path) == f"commit {commit}"
    (tmp_path / "notes.txt").write_text("no code")
    assert _table.code(tmp_path) == f"commit {commit}"
    (tmp_path / "src" / "a.py").write_text("a = 2\n")
    assert _table.code(tmp_path) == f"commit {commit} and changes not committed"
    assert _table.stamp(quick=True).endswith("`--quick`")
