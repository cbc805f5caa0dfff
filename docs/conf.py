"""The documentation site: furo, Markdown through MyST, docstrings through autodoc."""

from __future__ import annotations

import importlib
import inspect
import re
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


def implementation(name: str) -> tuple[str, str, int]:
    """(file below src/onehidden, page of its source on the site, line) of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(["onehidden", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        found: Any = module
        for part in parts[cut:]:
            found = getattr(found, part)
        found = inspect.unwrap(found.fget if isinstance(found, property) else found)
        file = Path(str(inspect.getsourcefile(found)))
        inside = file.relative_to(Path(onehidden.__file__).parent)
        line = inspect.getsourcelines(found)[1] if cut < len(parts) else 1
        page = f"_modules/onehidden/{inside.with_suffix('')}.html"
        return str(inside), page, max(line, 1)
    raise ValueError(f"no such object: onehidden.{name}")


def _at(name: str) -> Any:
    """The object of a dotted name below the package; None where the name ends in a module."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(["onehidden", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    return None


def _impl(role, rawtext, text, lineno, inliner, options=None, content=()):
    """``{impl}`name` ``: a link to the line that implements an equation."""
    from docutils import nodes

    inside, page, line = implementation(text)
    module = inside.removesuffix(".py").replace("/", ".")
    anchor = text.removeprefix(module).lstrip(".")
    if isinstance(_at(text), property):  # the site marks classes and functions, not properties
        anchor = anchor.rpartition(".")[0]
    return [nodes.reference(rawtext, f"{inside}, line {line}", refuri=f"{page}#{anchor}", internal=True)], []


_SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises")


def described(lines: list[str]) -> list[str]:
    """A docstring whose entries "name : what it is" have the description on a line of its own.

    The house writes them on one line; read by the letter of the format, the description would be a type.
    """
    found: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        underlined = number + 1 < len(lines) and set(lines[number + 1].strip()) == {"-"}
        if underlined:
            inside = line.strip() in _SECTIONS
        if "``" not in line:
            line = line.replace("|", "\\|")  # a norm, not a substitution
        name, colon, text = line.partition(" : ")
        if inside and colon and not line.startswith(" ") and text:
            # "d." alone would begin a list.
            found += [name, "    " + re.sub(r"^(\w)\.", r"\1\\.", text)]
        else:
            found.append(line)
    return found


def _describe(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = described(lines)


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
    app.connect("autodoc-process-docstring", _describe, priority=400)  # before the format is read, at 500
    app.add_html_math_renderer("mathml", (_mathml(False), None), (_mathml(True), None))
