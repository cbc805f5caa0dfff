"""README and documentation: every block and every command runs, and prints what is shown."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import inspect
import io
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest
from helpers import ROOT, sketched

import onehidden as oh
from onehidden.cli import cli, main

PAGES = sorted(
    [
        ROOT / "README.md",
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/howto/*.md"),
        *ROOT.glob("docs/gallery/*.md"),
    ]
)
BLOCK = re.compile(r"^```(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNABLE = {"python", "console", "sh"}
# Output follows its block; directives are Sphinx's; text alone is a picture of something, not a claim.
KNOWN = RUNNABLE | {"text", "{toctree}", "{eval-rst}", "{include}"}


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(kind, body) for kind, body in BLOCK.findall(page.read_text(encoding="utf-8"))]


def masked(text: str) -> str:
    """Without what rounding and clocks decide: numbers below 1e-9 and times; lines without trailing space."""
    text = re.sub(r"\b\d(\.\d+)?e-(09|[1-9]\d)\b", "ε", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "… s", text)
    return "\n".join(re.sub(r" +", " ", line).strip() for line in text.strip().splitlines())


def onehidden(words: list[str]) -> tuple[int, str]:
    """The command line, in this process: exit code and what went to stdout."""
    before, out = sys.argv, io.StringIO()
    sys.argv = ["onehidden", *words]
    try:
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stop:
            main()
    finally:
        sys.argv = before
    return int(stop.value.code or 0), out.getvalue()


def run_command(line: str) -> str:
    """One command of a console block; make targets and extras are looked up, not installed."""
    words = shlex.split(line, comments=True)
    if words[0] == "onehidden":
        code, out = onehidden(words[1:])
        assert code in (0, 1), f"{line}: exit code {code}"
        return out
    if words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        return ""
    raise AssertionError(f"a test does not know how to run {line!r}")


def look_up(line: str) -> None:
    """One line of a block that a reader's own shell would run: its parts must exist."""
    words = shlex.split(line, comments=True)
    if not words or "_ONEHIDDEN_COMPLETE" in line:  # tests/test_cli_hostile.py runs the completion scripts
        return
    if words[0] == "onehidden":
        command = cli.get_command(click.Context(cli), words[1])
        assert command is not None
        command.make_context(words[1], list(words[2:]))
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        for extra in re.findall(r"onehidden\[(\w+)\]", line):
            assert extra in extras
    else:
        run_command(line)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the file that the pages speak of: data.csv with a target y."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = oh.OneHiddenNet([[1.0, -0.5], [0.4, 0.8]], [1.0, -2.0], [0.3, 0.0])
    for name in ("data.csv", "new.csv"):
        X = rng.standard_normal((400, 2))
        table = np.column_stack([X, truth.predict(X)])
        np.savetxt(name, table, delimiter=",", header="left,right,y", comments="")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_runs_and_prints_what_is_shown(page, desk):
    if page.name == "cluster.md" and importlib.util.find_spec("distributed") is None:
        pytest.skip("needs the extra cluster: dask[distributed]")
    with sketched():
        runs_and_prints(page)


def runs_and_prints(page: Path) -> None:
    namespace: dict = {"__name__": "__main__"}
    printed: str | None = None
    for kind, body in blocks(page):
        assert kind in KNOWN, f"{page.name}: a block of kind {kind!r} is neither run nor marked as output"
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(body, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif kind == "console":
            lines = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
            assert len(lines) == len(body.strip().splitlines()), "a console block holds commands alone"
            printed = "".join(run_command(line) for line in lines)
        elif kind == "sh":
            for line in body.splitlines():
                look_up(line)
        elif kind == "text" and printed:
            assert masked(printed) == masked(body)
            printed = None


def test_the_demo_in_the_readme_is_what_the_demo_prints(desk):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = [body for kind, body in blocks(ROOT / "README.md") if body.startswith("found against true")]
    with sketched():
        code, printed = onehidden(["demo"])
    assert code == 0
    # An error of rounding may also be exactly zero.
    printed, shown = (re.sub(r"(?<![\d.])0(?![\d.])", "ε", masked(text)) for text in (printed, shown))
    # Digits decide how wide the table is.
    printed, shown = (" ".join(re.sub("─+", "─", text).split()) for text in (printed, shown))
    first, _, last = shown.partition("…")  # the README shows the first table, some rows left out
    assert printed.startswith(first)
    assert last in printed
    assert not printed.startswith(first.replace("0.1606", "0.1706"))
    assert page.index("make demo") < page.index("found against true")


def asked_for(source: str) -> set[str]:
    """The packages that lines of Python need; frames of scikit-learn and of a recovery need pandas."""
    tree = ast.parse(source)
    found = {
        one.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for one in node.names
    }
    found |= {str(node.module).split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    return found | ({"pandas"} if re.search(r"as_frame=True|\.to_frame\(", source) else set())


def test_pages_and_examples_need_nothing_that_an_installation_lacks():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    here = {re.split(r"[>=\[]", one)[0].replace("scikit-learn", "sklearn") for one in wanted}
    here |= {"onehidden", *sys.stdlib_module_names}
    extra = {"cluster.md": {"dask", "distributed"}}  # the page begins with the line that installs them
    for page in PAGES:
        needed = set().union(*(asked_for(body) for kind, body in blocks(page) if kind == "python"), set())
        assert needed <= here | extra.get(page.name, set()), page.name
    for path in (ROOT / "examples").glob("*.py"):
        assert asked_for(path.read_text(encoding="utf-8")) <= here, path.name
    assert asked_for("import pandas as pd") == {"pandas"} == asked_for("load(as_frame=True)")


def test_masking_keeps_what_matters():
    assert masked("a 2.7e-16  b 3.1 s") == masked("a 1.1e-15 b 45 s")
    assert masked("error 2.7e-3") != masked("error 3.7e-3")
    assert masked("exact") != masked("doubtful")


def test_every_equation_of_the_theory_page_has_its_line():
    site = settings()
    names = re.findall(r"\{impl\}`([\w.]+)`", (ROOT / "docs" / "theory.md").read_text(encoding="utf-8"))
    assert len(names) > 40
    for name in names:
        file, _, line = site.implementation(name)
        text = (ROOT / "src" / file).read_text(encoding="utf-8").splitlines()
        assert any(name.split(".")[-1] in row for row in text[line - 1 : line + 4]), name
    with pytest.raises(ValueError, match="no such object"):
        site.implementation("nowhere.at_all")


def documented(pages: list[Path]) -> tuple[list[tuple[str, list[str]]], set[str]]:
    """(module, members) of every room of the reference, no members: all that it exports; and single names."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    rooms = re.findall(r"^\.\. automodule:: (\S+)\n   :members:(.*)$", text, re.MULTILINE)
    alone = set(re.findall(r"^\.\. auto(?:class|function):: onehidden\.(\S+)$", text, re.MULTILINE))
    return [
        (name, [one.strip() for one in members.split(",") if one.strip()]) for name, members in rooms
    ], alone


def test_the_reference_lists_public_names_alone():
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    listed = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert all(f"api/{page.stem}\n" in listed for page in pages)
    entries, alone = documented(pages)
    assert len(entries) > 10
    for name in alone:
        room, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(f"onehidden.{room}" if room else "onehidden"), last), name
    rooms = {name for name, members in entries if not members}
    for room in rooms:  # what the room exports is what the page shows
        assert importlib.import_module(room).__all__
    for name, members in entries:
        assert not any(part.startswith("_") for part in (*name.split("."), *members))
    shown = {one for _, members in entries for one in members} | alone
    shown |= {one for room in rooms for one in importlib.import_module(room).__all__}
    at_the_top = {name for name in oh.__all__ if not inspect.ismodule(getattr(oh, name))}
    assert at_the_top <= shown
    assert "polish" not in shown  # a step of the library, not a promise to its users


def settings():
    """The settings of the site."""
    spec = importlib.util.spec_from_file_location("site_settings", ROOT / "docs" / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_bars_of_norms_are_no_substitutions():
    text = ["The norm |x| of ``a | b``.", ">>> a | b"]
    assert settings().escaped(text) == ["The norm \\|x\\| of ``a | b``.", ">>> a | b"]


def test_the_way_of_a_sample_names_files_that_are_there():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = re.findall(r"^\d+\. `([\w/]+\.py)`", page, re.MULTILINE)
    assert len(files) == 10
    for file in files:
        assert (ROOT / "src" / "onehidden" / file).is_file(), file


@pytest.mark.slow
def test_the_site_builds_and_its_links_lead_somewhere(tmp_path):
    pytest.importorskip("furo")
    pytest.importorskip("myst_parser")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(ROOT / "docs"), str(tmp_path)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    theory = (tmp_path / "theory.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(_modules/[^"#]+)#([^"]*)"', theory)
    assert len(links) > 40
    for page, anchor in links:
        source = (tmp_path / page).read_text(encoding="utf-8")
        assert f'id="{anchor}"' in source, (page, anchor)
