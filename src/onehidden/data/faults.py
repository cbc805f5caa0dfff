"""What is wrong with a file or a table: one sentence a problem, all problems at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class Unusable(ValueError):
    """A file cannot be used as it is; the text says why and what to do."""


class Problems(ValueError):
    """Several problems of one table; ``sentences`` has one each."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.sentences = tuple(sentences)
        super().__init__("; ".join(f"({i}) {one}" for i, one in enumerate(self.sentences, start=1)))


def must_be_none(problems: Iterable[str], limit: int = 6) -> None:
    """Raise all problems together, so that they can be mended in one go; of very many the first few."""
    found = list(problems)
    if len(found) > limit:
        found = [*found[:limit], f"{len(found) - limit} more problems of this kind"]
    if len(found) > 1:
        raise Problems(found)
    if found:
        raise ValueError(found[0])


@contextmanager
def unreadable(path: Path | str, kind: str) -> Iterator[None]:
    """Turn whatever a reader of a damaged file raises into one sentence."""
    try:
        yield
    except Unusable:
        raise
    except MemoryError:
        raise Unusable(
            f"{path} asks for more memory than there is: it may be damaged, or too large"
        ) from None
    except Exception as error:
        line = re.sub(r"^Could not open \w+ input source '.*?': ", "", " ".join(str(error).split()))
        line = line if len(line) <= 160 else line[:157] + "..."
        raise Unusable(
            f"{path} cannot be read as {kind} ({line}): it may be damaged, cut short or misnamed"
        ) from None


def must_be_few(columns: int, where: str, most: int = 20_000) -> None:
    """Refuse more columns than a recovery can hold: its matrix of columns x columns takes 3 GB then."""
    if columns > most:
        raise Unusable(
            f"{where} has {columns} columns, more than the {most} that can be used: list those to "
            "use, or save them to a file of their own"
        )


def must_be_plausible(path: Path | str, unpacked: int) -> None:
    """Refuse a small file that unpacks to gigabytes.

    Deflate reaches a ratio of 1032 at most; tables of numbers reach 10, columns of few categories 50.
    """
    packed = os.path.getsize(path)
    if unpacked > 1 << 28 and unpacked > 200 * packed:
        raise Unusable(
            f"{path} unpacks from {packed:,} to {unpacked:,} bytes or more, which no table does: it may be "
            "damaged or made to fill the memory"
        )
