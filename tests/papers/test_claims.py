"""Every claim has a rule, and every stored verdict follows from its rule and the stored rows alone."""

from __future__ import annotations

import json

import matplotlib.figure
import numpy as np
import pytest

from onehidden_papers import reproductions as papers
from onehidden_papers.reproductions import record
from onehidden_papers.reproductions.record import Claim, Item, Table

ITEMS = [papers.get(name) for name in papers.names()]
KEPT = [(item, size) for item in ITEMS for size in record.SIZES if record.load(item, size) is not None]


def test_claims_have_names_of_their_own_words_and_rules():
    claims = [claim for item in ITEMS for claim in item.claims]
    names = [claim.name for claim in claims]
    assert len(set(names)) == len(names)
    for claim in claims:
        assert claim.where.startswith(("[GMOV]", "[GLM]", "[ZSJBD]"))
        assert claim.says.endswith(".")
        assert claim.rule.endswith(".")


@pytest.mark.parametrize(("item", "size"), KEPT, ids=[f"{item.name}-{size}" for item, size in KEPT])
def test_stored_verdicts_follow_from_rules_and_rows_alone(item, size):
    kept = record.load(item, size)
    rows = kept.table.records()
    assert {claim.name: claim.judge(rows) for claim in item.claims} == kept.verdicts
    made = kept.made
    assert made.date.startswith("20")
    assert made.machine
    assert made.commit
    assert made.seconds > 0


def test_full_sizes_of_everything_are_stored():
    missing = [item.name for item in ITEMS if record.load(item, "full") is None]
    assert missing == []


# Which numbers to spoil in the rows of a paper's figure, and what the verdict must become.
SPOILED = [
    ("glm-fig1", "glm-fig1", "honest error", 0.01, "not reproduced"),
    ("glm-fig1", "glm-fig1", "honest error", 0.9, "cannot be judged"),
    ("glm-fig4", "glm-fig4", "honest error", 0.9, "not reproduced"),
    ("gmov-fig3", "gmov-fig3-l", "honest error", 0.01, "reproduced"),
    ("gmov-fig2", "gmov-fig2-medians", "50 %", 0.01, "reproduced"),
    ("zsjbd-icml-grid", "zsjbd-icml-grid", "ours", 0.0, "not reproduced"),
    ("glm-theorem-2.6", "glm-theorem-2.6", "deviation in standard errors", 0.1, "not reproduced"),
]


@pytest.mark.parametrize(("name", "claim", "column", "value", "verdict"), SPOILED)
def test_other_rows_lead_to_another_verdict(name, claim, column, value, verdict):
    item = papers.get(name)
    rows = [dict(row, **{column: value}) for row in record.load(item, "full").table.records()]
    assert next(one for one in item.claims if one.name == claim).judge(rows) == verdict


def test_rows_come_back_as_they_were_stored(tmp_path):
    claim = Claim(
        "c", "[GLM] x", "Says.", "Rule.", lambda rows: "reproduced" if rows[0]["b"] else "not reproduced"
    )
    table = Table(
        "T", ("a", "b"), ((np.float64(0.1), np.bool_(True)),), ("note",), {"curve": ([1, 2], [0.5, 0.25])}
    )
    item = Item("one", "[GLM] x", "About.", (claim,), lambda full, seed: table)
    result = item(full=True, seed=3)
    assert result.verdicts == {"c": "reproduced"}
    record.save(result, "full", record.made(3, 1.25), tmp_path)
    record.save(result, "default", record.made(4, 0.5), tmp_path)
    kept = record.load(item, "full", tmp_path)
    assert kept.table.rows == ((0.1, True),)
    assert kept.table.curves == {"curve": ([1.0, 2.0], [0.5, 0.25])}
    assert (kept.made.seed, kept.made.seconds) == (3, 1.2)
    assert list(json.loads((tmp_path / "one.json").read_text())) == ["default", "full"]
    assert record.load(item, "full", tmp_path / "empty") is None


@pytest.mark.parametrize(
    "item", [item for item in ITEMS if item.draw is not None], ids=lambda item: item.name
)
def test_pictures_are_drawn_from_stored_rows_and_curves(item):
    kept = record.load(item, "full")
    figure = matplotlib.figure.Figure()
    item.draw(figure, kept.table.records(), kept.table.curves)
    assert all(axes.has_data() for axes in figure.axes)
