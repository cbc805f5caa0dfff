"""Starts of ``recover`` from score moments: the papers' algorithms, which ``start="auto"`` does not try."""

from onehidden_papers.starts.landscape import Landscape, landscape_start
from onehidden_papers.starts.localised import Localised, LocalisedStart, localised_start
from onehidden_papers.starts.tensor import Tensor, tensor_start

__all__ = [
    "Landscape",
    "Localised",
    "LocalisedStart",
    "Tensor",
    "landscape_start",
    "localised_start",
    "tensor_start",
]
