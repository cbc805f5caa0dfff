"""Hygiene of the package: light to import, extras named when missing, a wheel with everything inside."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from helpers import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _seconds(statement: str, times: int = 3) -> float:
    """Processor time of a statement in a fresh interpreter, the least of a few runs."""
    script = f"import time; begun = time.process_time(); {statement}; print(time.process_time() - begun)"
    runs = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
        )
        for _ in range(times)
    ]
    return min(float(run.stdout.split()[-1]) for run in runs)


def test_importing_the_package_costs_no_more_than_jax():
    jax = _seconds("import jax", 1)
    ours = _seconds("import onehidden, onehidden.cli", 2)
    assert ours <= 1.3 * jax
    assert 1.3 * ours < jax  # what must fail: an import that costs as much as JAX does


def test_importing_the_package_loads_nothing_heavy():
    script = (
        "import sys, onehidden, onehidden.cli\n"
        "heavy = {'jax', 'sklearn', 'scipy', 'matplotlib', 'pyarrow', 'optax', 'dask', 'onnx', 'torch'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


def test_heavy_parts_are_extras():
    required = " ".join(PROJECT["dependencies"])
    for name in ("dask", "onnx", "torch", "sphinx", "playwright", "pandas", "polars"):
        assert name not in required
    assert {"onnx", "docs", "test", "lint"} <= PROJECT["optional-dependencies"].keys()


@pytest.mark.skipif(importlib.util.find_spec("hatchling") is None, reason="needs pip install hatchling")
def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path))
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        (points,) = [name for name in inside if name.endswith("entry_points.txt")]
        assert "onehidden = onehidden.cli:main" in archive.read(points).decode()
    source = ROOT / "src"
    for path in source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert str(path.relative_to(source)) in inside, path
    assert not [name for name in inside if name.startswith(("tests/", "docs/"))]


def test_one_version_everywhere():
    import onehidden

    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    # The heading of changes to come may stand above the newest version.
    headings = re.findall(r"^## \[?([^\]\s]+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    newest = next((name for name in headings if name != "Unreleased"), None)
    assert cited is not None
    assert newest is not None
    assert PROJECT["version"] == onehidden.__version__ == cited[1] == newest
