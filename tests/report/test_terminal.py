"""Terminal tables and the predict command: names as text, one sentence for bad input, exit codes."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from fake_recovery import HOSTILE, bare, fake, problem, saved_run

from onehidden import data
from onehidden.checks import About, at_least, not_evaluated
from onehidden.cli import cli
from onehidden.network import OneHiddenNet
from onehidden.report.text import check_lines, show
from onehidden.report.wording import Mark
from onehidden_papers.commands.demo import found_against_true

NAMES = (HOSTILE, "age", "[red]dose[/red]", "bmi", "$x$", "sys_bp")


def _printed(part, width: int = 100) -> str:
    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=width).print(part)
    return stream.getvalue()


def _lines(recovery) -> str:
    return "\n".join(line for _, line in check_lines(recovery, 140))


@pytest.mark.parametrize("width", [80, 120])
def test_the_first_screen_shows_names_and_errors_as_text(width):
    from rich.console import Console

    *_, found = problem()
    found = OneHiddenNet(found.weights, [1.53, *found.output[1:]], found.bias, 0.301)
    recovery = fake(found, NAMES)
    recovery.standard_errors.output[0] = 0.0137
    stream = io.StringIO()
    show(recovery, Console(file=stream, width=width))
    text = stream.getvalue()
    for name in NAMES:
        assert text.count(name) == 2 * found.n_hidden  # in the formula and beside its effect
    assert "w 1.530 ± 0.014" in text
    assert max(map(len, text.splitlines())) <= width


def test_checks_put_failures_first_with_advice():
    *_, found = problem()
    text = _lines(fake(found, good=False))
    assert text.index("failed") < text.index("passed")
    assert "ask for fewer units or more data" in text
    assert "no checks" in _lines(bare(found))


def test_checks_that_were_not_evaluated_have_neither_passed_nor_failed():
    *_, found = problem()
    asked = replace(
        fake(found),
        checks=(
            at_least("well", 2.0, 1.0, "fine", About.FIT),
            at_least("aside", 0.0, 1.0, "told, decides nothing"),
            not_evaluated("a larger model", 6.0, "too few rows", About.FIT),
        ),
    )
    lines = [line.split("  ")[0].strip() for line in _lines(asked).splitlines()]
    assert [word for word in lines if word in set(Mark)] == ["not evaluated", "noted", "passed"]


def test_status_is_one_word_and_its_sentence():
    *_, found = problem()
    assert _lines(fake(found)).splitlines()[-1] == "consistent: what is left looks like noise"
    doubtful = _lines(fake(found, good=False)).splitlines()[-1]
    assert doubtful == "doubtful: two units are parallel"


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "abs", "squared_relu"])
def test_found_against_true_pairs_units_in_one_gauge(activation):
    *_, truth, _ = problem(activation=activation)
    # The same function written otherwise: scaled rows where g is homogeneous, turned units where g allows.
    found = truth
    if truth.activation.sign_free and truth.activation.reversal is not None:
        parity = truth.activation.reversal.parity
        shift = float(sum(truth.activation.reversal.polynomial[:1]))
        intercept = truth.intercept + shift * truth.output.sum()
        found = OneHiddenNet(-truth.weights, parity * truth.output, -truth.bias, intercept, activation)
    if truth.activation.homogeneity is not None:
        found = OneHiddenNet(
            3 * found.weights,
            found.output / 3**truth.activation.homogeneity,
            3 * found.bias,
            found.intercept,
            activation,
        )
    lines = _printed(found_against_true(found, truth), 120).splitlines()
    rows = [line.split() for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    assert len(rows) == truth.n_hidden
    for row in rows:
        assert row[3] == row[4]
        assert row[5] == row[6]
        assert float(row[2].replace("−", "-")) < 1e-12


def test_true_unit_without_partner_is_shown():
    *_, truth, found = problem()
    fewer = OneHiddenNet(found.weights[:3], found.output[:3], found.bias[:3])
    assert "none" in _printed(found_against_true(fewer, truth))


# --- predict


@pytest.fixture
def run(tmp_path):
    X, y, _, found = problem(n=40)
    names = [f"f{j}" for j in range(6)]
    saved_run(tmp_path / "run", found, names)
    header = ",".join(["y", *names[::-1]])
    np.savetxt(
        tmp_path / "rows.csv", np.column_stack([y, X[:, ::-1]]), delimiter=",", header=header, comments=""
    )
    np.savetxt(tmp_path / "plain.csv", X, delimiter=",", header=",".join("abcdef"), comments="")
    return tmp_path, found, X


def test_predict_finds_columns_by_name_in_a_run_folder(run):
    folder, net, X = run
    result = CliRunner().invoke(cli, ["predict", str(folder / "run"), str(folder / "rows.csv")])
    assert result.exit_code == 0
    header, *values = result.stdout.split()
    assert header == "prediction"
    np.testing.assert_allclose(np.array(values, float), net.predict(X), atol=1e-12)


def test_predict_writes_every_format_and_json(run):
    folder, net, X = run
    model, file = str(folder / "run" / "model.safetensors"), str(folder / "plain.csv")
    for suffix in ("csv", "parquet"):
        out = folder / "out" / f"p.{suffix}"
        assert CliRunner().invoke(cli, ["predict", model, file, "--out", str(out)]).exit_code == 0
        back = data.open(out).X[:, 0]
        np.testing.assert_allclose(back, net.predict(X), atol=1e-12)
    result = CliRunner().invoke(cli, ["predict", model, file, "--json"])
    np.testing.assert_allclose(json.loads(result.stdout)["predictions"], net.predict(X), atol=1e-12)


def test_predict_compares_with_a_known_target(run):
    folder, *_ = run
    result = CliRunner().invoke(
        cli, ["predict", str(folder / "run"), str(folder / "rows.csv"), "--target", "y"]
    )
    assert result.exit_code == 0
    assert "R² 0.98" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing", "plain.csv"], "no model file"),
        (["plain.csv", "plain.csv"], "not a onehidden model"),
        (["empty", "plain.csv"], "holds no model.safetensors"),
        (["run", "missing.csv"], "no file at"),
        (["run", "run"], "is a folder"),
        (["run/model.safetensors", "rows.csv"], "takes 6 features but"),
        (["run", "plain.csv"], "no column 'f0'"),
        (["run/model.safetensors", "plain.csv", "--out", "p.doc"], "must end in"),
        (["run/model.safetensors", "plain.csv", "--columns", "a,b,zz,d,e,f"], "no column 'zz'"),
    ],
)
def test_predict_refuses_with_one_sentence_and_code_2(run, arguments, words, monkeypatch, capsys):
    from onehidden.cli import main

    folder, *_ = run
    (folder / "empty").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.argv", ["onehidden", "predict", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["recover", "--help"]])
def test_help_says_which_tables_are_read(arguments):
    text = " ".join(CliRunner().invoke(cli, arguments).output.split())
    for kind in ("CSV", "Parquet", "Feather", "npz", "folder of Parquet"):
        assert kind in text
