"""onehidden report RUN: the page of a finished run, anew, with its samples if given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onehidden.cli import examples, options

if TYPE_CHECKING:
    from onehidden.recovery import Recovery


@click.command(
    name="report",
    epilog=examples("onehidden report data-run --data data.csv", "onehidden report data-run --out page.html"),
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", "file", type=click.Path(path_type=Path), help="The table, for figures of the fit.")
@click.option("--target", "targets", **options.TARGETS, help="Targets of the table [default: the run's].")
@options.reading_options("nulls", "na", "decimal", "encoding")
@click.option("--out", type=click.Path(path_type=Path), help="The page, .html [default: RUN/report.html].")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON on stdout; no page is written.")
def command(
    run: Path, file: Path | None, targets: list[str], out: Path | None, as_json: bool, **typed: Any
) -> int:
    """Write the report of a run folder as one HTML page.

    The table of the run is read again if it is where it was. A page with figures of the fit is not replaced
    by one without.
    Of a folder of Parquet files, which is streamed, pictures are drawn from 20 000 rows.
    """
    from onehidden import data, report
    from onehidden.cli import runs
    from onehidden.recovery import load_recovery

    recovery = load_recovery(run)
    if as_json:
        click.echo(json.dumps(recovery.to_dict(), allow_nan=False))
        return 0
    file = file or _own_table(recovery)
    path = runs.free_file(out or run / "report.html", (".html", ".htm"))
    runs.must_differ(path, *(() if file is None else (file,)))
    if file is None and report.drawn_with_samples(path):
        raise ValueError(
            f"{path} was drawn with its samples, and this page would not be: give them with --data, or "
            "name another page with --out"
        )
    X = y = None
    if file is not None:
        table = data.open(file, **options.as_recovered(recovery, options.given(**typed), targets))
        X, y = (table, None) if isinstance(table, data.Table) else data.sampled(table)
    report.render_html(recovery, path, X=X, y=y)
    click.echo(f"report written to {path}", err=True)
    return 0


def _own_table(recovery: Recovery) -> Path | None:
    """The table that the run was made from, if it is still where it was."""
    source = recovery.options.get("source")
    return Path(str(source)) if source is not None and Path(str(source)).exists() else None
