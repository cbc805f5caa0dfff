"""recover() on streamed sources, here and on a cluster: the answer of all rows, whoever reads them."""

import os
import signal
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from helpers import normal, one_sentence, teacher, write_folder

import onehidden as oh
from onehidden import data
from onehidden.checks import About, at_most
from onehidden.data.reduction import hashed, reduce
from onehidden.options import Options
from onehidden.recovery.solve import solve
from onehidden.recovery.streamed import recover_source
from onehidden.run import Run

D, K, N = 5, 2, 6_000


def recovered(source, search=solve, client=None, **asked):
    """recover() with a sample of a quarter of the rows, as of a source that is too large to hold."""
    options = Options(**asked)
    run = Run(options.seed, options.max_seconds, options.progress)
    return recover_source(source, options, run, client, None, sample=N // 4, search=search)


def problem(noise=0.0, n=N, seed=0):
    X, net = normal(n, D, seed + 50), teacher(d=D, k=K, seed=seed, output=[1.0, -2.0])
    return X, net.predict(X) + noise * np.random.default_rng(seed + 60).standard_normal(n), net


def folder_of(path, X, y, **options):
    return write_folder(path, {**{f"x{j}": X[:, j] for j in range(X.shape[1])}, "y": y}, **options)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_source_gives_the_answer_of_all_rows(noise, tmp_path):
    X, y, net = problem(noise)
    source = data.open(folder_of(tmp_path / "f", X, y, files=5, group=800), target="y")
    streamed, whole = recovered(source, hidden=K), oh.recover(X, y, K)
    assert streamed.status == whole.status == ("consistent" if noise else "exact")
    assert streamed.n_samples == N
    assert streamed.feature_names == source.feature_names
    if noise:
        # both are the least-squares answer of all rows, to a small share of a standard error
        gap = np.abs(streamed.network.weights - whole.network.weights) / whole.standard_errors.weights
        assert gap.max() < 0.2
        np.testing.assert_allclose(streamed.standard_errors.weights, whole.standard_errors.weights, rtol=0.02)
        sample = oh.recover(X[: N // 4], y[: N // 4], K)  # the answer of a sample does not pass
        apart = np.abs(sample.network.weights - whole.network.weights) / whole.standard_errors.weights
        assert apart.max() > 0.2
        assert any(f"on a sample of {N // 4} rows" in check.advice for check in streamed.checks)
    else:
        assert oh.match(streamed.network, net).max_error < 1e-12
        passes = [record for record in streamed.trace if record.stage == "pass over all rows"]
        assert sum(record.step == 5 for record in passes) <= 2  # the fit's and the certificate's, no more


@pytest.mark.slow
def test_the_width_is_found_from_a_source(tmp_path):
    X, y, _ = problem(n=3000)
    r = recovered(data.open(folder_of(tmp_path / "f", X, y), target="y"))
    assert (r.status, r.network.n_hidden) == ("exact", K)


def test_rows_that_follow_another_law_are_not_called_exact(tmp_path):
    X, y, _ = problem()
    y[17] += 1.0  # not in the sample
    source = data.open(folder_of(tmp_path / "f", X, y), target="y")
    r = recovered(source, hidden=K)
    assert r.status == "doubtful"
    assert any("other rows are not" in check.advice for check in r.checks if not check.passed)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hidden": 0}, "hidden must be a whole number of at least 1"),
        ({"hidden": 2, "bias": "yes"}, "bias must be"),
        ({"hidden": 2, "seed": -1}, "seed must be"),
        ({"hidden": 2, "activation": "swish"}, "unknown activation"),
        ({"hidden": 2, "sample_weight": 3}, "holds its weight: open it with weight=NAME"),
        ({"hidden": 2, "client": 3}, "client must be"),
        ({"hidden": 2, "client": "tcp://127.0.0.1:1"}, "no Dask scheduler answers"),
        ({"hidden": 2, "checkpoint": 3}, "checkpoint must be"),
    ],
)
def test_bad_requests_are_one_sentence(options, words, tmp_path):
    X, y, _ = problem(n=500)
    with pytest.raises(ValueError) as error:
        oh.recover(data.open((X, y), stream=True), **options)
    one_sentence(error, words)


def test_constant_and_dependent_columns_are_named():
    X = problem(n=500)[0]
    columns = {"a": X[:, 0], "b": X[:, 1], "c": np.ones(500), "y": np.maximum(X[:, 0], 0)}
    with pytest.raises(ValueError) as error:
        oh.recover(data.open(columns, target="y", stream=True), hidden=1)
    one_sentence(error, "'c' is constant")
    columns["c"] = 2 * X[:, 0]
    r = oh.recover(data.open(columns, target="y", stream=True), hidden=1)
    assert r.status == "not identifiable"
    assert "the columns a, c are linearly dependent" in r.message
    columns["y"] = np.full(500, 3.0)
    r = oh.recover(data.open(columns, target="y", stream=True), hidden=1)
    assert "y is constant" in r.message


def test_a_column_that_is_constant_in_the_sample_is_named():
    X, y, _ = problem()
    seed = Run(0).seed_of("rows of the sample")
    last = np.argsort(hashed(np.arange(N), seed))[-40:]  # one part: a row's number is its place
    columns = {**{f"x{j}": X[:, j] for j in range(D)}, "seldom": 1.0 * np.isin(np.arange(N), last), "y": y}
    with pytest.raises(ValueError) as error:
        recovered(data.open(columns, target="y", stream=True), hidden=K)
    one_sentence(error, "column 'seldom' is constant (0) in the", "--drop seldom", "stream=False")


def test_what_only_the_sample_was_asked_is_told_as_such():
    X, y, _ = problem(1.0)
    r = recovered(data.open((X, y), stream=True), hidden=K)
    assert r.status == "consistent"
    said = f"on a sample of {N // 4} rows: "
    told = {check.name: check.advice.startswith(said) for check in r.checks}
    for name in (
        "agreement",
        "a larger model",
        "a smaller model",
        "rival activation",
    ):
        assert told[name], name
    for name in ("fit", "gradient", "identifiability"):
        assert not told[name], name  # all rows were asked


def test_a_doubtful_sample_is_not_certified_by_all_rows():
    X, y, _ = problem(1.0)
    doubt = at_most("a question about the search", 1.0, 0.1, "look again", About.SEARCH)

    def doubting(problem, options, run):
        found = solve(problem, options, run)
        return replace(found, certificate=found.certificate.with_comparisons([doubt]))

    source = data.open((X, y), stream=True)
    assert recovered(source, hidden=K).status == "consistent"
    r = recovered(source, doubting, hidden=K)
    assert r.status == "doubtful"
    assert doubt.name in [check.name for check in r.checks if not check.passed]
    assert "repeated searches have not agreed" in r.message


@pytest.mark.parametrize("errors", [pytest.param("classical", marks=pytest.mark.slow), "robust"])
def test_weights_and_sandwich_errors_are_those_of_the_arrays(errors):
    X, y, _ = problem()
    rng = np.random.default_rng(6)
    w = np.where(rng.uniform(size=N) < 0.1, 0.0, rng.uniform(0.5, 3.0, N))
    # noise as the weights say, or of unequal spread beyond them
    unequal = 1 + np.abs(X[:, 0]) if errors == "robust" else 1.0
    y = y + 0.2 * unequal * rng.standard_normal(N) / np.sqrt(np.maximum(w, 0.1))
    columns = {**{f"x{j}": X[:, j] for j in range(D)}, "y": y, "w": w}
    source = data.open(columns, target="y", weight="w", stream=True)
    streamed = recovered(source, hidden=K, errors=errors)
    whole = oh.recover(X, y, K, sample_weight=w, errors=errors)
    table = oh.recover(data.open(columns, target="y", weight="w"), hidden=K, errors=errors)
    assert table.network == whole.network
    gap = np.abs(streamed.network.weights - whole.network.weights) / whole.standard_errors.weights
    assert gap.max() < 0.2
    np.testing.assert_allclose(streamed.standard_errors.weights, whole.standard_errors.weights, rtol=0.02)
    assert streamed.n_samples == whole.n_samples == np.sum(w > 0)


class Slow:
    """An accumulator slow enough to be interrupted: counts rows and sums them."""

    def __init__(self, pause=0.0):
        self.pause, self.n, self.total = pause, 0, 0.0

    def update(self, batch):
        time.sleep(self.pause)
        self.n, self.total = self.n + len(batch), self.total + float(batch.X.sum())
        return self

    def merge(self, other):
        self.n, self.total = self.n + other.n, self.total + other.total
        return self

    def result(self):
        return self.n, self.total


def test_threads_of_a_cluster_give_the_same_answer_to_the_last_bit(tmp_path):
    distributed = pytest.importorskip("distributed")
    X, y, _ = problem(noise=0.2)
    source = data.open(folder_of(tmp_path / "f", X, y, files=11), target="y")
    law = oh.laws.Gaussian(np.zeros(D), np.eye(D))
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        here, there = (reduce(source, Slow, client=c).result() for c in (None, client))
        assert here == there == (N, here[1])
        seen = []
        reduce(source, Slow, client=client, progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (11, 11)
        moments = [oh.moments.score_moments(source, None, law, client=c) for c in (None, client)]
        for m in (1, 2, 3, 4):
            assert np.abs(moments[0][m] - moments[1][m]).max() <= 1e-10 * np.abs(moments[0][m]).max()
        one, other = (recovered(source, hidden=K, client=c) for c in (None, cluster))
        assert np.abs(one.network.weights - other.network.weights).max() <= 1e-10
        frame = pytest.importorskip("dask.dataframe").read_parquet(tmp_path / "f")
        third = recovered(data.open(frame, target="y"), hidden=K, client=client)
        # other parts, other sample: the same minimum to a share of a standard error
        assert (np.abs(third.network.weights - one.network.weights) / one.standard_errors.weights).max() < 0.2


def test_errors_on_workers_arrive_as_one_sentence(tmp_path):
    distributed = pytest.importorskip("distributed")
    X, y, _ = problem(n=900)
    folder = folder_of(tmp_path / "f", X, y)
    source = data.open(folder, target="y")
    content = (folder / "1.parquet").read_bytes()
    (folder / "1.parquet").write_bytes(content[:500])  # cut after it was opened
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1) as client:
        with pytest.raises(ValueError) as error:
            oh.recover(source, hidden=1, client=client)
        one_sentence(error, "cannot be read as Parquet")


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    X, y, _ = problem(n=20_000)
    source = data.open(folder_of(tmp_path / "f", X, y, files=20), target="y")
    expected = reduce(source, Slow).result()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killed = []

        def half_way(done, total):
            if not killed:
                killed.append(os.kill(pids[0], signal.SIGKILL))

        found = reduce(source, partial(Slow, 0.2), client=client, progress=half_way).result()
        assert killed
        assert found == expected


def in_groups(labels, rows=30, seed=3):
    """Rows of 40 groups that share an effect, mixed, so that every part has rows of every group."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(40), rows))
    X, net = normal(len(group), D, seed + 50), teacher(d=D, k=K, seed=0, output=[1.0, -2.0])
    y = net.predict(X) + 0.4 * rng.standard_normal(40)[group] + 0.3 * rng.standard_normal(len(group))
    return X, y, labels(group)


@pytest.mark.parametrize("labels", [lambda g: np.array([f"p {one}" for one in g]), lambda g: 1.5 * g])
def test_groups_spread_over_files_have_the_errors_of_rows_in_memory(labels, tmp_path):
    X, y, group = in_groups(labels)
    columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y, "who": group}
    folder = write_folder(tmp_path / "f", columns, files=4, group=150)
    streamed = oh.recover(folder, "y", hidden=K, groups="who")
    whole, alone = oh.recover(X, y, K, groups=group), oh.recover(X, y, K)
    np.testing.assert_allclose(streamed.standard_errors.weights, whole.standard_errors.weights, rtol=0.01)
    assert not np.allclose(streamed.standard_errors.intercept, alone.standard_errors.intercept, rtol=0.2)
    np.testing.assert_allclose(streamed.error_freedom.weights, whole.error_freedom.weights, rtol=0.01)
    np.testing.assert_allclose(streamed.predict_interval(X[:9]), whole.predict_interval(X[:9]), rtol=0.02)
    for name in ("groups", "fit", "independent rows", "samples per parameter"):
        one, other = (next(c for c in r.checks if c.name == name) for r in (streamed, whole))
        assert one.passed == other.passed, name
        if name in ("groups", "samples per parameter"):
            assert one.value == pytest.approx(other.value, rel=0.01)


def test_groups_of_a_stream_that_say_nothing_are_refused_in_a_sentence(tmp_path):
    X, y, _ = in_groups(lambda g: g, rows=3)
    for who, words in ((np.zeros(len(y)), "one group only"), (np.arange(len(y)), "a group of its own")):
        columns = {f"x{j}": X[:, j] for j in range(D)} | {"y": y, "who": who}
        folder = write_folder(tmp_path / words.replace(" ", ""), columns, files=2)
        with pytest.raises(ValueError) as refusal:
            oh.recover(folder, "y", hidden=K, groups="who")
        one_sentence(refusal, words)
    with pytest.raises(ValueError) as refusal:
        oh.recover(data.open(folder, target="y"), hidden=K, groups=np.arange(len(y)) // 2)
    one_sentence(refusal, "groups=NAME")
