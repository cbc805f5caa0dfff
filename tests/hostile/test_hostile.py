"""Hostile inputs: a sample in this process, all of them in processes of their own behind the slow marker."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from helpers import ROOT
from hostile.case import home
from hostile.generator import cases
from hostile.killing import WRITERS
from hostile.meeting import Met

from onehidden.cli import main

SAMPLE = random.Random(1).sample([case for case in cases() if case.cheap], 45)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    home(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_a_hostile_input_is_one_sentence(case, folder, monkeypatch, capsys):
    case.make(folder)
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr("sys.argv", ["onehidden", *case.arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    left = tuple(str(path) for path in sorted(folder.rglob("*")) if path not in before)
    assert Met(stop.value.code, said.out, said.err, 0, 0.0, left).fault == "", said.err


def test_the_generator_repeats_itself_and_has_three_hundred():
    assert [case.name for case in cases(3)] == [case.name for case in cases(3)]
    assert [case.name for case in cases(3)] != [case.name for case in cases(4)]
    assert len(cases()) >= 300


@pytest.mark.slow
def test_all_hostile_inputs_and_thirty_kills_end_well():
    """In a process of their own: children are forked from it, which threads would not survive."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "hostile"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
    counts = {row[0]: (int(row[1]), int(row[2])) for row in rows if row[1].isdigit()}
    assert counts["all"][0] >= 300
    assert sum(counts[writer.name][0] for writer in WRITERS) >= 30
    assert {name: pair for name, pair in counts.items() if pair[0] != pair[1]} == {}, done.stdout


def test_a_full_disk_is_one_sentence_and_leaves_what_was_there(folder):
    """Files may hold 3000 bytes: every command that writes fails on the way."""
    script = (
        "import resource, sys, os\n"
        "from onehidden.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "for words in sys.argv[1:]:\n"
        "    sys.argv = ['onehidden', *words.split()]\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        print(end.code, flush=True)\n"
    )
    (folder / "old.csv").write_bytes(b"old")
    lines = ["a,b,c,y", *(f"{i % 7},{i % 5},{i % 3},{i}" for i in range(2000))]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    before = {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    commands = [
        "predict run t.csv --out new.csv",
        "predict run t.csv --out old.csv --force",
        "report run --data t.csv --out new.html",
        "score t.csv --estimator gaussian --order 3 --out new.parquet",
    ]
    done = subprocess.run(
        [sys.executable, "-c", script, *commands], capture_output=True, text=True, cwd=folder
    )
    assert done.stdout.split() == ["2"] * len(commands), done.stderr
    said = done.stderr.splitlines()
    assert len(said) == len(commands)
    for line, words in zip(said, commands, strict=True):
        name = words.split("--out ")[1].split()[0]
        assert line.startswith(f"onehidden: {name}: ")
        assert "too large" in line.lower()
    assert {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
