"""Data flows one way: a room imports only rooms to its left."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "onehidden"
BASE = {
    "precision", "memo", "checks", "quadrature", "activations", "activation_properties", "network",
    "matching", "exports", "streams", "__init__", "__version__",
}  # fmt: skip
PUBLIC = {
    "recover": "recovery",
    "OneHiddenNet": "network",
    "match": "matching",
}  # names of the package itself
ORDER = [
    "data", "laws", "scores", "moments", "objectives", "solvers", "starts", "certify", "recovery",
    "oracle", "problems", "lab", "report", "papers", "cli",
]  # fmt: skip


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("onehidden"):
            names = (
                [node.module] if node.module != "onehidden" else [f"onehidden.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [a.name for a in node.names if a.name.startswith("onehidden")]
        for name in names:
            parts = name.split(".")
            if len(parts) > 1:
                yield PUBLIC.get(parts[1], parts[1])


def test_rooms_import_only_to_their_left():
    rooms = [p for p in SOURCE.iterdir() if p.is_dir() and p.name != "__pycache__"]
    assert {p.name for p in rooms} - BASE <= set(ORDER)
    wrong = []
    for room in rooms:
        if room.name in BASE:
            continue
        allowed = set(ORDER[: ORDER.index(room.name) + 1]) | BASE
        for path in room.rglob("*.py"):
            for target in imported_rooms(path):
                assert target in BASE or target in ORDER, f"{path}: unknown room {target}"
                if target not in allowed:
                    # Recovery.report draws through the report room, imported when it is called
                    if (room.name, target) == ("recovery", "report"):
                        continue
                    wrong.append(f"{path.relative_to(SOURCE)} imports {target}")
    assert not wrong


def test_solvers_know_nothing_of_networks():
    for path in (SOURCE / "solvers").rglob("*.py"):
        assert not {"network", "starts", "recovery"} & set(imported_rooms(path)), path.name


def test_only_what_draws_and_prints_enters_the_lab():
    """Loss surfaces are an experiment: recovery does not hang on them, and they ask nothing of recovery."""
    beside = {"lab", "report", "papers", "cli"}
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        targets = set(imported_rooms(path))
        if "lab" in targets:
            assert room in beside or room == "__init__.py", path
        if room == "lab":
            assert not {"starts", "certify", "recovery", "oracle"} & targets, path
