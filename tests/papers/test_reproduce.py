"""The command that reruns the papers: rows, verdicts, pictures, faults as lines, exit codes."""

from __future__ import annotations

import json

import numpy as np
from click.testing import CliRunner

from onehidden.cli import cli
from onehidden_papers import reproductions as papers
from onehidden_papers.commands.reproduce import reproduce
from onehidden_papers.reproductions import record
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


def test_each_ends_on_its_own_and_what_breaks_is_named(tmp_path, capsys):
    items = [_small(), _small("not reproduced", "poor"), _broken()]
    assert reproduce(items, out=tmp_path, as_json=True, kept=tmp_path) == 1  # one broke off
    streams = capsys.readouterr()
    records = json.loads(streams.out)
    assert [one["name"] for one in records] == ["small-1.5", "poor", "broken"]
    assert records[2]["fault"] == "RuntimeError: no luck"
    assert "broken broke off: RuntimeError: no luck" in streams.err
    assert (tmp_path / "poor.png").stat().st_size > 1000


def test_a_claim_is_printed_with_its_rule_and_verdict(capsys):
    assert reproduce([_small()]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for text in ("A <b>small</b> figure", "0.4999", "One note & another.", "rule: Reproduced: always.",
                 "verdict: reproduced"):  # fmt: skip
        assert text in said


def test_exit_code_says_whether_verdicts_are_the_stored_ones(tmp_path, capsys):
    poor, good = _small("not reproduced", "poor"), _small("reproduced", "poor")
    # A claim that does not hold is a finding: nothing stored, nothing to differ from.
    assert reproduce([poor], store=tmp_path, kept=tmp_path / "empty") == 0
    assert record.load(poor, "default", tmp_path).verdicts == {"poor": "not reproduced"}
    assert reproduce([poor], kept=tmp_path) == 0
    assert reproduce([good], kept=tmp_path) == 1
    said = capsys.readouterr().err
    assert "poor: reproduced, stored: not reproduced" in said
    assert "0 of 1 verdicts are those stored for the default size" in said


def test_each_size_is_compared_with_its_own_stored_verdict(tmp_path, capsys):
    poor, good = _small("not reproduced", "poor"), _small("reproduced", "poor")
    reproduce([poor], store=tmp_path, kept=tmp_path)
    reproduce([good], full=True, store=tmp_path, kept=tmp_path)
    verdicts = [record.load(poor, size, tmp_path).verdicts["poor"] for size in record.SIZES]
    assert verdicts == ["not reproduced", "reproduced"]
    capsys.readouterr()
    assert reproduce([good], full=True, kept=tmp_path) == 0
    assert "1 of 1 verdicts are those stored for the full size" in capsys.readouterr().err
    assert reproduce([good], kept=tmp_path) == 1  # what is right at full size is not at the default one


def test_list_shows_every_claim_with_its_rule_and_verdict():
    done = CliRunner().invoke(cli, ["reproduce", "--list", "--json"], standalone_mode=False)
    lines = json.loads(done.stdout)
    assert {line["name"] for line in lines} == set(papers.names())
    assert len(lines) == sum(len(papers.get(name).claims) for name in papers.names())
    printed = next(line for line in lines if line["claim"] == "glm-theorem-2.6")
    assert printed["full"] == "not reproduced"
    assert "standard errors" in printed["rule"]
    assert "seed 1" in printed["made"]
