"""Checkpoints: a killed run goes on and gives the same answer; nothing is half-written."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_streams import one_sentence

import onehidden as oh
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.form import Form
from onehidden.journal import Checkpoint, digest, open_checkpoint, write_whole
from onehidden.fit.coordinates import whitened
from onehidden.fit.streamed import StreamedFit
from onehidden.fit.samples import Samples
from onehidden.solvers import LevenbergMarquardt

SCRIPT = """
import sys, time, numpy as np, onehidden as oh
folder, kind = sys.argv[1], sys.argv[2]
rng = np.random.default_rng(0)
net = oh.OneHiddenNet(np.linalg.qr(rng.standard_normal((6, 3)))[0].T, [1.0, -2.0, 1.5])
X = rng.standard_normal((3000, 6))
y = net.predict(X) + 0.1 * rng.standard_normal(3000)
print("begin", flush=True)
if kind == "wide":
    r = oh.recover(X, y, 3, start="wide", seed=1, max_seconds=None, checkpoint=folder)
else:
    r = oh.recover(oh.data.open((X, y), stream=True), hidden=3, checkpoint=folder)
print(r.network.weights.tobytes().hex(), r.network.output.tobytes().hex(), r.status, flush=True)
"""


def problem(n=1500):
    rng = np.random.default_rng(5)
    net = oh.OneHiddenNet(np.linalg.qr(rng.standard_normal((4, 2)))[0].T, [1.0, -1.0])
    X = rng.standard_normal((n, 4))
    return X, net.predict(X) + 0.1 * rng.standard_normal(n)


class Cut(Exception):
    """Stands for the kill: raised at a chosen write."""


def cut_after(monkeypatch, writes):
    """Let ``writes`` results reach the disk, then cut the run off in the middle of the next one."""
    count, keep = [0], Checkpoint.keep

    def counting(self, values, *key, passing=False):
        count[0] += 1
        if count[0] > writes:
            raise Cut
        keep(self, values, *key)  # every state on the way, too

    monkeypatch.setattr(Checkpoint, "keep", counting)
    return count


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_cut_off_anywhere_goes_on_to_the_same_answer(streamed, tmp_path, monkeypatch):
    X, y = problem()

    def run(folder=None):
        if streamed:
            return oh.recover(oh.data.open((X, y), stream=True), hidden=2, checkpoint=folder)
        return oh.recover(X, y, 2, checkpoint=folder)

    plain = run()
    with monkeypatch.context() as patch:
        total = cut_after(patch, 10**9)
        assert run(tmp_path / "whole").network == plain.network  # keeping changes nothing
    for writes in sorted({0, 1, total[0] // 3, total[0] // 2, total[0] - 1}):
        folder = tmp_path / str(writes)
        with monkeypatch.context() as patch:
            cut_after(patch, writes)
            with pytest.raises(Cut):
                run(folder)
        again = run(folder)
        assert again.network == plain.network
        assert [c.value for c in again.checks] == [c.value for c in plain.checks]


def test_the_wide_student_goes_on_between_chunks(tmp_path, monkeypatch):
    from onehidden.starts.wide import WideAndPrune, train

    X, y = problem(600)
    form, settings = Form(oh.activations.get("relu"), 4, 16), WideAndPrune(16, steps=4000, batch=64)
    plain = train(form, settings, X, y, 0)
    memo = Checkpoint(tmp_path)
    monkeypatch.setattr("onehidden.journal._PAUSE", 0.0)
    taken = []
    train(form, settings, X, y, 0, lambda: len(taken) >= 2, lambda s, f: taken.append(s), memo=memo)
    steps = []
    again = train(form, settings, X, y, 0, None, lambda s, f: steps.append(s), memo=memo)
    assert steps == [3000, 4000]
    np.testing.assert_array_equal(again, plain)
    assert not np.array_equal(train(form, settings, X, y, 1, memo=memo), plain)
    # rounds of thinning differ in where they begin and in the shares of the decay alone
    assert not np.array_equal(train(form, settings, X, y, 0, memo=memo, begin=plain), plain)
    assert not np.array_equal(train(form, settings, X, y, 0, memo=memo, share=np.full(16, 9.0)), plain)


def test_descents_of_other_data_or_form_are_not_continued(tmp_path, monkeypatch):
    monkeypatch.setattr("onehidden.journal._PAUSE", 0.0)
    X, y = problem(600)
    relu, tanh = (Form(oh.activations.get(name), 4, 2) for name in ("relu", "tanh"))
    weight = np.linspace(0.5, 1.5, len(y))
    fits = [NetworkFit(relu, X, y), NetworkFit(relu, X, -y), NetworkFit(relu, X[:, ::-1], y)]
    fits += [NetworkFit(tanh, X, y), NetworkFit(relu, X, y, weight)]
    for source, around in (((X, y), whitened(Samples(X, y))), ((X, -y), whitened(Samples(X, -y)))):
        fits.append(StreamedFit(relu, oh.data.open(source, stream=True), around, len(y), float(len(y))))
    theta = np.random.default_rng(0).standard_normal(relu.size)
    solver, memo = LevenbergMarquardt(max_steps=30), Checkpoint(tmp_path)
    plain = [solver.solve(fit, theta) for fit in fits]
    for fit in fits:  # cut off after two steps, each leaves its state in one folder
        taken = []
        solver.solve(fit, theta, lambda: len(taken) >= 2, lambda s, f: taken.append(s), memo)  # noqa: B023
    for fit, expected in zip(fits, plain, strict=True):
        steps = []
        again = solver.solve(fit, theta, None, lambda s, f: steps.append(s), memo)  # noqa: B023
        assert steps[0] == 3
        np.testing.assert_array_equal(again.theta, expected.theta)
        assert again.trace == expected.trace


def test_a_checkpoint_belongs_to_its_data_and_options(tmp_path):
    X = problem(300)[0]
    y = np.maximum(X[:, 0], 0)
    oh.recover(X, y, 1, checkpoint=tmp_path / "c")
    for words, samples, options in (
        ("other data", (X, -y), {"hidden": 1}),
        ("another hidden", (X, y), {"hidden": 2}),
        ("another bias and seed", (X, y), {"hidden": 1, "bias": True, "seed": 3}),
    ):
        with pytest.raises(ValueError) as error:
            oh.recover(*samples, checkpoint=tmp_path / "c", **options)
        one_sentence(error, words)
    oh.recover(X, y, 1, checkpoint=tmp_path / "c", max_seconds=1000)  # a budget is no part of the answer


def test_unusable_checkpoint_folders_are_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    np.savez(tmp_path / "other" / "mine.npz", a=1)
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "checkpoint.json").write_text("{")
    for name, words in (("file", "is a file"), ("other", "no checkpoint.json"), ("torn", "cannot use")):
        with pytest.raises(ValueError) as error:
            open_checkpoint(tmp_path / name, "s", {})
        one_sentence(error, words)


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_whole(tmp_path / "a", b"old")

    def torn(one, other):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", torn)
        with pytest.raises(OSError):
            write_whole(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_digests_tell_records_apart():
    law = oh.laws.Gaussian(np.zeros(2), np.eye(2))
    same = oh.laws.Gaussian(np.zeros(2), np.eye(2))
    assert digest(law) == digest(same)
    others = [oh.laws.Gaussian(np.ones(2), np.eye(2)), law, None, 1, 1.0, "1", [1], np.ones(1), {"a": 1}]
    assert len({digest(other) for other in others}) == len(others)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wide", "streamed"])
def test_ten_kills_at_random_moments_leave_ten_equal_answers(kind, tmp_path):
    source = str(Path(oh.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}

    def start(folder):
        command = [sys.executable, "-c", SCRIPT, str(folder), kind]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    begin = time.perf_counter()
    run = start(tmp_path / "plain")
    assert run.stdout is not None
    run.stdout.readline()
    ready = time.perf_counter() - begin
    expected = run.stdout.readline()
    length = time.perf_counter() - begin - ready
    rng = np.random.default_rng(0)
    for i in range(10):
        folder = tmp_path / str(i)
        run = start(folder)
        assert run.stdout is not None
        run.stdout.readline()
        time.sleep(rng.uniform(0, length))
        run.send_signal(signal.SIGKILL)
        run.wait()
        for left in folder.glob("*.json"):
            json.loads(left.read_text())
        again = start(folder)
        assert again.communicate()[0].splitlines()[1] + "\n" == expected


def test_a_damaged_checkpoint_is_one_sentence(tmp_path):
    memo = open_checkpoint(tmp_path / "c", np.arange(3.0), {})
    memo.keep({"a": np.arange(4)}, "stage", 1)
    path = next((tmp_path / "c").glob("*.npz"))
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="damaged"):
        memo.recall("stage", 1)


def test_functions_of_one_name_are_told_apart_by_what_they_do():
    laws = [oh.laws.FromLogDensity(lambda x, s=s: -s * (x @ x), 2) for s in (1.0, 2.0)]
    assert digest(laws[0]) != digest(laws[1])
    before = digest(laws[0])
    laws[0].score(np.zeros((1, 2)), 1)
    assert digest(laws[0]) == before
