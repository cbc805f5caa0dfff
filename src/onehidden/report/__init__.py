"""A recovery as a page for people: one section tree, rendered to HTML, Markdown and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onehidden.network import OneHiddenNet
from onehidden.whole import write_whole

if TYPE_CHECKING:
    from onehidden.report.subject import Recovered

__all__ = ["as_json_text", "drawn_with_samples", "render_html", "render_json", "render_markdown"]


def render_html(
    recovery: Recovered,
    path: str | Path,
    X: object = None,
    y: object = None,
    truth: OneHiddenNet | None = None,
) -> Path:
    """Write one self-contained page: no network, figures inside.

    Parameters
    ----------
    recovery : the result of ``recover``.
    path : the file to write; its folder is made when missing.
    X, y : samples, (n, d) and (n,), for the ridge functions and observed against predicted; subsampled. X may
        be a ``data.Table`` that holds the target too, with its offset and trials.
    truth : the network that made the data, where it is known: adds the matched units and their errors.

    Returns
    -------
    The path written.
    """
    from onehidden.report import as_html, sections

    return _write(path, as_html.render(sections.build(recovery, X, y, truth)))


def render_markdown(
    recovery: Recovered,
    path: str | Path,
    X: object = None,
    y: object = None,
    truth: OneHiddenNet | None = None,
) -> Path:
    """Write the report as Markdown, its figures as SVG files in the folder NAME-figures beside it."""
    from onehidden.report import as_markdown, sections

    text, figures = as_markdown.render(sections.build(recovery, X, y, truth), f"{Path(path).stem}-figures")
    for name, svg in figures.items():
        _write(Path(path).parent / name, svg)
    return _write(path, text)


def render_json(
    recovery: Recovered,
    path: str | Path,
    X: object = None,
    y: object = None,
    truth: OneHiddenNet | None = None,
) -> Path:
    """Write the report as JSON: the same sections, with the numbers behind every figure."""
    return _write(path, as_json_text(recovery, X, y, truth))


def as_json_text(
    recovery: Recovered, X: object = None, y: object = None, truth: OneHiddenNet | None = None
) -> str:
    """The JSON that ``render_json`` writes."""
    from onehidden.report import as_json, sections

    return as_json.render(sections.build(recovery, X, y, truth))


def drawn_with_samples(path: str | Path) -> bool:
    """Whether a page that is there holds figures of the fit; a page of another kind, or none, does not."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm") or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return '<meta name="onehidden-samples" content="yes">' in file.read(4000)


def _write(path: str | Path, text: str) -> Path:
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of the file to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode())
    return path
