"""A recovery as a page for people: two answers first, then the network, its checks and its pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onehidden.atomic import write_atomically

if TYPE_CHECKING:
    from onehidden.recovery import Recovery

__all__ = ["render_html"]


def render_html(recovery: Recovery, path: str | Path, X: object = None, y: object = None) -> Path:
    """Write one self-contained page, with its figures inside; see ``Recovery.report``."""
    from onehidden.report import blocks, chapters, pictures
    from onehidden.report.screen import screen, title
    from onehidden.report.subject import gather

    subject, path = gather(recovery, X, y), Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of the file to write")
    made = (
        pictures.of_inputs, pictures.of_fit, chapters.checks,
        chapters.alternatives, chapters.parameters, chapters.reproduce,
    )  # fmt: skip
    first = blocks.Section("summary", "Summary", screen(subject))
    others = (section for chapter in made if (section := chapter(subject)) is not None)
    write_atomically(path, blocks.to_html(title(subject), (first, *others)).encode())
    return path
