"""The page of all reproductions: every one of them, faults as lines, three landscapes with their minima."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from onehidden.cli import cli
from onehidden_papers import reproductions as papers
from onehidden_papers.reproductions import gallery, record
from onehidden_papers.reproductions.record import Claim, Item, Table


def _small(verdict="reproduced", name="small-1.5"):
    def measure(full, seed):
        return Table(
            "A <b>small</b> figure", ("run", "reported", "ours", "done"),
            (("first", 0.5, 0.4999, True), ("control: none", "", np.float64(0.1), False)),
            ("One note & another.",),
        )  # fmt: skip

    claim = Claim(name, "[GLM] Fig. 0", "It holds.", "Reproduced: always.", lambda rows: verdict)
    draw = lambda figure, rows, curves: figure.subplots().plot([row["ours"] for row in rows])  # noqa: E731
    return Item(name, "[GLM] Fig. 0", "Small.", (claim,), measure, draw)


def _broken():
    def measure(full, seed):
        raise RuntimeError("no\nluck")

    return Item("broken", "[GLM] Fig. 0", "Breaks.", (), measure)


@pytest.fixture(scope="module")
def surfaces():
    # At 40 000 samples the lowest point of G lies .31 to .44 rad from the truth over eight seeds: the
    # displacement of its population, with little noise. At 6 000 it is .14 to .62.
    return gallery.landscapes(n=40_000, size=25)


@pytest.fixture
def three(monkeypatch, surfaces):
    """A registry of three: one good, one not reproduced, one that breaks."""
    functions = {"small-1.5": _small(), "poor": _small("not reproduced", "poor"), "broken": _broken()}
    monkeypatch.setattr(papers, "names", lambda: list(functions))
    monkeypatch.setattr(papers, "get", lambda name: functions[name])
    monkeypatch.setattr(gallery, "landscapes", lambda seed=0: surfaces)
    return functions


def test_all_writes_one_page_with_every_verdict(three, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["reproduce", "all", "--json"], standalone_mode=False)
    assert done.exception is None
    assert done.return_value == 1  # one broke off
    records = json.loads(done.stdout)
    assert [one["name"] for one in records] == ["small-1.5", "poor", "broken"]
    assert records[2]["fault"] == "RuntimeError: no luck"
    page = (tmp_path / "reproductions" / "index.html").read_text(encoding="utf-8")
    assert "1 reproduced, 1 not reproduced, 1 broke off" in page
    assert "Rule: Reproduced: always." in page
    for text in ("small-1.5", "RuntimeError: no luck", "One note &amp; another.", "control: none", "0.4999"):
        assert text in page
    assert "<b>small" not in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert {"summary", "small-1-5", "poor", "broken", "landscapes", "figure-landscapes"} <= set(ids)
    assert page.count("<svg") == 3
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert (tmp_path / "reproductions" / "poor.png").stat().st_size > 1000


def test_exit_code_says_whether_verdicts_are_the_stored_ones(three, tmp_path, monkeypatch):
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(record.load, "__defaults__", (tmp_path,))
    call = lambda *words: CliRunner().invoke(cli, ["reproduce", *words], standalone_mode=False)  # noqa: E731
    # A claim that does not hold is a finding: nothing stored, nothing to differ from.
    assert call("poor", "--store", str(tmp_path)).return_value == 0
    assert record.load(three["poor"], "default").verdicts == {"poor": "not reproduced"}
    assert call("poor").return_value == 0
    three["poor"] = _small("reproduced", "poor")
    done = call("poor")
    assert done.return_value == 1
    assert "poor: reproduced, stored: not reproduced" in done.stderr
    assert "0 of 1 verdicts are those stored for the default size" in done.stderr


def test_each_size_is_compared_with_its_own_stored_verdict(three, tmp_path, monkeypatch):
    monkeypatch.setattr(record.load, "__defaults__", (tmp_path,))
    call = lambda *words: CliRunner().invoke(cli, ["reproduce", *words], standalone_mode=False)  # noqa: E731
    call("poor", "--store", str(tmp_path))
    three["poor"] = _small("reproduced", "poor")
    call("poor", "--full", "--store", str(tmp_path))
    assert [record.load(three["poor"], size).verdicts["poor"] for size in record.SIZES] == [
        "not reproduced",
        "reproduced",
    ]
    done = call("poor", "--full")
    assert done.return_value == 0
    assert "1 of 1 verdicts are those stored for the full size" in done.stderr
    assert call("poor").return_value == 1  # what is right at full size is not at the default one


def test_list_shows_every_claim_with_its_rule_and_verdict():
    done = CliRunner().invoke(cli, ["reproduce", "--list", "--json"], standalone_mode=False)
    lines = json.loads(done.stdout)
    assert {line["name"] for line in lines} == set(papers.names())
    assert len(lines) == sum(len(papers.get(name).claims) for name in papers.names())
    printed = next(line for line in lines if line["claim"] == "glm-theorem-2.6")
    assert printed["full"] == "not reproduced"
    assert "standard errors" in printed["rule"]
    assert "seed 1" in printed["made"]


def test_right_score_puts_the_minima_at_the_truth_and_the_gaussian_one_does_not(surfaces):
    step = np.pi / 25
    found = {}
    for name, surface in surfaces.items():
        lowest = np.unravel_index(np.argmin(surface.values), surface.values.shape)
        found[name[0]] = np.sort([surface.first[lowest[0]], surface.second[lowest[1]]])
    truth = np.array([0.5, 0.5 + np.pi / 2])
    assert np.max(np.abs(found["L"] - truth)) <= step
    assert np.max(np.abs(found["ℓ"] - truth)) <= step
    assert np.max(np.abs(found["G"] - truth)) > 1.5 * step
