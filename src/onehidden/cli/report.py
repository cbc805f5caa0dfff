"""onehidden report RUN: one page of a finished run, with figures of its table where that is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import numpy as np

from onehidden.cli import examples, options


@click.command(
    name="report",
    epilog=examples("onehidden report data-run --data data.csv", "onehidden report data-run --out page.html"),
)
@click.argument("run", type=options.PATH)
@click.option(
    "--data",
    "file",
    type=options.PATH,
    help="The table, for figures of the fit [default: the run's, if it is still there].",
)
@click.option("--target", "targets", **options.TARGETS, help="Its targets [default: the run's].")
@options.reading_options("nulls", "na", "decimal", "encoding")
@click.option("--out", type=options.PATH, help="The page, .html [default: RUN/report.html].")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout; no page is written.")
def command(
    run: Path, file: Path | None, targets: list[str], out: Path | None, as_json: bool, **typed: Any
) -> int:
    """Write the report of a run folder as one HTML page.

    Of a folder of Parquet files, which is streamed, pictures are drawn from 20 000 rows.
    """
    from onehidden import data
    from onehidden.cli import runs
    from onehidden.recovery import load_recovery
    from onehidden.recovery.target import reading_of
    from onehidden.report import render_html

    recovery = load_recovery(run)
    if as_json:
        click.echo(json.dumps(recovery.to_dict(), allow_nan=False))
        return 0
    source = recovery.options.get("source")
    if file is None and source is not None and Path(str(source)).exists():
        file = Path(str(source))
    path = runs.free_file(out or run / "report.html", (".html", ".htm"))
    X = y = None
    if file is not None:
        runs.must_differ(path, file)
        table = data.open(file, **{**reading_of(recovery, targets), **options.given(**typed)})
        if isinstance(table, data.Table):
            X = table
        else:
            every = max(1, table.n_rows // 20_000)  # more dots than these cover each other
            blocks = [(one.X[::every], one.y[::every]) for one in table.batches() if one.y is not None]
            X, y = (np.concatenate(part) for part in zip(*blocks, strict=True))
    render_html(recovery, path, X=X, y=y)
    click.echo(f"report written to {path}", err=True)
    return 0
