"""Where to begin: the registry of starts, whose modules are imported when they are used."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onehidden.starts.candidate import Start
    from onehidden.starts.difference_map import DifferenceMap

# The class behind each name of ``start=``, and the module that has it. A new start is one line.
REGISTRY = {
    "random": ("Random", "onehidden.starts.restarts"),
    "tensor": ("Tensor", "onehidden_papers.starts"),
    "localised": ("Localised", "onehidden_papers.starts"),
    "landscape": ("Landscape", "onehidden_papers.starts"),
    "difference_map": ("DifferenceMap", "onehidden.starts.difference_map"),
    "wide": ("Wide", "onehidden.starts.wide"),
    "thinned": ("Thinned", "onehidden.starts.wide"),
    "population": ("Population", "onehidden.starts.restarts"),
}
RENAMED = {"reflections": "difference_map"}
_HOME = dict(REGISTRY.values()) | {
    "LocalisedStart": "onehidden_papers.starts",
    "Near": "onehidden.starts.restarts",
    "Refused": "onehidden.refused",
    "Start": "onehidden.starts.candidate",
    "localised_start": "onehidden_papers.starts",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def named(name: str) -> Start:
    """Return the start of that name with its default settings."""
    if name in RENAMED:
        warnings.warn(f"start={name!r} is now start={RENAMED[name]!r}", DeprecationWarning, stacklevel=2)
    return __getattr__(REGISTRY[RENAMED.get(name, name)][0])()


def _reflections(*values: Any, **settings: Any) -> DifferenceMap:
    """``DifferenceMap`` by its earlier name, with the earlier names of its parameters."""
    warnings.warn("Reflections is now DifferenceMap", DeprecationWarning, stacklevel=2)
    present = {"members": "runs", "first": "first_run"}
    renamed = {present.get(name, name): value for name, value in settings.items()}
    return __getattr__("DifferenceMap")(*values, **renamed)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "Reflections":
        return _reflections
    raise AttributeError(f"module 'onehidden.starts' has no attribute {name!r}")
