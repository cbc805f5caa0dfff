"""Unusable: the one sentence about a file; whatever a parser met first becomes such a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Unusable(ValueError):
    """A file cannot be used as it is; the text is the reason and what to do, for a person."""


@contextmanager
def unreadable(path: str, kind: str) -> Iterator[None]:
    """Readers of damaged files raise anything: it is caught here and said in our words."""
    try:
        yield
    except Unusable:
        raise
    except MemoryError:
        raise Unusable(
            f"{path} asks for more memory than there is: it may be damaged, or too large"
        ) from None
    except Exception as error:
        line = " ".join(str(error).split())
        line = line if len(line) <= 160 else line[:157] + "..."
        raise Unusable(
            f"{path} cannot be read as {kind} ({line}): it may be damaged, cut short or misnamed"
        ) from None
