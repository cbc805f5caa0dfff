"""Hostile inputs: a sample in this process, all of them in processes of their own behind the slow marker."""

from __future__ import annotations

import random

import pytest
from hostile.case import home
from hostile.generator import cases
from hostile.killing import WRITERS, kills
from hostile.meeting import Met, command, forked, meet, prepared

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
def test_every_hostile_input_is_one_sentence_within_the_memory(tmp_path):
    prepared()
    forked(lambda: home(tmp_path / "seed"), tmp_path / "made")
    kept = ("recover", "t.csv", "--hidden", "1", "--out", "new", "--checkpoint", "kept")
    assert forked(lambda: command(tmp_path / "seed", kept), tmp_path / "kept").code == 0
    faults = {}
    for number, case in enumerate(cases()):
        met = meet(case, tmp_path / str(number), tmp_path / "seed" / "kept" if case.kept else None)
        if met.fault:
            faults[case.name] = (met.fault, met.err)
    assert faults == {}


@pytest.mark.slow
def test_killed_commands_leave_the_whole_or_nothing_and_can_be_repeated(tmp_path):
    prepared()
    found = kills(len(WRITERS), tmp_path, seed=7)
    assert {name: wrong for name, wrong in found.items() if any(wrong)} == {}
