"""Whoever does what the screen says comes to an end, and never back to a command tried before."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pandas as pd
import pytest
from helpers import command as run

N = 160
RNG = np.random.default_rng(0)
A, B, NOISE = RNG.standard_normal((3, N))
BASE = {"a": A, "y": np.maximum(A, 0) + 0.1 * NOISE}
END = ("bring more rows", "take the predictions", "groups the rows")


def followed(words, said, out):
    """The command after the first thing that was advised; None where only a person can go on."""
    steps = [line for line in said.splitlines() if line.startswith("onehidden: ")] or [
        " ".join(said.partition("next: ")[2].split())
    ]
    words = list(words)
    for step in steps:
        option = re.search(
            r"--(one-hot|nulls drop|drop \S+|na \S+|activation auto|errors robust|target \w+)", step
        )
        if "leave out hidden" in step:
            at = words.index("--hidden")
            del words[at : at + 2]
        elif "allow more time" in step:
            at = words.index("--max-seconds")
            del words[at : at + 2]
        elif option:
            words += shlex.split(option[0].rstrip("),"))
        elif re.search(r"at most (\d+) units", step):
            words[words.index("--hidden") + 1] = re.search(r"at most (\d+) units", step)[1]
        elif "another seed" in step:
            words += ["--seed", "1"]
        elif "--start auto" in step:
            words[words.index("--start") + 1] = "auto"
        else:
            assert any(end in step for end in END) or "bring more" in step, step
            return None
    return words


CHAINS = {
    "text": ({"city": np.where(B > 0, "Bonn", "Rome")}, ["--hidden", "1"]),
    "names of rows and text": (
        {"id": [f"n{i}" for i in range(N)], "city": np.where(B > 0, "Bonn", "Rome")}, ["--hidden", "1"],
    ),
    "gaps": ({"b": np.where(B > 1, np.nan, B)}, ["--hidden", "1"]),
    "text and gaps and a column without a value": (
        {
            "b": np.where(B > 1, np.nan, B), "city": np.where(B > 0, "Bonn", "Rome"),
            "empty": np.full(N, np.nan),
        },
        ["--hidden", "1"],
    ),
    "a constant column": ({"c": np.ones(N)}, ["--hidden", "1"]),
    "too few rows": ({}, ["--hidden", "9"]),
    "too wide": ({}, ["--hidden", "3"]),
    "too narrow": ({"y": np.abs(A) + 0.05 * NOISE}, ["--hidden", "1"]),
    "another activation": ({"y": np.sin(3 * A) + 0.05 * NOISE}, ["--hidden", "1", "--max-seconds", "4"]),
}  # fmt: skip

LONG = ("another activation", "too narrow", "too wide")


@pytest.mark.parametrize(
    "name",
    [n if n not in LONG else pytest.param(n, marks=pytest.mark.slow) for n in CHAINS],
)
def test_advice_leads_to_an_end(name, tmp_path):
    columns, words = CHAINS[name]
    rows = 12 if name == "too few rows" else N
    pd.DataFrame({**BASE, **columns})[:rows].to_csv(tmp_path / "t.csv", index=False)
    tried, words = [], ["--start", "random", *words]
    while words is not None:
        assert words not in tried, f"in circles: {tried}"
        assert len(tried) < 6, tried
        tried.append(words)
        out = tmp_path / f"run{len(tried)}"
        done = run("recover", tmp_path / "t.csv", *words, "--out", out)
        assert "unexpected" not in done.stderr
        if done.returncode == 0:
            return
        words = followed(words, done.stdout + done.stderr if done.returncode == 1 else done.stderr, out)
