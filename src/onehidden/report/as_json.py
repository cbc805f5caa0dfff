"""The report as JSON: strict, with the numbers of every figure in place of its picture."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from onehidden.report.blocks import Block, Figure, Gallery, Report

FORMAT_VERSION = 1


def render(report: Report) -> str:
    tree = {
        "format": "onehidden-report",
        "format_version": FORMAT_VERSION,
        "title": report.title,
        "network": report.network,
        "sections": [
            {"name": s.name, "title": s.title, "blocks": [_block(block) for block in s.blocks]}
            for s in report.sections
        ],
    }
    return json.dumps(_plain(tree), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _block(block: Block) -> dict[str, Any]:
    if isinstance(block, Gallery):
        return {"kind": "gallery", "figures": [_block(figure) for figure in block.figures]}
    if isinstance(block, Figure):
        return {"kind": "figure", "name": block.name, "caption": block.caption, "data": block.data}
    fields = {f.name: getattr(block, f.name) for f in dataclasses.fields(block)}
    for look in ("wordy", "stacks"):
        fields.pop(look, None)
    return {"kind": type(block).__name__.lower(), **fields}


def _plain(value: object) -> Any:
    """Types that JSON has; what it lacks (NaN, infinities) becomes text, so that nothing is lost."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _plain(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
