"""Figures, tables and theorems of the papers: ``claims.toml`` states them, each file measures some."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from onehidden_papers.reproductions.record import Claim, Item, Reproduction, Table, sizes_of, stated


def names() -> list[str]:
    """Everything that ``onehidden reproduce NAME`` can run, in the order of the papers."""
    return list(stated())


def get(name: str) -> Item:
    """Return the item behind a name: ``get(name)(full=False, seed=0)`` runs it."""
    if name not in stated():
        raise ValueError(f"unknown reproduction {name!r}: choose one of {', '.join(stated())} or all")
    known = stated()[name]
    module, measure = known["code"].split(":")
    code = importlib.import_module(f"onehidden_papers.reproductions.{module}")
    shared = importlib.import_module("onehidden_papers.reproductions.experiment")

    def named(by: str, **given: Any) -> Any:
        """Return a rule or a drawing of that name, of the module or shared."""
        return partial(getattr(code, by, None) or getattr(shared, by), **given)

    def table(full: bool, seed: int) -> Table:
        sizes = sizes_of(name, full)
        rows, curves = getattr(code, measure)(sizes, seed)
        title, *notes = (text.format(**vars(sizes)) for text in (known["title"], *known.get("notes", ())))
        return Table(title, tuple(known["columns"]), tuple(map(tuple, rows)), tuple(notes), curves)

    claims = tuple(
        Claim(claim, **(text | {"judge": named(**text["judge"])})) for claim, text in known["claims"].items()
    )
    draw = named(**known["draw"]) if "draw" in known else None
    return Item(name, known["paper"], known["about"], claims, table, draw)


__all__ = ["Claim", "Item", "Reproduction", "get", "names"]
