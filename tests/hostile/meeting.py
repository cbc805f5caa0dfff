"""A command meets a hostile input in a process of its own: what it said, what it left, what it took.

The process is forked from one that has imported the library and computed nothing, so that three hundred of
them take minutes and the peak memory of each is its own.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pkgutil
import resource
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hostile.case import Case, home

MEMORY = 2 << 30  # bytes that no input may make a command take
SECONDS = 120


@dataclass(frozen=True)
class Met:
    """What a command did: exit code, stdout, stderr, peak memory in bytes, seconds, files that it left."""

    code: int
    out: str
    err: str
    peak: int
    seconds: float
    left: tuple[str, ...]

    @property
    def fault(self) -> str:
        """What is wrong with it; empty when all is well."""
        sentence = self.err.rstrip("\n").splitlines()
        said = [line for line in sentence if not line.startswith("note: ")]
        wrong = {
            f"exit code {self.code}": self.code != 2,
            "something on stdout": self.out != "",
            "no sentence": not said or not all(line.startswith("onehidden: ") for line in said),
            "a traceback": "Traceback" in self.err,
            "an error nobody thought of": "onehidden: unexpected" in self.err,
            "too long": any(len(line) > 700 for line in said) or len(said) > 7,
            "control characters": not all(line.isprintable() for line in sentence),
            f"left {self.left}": bool(self.left),
            f"{self.peak >> 20} MiB": self.peak > MEMORY,
        }
        return ", ".join(name for name, holds in wrong.items() if holds)


def meet(case: Case, folder: Path, kept: Path | None = None) -> Met:
    """Make a case in a folder and run its command there; ``kept`` is a checkpoint of the table to copy."""
    shutil.rmtree(folder, ignore_errors=True)

    def make() -> None:
        home(folder)
        if kept is not None:
            shutil.copytree(kept, folder / "kept")
        case.make(folder)

    made = forked(make, folder.with_suffix(".made"))
    if made.code != 0:
        raise RuntimeError(f"{case.name} could not be made: {made.err}")
    before = _listing(folder)
    done = forked(lambda: command(folder, case.arguments), folder.with_suffix(".met"))
    left = tuple(sorted(_listing(folder) - before))
    shutil.rmtree(folder, ignore_errors=True)
    return Met(done.code, done.out, done.err, done.peak, done.seconds, left)


def command(folder: Path, arguments: tuple[str, ...]) -> None:
    """``onehidden ARGUMENTS`` in a folder; ends the process with its exit code."""
    from onehidden.cli import main

    os.chdir(folder)
    sys.argv = ["onehidden", *arguments]
    main()


def forked(work: Callable[[], None], said: Path) -> Met:
    """Run something in a child with its output in files beside ``said``."""
    begun = time.monotonic()
    names = [said.with_suffix(".out"), said.with_suffix(".err")]
    said.parent.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            for number, name in zip((1, 2), names, strict=True):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            signal.alarm(SECONDS)
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except BaseException:
            traceback.print_exc()
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    _, status, usage = os.wait4(child, 0)
    out, err = (name.read_text(errors="replace") for name in names)
    for name in names:
        name.unlink()
    code = os.waitstatus_to_exitcode(status)
    return Met(code, out, err, usage.ru_maxrss * 1024, time.monotonic() - begun, ())


def _listing(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "kept" not in path.parts}


def prepared() -> None:
    """Import what children would import each by itself; nothing here starts the threads of JAX."""
    import onehidden.cli
    import onehidden.data
    import onehidden.recovery
    import onehidden.report

    for room in (onehidden.data, onehidden.cli, onehidden.recovery, onehidden.report):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    assert threading.active_count() == 1
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
