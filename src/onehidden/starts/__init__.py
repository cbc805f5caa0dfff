"""Where to begin: choices for ``recover(start=...)``, and the localised start by itself."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from onehidden.refused import Refused
from onehidden.starts.candidate import Start
from onehidden.starts.difference_map import DifferenceMap
from onehidden.starts.localised import Localised, LocalisedStart, localised_start
from onehidden.starts.restarts import Population, Random
from onehidden.starts.schedule import theory_start
from onehidden.starts.tensor import Tensor
from onehidden.starts.thinned import Thinned
from onehidden.starts.wide import Wide

if TYPE_CHECKING:
    from onehidden_papers.landscape import Landscape

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


def Reflections(steps: int = 20_000, members: int | None = None, first: int = 0) -> DifferenceMap:
    """Return a ``DifferenceMap``, under the name it had in 0.2."""
    warnings.warn("Reflections is now DifferenceMap", DeprecationWarning, stacklevel=2)
    return DifferenceMap(steps, members, first)


def __getattr__(name: str) -> Any:
    if name == "Landscape":
        return theory_start(name)
    raise AttributeError(f"module 'onehidden.starts' has no attribute {name!r}")
