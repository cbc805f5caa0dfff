"""Hostile inputs and kills: ``python -m benchmarks hostile``, with ``--quick`` the cheap ones and six kills.

Every input of ``tests/hostile`` meets its command in a process of its own: one sentence, exit code 2, nothing
on stdout, nothing left, less than 2 GiB. Then commands that write are killed at random moments: what
is there must be the old, the whole or nothing, and the command must be repeatable with the same answer.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from benchmarks._table import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

KILLS = 30


def main(quick: bool) -> list[str]:
    from hostile.case import home
    from hostile.generator import KINDS
    from hostile.killing import kills
    from hostile.meeting import command, forked, meet, prepared

    prepared()
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seed = folder / "seed"
        forked(lambda: home(seed), folder / "made")
        kept = ("recover", "t.csv", "--hidden", "1", "--out", "new", "--checkpoint", "kept")
        forked(lambda: command(seed, kept), folder / "kept")
        table = Table("hostile input", "cases", "met well", "worst MiB", "worst s")
        total = good = 0
        faults = []
        for kind in KINDS:
            chosen = [c for c in kind(random.Random(f"0 {kind.__name__}")) if c.cheap or not quick]
            met = [meet(case, folder / "case", seed / "kept" if case.kept else None) for case in chosen]
            faults += [
                f"{c.name}: {m.fault}: {m.err[:200]!r}" for c, m in zip(chosen, met, strict=True) if m.fault
            ]
            well = sum(not one.fault for one in met)
            total, good = total + len(met), good + well
            worst = (
                max((one.peak for one in met), default=0) >> 20,
                max((one.seconds for one in met), default=0.0),
            )
            table.row(kind.__name__, len(met), well, *worst)
        table.row("all", total, good, "", "")
        lines += table.lines
        for fault in faults:
            print(fault, flush=True)
            lines.append(f"- {fault}")
        begun = time.monotonic()
        found = kills(6 if quick else KILLS, folder / "kills")
        print()
        table = Table("killed command", "kills", "resumed or refused cleanly", "what was wrong")
        for command_name, wrong in found.items():
            table.row(command_name, len(wrong), sum(not one for one in wrong), "; ".join(filter(None, wrong)))
        table.say(f"\n{time.monotonic() - begun:.0f} s for the kills.")
        lines += ["", *table.lines]
    return lines


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
