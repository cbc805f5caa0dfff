"""onehidden: recover the hidden layer that generated your data.

This page names the whole public interface; every name is imported at its first use. The modules
``objectives``, ``lab``, ``problems`` and ``papers`` live in the package ``onehidden_papers``, which imports
this one; they answer under both names.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from onehidden import (
        activations,
        certify,
        data,
        families,
        laws,
        moments,
        scores,
        starts,
    )
    from onehidden.activations import Activation
    from onehidden.checks import Check
    from onehidden.matching import Match, match
    from onehidden.network import OneHiddenNet
    from onehidden.oracle import recover_oracle
    from onehidden.recovery import Recovery, load_recovery, recover
    from onehidden.recovery.estimating import RecoveryWarning
    from onehidden.recovery.estimators import OneHiddenClassifier, OneHiddenRegressor
    from onehidden_papers import lab, objectives, problems
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
_THEORY = {
    "lab": "onehidden_papers.lab",
    "objectives": "onehidden_papers.objectives",
    "papers": "onehidden_papers.reproductions",
    "problems": "onehidden_papers.problems",
}

__all__ = [
    "Activation",
    "Check",
    "Match",
    "OneHiddenClassifier",
    "OneHiddenNet",
    "OneHiddenRegressor",
    "Recovery",
    "RecoveryWarning",
    "activations",
    "certify",
    "data",
    "families",
    "lab",
    "laws",
    "load_recovery",
    "match",
    "moments",
    "objectives",
    "papers",
    "problems",
    "recover",
    "recover_oracle",
    "scores",
    "starts",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in __all__:
        value = importlib.import_module(f"onehidden.{name}")
    else:
        raise AttributeError(f"module 'onehidden' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


class _TheoryModule:
    """Finder and loader: ``import onehidden.lab`` gives the module ``onehidden_papers.lab`` itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, inside = name.partition(".")
        room, dot, rest = inside.partition(".")
        if package != __name__ or room not in _THEORY:
            return None
        return ModuleSpec(name, _TheoryModule(_THEORY[room] + dot + rest))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system put the spec of the second name in its place


sys.meta_path.insert(0, _TheoryModule)  # type: ignore[arg-type]
