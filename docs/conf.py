"""The documentation site: furo, Markdown through MyST, docstrings through autodoc."""

from __future__ import annotations

import importlib
import inspect
import itertools
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import onehidden

project = "onehidden"
author = "the onehidden authors"
release = version = onehidden.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "onehidden"
html_copy_source = False
html_show_copyright = False
myst_enable_extensions = ["deflist", "dollarmath"]
# Mathematics is set by the browser itself: no script, nothing fetched.
html_math_renderer = "mathml"
html_css_files = ["site.css"]
html_static_path = ["_static"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
# Docstrings write shapes and sums as people do, (n, d) and |x|, which are not cross-references.
suppress_warnings = ["ref.ref", "ref.python", "ref.term", "docutils"]


def resolved(name: str) -> tuple[str, str, Any]:
    """(module, name inside it, object) of a dotted name below one of the two packages."""
    parts = name.split(".")
    for package, cut in itertools.product(("onehidden", "onehidden_papers"), range(len(parts), 0, -1)):
        try:
            found: Any = importlib.import_module(".".join([package, *parts[:cut]]))
            module = found.__name__
            for part in parts[cut:]:
                found = getattr(found, part)
        except (ModuleNotFoundError, AttributeError):
            continue
        return module, ".".join(parts[cut:]), found
    raise ValueError(f"no such object: {name}")


def implementation(name: str) -> tuple[str, str, int]:
    """(file below src, page of its source on the site, line) of a dotted name."""
    _, inside, found = resolved(name)
    found = inspect.unwrap(found.fget if isinstance(found, property) else found)
    file = Path(str(inspect.getsourcefile(found))).relative_to(Path(onehidden.__file__).parents[1])
    line = inspect.getsourcelines(found)[1] if inside else 1
    return str(file), f"_modules/{file.with_suffix('')}.html", max(line, 1)


def _impl(role, rawtext, text, lineno, inliner, options=None, content=()):
    """``{impl}`name` ``: a link to the line that implements an equation."""
    from docutils import nodes

    file, page, line = implementation(text)
    _, anchor, found = resolved(text)
    if isinstance(found, property):  # the site marks classes and functions, not properties
        anchor = anchor.rpartition(".")[0]
    return [nodes.reference(rawtext, f"{file}, line {line}", refuri=f"{page}#{anchor}", internal=True)], []


def escaped(lines: list[str]) -> list[str]:
    """Escape the bars of norms, which the markup would read as substitutions; code is left as it is."""

    def of(line: str) -> str:
        parts = line.split("``")
        return "``".join(part if code % 2 else part.replace("|", "\\|") for code, part in enumerate(parts))

    return [line if line.lstrip().startswith((">>>", "...")) else of(line) for line in lines]


def _escape(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = escaped(lines)


def _mathml(block: bool) -> Any:
    """A visitor that sets a formula as MathML."""

    def visit(self: Any, node: Any) -> None:
        from docutils import nodes
        from docutils.utils.math import latex2mathml

        self.body.append(latex2mathml.tex2mathml(node.astext(), as_block=block))
        raise nodes.SkipNode

    return visit


def setup(app: Any) -> None:
    app.add_role("impl", _impl)
    app.connect("autodoc-process-docstring", _escape, priority=400)  # before the format is read, at 500
    app.add_html_math_renderer("mathml", (_mathml(False), None), (_mathml(True), None))
