"""``recover`` by names: frames and files with a target column, roles of columns, options of reading."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import onehidden as oh
from onehidden.run import stream

CALL = {"hidden": 1, "start": "random", "max_seconds": 5.0}


@pytest.fixture(scope="module")
def frame():
    draw = stream(3, "test", "named columns")
    a, b = draw.normal(size=(2, 120))
    table = pd.DataFrame(
        {"a": a, "b": b, "site": np.repeat(np.arange(12), 10), "size": 1.0 + np.arange(120) % 2}
    )
    table["y"] = np.maximum(0, a - b) + 0.1 * draw.normal(size=120)
    table["kind"] = np.where(table.y + 0.3 * draw.normal(size=120) > 0.5, "large", "small")
    return table


def plain(frame, **options):
    return oh.recover(frame[["a", "b"]], frame.y, **CALL, **options)


def same(found, wanted):
    np.testing.assert_array_equal(found.network.weights, wanted.network.weights)
    assert found.feature_names == ("a", "b")
    assert found.status == wanted.status


def test_a_target_is_named_by_place_or_keyword_in_every_kind_of_table(frame, tmp_path):
    own = frame[["a", "b", "y"]]
    wanted = plain(frame)
    own.to_csv(tmp_path / "own.csv", index=False)
    calls = [
        own,
        pl.from_pandas(own),
        pa.table(own.to_dict("list")),
        own.to_dict("list"),
        tmp_path / "own.csv",
    ]
    for table in calls:
        found = oh.recover(table, "y", **CALL)
        same(found, wanted)
        assert found.options["target"] == "y"
    same(oh.recover(own, target="y", **CALL), wanted)
    same(oh.recover(own[["a", "b"]], target=own.y.to_numpy(), **CALL), wanted)


def test_several_targets_are_a_list_of_names(frame):
    own = frame[["a", "b", "y"]].assign(z=2 * frame.y + 0.1 * np.sin(np.arange(120)))
    found = oh.recover(own, ["y", "z"], **CALL)
    assert found.network.n_outputs == 2
    assert found.options["target"] == ["y", "z"]


def test_columns_with_a_role_are_no_features(frame):
    wanted = plain(frame, sample_weight=frame["size"], groups=frame.site)
    found = oh.recover(frame.drop(columns="kind"), "y", sample_weight="size", groups="site", **CALL)
    same(found, wanted)
    assert (found.options["groups"], found.options["weight"]) == ("site", "size")
    np.testing.assert_array_equal(found.standard_errors.weights, wanted.standard_errors.weights)
    opened = oh.data.open(frame, "y", weight="size", groups="site", drop=["kind"])
    np.testing.assert_array_equal(
        oh.recover(opened, **CALL).standard_errors.weights, wanted.standard_errors.weights
    )


def test_arrays_of_rows_follow_the_rows_that_are_kept(frame):
    holes = frame[["a", "b", "y"]].copy()
    holes.loc[[3, 50], "a"] = np.nan
    kept = holes.notna().all(axis=1)
    wanted = plain(frame[kept], groups=frame.site[kept])
    with pytest.raises(ValueError, match=r"missing or infinite values in 'a' \(2\)"):
        oh.recover(holes, "y", **CALL)
    same(oh.recover(holes, "y", nulls="drop", groups=frame.site.to_numpy(), **CALL), wanted)
    same(oh.recover(holes[["a", "b"]], holes.y, nulls="drop", groups=frame.site, **CALL), wanted)


def test_text_columns_become_indicators_and_predictions_find_them_by_name(frame):
    own = frame[["a", "b", "kind", "y"]]
    found = oh.recover(own, "y", one_hot=True, **CALL)
    assert found.feature_names[:2] == ("a", "b")
    assert found.feature_names[2].startswith("kind=")
    turned = own[["y", "kind", "b", "a"]]
    np.testing.assert_array_equal(found.predict(own), found.predict(turned))
    assert found.predict(own.iloc[:3]).shape == (3,)
    with pytest.raises(ValueError, match="has no column 'b'"):
        found.predict(own[["a", "kind"]])


def test_text_is_labels_in_a_table_as_in_an_array(frame):
    wanted = oh.recover(frame[["a", "b"]], frame.kind, **CALL)
    found = oh.recover(frame[["a", "b", "kind"]], "kind", **CALL)
    assert found.classes == wanted.classes == ("large", "small")
    np.testing.assert_array_equal(found.network.weights, wanted.network.weights)
    assert wanted.options["target"] == "kind"
    same_family = oh.recover(frame[["a", "b"]], frame.kind, family="bernoulli", **CALL)
    np.testing.assert_array_equal(same_family.network.weights, wanted.network.weights)


@pytest.mark.parametrize(
    ("values", "reason"),
    [(["a", "1.5"], "must hold numbers"), ([f"t{j}" for j in range(60)], "must hold numbers")],
)
def test_text_that_is_no_label_is_refused(values, reason):
    table = {"x": np.arange(120.0), "y": np.resize(values, 120)}
    with pytest.raises(ValueError, match=reason):
        oh.recover(table, "y", **CALL)


def test_a_gap_among_the_groups_is_one_sentence(frame):
    holes = frame[["a", "b", "y"]].assign(site=frame.site.astype(str).where(frame.index != 5))
    with pytest.raises(ValueError, match=r"first is row 6\) hold missing or infinite values in 'site'"):
        oh.recover(holes, "y", groups="site", **CALL)
    source = oh.data.open(holes, "y", groups="site", stream=True)
    with pytest.raises(ValueError, match=r"first is row 6\) hold missing or infinite values in 'site'"):
        oh.recover(source, hidden=1)
