"""Hostile inputs from one generator: each must end in one sentence, exit code 2, and nothing written."""

from __future__ import annotations

import random

from hostile.broken_files import bombs, misnamed, truncated, wide
from hostile.case import Case
from hostile.damaged_records import checkpoints, models, requests
from hostile.odd_columns import folders, mixed, named, numbers

KINDS = (truncated, misnamed, bombs, wide, named, numbers, mixed, folders, models, checkpoints, requests)


def cases(seed: int = 0) -> list[Case]:
    """All cases, the same for the same seed."""
    return [case for kind in KINDS for case in kind(random.Random(f"{seed} {kind.__name__}"))]
