"""onehidden: recover the hidden layer that generated your data.

The whole public surface stands on this page; what is heavy is imported when first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from onehidden import (
        activations,
        certify,
        data,
        families,
        lab,
        laws,
        moments,
        objectives,
        papers,
        problems,
        scores,
        starts,
    )
    from onehidden.checks import Check
    from onehidden.matching import Match, match
    from onehidden.network import OneHiddenNet
    from onehidden.oracle import recover_oracle
    from onehidden.recovery import Recovery, load_recovery, recover
    from onehidden.recovery.classifier import OneHiddenClassifier
    from onehidden.recovery.estimator import OneHiddenRegressor

_HOME = {
    "Check": "onehidden.checks",
    "Match": "onehidden.matching",
    "OneHiddenClassifier": "onehidden.recovery.classifier",
    "OneHiddenNet": "onehidden.network",
    "OneHiddenRegressor": "onehidden.recovery.estimator",
    "Recovery": "onehidden.recovery",
    "load_recovery": "onehidden.recovery",
    "match": "onehidden.matching",
    "recover": "onehidden.recovery",
    "recover_oracle": "onehidden.oracle",
}
_ROOMS = (
    "activations", "certify", "data", "families", "lab", "laws", "moments", "objectives", "papers",
    "problems", "scores", "starts",
)  # fmt: skip

__all__ = [
    "Check",
    "Match",
    "OneHiddenClassifier",
    "OneHiddenNet",
    "OneHiddenRegressor",
    "Recovery",
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
    elif name in _ROOMS:
        value = importlib.import_module(f"onehidden.{name}")
    else:
        raise AttributeError(f"module 'onehidden' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
