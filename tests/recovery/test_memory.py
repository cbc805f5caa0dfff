"""Peak memory above the data, by the operating system, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The peak is read before, with JAX and everything else imported and the data made; compiled programs count.
# Not ru_maxrss: a child begins with that of the process that started it.
MEASURE = """
import re
import numpy as np
import onehidden as oh
oh.recover
n, d, k, seconds = {n}, {d}, {k}, {seconds}
rng = np.random.default_rng(0)
weights, output = rng.standard_normal((k, d)) / d**0.5, rng.choice([-1.0, 1.0], k)
net = oh.OneHiddenNet(weights, output, 0.3 * rng.standard_normal(k))
X = rng.standard_normal((n, d))
y = net.predict(X) + 0.2 * rng.standard_normal(n)
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
oh.recover(X, y, k, max_seconds=seconds)
print((peak() - before) / 1024)
"""


def above_data(n, d, k, seconds=None, programs=None):
    """MiB at the peak of a recovery, less those before it; ``programs``: the folder of compiled ones."""
    code = MEASURE.format(n=n, d=d, k=k, seconds=seconds)
    env = os.environ if programs is None else os.environ | {"ONEHIDDEN_CACHE": str(programs)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    return float(done.stdout.split()[-1])


def bound(n, d, p):
    """The documented bound: a dozen copies of the data, ten matrices of p² numbers, 200 MiB of blocks."""
    return (12 * n * (d + 1) + 10 * p**2) * 8 / 2**20 + 200


def test_many_rows_of_few_inputs_take_a_few_copies_of_themselves(tmp_path):
    used = above_data(400_000, 2, 1, seconds=6, programs=tmp_path)  # a first run, which compiles them all
    assert any(tmp_path.rglob("*-cache"))
    assert 9 < used <= 300  # the data are 9 MiB: nothing at all would not have been a recovery
    assert used <= bound(400_000, 2, 5)


@pytest.mark.slow
def test_many_parameters_take_a_few_matrices_of_their_square():
    used = above_data(16_384, 50, 50, seconds=60)
    assert 52 < used <= 800  # one J'J alone is 52 MiB
    assert used <= bound(16_384, 50, 2601)


def test_the_bound_is_the_documented_one():
    page = (Path(__file__).parents[2] / "docs" / "howto" / "budgets.md").read_text()
    assert "12 n (d + 1) + 10 p²" in page
    assert "200 MiB" in page
