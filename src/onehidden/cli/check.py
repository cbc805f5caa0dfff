"""onehidden check RUN: the checks of a finished run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from onehidden.cli import examples, options


@click.command(name="check", epilog=examples("onehidden check data-run", "onehidden check data-run --json"))
@click.argument("run", type=options.PATH)
@click.option("--json", "as_json", is_flag=True, help="The checks as JSON on stdout.")
def command(run: Path, as_json: bool) -> int:
    """Show the checks of a run folder; exit 1 when the answer is not to be trusted."""
    from onehidden.recovery import load_recovery
    from onehidden.report.text import show

    recovery = load_recovery(run)
    if as_json:
        record = recovery.to_dict()
        kept = ("predictions_in_words", "units_in_words", "status", "message", "checks", "noise_variance")
        click.echo(json.dumps({name: record[name] for name in kept}))
    else:
        show(recovery, checks=True)
    return 0 if recovery.converged else 1
