"""The verdict on an answer, one word of five."""

from __future__ import annotations

import enum


class Status(enum.StrEnum):
    """How far an answer can be trusted; a member equals its text.

    EXACT : every row is reproduced to rounding, and no other network of this form does it.
    CONSISTENT : what is left looks like noise, and the units are determined.
    APPROXIMATE : the data show more than the network, whose units are well determined as the best of their
        number.
    DOUBTFUL : not to be used as it stands.
    NOT_IDENTIFIABLE : the data cannot tell some of it, whatever the search.
    """

    EXACT = "exact"
    CONSISTENT = "consistent"
    APPROXIMATE = "approximate"
    DOUBTFUL = "doubtful"
    NOT_IDENTIFIABLE = "not identifiable"

    @property
    def certified(self) -> bool:
        """Whether the network may be taken for the one behind the data."""
        return self in (Status.EXACT, Status.CONSISTENT)
