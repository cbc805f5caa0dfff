"""Where to begin: choices for ``recover(start=…)``, and the moment starts by themselves."""

from onehidden.refused import Refused
from onehidden.starts.linear import Linear
from onehidden.starts.localised import LocalisedStart, localised_start
from onehidden.starts.moment_starts import Landscape, Localised, Tensor
from onehidden.starts.population import Manner, Population
from onehidden.starts.reflections import Reflections
from onehidden.starts.restarts import Random
from onehidden.starts.start import Start
from onehidden.starts.thinning import Thinned
from onehidden.starts.wide import Wide

__all__ = [
    "Landscape",
    "Linear",
    "Localised",
    "LocalisedStart",
    "Manner",
    "Population",
    "Random",
    "Reflections",
    "Refused",
    "Start",
    "Tensor",
    "Thinned",
    "Wide",
    "localised_start",
]
