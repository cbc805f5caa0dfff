"""Files as they come: encodings, decimal commas, gaps, categories, dates, sheets; each fault one sentence."""

from __future__ import annotations

import datetime
import gzip
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers import one_sentence
from pyarrow import parquet

import onehidden as oh
from onehidden import data

WORDS = ["red", "blue", "red", "green", "blue", "red"]
NUMBERS = np.array([1.5, -2.25, 3.0, 4.125, 0.5, 7.0])
Y = np.array([0.0, 1.0, 3.0, 2.0, 5.0, 4.0])


def write_csv(path, header, rows, encoding="utf-8"):
    path.write_bytes("\n".join([header, *rows, ""]).encode(encoding))
    return path


# --- how a file is written


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_the_encoding_is_found_and_a_guess_is_told(encoding, stream, tmp_path):
    rows = [f"{a};{b}" for a, b in zip(NUMBERS, Y, strict=True)]
    path = write_csv(tmp_path / "a.csv", "größe;y", rows, encoding)
    table = data.open(path, target="y", stream=stream)
    assert table.feature_names == ("größe",)
    np.testing.assert_array_equal(np.concatenate([b.X[:, 0] for b in table.batches()]), NUMBERS)
    assert [("cp1252" in note) for note in table.notes] == [True] * (encoding == "cp1252")


def test_a_named_encoding_is_obeyed_or_refused(tmp_path):
    rows = [f"{a},{b}" for a, b in zip(NUMBERS, Y, strict=True)]
    path = write_csv(tmp_path / "a.csv", "вес,y", rows, "cp1251")
    assert data.open(path, target="y", encoding="cp1251").feature_names == ("вес",)
    for encoding, words in (
        ("utf-8", "no utf-8"),
        ("klingon", "encoding must be"),
        ("zlib", "encoding must be"),
    ):
        with pytest.raises(ValueError) as error:
            data.open(path, target="y", encoding=encoding)
        one_sentence(error, words)


@pytest.mark.parametrize("stream", [False, True])
def test_decimal_commas_are_read_and_hinted_at(stream, tmp_path):
    rows = [f"{a};{b}".replace(".", ",") for a, b in zip(NUMBERS, Y, strict=True)]
    path = write_csv(tmp_path / "a.csv", "x;y", rows)
    table = data.open(path, target="y", decimal=",", stream=stream)
    np.testing.assert_array_equal(np.concatenate([b.X[:, 0] for b in table.batches()]), NUMBERS)
    with pytest.raises(ValueError) as error:
        data.open(path, target="y", columns=["x"], stream=stream)
    one_sentence(error, "--decimal ,")


@pytest.mark.parametrize("stream", [False, True])
def test_what_stands_for_a_gap_is_a_gap(stream, tmp_path):
    marks = ["n/a", "?", "-", ".", "", "NA"]
    rows = [f"{a},{b}" for a, b in zip([*NUMBERS, *marks, "gone"], [*Y, *Y, 1.0], strict=True)]
    path = write_csv(tmp_path / "a.csv", "x,y", rows)
    table = data.open(path, target="y", nulls="drop", na=["gone"], stream=stream)
    np.testing.assert_array_equal(np.concatenate([b.X[:, 0] for b in table.batches()]), NUMBERS)
    with pytest.raises(ValueError) as error:
        list(data.open(path, target="y", na=["gone"], stream=stream).batches())
    one_sentence(error, "--nulls drop", "'x'")
    with pytest.raises(ValueError) as error:
        list(data.open(path, target="y", nulls="drop", stream=stream).batches())
    one_sentence(error, "gone")


def test_mostly_numbers_with_a_word_among_them_hints_at_gaps(tmp_path):
    rows = [f"{a},{b}" for a, b in zip(["1", "2", "soon", "4", "5", "6"], Y, strict=True)]
    with pytest.raises(ValueError) as error:
        data.open(write_csv(tmp_path / "a.csv", "x,y", rows), target="y")
    one_sentence(error, "--na 'soon'")


def test_names_with_commas_and_quoted_delimiters_are_whole(tmp_path):
    path = write_csv(
        tmp_path / "a.csv", '"height, cm";y', [f"{a};{b}" for a, b in zip(NUMBERS, Y, strict=True)]
    )
    assert data.open(path, target="y").feature_names == ("height, cm",)
    with pytest.raises(ValueError) as error:
        data.open(path, target="y", columns=["height", "cm"])
    one_sentence(error, "'height, cm'")


# --- columns


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "folder"])
def test_text_becomes_indicators_against_the_commonest(kind, stream, tmp_path):
    table = pa.table({"c": WORDS, "x": NUMBERS, "y": Y})
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        write_csv(path, "c,x,y", [f"{a},{b},{c}" for a, b, c in zip(WORDS, NUMBERS, Y, strict=True)])
    elif kind == "folder":
        path.mkdir()
        for i in (0, 1):
            parquet.write_table(table.slice(3 * i, 3), path / f"{i}.parquet")
        stream = None
    else:
        parquet.write_table(table, path)
    source = table.to_pandas() if kind == "frame" else path
    opened = data.open(source, target="y", one_hot=True, stream=stream)
    X = np.concatenate([batch.X for batch in opened.batches()])
    assert opened.feature_names == ("c=blue", "c=green", "x")
    np.testing.assert_array_equal(X[:, 0], [word == "blue" for word in WORDS])
    np.testing.assert_array_equal(X[:, 1], [word == "green" for word in WORDS])
    assert opened.levels == {"c": ("red", "blue", "green")}
    assert any("base 'red'" in note for note in opened.notes)
    # The same features from other rows, by name, in any order; what was never seen is refused.
    again = data.open(source, columns=["x", "c=green"], one_hot=opened.levels, stream=stream)
    np.testing.assert_array_equal(np.concatenate([b.X for b in again.batches()]), X[:, [2, 1]])
    with pytest.raises(ValueError) as error:
        list(data.open(source, columns=["c"], one_hot={"c": ["red", "blue"]}, stream=stream).batches())
    one_sentence(error, "'green'", "categories are 'red', 'blue'")


def test_categories_that_are_names_of_rows_are_refused():
    words = [f"id{i}" for i in range(300)]
    with pytest.raises(ValueError) as error:
        data.open({"c": words, "y": np.arange(300.0)}, target="y", one_hot=True)
    one_sentence(error, "more than 100 different texts", "--drop")


@pytest.mark.parametrize("day", ["2024-01-0{}", "0{}.12.2004", "{}.1.2004"])
@pytest.mark.parametrize("stream", [False, True])
def test_dates_are_refused_with_what_to_do(stream, day, tmp_path):
    rows = [f"{day.format(i + 1)},{a},{b}" for i, (a, b) in enumerate(zip(NUMBERS, Y, strict=True))]
    path = write_csv(tmp_path / "a.csv", "day,x,y", rows)
    with pytest.raises(ValueError) as error:
        data.open(path, target="y", stream=stream)
    one_sentence(error, "'day'", "days since the first", "--drop day")
    assert data.open(path, target="y", drop=["day"], stream=stream).feature_names == ("x",)


@pytest.mark.parametrize("stream", [False, True])
def test_a_target_of_text_is_refused_before_features_of_text(stream, tmp_path):
    rows = [f"a{x},{x if x else 'NA'},car {x}" for x in range(60)]
    path = write_csv(tmp_path / "a.csv", "kind,x,name", rows)
    with pytest.raises(ValueError) as error:
        data.open(path, target="name", stream=stream)
    one_sentence(error, "numbers in the target 'name'", "'car 0'")
    with pytest.raises(ValueError) as error:
        data.open(path, target="x", stream=stream)
    one_sentence(error, "columns 'kind', 'name'", "--one-hot")


def test_where_no_row_is_whole_the_emptiest_column_is_named(tmp_path):
    rows = [
        f"{a},{'' if i % 2 else i},{'' if i % 2 == 0 or i == 1 else i},{i}" for i, a in enumerate(NUMBERS)
    ]
    path = write_csv(tmp_path / "a.csv", "x,half,fewer,y", rows)
    with pytest.raises(ValueError) as error:
        data.open(path, target="y", nulls="drop")
    one_sentence(error, "no row without missing", "--drop fewer")
    assert data.open(path, target="y", nulls="drop", drop=["fewer"]).n_rows == 3


@pytest.mark.parametrize("target", ["y", "x"])
@pytest.mark.parametrize("stream", [False, True])
def test_decimal_commas_are_told_wherever_they_stand(stream, target, tmp_path):
    path = write_csv(tmp_path / "a.csv", "name,x,y", [f'car {i},"{i},5",{i}' for i in range(6)])
    with pytest.raises(ValueError) as error:
        data.open(path, target=target, stream=stream)
    one_sentence(error, "--decimal ,")


@pytest.mark.parametrize("stream", [False, True])
def test_constant_columns_are_dropped_when_asked_and_told(stream):
    columns = {"a": np.full(6, 3.0), "x": NUMBERS, "b": 1 + 1e-17 * NUMBERS, "y": Y}
    table = data.open(columns, target="y", constant="drop", stream=stream)
    assert table.feature_names == ("x",)
    assert any("'a', 'b'" in note for note in table.notes)
    with pytest.raises(ValueError) as error:
        data.open({"a": np.full(6, 3.0), "y": Y}, target="y", constant="drop", stream=stream)
    one_sentence(error, "no feature that varies")


def test_a_column_that_varies_late_is_kept(tmp_path):
    late = np.zeros(100_000)
    late[-1] = 1.0
    folder = tmp_path / "f"
    folder.mkdir()
    columns = pa.table({"late": late, "x": np.arange(100_000.0), "flat": np.ones(100_000), "y": late})
    parquet.write_table(columns, folder / "0.parquet", row_group_size=10_000)
    assert data.open(folder, target="y", constant="drop").feature_names == ("late", "x")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"drop": ["z"]}, ("no column to leave out called 'z'",)),
        ({"drop": ["y"]}, ("both the target and the column to leave out",)),
        ({"drop": "x"}, ("list of names",)),
        ({"drop": ["x"]}, ("no feature column left",)),
        ({"drop": ["x"], "columns": ["x"]}, ("both the feature and the column to leave out",)),
        ({"decimal": ";"}, ("decimal must be",)),
        ({"constant": "maybe"}, ("constant must be",)),
        ({"one_hot": 3}, ("one_hot must be",)),
        ({"na": 3}, ("na must be a list",)),
    ],
)
def test_faulty_requests_are_one_sentence(options, words):
    with pytest.raises(ValueError) as error:
        data.open({"x": NUMBERS, "y": Y}, target="y", **options)
    one_sentence(error, *words)


@pytest.mark.parametrize("name", ["a\x1b[31mb", "\u202eabc", "a\x00", "bell\x07"])
def test_names_that_steer_a_terminal_are_refused(name):
    with pytest.raises(ValueError) as error:
        data.open({name: NUMBERS, "y": Y}, target="y")
    one_sentence(error, "control characters")
    assert str(error.value).isprintable()


def test_misaligned_indices_are_refused_everywhere():
    X = pd.DataFrame({"a": NUMBERS, "b": Y}, index=[3, 4, 5, 6, 7, 8])
    y, moved = pd.Series(Y, index=X.index), pd.Series(Y, index=X.index[::-1])
    np.testing.assert_array_equal(data.check_arrays(X, y)[1], Y)
    weight = pd.Series(np.ones(6), index=X.index)
    for call in (
        lambda: data.check_arrays(X, moved),
        lambda: data.check_arrays(X, pd.Series(Y)),
        lambda: data.open((X, moved)),
        lambda: oh.recover(X, moved, 1),
        lambda: oh.recover(X, moved, 1, sample_weight=weight),
        lambda: oh.recover(X, y, 1, sample_weight=weight[::-1]),
    ):
        with pytest.raises(ValueError) as error:
            call()
        one_sentence(error, "index of", ".loc[X.index]")
    data.check_arrays(X, moved.to_numpy())


# --- kinds of file


def test_a_sheet_is_read_with_its_gaps_words_and_dates(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["colour", "x", "when", "y"])
    for i, (word, x, y) in enumerate(zip(WORDS, NUMBERS, Y, strict=True)):
        sheet.append([word, "?" if i == 2 else x, datetime.date(2024, 1, 1 + i), y])
    book.create_sheet("notes")
    book.save(tmp_path / "a.xlsx")
    table = data.open(tmp_path / "a.xlsx", target="y", drop=["when"], one_hot=True, nulls="drop")
    assert table.feature_names == ("colour=blue", "colour=green", "x")
    np.testing.assert_array_equal(table.X[:, 2], np.delete(NUMBERS, 2))
    for options, words in (({}, "days since"), ({"drop": ["when"]}, "--one-hot")):
        with pytest.raises(ValueError) as error:
            data.open(tmp_path / "a.xlsx", target="y", columns=["when"] if not options else None, **options)
        one_sentence(error, words)


def test_a_sheet_has_the_types_and_hints_of_a_text_file(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a, b", "x", "y"], [1, "2,5", 0.25], [2, 3.5, 1e-300], [3, "soon", 7]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    table = data.open(tmp_path / "a.xlsx", target="y", decimal=",", na=["soon"], nulls="drop")
    np.testing.assert_array_equal(table.X, [[1, 2.5], [2, 3.5]])
    np.testing.assert_array_equal(table.y, [0.25, 1e-300])
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "a.xlsx", target="y", decimal=",")
    one_sentence(error, "'x'", "--drop x")


def test_a_sheet_without_openpyxl_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "a.xlsx")
    one_sentence(error, "onehidden[excel]")


# --- what unpacks beyond all proportion


def test_files_that_unpack_beyond_proportion_are_refused(tmp_path):
    zeros, schema = pa.table({"x": np.zeros(1 << 20)}), pa.schema([("x", pa.float64())])
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        parquet.ParquetWriter(tmp_path / "a.parquet", schema) as first,
        pa.ipc.new_file(str(tmp_path / "a.arrow"), schema, options=options) as second,
    ):
        for _ in range(33):
            for file in (first, second):
                file.write_table(zeros)
    block = gzip.compress(b"0,0\n" * (1 << 21))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"x,y\n") + 33 * block)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("X.npy", bytes(33 << 23))
    for name in ("a.parquet", "a.csv.gz", "a.arrow", "a.npz"):
        with pytest.raises(ValueError) as error:
            data.open(tmp_path / name, stream=name == "a.parquet")
        one_sentence(error, "which no table does")
