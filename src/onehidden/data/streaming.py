"""A streamed Source of whatever holds the samples: its columns chosen, each fault one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from onehidden.data.columns import constant_note, must_have_features, text_columns
from onehidden.data.containers import Found, contents
from onehidden.data.faults import must_be_none
from onehidden.data.features import choose, learnt_levels, must_be_choosable
from onehidden.data.request import Request
from onehidden.data.source import BATCH_ROWS, Part, Selection, Source
from onehidden.data.unfit import not_numeric
from onehidden.data.varying import varying

if TYPE_CHECKING:
    import pyarrow as pa

    from onehidden.data.held import Targets


def open_source(source: object, targets: Targets, request: Request) -> Source:
    """A ``Source`` over a path, a Dask collection or a table in memory."""
    from onehidden.data.held import placed

    found, targets, where = contents(source, targets, request.dialect)
    named = tuple(str(name) for name in placed(targets, found.names, where))
    selection, notes = _select(found, replace(request, targets=named), where)
    if len(named) > 1 and len(named) >= found.rows > 0:
        raise ValueError(f"{where} has {found.rows} rows for {len(named)} targets: bring more rows")
    if found.rows == 0:
        raise ValueError(f"{where} has column names but no rows: give a table with data in it")
    if request.constant == "drop":
        flat = _constant_features(found.parts, selection)
        if flat:
            notes = (*notes, constant_note(flat))
            gone = set(flat)
            left = tuple(one for one in selection.features if one.name not in gone)
            selection = replace(selection, features=left)
            must_have_features(left, where)
    mark = hashlib.sha256(f"{found.mark}|{selection}".encode()).hexdigest()
    parts: tuple[Part, ...] = tuple(found.parts)
    return Source(parts, selection, found.rows, mark, notes)


def _select(found: Found, request: Request, where: str) -> tuple[Selection, tuple[str, ...]]:
    kinds = dict(zip(found.names, found.kinds, strict=True))
    given = request.one_hot if isinstance(request.one_hot, Mapping) else {}
    must_be_choosable(found.names, request, where, [f"{c}={level}" for c in given for level in given[c][1:]])
    text = text_columns(found.names, kinds, request) if request.one_hot is True else []
    tables = (table for part in found.parts for table in part.tables(text, BATCH_ROWS))
    levels = learnt_levels(tables, text, where) if request.one_hot is True else given
    chosen = choose(found.names, kinds, request, levels)
    must_be_none(
        list(not_numeric(chosen.features, request, kinds, where, lambda name: _first(found.parts, name)))
    )
    selection = Selection(
        chosen.features, request.targets, request.nulls, where, tuple(chosen.levels.items()), **request.beside
    )
    return selection, (*found.notes, *chosen.notes())


def _first(parts: Sequence[Part], name: str) -> pa.ChunkedArray | None:
    """Some values of a column, to show in a message; None where reading them fails."""
    import pyarrow as pa

    try:
        return pa.chunked_array([next(iter(parts[0].tables([name], 1000))).column(name)])
    except (ValueError, StopIteration, IndexError, TypeError):
        return None


def _constant_features(parts: Sequence[Part], selection: Selection) -> list[str]:
    """Features that never vary: those that do not in the first rows are followed until they do."""
    left, first = list(selection.features), None
    for number, part in enumerate(parts):
        here = replace(selection, features=tuple(left), targets=(), weight=None)
        for batch in here.batches(number, part, BATCH_ROWS, counting=True):
            if not len(batch):
                continue
            names = [one.name for one in here.features]
            held = {name: batch.X[:, j] for j, name in enumerate(names)}
            first = {name: float(column[0]) for name, column in held.items()} if first is None else first
            ends = [
                (min(first[n.name], held[n.name].min()), max(first[n.name], held[n.name].max())) for n in left
            ]
            low, high = (np.array(end) for end in zip(*ends, strict=True))
            left = [one for one, varies in zip(left, varying(low, high), strict=True) if not varies]
            if not left:
                return []
    return [one.name for one in left]
