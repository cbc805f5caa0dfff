"""Figures, tables and theorems of the papers: ``claims.toml`` states them, each file measures some."""

from __future__ import annotations

import importlib

from onehidden_papers.reproductions.record import Claim, Item, Reproduction, stated


def names() -> list[str]:
    """Everything that ``onehidden reproduce NAME`` can run, in the order of the papers."""
    return list(stated())


def get(name: str) -> Item:
    """Return the item behind a name: ``get(name)(full=False, seed=0)`` runs it."""
    if name not in stated():
        raise ValueError(f"unknown reproduction {name!r}: choose one of {', '.join(stated())} or all")
    module, item = stated()[name]["code"].split(":")
    return getattr(importlib.import_module(f"onehidden_papers.reproductions.{module}"), item)


__all__ = ["Claim", "Item", "Reproduction", "get", "names"]
