"""Data flows one way: a room imports only rooms to its left, imports inside functions included.

The theory package imports the tool; the tool names the theory package only as text.
"""

from __future__ import annotations

import ast
import functools

import pytest
from helpers import ROOT

import onehidden

SOURCE = ROOT / "src" / "onehidden"
THEORY = ROOT / "src" / "onehidden_papers"
BASE = [
    "atomic", "run", "refused", "checks", "machine",
    "activations", "network", "matching", "exports", "structure",
]  # fmt: skip
LINE = [
    "data", "solvers", "families", "fit", "starts", "certify", "options", "recovery",
    "oracle", "report", "cli",
]  # fmt: skip
# Rooms of the theory package, each with the rooms of that package that it may import.
ROOMS_OF_THEORY = {
    "activation_properties": [],
    "laws": [],
    "scores": ["laws"],
    "moments": ["laws"],
    "objectives": ["activation_properties", "laws", "moments"],
    "problems": ["laws"],
    "lab": ["objectives", "problems"],
    "starts": ["laws", "scores", "moments", "objectives"],
    "reproductions": [
        "activation_properties", "laws", "scores", "moments", "objectives", "problems", "lab",
    ],
    "commands": ["laws", "scores", "problems", "reproductions"],
}  # fmt: skip
LAZY = {("recovery", "report")}  # Recovery.report draws through the report room when it is called
PUBLIC = {
    "recover": "recovery", "Recovery": "recovery", "load_recovery": "recovery",
    "OneHiddenRegressor": "recovery", "OneHiddenNet": "network", "match": "matching", "Match": "matching",
    "recover_oracle": "oracle", "Check": "checks",
}  # fmt: skip


def allowed(room):
    """Rooms of the tool that a room of the tool may import."""
    return set(BASE) if room in BASE else {*BASE, *LINE[: LINE.index(room) + 1]}


def statements(node, when="first"):
    """(statement, when) of all statements below a node: first, later (in a function), never (types)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # no import stands in an expression
        here = when
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            here = "never"
        elif isinstance(child, ast.FunctionDef) and when == "first":
            here = "later"
        yield child, here
        yield from statements(child, here)


@functools.cache
def imports(path, package="onehidden"):
    """(room, when) of the imports of a package in a file: first, later (in a function), never (types)."""
    found = []
    for node, when in statements(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module == package:
            names = [alias.name for alias in node.names if not alias.name.startswith("__")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{package}."):
            names = [str(node.module).split(".")[1]]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".")[1] for alias in node.names if alias.name.startswith(f"{package}.")]
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: imports are written out"
        found += [(PUBLIC.get(name, name), when) for name in names]
    return found


def rooms(source=SOURCE):
    """(room, file) of a package but its front page."""
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).parts
        room = parts[0] if len(parts) > 1 else path.stem
        if room != "__init__":
            yield room, path


def test_every_room_has_its_place():
    assert {room for room, _ in rooms()} == {*BASE, *LINE}
    assert {room for room, _ in rooms(THEORY)} == set(ROOMS_OF_THEORY)


def test_rooms_import_only_to_their_left():
    wrong = []
    for room, path in rooms():
        for target, when in imports(path):
            if target not in allowed(room) and not (when == "later" and (room, target) in LAZY):
                wrong.append(f"{path.relative_to(SOURCE)} imports {target}")
    assert not wrong


def test_the_graph_of_rooms_has_no_cycle():
    edges = {}
    for room, path in rooms():
        found = {target for target, when in imports(path) if when != "never" and (room, target) not in LAZY}
        edges.setdefault(room, set()).update(found - {room})
    while edges:
        ends = [room for room, targets in edges.items() if not targets & edges.keys()]
        assert ends, f"a cycle among {sorted(edges)}"
        for room in ends:
            del edges[room]


def test_a_lazy_import_is_seen(tmp_path):
    """What must fail: an import hidden in a function is an import all the same."""
    (tmp_path / "page.py").write_text("def show():\n    from onehidden.cli import main\n    return main\n")
    assert imports(tmp_path / "page.py") == [("cli", "later")]
    assert "cli" not in allowed("report")


def test_solvers_know_nothing_of_networks():
    for path in (SOURCE / "solvers").rglob("*.py"):
        assert {target for target, _ in imports(path)} <= {"precision", "solvers"}, path.name


def test_the_tool_does_not_import_the_theory():
    for _, path in rooms():
        used = [target for target, when in imports(path, "onehidden_papers") if when != "never"]
        assert not used, f"{path.relative_to(SOURCE)} imports {used}"


def test_rooms_of_the_theory_import_only_to_their_left():
    for room, path in rooms(THEORY):
        used = {target for target, when in imports(path, "onehidden_papers") if when != "never"}
        assert used <= {room, *ROOMS_OF_THEORY[room]}, path
        used = {target for target, when in imports(path) if when != "never"}
        assert used <= {*BASE, *LINE}, path


@pytest.mark.parametrize("name", ["laws", "scores", "moments", "objectives", "lab", "problems", "papers"])
def test_the_theory_answers_under_the_name_of_the_tool(name):
    module = getattr(onehidden, name)
    assert module.__name__.startswith("onehidden_papers.")
