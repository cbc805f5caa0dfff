"""Size and language of the source, read from its syntax trees: the first rows of the benchmark ``house``."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

TOOL, THEORY = "onehidden", "onehidden_papers"
OLD_THEORY = {"objectives", "lab", "problems", "papers"}  # rooms of the tool before there were two packages

# The left column of the glossary. A word that has another, ordinary meaning is written with its context.
OLD_WORDS = re.compile(
    r"""\b(
      reflections?|reflecting|mirrors?|mirrored|tempers?|strain|reborn|born|grow\ old|herds?|flocks?|guests?
      |bred|offspring|genes|students?(?!['’-]|\ t\b)|weeded|hopes?|hopeless|turned\ around|other\ sides?
      |zero\ sums?|gauges?|lens|further\ units?|one\ unit\ fewer|asks?\ for\ all|detours?|anecdotes?
      |questions?\ asked|unexamined|told|hears?|let\ go|holds?\ back|spent|affords?|affordable|grain|blunt
      |hinges?|polish(?:ed|es|ing)?|legs?|races?|lives
    )\b""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class File:
    """One source file: its path below ``src``, its text and its syntax tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """Dotted name of the module."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def rows(src: Path, docs: Path | None = None) -> Iterator[tuple[str, object, str]]:
    """Measure, value, where: of both packages below ``src`` and of the pages below ``docs``."""
    files = read(src)
    lines = Counter[str]()
    for file in files:
        lines[wing(file)] += len(file.text.splitlines())
    graph = imports(files)
    numbers = {file.path: module_numbers(file.tree) for file in files}
    yield "lines of src", sum(lines.values()), ", ".join(f"{name} {n}" for name, n in sorted(lines.items()))
    yield "files", len(files), ""
    yield "module-level numbers", sum(numbers.values()), most(numbers)
    reach = reached(graph, {f"{TOOL}.recovery.recover"})
    yield "files that recover can reach", len(reach), ""
    reach = reached(graph, {m for m in graph if m.startswith(f"{TOOL}.fit")})
    yield "files that fit reaches", len(reach), ""
    lone = imported_once(graph)
    yield "files imported by one other", len(lone), ", ".join(sorted(lone))
    old = {file.path: old_words(file) for file in files}
    pages = sorted(docs.rglob("*.md")) if docs else []
    old |= {f"docs/{page.relative_to(docs)}": OLD_WORDS.findall(page.read_text()) for page in pages if docs}
    counts = {path: len(words) for path, words in old.items()}
    common = Counter(word for words in old.values() for word in words).most_common(12)
    shown = ", ".join(f"{word} {n}" for word, n in common)
    yield "words of the glossary's left column", sum(counts.values()), f"{shown}; {most(counts)}"
    functions = [node for file in files for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef)]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    yield "median and longest function", f"{median(lengths or [0]):.0f}, {max(lengths, default=0)}", ""
    code, comments, documented = density(files)
    yield (
        "comment lines and docstring lines per 100 of code",
        f"{comments:.1f}, {documented:.1f}",
        f"{code} of code",
    )
    yield "longest line", max((len(line) for file in files for line in file.text.splitlines()), default=0), ""


def read(src: Path) -> list[File]:
    """All files of the two packages."""
    found = sorted(path for package in (TOOL, THEORY) for path in (src / package).rglob("*.py"))
    texts = [(path.relative_to(src).as_posix(), path.read_text(encoding="utf-8")) for path in found]
    return [File(path, text, ast.parse(text)) for path, text in texts]


def wing(file: File) -> str:
    """The tool or the theory, in trees with one package as well."""
    package, room = (*file.path.split("/"), "")[:2]
    return "theory" if package == THEORY or room in OLD_THEORY else "tool"


def most(counts: dict[str, int], shown: int = 12) -> str:
    """The files with the highest counts."""
    return ", ".join(f"{path} {n}" for path, n in Counter(counts).most_common(shown) if n)


def module_numbers(tree: ast.Module) -> int:
    """Numbers that are assigned to names in capitals at module level, alone or up to three in a tuple.

    Longer tuples and dictionaries are tables: printed values of the papers, nodes of a quadrature.
    """
    count = 0
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) and node.value else targets
        names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        if names and all(re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name) for name in names):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            count += numbers_of(value)
    return count


def numbers_of(value: ast.expr | None) -> int:
    """Numbers written in a literal; an expression of numbers is one."""
    if isinstance(value, ast.Tuple | ast.List):
        return sum(numbers_of(one) for one in value.elts) if len(value.elts) <= 3 else 0
    if isinstance(value, ast.UnaryOp | ast.BinOp | ast.Constant):
        constants = [node.value for node in ast.walk(value) if isinstance(node, ast.Constant)]
        return int(any(isinstance(c, int | float) and not isinstance(c, bool) for c in constants))
    return 0


def imports(files: list[File]) -> dict[str, set[str]]:
    """The modules that each module imports from the two packages, inside functions too."""
    known = {file.module for file in files}
    graph: dict[str, set[str]] = {}
    for file in files:
        found: set[str] = set()
        for node in runtime_nodes(file.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (TOOL, THEORY):
                inner = {f"{node.module}.{alias.name}" for alias in node.names} & known
                found |= inner
                if len(inner) < len(node.names) and node.module in known:
                    found.add(str(node.module))
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names} & known
        graph[file.module] = found - {file.module}
    return graph


def runtime_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from runtime_nodes(child)


def reached(graph: dict[str, set[str]], begin: set[str]) -> set[str]:
    """Modules that these import, directly or not; themselves included."""
    seen, ahead = set(begin), list(begin)
    while ahead:
        new = graph.get(ahead.pop(), set()) - seen
        seen |= new
        ahead += new
    return seen


def imported_once(graph: dict[str, set[str]]) -> set[str]:
    """Modules that one other module imports; fronts of packages count neither as importer nor as imported."""
    packages = {module for module in graph if any(other.startswith(f"{module}.") for other in graph)}
    users = Counter(
        target for module, targets in graph.items() if module not in packages for target in targets
    )
    return {module for module in graph if module not in packages and users[module] == 1}


def old_words(file: File) -> list[str]:
    """Words of the old language in names that the file defines and in its docstrings."""
    found: list[str] = []
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            found += OLD_WORDS.findall(ast.get_docstring(node) or "")
        name = getattr(node, "name", None) or getattr(node, "arg", None)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg | ast.Name) and isinstance(name, str):
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("_", " ")
            found += OLD_WORDS.findall(words)
    return found


def density(files: list[File]) -> tuple[int, float, float]:
    """Lines of code, and lines of comments and of docstrings for 100 of them."""
    code = comments = documented = 0
    for file in files:
        inside: set[int] = set()
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node):
                text = node.body[0]
                inside |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
        tokens = tokenize.generate_tokens(io.StringIO(file.text).readline)
        marked = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
        filled = {i for i, line in enumerate(file.text.splitlines(), 1) if line.strip()}
        whole = {i for i, line in enumerate(file.text.splitlines(), 1) if line.strip().startswith("#")}
        code += len(filled - inside - whole)
        comments += len(marked - inside)
        documented += len(inside)
    return code, 100 * comments / max(code, 1), 100 * documented / max(code, 1)
