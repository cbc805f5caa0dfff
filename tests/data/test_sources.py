"""Streamed sources: the same rows whatever holds them, one sentence for what cannot be read."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import one_sentence, write_folder
from pyarrow import csv, feather

import onehidden as oh
from onehidden import data
from onehidden.data.parts import TablePart
from onehidden.data.reduction import Survey
from onehidden.data.source import prefetched

D, N = 4, 1000


def rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    values = {f"x{j}": rng.standard_normal(n) for j in range(D)}
    return {**values, "y": rng.standard_normal(n), "w": rng.uniform(0.5, 2.0, n)}


def gathered(source, size=137):
    batches = list(source.batches(size))
    weight = None if batches[0].weight is None else np.concatenate([b.weight for b in batches])
    return np.concatenate([b.X for b in batches]), np.concatenate([b.y for b in batches]), weight


def stored(kind, path, columns):
    table = pa.table(columns)
    if kind == "folder":
        return write_folder(path / "folder", columns)
    file = path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, file, row_group_size=100)
    elif kind == "feather":
        feather.write_feather(table, str(file), chunksize=90)
    elif kind == "csv":
        csv.write_csv(table, file)
    return file


@pytest.mark.parametrize("kind", ["folder", "parquet", "feather", "csv"])
def test_every_container_streams_the_same_rows(kind, tmp_path):
    columns = rows()
    source = data.open(stored(kind, tmp_path, columns), target="y", weight="w", stream=True)
    assert isinstance(source, data.Source)
    assert (source.n_rows, source.feature_names, source.target_name) == (N, ("x0", "x1", "x2", "x3"), "y")
    X, y, weight = gathered(source)
    np.testing.assert_array_equal(X, np.column_stack([columns[f"x{j}"] for j in range(D)]))
    np.testing.assert_array_equal(y, columns["y"])
    np.testing.assert_array_equal(weight, columns["w"])
    assert X.flags.c_contiguous


def test_the_target_of_an_npz_file_is_no_feature(tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    inputs, target, _ = gathered(data.open(tmp_path / "t.npz", stream=True))
    np.testing.assert_array_equal(inputs, X)
    np.testing.assert_array_equal(target, y)


def test_yes_or_no_columns_of_a_csv_stream_as_zero_and_one(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\ntrue,1.5,2\nfalse,2.5,3\n")
    inputs, _, _ = gathered(data.open(tmp_path / "t.csv", target="y", stream=True))
    np.testing.assert_array_equal(inputs, [[1.0, 1.5], [0.0, 2.5]])


def test_memory_maps_and_arrays_stream_the_same_rows(tmp_path):
    X = np.random.default_rng(1).standard_normal((N, D))
    np.save(tmp_path / "a.npy", X)
    mapped = data.open(tmp_path / "a.npy", target="x3", stream=True)
    held = data.open(X, target=3, stream=True)
    pair = data.open((X[:, :3], X[:, 3]), stream=True)
    for source in (mapped, held, pair):
        inputs, y, _ = gathered(source)
        np.testing.assert_array_equal(inputs, X[:, :3])
        np.testing.assert_array_equal(y, X[:, 3])


def test_dask_collections_stream_the_same_rows():
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    import pandas as pd

    columns = rows()
    frame = dd.from_pandas(pd.DataFrame(columns), npartitions=5)
    source = data.open(frame, target="y", columns=["x1", "x0"])
    assert (source.n_rows, len(source.parts)) == (N, 5)
    X, y, _ = gathered(source)
    np.testing.assert_array_equal(X, np.column_stack([columns["x1"], columns["x0"]]))
    np.testing.assert_array_equal(y, columns["y"])
    matrix = np.column_stack([columns["x0"], columns["x1"]])
    whole = np.column_stack([matrix, columns["y"]])
    X, y, _ = gathered(data.open(da.from_array(whole, chunks=(300, 1)), target=2))
    np.testing.assert_array_equal(X, matrix)
    np.testing.assert_array_equal(y, columns["y"])


def test_names_of_a_dask_frame_need_not_be_text():
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    frame = pd.DataFrame(1 + np.arange(24.0).reshape(6, 4), columns=pd.Index([7, 2.5, (1, "a"), 3]))
    for target, weight, features in ((3, None, [0, 1, 2]), (7, 2.5, [2, 3]), ("2.5", "7", [2, 3])):
        source = data.open(dd.from_pandas(frame, npartitions=2), target=target, weight=weight)
        table = data.open(frame, target=target, weight=weight)
        assert source.feature_names == table.feature_names == tuple(str(frame.columns[j]) for j in features)
        X, y, _ = gathered(source)
        np.testing.assert_array_equal(X, table.X)
        np.testing.assert_array_equal(y, table.y)
        np.testing.assert_array_equal(X, frame.to_numpy()[:, features])
    twice = frame.set_axis([7, "7", 1, 2], axis=1)
    with pytest.raises(ValueError) as error:
        data.open(dd.from_pandas(twice, npartitions=2), target=1)
    one_sentence(error, "more than one column called '7'")


def test_small_files_stay_tables_and_folders_are_streamed(tmp_path):
    columns = rows()
    assert isinstance(data.open(stored("parquet", tmp_path, columns), target="y"), data.Table)
    assert isinstance(data.open(stored("folder", tmp_path, columns), target="y"), data.Source)


def test_gaps_are_counted_and_refused_or_dropped_when_asked(tmp_path):
    columns = rows()
    columns["x1"][[3, 500]] = np.nan
    columns["y"][[500, 900]] = np.inf
    folder = write_folder(tmp_path / "folder", columns)
    kept = data.open(folder, target="y", columns=["x0", "x1"], nulls="drop")
    X, y, _ = gathered(kept)
    good = np.isfinite(columns["x1"]) & np.isfinite(columns["y"])
    np.testing.assert_array_equal(y, columns["y"][good])
    assert len(X) == N - 3
    source = data.open(folder, target="y", columns=["x0", "x1"])
    with pytest.raises(ValueError) as error:
        oh.recover(source, hidden=1)
    one_sentence(error, "1 of 100 rows (the first is row 4)", "'x1' (1)", "nulls='drop'")
    with pytest.raises(ValueError) as error:
        list(source.batches())
    one_sentence(error, "missing or infinite")
    table = data.open({k: v for k, v in columns.items() if k != "w"}, target="y", nulls="drop")
    assert table.n_rows == N - 3


def broken_folder(path, fault):
    columns = rows()
    write_folder(path, columns)
    other = dict(columns)
    if fault == "lacks":
        del other["x2"]
    elif fault == "extra":
        other["z"] = other["x0"]
    elif fault == "text":
        other["x2"] = np.array(["a"] * N)
    pq.write_table(pa.table(other), path / "9.parquet")
    if fault == "truncated":
        content = (path / "9.parquet").read_bytes()
        (path / "9.parquet").write_bytes(content[: len(content) // 2])
    return path


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("lacks", ("differ", "in 'x2'")),
        ("extra", ("differ", "in 'z'")),
        ("text", ("0.parquet and 9.parquet in 'x2'",)),
        ("truncated", ("cannot be read as Parquet", "9.parquet")),
    ],
)
def test_faulty_folders_get_one_sentence(fault, words, tmp_path):
    with pytest.raises(ValueError) as error:
        data.open(broken_folder(tmp_path / "f", fault), target="y")
    one_sentence(error, *words)


def test_damage_inside_a_file_is_one_sentence(tmp_path):
    path = stored("parquet", tmp_path, rows())
    content = bytearray(path.read_bytes())
    content[200 : len(content) // 2] = bytes(len(content) // 2 - 200)
    path.write_bytes(bytes(content))
    source = data.open(path, target="y", stream=True)
    with pytest.raises(ValueError) as error:
        list(source.batches())
    one_sentence(error, "cannot be read as Parquet")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "Y"}, ("no target column 'Y'", "did you mean 'y'")),
        ({"target": "y", "weight": "v"}, ("no weight column 'v'",)),
        ({"target": "y", "columns": ["x9"]}, ("no column 'x9'",)),
        ({"target": "y", "weight": "y"}, ("both the target and the weight",)),
        ({"target": "y", "nulls": "keep"}, ("nulls must be",)),
        ({"target": "y", "stream": 3}, ("stream must be",)),
    ],
)
def test_faulty_requests_get_one_sentence(options, words, tmp_path):
    folder = write_folder(tmp_path / "f", rows())
    with pytest.raises(ValueError) as error:
        data.open(folder, **options)
    one_sentence(error, *words)


def test_a_first_column_that_is_whole_for_16_megabytes_may_have_decimals_after(tmp_path):
    line = f"1,{'2'.ljust(4000, ' ')}\n"  # few rows, many bytes
    (tmp_path / "a.csv").write_text("a,y\n" + line * 4300 + "1.5,2\n")
    assert (tmp_path / "a.csv").stat().st_size > 1 << 24
    streamed = data.open(tmp_path / "a.csv", target="y", stream=True)
    assert streamed.n_rows == 4301
    inputs, _, _ = gathered(streamed)
    np.testing.assert_array_equal(inputs, data.open(tmp_path / "a.csv", target="y", stream=False).X)
    assert inputs[-1, 0] == 1.5


def test_a_csv_whose_later_lines_are_text_is_one_sentence(tmp_path):
    lines = ["x,y"] + [f"{i},{i}.5" for i in range(100_000)] + ["oops,1"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError) as error:
        data.open(tmp_path / "a.csv", target="y", stream=True)
    one_sentence(error, "--na 'oops'")
    line = f"1,{'2'.ljust(4000, ' ')}\n"  # the types are those of the first 16 megabytes
    (tmp_path / "b.csv").write_text("x,y\n" + line * 4300 + "oops,2\n")
    with pytest.raises(ValueError) as error:
        list(data.open(tmp_path / "b.csv", target="y", stream=True).batches())
    one_sentence(error, "cannot be read as CSV")


def test_negative_weights_are_refused():
    columns = rows()
    columns["w"][5] = -1.0
    source = data.open(columns, target="y", weight="w", stream=True)
    with pytest.raises(ValueError, match="negative weights"):
        list(source.batches())


def test_errors_of_the_reader_reach_the_caller_and_readers_end():
    def items():
        yield 1
        raise ValueError("broken")

    stream = prefetched(items())
    assert next(stream) == 1
    with pytest.raises(ValueError, match="broken"):
        next(stream)
    endless = prefetched(iter(int, 1))
    assert next(endless) == 0
    endless.close()


def surveyed(source, size, order=1, **options):
    total, parts = None, list(enumerate(source.parts))[::order]
    for number, part in parts:
        one = Survey(D, 50, N, **options)
        for batch in source.selection.batches(number, part, size):
            one.update(batch)
        total = one if total is None else total.merge(one)
    return total.result()


def test_the_first_pass_does_not_depend_on_batches_or_order(tmp_path):
    columns = rows()
    columns["x0"] = columns["x0"] * 1e-3 + 10  # a mean that would cost a plain sum of squares its digits
    source = data.open(write_folder(tmp_path / "f", columns, files=7), target="y", weight="w")
    X, _, w = gathered(source)
    whole = surveyed(source, 10_000)
    mean = w @ X / w.sum()
    covariance = ((X - mean) * w[:, None]).T @ (X - mean) / w.sum()
    spread = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((whole.covariance - covariance) / spread).max() < 1e-11
    assert (
        abs((w @ X[:, 0] ** 2 / w.sum() - mean[0] ** 2) / covariance[0, 0] - 1) > 1e-9
    )  # the plain way fails
    for size, order in ((13, 1), (100, -1)):
        again = surveyed(source, size, order)
        assert np.abs((again.covariance - whole.covariance) / spread).max() < 1e-11
        np.testing.assert_array_equal(again.X, whole.X)
        np.testing.assert_array_equal(again.y, whole.y)
    assert len(whole.X) == 50
    assert not np.array_equal(surveyed(source, 100, seed=1).X, whole.X)


def test_the_sample_is_uniform():
    """Each of 40 blocks of rows holds a Poisson share of the sample; a sample of the first rows would not."""
    n, sample = 40_000, 4000
    source = data.open({"x": np.arange(n, dtype=float), "y": np.zeros(n)}, target="y", stream=True)
    survey = Survey(1, sample, n, seed=3)
    for batch in source.batches():
        survey.update(batch)
    counts = np.histogram(survey.result().X[:, 0], bins=40, range=(0, n))[0]
    assert counts.sum() == sample
    assert np.abs(counts - sample / 40).max() < 5 * np.sqrt(sample / 40)


def test_moments_of_a_source_are_those_of_the_arrays(tmp_path):
    columns = rows()
    del columns["w"]
    source = data.open(write_folder(tmp_path / "f", columns, files=10), target="y")
    X, y, _ = gathered(source)
    law = oh.laws.Gaussian(np.zeros(D), np.eye(D))
    basis = np.random.default_rng(2).standard_normal((D, 2))
    for subspace in (None, basis):
        whole = oh.moments.score_moments(X, y, law, subspace=subspace)
        parts = oh.moments.score_moments(source, None, law, subspace=subspace)
        for m in (1, 2, 3, 4):
            np.testing.assert_allclose(parts[m], whole[m], atol=1e-10 * np.abs(whole[m]).max())
            np.testing.assert_allclose(parts.standard_error(m), whole.standard_error(m), rtol=1e-9)


def test_weighted_moments_count_a_row_as_often_as_its_weight():
    rng = np.random.default_rng(4)
    X, y, times = rng.standard_normal((200, 3)), rng.standard_normal(200), rng.integers(0, 4, 200)
    law = oh.laws.Gaussian(np.zeros(3), np.eye(3))
    weighted = oh.moments.MomentPass(law, (2, 4)).update((X, y, times.astype(float))).result()
    repeated = oh.moments.score_moments(
        np.repeat(X, times, 0), np.repeat(y, times), law, orders=(2, 4), control_degree=-1
    )
    plain = oh.moments.score_moments(X, y, law, orders=(2, 4), control_degree=-1)
    for m in (2, 4):
        np.testing.assert_allclose(weighted[m], repeated[m], atol=1e-12)
        assert np.abs(plain[m] - repeated[m]).max() > 1e-3


def test_parts_in_memory_travel_with_their_own_rows_only():
    import pickle

    column = np.arange(100_000.0)
    part = TablePart(pa.table({"x": column}).slice(500, 10))
    assert len(pickle.dumps(part)) < 2000
    table = next(pickle.loads(pickle.dumps(part)).tables(["x"], 100))
    np.testing.assert_array_equal(table.column("x").to_numpy(), column[500:510])
