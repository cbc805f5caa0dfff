"""The report as one HTML file: template, style and pictures inside, nothing fetched."""

from __future__ import annotations

from onehidden.report.blocks import Report
from onehidden.report.marks import mark
from onehidden.report.numbers import short
from onehidden.report.style import to_svg


def render(report: Report) -> str:
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
    environment.filters["short"] = short
    environment.filters["mark"] = mark
    environment.tests["of_kind"] = lambda block, kind: type(block).__name__ == kind
    return environment.get_template("page.html.jinja").render(report=report)
