"""The documentation site: furo, Markdown through MyST, docstrings through autodoc."""

from __future__ import annotations

import importlib
import inspect
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
myst_enable_extensions = ["deflist"]
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


def setup(app: Any) -> None:
    app.add_role("impl", _impl)
