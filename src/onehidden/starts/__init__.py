"""Where to begin: choices for ``recover(start=...)``, and the localised start by itself."""

from __future__ import annotations

import warnings
from functools import partial
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


# Names of earlier versions: the present name, and that of each parameter that has another now.
RENAMED = {"Reflections": ("DifferenceMap", {"members": "runs", "first": "first_run"})}


def under_present_name(old: str, *values: Any, **settings: Any) -> Start:
    """Make a start that is asked for by a name of an earlier version."""
    name, parameters = RENAMED[old]
    warnings.warn(f"{old} is now {name}", DeprecationWarning, stacklevel=2)
    return globals()[name](*values, **{parameters.get(one, one): value for one, value in settings.items()})


def __getattr__(name: str) -> Any:
    if name in __all__:  # of the theory package
        return theory_start(name)
    if name in RENAMED:
        return partial(under_present_name, name)
    raise AttributeError(f"module 'onehidden.starts' has no attribute {name!r}")
