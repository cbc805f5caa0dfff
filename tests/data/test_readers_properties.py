"""Properties of the readers: what was written is read back, and no bytes make them fail in another way."""

from __future__ import annotations

import csv
import io
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from onehidden import data

FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.text(st.characters(codec="cp1252", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=8)
BYTES = st.binary(max_size=200) | st.text(",;\n\"'ab1.-e?", max_size=60).map(str.encode)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def tables(draw):
    """Names and columns of numbers, of one length."""
    names = draw(st.lists(NAMES, min_size=2, max_size=4, unique_by=str.strip))
    assume(all(name.strip() == name and not _number(name) for name in names))
    rows = draw(st.integers(1, 6))
    return names, [draw(st.lists(FINITE, min_size=rows, max_size=rows)) for _ in names]


def _number(name):
    try:
        float(name)
    except ValueError:
        return False
    return True


@given(
    table=tables(),
    delimiter=st.sampled_from(",;\t|"),
    decimal=st.sampled_from(".,"),
    encoding=st.sampled_from(["utf-8", "cp1252", "utf-16"]),
    stream=st.booleans(),
)
@QUICK
def test_a_csv_gives_back_what_was_written(table, delimiter, decimal, encoding, stream, tmp_path):
    names, columns = table
    assume(delimiter != decimal)
    # A mark that separates nothing, and is more frequent in the names, is a riddle that nobody can solve.
    assume(not any(mark in name for name in names for mark in ',;\t|"'))
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(names)
    writer.writerows([[repr(v).replace(".", decimal) for v in row] for row in zip(*columns, strict=True)])
    path = tmp_path / "t.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    found = data.open(path, decimal=decimal, encoding=encoding, stream=stream)
    assert list(found.feature_names) == names
    np.testing.assert_array_equal(np.concatenate([b.X for b in found.batches()]).T, np.array(columns))


@given(table=tables(), kind=st.sampled_from(["parquet", "feather", "npz"]), stream=st.booleans())
@QUICK
def test_a_table_gives_back_what_was_written(table, kind, stream, tmp_path):
    names, columns = table
    assume("file" not in names and not any("/" in name for name in names))
    held = {name: np.array(column) for name, column in zip(names, columns, strict=True)}
    path = tmp_path / f"t.{kind}"
    if kind == "npz":
        assume(not {"X", "y", "feature_names"} & set(names))
        np.savez(path, **held)
    else:
        (parquet.write_table if kind == "parquet" else feather.write_feather)(pa.table(held), str(path))
    found = data.open(path, stream=stream)
    assert list(found.feature_names) == names
    np.testing.assert_array_equal(np.concatenate([b.X for b in found.batches()]).T, np.array(columns))


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet", "feather", "npz", "npy", "xlsx"])
@given(
    content=st.binary(max_size=200) | st.text(",;\n\"'ab1.-e?", max_size=60).map(str.encode),
    stream=st.booleans(),
)
@QUICK
def test_any_bytes_are_a_table_or_one_sentence(suffix, content, stream, tmp_path):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(content)
    with warnings.catch_warnings(record=True) as heard:
        try:
            found = data.open(path, stream=stream)
            for batch in found.batches():
                assert np.isfinite(batch.X).all()
        except ValueError as error:
            said = str(error)
            assert str(path) in said
            assert "\n" not in said
            assert len(said) < 600
    assert not heard


@pytest.mark.parametrize("kind", ["parquet", "feather", "npz", "npy"])
@given(place=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
@QUICK
def test_any_byte_altered_is_a_table_or_one_sentence(kind, place, value, tmp_path):
    path = tmp_path / f"t.{kind}"
    held = {"a": np.arange(9.0), "b": np.arange(9.0) ** 2}
    if kind == "npz":
        np.savez(path, **held)
    elif kind == "npy":
        np.save(path, np.column_stack(list(held.values())))
    else:
        (parquet.write_table if kind == "parquet" else feather.write_feather)(pa.table(held), str(path))
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] = value
    path.write_bytes(bytes(content))
    said = ""
    try:
        for batch in data.open(path, stream=False).batches():
            assert np.isfinite(batch.X).all()
    except ValueError as error:
        said = str(error)
    assert "\n" not in said
    assert len(said) < 600
