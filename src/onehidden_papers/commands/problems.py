"""onehidden problems: the catalogue."""

from __future__ import annotations

import json

import click

from onehidden.cli import examples


@click.command(
    name="problems", epilog=examples("onehidden problems", "onehidden demo --problem NAME  # run one of them")
)
@click.argument("pattern", default="*")
@click.option("--json", "as_json", is_flag=True, help="As JSON on stdout.")
def command(pattern: str, as_json: bool) -> int:
    """List the catalogue of problems with known truth; PATTERN keeps some, as 'laplace-*' or '*-biased'."""
    import shutil
    from fnmatch import fnmatchcase

    from onehidden_papers import problems

    rows = [problems.get(name) for name in problems.names() if fnmatchcase(name, pattern)]
    if not rows:
        raise ValueError(f"no problem matches {pattern!r}: `onehidden problems` lists all")
    if as_json:
        keys = ("name", "title", "n_inputs", "n_hidden", "activation", "n", "bias", "noise", "tags")
        click.echo(json.dumps([{key: getattr(p, key) for key in keys} for p in rows], indent=2))
        return 0
    # A name on a line of its own: it is there to be typed, whole whatever the width of the terminal.
    for p in rows:
        about = f"{p.title}; {p.n} samples; {', '.join(p.tags)}"
        click.echo(p.name)
        click.echo(click.wrap_text(about, shutil.get_terminal_size().columns, "    ", "    "))
    return 0
