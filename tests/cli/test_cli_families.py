"""Commands for several targets, families, offsets, trials and bands: what is typed reaches the library."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from helpers import command as run
from helpers import sketched
from pyarrow import csv

import onehidden as oh

N = 240
TRUE = oh.OneHiddenNet([[1.2, -0.7]], [1.0], [0.2], 0.3)
QUICK = ("--columns", "a,b", "--hidden", 1, "--start", "random")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with targets of many kinds over one unit."""
    home, rng = tmp_path_factory.mktemp("families"), np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    eta = TRUE.predict(X)
    off, trials = rng.uniform(-1, 1, N), rng.integers(5, 20, N)
    columns = {
        "a": X[:, 0], "b": X[:, 1], "left": eta + 0.1 * rng.standard_normal(N), "log time": off,
        "right": 2 - 0.5 * eta + 0.1 * rng.standard_normal(N), "count": rng.poisson(np.exp(eta + off)),
        "of": trials, "hits": rng.binomial(trials, 1 / (1 + np.exp(0.5 - eta))),
        "word": np.where(eta > 0.5, "yes", "no"),
        "kind": np.digitize(eta + 0.5 * rng.standard_normal(N), [0.2, 1.0]),
    }  # fmt: skip
    csv.write_csv(pa.table(columns), home / "t.csv")
    return home, columns


@pytest.fixture(scope="module")
def two(folder):
    home, _ = folder
    with sketched():
        done = run(
            "recover", home / "t.csv", "--target", "left,right", *QUICK, "--out", home / "two", "--json"
        )
    return done, home / "two"


def test_several_targets_are_recovered_and_predicted_by_name(folder, two):
    home, columns = folder
    done, out = two
    assert done.returncode == 0, done.stderr
    assert "targets 'left', 'right'" in done.stderr
    r = oh.load_recovery(out)
    assert r.network.output.shape == (1, 2)
    told = run("predict", out, home / "t.csv", "--target", "left,right", "--json")
    found = json.loads(told.stdout)
    assert found["columns"] == ["left", "right"]
    X = np.column_stack([columns["a"], columns["b"]])
    np.testing.assert_allclose(found["predictions"], r.predict(X))
    errors = (
        (np.array(found["predictions"]) - np.column_stack([columns["left"], columns["right"]])) ** 2
    ).mean(0)
    assert f"left: mean squared error {errors[0]:.4g}" in told.stderr
    assert f"right: mean squared error {errors[1]:.4g}" in told.stderr
    assert run("report", out, "--out", home / "two.html").returncode == 0


def test_bands_stand_beside_the_predictions(folder, two):
    home, columns = folder
    done = run("predict", two[1], home / "t.csv", "--interval", "observation", "--level", 0.8, "--json")
    found = json.loads(done.stdout)
    names = ["left", "left_lower", "left_upper", "right", "right_lower", "right_upper"]
    assert found["columns"] == names
    table = dict(zip(names, np.array(found["predictions"]).T, strict=True))
    for name in ("left", "right"):
        inside = np.mean((table[f"{name}_lower"] < columns[name]) & (columns[name] < table[f"{name}_upper"]))
        # 80 % of the rows, within three standard errors of that share
        assert abs(inside - 0.8) < 3 * np.sqrt(0.8 * 0.2 / N)
    csv_file = home / "bands.csv"
    assert run("predict", two[1], home / "t.csv", "--interval", "mean", "--out", csv_file).returncode == 0
    assert csv.read_csv(csv_file).column_names == names
    alone = run(
        "predict", two[1] / "model.safetensors", home / "t.csv", "--columns", "a,b", "--interval", "mean"
    )
    assert alone.returncode == 2
    assert "give its folder" in alone.stderr


def test_counts_with_an_offset_are_predicted_with_it(folder):
    home, columns = folder
    asked = ("--family", "poisson", "--offset", "log time")
    done = run("recover", home / "t.csv", "--target", "count", *QUICK, *asked, "--out", home / "counts")
    assert done.returncode == 0, done.stderr
    r = oh.load_recovery(home / "counts")
    assert r.family.name == "poisson"
    predicted = json.loads(run("predict", home / "counts", home / "t.csv", "--json").stdout)["predictions"]
    X = np.column_stack([columns["a"], columns["b"]])
    mean = np.exp(TRUE.predict(X) + columns["log time"])
    error = np.abs(np.log(predicted) - np.log(mean))
    assert np.median(error) < 0.15
    assert np.corrcoef(np.log(predicted) - r.network.predict(X), columns["log time"])[0, 1] > 1 - 1e-12


def test_successes_of_trials_are_held_against_shares(folder):
    home, columns = folder
    asked = ("--target", "hits", *QUICK, "--family", "binomial", "--trials", "of")
    done = run("recover", home / "t.csv", *asked, "--out", home / "shares")
    assert done.returncode == 0, done.stderr
    told = run("predict", home / "shares", home / "t.csv", "--target", "hits", "--json")
    predicted = np.array(json.loads(told.stdout)["predictions"])
    assert np.all((predicted > 0) & (predicted < 1))
    wanted = np.mean((columns["hits"] / columns["of"] - predicted) ** 2)
    assert f"mean squared error {wanted:.4g}" in told.stderr


def test_classes_are_written_drawn_and_held_against_their_probabilities(folder):
    home, columns = folder
    asked = ("--target", "kind", *QUICK, "--family", "softmax", "--max-seconds", 20)
    done = run("recover", home / "t.csv", *asked, "--out", home / "kinds")
    assert done.returncode in (0, 1), done.stderr
    assert "behind kind in t.csv" in done.stdout
    assert 'id="figure-observed-2"' in (home / "kinds" / "report.html").read_text()
    told = run("predict", home / "kinds", home / "t.csv", "--target", "kind", "--json")
    found = json.loads(told.stdout)
    assert found["columns"] == ["1", "2"]
    errors = np.mean((np.array(found["predictions"]) - (columns["kind"][:, None] == [1, 2])) ** 2, axis=0)
    assert all(f"mean squared error {error:.4g}" in told.stderr for error in errors)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--target", "left", "--family", "poison"), "poison"),
        (("--target", "left", "--family", "poisson"), "for counts"),
        (("--target", "left,left"), "each column once"),
        (("--target", "left", "--offset", "nothing"), "no offset column 'nothing'"),
        (("--target", "hits", "--family", "binomial", "--trials", "hits"), "both the target and the trials"),
        (("--target", "word,left"), "must hold numbers"),
    ],
)
def test_what_the_library_refuses_is_one_sentence(folder, asked, words, tmp_path):
    home, _ = folder
    done = run("recover", home / "t.csv", "--columns", "a,b", *asked, "--out", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_text_labels_are_classes_and_groups_a_column(folder):
    home, columns = folder
    out = home / "words"
    done = run("recover", home / "t.csv", "--target", "word", *QUICK, "--max-seconds", 5, "--out", out)
    assert done.returncode in (0, 1), done.stderr
    assert "unexpected" not in done.stderr
    assert oh.load_recovery(out).classes == ("no", "yes")
    assert "mean squared error" in run("predict", out, home / "t.csv", "--target", "word").stderr
    site = [f"s{j // 12}" for j in range(N)]
    csv.write_csv(pa.table({**columns, "site": site}), home / "sites.csv")
    grouped = run(
        "recover", home / "sites.csv", "--target", "left", "--groups", "site", *QUICK, "--max-seconds", 5,
        "--out", home / "sites",
    )  # fmt: skip
    assert grouped.returncode in (0, 1), grouped.stderr
    assert oh.load_recovery(home / "sites").options["groups"] == "site"
    lost = run(
        "recover", home / "sites.csv", "--target", "left", "--groups", "sites", *QUICK, "--out", home / "lost"
    )
    assert (lost.returncode, "did you mean 'site'" in lost.stderr) == (2, True)
