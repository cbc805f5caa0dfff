"""The examples run as they stand, from another folder, one of them in a process of its own."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys

import pytest
from helpers import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
ALONE = "planted_table"  # in a process of its own: starting one costs as much as some of the examples


def test_there_are_examples_with_a_purpose():
    assert len(EXAMPLES) >= 3
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""')
        assert f"python examples/{path.name}" in text
    # An example that checks itself cannot rot quietly.
    assert sum("assert " in path.read_text(encoding="utf-8") for path in EXAMPLES) >= 3


@pytest.mark.parametrize(
    "path", [path for path in EXAMPLES if path.stem != ALONE], ids=lambda path: path.stem
)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_an_example_runs_in_a_process_of_its_own(tmp_path):
    path = ROOT / "examples" / f"{ALONE}.py"
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=280,
        env={**os.environ, "PYTHONPATH": source}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
