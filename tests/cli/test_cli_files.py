"""From a file as it comes to predictions: what recover did to the columns, predict and check do again."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from fake_recovery import saved_run
from helpers import write_folder
from pyarrow import parquet

import onehidden as oh
from onehidden.cli import main, progress, runs
from onehidden.recovery.prediction import Affine, Prediction

RNG = np.random.default_rng(5)
N = 240
COLOURS = RNG.choice(["red", "blue"], N, p=[0.7, 0.3])
X = RNG.standard_normal(N)
TRUE = np.maximum(X - 0.8 * (COLOURS == "blue"), 0) * 1.5 + 0.25


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["onehidden", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return stop.value.code, said.out, said.err

    return run


def german(path, rows, y=True):
    """A CSV as a German spreadsheet writes it: cp1252, semicolons, decimal commas, a dash for a gap."""
    lines = ["Größe;Farbe;leer;id" + (";y" if y else "")]
    for i in rows:
        cells = [str(X[i]), str(COLOURS[i]), "1,0", f"n{i}", *([str(TRUE[i])] if y else [])]
        lines.append(";".join(cells).replace(".", ","))
    lines.insert(3, "-;red;1,0;none" + (";0,5" if y else ""))
    path.write_bytes("\n".join([*lines, ""]).encode("cp1252"))


def test_a_run_remembers_how_its_columns_were_made(tmp_path, call):
    german(tmp_path / "daten.csv", range(N))
    code, _, err = call(
        "recover", "daten.csv", "--decimal", ",", "--one-hot", "--drop", "id", "--nulls", "drop",
        "--hidden", 1, "--out", "run",
    )  # fmt: skip
    assert code == 0, err
    for words in ("cp1252", "base 'red'", "'leer' is constant", "1 of 241 rows"):
        assert words in err
    found = oh.load_recovery("run")
    assert found.feature_names == ("Größe", "Farbe=blue")
    np.testing.assert_allclose(found.network.weights[0] * found.network.output[0], [1.5, -1.2], atol=1e-8)
    # Other rows: no categories, no decimal mark and no columns need be named again.
    german(tmp_path / "neu.csv", range(20), y=False)
    code, out, err = call("predict", "run", "neu.csv", "--json")
    assert code == 0, err
    values = json.loads(out)["predictions"]
    assert values[2] is None  # the row with a gap keeps its place
    np.testing.assert_allclose([v for v in values if v is not None], TRUE[:20], atol=1e-8)
    assert "1 rows with gaps" in err
    code, _, err = call("predict", "run", "daten.csv", "--target", "y", "--json")
    assert code == 0
    assert re.search(rf"mean squared error \S+e-[23]\d, R² 1.0000 on {N} rows", err)
    # A run is never given up silently.
    before = (tmp_path / "run" / "recovery.json").read_bytes()
    code, _, err = call("recover", "daten.csv", "--out", "run")
    assert code == 2
    assert "--force" in err
    (tmp_path / "run" / "notes.txt").write_text("mine")
    assert call("recover", "daten.csv", "--out", "run", "--force")[0] == 2
    assert (tmp_path / "run" / "recovery.json").read_bytes() == before


@pytest.fixture
def streamed(tmp_path):
    """A run, and a folder of Parquet files that its network fits up to noise; one row has a gap."""
    net = oh.OneHiddenNet([[1.0, -0.5, 0.2]], [2.0], [0.1], 0.3)
    inputs = RNG.standard_normal((5000, 3))
    y = net.predict(inputs) + 0.1 * RNG.standard_normal(5000)
    columns = {"a": inputs[:, 0].copy(), "b": inputs[:, 1], "c": inputs[:, 2], "y": y}
    columns["a"][1234] = np.nan
    write_folder(tmp_path / "rows", columns, files=4, group=500)
    saved_run(tmp_path / "run", net, "abc", {"target": "y"})
    return net, inputs, y


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_of_a_folder_are_streamed_in_order(streamed, suffix, tmp_path, call):
    net, inputs, y = streamed
    code, out, err = call(
        "predict", "run", "rows", "--target", "y", "--nulls", "drop", "--out", f"p.{suffix}"
    )
    assert code == 0, err
    assert out == ""
    table = oh.data.open(f"p.{suffix}", nulls="drop")
    values = np.full(5000, np.nan)
    values[table.row] = table.X[:, 0]
    assert np.flatnonzero(np.isnan(values)).tolist() == [1234]
    kept = np.arange(5000) != 1234
    np.testing.assert_allclose(values[kept], net.predict(inputs[kept]), rtol=1e-14)
    error = np.mean((y - net.predict(inputs))[kept] ** 2)
    share = 1 - error / np.var(y[kept])
    assert f"mean squared error {error:.4g}, R² {share:.4f} on 4999 rows" in err
    assert call("predict", "run", "rows", "--nulls", "drop", "--out", f"p.{suffix}")[0] == 2  # there already


def test_a_part_without_a_whole_row_keeps_its_place(streamed, tmp_path, call):
    gaps = {name: np.full(7, np.nan) for name in "abcy"}
    parquet.write_table(pa.table(gaps), tmp_path / "rows" / "9.parquet")
    code, out, err = call("predict", "run", "rows", "--nulls", "drop", "--json")
    assert code == 0, err
    values = json.loads(out)["predictions"]
    assert (len(values), values[-7:]) == (5007, [None] * 7)
    assert "8 rows with gaps" in err


def test_a_gap_far_into_a_folder_leaves_no_part_of_a_file(streamed, tmp_path, call):
    before = sorted(p.name for p in tmp_path.iterdir())
    code, out, err = call("predict", "run", "rows", "--out", "p.csv")
    assert code == 2
    assert "1 of 250 rows" in err
    assert out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_report_draws_a_folder_from_a_sample(streamed, tmp_path, call, pictures):
    code, _, err = call("report", "run", "--data", "rows", "--nulls", "drop", "--out", "page.html")
    assert code == 0, err
    assert (tmp_path / "page.html").stat().st_size > 10_000
    code, _, err = call("report", "run", "--data", "rows", "--out", "other.html")
    assert code == 2
    assert "--nulls drop" in err
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize("suffix", ["CSV", "Parquet"])
def test_names_of_predictions_may_end_in_capitals(streamed, suffix, tmp_path, call):
    before = {p.name for p in tmp_path.iterdir()}
    code, _, err = call("predict", "run", "rows", "--nulls", "drop", "--out", f"p.{suffix}")
    assert code == 0, err
    assert {p.name for p in tmp_path.iterdir()} - before == {f"p.{suffix}"}
    assert oh.data.files.format_of(tmp_path / f"p.{suffix}").lower() == suffix.lower()


def test_names_of_reports_may_end_in_capitals(streamed, tmp_path, call):
    code, _, err = call("report", "run", "--out", "page.HTML")
    assert code == 0, err
    assert (tmp_path / "page.HTML").read_text().startswith("<!DOCTYPE html>")


def test_typed_nulls_come_before_those_of_the_run(streamed, tmp_path, call):
    net, *_ = streamed
    saved_run(tmp_path / "dropped", net, "abc", {"target": "y", "nulls": "drop"})
    assert call("predict", "dropped", "rows")[0] == 0
    code, _, err = call("predict", "dropped", "rows", "--nulls", "refuse")
    assert code == 2
    assert "1 of 250 rows" in err


def test_the_error_is_that_of_the_predictions(streamed, tmp_path, call):
    net, inputs, y = streamed
    line = Affine(np.array([1.0, -0.5, 0.2]), 1.0)
    recovery = saved_run(tmp_path / "run", net, "abc", {"target": "y", "nulls": "drop"})
    guarded = replace(recovery, prediction=Prediction(0.0, line))
    guarded.save(tmp_path / "guarded")
    kept = np.arange(5000) != 1234
    own, nets = (np.mean((y - f(inputs))[kept] ** 2) for f in (line, net.predict))
    assert own > 2 * nets
    _, _, err = call("predict", "guarded", "rows", "--target", "y")
    assert f"mean squared error {own:.4g}, R² {1 - own / np.var(y[kept]):.4f} on 4999 rows" in err


def test_a_run_cannot_take_the_place_of_the_folder_it_is_started_in(tmp_path, call):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "link").symlink_to(inside)
    before = os.getcwd()
    try:
        os.chdir(inside)
        for out in (".", "../link"):
            with pytest.raises(ValueError, match="the folder you are in"):
                runs.free_folder(Path(out))
    finally:
        os.chdir(before)
    assert runs.free_folder(tmp_path / "link") == tmp_path / "link"
    code, _, err = call("recover", "t.csv", "--out", ".")
    assert code == 2
    assert "the folder you are in" in err


def test_names_with_commas_are_typed_in_quotes(tmp_path, call):
    net = oh.OneHiddenNet([[1.0, -0.5]], [2.0], [0.1], 0.3)
    net.save(tmp_path / "m.safetensors")
    values = RNG.standard_normal((30, 2))
    parquet.write_table(
        pa.table({"a, left": values[:, 0], "b": values[:, 1], "z": values[:, 1]}), tmp_path / "t.parquet"
    )
    code, out, err = call("predict", "m.safetensors", "t.parquet", "--columns", '"a, left", b', "--json")
    assert code == 0, err
    np.testing.assert_allclose(json.loads(out)["predictions"], net.predict(values), rtol=1e-14)
    code, _, err = call("predict", "m.safetensors", "t.parquet", "--columns", "a, left,b")
    assert code == 2
    assert "'a, left'" in err


def test_a_model_of_several_outputs_predicts_a_column_each(streamed, tmp_path, call):
    _, values, _ = streamed
    net = oh.OneHiddenNet([[1.0, -0.5, 0.2]], [[2.0, 1.0]])
    net.save(tmp_path / "two.safetensors")
    code, out, err = call("predict", "two.safetensors", "rows", "--columns", "a,b,c", "--nulls", "drop")
    assert code == 0, err
    head, *lines = out.splitlines()
    assert head == "y0,y1"
    found = np.array([line.split(",") for line in lines], float)
    whole = np.isfinite(found[:, 0])
    np.testing.assert_allclose(found[whole], net.predict(values[whole]), rtol=1e-14)
    assert whole.sum() > 0.9 * len(values)


def test_runs_have_the_mode_that_the_umask_says(tmp_path):
    net = oh.OneHiddenNet([[1.0, -0.5]], [2.0])
    recovery = saved_run(tmp_path / "old", net, "ab")
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            runs.write(recovery, tmp_path / f"run{mask}", None, None)
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"run{mask}").stat().st_mode) == 0o777 & ~mask
        for name in ("recovery.json", "report.html"):
            assert stat.S_IMODE((tmp_path / f"run{mask}" / name).stat().st_mode) == 0o666 & ~mask
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_a_failed_run_leaves_the_old_one(tmp_path, monkeypatch):
    recovery = saved_run(tmp_path / "run", oh.OneHiddenNet([[1.0, -0.5]], [2.0]), "ab")
    before = {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()}

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("onehidden.report.render_html", full)
    with pytest.raises(OSError, match="No space"):
        runs.write(recovery, tmp_path / "run", None, None)
    assert {p.name: p.read_bytes() for p in (tmp_path / "run").iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_an_interrupt_ends_the_search_with_the_best_answer_so_far():
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((N, 2))
    y = np.sin(2 * inputs).sum(1) + 0.3 * rng.standard_normal(N)
    heard, asked = [], []

    def listener(record):
        heard.append(record)
        if record.stage.startswith("certified") and not asked:  # the first answer of many
            asked.append(record)
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with progress.interruptible() as stopped:
        found = oh.recover(inputs, y, 1, progress=listener)
        assert stopped.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # the second one leaves at once
    assert signal.getsignal(signal.SIGINT) is before
    assert found.loss <= asked[0].loss * np.var(y) * (1 + 1e-9) < np.var(y)
    assert len(heard) < heard.index(asked[0]) + 20  # 700 without the interrupt


def test_reproductions_are_listed_without_a_name(call):
    code, out, _ = call("reproduce")
    assert code == 0
    assert list(dict.fromkeys(line.split()[0] for line in out.splitlines())) == oh.papers.names()
    assert call("reproduce", "--list") == (0, out, "")


def test_names_of_problems_are_never_cut(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    _, out, _ = call("problems")
    assert [line for line in out.splitlines() if not line.startswith(" ")] == list(oh.problems.names())
