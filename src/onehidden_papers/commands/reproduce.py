"""onehidden reproduce [NAME|all]: rerun the papers."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onehidden.cli import examples

if TYPE_CHECKING:
    from onehidden_papers.reproductions.record import Item, Reproduction


def _names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from onehidden_papers import reproductions as papers

    return [name for name in ("all", *papers.names()) if name.startswith(incomplete)]


@click.command(
    name="reproduce",
    epilog=examples(
        "onehidden reproduce   # what there is",
        "onehidden reproduce glm-fig4",
        "onehidden reproduce all --jobs 2 --out reproductions",
    ),
)
@click.argument("name", required=False, shell_complete=_names)
@click.option("--list", "listed", is_flag=True, help="List what there is; so does no NAME.")
@click.option("--full", is_flag=True, help="The papers' own sizes; some of them want an accelerator.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes for grids of trials."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for pictures.")
@click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to keep rows, verdicts, date and machine in, one file a NAME, as each one ends.",
)
@click.option("--json", "as_json", is_flag=True, help="Rows as JSON on stdout.")
def command(name: str | None, listed: bool, as_json: bool, **options: Any) -> int:
    """Rerun a figure or table of the papers: reported, ours, controls, verdict.

    NAME is one of the list, or all. Exits with 0 when every verdict equals the stored one: a claim that does
    not hold is a finding, not a fault.
    """
    from onehidden_papers import reproductions as papers

    if listed or name is None:
        _list(as_json)
        return 0
    # An unknown name is reported before any work is done.
    items = [papers.get(one) for one in (papers.names() if name == "all" else [name])]
    return reproduce(items, **options, as_json=as_json)


def reproduce(
    items: Sequence[Item],
    full: bool = False,
    jobs: int = 1,
    seed: int = 0,
    out: Path | None = None,
    store: Path | None = None,
    *,
    as_json: bool = False,
    kept: Path | None = None,
) -> int:
    """Run items, print and draw them; 0 when each ran and gave the verdicts stored in ``kept``, else 1.

    A verdict is compared with that of the same size: fewer samples leave a wider standard error.
    """
    from onehidden.cli import progress
    from onehidden_papers.reproductions import experiment, record

    size = "full" if full else "default"
    records, judged, differing, broken = [], 0, 0, 0
    for place, item in enumerate(items, start=1):
        label = f"{place} of {len(items)}, {item.name}" if len(items) > 1 else item.name
        begun = time.perf_counter()
        try:
            with progress.waiting(label), experiment.workers(jobs):
                result = item(full, seed)
        except Exception as error:  # the others go on
            fault = f"{type(error).__name__}: {' '.join(str(error).split())}"
            click.echo(f"{label} broke off: {fault}", err=True)
            records.append({"name": item.name, "fault": fault})
            broken += 1
            continue
        seconds = time.perf_counter() - begun
        click.echo(f"{label}: {result.summary()}, {seconds:.1f} s", err=True)
        stored = record.load(item, size, kept or record.FOLDER)
        for claim, found in result.verdicts.items():
            before = stored.verdicts.get(claim, "nothing") if stored else found
            judged += 1
            if found != before:
                differing += 1
                click.echo(f"  {claim}: {found}, stored: {before}", err=True)
        if store is not None:
            record.save(result, size, record.made(seed, seconds), store)
        if out is not None:
            _draw(result, out)
        if not as_json:
            _print(result)
        records.append(result.to_dict())
    if as_json:
        click.echo(json.dumps(records, indent=2, default=str))
    same = f"{judged - differing} of {judged} verdicts are those stored for the {size} size"
    click.echo(f"{same}; {broken} broke off" if broken else same, err=True)
    return 1 if differing or broken else 0


def _list(as_json: bool) -> None:
    """Every claim with its item, its verdicts, and when and where the full size was run."""
    from onehidden_papers import reproductions as papers
    from onehidden_papers.reproductions import record

    lines = []
    for name in papers.names():
        item = papers.get(name)
        runs = {size: record.load(item, size) for size in record.SIZES}
        made = runs["full"].made.sentence() if runs["full"] and runs["full"].made else ""
        for claim in item.claims:
            verdicts = {
                s: run.verdicts.get(claim.name, "not run") if run else "not run" for s, run in runs.items()
            }
            about = {key: getattr(claim, key) for key in ("where", "says", "rule")}
            lines.append({"name": name, "claim": claim.name, **about, **verdicts, "made": made})
    if as_json:
        click.echo(json.dumps(lines, indent=2, ensure_ascii=False))
        return
    width = {key: max(len(line[key]) for line in lines) for key in ("name", "full")}
    for line in lines:
        said = f"{line['name']:<{width['name']}}  {line['full']:<{width['full']}}  {line['where']}"
        click.echo(f"{said}  ({line['made']})" if line["made"] else said)


def _print(result: Reproduction) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, found = Console(), result.table
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

    if result.item.draw is None:
        return
    out.mkdir(parents=True, exist_ok=True)
    figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout="constrained")
    result.draw(figure)
    with atomic_file(out / f"{result.name}.png") as beside:
        figure.savefig(beside, dpi=120)
