"""What is wrong with a file or a table: one sentence a problem, all problems at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_MOST = 6  # problems told at once: a person mends no more of them in one go


class Unusable(ValueError):
    """A file cannot be used as it is; the text is the reason and what to do, for a person."""


class Problems(ValueError):
    """Several problems of one table; ``sentences`` has one each."""

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__("; ".join(f"({i}) {one}" for i, one in enumerate(sentences, start=1)))
        self.sentences = tuple(sentences)


def must_be_none(problems: Sequence[str]) -> None:
    """Raise what was found, all of it, so that it can be mended in one go; of very many the first few."""
    if len(problems) > _MOST:
        problems = [*problems[:_MOST], f"{len(problems) - _MOST} more problems of this kind"]
    if len(problems) > 1:
        raise Problems(problems)
    if problems:
        raise ValueError(problems[0])


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
