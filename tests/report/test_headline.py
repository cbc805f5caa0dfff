"""The two first sentences of answers of many kinds: short, plain, and the same on every medium."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from click.testing import CliRunner
from fake_recovery import fake, saved_run

import onehidden as oh
from onehidden.certify.certificate import Status
from onehidden.certify.units import Cause, UnitStatus, UnitVerdict, why_undetermined
from onehidden.checks import About, Check, not_evaluated, reason
from onehidden.cli import cli
from onehidden.network import OneHiddenNet
from onehidden.recovery.line import Affine
from onehidden.recovery.prediction import Prediction
from onehidden.report.headline import Mood, of_predictions, of_units
from onehidden.report.screen import next_step, screen
from onehidden.report.subject import gather
from onehidden.report.text import first_screen, fragment, summary

JARGON = re.compile(
    r"jacobian|cosine|gradient|deviance|p-value|likelihood|n log|hessian|covariance|identifiab|residual",
    re.IGNORECASE,
)
RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 3))
NOISE = RNG.standard_normal(500)
HIDDEN = 2 * np.maximum(0, X[:, 0] + 0.5 * X[:, 1] - 0.3) - np.maximum(0, X[:, 2])
COUNTS = RNG.poisson(np.exp(0.5 + 0.8 * np.maximum(0, X[:, 0])))
Y, LINE = HIDDEN + 0.2 * NOISE, X @ [1, 2, 0.5] + 0.2 * NOISE
TWO = np.column_stack([HIDDEN, -HIDDEN]) + 0.2 * RNG.standard_normal((500, 2))
WHICH = np.repeat(np.arange(100), 5)

# What is asked, then the beginning of what is said of units.
ANSWERS = {
    "consistent": (lambda: oh.recover(X, Y, 2), "Both units of the network may be interpreted"),
    "few rows": (lambda: oh.recover(X[:12], Y[:12], 2, start="random"), "Do not interpret the network's"),
    "linear function": (lambda: oh.recover(X, LINE, 1), "The network is a linear function but for a few"),
    "not identifiable": (lambda: oh.recover(X, X[:, 0] ** 2, 1, activation="quadratic"), "Do not interpret"),
    "approximate": (lambda: oh.recover(X, np.sin(2 * X[:, 0]) + 0.1 * NOISE, 2), ""),
    "family": (lambda: oh.recover(X, COUNTS, 1, family="poisson"), "The unit of the network may be"),
    "several outputs": (lambda: oh.recover(X, TWO, 2), "Both units of the network may be interpreted"),
    "groups": (lambda: oh.recover(X, Y, 2, groups=WHICH), "Both units of the network may be interpreted"),
    "stream": (lambda: oh.recover(oh.data.open((X, Y), stream=True), hidden=2), "Both units of the network"),
}


def plain(sentence, names=()):
    """Whether a sentence is short and names neither a test nor a statistic."""
    words = [word for word in sentence.split() if re.search(r"\w", word)]
    named = [name for name in names if " " in name and name in sentence]
    return len(words) <= 25 and sentence.count(".") >= 1 and not JARGON.search(sentence) and not named


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_first_sentences_are_plain(kind):
    recover, begins = ANSWERS[kind]
    r = recover()
    names = [check.name for check in r.checks]
    assert plain(r.predictions_in_words, names), r.predictions_in_words
    assert plain(r.units_in_words, names), r.units_in_words
    assert r.units_in_words.startswith(begins), r.units_in_words
    assert not JARGON.search(r.message.split(";")[0].replace("residuals", "")), r.message
    text, html = " ".join(str(r).split()), fragment(r)
    assert text.index(r.predictions_in_words) < text.index(r.units_in_words)
    assert r.units_in_words.split(":")[0].split(",")[0] in unescape(html)


def made(status, checks=(), units=None, guard=None, k=2, **options):
    net = OneHiddenNet(np.eye(k, 3) + 0.1, np.arange(1.0, k + 1), np.full(k, 0.1), 3.0)
    found = fake(net, ("a", "b", "c"))
    for name, value in (
        ("status", Status(status)), ("checks", tuple(checks)), ("units", units or ()), ("prediction", guard),
        ("options", options), ("input_mean", np.zeros(3)),
    ):  # fmt: skip
        object.__setattr__(found, name, value)
    return found


def verdicts(*causes):
    units = []
    for i, cause in enumerate(causes):
        unit = UnitVerdict(i, np.ones(3), 0.1, 1.0, (np.ones(3), 1.0, 1.0), 0.5)
        units.append(unit if cause is None else unit.undetermined(cause, "a reason"))
    return tuple(units)


def guard(share, own, line=0.5):
    nothing = Affine(np.zeros(3), 0.0)
    return Prediction(share, nothing, r_squared=own, linear_r_squared=line)


def failed(about, evaluated=True, name="some check"):
    check = Check(name, 0.0, 1.0, False, "advice", about)
    return check if evaluated else not_evaluated(name, 1.0, "advice", about)


@pytest.mark.parametrize("about", [about for about in About if about is not About.NOTE])
@pytest.mark.parametrize("evaluated", [True, False])
def test_every_kind_of_doubt_is_a_plain_sentence(about, evaluated):
    answer = of_units(gather(made("doubtful", [failed(about, evaluated)], k=13)))
    assert plain(answer.sentence)
    assert reason(failed(about, evaluated)) in answer.sentence
    assert answer.mood is Mood.DOUBT


@pytest.mark.parametrize("cause", [*Cause, None])
def test_every_cause_is_a_plain_sentence_of_one_unit_and_of_several(cause):
    for k, causes in ((1, [cause]), (2, [cause] * 2), (2, [None, cause]), (9, [None] * 4 + [cause] * 5)):
        units = verdicts(*causes)
        if cause is None:
            units = tuple(replace(unit, status=UnitStatus.UNDETERMINED) for unit in units)
        object.__setattr__(units[-1], "side", 0)
        answer = of_units(gather(made("not identifiable", units=units, k=k)))
        assert plain(answer.sentence), answer.sentence
        if cause is Cause.RIVAL:
            assert why_undetermined(cause, several=False) in answer.sentence


@pytest.mark.parametrize(
    ("share", "own", "mood", "said"),
    [
        (1.0, 0.93, Mood.GOOD, "Predictions may be used: the network explains 93.0 %"),
        (1.0, 1.0, Mood.GOOD, "explains all of"),
        (1.0, 0.99999, Mood.GOOD, "all but 0.001 %"),
        (
            0.4,
            0.7,
            Mood.GOOD,
            "network and linear model together explain 70 % of the variation of y on unseen",
        ),
        (0.0, 0.5, Mood.CARE, "may be used: a linear model explains 50 %"),
        (0.4, 0.07, Mood.CARE, "Predictions hardly beat the mean of y: network and linear"),
        (0.0, 0.07, Mood.CARE, "Predictions hardly beat the mean of y: a linear model explains"),
        (0.0, -0.1, Mood.DOUBT, "Do not rely on predictions"),
        (1.0, np.nan, Mood.CARE, "was not measured"),
    ],
)
def test_predictions_are_compared_and_coloured_by_themselves(share, own, mood, said):
    answer = of_predictions(gather(made("doubtful", [failed(About.SEARCH)], guard=guard(share, own))))
    assert said in answer.sentence
    assert answer.mood is mood
    assert plain(answer.sentence)


@pytest.mark.parametrize(("target", "said"), [("fee", "fee"), ("fee in $", "y"), (-1, "y"), (None, "y")])
def test_the_target_is_named_where_its_name_is_a_word(target, said):
    answer = of_predictions(gather(made("doubtful", guard=guard(1.0, 0.7), target=target)))
    assert f"of the variation of {said} on unseen rows," in answer.sentence


def test_two_shares_are_told_apart_and_a_black_box_has_no_rows_left_out():
    near = of_predictions(gather(made("consistent", guard=guard(1.0, 0.4912, 0.4873))))
    assert "49.1 % of the variation of y on unseen rows, a linear model 48.7 %" in near.sentence
    assert plain(near.sentence)
    for status, mood in (("exact", Mood.GOOD), ("doubtful", Mood.CARE)):
        box = made(status)
        box.__dict__["queries"] = 40
        assert of_predictions(gather(box)).mood is mood
        assert plain(of_predictions(gather(box)).sentence)
        assert plain(of_units(gather(box)).sentence)


def test_rows_that_explain_nothing_ask_for_other_columns():
    found = made("not identifiable", units=verdicts(Cause.NOTHING), k=1, guard=guard(0.0, -0.02))
    assert "other columns" in next_step(gather(found), [])


def test_a_weak_unit_is_named_and_the_others_may_be_interpreted():
    answer = of_units(gather(made("not identifiable", units=verdicts(None, Cause.NOTHING))))
    said = "Unit 1 may be interpreted, unit 2 may not: the rows do not show that it has an effect."
    assert (answer.sentence, answer.mood) == (said, Mood.CARE)


def test_a_good_predictor_with_doubtful_units_is_not_red_all_over(tmp_path):
    found = made("doubtful", [failed(About.SEARCH)], guard=guard(1.0, 0.93))
    moods = [block.mood for block in screen(gather(found))[:2]]
    assert moods == [Mood.GOOD, Mood.DOUBT]
    page = oh.report.render_html(found, tmp_path / "page.html").read_text()
    assert (
        page.index('class="verdict good"')
        < page.index('class="verdict doubt"')
        < page.index('class="formula"')
    )


def test_more_time_is_asked_for_only_where_it_was_used_up():
    short = [failed(About.SEARCH), failed(About.FIT, evaluated=False)]
    few = [failed(About.DATA), failed(About.SEARCH), failed(About.FIT, evaluated=False)]

    def step(checks, seconds, **options):
        found = made("doubtful", checks, **options)
        object.__setattr__(found, "seconds", seconds)
        return next_step(gather(found), list(checks))

    assert step(short, 58.0, max_seconds=60.0) == "allow more time"
    assert step(short[1:], 4.0, max_seconds=60.0) == "bring more rows"
    assert step(short[:1], 58.0, max_seconds=60.0) == "allow more time"
    assert step(short[:1], 4.0, max_seconds=60.0) == "give another seed"
    assert step(few, 4.0, max_seconds=60.0) == "bring more rows"
    assert "time" not in step(few, 59.0, max_seconds=60.0)
    assert step([failed(About.FIT, evaluated=False)], 1.0) == "bring more rows"


def test_units_that_are_on_in_every_row_are_printed_as_a_linear_function():
    units = tuple(replace(unit, side=1) for unit in verdicts(None))
    found = made("not identifiable", units=units, k=1)
    net = OneHiddenNet([[0.8, 0.1, 0.0]], [1.0], [8717.0], -8715.0)
    object.__setattr__(found, "network", net)
    _, of, advice, formula, *_ = screen(gather(found))
    assert formula.lines == ("y ≈ 2", "+ 0.8 a + 0.1 b [1: linear]")
    assert "linear function" in of.sentence
    assert advice == "next: use a linear model, or bring more rows"
    rows, bias = [[0.8, 0.1, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [10.0, 0.1, -9.0]
    both = OneHiddenNet(rows, [1.0, 2.0, 5.0], bias)
    object.__setattr__(found, "network", both)
    sides = tuple(replace(one, side=1 - one.index) for one in verdicts(None, None, None))
    object.__setattr__(found, "units", sides)
    object.__setattr__(found.standard_errors, "weights", np.full((3, 3), 0.01))
    object.__setattr__(found.standard_errors, "output", np.full(3, 0.01))
    _, of, _, formula, *_ = screen(gather(found))
    assert formula.lines == ("y ≈ 10", "+ 0.8 a + 0.1 b [1, 3: linear]", "+ max(0, 2 c + 0.2) [2]")
    assert "linear function" not in of.sentence


def test_sides_and_causes_are_kept_in_a_run_folder(tmp_path):
    n = 200
    line = 1 + X[:n] @ [0.5, 0.2, 0.1]
    r = oh.recover(X[:n] * 0.2, line + 0.1 * NOISE[:n], 1)
    r.save(tmp_path)
    again = oh.load_recovery(tmp_path)
    assert [(unit.side, unit.cause) for unit in again.units] == [(unit.side, unit.cause) for unit in r.units]
    assert again.units_in_words == r.units_in_words


def test_the_summary_has_the_intervals_of_the_parameters():
    r = oh.recover(X, Y, 2)
    low, high = (net.weights[1, 2] for net in r.interval())
    frame = r.to_frame()
    row = frame[(frame.unit == 2) & (frame.parameter == "x2")].iloc[0]
    assert (row.lower, row.upper) == (low, high)
    assert row.lower < row.estimate < row.upper
    assert f"{low:.4g} to {high:.4g}".replace("-", "−") in summary(r)


def test_a_run_is_checked_in_the_same_words(tmp_path):
    saved_run(tmp_path / "run", OneHiddenNet([[2.0, 0.0, 0.0]], [1.0]), ("a", "b", "c"))
    r = oh.load_recovery(tmp_path / "run")
    text = " ".join(CliRunner().invoke(cli, ["check", str(tmp_path / "run")]).stdout.split())
    assert text.startswith(f"~ {r.predictions_in_words} ✓ {r.units_in_words}")
    record = json.loads(CliRunner().invoke(cli, ["check", str(tmp_path / "run"), "--json"]).stdout)
    assert list(record)[:2] == ["predictions_in_words", "units_in_words"]
    assert list(r.to_dict())[:2] == ["predictions_in_words", "units_in_words"]
    assert [*record.values()][:2] == [r.predictions_in_words, r.units_in_words]
    assert all(r.units_in_words in " ".join(text.split()) for text in (first_screen(r), summary(r)))
