"""The measures of size and language count what they name and leave their innocent neighbour alone."""

import textwrap

import pytest

from benchmarks import _house_size


@pytest.fixture
def measured(tmp_path):
    """Writes ``{path: text}`` below a source folder; value and place of every row, by measure."""

    def measure(files):
        for path, text in {"onehidden/__init__.py": "", **files}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text), encoding="utf-8")
        return {name: (value, where) for name, value, where in _house_size.rows(tmp_path)}

    return measure


def test_numbers_of_a_module_count_scalars_and_short_tuples_but_no_tables(measured):
    rows = measured(
        {
            "onehidden/a.py": """
                STEPS = 300
                _LOW, _HIGH = 1e-3, 2 * 10.0
                PRINTED = (0.1, 0.2, 0.3, 0.4)
                NAMES = {"a": 1}
                NAME = "text"
                FLAG = True

                def f(depth=3):
                    LOCAL = 4
                    return LOCAL
                """
        }
    )
    assert rows["module-level numbers"] == (3, "onehidden/a.py 3")


def test_reach_follows_imports_in_functions_but_not_those_for_types(measured):
    rows = measured(
        {
            "onehidden/recovery/__init__.py": "",
            "onehidden/recovery/recover.py": """
                from typing import TYPE_CHECKING
                from onehidden.near import a
                if TYPE_CHECKING:
                    from onehidden.shown import b

                def recover():
                    from onehidden import late
                """,
            "onehidden/near.py": "from onehidden.far import c",
            "onehidden/far.py": "def f():\n    return 1\n",
            "onehidden/late.py": "",
            "onehidden/shown.py": "",
        }
    )
    assert rows["files that recover can reach"][0] == 4
    assert rows["files imported by one other"][1] == "onehidden.far, onehidden.late, onehidden.near"


def test_old_words_are_found_in_names_docstrings_and_not_inside_other_words(measured):
    rows = measured(
        {
            "onehidden/a.py": '''
                """What a flock was told."""

                def polish(StudentT, degree):
                    """A race begins with gracefulness; Student's t."""
                '''
        }
    )
    assert rows["words of the glossary's left column"][0] == 4  # flock, told, polish, race


def test_both_packages_are_measured_and_told_apart(measured):
    rows = measured({"onehidden/lab/b.py": "x = 1\n", "onehidden_papers/c.py": "y = 2\n\nz = 3\n"})
    assert rows["lines of src"] == (4, "theory 4, tool 0")
