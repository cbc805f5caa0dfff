"""How many threads matrix products use: fewer where a problem is small or a core has other work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from onehidden import machine


@pytest.fixture
def two_granted(monkeypatch):
    """The caller has two threads, whatever the machine."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(2, "blas"):
        if machine.granted() != 2:
            pytest.skip("this BLAS has one thread")
        yield monkeypatch


def test_small_problems_use_one_thread_and_give_the_callers_back(two_granted):
    with machine.threads_for(1499):
        assert machine.granted() == 1
    assert machine.granted() == 2


def test_large_problems_use_the_cores_that_are_free(two_granted):
    two_granted.setattr(machine, "free_cores", lambda: 1)
    with machine.threads_for(1500):
        assert machine.granted() == 1
    two_granted.setattr(machine, "free_cores", lambda: 64)
    with machine.threads_for(1500):
        assert machine.granted() == 2  # never more than the caller allows
    assert machine.granted() == 2


@pytest.mark.skipif(not os.path.exists("/proc/stat"), reason="this system does not tell who works")
def test_another_job_on_every_core_leaves_one():
    """Jobs that spin on all cores: whatever else runs, no more than one core is free then."""
    spin = "import time\nend = time.time() + 30\nwhile time.time() < end: pass"
    count = len(os.sched_getaffinity(0))
    jobs = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(count)]
    try:
        assert machine.free_cores(1.0) <= max(1, count // 2)
    finally:
        for job in jobs:
            job.kill()
            job.wait()
