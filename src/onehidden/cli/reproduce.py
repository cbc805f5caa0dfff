"""onehidden reproduce [NAME|all]: rerun the papers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onehidden.cli import examples

if TYPE_CHECKING:
    from onehidden.papers.gallery import Entry
    from onehidden.papers.record import Reproduction

# Reproductions that take more than about twenty seconds of one core at their default sizes.
SLOW = (
    "gmov-fig1", "gmov-fig2", "gmov-fig3", "gmov-fig4", "zsjbd-icml-grid", "glm-fig2", "glm-fig3",
    "glm-theorem-2.3",
)  # fmt: skip
PAGE = "index.html"


def _names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from onehidden import papers

    return [name for name in ("all", *papers.names()) if name.startswith(incomplete)]


@click.command(
    name="reproduce",
    epilog=examples(
        "onehidden reproduce   # what there is",
        "onehidden reproduce glm-fig4",
        "onehidden reproduce all --jobs 2 --out reproductions   # the gallery: reproductions/index.html",
        "onehidden reproduce all --quick",
    ),
)
@click.argument("name", required=False, shell_complete=_names)
@click.option("--list", "listed", is_flag=True, help="List what there is; so does no NAME.")
@click.option(
    "--full", is_flag=True, help="The papers' own sizes; the default takes minutes for all of them."
)
@click.option("--quick", is_flag=True, help="With all: leave out what takes more than twenty seconds.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes for grids of trials."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for pictures and page [default: reproductions with all, none with a NAME].",
)
@click.option("--json", "as_json", is_flag=True, help="Rows as JSON on stdout.")
def command(
    name: str | None,
    listed: bool,
    full: bool,
    quick: bool,
    jobs: int,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> int:
    """Rerun a figure or table of the papers: reported, ours, controls, verdict.

    NAME is one of the list; with all, writes one page with every one of them and the landscapes of three
    objectives.
    """
    from onehidden import papers
    from onehidden.cli import runs

    if listed or name is None:
        _list(as_json)
        return 0
    if full and quick:
        raise ValueError("--full and --quick exclude each other: choose one")
    chosen = [one for one in papers.names() if not (quick and one in SLOW)] if name == "all" else [name]
    for one in chosen:
        papers.get(one)  # an unknown name is said before any work is done
    if out is None and name == "all":
        out = Path("reproductions")
    if out is not None:
        runs.free_file(out / PAGE)
    entries = []
    for place, one in enumerate(chosen, start=1):
        entries.append(_run(one, full, jobs, seed, f"{place} of {len(chosen)}, " if len(chosen) > 1 else ""))
    for entry in entries:
        if not as_json:
            _print(entry)
        if out is not None and entry.result is not None and entry.result.draw is not None:
            _draw(entry.result, out)
    if out is not None and name == "all":
        from onehidden.cli import progress
        from onehidden.papers import gallery
        from onehidden.whole import whole_file

        with progress.waiting("drawing the page"):
            with whole_file(out / PAGE) as beside:
                gallery.write_gallery(entries, beside, _settings(full, quick, seed), seed)
        click.echo(f"open {out / PAGE} in a browser", err=True)
    if as_json:
        records = [
            {"name": e.name, "fault": e.fault} if e.result is None else e.result.to_dict() for e in entries
        ]
        click.echo(json.dumps(records, indent=2, default=str))
    good = all(e.result is not None and e.result.verdict != "not reproduced" for e in entries)
    return 0 if good else 1


def _list(as_json: bool) -> None:
    """Every name with what it is, one a line."""
    from onehidden import papers

    about = {name: _about(papers.get(name)) for name in papers.names()}
    if as_json:
        click.echo(json.dumps([{"name": name, "about": text} for name, text in about.items()], indent=2))
        return
    width = max(len(name) for name in about)
    for name, text in about.items():
        click.echo(f"{name:<{width}}  {text}{' (slow)' if name in SLOW else ''}")


def _about(reproduction: object) -> str:
    """The first sentence of what a reproduction says of itself."""
    return " ".join((reproduction.__doc__ or "").strip().split("\n\n")[0].split())


def _run(name: str, full: bool, jobs: int, seed: int, place: str) -> Entry:
    """One reproduction; what breaks becomes a line of the page, and the others go on."""
    from onehidden import papers
    from onehidden.cli import progress
    from onehidden.papers import parallel
    from onehidden.papers.gallery import Entry

    begun = time.perf_counter()
    fault, result = "", None
    try:
        with progress.waiting(f"{place}{name}"), parallel.workers(jobs):
            result = papers.get(name)(full=full, seed=seed)
    except Exception as error:
        fault = f"{type(error).__name__}: {' '.join(str(error).split())}"
    spent = time.perf_counter() - begun
    click.echo(f"{place}{name}: {result.verdict if result else fault}, {spent:.1f} s", err=True)
    return Entry(name, result, spent, fault)


def _settings(full: bool, quick: bool, seed: int) -> str:
    from onehidden import __version__

    size = "the papers' own sizes" if full else "reduced sizes"
    left = f"; left out for speed: {', '.join(SLOW)}" if quick and SLOW else ""
    flags = " --full" if full else " --quick" if quick else ""
    return f"onehidden {__version__}, {size}, seed {seed}{left}. Made by: onehidden reproduce all{flags}."


def _print(entry: Entry) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, result = Console(), entry.result
    if result is None:
        console.print(Text(f"{entry.name} broke off: {entry.fault}"))
        return
    table = Table(title=Text(f"{result.title}  {result.paper}"), title_justify="left")
    for column in result.columns:
        table.add_column(Text(str(column)))
    for row in result.rows:
        table.add_row(*(Text(f"{v:.4g}" if isinstance(v, float) else str(v)) for v in row))
    console.print(table)
    for note in result.notes:
        console.print(f"  {note}", markup=False)
    console.print(f"  verdict: {result.verdict}")


def _draw(result: Reproduction, out: Path) -> None:
    import matplotlib.figure

    from onehidden.whole import whole_file

    assert result.draw is not None
    out.mkdir(parents=True, exist_ok=True)
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    result.draw(figure)
    with whole_file(out / f"{result.name}.png") as beside:
        figure.savefig(beside, dpi=120)
