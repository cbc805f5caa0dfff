"""data.open and data.check_arrays: every source gives one table, every fault one sentence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from onehidden import data

RNG = np.random.default_rng(0)
VALUES = RNG.standard_normal((50, 3))
NAMES = ("age", "dose", "y")
ARROW = pa.table({name: VALUES[:, j] for j, name in enumerate(NAMES)})


def _is_one_sentence(error: pytest.ExceptionInfo[ValueError], *words: str) -> None:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 400
    assert "Traceback" not in text
    for word in words:
        assert word in text, text


def _check(table: data.Table) -> None:
    np.testing.assert_array_equal(table.X, VALUES[:, :2])
    assert table.y is not None
    np.testing.assert_array_equal(table.y, VALUES[:, 2])
    assert table.feature_names == ("age", "dose")
    assert table.target_name == "y"
    assert table.n_rows == 50
    for array in (table.X, table.y):
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert not array.flags.writeable


def _write(kind: str, path) -> None:
    if kind == "csv":
        csv.write_csv(ARROW, path)
    elif kind == "parquet":
        parquet.write_table(ARROW, path)
    elif kind == "feather":
        feather.write_feather(ARROW, str(path))
    elif kind == "npz":
        np.savez(path, **{name: VALUES[:, j] for j, name in enumerate(NAMES)})


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npz"])
def test_every_file_kind_gives_the_same_table(kind, tmp_path):
    path = tmp_path / f"samples.{kind}"
    _write(kind, path)
    _check(data.open(path, target="y"))
    _check(data.open(str(path), target="y"))


@pytest.mark.parametrize("kind", ["parquet", "feather", "npz"])
def test_files_without_a_suffix_are_known_by_their_content(kind, tmp_path):
    _write(kind, tmp_path / f"samples.{kind}")
    bare = (tmp_path / f"samples.{kind}").rename(tmp_path / "bare")
    _check(data.open(bare, target="y"))


@pytest.mark.parametrize(
    "source",
    [
        pd.DataFrame(VALUES, columns=NAMES),
        pd.DataFrame(VALUES, columns=NAMES, index=range(100, 150)),
        pd.DataFrame(VALUES, columns=NAMES).convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame(VALUES, schema=list(NAMES)),
        pl.DataFrame(VALUES, schema=list(NAMES)).lazy(),
        ARROW,
        ARROW.to_batches()[0],
        {name: VALUES[:, j] for j, name in enumerate(NAMES)},
        {name: VALUES[:, j].tolist() for j, name in enumerate(NAMES)},
    ],
    ids=[
        "pandas",
        "indexed",
        "arrow-backed",
        "polars",
        "lazy",
        "pyarrow",
        "batch",
        "dict",
        "lists",
    ],
)
def test_every_table_in_memory_gives_the_same_table(source):
    _check(data.open(source, target="y"))


def test_matrix_and_vector_come_as_npz_dict_or_pair(tmp_path):
    X, y = VALUES[:, :2], VALUES[:, 2]
    np.savez(tmp_path / "a.npz", X=X, y=y)
    named = {"X": X, "y": y[:, None], "feature_names": np.array(["age", "dose"])}
    for source in (tmp_path / "a.npz", (X, y), {"X": X, "y": y}):
        table = data.open(source)
        np.testing.assert_array_equal(table.X, X)
        np.testing.assert_array_equal(table.y, y)
        assert table.feature_names == ("x0", "x1")
        assert table.target_name == "y"
    _check(data.open(named))
    assert data.open({"X": X, "z": y}).y is None
    np.testing.assert_array_equal(data.open({"X": X, "z": y}, target="z").y, y)


def test_columns_choose_and_order_the_features():
    table = data.open(ARROW, target="y", columns=["dose"])
    np.testing.assert_array_equal(table.X, VALUES[:, 1:2])
    assert data.open(ARROW, columns=["y", "age"]).feature_names == ("y", "age")


def test_target_of_a_bare_matrix_is_an_index_or_a_generated_name():
    for target in (2, -1, "x2"):
        table = data.open(VALUES, target=target)
        np.testing.assert_array_equal(table.y, VALUES[:, 2])
        assert table.feature_names == ("x0", "x1")
    assert data.open(VALUES).y is None


def test_integers_booleans_and_decimals_are_numbers():
    table = data.open(
        pa.table(
            {
                "i": pa.array([1, 2], pa.int64()),
                "b": [True, False],
                "d": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
            }
        )
    )
    np.testing.assert_array_equal(table.X, [[1, 1, 1], [2, 0, 2]])


@pytest.mark.parametrize(("mark", "suffix"), [(";", "csv"), ("\t", "tsv"), ("|", "txt")])
def test_other_delimiters_are_seen(mark, suffix, tmp_path):
    path = tmp_path / f"a.{suffix}"
    path.write_text(f"\ufeffa{mark}b\n1{mark}2\n3{mark}4\n", encoding="utf-8")
    np.testing.assert_array_equal(data.open(path).X, [[1, 2], [3, 4]])


def test_gzipped_csv_is_read(tmp_path):
    import gzip

    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("a,b\n1,2\n3,4\n")
    np.testing.assert_array_equal(data.open(tmp_path / "a.csv.gz", target="b").y, [2, 4])


def test_source_array_stays_writeable():
    mine = VALUES.copy()
    data.open(mine)
    assert mine.flags.writeable


# --- files that cannot be used


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "samples.csv")
    _is_one_sentence(error, "no file at", "samples.csv")


def test_folder_is_refused(tmp_path):
    with pytest.raises(ValueError) as error:
        data.open(tmp_path)
    _is_one_sentence(error, "is a folder")


@pytest.mark.parametrize(
    "name", ["a.csv", "a.parquet", "a.feather", "a.npz", "a.npy", "a", "a.csv.gz", "a.dat"]
)
@pytest.mark.parametrize("content", [bytes(range(256)) * 40, b"\x00", b"\xff\xfe\x41\x00", b"\x80\x81\n\x82"])
def test_binary_file_is_refused_with_its_name(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / name)
    _is_one_sentence(error, str(tmp_path / name))


@pytest.mark.parametrize("kind", ["parquet", "feather", "npz"])
@pytest.mark.parametrize("kept", [0, 6, 0.5, 0.98])
def test_truncated_file_is_refused(kind, kept, tmp_path):
    path = tmp_path / f"a.{kind}"
    _write(kind, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(kept * len(whole)) if kept < 1 else kept])
    with pytest.raises(ValueError) as error:
        data.open(path, target="y")
    _is_one_sentence(error, str(path))


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "npz"])
def test_damaged_file_is_read_or_refused_in_one_sentence(kind, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / f"a.{kind}"
    _write(kind, path)
    whole = path.read_bytes()
    said = []
    for _ in range(60):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=6):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        try:
            data.open(path, target="y")
        except ValueError as error:
            said.append(str(error))
    assert said
    assert all(str(path) in line and "\n" not in line for line in said)


def test_text_named_parquet_and_spreadsheets_are_refused(tmp_path):
    (tmp_path / "a.parquet").write_text("a,b\n1,2\n")
    for name in ("a.xlsx", "a.ods"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 something")
    for name, word in (("a.parquet", "Parquet"), ("a.xlsx", "Excel sheet"), ("a.ods", "CSV")):
        with pytest.raises(ValueError) as error:
            data.open(tmp_path / name)
        _is_one_sentence(error, word)


def test_ragged_csv_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4,5\n")
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "a.csv")
    _is_one_sentence(error, "a.csv")


def test_csv_without_header_is_refused_but_counted_names_are_not(tmp_path):
    (tmp_path / "a.csv").write_text("0.5,1.5\n1,2\n")
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "a.csv")
    _is_one_sentence(error, "header line")
    (tmp_path / "b.csv").write_text("0,1\n1,2\n")
    assert data.open(tmp_path / "b.csv").feature_names == ("0", "1")


def test_saved_row_index_is_refused(tmp_path):
    pd.DataFrame(VALUES, columns=NAMES).to_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "a.csv", target="y")
    _is_one_sentence(error, "row index")
    assert data.open(tmp_path / "a.csv", target="y", columns=["age"]).n_inputs == 1


def test_pickled_objects_are_never_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "a.npz", X=np.array([[1, "a"]], dtype=object), allow_pickle=True)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError) as error:
            data.open(tmp_path / name)
        _is_one_sentence(error, "Object arrays")


def test_an_array_of_any_version_is_told_from_objects_by_its_header(tmp_path):
    for version in ((1, 0), (2, 0), (3, 0)):
        with (tmp_path / "a.npy").open("wb") as file:
            np.lib.format.write_array(file, VALUES, version, allow_pickle=False)
        opened = data.open(tmp_path / "a.npy")
        np.testing.assert_array_equal(opened.X, VALUES)
        with (tmp_path / "o.npy").open("wb") as file:
            np.lib.format.write_array(file, np.array([{"a": 1}], dtype=object), version)
        with pytest.raises(ValueError) as error:
            data.open(tmp_path / "o.npy")
        _is_one_sentence(error, "Object arrays")


# --- tables that cannot be used

GOOD = {"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0], "y": [0.0, 1.0, 0.5]}


@pytest.mark.parametrize(
    ("table", "target", "words"),
    [
        ({**GOOD, "city": ["Rome", "Oslo", "Lima"]}, "y", ["must hold numbers", "'city'", "Rome"]),
        ({**GOOD, "b": ["1", "?", "3"]}, "y", ["'b'", "'?'"]),
        (pd.DataFrame({**GOOD, "b": ["1", 2, object()]}), "y", ["'b'"]),
        (pd.DataFrame({**GOOD, "b": pd.Categorical(["u", "v", "u"])}), "y", ["'b'"]),
        (pd.DataFrame({**GOOD, "t": pd.date_range("2020", periods=3)}), "y", ["'t'"]),
        (GOOD, "Y ", ["target", "'Y '", "did you mean 'y'"]),
        ({**GOOD, "price_usd": [1.0, 2.0, 3.0]}, "price", ["price_usd"]),
        (GOOD, "outcome", ["choose one of 'a', 'b', 'y'"]),
        ({**GOOD, "b": [1.0, None, 2.0]}, "y", ["'b' (1)", "1 of 3 rows (the first is row 2)"]),
        ({**GOOD, "b": [np.nan, np.inf, 2.0]}, "y", ["'b' (2)", "2 of 3 rows"]),
        ({**GOOD, "y": [1.0, np.nan, np.nan]}, "y", ["'y' (2)", "row 2"]),
        (pd.DataFrame({**GOOD, "b": [1.0, np.nan, 2.0]}), "y", ["'b' (1)"]),
        (pl.DataFrame({**GOOD, "b": [1, None, 2]}), "y", ["'b' (1)"]),
        ({**GOOD, "b": [None, None, None]}, "y", ["3 of 3 rows", "--drop b"]),
        ({"a": [], "y": []}, "y", ["no rows"]),
        (pd.DataFrame({"a": [], "y": []}, dtype=float), "y", ["no rows"]),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "a", "y"]), "y", ["more than one column called 'a'"]),
        (pa.Table.from_arrays([[1.0], [2.0]], names=["a", "a"]), None, ["more than one column called 'a'"]),
        ({"y": [1.0, 2.0]}, "y", ["no feature column left beside 'y'"]),
        ({}, None, ["no arrays"]),
        ({"a": [1.0, 2.0], "y": [1.0]}, "y", ["one length", "1 of 'y'"]),
        ({"X": np.ones((3, 2)), "y": np.ones(4)}, None, ["target 'y'", "(3)", "got 4"]),
        ({"X": np.ones((3, 2))}, "z", ["no target array 'z'", "only X"]),
        (np.ones(3), None, ["matrix", "(3,)", "reshape"]),
        (np.ones((3, 2)), 2, ["no column 2"]),
        (np.ones((3, 2)) * 1j, None, ["complex"]),
        (np.array([["a"]]), None, ["type str"]),
        (42, None, ["matrix"]),
        (None, None, ["type object"]),
    ],
)
def test_faulty_table_gets_one_sentence(table, target, words):
    with pytest.raises(ValueError) as error:
        data.open(table, target=target)
    _is_one_sentence(error, *words)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["a", "y"], ["both"]),
        (["A1"], ["'A1'"]),
        ([], ["at least one"]),
        ("a", ["list"]),
        (["a", "a"], ["once"]),
    ],
)
def test_faulty_choice_of_columns_gets_one_sentence(columns, words):
    with pytest.raises(ValueError) as error:
        data.open(GOOD, target="y", columns=columns)
    _is_one_sentence(error, *words)


def test_csv_gaps_are_counted_in_the_right_column(tmp_path):
    (tmp_path / "a.csv").write_text("a,b,y\n0,1,2\n1,,0\n2,NA,1\n3,4,inf\n")
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "a.csv", target="y")
    _is_one_sentence(error, "3 of 4 rows (the first is row 2)", "'b' (2), 'y' (1)")


# --- check_arrays


def test_check_arrays_returns_ordered_doubles():
    X, y = data.check_arrays(np.asfortranarray(VALUES.astype(np.float32)), VALUES[:, :1].tolist())
    assert X.flags.c_contiguous
    assert X.dtype == np.float64
    assert y is not None
    assert y.shape == (50,)
    np.testing.assert_array_equal(y, VALUES[:, 0])
    X, y = data.check_arrays(VALUES)
    assert y is None
    assert X is VALUES  # no copy where none is needed


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_check_arrays_takes_frames(frame):
    columns = {name: VALUES[:, j] for j, name in enumerate(NAMES)}
    X, y = data.check_arrays(frame({n: columns[n] for n in NAMES[:2]}), frame({"y": columns["y"]}))
    np.testing.assert_array_equal(X, VALUES[:, :2])
    np.testing.assert_array_equal(y, VALUES[:, 2])


def _with(value: float, j: int = 1) -> np.ndarray:
    X = VALUES.copy()
    X[3, j] = value
    return X


def _sparse():
    from scipy.sparse import csr_matrix

    return csr_matrix(VALUES)


FLAT = np.column_stack([VALUES, np.full(50, 0.3)])
Y = VALUES[:, 0]


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (VALUES[:, 0], Y, ["X.reshape(-1, 1)", "(50,)"]),
        (VALUES[None], Y, ["(1, 50, 3)"]),
        (np.empty((0, 3)), np.empty(0), ["2 rows and a column"]),
        (np.empty((5, 0)), np.ones(5), ["2 rows and a column"]),
        (VALUES, Y[:-1], ["50 rows", "49 values"]),
        (VALUES[:3], VALUES[:3], ["3 outputs", "3 rows"]),
        (VALUES, FLAT[:, 1:], ["column 2 of y is constant"]),
        (VALUES, 3.0, ["one number per row"]),
        (_with(np.nan), Y, ["1 of 50 rows", "column 1"]),
        (_with(np.inf, 2), Y, ["1 of 50 rows", "column 2"]),
        (pd.DataFrame(_with(np.nan), columns=NAMES), Y, ["'dose'"]),
        (VALUES, _with(np.nan)[:, 1], ["y must", "index 3"]),
        (VALUES.astype(complex), Y, ["X must", "complex"]),
        (VALUES, Y.astype(complex), ["y must", "complex"]),
        (VALUES.astype(str), Y, ["type str"]),
        (VALUES, Y.astype(str), ["y must", "type str"]),
        (VALUES.astype(object), Y, ["type object", "astype(float)"]),
        (VALUES.astype("datetime64[s]"), Y, ["datetime64"]),
        ([[1.0], [1.0, 2.0]], [1.0, 2.0], ["unequal length"]),
        (_sparse(), Y, ["X.toarray()"]),
        (np.ma.masked_greater(VALUES, 0), Y, ["masked"]),
        (FLAT, Y, ["column 3 of X is constant", "0.3", "bias=True"]),
        (pd.DataFrame(FLAT, columns=[*NAMES, "flat"]), Y, ["'flat' (index 3)"]),
        (VALUES[:1], Y[:1], ["at least 2 rows"]),
    ],
)
def test_check_arrays_refuses_with_one_sentence(X, y, words):
    with pytest.raises(ValueError) as error:
        data.check_arrays(X, y)
    _is_one_sentence(error, *words)


def test_huge_but_finite_values_pass():
    X = np.array([[1e308, 1.0], [1.7e308, 2.0], [-1.7e308, 3.0]])
    np.testing.assert_array_equal(data.check_arrays(X)[0], X)


def test_nearly_constant_column_is_told_from_a_varying_one():
    varying = VALUES[:, :1] * 1e-6 + 1.0
    data.check_arrays(varying)
    rounding = 1.0 + np.finfo(float).eps * (np.arange(50) % 2)
    with pytest.raises(ValueError, match="constant"):
        data.check_arrays(rounding[:, None])
