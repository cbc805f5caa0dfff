"""The named problems: a few by hand, then the systematic grid of laws, activations and structures."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

from onehidden.laws import standard_normal as standard
from onehidden.problems.grid import from_name, grid_names
from onehidden.problems.inputs import correlated
from onehidden.problems.problem import Problem, conditioned, orthonormal, spread


@lru_cache(maxsize=1)
def _by_hand() -> dict[str, Problem]:
    problems = [
        Problem("demo", "ReLU, 10 inputs, 6 units of both signs with biases, correlated Gaussian inputs",
                correlated(10, 10.0), 10, 6, "relu", spread, 4000, signs=True, bias=True, tags=("easy",)),
        Problem("relu-rotation-50", "ReLU, d = k = 50, rows a random rotation, outputs 1",
                standard(50), 50, 50, "relu", orthonormal, 16_384, tags=("many units", "no subspace")),
        Problem("relu-orthonormal-200x5", "ReLU, d = 200, k = 5, orthonormal rows",
                standard(200), 200, 5, "relu", orthonormal, 4096, tags=("k < d", "many inputs")),
        Problem("relu-orthonormal-50x10", "ReLU, d = 50, k = 10, orthonormal rows",
                standard(50), 50, 10, "relu", orthonormal, 4096, tags=("k < d",)),
        Problem("relu-conditioned-20x10", "ReLU, d = 20, k = 10, condition number 5, outputs of both signs",
                standard(20), 20, 10, "relu", conditioned(5.0), 4096, signs=True,
                tags=("k < d", "not orthogonal", "mixed signs")),
        *(Problem(f"{name.replace('_', '-')}-20x10", f"{name}, d = 20, k = 10, orthonormal rows, both signs",
                  standard(20), 20, 10, name, orthonormal, 4096, signs=True, tags=("k < d", "mixed signs"))
          for name in ("tanh", "sigmoid", "erf", "squared_relu", "softplus", "gelu", "leaky_relu")),
        Problem("relu-biased-20x10", "ReLU with biases and intercept, d = 20, k = 10",
                standard(20), 20, 10, "relu", orthonormal, 4096, signs=True, bias=True,
                tags=("k < d", "biases", "mixed signs")),
        Problem("relu-correlated-20x10",
                "ReLU with biases, d = 20, k = 10, Gaussian inputs of condition 100 and non-zero mean",
                correlated(20, 100.0), 20, 10, "relu", orthonormal, 4096, signs=True, bias=True,
                tags=("k < d", "biases", "mixed signs", "correlated inputs")),
        Problem("relu-noisy-20x5", "ReLU, d = 20, k = 5, noise of a tenth of std(y)",
                standard(20), 20, 5, "relu", orthonormal, 20_000, noise=0.1, tags=("k < d", "noise")),
    ]  # fmt: skip
    return {p.name: p for p in problems}


def names() -> list[str]:
    """The problems that are listed; names of the grid also take a size, ``…-DxK``."""
    return [*_by_hand(), *grid_names()]


def get(name: str) -> Problem:
    """The problem of that name: ``get(name).sample(n, seed) -> (X, y, teacher)``.

    ``LAW-ACTIVATION-STRUCTURE-DxK`` (``laplace-relu-orthonormal-50x50``) and ``TABLE-ACTIVATION-K``
    (``wine-tanh-4``) may be asked for at any size.
    """
    problem = _by_hand().get(name) or from_name(name) if isinstance(name, str) else None
    if problem is None:
        near = get_close_matches(str(name), names(), 5, 0.5) or list(_by_hand())
        raise ValueError(
            f"unknown problem {name!r}: did you mean {', '.join(near)}? problems.names() lists all"
        )
    return problem
