"""Options of the commands: those of a recovery, and those by which a table is read."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from onehidden.options import Options

if TYPE_CHECKING:
    from onehidden.data import Source, Table

F = TypeVar("F", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)


def recovery_options(oracle: bool = False) -> Callable[[F], F]:
    """Decorate a command with the options of ``recover``, or with those that ``recover_oracle`` takes."""

    def add(command: F) -> F:
        for one in reversed(fields(Options)):
            if one.metadata["flag"] and (one.metadata["oracle"] or not oracle):
                command = _option(one)(command)
        return command

    return add


def _option(one: Field[Any]) -> Callable[[F], F]:
    """An option of a recovery as it is typed."""
    flag, names = f"--{one.name.replace('_', '-')}", one.metadata["names"]
    how: dict[str, Any] = {"help": one.metadata["text"], "default": one.default}
    kind = next(kind for kind in (bool, int, float, str) if kind.__name__ in str(one.type))
    if kind is bool:
        return click.option(
            f"{flag}/--no-{one.name}" if one.default else flag, is_flag=True, show_default=one.default, **how
        )

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    if names is not None:
        how["shell_complete"] = complete
    return click.option(flag, type=kind, show_default=one.default is not None, **how)


def _listed(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> list[str]:
    """Names separated by commas; a name with a comma in it is in double quotes."""
    return [name.strip() for text in given for name in next(csv.reader([text], skipinitialspace=True), [])]


TARGETS = {"multiple": True, "callback": _listed, "metavar": "A,B,…"}  # of an option --target
_READING: dict[str, dict[str, Any]] = {
    "columns": dict(
        multiple=True,
        callback=_listed,
        metavar="A,B,…",
        help="Feature columns, comma-separated (quote a name with a comma); all but the target without it.",
    ),
    "drop": dict(multiple=True, metavar="COLUMN", help="A column that is no feature (repeatable)."),
    "one_hot": dict(
        is_flag=True, help="Make text columns 0 and 1, a column a category but the most frequent."
    ),
    "nulls": dict(
        type=click.Choice(["refuse", "drop"]),
        help="What to do about rows with missing values [default: as the run did, else refuse].",
    ),
    "na": dict(
        multiple=True, metavar="TEXT", help="Text that means missing, besides NA, n/a, ?, - (repeatable)."
    ),
    "decimal": dict(type=click.Choice([".", ","]), help="The mark before decimals in a CSV file."),
    "encoding": dict(help="Of a CSV file; UTF-8 or cp1252 are found without it."),
}


def reading_options(*names: str) -> Callable[[F], F]:
    """Decorate a command with these options by which a table is read, all without names."""

    def add(command: F) -> F:
        for name in reversed(names or tuple(_READING)):
            command = click.option(f"--{name.replace('_', '-')}", **_READING[name])(command)
        return command

    return add


def given(**values: Any) -> dict[str, Any]:
    """What was typed, as keywords of ``data.open``."""
    held = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in held.items() if value}


def say_notes(table: Table | Source) -> None:
    """Say on stderr what was done to the columns on the way."""
    for note in table.notes:
        click.echo(f"note: {note}", err=True)
