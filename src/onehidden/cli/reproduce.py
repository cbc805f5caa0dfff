"""onehidden reproduce [NAME|all]: rerun the papers."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command(name="reproduce")
@click.argument("name", default="all")
@click.option("--full", is_flag=True, help="The papers' own sizes; the default runs in about a minute each.")
@click.option("--jobs", default=1, show_default=True, help="Processes for grids of independent trials.")
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for the pictures.")
@click.option("--json", "as_json", is_flag=True, help="Rows as JSON on stdout.")
def command(name: str, full: bool, jobs: int, seed: int, out: Path | None, as_json: bool) -> int:
    """Rerun a figure or table of the papers: reported, ours, controls, verdict."""
    from onehidden import papers
    from onehidden.papers import parallel

    results = []
    for one in papers.names() if name == "all" else [name]:
        click.echo(f"{one} …", err=True)
        with parallel.workers(jobs):
            result = papers.get(one)(full=full, seed=seed)
        results.append(result)
        if not as_json:
            _print(result)
        if out is not None and result.draw is not None:
            _draw(result, out)
    if as_json:
        click.echo(json.dumps([r.to_dict() for r in results], indent=2))
    return 0 if all(r.verdict != "not reproduced" for r in results) else 1


def _print(result) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{result.title}  [{result.paper}]", title_justify="left")
    for column in result.columns:
        table.add_column(column)
    for row in result.rows:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row))
    console = Console()
    console.print(table)
    for note in result.notes:
        console.print(f"  {note}", markup=False)
    console.print(f"  verdict: {result.verdict}")


def _draw(result, out: Path) -> None:
    import matplotlib.figure

    out.mkdir(parents=True, exist_ok=True)
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    result.draw(figure)
    figure.savefig(out / f"{result.name}.png", dpi=120)
