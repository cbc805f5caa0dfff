"""The examples run as they stand, from another folder, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from helpers import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples_with_a_purpose():
    assert len(EXAMPLES) >= 3
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert text.startswith('"""')
        assert f"python examples/{path.name}" in text
    # An example that checks itself cannot rot quietly.
    assert sum("assert " in path.read_text(encoding="utf-8") for path in EXAMPLES) >= 3


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, tmp_path):
    source = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=280,
        env={**os.environ, "PYTHONPATH": source}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
