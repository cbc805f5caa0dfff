"""Data flows one way: a room imports only rooms to its left, imports inside functions included."""

from __future__ import annotations

import ast
import functools

from helpers import ROOT

SOURCE = ROOT / "src" / "onehidden"
BASE = [
    "streams", "whole", "journal", "run", "refused", "compiled", "precision", "device", "checks",
    "quadrature", "activations", "activation_properties", "network", "matching", "exports", "threads",
]  # fmt: skip
LINE = [
    "data", "laws", "scores", "moments", "solvers", "families", "fit", "starts", "certify", "recovery",
    "oracle", "report", "cli",
]  # fmt: skip
# Rooms beside the line: what they may enter beyond the base.
BESIDE = {
    "objectives": LINE[: LINE.index("starts")],
    "problems": LINE[: LINE.index("report")],
    "lab": [*LINE[: LINE.index("report")], "objectives", "problems"],
    "papers": [*LINE[: LINE.index("cli")], "objectives", "problems", "lab"],  # they draw through the report
}
# What the rooms of the line may enter beside it.
DOORS = {
    "starts": ["objectives"],
    "report": ["objectives", "problems", "lab"],
    "cli": ["objectives", "problems", "lab", "papers"],
}
LAZY = {("recovery", "report")}  # Recovery.report draws through the report room when it is called
PUBLIC = {
    "recover": "recovery", "Recovery": "recovery", "load_recovery": "recovery",
    "OneHiddenRegressor": "recovery", "OneHiddenNet": "network", "match": "matching", "Match": "matching",
    "recover_oracle": "oracle", "Check": "checks",
}  # fmt: skip


def allowed(room):
    """Rooms that a room may import."""
    if room in BASE:
        return set(BASE)
    if room in BESIDE:
        return {room, *BASE, *BESIDE[room]}
    before = LINE[: LINE.index(room) + 1]
    doors = [door for one in before for door in DOORS.get(one, [])]
    return {*BASE, *before, *doors}


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
def imports(path):
    """(room, when) of the imports of the package in a file: first, later (in a function), never (types)."""
    found = []
    for node, when in statements(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module == "onehidden":
            names = [alias.name for alias in node.names if not alias.name.startswith("__")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onehidden."):
            names = [str(node.module).split(".")[1]]
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".")[1] for alias in node.names if alias.name.startswith("onehidden.")]
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: imports are written out"
        found += [(PUBLIC.get(name, name), when) for name in names]
    return found


def rooms():
    """(room, file) of the whole source but the front page."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).parts
        room = parts[0] if len(parts) > 1 else path.stem
        if room != "__init__":
            yield room, path


def test_every_room_has_its_place():
    known = {*BASE, *LINE, *BESIDE}
    assert {room for room, _ in rooms()} == known


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


def test_only_what_draws_and_prints_enters_the_lab():
    """Loss surfaces are an experiment: recovery does not hang on them."""
    for room, path in rooms():
        if "lab" in {target for target, _ in imports(path)}:
            assert room in {"lab", "papers", "report", "cli"}, path
