"""The measures of the architecture, of any source tree: ``python -m benchmarks house [--src FOLDER]``.

A room is a folder of the package; the modules beside ``__init__.py`` are one room, ``base``. All but the walk
of one ``recover(X, y)`` and the duplicates is read from the syntax tree. What hangs on a name is a heuristic,
so every place is listed: a row says where to look.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import _house_size
from benchmarks._table import Table

ROOT = Path(__file__).parents[1]
OWN = ROOT / "src" / "onehidden"
PACKAGE = "onehidden"
BASE = "base"
Place = tuple[str, int]  # file below the package, line
_LITERAL = 1e-10  # the largest number that is taken for a bound of rounding
_ROUNDING = {"loss", "losses", "rms", "misfit", "misfits", "floor", "good", "exact", "done"}
_WRAPPERS = {"float", "sqrt", "abs", "max", "min", "maximum", "minimum", "mean", "sum", "asarray"}
_PROSE = {"message", "advice"}
_MAKERS = {"Check", "at_most", "at_least"}
_TESTS = {
    "startswith", "endswith", "removeprefix", "removesuffix", "replace", "split", "partition", "find", "get",
    "intersection", "isdisjoint", "issubset", "issuperset", "difference",
}  # fmt: skip


def main(quick: bool) -> list[str]:
    source = Path(os.environ.get("BENCH_SRC", OWN)).resolve()
    modules = read(source)
    table = Table("measure", "value", "where")
    docs = source.parents[1] / "docs"
    for row in _house_size.rows(source.parent, docs if docs.is_dir() else None):
        table.row(*row)
    for row in rows_of_the_walk(source):
        table.row(*row)
    graph = room_graph(modules)
    table.row("edges of the room graph", sum(map(len, graph.values())), shown_graph(graph))
    turning = sum(bool(_way(graph, room, room)) for room in graph)
    table.row("rooms in a cycle", turning, ", ".join(map(" > ".join, cycles(graph))))
    count, loose, bare = parameters(modules)
    share = f"{100 * len(loose) / max(count, 1):.1f} % ({len(loose)} of {count})"
    table.row("parameters annotated Any", share, counted(loose))
    table.row("parameters without annotation", len(bare), counted(bare))
    own, foreign = signals(modules)
    table.row("ValueError caught as a signal, from the project's own code", len(own), listed(own))
    table.row("ValueError caught from float() and other libraries alone", len(foreign), listed(foreign))
    for measure, places in (
        ("branches on the name of a check or on a message", branches_on_names(modules)),
        ("generators made outside the streams", generators(modules)),
        ('definitions of "to rounding"', roundings(modules)),
    ):
        table.row(measure, len(places), listed(places))
    pairs = duplicated(source)
    shown = "the command duplicates is not on this machine" if pairs is None else "; ".join(pairs)
    table.row("pairs of `duplicates --min-lines 6`", "" if pairs is None else len(pairs), shown)
    for room, (files, lines) in sizes(source, modules).items():
        table.row(f"room {room}", f"{files} files", f"{lines} lines")
    return table.lines


@dataclass(frozen=True)
class Module:
    """One file of the package: its path below it and its syntax tree."""

    path: str
    tree: ast.Module


def read(source: Path) -> list[Module]:
    files = sorted(source.rglob("*.py"))
    if not files:
        raise ValueError(f"{source} holds no Python files: give the folder of the package")
    return [Module(f.relative_to(source).as_posix(), ast.parse(f.read_text(encoding="utf-8"))) for f in files]


def room_of(path: str) -> str:
    """The folder of a file; ``options.py`` is a room of one file, as in the test of layers."""
    return path.split("/")[0] if "/" in path else {"options.py": "options"}.get(path, BASE)


def sizes(source: Path, modules: list[Module]) -> dict[str, tuple[int, int]]:
    """Files and lines of every room, by name."""
    files, lines = Counter[str](), Counter[str]()
    for module in modules:
        files[room_of(module.path)] += 1
        lines[room_of(module.path)] += len((source / module.path).read_text(encoding="utf-8").splitlines())
    return {room: (files[room], lines[room]) for room in sorted(files)}


def listed(places: Iterable[Place]) -> str:
    """``a.py:3, 7; b.py:1``"""
    lines: dict[str, list[str]] = {}
    for file, line in sorted(set(places)):
        lines.setdefault(file, []).append(str(line))
    return "; ".join(f"{file}:{', '.join(at)}" for file, at in lines.items())


def counted(places: Iterable[Place]) -> str:
    """``a.py 12, b.py 3``, the most first: for what is too much to list."""
    return ", ".join(f"{file} {n}" for file, n in Counter(file for file, _ in places).most_common())


# One recovery


def rows_of_the_walk(source: Path) -> list[tuple[str, object, str]]:
    """Files, rooms, and crossings between recovery and starts; a tree that does not run is not measured."""
    try:
        walk = walk_of_one_recovery(source)
    except RuntimeError as error:
        return [("files one recover(X, y) enters", "not measured", str(error).splitlines()[-1])]
    rooms = sorted({room_of(file) for file in walk["files"]})
    ways = [way for way in walk["ways"] if {way[0], way[1]} == {"recovery", "starts"}]
    shown = ", ".join(f"{caller} > {called}" for _, _, caller, called, _ in ways)
    return [
        ("files one recover(X, y) enters", len(walk["files"]), ", ".join(walk["files"])),
        ("rooms it enters", len(rooms), ", ".join(rooms)),
        ("places where it crosses between recovery and starts", len(ways), shown),
        ("calls across that wall", sum(way[4] for way in ways), ""),
    ]


def walk_of_one_recovery(source: Path) -> dict[str, list]:
    """``files`` with a function that is called, and ``ways``: room, room, caller, called, times.

    Runs in a process of its own that finds the package in ``source``. The caller is the nearest function of
    the package on the stack, so a call that passes through JAX or a generated ``__init__`` counts, too. What
    a recovery does in processes of its own is not seen.
    """
    code = "import sys, benchmarks.house as h; h.walk(sys.argv[1])"
    path = os.pathsep.join([str(source.parent), str(ROOT)])
    one_thread = dict.fromkeys(("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    env = os.environ | one_thread | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(source)],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"recover(X, y) of {source} failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def walk(source: str) -> None:
    """Print the walk of one recovery as a line of JSON."""
    import importlib
    import pkgutil
    import threading

    import numpy as np

    package = importlib.import_module(PACKAGE)
    for found in pkgutil.walk_packages(package.__path__, f"{PACKAGE}."):
        importlib.import_module(found.name)  # what importing calls is no part of a recovery
    prefix = str(Path(source).resolve()) + os.sep
    if not (package.__file__ or "").startswith(prefix):
        raise ValueError(f"{PACKAGE} was imported from {package.__file__}, not from {source}")
    entered: set[str] = set()
    ways: Counter[tuple[str, str, str, str]] = Counter()

    def watch(frame, event, _):
        code = frame.f_code
        # Bodies of modules and classes are no functions: their locals are not optimised.
        function = event == "call" and code.co_flags & inspect.CO_OPTIMIZED
        if not function or not code.co_filename.startswith(prefix):
            return
        file = code.co_filename.removeprefix(prefix).replace(os.sep, "/")
        entered.add(file)
        caller = frame.f_back
        while caller is not None and not caller.f_code.co_filename.startswith(prefix):
            caller = caller.f_back
        if caller is not None:
            home = caller.f_code.co_filename.removeprefix(prefix).replace(os.sep, "/")
            if room_of(home) != room_of(file):
                names = (f"{home}:{caller.f_code.co_qualname}", f"{file}:{code.co_qualname}")
                ways[(room_of(home), room_of(file), *names)] += 1

    rng = np.random.default_rng(20)
    X = rng.standard_normal((600, 5))
    hidden = np.maximum(X @ rng.standard_normal((5, 3)) + 0.5 * rng.standard_normal(3), 0)
    y = hidden @ np.array([1.0, -1.5, 2.0])
    y = y + 0.1 * y.std() * rng.standard_normal(600)
    recover = package.recover
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        recover(X, y, 3, bias=True)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]
    print(json.dumps({"files": sorted(entered), "ways": [[*way, n] for way, n in sorted(ways.items())]}))


# Who imports whom


def room_graph(modules: list[Module]) -> dict[str, set[str]]:
    """The rooms that each room imports, inside functions too; what only a type checker reads is left out.

    The package's own ``__init__.py`` is the front door and no importer; a public name that a room takes from
    it counts as an import of the room where that name lives.
    """
    homes = next((_homes(m.tree) for m in modules if m.path == "__init__.py"), {})
    rooms = {room_of(m.path) for m in modules}
    graph: dict[str, set[str]] = {room: set() for room in sorted(rooms)}
    for module in modules:
        if module.path == "__init__.py":
            continue
        for name in _imported(module):
            first = name.split(".")[1] if "." in name else ""
            if first not in rooms and first in homes:
                first = homes[first].split(".")[1]
            graph[room_of(module.path)].add(first if first in rooms else BASE)
    return {room: others - {room} for room, others in graph.items()}


def _homes(tree: ast.Module) -> dict[str, str]:
    """Where the public names of ``__init__.py`` live, imported outright or for the type checker."""
    homes = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE}."):
            homes |= {a.asname or a.name: node.module for a in node.names}
    return homes


def _imported(module: Module) -> Iterator[str]:
    """Dotted names below the package that this file imports; ``import_module`` of a literal counts."""
    inside = [PACKAGE, *module.path.split("/")[:-1]]
    for node in _without_type_checking(module.tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom):
            above = inside[: len(inside) - node.level + 1] if node.level else []
            name = ".".join([*above, *([node.module] if node.module else [])])
            if name == PACKAGE:
                yield from (f"{PACKAGE}.{a.name}" for a in node.names)
            elif name.startswith(f"{PACKAGE}."):
                yield name
        elif isinstance(node, ast.Call) and _last(node.func) == "import_module" and node.args:
            begin = node.args[0].values[0] if isinstance(node.args[0], ast.JoinedStr) else node.args[0]
            if isinstance(begin, ast.Constant) and str(begin.value).startswith(f"{PACKAGE}."):
                yield str(begin.value)


def _without_type_checking(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    guarded = isinstance(node, ast.If) and _last(node.test) == "TYPE_CHECKING"
    for child in node.orelse if guarded else ast.iter_child_nodes(node):
        yield from _without_type_checking(child)


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Shortest cycles that share no room, a > b > a; none only where the graph has none."""
    found, seen = [], set()
    for room in graph:
        way = _way(graph, room, room)
        if way and not seen & set(way):
            found.append(way)
            seen |= set(way)
    return found


def _way(graph: dict[str, set[str]], start: str, goal: str) -> list[str]:
    ways = [[start]]
    reached = set()
    for way in ways:
        for room in sorted(graph[way[-1]] - reached):
            reached.add(room)
            ways.append([*way, room])
            if room == goal:
                return ways[-1]
    return []


def shown_graph(graph: dict[str, set[str]]) -> str:
    return "; ".join(f"{room} > {', '.join(sorted(others))}" for room, others in graph.items() if others)


# Types


def parameters(modules: list[Module]) -> tuple[int, list[Place], list[Place]]:
    """How many parameters there are but self and cls, those that are ``Any``, those without annotation."""
    count, loose, bare = 0, [], []
    for module, node in _nodes(modules, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        given = given[given[:1] != [] and given[0].arg in ("self", "cls") :]
        for one in [*given, *filter(None, (node.args.vararg, node.args.kwarg))]:
            count += 1
            if one.annotation is None:
                bare.append((module.path, one.lineno))
            elif _is_any(one.annotation):
                loose.append((module.path, one.lineno))
    return count, sorted(loose), sorted(bare)


def _is_any(note: ast.expr) -> bool:
    """``Any``, ``Any | None``, ``Optional[Any]``, quoted or not; ``dict[str, Any]`` says something."""
    if isinstance(note, ast.Constant) and isinstance(note.value, str):
        return _is_any(ast.parse(note.value, mode="eval").body)
    if isinstance(note, ast.BinOp):
        return _is_any(note.left) or _is_any(note.right)
    if isinstance(note, ast.Subscript) and _last(note.value) in ("Optional", "Union", "Annotated"):
        return any(map(_is_any, note.slice.elts if isinstance(note.slice, ast.Tuple) else [note.slice]))
    return _last(note) == "Any"


# Exceptions


def signals(modules: list[Module]) -> tuple[list[Place], list[Place]]:
    """Handlers of ValueError that raise nothing: around the project's own code, around foreign code alone.

    ``float(text)`` and a library's parser have no other way to say no; a function of the project has. A
    command that shows the error to its user (``except ValueError as error`` in ``cli``, with ``error`` used)
    is the door at which bad arguments end, and not counted.
    """
    own, foreign = [], []
    for module in modules:
        known = _foreign_names(module.tree)
        for block in _blocks(module.tree):
            for node, after in itertools.pairwise([*block, None]):
                for handler in node.handlers if isinstance(node, ast.Try) else ():
                    if "ValueError" not in _caught(handler) or _raises(handler, after):
                        continue
                    if room_of(module.path) == "cli" and _shows(handler):
                        continue
                    tried = [n for s in node.body for n in ast.walk(s)]
                    roots = {_root(n.func) for n in tried if isinstance(n, ast.Call)}
                    roots |= {_root(n.iter) for n in tried if isinstance(n, ast.For)}
                    (foreign if roots <= known else own).append((module.path, handler.lineno))
    return own, foreign


def _blocks(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _caught(handler: ast.ExceptHandler) -> set[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {_last(kind) for kind in kinds if kind is not None}


def _raises(handler: ast.ExceptHandler, after: ast.stmt | None) -> bool:
    """Whether the handler raises, or passes on to a ``raise`` that comes next."""
    passes_on = isinstance(after, ast.Raise) and all(isinstance(s, ast.Pass) for s in handler.body)
    return passes_on or any(isinstance(n, ast.Raise) for n in ast.walk(handler))


def _shows(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(n, ast.Name) and n.id == handler.name for n in ast.walk(handler))


def _foreign_names(tree: ast.Module) -> set[str]:
    """Builtins, what is imported from elsewhere, paths, and variables filled from nothing else."""
    known = set(dir(builtins)) - {"next", "iter", "map", "filter"}  # these call what they are given
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [(a.name, a.asname or a.name.split(".")[0]) for a in node.names]
            known |= {name for module, name in names if module.split(".")[0] != PACKAGE}
        elif isinstance(node, ast.ImportFrom):
            house = node.level or (node.module or "").split(".")[0] == PACKAGE
            known |= set() if house else {a.asname or a.name for a in node.names}
    known |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg) and _last(n.annotation) == "Path"}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.For)):
            targets, value = (
                (node.targets, node.value) if isinstance(node, ast.Assign) else ([node.target], node.iter)
            )
            if {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} <= known:
                known |= {t.id for t in targets if isinstance(t, ast.Name)}
    return known


# Names and messages


def branches_on_names(modules: list[Module]) -> list[Place]:
    """Where behaviour hangs on the name of a check or on the words of a message.

    A subject is ``check.name``, ``.message``, ``.advice``, a collection or property made of names, or a
    variable that holds one. Comparing it with anything but nothing, testing membership, cutting it up,
    looking something up by it, and sets of names in the code all count; writing it out does not.
    """
    names = {
        n.args[0].value
        for _, n in _nodes(modules, ast.Call)
        if _last(n.func) in _MAKERS and n.args and isinstance(n.args[0], ast.Constant)
    }
    made = {
        f.name
        for _, f in _nodes(modules, ast.FunctionDef)
        if any(_last(d) in ("property", "cached_property") for d in f.decorator_list)
        and any(isinstance(r, ast.Return) and r.value and _Subjects(f).holds(r.value) for r in ast.walk(f))
    }
    places = set()
    for module in modules:
        for scope in module.tree.body:
            subjects = _Subjects(scope, made)
            found = {n.lineno for n in ast.walk(scope) if _decides(n, subjects) or _is_set_of(n, names)}
            found |= {scope.lineno} if _is_table_of(scope, names) else set()
            places |= {(module.path, line) for line in found}
    return sorted(places)


class _Subjects:
    """Which expressions in ``scope`` are names of checks or prose; ``made``: properties that give such."""

    def __init__(self, scope: ast.AST, made: Iterable[str] = ()) -> None:
        self.made = set(made) | _PROSE
        self.one, self.many, self.text = {"check", "c"}, {"checks"}, set(_PROSE)
        nodes = list(ast.walk(scope))
        for node in [*nodes, *nodes]:  # twice: the walk is not in the order of the lines
            if isinstance(node, ast.arg) and _last(node.annotation) == "Check":
                self.one.add(node.arg)
            elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
                self.one |= {node.target.id} if self._checks(node.iter) else set()
                self.text |= {node.target.id} if self.holds(node.iter) else set()
            elif isinstance(node, (ast.Assign, ast.NamedExpr)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                held = {t.id for t in targets if isinstance(t, ast.Name)}
                self.text |= held if self.holds(node.value) else set()
                self.many |= held if self._checks(node.value) else set()

    def _checks(self, node: ast.AST) -> bool:
        """Whether this is a collection of checks."""
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return isinstance(node.elt, ast.Name) and node.elt.id in self.one
        if isinstance(node, ast.Call) and _last(node.func) == "get" and node.args:
            return _text(node.args[0]) == "checks"
        if isinstance(node, ast.Subscript):
            return _text(node.slice) == "checks"
        return _last(node) in self.many if isinstance(node, ast.Name) else _last(node) == "checks"

    def holds(self, node: ast.AST) -> bool:
        """Whether this is a name of a check, prose, or a collection of them."""
        if isinstance(node, ast.Attribute):
            of_check = isinstance(node.value, ast.Name) and node.value.id in self.one
            first = isinstance(node.value, ast.Subscript) and self._checks(node.value.value)
            return node.attr in self.made or (node.attr == "name" and (of_check or first))
        if isinstance(node, ast.Subscript):
            of_check = _text(node.slice) == "name" and _last(node.value) in self.one
            return _text(node.slice) in _PROSE or of_check
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return self.holds(node.elt)
        if isinstance(node, ast.DictComp):
            return self.holds(node.key)
        if isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and node.func.attr in ("lower", "strip", "casefold")
            plain = _last(node.func) in ("set", "list", "tuple", "frozenset", "sorted", "str", "next")
            return (method and self.holds(node.func.value)) or (plain and any(map(self.holds, node.args)))
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.Sub)):
            return self.holds(node.left) or self.holds(node.right)
        return isinstance(node, ast.Name) and node.id in self.text


def _decides(node: ast.AST, subjects: _Subjects) -> bool:
    """Whether the value of this expression depends on what a name or a message says."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        nothing = any(isinstance(s, ast.Constant) and s.value in (None, "") for s in sides)
        return not nothing and any(map(subjects.holds, sides))
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.Sub)):
        return subjects.holds(node)
    if isinstance(node, ast.Match):
        return subjects.holds(node.subject)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return subjects.holds(node.slice) or (_text(node.slice) is not None and subjects.holds(node.value))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        by_pattern = _root(node.func) == "re" and any(map(subjects.holds, node.args))
        looked_up = node.func.attr == "get" and any(map(subjects.holds, node.args[:1]))
        return by_pattern or looked_up or (node.func.attr in _TESTS and subjects.holds(node.func.value))
    return False


def _is_set_of(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Set) and _all_in(node.elts, names)


def _is_table_of(node: ast.stmt, names: set[str]) -> bool:
    """A tuple, list, set or dictionary of a module with names of checks, two at least, for its keys."""
    value = getattr(node, "value", None) if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(value, ast.Call) and _last(value.func) in ("frozenset", "set", "dict") and value.args:
        value = value.args[0]
    keys = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    return len(keys) > 1 and _all_in(keys, names)


def _all_in(nodes: Iterable[ast.AST | None], names: set[str]) -> bool:
    words = [_text(n) for n in nodes if not isinstance(n, ast.Starred)]
    return bool(words) and set(words) <= names


# Random numbers


def generators(modules: list[Module]) -> list[Place]:
    """Every use of ``default_rng``, ``RandomState`` or ``random.seed`` but those in ``run.py``."""
    places = []
    for module, node in _nodes(modules, (ast.Attribute, ast.Name)):
        seeded = isinstance(node, ast.Attribute) and node.attr == "seed" and _last(node.value) == "random"
        if module.path != "run.py" and (_last(node) in ("default_rng", "RandomState") or seeded):
            places.append((module.path, node.lineno))
    return sorted(places)


# To rounding


def roundings(modules: list[Module]) -> list[Place]:
    """Numbers of at most 1e-10 that bound a residual: given to, or compared with, something called loss ….

    A number in a position of a call is read under the name of that parameter. Pages and commands, which keep
    logarithms finite with such numbers, decide nothing by them and are left out.
    """
    order = _positions(modules)
    places = []
    for module in modules:
        if room_of(module.path) in ("report", "cli"):
            continue
        for node in ast.walk(module.tree):
            if any(_tiny(value) and _speaks_of_residual(name) for name, value in _pairs(node, order)):
                places.append((module.path, node.lineno))
    return sorted(set(places))


def _pairs(node: ast.AST, order: dict[str, list[str]]) -> Iterator[tuple[ast.AST | str, ast.AST | None]]:
    """Names, or expressions, and the values that they are given or held against."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            both = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            yield from zip(target.elts, node.value.elts, strict=False) if both else [(target, node.value)]
    elif isinstance(node, ast.AnnAssign):
        yield node.target, node.value
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        given = [*node.args.posonlyargs, *node.args.args]
        yield from zip([a.arg for a in reversed(given)], reversed(node.args.defaults), strict=False)
        yield from zip([a.arg for a in node.args.kwonlyargs], node.args.kw_defaults, strict=True)
    elif isinstance(node, ast.Call):
        yield from ((k.arg, k.value) for k in node.keywords if k.arg)
        yield from zip(order.get(_last(node.func), []), node.args, strict=False)
        if _last(node.func) in ("max", "maximum"):
            yield from ((a, b) for a in node.args for b in node.args if a is not b)
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        yield from [*itertools.pairwise(sides), *zip(sides[1:], sides, strict=False)]


def _positions(modules: list[Module]) -> dict[str, list[str]]:
    """Names of the positional parameters of the functions, and of the fields of the classes, of the tree."""
    order = {}
    for _, node in _nodes(modules, (ast.FunctionDef, ast.ClassDef)):
        if isinstance(node, ast.FunctionDef):
            order.setdefault(node.name, [a.arg for a in node.args.args])
        else:
            fields = (s.target for s in node.body if isinstance(s, ast.AnnAssign))
            order[node.name] = [t.id for t in fields if isinstance(t, ast.Name)]
    return order


def _tiny(node: ast.AST | None) -> bool:
    """Whether the expression is arithmetic with such a number in it; 1 + 1e-12 compares two values."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value <= _LITERAL
    if isinstance(node, ast.BinOp):
        near_one = any(isinstance(s, ast.Constant) and s.value == 1 for s in (node.left, node.right))
        return not (near_one and isinstance(node.op, (ast.Add, ast.Sub))) and (
            _tiny(node.left) or _tiny(node.right)
        )
    return isinstance(node, ast.Call) and _last(node.func) in _WRAPPERS and any(map(_tiny, node.args))


def _speaks_of_residual(node: ast.AST | str) -> bool:
    if isinstance(node, str):
        return bool(set(node.lower().split("_")) & _ROUNDING)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _speaks_of_residual(_last(node))
    if isinstance(node, ast.Call):  # of another function the name counts, not what it is given
        inside = _last(node.func) in _WRAPPERS and any(map(_speaks_of_residual, node.args))
        return inside or _speaks_of_residual(_last(node.func))
    if isinstance(node, ast.BinOp):
        return _speaks_of_residual(node.left) or _speaks_of_residual(node.right)
    return isinstance(node, ast.Subscript) and _speaks_of_residual(node.value)


# Duplicates


def duplicated(source: Path) -> list[str] | None:
    """The pairs that the command ``duplicates`` lists; None where it is missing."""
    command = shutil.which("duplicates")
    if command is None:
        return None
    told = subprocess.run(
        [command, "--repo", str(source), "--min-lines", "6", "--most", "200", "--seconds", "60"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    return [re.sub(r"^D\d+ ", "", row) for row in told.splitlines() if re.match(r"D\d+ ", row)]


# The syntax tree


def _nodes(modules: list[Module], kind: type | tuple[type, ...]) -> Iterator[tuple[Module, ast.AST]]:
    for module in modules:
        yield from ((module, node) for node in ast.walk(module.tree) if isinstance(node, kind))


def _last(node: ast.AST | None) -> str:
    """``c`` of ``a.b.c`` or of ``c``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.AST) -> str:
    """``a`` of ``a.b().c[0]``."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return _last(node)


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
