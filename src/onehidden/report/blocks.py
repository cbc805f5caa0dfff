"""The document tree of a page, and the template that makes HTML of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onehidden.checks import Check
from onehidden.report.figures import Curve, to_svg
from onehidden.report.headline import Answer
from onehidden.report.wording import mark, short


@dataclass(frozen=True)
class Facts:
    """Labelled values, each short enough for large type."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Checks:
    """Checks with what was measured and what to do."""

    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Grid:
    """A table; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    # Columns of words, aligned to the left. With them a narrow page sets the cells of a row below one
    # another, as text does.
    wordy: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Figure:
    """A picture."""

    name: str
    caption: str
    curve: Curve


@dataclass(frozen=True)
class Gallery:
    """Small figures of one kind side by side."""

    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Formula:
    """The network written out, one line per unit."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Text to copy."""

    text: str


Block = str | Answer | Facts | Checks | Grid | Gallery | Formula | Code  # text is a paragraph


@dataclass(frozen=True)
class Section:
    """A chapter; the page folds away one of ``detail``."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    detail: bool = False


def to_html(title: str, sections: Sequence[Section]) -> str:
    """One page: template, style and pictures inside, nothing fetched."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("onehidden.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The only markup that is not escaped is what Matplotlib drew; it escapes the names in it.
    environment.filters["picture"] = lambda figure: Markup(to_svg(figure))
    environment.filters |= {"short": short, "mark": mark}
    environment.tests["of_kind"] = lambda block, kind: type(block).__name__ == kind
    return environment.get_template("page.html.jinja").render(title=title, sections=sections)
