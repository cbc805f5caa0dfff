"""onehidden report RUN: the page of a finished run, anew, with its samples if given."""

from __future__ import annotations

from pathlib import Path

import click

from onehidden.cli import examples


@click.command(
    name="report",
    epilog=examples(
        "onehidden report data-run --data data.csv --target y",
        "onehidden report data-run --out data-run/report.md",
    ),
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", "file", type=click.Path(path_type=Path), help="The table, for figures of the fit.")
@click.option("--target", default="y", show_default=True, help="Target column of the table.")
@click.option(
    "--out", type=click.Path(path_type=Path), help=".html, .md or .json [default: RUN/report.html]."
)
@click.option("--json", "as_json", is_flag=True, help="The sections as JSON on stdout; no file is written.")
def command(run: Path, file: Path | None, target: str, out: Path | None, as_json: bool) -> int:
    """Write the report of a run folder as HTML, Markdown or JSON."""
    from onehidden import data, report
    from onehidden.cli import runs
    from onehidden.recovery import load_recovery

    recovery = load_recovery(run)
    path = out or run / "report.html"
    writers = {".html": report.render_html, ".md": report.render_markdown, ".json": report.render_json}
    if not as_json:
        runs.free_file(path, tuple(writers))
        runs.must_differ(path, *(() if file is None else (file,)))
    X = y = None
    if file is not None:
        table = data.open(file, target=target, columns=list(recovery.feature_names), stream=False)
        X, y = table.X, table.y
    if as_json:
        click.echo(report.as_json_text(recovery, X=X, y=y))
        return 0
    writers[path.suffix](recovery, path, X=X, y=y)
    click.echo(f"report written to {path}", err=True)
    return 0
