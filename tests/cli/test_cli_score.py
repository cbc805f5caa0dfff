"""onehidden score: files in, scores out, one sentence for bad input."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from onehidden import data, laws
from onehidden.cli import main

X = laws.Gaussian([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]]).sample(400, 0)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Call the command as the shell does; returns exit code, stdout, stderr."""

    def call(*args):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["onehidden", "score", *args])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return stop.value.code, said.out, said.err

    return call


def _csv(path, rows=X, header="a,b"):
    np.savetxt(path, rows, delimiter=",", header=header, comments="")


def test_scores_of_a_csv_are_written_and_checked(tmp_path, run):
    _csv(tmp_path / "t.csv")
    code, out, err = run("t.csv", "--estimator", "gaussian", "--json")
    assert code == 0, err
    summary = json.loads(out)
    assert summary["estimator"] == "GaussianScore"
    assert summary["rows"] == 400
    assert all(check["passed"] for check in summary["checks"])
    from pyarrow import parquet

    table = parquet.read_table(tmp_path / "t.scores.parquet")
    assert table.column_names == ["S1[a]", "S1[b]", "S2[a,a]", "S2[a,b]", "S2[b,b]"]
    centred = X - X.mean(0)
    expected = centred @ np.linalg.inv(centred.T @ centred / len(X))
    assert np.allclose(table["S1[a]"].to_numpy(), expected[:, 0], rtol=1e-9, atol=1e-9)
    assert not np.allclose(table["S1[b]"].to_numpy(), expected[:, 0], atol=1e-3)


@pytest.mark.parametrize("name", ["s.csv", "s.CSV", "s.PARQUET"])
def test_arrays_go_in_and_tables_out(tmp_path, run, name):
    np.savez(tmp_path / "t.npz", X=X)
    code, _, err = run("t.npz", "--estimator", "gaussian", "--order", "3", "--out", name)
    assert code in (0, 1), err
    assert data.open(tmp_path / name).X.shape == (400, 2 + 3 + 4)


@pytest.mark.parametrize(
    ("rows", "args", "sentence"),
    [
        (np.ones((400, 2)), (), "no feature that varies"),
        (X[:3], (), "at least 4 rows"),
        (np.where(X == X[0, 0], np.nan, X), (), "missing or infinite values"),
        (X, ("--out", "x.txt"), "parquet"),
        (X, ("--drop", "z"), "no column to leave out called 'z'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_two(tmp_path, run, rows, args, sentence):
    _csv(tmp_path / "t.csv", rows)
    code, out, err = run("t.csv", "--estimator", "gaussian", *args)
    assert code == 2
    assert sentence in err
    assert out == ""
