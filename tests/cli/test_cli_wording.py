"""What the command line says is in the words that one types there."""

from __future__ import annotations

import pytest
from helpers import command

from onehidden.cli.options import as_typed


@pytest.mark.parametrize(
    ("python", "typed"),
    [
        (
            "ask for one unit more, or let activation='auto' choose another",
            "ask for one unit more, or let --activation auto choose another",
        ),
        ("leave them out with drop=['a', 'c'] (--drop a --drop c)", "leave them out with --drop a --drop c"),
        ("leave it out with drop=['f(x)'] (--drop f(x)), or go", "leave it out with --drop f(x), or go"),
        (
            "use decimal=',' (--decimal ,) to read decimal commas, or use one_hot=True (--one-hot)",
            "use --decimal , to read decimal commas, or use --one-hot",
        ),
        (
            "make columns of categories with one_hot=True (--one-hot), or",
            "make columns of categories with --one-hot, or",
        ),
        ("use one_hot=True", "use --one-hot"),
        ("open it with target=NAME", "open it with --target NAME"),
        (
            "max_seconds must be a positive number or None, got -1.0",
            "--max-seconds must be a positive number, got -1.0",
        ),
        (
            "start must be one of auto, wide, or of oh.starts, got 'x'",
            "--start must be one of auto, wide, got 'x'",
        ),
        (
            "the target must be a number, but 'start' is not",
            "the target must be a number, but 'start' is not",
        ),
        (
            "a.csv has no column 'drop': choose one of 'hidden'",
            "a.csv has no column 'drop': choose one of 'hidden'",
        ),
    ],
)
def test_arguments_become_options_and_the_rest_stays(python, typed):
    assert as_typed(python) == typed
    assert as_typed(typed) == typed


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("recvoer", "x.csv"), "no such command 'recvoer': did you mean 'recover'?"),
        (("recover", "x.csv", "--hiden", 2), "no such option '--hiden': did you mean '--hidden'?"),
        (("recover", "x.csv", "--nobias"), "no such option '--nobias': did you mean '--no-bias'?"),
        (("--hlp",), "no such option '--hlp': did you mean '--help'?"),
        (("xyzzy",), "no such command 'xyzzy'."),
        (("predict", "--qqq"), "no such option '--qqq'."),
    ],
)
def test_what_was_mistyped_is_guessed_in_one_sentence(typed, said):
    done = command(*typed)
    assert done.returncode == 2
    assert done.stderr.startswith(f"onehidden: {said} See onehidden")
    assert len(done.stderr.splitlines()) == 1
