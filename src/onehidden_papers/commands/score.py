"""onehidden score FILE: estimated scores of the rows of a table."""

from __future__ import annotations

import json
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import click
import numpy as np

from onehidden.cli import examples, options


@click.command(
    name="score",
    epilog=examples(
        "onehidden score data.csv --drop y",
        "onehidden score data.csv --drop y --order 3 --estimator mixture --out scores.csv",
    ),
)
@click.argument("file", type=options.PATH)
@click.option(
    "--order", default=2, show_default=True, type=click.IntRange(1, 4), help="Highest order written."
)
@click.option(
    "--estimator",
    default="select",
    show_default=True,
    type=click.Choice(["select", "gaussian", "mixture", "independent", "local", "kernel"]),
    help="select: the best by held-out score matching.",
)
@options.reading_options()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write .csv or .parquet here.")
@click.option("--force", is_flag=True, help="Replace the file that is written.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON on stdout.")
def command(
    file: Path, order: int, estimator: str, out: Path | None, force: bool, seed: int, as_json: bool,
    **typed: Any,
) -> int:  # fmt: skip
    """Estimate the score functions S_1 … S_m of the law of a table and write them row by row."""
    from onehidden import data
    from onehidden.cli import progress, runs
    from onehidden.recovery.stored import plain
    from onehidden_papers import scores

    out = file.with_name(f"{file.stem}.scores.parquet") if out is None else out
    runs.must_differ(out, file)
    runs.free_file(out, runs.TABLES, force)
    table = data.open(file, **options.given(**typed), constant="drop", stream=False)
    assert isinstance(table, data.Table)
    options.say_notes(table)
    X, names = data.check_arrays(table.X, feature_names=table.feature_names)[0], list(table.feature_names)
    known: dict[str, Any] = {
        "mixture": scores.MixtureScore, "independent": scores.IndependentScore,
        "local": scores.LocalLikelihood, "kernel": scores.KernelDensityScore,
    }  # fmt: skip
    with progress.waiting(f"{len(X)} rows, {len(names)} inputs: {estimator}"):
        if estimator == "select":
            fitted = scores.select(X, seed=seed)
        else:
            made = scores.GaussianScore() if estimator == "gaussian" else known[estimator](seed=seed)
            fitted = made.fit(X)
        blocks = np.array_split(X, max(1, len(X) // 2000))  # dense scores of high orders are large
        orders = range(1, order + 1)
        values = {m: np.concatenate([fitted.score(block, m) for block in blocks]) for m in orders}
    checks = scores.validity(fitted, X, orders=orders)
    columns = {  # scores are symmetric: one an entry with sorted indices
        f"S{m}[{','.join(names[i] for i in index)}]": value[(slice(None), *index)]
        for m, value in values.items()
        for index in combinations_with_replacement(range(len(names)), m)
    }
    runs.write_columns(out, columns)
    summary = {
        "out": str(out),
        "rows": len(X),
        "inputs": names,
        "estimator": type(fitted).__name__,
        "reason": getattr(fitted, "reason", "asked for"),
        "checks": [plain(check.to_dict()) for check in checks],
    }
    if as_json:
        click.echo(json.dumps(summary, allow_nan=False))
    else:
        click.echo(f"{out}: {summary['estimator']} ({summary['reason']})")
        for check in checks:
            word = "passed" if check.passed else "failed"
            click.echo(f"  {word}  {check.name}: {check.value:.2f} standard errors; {check.advice}")
    return 0 if all(check.passed for check in checks) else 1
