"""Every command under hostile input: one sentence, exit code 2, no traceback, nothing half-written."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import click
import numpy as np
import pytest
from fake_recovery import problem, saved_run
from safetensors.numpy import save_file

from onehidden.cli import cli, main

JUNK = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, a good run, and everything that can be wrong with either."""
    home = tmp_path_factory.mktemp("hostile")
    X, y, _, found = problem(k=2, d=3, n=60)
    rows = np.column_stack([X, y])
    np.savetxt(home / "t.csv", rows, delimiter=",", header="a,b,c,y", comments="")
    recovery = saved_run(home / "run", found, "abc")
    for suffix in ("csv", "parquet", "feather", "npz", "npy", "safetensors"):
        (home / f"junk.{suffix}").write_bytes(JUNK)
        (home / f"empty.{suffix}").write_bytes(b"")
    (home / "folder.csv").mkdir()
    tensors = {"weights": found.weights, "bias": found.bias, "output": found.output, "intercept": np.ones(1)}
    for name, header in (
        ("newer", {"format_version": 99, "activation": "relu"}),
        ("worded", {"format_version": "soon", "activation": "relu"}),
        ("unknown", {"format_version": 1, "activation": "swish"}),
    ):
        save_file(tensors, home / f"{name}.safetensors", metadata={"onehidden": json.dumps(header)})
    save_file(
        {**tensors, "intercept": np.ones(0)},
        home / "damaged.safetensors",
        metadata={"onehidden": json.dumps({"format_version": 1, "activation": "relu"})},
    )
    record = json.loads((home / "run" / "recovery.json").read_text())
    for name, change in (
        ("newer-run", {"format_version": 99}),
        ("damaged-run", {"format_version": 2, "checks": 5}),
    ):
        recovery.save(home / name)
        (home / name / "recovery.json").write_text(json.dumps({**record, **change}))
    return home


def call(monkeypatch, capsys, arguments):
    monkeypatch.setattr("sys.argv", ["onehidden", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    return stop.value.code, said.out, said.err


MODELS = ("newer", "worded", "unknown", "damaged", "junk", "empty")
RUNS = ("missing", "t.csv", "folder.csv", "newer-run", "damaged-run")
TABLES = [
    "missing.csv",
    "folder.csv",
    *(f"{w}.{s}" for w in ("junk", "empty") for s in ("csv", "parquet", "npz")),
]
CASES = [
    *(["recover", name] for name in (*TABLES, "junk.feather", "junk.npy")),
    *(["score", name] for name in TABLES),
    *(["predict", "run", name] for name in TABLES),
    *(["report", "run", "--data", name] for name in TABLES),
    *(["predict", f"{m}.safetensors", "t.csv", "--columns", "a,b,c"] for m in MODELS),
    *([word, run] for word in ("check", "report") for run in RUNS),
    ["recover", "t.csv", "--target", "z"],
    ["recover", "t.csv", "--columns", "a,z"],
    ["recover", "t.csv", "--seed", "-1"],
    ["recover", "t.csv", "--max-seconds", "nan"],
    ["recover", "t.csv", "--hidden", "0"],
    ["recover", "t.csv", "--start", "z"],
    ["recover", "t.csv", "--score", "z"],
    ["recover", "t.csv", "--activation", "z"],
    ["recover", "t.csv", "--out", "t.csv"],
    ["recover", "t.csv", "--out", "t.csv/inside"],
    ["recover", "t.csv", "--out", "/proc/run"],
    ["score", "t.csv", "--drop", "z"],
    ["score", "t.csv", "--order", "9"],
    ["score", "t.csv", "--out", "scores.doc"],
    ["score", "t.csv", "--out", "t.csv/inside.csv"],
    ["predict", "run", "t.csv", "--columns", "a,z,c"],
    ["predict", "run", "t.csv", "--target", "z"],
    ["predict", "run", "t.csv", "--out", "/proc/p.csv"],
    ["predict", "run", "t.csv", "--out", "folder.csv"],
    ["report", "run", "--out", "report.doc"],
    ["report", "run", "--out", "t.csv/inside.html"],
    ["report", "run", "--data", "t.csv", "--target", "z"],
    ["reproduce", "nothing"],
    ["reproduce", "zsjbd-rho", "--jobs", "0"],
    ["reproduce", "zsjbd-rho", "--seed", "-1"],
    ["reproduce", "zsjbd-rho", "--out", "t.csv"],
    ["demo", "--problem", "nothing"],
    ["demo", "--rows", "0"],
    ["demo", "--rows", "3"],
    ["demo", "--seed", "-1"],
    ["demo", "--out", "t.csv"],
    ["problems", "extra"],
    ["--nonsense"],
    ["nonsense"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", CASES, ids=" ".join)
def test_one_sentence_and_exit_code_two(folder, arguments, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    before = sorted(str(p) for p in folder.rglob("*"))
    code, out, err = call(monkeypatch, capsys, arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("onehidden: ")
    assert err.count("\n") == 1
    assert 20 < len(err) < 500
    assert sorted(str(p) for p in folder.rglob("*")) == before


def test_the_unexpected_is_a_sentence_too(folder, monkeypatch, capsys):
    def broken(*_):
        raise TypeError("unsupported\n  operand")

    monkeypatch.setattr("onehidden.recovery.load_recovery", broken)
    code, _, err = call(monkeypatch, capsys, ["check", str(folder / "run")])
    assert code == 2
    assert err.startswith("onehidden: unexpected TypeError: unsupported operand")
    assert err.count("\n") == 1
    monkeypatch.setenv("ONEHIDDEN_TRACEBACK", "1")
    assert "Traceback" in call(monkeypatch, capsys, ["check", str(folder / "run")])[2]


@pytest.mark.parametrize("name", cli.list_commands(click.Context(cli)))
def test_every_command_helps_with_examples_and_speaks_json(name, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, [name, "--help"])
    assert code == 0
    assert f"  onehidden {name}" in out.split("Examples:")[1]
    assert "--json" in out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_written(shell):
    done = _onehidden([], {"_ONEHIDDEN_COMPLETE": f"{shell}_source"}, name="onehidden")
    assert done.returncode == 0
    assert b"_ONEHIDDEN_COMPLETE" in done.stdout


def _onehidden(arguments, extra=None, name="-c", **kwargs):
    script = f"import sys; sys.argv[0] = {name!r}; from onehidden.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output="stderr" not in kwargs, timeout=120,
        env={**os.environ, **(extra or {})}, check=False, **kwargs,
    )  # fmt: skip


def test_a_terminal_without_unicode_still_gets_its_table(folder):
    done = _onehidden(["check", str(folder / "run")], {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    assert b"consistent" in done.stdout


def test_progress_is_live_on_a_terminal_and_now_and_then_elsewhere():
    script = (
        "from onehidden.cli import progress\n"
        "from types import SimpleNamespace as Record\n"
        "with progress.live(9.0, hint='Ctrl-C', every=0.25) as hear:\n"
        "    import time\n"
        "    for i in range(3):\n"
        "        hear(Record(stage='finish', step=i, loss=0.25)); time.sleep(0.2)\n"
    )
    quiet = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=120, check=True)
    lines = quiet.stderr.decode().splitlines()
    assert 1 <= len(lines) <= 3
    assert all(re.fullmatch(r" +\d s  finish: step \d, loss 2.50e-01", line) for line in lines)
    ours, theirs = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", script],
        stderr=theirs,
        timeout=120,
        check=True,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    for part in ("finish: step 2", "loss 2.50e-01", "0:00:00", "of at most 9 s; Ctrl-C"):
        assert part in shown
