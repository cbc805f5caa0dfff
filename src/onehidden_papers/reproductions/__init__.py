"""One file a figure, table or theorem of the papers: claims with their rules, then what measures them."""

from __future__ import annotations

import importlib

from onehidden_papers.reproductions.record import Claim, Item, Reproduction

# name -> "module:item", in the order of the papers.
_REGISTRY: dict[str, str] = {
    "gmov-theorem-1": "gmov_rate:THEOREM_1",
    "gmov-fig1": "gmov_scores:FIG1",
    "gmov-fig2": "gmov_scores:FIG2",
    "gmov-fig3": "gmov_fig3:FIG3",
    "gmov-fig4": "gmov_fig4:FIG4",
    "gmov-theorem-2": "gmov_landscape:THEOREM_2",
    "gmov-stein": "gmov_stein:STEIN",
    "glm-fig1": "glm_squared_loss:FIG1",
    "glm-fig2": "glm_squared_loss:FIG2",
    "glm-fig3": "glm_hermite:FIG3",
    "glm-fig4": "glm_designed:FIG4",
    "glm-theorem-2.1": "glm_theorems:THEOREM_2_1",
    "glm-theorem-2.2": "glm_theorems:THEOREM_2_2",
    "glm-theorem-2.3": "glm_minima:THEOREM_2_3",
    "glm-lemma-2.5": "glm_output_layer:LEMMA_2_5",
    "glm-theorem-2.6": "glm_theorems:THEOREM_2_6",
    "glm-theorem-2.7": "glm_finite:THEOREM_2_7",
    "glm-metric": "glm_metric:METRIC",
    "glm-theorem-c.4": "glm_independent_rows:THEOREM_C",
    "glm-appendix-f": "glm_minima:APPENDIX_F",
    "zsjbd-properties": "zsjbd_properties:PROPERTIES",
    "zsjbd-rho": "zsjbd_rho:RHO",
    "zsjbd-degenerate": "zsjbd_degenerate:DEGENERATE",
    "zsjbd-convexity": "zsjbd_moments:CONVEX_ITEM",
    "zsjbd-linear": "zsjbd_linear:LINEAR",
    "zsjbd-fact": "zsjbd_moments:FACT_ITEM",
    "zsjbd-icml-grid": "zsjbd_grid:GRID",
    "zhang-relu-grid": "zhang_relu:GRID",
    "zhang-noise": "zhang_relu:NOISE_TABLE",
}


def names() -> list[str]:
    """Everything that ``onehidden reproduce NAME`` can run."""
    return list(_REGISTRY)


def get(name: str) -> Item:
    """Return the item behind a name: ``get(name)(full=False, seed=0)`` runs it."""
    if name not in _REGISTRY:
        raise ValueError(f"unknown reproduction {name!r}: choose one of {', '.join(_REGISTRY)} or all")
    module, item = _REGISTRY[name].split(":")
    return getattr(importlib.import_module(f"onehidden_papers.reproductions.{module}"), item)


__all__ = ["Claim", "Item", "Reproduction", "get", "names"]
