"""onehidden reproduce [NAME|all]: rerun the papers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onehidden.cli import examples

if TYPE_CHECKING:
    from onehidden_papers.lab.landscape import Surface
    from onehidden_papers.reproductions.gallery import Entry
    from onehidden_papers.reproductions.record import Item, Reproduction, Stored

PAGE = "index.html"
LONG = 20.0  # seconds at default sizes, as stored, beyond which --quick leaves a reproduction out


def _names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from onehidden_papers import reproductions as papers

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
@click.option("--full", is_flag=True, help="The papers' own sizes; some of them want an accelerator.")
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
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to keep rows, verdicts, date and machine in, one file a NAME, as each one ends.",
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
    store: Path | None,
    as_json: bool,
) -> int:
    """Rerun a figure or table of the papers: reported, ours, controls, verdict.

    NAME is one of the list; with all, writes one page with every one of them and the landscapes of three
    objectives. Exits with 0 when every verdict equals the stored one: a claim that does not hold is a
    finding, not a fault.
    """
    from onehidden_papers import reproductions as papers

    if listed or name is None:
        _list(as_json)
        return 0
    if full and quick:
        raise ValueError("--full and --quick exclude each other: choose one")
    whole = name == "all"
    # An unknown name is reported before any work is done.
    items = [papers.get(one) for one in (papers.names() if whole else [name])]
    if whole and quick:
        items = [item for item in items if _seconds(item) <= LONG]
    if whole and out is None:
        out = Path("reproductions")
    flags = " --full" if full else " --quick" if quick else ""
    return reproduce(items, full, flags, jobs, seed, out, store, page=whole, as_json=as_json)


def reproduce(
    items: Sequence[Item],
    full: bool = False,
    flags: str = "",
    jobs: int = 1,
    seed: int = 0,
    out: Path | None = None,
    store: Path | None = None,
    *,
    page: bool = False,
    as_json: bool = False,
    kept: Path | None = None,
    landscapes: Callable[[int], dict[str, Surface]] | None = None,
) -> int:
    """Run items, print or draw them; 0 when each ran and gave the verdicts stored for its size, else 1.

    ``kept`` is the folder of those verdicts and ``landscapes`` makes the surfaces that end the page from a
    seed; the package's own by default.
    """
    from onehidden.cli import progress, runs
    from onehidden_papers.reproductions import gallery, record

    if out is not None:
        runs.free_file(out / PAGE)
    size, kept = "full" if full else "default", kept or record.FOLDER
    entries, differing = [], []
    for place, item in enumerate(items, start=1):
        counted = f"{place} of {len(items)}, " if len(items) > 1 else ""
        entry = _run(item, size, jobs, seed, counted, store)
        changed = _differs(entry, size, kept)
        for sentence in changed:
            click.echo(f"  {sentence}", err=True)
        entries.append(entry)
        differing += changed
    for entry in entries:
        if not as_json:
            _print(entry)
        if out is not None and entry.result is not None and entry.result.item.draw is not None:
            _draw(entry.result, out)
    if out is not None and page:
        from onehidden.atomic import atomic_file

        with progress.waiting("drawing the page"):
            surfaces = (landscapes or gallery.landscapes)(seed)
            with atomic_file(out / PAGE) as beside:
                gallery.write_gallery(entries, beside, _settings(flags, seed), surfaces)
        click.echo(f"open {out / PAGE} in a browser", err=True)
    if as_json:
        records = [
            {"name": e.name, "fault": e.fault} if e.result is None else e.result.to_dict() for e in entries
        ]
        click.echo(json.dumps(records, indent=2, default=str))
    broken = sum(entry.result is None for entry in entries)
    judged = sum(len(entry.result.verdicts) for entry in entries if entry.result is not None)
    same = f"{judged - len(differing)} of {judged} verdicts are those stored for the {size} size"
    click.echo(f"{same}; {broken} broke off" if broken else same, err=True)
    return 1 if differing or broken else 0


def _differs(entry: Entry, size: str, folder: Path) -> list[str]:
    """Verdicts that are not those stored for the same size; nothing stored is nothing to differ from.

    A smaller size may have a verdict of its own: fewer samples leave a wider standard error.
    """
    from onehidden_papers.reproductions import record

    kept = None if entry.result is None else record.load(entry.result.item, size, folder)
    if entry.result is None or kept is None:
        return []
    return [
        f"{claim}: {found}, stored: {kept.verdicts.get(claim, 'nothing')}"
        for claim, found in entry.result.verdicts.items()
        if kept.verdicts.get(claim) != found
    ]


def _seconds(item: Item) -> float:
    """How long the default size took when it was stored."""
    from onehidden_papers.reproductions import record

    kept = record.load(item, "default")
    return kept.made.seconds if kept else float("inf")


def _list(as_json: bool) -> None:
    """Every claim with its item, its verdict at full size, and when and where that was run."""
    from onehidden_papers import reproductions as papers
    from onehidden_papers.reproductions import record

    lines = []
    for name in papers.names():
        item = papers.get(name)
        runs = {size: record.load(item, size) for size in record.SIZES}
        for claim in item.claims:
            verdicts = {size: _verdict(claim.name, run) for size, run in runs.items()}
            lines.append({"name": name, "claim": claim.name, "where": claim.where, "says": claim.says,
                          "rule": claim.rule} | verdicts
                         | {"made": runs["full"].made.sentence() if runs["full"] else ""})  # fmt: skip
    if as_json:
        click.echo(json.dumps(lines, indent=2, ensure_ascii=False))
        return
    width = {key: max(len(line[key]) for line in lines) for key in ("name", "full")}
    for line in lines:
        said = f"{line['name']:<{width['name']}}  {line['full']:<{width['full']}}  {line['where']}"
        click.echo(f"{said}  ({line['made']})" if line["made"] else said)


def _verdict(claim: str, run: Stored | None) -> str:
    return "not run" if run is None else run.verdicts.get(claim, "not run")


def _run(item: Item, size: str, jobs: int, seed: int, place: str, store: Path | None) -> Entry:
    """One reproduction; what breaks becomes a line of the page, and the others go on."""
    from onehidden.cli import progress
    from onehidden_papers.reproductions import experiment, record
    from onehidden_papers.reproductions.gallery import Entry

    begun = time.perf_counter()
    fault, result = "", None
    try:
        with progress.waiting(f"{place}{item.name}"), experiment.workers(jobs):
            result = item(full=size == "full", seed=seed)
    except Exception as error:
        fault = f"{type(error).__name__}: {' '.join(str(error).split())}"
    seconds = time.perf_counter() - begun
    click.echo(f"{place}{item.name}: {result.summary() if result else fault}, {seconds:.1f} s", err=True)
    if result is not None and store is not None:
        record.save(result, size, record.made(seed, seconds), store)
    return Entry(item.name, result, seconds, fault)


def _settings(flags: str, seed: int) -> str:
    from onehidden import __version__

    size = "the papers' own sizes" if "full" in flags else "reduced sizes"
    left = f"; left out: what takes more than {LONG:g} s" if "quick" in flags else ""
    return f"onehidden {__version__}, {size}, seed {seed}{left}. Made by: onehidden reproduce all{flags}."


def _print(entry: Entry) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, result = Console(), entry.result
    if result is None:
        console.print(Text(f"{entry.name} broke off: {entry.fault}"))
        return
    found = result.table
    table = Table(title=Text(f"{found.title}  {result.item.paper}"), title_justify="left")
    for column in found.columns:
        table.add_column(Text(str(column)))
    for row in found.rows:
        table.add_row(*(Text(f"{v:.4g}" if isinstance(v, float) else str(v)) for v in row))
    console.print(table)
    for note in found.notes:
        console.print(f"  {note}", markup=False)
    for claim, verdict in zip(result.item.claims, result.verdicts.values(), strict=True):
        console.print(
            f"  {claim.where}: {claim.says}\n    rule: {claim.rule}\n    verdict: {verdict}", markup=False
        )
    console.print(f"  the page of this paper: docs/papers/{result.name.split('-')[0]}.md", markup=False)


def _draw(result: Reproduction, out: Path) -> None:
    import matplotlib.figure

    from onehidden.atomic import atomic_file

    out.mkdir(parents=True, exist_ok=True)
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    result.draw(figure)
    with atomic_file(out / f"{result.name}.png") as beside:
        figure.savefig(beside, dpi=120)
