"""Files and folders whole or not at all, through links too."""

from __future__ import annotations

import os

import pytest

from onehidden.atomic import atomic_file, atomic_folder, write_atomically


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(folder, content):
    with atomic_folder(folder) as beside:
        (beside / "a").write_text(content)
        (beside / "sub").mkdir()
        (beside / "sub" / "b").write_text(content)


@pytest.mark.parametrize("there", [None, "empty", "full"])
def test_a_link_to_a_folder_stays_one_and_its_folder_is_replaced(tmp_path, there):
    real = tmp_path / "elsewhere" / "real"
    if there is None:
        real.parent.mkdir()
    else:
        real.mkdir(parents=True)
    if there == "full":
        (real / "old").write_text("old")
    link = tmp_path / "link"
    link.symlink_to(real)
    fill(link, "new")
    assert link.is_symlink()
    assert names(real) == ["a", "sub"]
    assert (real / "sub" / "b").read_text() == "new"
    assert names(real.parent) == ["real"]
    assert names(tmp_path) == ["elsewhere", "link"]


def test_a_link_to_a_file_stays_one_and_the_file_has_the_suffix_asked_for_on_the_way(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.bin", tmp_path / "link.txt"
    link.symlink_to(real)
    for content in (b"first", b"second"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert real.read_bytes() == content
    with atomic_file(link) as beside:
        assert beside.suffix == ".txt"
        beside.write_bytes(b"third")
    assert names(real.parent) == ["real.bin"]


def test_where_the_new_folder_cannot_move_the_old_one_is_back_at_once(tmp_path, monkeypatch):
    fill(tmp_path / "run", "old")
    rename = os.rename

    def second_fails(source, target):
        if ".writing" in str(source):
            raise PermissionError(13, "Permission denied")
        rename(source, target)

    monkeypatch.setattr("onehidden.atomic.os.rename", second_fails)
    with pytest.raises(OSError, match="Permission denied") as error:
        fill(tmp_path / "run", "new")
    assert error.value.filename == str(tmp_path / "run")
    assert names(tmp_path) == ["run"]
    assert (tmp_path / "run" / "sub" / "b").read_text() == "old"
