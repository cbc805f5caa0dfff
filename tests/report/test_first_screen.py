"""The first screen: one builder; sentence, formula, fit, effects, what failed and what to do next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fake_recovery import HOSTILE, fake, saved_run

import onehidden as oh
from onehidden.certify.certificate import Status
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.checks import About
from onehidden.network import OneHiddenNet
from onehidden.recovery.line import Affine
from onehidden.recovery.prediction import Prediction
from onehidden.report.blocks import Formula, Grid
from onehidden.report.pictures import fit_of
from onehidden.report.screen import facts, next_step, screen, unmet
from onehidden.report.subject import gather
from onehidden.report.text import Row, first_screen, fragment, numbers, summary, to_csv, to_frame
from onehidden.report.wording import explained

NAMES = ("age", "dose", HOSTILE)


def shown_as(kind, made):
    """The block of this kind on the first screen."""
    return next(block for block in screen(gather(made)) if isinstance(block, kind))


def formula_of(made):
    return shown_as(Formula, made).lines


def unit_of(made, row=0):
    """Share, output, verdict and inputs of a unit."""
    return shown_as(Grid, made).rows[row][1:]


def _recovery(good=True):
    net = OneHiddenNet([[0.6, 0.0, -0.8], [0.0, 1.0, 0.0]], [2.0, -0.5], [0.1, 0.0], 3.0)
    made = fake(net, NAMES, good)
    units = tuple(
        UnitVerdict(
            i, net.weights[i], float(net.bias[i]), float(net.output[i]),
            (made.standard_errors.weights[i], 0.01, 0.01), (0.8, 0.1)[i],
        )
        for i in range(2)
    )  # fmt: skip
    object.__setattr__(made, "units", units)
    object.__setattr__(made, "input_spread", np.array([1.0, 100.0, 0.1]))
    object.__setattr__(made, "r_squared", 0.9123)
    object.__setattr__(made, "linear_r_squared", 0.7)
    return made


def test_inputs_stand_in_the_order_of_their_standardised_effects():
    made = _recovery()
    found = gather(made)
    np.testing.assert_allclose(found.effects, [[1.2, 0.0, -0.16], [0.0, -50.0, 0.0]])
    inputs = unit_of(made)[-1]
    assert inputs.index("age") < inputs.index(HOSTILE)  # raw weights say otherwise
    # The error of a product of independent factors, in the same measure.
    weight, output = made.standard_errors.weights[0, 0], made.standard_errors.output[0]
    assert found.effect_errors[0, 0] == pytest.approx(np.hypot(2.0 * weight, 0.6 * output))


def test_the_formula_has_the_numbers_of_the_network():
    lines = formula_of(_recovery())
    assert lines[0] == "y ≈ 3"
    assert lines[1] == f"+ max(0, 1.2 age − 1.6 {HOSTILE} + 0.2) [1]"
    assert lines[2].startswith("− max(0, 0.5 dose")


def test_a_sigmoid_keeps_its_output_outside():
    net = OneHiddenNet([[2.0, 0.0, 0.0]], [-3.0], [0.0], 0.0, "sigmoid")
    assert formula_of(fake(net, NAMES))[1] == "− 3 sigmoid(2 age) [1]"


def test_effects_are_called_what_they_are():
    made = fake(OneHiddenNet([[0.6, 0.0, -0.8]], [2.0], [0.1], 3.0), NAMES)
    assert shown_as(Grid, made).columns[-1].startswith("output × weight, ")
    object.__setattr__(made, "input_spread", np.ones(3))
    assert shown_as(Grid, made).columns[-1].startswith("effect on y of one sd at slope one, ")


def test_of_many_units_formula_and_list_show_the_same_ones():
    k = 14
    rng = np.random.default_rng(3)
    net = OneHiddenNet(rng.standard_normal((k, 3)), np.arange(1.0, k + 1), np.zeros(k), 0.5, "sigmoid")
    made = fake(net, NAMES)
    share = rng.permutation(k) / k
    units = tuple(
        UnitVerdict(i, net.weights[i], 0.0, float(net.output[i]), (np.ones(3), 1.0, 1.0), float(share[i]))
        for i in range(k)
    )
    object.__setattr__(made, "units", units)
    strongest, lines = np.argsort(-share)[:6], formula_of(made)
    assert [int(row[0]) - 1 for row in shown_as(Grid, made).rows] == strongest.tolist()
    assert [float(line.split()[1]) for line in lines[1:-1]] == sorted(net.output[strongest])
    assert lines[-1] == f"+ … ({k - 6} more units)"


def test_the_reason_of_a_unit_stands_beside_it_whatever_the_message_says():
    made = _recovery()
    open_ = made.units[0].undetermined(Cause.KINK, made.message)
    object.__setattr__(made, "units", (open_, made.units[1]))
    assert unit_of(made)[2] == f"undetermined ({made.message})"


def test_a_unit_left_open_is_marked_and_has_no_error():
    made = _recovery()
    open_ = made.units[0].undetermined(Cause.KINK, "only 4 samples lie beyond the kink of unit 1")
    object.__setattr__(made, "units", (open_, made.units[1]))
    lines, legend = formula_of(made), shown_as(Grid, made).note
    assert lines[1].endswith("[1] (?)")
    assert "(?)" in legend
    assert legend in " ".join(first_screen(made).split())
    assert not lines[2].endswith("(?)")
    _, output, judged, inputs = unit_of(made)
    assert "±" not in output + inputs
    assert "only 4 samples" in judged
    table = [row for row in numbers(gather(made)) if row.unit == 1]
    assert all(np.isinf(row.standard_error) for row in table)
    assert all(np.isfinite(row.standard_error) for row in numbers(gather(made)) if row.unit == 2)


@pytest.mark.parametrize(
    ("errors", "step"), [("classical", "errors='robust'"), ("auto", "groups="), ("robust", "groups=")]
)
def test_errors_that_hold_for_unequal_noise_fail_by_dependence_alone(errors, step):
    made = _recovery()
    failed = replace(made.checks[0], passed=False, about=About.ERRORS)
    object.__setattr__(made, "status", Status.DOUBTFUL)
    object.__setattr__(made, "options", {"errors": errors})
    assert step in next_step(gather(made), [failed])


@pytest.mark.parametrize(
    ("good", "step"), [(True, ""), (False, "let the number of units be chosen: leave out hidden (--hidden)")]
)
def test_what_to_do_next_follows_from_what_failed(good, step):
    made = _recovery(good)
    object.__setattr__(made, "status", Status.CONSISTENT if good else Status.NOT_IDENTIFIABLE)
    advice = [block for block in screen(gather(made)) if str(block).startswith("next: ")]
    assert advice == [f"next: {step}"] * (not good)
    assert (unmet(gather(made)) == []) is good
    text = first_screen(made)
    assert ("next:" in text) is not good
    assert text.index("other rows") < text.index("interpret") < text.index("≈")
    assert "checks passed" in text


def test_text_page_and_notebook_tell_the_same():
    made = _recovery()
    text, html, long = first_screen(made), fragment(made), summary(made)
    assert long.startswith(text)
    assert "network: R² 0.912" in text
    assert "R² of a linear fit 0.7" in text
    assert "0.912" in html
    assert "<script" not in html
    assert HOSTILE in text
    assert all(line in text for line in formula_of(made))
    assert max(map(len, text.splitlines())) <= 100


def test_an_error_many_times_an_effect_leaves_it_open_and_one_near_zero_is_known():
    net = OneHiddenNet([[1.0, 0.001, 0.0]], [2.0])
    made = fake(net, NAMES)
    object.__setattr__(made, "input_spread", np.ones(3))
    errors = made.standard_errors
    inputs = []
    for size in (0.05, 500.0):
        errors.weights[:], errors.output[:] = size, 0.0
        inputs.append(unit_of(made)[-1])
    assert inputs[0] == f"age 2.00 ± 0.10, dose 0.00 ± 0.10, {HOSTILE} 0.00 ± 0.10"
    assert inputs[1] == f"age ?, dose ?, {HOSTILE} ?"


def test_shares_are_whole_numbers_and_beyond_a_hundred_said_why():
    made = _recovery()
    assert "100 %" not in shown_as(Grid, made).note
    units = tuple(replace(unit, share=share) for unit, share in zip(made.units, (1.6, 0.034), strict=True))
    object.__setattr__(made, "units", units)
    shown = shown_as(Grid, made)
    assert [row[1] for row in shown.rows] == ["160 % of var(y)", "3.4 % of var(y)"]
    assert "overlap or cancel" in shown.note
    assert "160 % of var(y)" in first_screen(made)


@pytest.mark.parametrize(("rows", "shown"), [(2, "–"), (200, "1")])
def test_as_many_parameters_as_rows_say_nothing_of_rows_left_out(rows, shown):
    made = _recovery()
    nothing = Affine(np.zeros(3), 0.0)
    guard = Prediction(1.0, nothing, r_squared=1.0, linear_r_squared=0.5)
    for name, value in (("prediction", guard), ("n_samples", rows), ("freedom", 9)):
        object.__setattr__(made, name, value)
    found = dict(facts(gather(made)))
    assert (found["R² on rows left out"], found["R² of ridge, same rows"]) == (shown, "0.5")


def test_the_figure_of_the_fit_shows_what_is_predicted():
    made = _recovery()
    line = Affine(np.array([1.0, 2.0, 3.0]), 4.0)
    guard = Prediction(0.0, line)
    object.__setattr__(made, "predict", lambda X, offset: guard.predict(made.network, X))
    X = np.random.default_rng(0).standard_normal((20, 3))
    subject = gather(made, X, np.zeros(20))
    np.testing.assert_array_equal(fit_of(subject, 0, subject.predictions()).rows, line(X))


def test_one_unit_is_a_unit_and_terminal_escapes_are_not_obeyed():
    net = OneHiddenNet([[1.0, 0.0]], [1.0])
    made = replace(fake(net, ("a\x1b[31mb", "c")), options={"target": "y\x1b]0;x", "source": "d/f.csv"})
    text = first_screen(made)
    assert text.startswith("1 relu unit behind y")
    assert "in f.csv" in text
    assert "\x1b" not in text
    assert "\x1b" not in summary(made)


def test_every_number_is_a_row_of_the_frame_and_of_the_file():
    made = _recovery()
    frame = to_frame(made)
    assert tuple(frame.columns) == Row._fields
    assert len(frame) == 1 + 2 * (2 + 3)
    weights = frame[(frame["unit"] == 1) & (frame["parameter"] == "age")]
    assert float(weights["effect_of_one_sd"].iloc[0]) == pytest.approx(1.2)
    formula = replace(made, feature_names=("=1+1", "dose", "c"))
    text = to_csv(formula)
    assert "'=1+1" in text
    assert text.count("\n") == 1 + len(frame)


@pytest.mark.parametrize(("value", "text"), [(0.91234, "0.912"), (1 - 1e-9, "1 − 1e-09"), (-0.5, "−0.5")])
def test_near_one_what_is_missing_is_shown(value, text):
    assert explained(value) == text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "inputs are measured without error"),
        ({"status": Status.EXACT}, "No other column"),
        ({"queries": 40}, "same answer to the same question"),
    ],
)
def test_every_page_says_in_one_line_what_is_taken_as_given(change, said, tmp_path):
    saved_run(tmp_path / "run", OneHiddenNet([[2.0, 0.0, 0.0]], [1.0]), NAMES)
    made = replace(oh.load_recovery(tmp_path / "run"), **change)
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in made.assumptions)
    line = " ".join(made.assumptions)
    assert said in line
    assert "taken as given: " in str(made)
    made.report(tmp_path / "page.html")
    pages = [" ".join(text.split()) for text in (str(made), (tmp_path / "page.html").read_text())]
    assert all(page.count(line) == 1 for page in pages)
    assert made.to_dict()["assumptions"] == list(made.assumptions)
