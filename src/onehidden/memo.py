"""What a long computation may remember between runs; by default nothing."""

from __future__ import annotations

from typing import Any

import numpy as np


class Memo:
    """Named arrays by key. This one forgets; ``recovery.checkpoint`` has one that does not.

    A key is the name of a computation and everything its result depends on: text, numbers, frozen records,
    arrays. ``keep(..., passing=True)`` marks a state on the way, which may be skipped when the last one was
    written a moment ago.
    """

    def recall(self, *key: Any) -> dict[str, np.ndarray] | None:
        return None

    def keep(self, values: dict[str, Any], *key: Any, passing: bool = False) -> None:
        return None


FORGETFUL = Memo()
