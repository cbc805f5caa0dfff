"""Reports of several outputs, families and linear parts: what is shown is what the network is."""

from __future__ import annotations

import html
from dataclasses import replace

import numpy as np
import pytest

import onehidden as oh
from onehidden import families
from onehidden.report.blocks import Formula, Grid
from onehidden.report.pictures import fit_of, of_fit
from onehidden.report.screen import facts, screen, title
from onehidden.report.subject import gather
from onehidden.report.text import numbers

X = np.random.default_rng(0).standard_normal((120, 2))
LINE = oh.OneHiddenNet([[0.6, 0.8]], [2.0], [0.1], 0.5, linear=[0.25, -3.0])
TWO = oh.OneHiddenNet([[0.6, 0.8]], [[2.0, -1.5]], [0.1], [0.5, 7.0], linear=[[0.0, 0.25], [0.0, -3.0]])


@pytest.fixture(scope="module")
def found():
    """A recovery to put other networks into."""
    return oh.recover(X, oh.OneHiddenNet([[0.6, 0.8]], [2.0], [0.1], 0.5).predict(X), 1, start="random")


def made(found, net, **changes):
    errors = replace(
        found.standard_errors, output=np.full_like(net.output, 0.1), linear=np.full_like(net.linear, 0.2),
        intercept=np.full_like(net.intercept, 0.3),
    )  # fmt: skip
    target = changes.pop("target", "y")
    options = {**found.options, "target": target, **changes.pop("options", {})}
    changes = {"prediction": None, "covariance": None, **changes}
    return replace(found, network=net, standard_errors=errors, options=options, **changes)


def shown_as(kind, subject):
    """The block of this kind on the first screen."""
    return next(block for block in screen(subject) if isinstance(block, kind))


def test_a_linear_part_stands_in_the_formula_and_in_the_file(found):
    r = made(found, LINE)
    assert shown_as(Formula, gather(r)).lines[:2] == ("y ≈ 0.5", "−3 x1 + 0.25 x0")
    named = {row.parameter: row for row in numbers(gather(r))}
    assert named["linear x1"][2:4] == (-3.0, 0.2)
    np.testing.assert_allclose(gather(r, X).predictions()[:, 0], LINE.predict(X))  # its linear part too


def test_every_output_has_its_line_its_panel_and_its_rows(found):
    r = made(found, TWO, target=["left", "right"], noise_covariance=np.eye(2))
    assert title(gather(r)).startswith("1 relu unit of 2 outputs behind left and right")
    lines = shown_as(Formula, gather(r)).lines
    assert lines[0] == "left ≈ 2 h1 + 0.5"
    assert lines[1] == "right ≈ −1.5 h1 − 3 x1 + 0.25 x0 + 7"
    assert lines[2].startswith("h1 = max(0, 0.8 x1 + 0.6 x0 + 0.1)")
    named = {row.parameter: row for row in numbers(gather(r))}
    assert named["output of right"][2:4] == (-1.5, 0.1)
    assert named["linear x1 of right"][2] == -3.0
    assert named["intercept of right"][2] == 7.0
    Y = TWO.predict(X)
    Y[:, 1] += np.where(np.arange(len(Y)) % 2, 1.0, -1.0)
    subject = gather(r, X, Y)
    assert [one.caption for one in of_fit(subject).blocks[-1].figures] == ["left", "right"]
    np.testing.assert_array_equal(fit_of(subject, 1, subject.predictions()).y, Y[:, 1])
    with pytest.raises(ValueError, match="y must have 2 columns"):
        gather(r, X, Y[:, 0])


def test_a_family_is_written_by_its_link_and_predicted_by_its_mean(found):
    r = made(found, LINE, target="spikes", options={"offset": "log t"}, family=families.get("poisson"))
    assert shown_as(Formula, gather(r)).lines[0] == "log E[spikes] ≈ 0.5 + log t"
    assert "log E[spikes]" in shown_as(Grid, gather(r)).columns[-1]
    assert {("family", "poisson"), ("link", "log")} <= set(facts(gather(r)))
    assert not any(label == "noise sd" for label, _ in facts(gather(r)))
    y = np.round(np.exp(LINE.predict(X)))
    np.testing.assert_allclose(drawn(gather(r, X, y)), np.exp(LINE.predict(X)))


def test_an_offset_of_a_table_is_in_the_predictions_that_are_drawn(found):
    r = made(found, LINE, target="spikes", family=families.get("poisson"))
    log_time = np.linspace(-1, 1, len(X))
    mean = np.exp(LINE.predict(X) + log_time)
    table = oh.data.Table(X, np.round(mean), ("a", "b"), ("spikes",), offset=log_time)
    subject = gather(r, table)
    np.testing.assert_allclose(drawn(subject), mean)
    assert not np.allclose(drawn(gather(r, X, np.round(mean))), mean)


def drawn(subject):
    """The predictions in the picture of the fit."""
    return fit_of(subject, 0, subject.predictions()).rows


@pytest.mark.parametrize("classes", [(0.0, 1.0, 2.0), ("ape", "bee", "cat")])
def test_labels_are_drawn_as_probabilities(found, classes):
    softmax = families.get("softmax", classes=3)
    r = made(found, TWO, target="kind", family=softmax, classes=classes)
    probabilities = softmax.mean(TWO.predict(X))
    code = np.argmax(np.column_stack([1 - probabilities.sum(axis=1), probabilities]), axis=1)
    subject = gather(r, X, np.array(classes)[code])
    curve = fit_of(subject, 1, subject.predictions())
    names = [f"{one:.0f}" if isinstance(one, float) else one for one in classes]
    np.testing.assert_allclose(curve.rows, probabilities[:, 1])
    np.testing.assert_array_equal(curve.y, code == 2)
    assert title(gather(r)).endswith("behind kind")
    assert shown_as(Formula, gather(r)).lines[1].startswith(f"log P[{names[2]}] / P[{names[0]}]")
    with pytest.raises(ValueError, match="none of the classes"):
        gather(r, X, np.full(len(X), 7.0))


def test_a_report_says_how_to_repeat_what_was_asked(found, tmp_path):
    typed = "onehidden recover t.csv --target a --offset 'log t'"
    for command, shown in ((typed, typed), (None, "oh.recover(X, y, family='poisson', linear=True)")):
        asked = {"hidden": None, "start": "auto", "family": "poisson", "linear": True, "command": command}
        r = made(found, TWO, target=["a", "b,c"], options=asked, noise_covariance=np.eye(2))
        r.report(tmp_path / "page.html", X=X, y=TWO.predict(X))
        assert shown in html.unescape((tmp_path / "page.html").read_text())
