"""y against one input on axes and on the page, and a curve for each of several inputs."""

from __future__ import annotations

import re

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from helpers import sketched

import onehidden as oh
from onehidden.recovery.target import table_of
from onehidden.report.pictures import effect_of, over_input
from onehidden.report.subject import gather

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(-2, 2, 150))[:, None]
Y = 3 * np.tanh(2 * X[:, 0] - 1) + 0.3 * RNG.standard_normal(150)


@pytest.fixture(scope="module")
def answer():
    return oh.recover(X, Y, 1, activation="tanh")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_the_curve_is_what_is_predicted_with_the_band_of_its_mean(answer):
    found = over_input(gather(answer, X, Y))
    np.testing.assert_array_equal(found.mean, answer.predict(found.x[:, None]))
    lower, upper = answer.predict_interval(found.x[:, None])
    np.testing.assert_array_equal(found.band, (lower, upper))
    assert (found.x[0], found.x[-1]) == (X.min(), X.max())


def test_one_input_is_drawn_on_axes_with_rows_and_band(answer):
    axes = answer.plot(X, Y)
    assert isinstance(axes, matplotlib.axes.Axes)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x0", "y")
    assert len(axes.collections) == 2  # rows and band
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), over_input(gather(answer, X, Y)).mean)
    own = plt.subplots()[1]
    assert answer.plot(X, axes=own) is own
    assert len(own.collections) == 1


def test_figures_have_no_ground_and_colours_that_both_themes_show(answer):
    before = dict(matplotlib.rcParams)
    axes = answer.plot(X, Y)
    assert axes.figure.get_facecolor()[3] == axes.get_facecolor()[3] == 0
    colours = [axes.xaxis.label.get_color(), axes.get_xticklabels()[0].get_color(), axes.lines[0].get_color()]
    for colour in colours:
        light = matplotlib.colors.to_rgb(colour) @ np.array([0.2126, 0.7152, 0.0722])
        assert 0.2 < light < 0.75
    assert dict(matplotlib.rcParams) == before


def test_several_inputs_have_a_curve_each():
    many = RNG.standard_normal((200, 3))
    y = 2 * np.maximum(0, many[:, 0]) + many[:, 1] + 0.2 * RNG.standard_normal(200)
    r = oh.recover(many, y, 1, linear=True)
    drawn = r.plot(many, y)
    assert [one.get_xlabel() for one in drawn[:2]] in (["x0", "x1"], ["x1", "x0"])
    assert len(drawn) == 3
    with pytest.raises(ValueError, match="give the rows X"):
        r.plot()
    with pytest.raises(ValueError, match="axes are taken for one input"):
        r.plot(many, y, axes=drawn[0])


def test_a_frame_is_drawn_by_the_names_of_its_columns_and_as_it_is_predicted():
    import pandas as pd

    frame = pd.DataFrame(RNG.standard_normal((60, 2)), columns=["a", "b"])
    frame["y"] = 3 * frame.a + RNG.standard_normal(60)
    r = oh.recover(frame, "y", 1)
    turned = gather(r, table_of(r, frame[["y", "b", "a"]].assign(c="text"), outcomes=True))
    np.testing.assert_array_equal(turned.X, frame[["a", "b"]])
    np.testing.assert_array_equal(turned.Y[:, 0], frame.y)
    assert r.prediction.share < 1
    moved = np.tile(turned.X, (40, 1))
    found = effect_of(turned, 0)
    moved[:, 0] = np.repeat(found.x, 60)
    np.testing.assert_allclose(found.mean, r.predict(moved).reshape(40, 60).mean(axis=1))
    assert not np.allclose(found.mean, r.network.predict(moved).reshape(40, 60).mean(axis=1))


def test_a_page_of_one_input_has_its_curve(answer, tmp_path):
    with sketched():
        answer.report(tmp_path / "page.html", X, Y)
    text = (tmp_path / "page.html").read_text()
    assert 'id="figure-curve-1"' in text
    assert re.search("The curve is what is predicted of y over x0; the band is the 95 % interval", text)
    assert 'id="effects"' not in text  # the same curve once more


def test_outputs_and_families_have_their_curves(tmp_path):
    two = np.column_stack([Y, -2 * Y + 0.1 * RNG.standard_normal(150)])
    several = gather(oh.recover(X, two, 1, activation="tanh"), X, two)
    assert over_input(several, 1).mean.shape == (240,)
    counts = RNG.poisson(np.exp(1 + np.tanh(2 * X[:, 0])))
    r = oh.recover(X, counts, 1, family="poisson", activation="tanh")
    found = over_input(gather(r, X, counts))
    assert np.all(found.band[0] <= found.mean)
    assert np.all(found.band[1] >= found.mean)
