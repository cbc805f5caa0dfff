"""Several targets, an offset, trials: read alike from every container, streamed or held."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers import one_sentence, write_folder
from pyarrow import parquet

from onehidden import data
from onehidden.data.reduction import Survey

N = 300
RNG = np.random.default_rng(0)
COLUMNS = {name: RNG.standard_normal(N) for name in ("x0", "a", "x1", "b", "w", "off", "t")}
COLUMNS["w"] = np.abs(COLUMNS["w"])
Y = np.column_stack([COLUMNS["b"], COLUMNS["a"]])
X = np.column_stack([COLUMNS["x0"], COLUMNS["x1"]])


def stored(kind, folder):
    table = pa.table(COLUMNS)
    if kind == "folder":
        return write_folder(folder / "parts", COLUMNS)
    if kind == "csv":
        table.to_pandas().to_csv(folder / "t.csv", index=False)
    elif kind == "parquet":
        parquet.write_table(table, folder / "t.parquet", row_group_size=70)
    elif kind == "frame":
        return table.to_pandas()
    return folder / f"t.{kind}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "folder"])
def test_targets_come_in_the_order_asked_for(kind, stream, tmp_path):
    if kind == "folder" and not stream:
        stream = None
    source = stored(kind, tmp_path)
    opened = data.open(source, target=["b", "a"], weight="w", offset="off", trials="t", stream=stream)
    batches = list(opened.batches())
    for name, wanted in (("X", X), ("y", Y), ("weight", COLUMNS["w"]), ("offset", COLUMNS["off"])):
        held = np.concatenate([getattr(batch, name) for batch in batches])
        np.testing.assert_allclose(held, wanted, rtol=1e-15)
    np.testing.assert_allclose(np.concatenate([b.trials for b in batches]), COLUMNS["t"], rtol=1e-15)
    assert opened.feature_names == ("x0", "x1")
    assert (opened.target_names, opened.target_name) == (("b", "a"), "b, a")
    assert "targets 'b', 'a'" in repr(opened)
    single = data.open(source, target=["a"], columns=["x0"], stream=stream)
    assert next(iter(single.batches())).y.ndim == 1


def test_a_sample_of_a_stream_has_all_targets(tmp_path):
    source = data.open(stored("folder", tmp_path), target=["b", "a"], columns=["x0", "x1"])
    found = data.reduce(source, lambda: Survey(2, 50, N, outputs=2)).result()
    some, y = found.X, found.y
    assert (some.shape, y.shape) == ((50, 2), (50, 2))
    place = [int(np.flatnonzero(np.all(X == row, axis=1))[0]) for row in some]
    np.testing.assert_array_equal(y, Y[place])


def test_a_pair_and_an_archive_hold_several_targets(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=Y)
    for source in ((X, Y), {"X": X, "y": Y}, tmp_path / "t.npz"):
        table = data.open(source)
        np.testing.assert_array_equal(table.y, Y)
        assert table.target_names == ("y0", "y1")
    named = data.open((X, pd.DataFrame(Y, columns=["left", "right"])))
    assert named.target_names == ("left", "right")
    assert data.open((X, Y[:, :1])).target_names == ("y",)
    by_place = data.open(np.column_stack([X, Y]), target=[2, -1])
    np.testing.assert_array_equal(by_place.y, Y)
    assert by_place.feature_names == ("x0", "x1")


def test_a_dask_array_holds_several_targets():
    da = pytest.importorskip("dask.array")
    source = data.open((da.from_array(X, chunks=(100, 2)), da.from_array(Y, chunks=(100, 2))))
    np.testing.assert_array_equal(np.concatenate([batch.y for batch in source.batches()]), Y)
    assert source.target_names == ("y0", "y1")


def test_a_table_is_not_opened_again():
    table = data.open(COLUMNS, target=["b", "a"], weight="w", offset="off", trials="t")
    assert data.open(table) is table
    with pytest.raises(ValueError) as error:
        data.open(table, columns=["x1"])
    one_sentence(error, "chosen already")


@pytest.mark.parametrize(
    ("change", "asked", "words"),
    [
        ({"b": np.full(N, 3.0)}, {}, ["target 'b' is constant (3)"]),
        ({"b": np.where(np.arange(N) == 5, np.nan, 1.0 * np.arange(N))}, {}, ["'b' (1)", "row 6"]),
        ({}, {"columns": ["x0", "a"]}, ["'a' cannot be both the feature and the target"]),
        ({}, {"weight": "a"}, ["'a' cannot be both the target and the weight"]),
        ({}, {"offset": "w", "trials": "w"}, ["'w' cannot be both the offset and the trials"]),
        (
            {},
            {"drop": ["off"], "offset": "off"},
            ["'off' cannot be both the offset and the column to leave out"],
        ),
        ({}, {"target": ["a", "a"]}, ["'a' cannot be both the target and the target"]),
        ({}, {"target": []}, ["at least one column"]),
        ({}, {"target": ["a", "c"]}, ["no target column 'c'"]),
        ({"t": np.full(N, "many")}, {"trials": "t"}, ["numbers in the trials 't'", "'many'"]),
    ],
)
def test_what_cannot_be_a_target_is_one_sentence(change, asked, words):
    with pytest.raises(ValueError) as error:
        data.open({**COLUMNS, **change}, **{"target": ["b", "a"], **asked})
    one_sentence(error, *words)
