"""Run the named benchmarks (all without a name); each module has ``main(quick: bool) -> list[str]`` lines.

The lines are printed as they come and kept in ``benchmarks/results/NAME.md`` with date, commit and
machine when ``--store`` is given.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
from pathlib import Path

from benchmarks._table import stamp

HERE = Path(__file__).parent


def main() -> None:
    available = sorted(m.name for m in pkgutil.iter_modules([str(HERE)]) if not m.name.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", help=", ".join(available))
    parser.add_argument("--quick", action="store_true", help="fewer seeds and sizes")
    parser.add_argument("--store", action="store_true", help="keep the table under benchmarks/results")
    parser.add_argument("--src", help="folder of the package that house measures, in place of this one's")
    parser.add_argument("--jobs", type=int, help="processes (as BENCH_JOBS)")
    parser.add_argument("--runs", type=int, help="at most so many runs, where a benchmark has a catalogue")
    parser.add_argument("--only", help="only runs whose words hold this; a pattern with * as BENCH_ONLY")
    args = parser.parse_args()
    only = args.only if args.only is None or "*" in args.only else f"*{args.only}*"
    for name, value in (("BENCH_JOBS", args.jobs), ("BENCH_RUNS", args.runs), ("BENCH_ONLY", only)):
        if value is not None:
            os.environ[name] = str(value)
    os.environ |= {"BENCH_SRC": args.src} if args.src else {}
    for name in args.names or available:
        print(f"## {name}", flush=True)
        made = stamp(args.quick)  # of the code that runs, not of what is there when it ends
        lines = importlib.import_module(f"benchmarks.{name}").main(args.quick)
        if args.store:
            results = HERE / "results"
            results.mkdir(exist_ok=True)
            (results / f"{name}.md").write_text("\n".join([f"# {name} ({made})", "", *lines, ""]))


if __name__ == "__main__":
    main()
