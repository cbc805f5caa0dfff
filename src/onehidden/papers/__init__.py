"""One file a figure or table of the papers: frozen settings -> rows -> picture and verdict."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from onehidden.papers.record import Reproduction

# name -> "module:function"; the function takes (full: bool, seed: int) and returns a Reproduction.
_REGISTRY: dict[str, str] = {
    "gmov-fig1": "onehidden.papers.gmov_scores:figure_1",
    "gmov-fig2": "onehidden.papers.gmov_scores:figure_2",
    "zsjbd-properties": "onehidden.papers.zsjbd_properties:run",
    "zsjbd-rho": "onehidden.papers.zsjbd_rho:run",
    "zsjbd-degenerate": "onehidden.papers.zsjbd_degenerate:run",
    "zsjbd-linear": "onehidden.papers.zsjbd_linear:run",
    "zsjbd-icml-grid": "onehidden.papers.zsjbd_grid:run",
    "zhang-relu-grid": "onehidden.papers.zhang_relu:run_grid",
    "zhang-noise": "onehidden.papers.zhang_relu:run_noise",
    "glm-fig1": "onehidden.papers.glm_squared_loss:fig1",
    "glm-fig2": "onehidden.papers.glm_squared_loss:fig2",
    "glm-fig3": "onehidden.papers.glm_hermite:fig3",
    "glm-fig4": "onehidden.papers.glm_designed:fig4",
    "glm-theorem-2.1": "onehidden.papers.glm_theorems:theorem_2_1",
    "glm-theorem-2.2": "onehidden.papers.glm_theorems:theorem_2_2",
    "glm-theorem-2.3": "onehidden.papers.glm_minima:theorem_2_3",
    "glm-theorem-2.6": "onehidden.papers.glm_theorems:theorem_2_6",
    "glm-appendix-f": "onehidden.papers.glm_minima:appendix_f",
    "gmov-fig3": "onehidden.papers.gmov_fig3:fig3",
    "gmov-fig4": "onehidden.papers.gmov_fig4:fig4",
}


def names() -> list[str]:
    """Everything that ``onehidden reproduce NAME`` can run."""
    return list(_REGISTRY)


def get(name: str) -> Callable[..., Reproduction]:
    """The function behind a name: ``get(name)(full=False, seed=0)``."""
    if name not in _REGISTRY:
        raise ValueError(f"unknown reproduction {name!r}: choose one of {', '.join(_REGISTRY)} or all")
    module, function = _REGISTRY[name].split(":")
    return getattr(importlib.import_module(module), function)


__all__ = ["Reproduction", "get", "names"]
