"""What holds the samples: ``open`` makes one Table or one streamed Source of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from onehidden.data.arrays import placed, to_arrow
from onehidden.data.columns import choose, must_be_choosable, values_of
from onehidden.data.parts import contents, is_dask, too_large
from onehidden.data.source import Source, select
from onehidden.data.table import Name, OneHot, Request, Table, named_targets


def open(
    source: object,
    target: Name | Sequence[Name] | None = None,
    columns: Sequence[str] | None = None,
    *,
    stream: bool | None = None,
    weight: str | None = None,
    offset: str | None = None,
    trials: str | None = None,
    groups: str | None = None,
    nulls: str = "refuse",
    drop: Sequence[str] = (),
    one_hot: OneHot = False,
    constant: str = "keep",
    encoding: str | None = None,
    decimal: str = ".",
    na: Sequence[str] = (),
) -> Table | Source:
    """Read samples from a file, a folder, a table, arrays or a Dask collection.

    Parameters
    ----------
    source : path, data frame, array_like, mapping, tuple or Dask collection
        Path of a CSV, Parquet, Feather, Excel, npz or npy file, or of a folder of Parquet files; a pandas,
        polars or pyarrow table; an array; a dict of columns; a pair (X, y); a Dask DataFrame or Array. An npz
        file or a dict holds either one column a name, or the arrays ``X`` (n, d) and ``y`` (n,) or (n, q),
        with optional ``feature_names``.
    target : str, int or list, optional
        Name of the target column (for arrays without names also its index), or a list of several, of which
        ``y`` has one column each; the ``y`` of an npz file or of a pair is taken without it. A target of text
        with few distinct values, none of them a number, holds labels.
    columns : list of str, optional
        Feature columns to use, in this order; all that have no other role if not given.
    stream : bool, optional
        True never holds the data whole; False always does; by default folders, Dask collections and files
        that would fill more than a quarter of the memory are streamed.
    weight : str, optional
        Column of weights, from 0 on.
    offset, trials : str, optional
        Columns for families of ``recover``: what is added to the linear predictor, and how many trials a row
        counts.
    groups : str, optional
        Column that says which rows belong together, such as patients or sites: text or numbers.
    nulls : {"refuse", "drop"}
        What to do about rows with missing or infinite values.
    drop : list of str
        Columns that are no features.
    one_hot : bool or mapping
        True makes of each text column one indicator a category, but for the most frequent, the base; a dict
        names the categories of each such column, the base first (``levels`` of an earlier opening).
    constant : {"keep", "drop"}
        What to do about features that do not vary.
    encoding : str, optional
        Of a CSV file; UTF-8 without it, or cp1252 where the bytes are no UTF-8.
    decimal : {".", ","}
        The mark before decimals in a CSV file.
    na : list of str
        Texts of a CSV file or a sheet that mean a missing value, as "NA", "n/a", "?", "-" and such.

    Returns
    -------
    Table or Source
        Finite C-ordered float64 values; or, where streamed, a source that is read batch by batch.

    Examples
    --------
    >>> import onehidden as oh
    >>> table = oh.data.open({"a": [1.0, 2.0], "b": [3.0, 4.0], "y": [5.0, 6.0]}, target="y")
    >>> table.feature_names, table.y.tolist()
    (('a', 'b'), [5.0, 6.0])
    """
    if stream not in (None, True, False):
        raise ValueError(f"stream must be True, False or None, got {stream!r}")
    targets = named_targets(target)
    request = Request(
        targets=tuple(map(str, targets)),
        columns=columns,
        weight=weight,
        offset=offset,
        trials=trials,
        groups=groups,
        nulls=nulls,
        drop=drop,
        one_hot=one_hot,
        constant=constant,
        encoding=encoding,
        decimal=decimal,
        na=na,
    )
    if isinstance(source, Table | Source):
        if request == Request() and not (stream and isinstance(source, Table)):
            return source
        raise ValueError("the columns of a table or source are chosen already: open the data once more")
    held: Any = Path(source) if isinstance(source, str | os.PathLike) else source
    if is_dask(held) and stream is False:
        raise ValueError("a Dask collection is streamed: call its compute() first to hold it whole")
    if stream is None:
        large = isinstance(held, Path) and (held.is_dir() or (held.is_file() and too_large(held)))
        stream = is_dask(held) or large
    found = contents(held, targets, request, stream)
    request = replace(request, targets=placed(found.targets, found.schema.names, found.where))
    selection, notes = select(found, request, stream)
    made = Source(tuple(found.parts), selection, found.rows, found.fingerprint, notes)
    made = made.varying_only() if constant == "drop" else made
    return made if stream else made.whole()


def inputs_by_name(
    frame: Any, names: Sequence[str] | None = None, levels: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> tuple[list[str], np.ndarray]:
    """Names and (n, d) numbers of these features of a frame, of all without names; NaN at gaps."""
    table = to_arrow(frame, "X")
    request = Request(columns=names, one_hot=levels)
    must_be_choosable(table.column_names, request, "X")
    known = {column: tuple(map(str, held)) for column, held in levels.items()}
    features = choose(table.column_names, request, known)
    columns = [values_of(one, table.column(one.column), known, "X") for one in features]
    return [one.name for one in features], np.column_stack(columns)
