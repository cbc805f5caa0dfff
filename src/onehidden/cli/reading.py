"""The options by which a command reads a table, the same for every command, and what was saved of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from onehidden.data import Source, Table
    from onehidden.recovery import Recovery

F = TypeVar("F", bound=Callable[..., Any])
# What a later file is read with as well; trials only where its outcomes are looked at.
SAVED = ("one_hot", "nulls", "encoding", "decimal", "na", "offset")


def listed(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> list[str]:
    """Names separated by commas; a name with a comma in it stands in double quotes."""
    found = []
    for text in given:
        for name in next(csv.reader([text], skipinitialspace=True), []):
            found.append(name.strip())
    return found


TARGETS = {"multiple": True, "callback": listed, "metavar": "A,B,…"}  # of an option --target
_OPTIONS = {
    "columns": click.option(
        "--columns",
        multiple=True,
        callback=listed,
        metavar="A,B,…",
        help="Feature columns, comma-separated (quote a name with a comma); all but the target without it.",
    ),
    "drop": click.option(
        "--drop", multiple=True, metavar="COLUMN", help="A column that is no feature (repeatable)."
    ),
    "one_hot": click.option(
        "--one-hot", is_flag=True, help="Make text columns 0 and 1, a column a category but the commonest."
    ),
    "nulls": click.option(
        "--nulls",
        type=click.Choice(["refuse", "drop"]),
        help="What to do about rows with missing values [default: as the run did, else refuse].",
    ),
    "na": click.option(
        "--na",
        multiple=True,
        metavar="TEXT",
        help="Text that means missing, beside NA, n/a, ?, - (repeatable).",
    ),
    "decimal": click.option(
        "--decimal", type=click.Choice([".", ","]), help="The mark before decimals in a CSV file."
    ),
    "encoding": click.option("--encoding", help="Of a CSV file; UTF-8 or cp1252 are found without it."),
}


def options(*names: str) -> Callable[[F], F]:
    """A decorator that adds these options to a command, all without names."""

    def add(command: F) -> F:
        for name in reversed(names or tuple(_OPTIONS)):
            command = _OPTIONS[name](command)
        return command

    return add


def given(**values: Any) -> dict[str, Any]:
    """What was typed, as keywords of ``data.open``: nothing where nothing was."""
    held = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in held.items() if value}


def as_recovered(
    recovery: Recovery, typed: Mapping[str, Any], outcomes: Sequence[str] | None = None
) -> dict[str, Any]:
    """How a table is read for a run: its features by name, treated as in the run, unless typed otherwise.

    ``outcomes`` are its target columns, the run's where empty; None where they are not needed.
    """
    wanted = SAVED if outcomes is None else (*SAVED, "trials")
    found = {name: recovery.options[name] for name in wanted if recovery.options.get(name)}
    found["columns"] = list(recovery.feature_names)
    if outcomes is not None:
        found["target"] = list(outcomes) or recovery.options.get("target", "y")
    return {**found, **typed}


def beside(table: Table | Source) -> dict[str, Any]:
    """The offset and the trials of a table as arguments of ``recover``; of a stream their names alone."""
    held: Any = getattr(table, "selection", table)
    return {"offset": held.offset, "trials": held.trials}


def say(table: Table | Source) -> None:
    """What was done to the columns on the way, on stderr."""
    for note in table.notes:
        click.echo(f"note: {note}", err=True)
