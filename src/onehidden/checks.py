"""A check is a record: reports, exit codes and tests read the same ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """One question asked of a result, with its answer.

    Attributes
    ----------
    name : what was asked.
    value : the measured quantity.
    threshold : the bound it was held against.
    passed : the verdict.
    advice : one line: what the verdict means and what to do.
    """

    name: str
    value: float
    threshold: float
    passed: bool
    advice: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def at_most(name: str, value: float, threshold: float, advice: str) -> Check:
    """A check that passes when ``value <= threshold`` (NaN fails)."""
    return Check(name, float(value), float(threshold), bool(value <= threshold), advice)


def at_least(name: str, value: float, threshold: float, advice: str) -> Check:
    """A check that passes when ``value >= threshold`` (NaN fails)."""
    return Check(name, float(value), float(threshold), bool(value >= threshold), advice)
