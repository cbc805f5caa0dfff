"""The measures of the architecture count what they name and leave its innocent neighbour alone."""

import textwrap

import pytest

from benchmarks import house


@pytest.fixture
def tree(tmp_path):
    """Writes ``{path: text}`` as a package and reads it back."""

    def write(files):
        for path, text in {"__init__.py": "", **files}.items():
            file = tmp_path / house.PACKAGE / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text), encoding="utf-8")
        return house.read(tmp_path / house.PACKAGE)

    return write


def lines_of(places):
    return [line for _, line in places]


def test_a_walk_sees_functions_that_are_called_and_none_that_are_only_imported(tree, tmp_path):
    tree(
        {
            "__init__.py": "from onehidden.recovery.recover import recover\n",
            "recovery/__init__.py": "",
            "recovery/recover.py": """
                from onehidden.starts import first, idle
                from onehidden.clock import now

                def recover(X, y, hidden, bias):
                    from onehidden.starts import late
                    assert X.shape == (600, 5) and y.shape == (600,) and hidden == 3 and bias
                    now()
                    return [first.propose(one) for one in range(2)]

                def back():
                    return 0
                """,
            "starts/__init__.py": "",
            "starts/first.py": """
                import threading
                from onehidden.laws.sample import draw

                def propose(one):
                    from onehidden.recovery.recover import back
                    thread = threading.Thread(target=draw)
                    thread.start()
                    thread.join()
                    return back()
                """,
            "starts/idle.py": "def propose(one): return one\n",
            "starts/late.py": "def made(): return 1\nONE = made()\n\nclass Record:\n    size = 1\n",
            "laws/__init__.py": "",
            "laws/sample.py": "def draw(): return 1\n",
            "clock.py": "def now(): return 0.0\n",
        }
    )
    walk = house.walk_of_one_recovery(tmp_path / house.PACKAGE)
    assert walk["files"] == ["clock.py", "laws/sample.py", "recovery/recover.py", "starts/first.py"]
    assert {house.room_of(file) for file in walk["files"]} == {"base", "laws", "recovery", "starts"}
    ways = {(caller, called): times for _, _, caller, called, times in walk["ways"]}
    inner = "recovery/recover.py:recover.<locals>.<listcomp>"  # a frame of its own up to Python 3.11
    there = (
        ways.get((inner, "starts/first.py:propose"))
        or ways["recovery/recover.py:recover", "starts/first.py:propose"]
    )
    assert there == 2
    assert ways["starts/first.py:propose", "recovery/recover.py:back"] == 2
    assert ways["recovery/recover.py:recover", "clock.py:now"] == 1
    assert len(ways) == 3  # a thread's first function has no caller in the package


def test_a_recovery_that_fails_is_not_measured_as_an_empty_one(tree, tmp_path):
    tree({"__init__.py": "def recover(X, y, hidden, bias): raise KeyError('no such layer')\n"})
    with pytest.raises(RuntimeError, match="no such layer"):
        house.walk_of_one_recovery(tmp_path / house.PACKAGE)
    (_, value, reason), *rest = house.rows_of_the_walk(tmp_path / house.PACKAGE)
    assert (value, rest) == ("not measured", [])
    assert "no such layer" in reason


def test_the_room_graph_has_lazy_imports_but_none_for_the_type_checker(tree):
    graph = house.room_graph(
        tree(
            {
                "__init__.py": "from onehidden.fit.problem import Problem\nfrom onehidden.cli import run\n",
                "network.py": "import numpy as np\n",
                "fit/problem.py": """
                    from typing import TYPE_CHECKING
                    from onehidden import network
                    if TYPE_CHECKING:
                        from onehidden.certify import Check
                    """,
                "certify/checks.py": """
                    def check():
                        from onehidden import Problem
                        from . import other
                        from ..laws.gaussian import Gaussian
                    """,
                "certify/other.py": "import onehidden_extras, os\n",
                "laws/gaussian.py": "from onehidden.laws import other\n",
                "cli/run.py": "import importlib\nshow = importlib.import_module(f'onehidden.report.{1}')\n",
                "report/page.py": "import importlib\njson = importlib.import_module('json')\n",
            }
        )
    )
    assert graph == {
        "base": set(), "fit": {"base"}, "certify": {"fit", "laws"}, "laws": set(),
        "cli": {"report"}, "report": set(),
    }  # fmt: skip
    assert house.cycles(graph) == []


def test_cycles_are_found_once_each_and_trees_have_none():
    assert house.cycles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c", "a"]]
    assert house.cycles({"a": {"b"}, "b": {"a"}, "x": {"y"}, "y": {"x"}}) == [
        ["a", "b", "a"],
        ["x", "y", "x"],
    ]
    assert house.cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_any_counts_alone_or_in_a_union_but_not_inside_a_container(tree):
    count, loose, bare = house.parameters(
        tree(
            {
                "a.py": """
                    class Record:
                        def method(self, x: Any, y: "Any | None"): ...
                        @classmethod
                        def made(cls, **options: typing.Any): ...
                    def innocent(x: dict[str, Any], y: Callable[..., Any], n: int, *rest: object) -> Any: ...
                    def loose(x: Optional[Any], *, y=1): ...
                    """
            }
        )
    )
    assert (count, lines_of(loose), lines_of(bare)) == (9, [3, 3, 5, 7], [7])


def test_a_value_error_is_a_signal_unless_something_is_raised_or_only_others_are_asked(tree):
    text = """
        import numpy as np
        from onehidden.starts import propose
        def recover(task, starts, text):
            try:
                propose(task)
            except ValueError:  # line 7
                pass
            for start in list(starts):
                try:
                    start.propose(task)
                except (TypeError, ValueError) as error:  # line 12
                    print(error)
            try:
                propose(task)
            except ValueError as error:
                raise RuntimeError("bad") from error
            try:
                propose(task)
            except KeyError:
                pass
            try:
                x = np.asarray(float(text))
            except ValueError:  # line 24, foreign
                x = None
            try:
                return propose(task)
            except ValueError:
                pass
            raise ValueError("no start begins here")
        """
    own, foreign = house.signals(tree({"recovery/a.py": text}))
    assert (lines_of(own), lines_of(foreign)) == ([7, 12], [24])


def test_a_command_may_show_a_value_error_to_its_user_but_not_swallow_it(tree):
    text = """
        from onehidden.recovery import recover
        def command(path):
            try:
                recover(path)
            except ValueError as error:
                print(error)
            try:
                recover(path)
            except ValueError:  # line 10
                return 2
        """
    assert lines_of(house.signals(tree({"cli/a.py": text}))[0]) == [10]


BRANCHES = """
    UNDETERMINED = {"weakest unit", "fit"}
    class Certificate:
        @property
        def failed(self):
            return {check.name for check in self.checks if not check.passed}
    def verdict(checks, certificate, record):
        names = {one.name for one in checks}
        if names & UNDETERMINED:
            return 1
        if "fit" in certificate.failed:
            return 2
        if any(c.name == "agreement" for c in checks):
            return 3
        value = {one.name: one.value for one in certificate.checks}
        gap = value["one unit more"]
        text = certificate.message.replace("sample", "query")
        if record["message"].startswith("every"):
            return 4
        return ADVICE[checks[0].name]
    """

FORMATS = """
    import onehidden
    from dataclasses import replace
    KINDS = {"parquet", "fit"}
    def shown(checks, certificate, net, columns):
        if net.activation.name == "relu":
            return "relu"
        if any(column.name == "y" for column in columns):
            return "y"
        if certificate.message == "":
            return "nothing to say"
        width = max(len(check.name) for check in checks)
        failed = [check.name for check in checks if not check.passed]
        if failed and certificate.status == "doubtful":
            certificate = replace(certificate, message=f"check failed: {failed[0]}; {checks[0].advice}")
        return ", ".join(failed).replace("_", " "), width, {"fit": 1.0}
    """


def test_branches_on_names_are_found_and_formatting_is_not(tree):
    made = "def made(): return [at_most('fit', 1, 2, 'a'), Check('weakest unit', 0, 1, True, 'b')]\n"
    found = house.branches_on_names(
        tree({"certify/a.py": BRANCHES, "report/b.py": FORMATS, "checks.py": made})
    )
    assert {file for file, _ in found} == {"certify/a.py"}
    assert lines_of(found) == [2, 9, 11, 13, 16, 17, 18, 20]


def test_generators_are_allowed_in_the_streams_alone(tree):
    text = """
        import numpy as np
        from numpy.random import default_rng
        def draw(seed: np.random.Generator, rng, random):
            rng.standard_normal(3), random.choice([1]), seed.seed
            make = np.random.default_rng
            np.random.seed(0)
            return np.random.RandomState(1), default_rng(2)
        """
    found = house.generators(tree({"starts/a.py": text, "run.py": text}))
    assert {file for file, _ in found} == {"starts/a.py"}
    assert lines_of(found) == [6, 7, 8, 8]


def test_bounds_of_a_residual_are_found_and_other_small_numbers_are_not(tree):
    solver = """
        class Solver:
            max_steps: int = 10
            floor: float = 0.0
            tiny: float = 1e-13
        """
    text = """
        EXACT_RMS = 1e-10  # line 2
        ROUNDING = 1e-12
        FLOOR = 0.15
        def repaired(task, good: float = 1e-20, step: float = 1e-12):  # line 5
            if task.loss(theta) <= 1e-28 * task.n:  # line 6
                return Solver(300, 1e-29 * task.n), Solver(5, floor=1e-14)  # line 7
            if gradient(loss) < 1e-13 or loss < EXACT_RMS or new_loss <= loss * (1 + 1e-12):
                return Solver(300, tiny=1e-15)
            done = (misfit <= noise) & (root <= half + 1e-12)
            return np.log(np.maximum(losses, 1e-12)), np.maximum(norm, 1e-300)  # line 11
        """
    found = house.roundings(tree({"solvers/s.py": solver, "fit/a.py": text, "report/b.py": text}))
    assert {file for file, _ in found} == {"fit/a.py"}
    assert sorted(set(lines_of(found))) == [2, 5, 6, 7, 11]


def test_duplicates_are_counted_where_the_command_is_there(tree, tmp_path, monkeypatch):
    tree({})
    command = tmp_path / "bin" / "duplicates"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\necho '2 pairs'\necho 'D1 a.py:1-9 ~ b.py:1-9'\necho 'D2 c ~ d shape'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert house.duplicated(tmp_path / house.PACKAGE) is None
    monkeypatch.setenv("PATH", str(command.parent))
    assert house.duplicated(tmp_path / house.PACKAGE) == ["a.py:1-9 ~ b.py:1-9", "c ~ d shape"]


def test_sizes_are_those_of_the_rooms(tree, tmp_path):
    modules = tree(
        {"a.py": "x = 1\ny = 2\n", "fit/b.py": "x = 1\n", "fit/deep/c.py": "x = 1\n", "fit/page.html": "<p>"}
    )
    assert house.sizes(tmp_path / house.PACKAGE, modules) == {"base": (2, 2), "fit": (2, 2)}


def test_a_folder_without_a_package_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no Python files"):
        house.read(tmp_path)


def test_the_table_measures_the_tree_that_is_named(tree, tmp_path, monkeypatch):
    tree({"__init__.py": "Any = 0\ndef recover(X: object, y: Any, hidden: int, bias: bool): return None\n"})
    monkeypatch.setenv("BENCH_SRC", str(tmp_path / house.PACKAGE))
    lines = house.main(quick=True)
    assert all(line.startswith("|") and line.count("|") == 4 for line in lines)
    assert "| files one recover(X, y) enters | 1 | __init__.py |" in lines
    assert "| parameters annotated Any | 25.0 % (1 of 4) | __init__.py 1 |" in lines
    assert "| room base | 1 files | 2 lines |" in lines
