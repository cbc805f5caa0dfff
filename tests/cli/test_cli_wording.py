"""What was mistyped on the command line is guessed."""

from __future__ import annotations

import pytest
from helpers import command


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("recvoer", "x.csv"), "'recover'"),
        (("recover", "x.csv", "--hiden", 2), "'--hidden'"),
        (("recover", "x.csv", "--nobias"), "'--no-bias'"),
        (("xyzzy",), "No such command 'xyzzy'."),
        (("predict", "--qqq"), "No such option '--qqq'."),
    ],
)
def test_what_was_mistyped_is_guessed_in_one_sentence(typed, said):
    done = command(*typed)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
