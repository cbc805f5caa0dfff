"""Checkpoints: a killed run goes on and gives the same answer; nothing is half-written."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import normal, one_sentence, planted, teacher

import onehidden as oh
from onehidden.run import Journal, Run
from onehidden.starts import Wide
from onehidden.starts.candidate import search_form
from onehidden.starts.wide import train

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


def problem(n=500):
    X = normal(n, 4, seed=5)
    return X, teacher(d=4, k=2).predict(X) + 0.1 * np.random.default_rng(6).standard_normal(n)


class Cut(Exception):
    """Stands for the kill: raised at a chosen write."""


def cut_after(monkeypatch, writes):
    """Let ``writes`` results reach the disk, then cut the run off in the middle of the next one."""
    count, keep = [0], Journal.keep

    def counting(self, step, values, passing=False):
        count[0] += 1
        if count[0] > writes:
            raise Cut
        keep(self, step, values)  # every state on the way, too

    monkeypatch.setattr(Journal, "keep", counting)
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
    for writes in sorted({1, total[0] // 2, total[0] - 1}):
        folder = tmp_path / str(writes)
        with monkeypatch.context() as patch:
            cut_after(patch, writes)
            with pytest.raises(Cut):
                run(folder)
        again = run(folder)
        assert again.network == plain.network
        assert [c.value for c in again.checks] == [c.value for c in plain.checks]


def test_the_wide_network_goes_on_between_chunks(tmp_path, monkeypatch):
    problem = planted(teacher(d=4, k=2), normal(600, 4))
    form, settings = search_form(problem, 16), Wide(16, steps=2000, batch=64)

    def trained(run, step="network"):
        return train(form, settings, problem, run.at(step), "network")

    plain = trained(Run())
    ticks = itertools.count(10, 10)  # ten seconds between any two looks at the clock: every state is written
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    heard = []

    def cut(record):
        heard.append(record.step)
        if len(heard) == 2:
            raise Cut

    with pytest.raises(Cut):
        trained(Run(journal=Journal(tmp_path), listener=cut))
    steps = []
    again = trained(Run(journal=Journal(tmp_path), listener=lambda record: steps.append(record.step)))
    assert heard == [500, 1000]
    assert steps == [1500, 2000]
    np.testing.assert_array_equal(again, plain)
    # another step of the same run begins anew, and another seed is another result
    steps.clear()
    trained(Run(journal=Journal(tmp_path), listener=lambda record: steps.append(record.step)), "round 2")
    assert steps == [500, 1000, 1500, 2000]
    assert not np.array_equal(trained(Run(1)), plain)


def test_a_checkpoint_belongs_to_its_data_and_options(tmp_path):
    X = problem(300)[0]
    y = np.maximum(X[:, 0], 0)
    oh.recover(X, y, 1, checkpoint=tmp_path / "c")
    for words, samples, options in (
        ("another data", (X, -y), {"hidden": 1}),
        ("another hidden", (X, y), {"hidden": 2}),
        ("another bias and seed", (X, y), {"hidden": 1, "bias": False, "seed": 3}),
        ("another start", (X, y), {"hidden": 1, "start": oh.starts.Random(50)}),
    ):
        with pytest.raises(ValueError) as error:
            oh.recover(*samples, checkpoint=tmp_path / "c", **options)
        one_sentence(error, words)
    oh.recover(X, y, 1, checkpoint=tmp_path / "c", max_seconds=1000)  # a budget is no part of the answer


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
        for left in folder.rglob("*.json"):
            json.loads(left.read_text())
        again = start(folder)
        assert again.communicate()[0].splitlines()[1] + "\n" == expected


def test_a_law_is_known_by_what_it_says_of_the_rows(tmp_path):
    """Functions of one name are told apart; one that was used is the same as before."""
    X = problem(300)[0]
    y = np.maximum(X[:, 0], 0)
    laws = [oh.laws.FromLogDensity(lambda x, s=s: -s * (x @ x), 4) for s in (1.0, 2.0)]
    oh.recover(X, y, 1, score=laws[0], checkpoint=tmp_path / "c")
    oh.recover(X, y, 1, score=laws[0], checkpoint=tmp_path / "c")
    with pytest.raises(ValueError) as error:
        oh.recover(X, y, 1, score=laws[1], checkpoint=tmp_path / "c")
    one_sentence(error, "another score")


def test_a_network_cut_off_after_a_trial_stops_where_it_would_have(tmp_path, monkeypatch):
    """Trials that failed are remembered: without that, one more is made where the run goes on."""
    ticks = itertools.count(10, 10)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))

    def proposed(run):
        (found,) = Wide(48, steps=4000).propose(asked, run)
        return found.network

    def trials(records):
        return sum(one.stage == "wide-and-prune" for one in records)

    heard, rest = [], []
    for seed in range(6):  # which network goes on after a trial depends on the rounding of the machine
        asked, plain = planted(teacher(d=6, k=4, seed=seed), normal(2000, 6, seed=seed), noise=0.05), []
        expected = proposed(Run(listener=plain.append))
        stages = [one.stage for one in plain]
        if "wide network" in stages[stages.index("wide-and-prune") :]:
            break

    def cut(record):
        heard.append(record)
        if record.stage == "wide network" and trials(heard):
            raise Cut

    with pytest.raises(Cut):
        proposed(Run(journal=Journal(tmp_path), listener=cut))
    assert proposed(Run(journal=Journal(tmp_path), listener=rest.append)) == expected
    assert trials(heard) + trials(rest) == trials(plain)
