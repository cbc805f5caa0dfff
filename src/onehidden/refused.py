"""Refused: what is asked for is not to be had from these data. A signal between rooms, not a bad argument."""

from __future__ import annotations


class Refused(ValueError):
    """A start, a model or a moment cannot be had here; the text is the reason, one sentence for a person.

    Callers inside the library catch this class and go on without; callers who asked for it by name get the
    sentence, as with any other ``ValueError``.
    """
