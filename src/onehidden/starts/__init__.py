"""Where to begin: choices for ``recover(start=...)``, and the localised start by itself."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from onehidden.refused import Refused
from onehidden.starts.candidate import Start
from onehidden.starts.difference_map import DifferenceMap
from onehidden.starts.restarts import Population, Random
from onehidden.starts.schedule import theory_start
from onehidden.starts.wide import Thinned, Wide

if TYPE_CHECKING:
    from onehidden_papers.starts import Landscape, Localised, LocalisedStart, Tensor, localised_start

__all__ = [
    "DifferenceMap",
    "Landscape",
    "Localised",
    "LocalisedStart",
    "Population",
    "Random",
    "Refused",
    "Start",
    "Tensor",
    "Thinned",
    "Wide",
    "localised_start",
]


def _reflections(*values: Any, **settings: Any) -> DifferenceMap:
    """``DifferenceMap`` by its earlier name, with the earlier names of its parameters."""
    warnings.warn("Reflections is now DifferenceMap", DeprecationWarning, stacklevel=2)
    present = {"members": "runs", "first": "first_run"}
    return DifferenceMap(*values, **{present.get(name, name): value for name, value in settings.items()})


def __getattr__(name: str) -> Any:
    if name in __all__:  # of the theory package
        return theory_start(name)
    if name == "Reflections":
        return _reflections
    raise AttributeError(f"module 'onehidden.starts' has no attribute {name!r}")
