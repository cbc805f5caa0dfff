"""The journal: steps by name, written whole or not at all, for one set of samples and options."""

import os
import time

import numpy as np
import pytest
from helpers import one_sentence

from onehidden.atomic import write_atomically
from onehidden.run import Journal, Run, fingerprint, open_journal


def opened(path, samples="s", options=None, version="1"):
    return open_journal(path, samples, {} if options is None else options, version)


def test_what_was_kept_is_recalled_by_a_later_run(tmp_path):
    values = {"a": np.arange(4.0), "b": np.array("text")}
    opened(tmp_path).keep("width/3/random/2", values)
    again = opened(tmp_path)
    found = again.recall("width/3/random/2")
    assert found.keys() == values.keys()
    np.testing.assert_array_equal(found["a"], values["a"])
    assert str(found["b"]) == "text"
    assert again.recall("width/3/random/3") is None


def test_without_a_folder_nothing_is_remembered():
    assert opened(None) is None
    Run().keep({"a": 1.0})
    assert Run().recall() is None


def test_two_steps_of_one_name_are_a_mistake_of_the_program(tmp_path):
    kept = opened(tmp_path)
    kept.recall("student")
    with pytest.raises(ValueError, match="two steps of this run are called 'student'"):
        kept.recall("student")


def test_states_on_the_way_are_written_now_and_then_only(tmp_path, monkeypatch):
    folder = Journal(tmp_path)
    folder.keep("descent", {"step": 1}, passing=True)
    folder.keep("descent", {"step": 2}, passing=True)  # a moment later
    assert int(Journal(tmp_path).recall("descent")["step"]) == 1
    folder.keep("descent", {"step": 3})
    assert int(Journal(tmp_path).recall("descent")["step"]) == 3
    monkeypatch.setattr(time, "monotonic", lambda: 1e9)
    folder.keep("descent", {"step": 4}, passing=True)
    assert int(Journal(tmp_path).recall("descent")["step"]) == 4


def test_a_journal_belongs_to_its_samples_options_and_version(tmp_path):
    opened(tmp_path, options={"hidden": 1, "max_seconds": 3.0})
    opened(tmp_path, options={"hidden": 1, "max_seconds": None})  # a budget is no part of the answer
    for words, other in (
        ("another data", {"samples": "t"}),
        ("another hidden", {"options": {"hidden": 2}}),
        ("another version", {"version": "2"}),
    ):
        with pytest.raises(ValueError) as error:
            opened(tmp_path, **{"options": {"hidden": 1}, **other})
        one_sentence(error, words)


def test_unusable_folders_are_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.step").write_bytes(b"")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "checkpoint.json").write_text("{")
    for name, words in (("file", "cannot use"), ("other", "no checkpoint.json"), ("torn", "cannot use")):
        with pytest.raises(ValueError) as error:
            opened(tmp_path / name)
        one_sentence(error, words)
    with pytest.raises(ValueError, match="path of a folder"):
        opened(3)


def test_a_result_altered_by_a_byte_is_one_sentence(tmp_path):
    opened(tmp_path).keep("stage/1", {"a": np.arange(4)})
    path = next(tmp_path.rglob("*.step"))
    whole = path.read_bytes()
    others = [whole[:40], b""] + [
        whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))
    ]
    for content in others:
        path.write_bytes(content)
        with pytest.raises(ValueError) as error:
            opened(tmp_path).recall("stage/1")
        one_sentence(error, "damaged")


def test_files_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a", b"old")

    def torn(one, other):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", torn)
        with pytest.raises(OSError, match="disk full"):
            write_atomically(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_fingerprints_tell_values_apart():
    x = np.arange(6.0)
    assert fingerprint(x, None) == fingerprint(x.copy(), None)
    others = [
        (x,), (x, None), (x.reshape(2, 3),), (x.astype(np.float32),), (x + 1,), (1,), (1.0,), ("1",), (None,),
    ]  # fmt: skip
    assert len({fingerprint(*other) for other in others}) == len(others)
