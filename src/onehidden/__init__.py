"""onehidden: recover the hidden layer that generated your data.

This page names the whole public interface; every name is imported at its first use. The modules
``laws``, ``scores``, ``moments``, ``objectives``, ``lab``, ``problems`` and ``papers`` live in the package
``onehidden_papers``, which imports this one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from onehidden import activations, certify, data, families, starts, structure
    from onehidden.activations import Activation
    from onehidden.checks import Check
    from onehidden.matching import Match, match
    from onehidden.network import OneHiddenNet
    from onehidden.oracle import recover_oracle
    from onehidden.recovery import Recovery, load_recovery, recover
    from onehidden.recovery.estimating import RecoveryWarning
    from onehidden.recovery.estimators import OneHiddenClassifier, OneHiddenRegressor
    from onehidden_papers import lab, laws, moments, objectives, problems, scores
    from onehidden_papers import reproductions as papers

_HOME = {
    "Activation": "onehidden.activations",
    "Check": "onehidden.checks",
    "Match": "onehidden.matching",
    "OneHiddenClassifier": "onehidden.recovery.estimators",
    "OneHiddenNet": "onehidden.network",
    "OneHiddenRegressor": "onehidden.recovery.estimators",
    "Recovery": "onehidden.recovery",
    "RecoveryWarning": "onehidden.recovery.estimating",
    "load_recovery": "onehidden.recovery",
    "match": "onehidden.matching",
    "recover": "onehidden.recovery",
    "recover_oracle": "onehidden.oracle",
}
_THEORY = {"papers": "onehidden_papers.reproductions"} | {
    name: f"onehidden_papers.{name}"
    for name in ("lab", "laws", "moments", "objectives", "problems", "scores")
}

__all__ = [
    "Activation", "Check", "Match", "OneHiddenClassifier", "OneHiddenNet", "OneHiddenRegressor", "Recovery",
    "RecoveryWarning", "activations", "certify", "data", "families", "lab", "laws", "load_recovery",
    "match", "moments", "objectives", "papers", "problems", "recover", "recover_oracle", "scores", "starts",
    "structure",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in __all__:
        value = importlib.import_module(_THEORY.get(name, f"onehidden.{name}"))
    else:
        raise AttributeError(f"module 'onehidden' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
