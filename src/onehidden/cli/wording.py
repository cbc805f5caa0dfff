"""Sentences as they read on the command line: arguments become options, and what was mistyped is guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

# Arguments of ``recover`` and ``data.open`` that are options here, with what they are called.
_OPTIONS = {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "activation", "bias", "columns", "decimal", "drop", "encoding", "errors", "hidden", "max_seconds",
        "family", "linear", "link", "na", "nulls", "offset", "one_hot", "score", "seed", "start", "target",
        "trials", "weight",
    )
} | {"sample_weight": "--weight"}  # fmt: skip
_NAME = rf"\b({'|'.join(sorted(_OPTIONS, key=len, reverse=True))})"
_VALUE = r"(?:'[^']*'|\"[^\"]*\"|\[.*?\]|True|NAME)"
_BOTH = re.compile(rf"{_NAME}={_VALUE} \((--.+?)\)(?=$|[\s,;:.])")  # the option stands behind it already
_TEXT = re.compile(rf"{_NAME}=(?:'([^']*)'|\"([^\"]*)\"|True|(NAME))")
_FIRST = re.compile(rf"^{_NAME}(?= (?:must|has|is|names)\b)")
# Objects of Python, which cannot be typed.
_OBJECTS = ((", or of oh.starts", ""), (" a law or one of ", " one of "), (" or None,", ","))


def as_typed(sentence: str) -> str:
    """The sentence with --max-seconds for max_seconds, and --activation auto for activation='auto'."""
    text = _BOTH.sub(lambda found: found[2], sentence)
    text = _TEXT.sub(lambda found: " ".join(filter(None, (_OPTIONS[found[1]], *found.groups()[1:]))), text)
    if text != (text := _FIRST.sub(lambda found: _OPTIONS[found[1]], text)):
        for python, typed in _OBJECTS:
            text = text.replace(python, typed)
    return re.sub(r"\bsample_weight\b", "--weight", text)


def misread(what: str, typed: str, known: Iterable[str]) -> str:
    """That there is no such command or option, and the nearest that there is."""
    bare = {name.lstrip("-"): name for name in known}  # dashes are alike everywhere
    near = get_close_matches(typed.lstrip("-"), bare, 1, 0.6)
    return f"no such {what} {typed!r}" + (f": did you mean {bare[near[0]]!r}?" if near else ".")
