"""A process of its own and what it took: wall and processor seconds, peak memory by the operating system."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Taken:
    """Seconds by the wall and of the processor, MiB resident at most, and what it printed last."""

    wall: float
    processor: float
    peak: float
    last: str


def python(code: str) -> list[str]:
    """The command that runs these lines."""
    return [sys.executable, "-c", code]


def took(command: list[str], environment: dict[str, str] | None = None) -> Taken:
    """Run a command to its end, with some variables of the environment set anew."""
    return ended(begun(command, environment))


def begun(
    command: list[str], environment: dict[str, str] | None = None
) -> tuple[subprocess.Popen[str], float]:
    """A running command and when it began."""
    begin = time.perf_counter()
    made = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
    )
    return made, begin


def ended(running: tuple[subprocess.Popen[str], float]) -> Taken:
    """Wait for it; a command that fails is an error."""
    process, begin = running
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise RuntimeError(f"{process.args} ended with {process.returncode}")
    lines = said.splitlines() or [""]
    return Taken(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, lines[-1])
