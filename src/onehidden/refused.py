"""Refused: what is asked for is not to be had from these data. A signal between rooms, not a bad argument.

And what an unknown name may have meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType


class Refused(ValueError):
    """A start, a model or a moment cannot be had here; the text is the reason, one sentence for a person.

    Callers inside the library catch this class and go on without; callers who asked for it by name get the
    sentence, as with any other ``ValueError``.
    """


def meant(
    name: object,
    names: Sequence[str],
    otherwise: str = "",
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The end of a sentence about an unknown name: the names that it may have meant, or all of them.

    ``otherwise`` stands for all of them; ``elsewhere`` has what other libraries say.
    """
    text = str(name).strip().casefold()
    folded = {other.strip().casefold(): other for other in reversed(names[:2000])}  # 10 µs a comparison
    same = elsewhere.get(text, folded.get(text))
    near = [folded[other] for other in get_close_matches(text, folded, 3, 0.6)] if same is None else [same]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return otherwise or f"choose one of {', '.join(names)}"
