"""The command line: one thin file a command, loaded only when called."""

from __future__ import annotations

import importlib
import os
import sys

import click

_COMMANDS = {
    "demo": "Recover a built-in hidden layer, compare it with the truth, write a page.",
    "recover": "Recover the hidden layer behind a table (CSV, Parquet, Feather, npz).",
    "predict": "Predict with a recovered network at the rows of a table.",
    "check": "Show the checks of a run folder.",
    "report": "Write the report of a run folder as HTML, Markdown or JSON.",
    "score": "Estimate the score functions of the law behind a table.",
    "reproduce": "Rerun a figure or table of the papers.",
    "problems": "List the catalogue of problems with known truth.",
}


class _Lazy(click.Group):
    """Imports the module of a command when the command is asked for, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        return importlib.import_module(f"onehidden.cli.{name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="onehidden")
def cli() -> None:
    """Recover the hidden layer that generated your data.

    Data goes to stdout, talk to stderr. Exit code 0: success; 1: ran, but a check failed; 2: bad input.
    """


def main() -> None:
    """Entry point: every ValueError of the library becomes one sentence and exit code 2."""
    output = sys.stdout
    if output is None:  # closed by the caller: what would be said goes nowhere
        output = sys.stdout = open(os.devnull, "w")
    try:
        code = cli.main(standalone_mode=False)
        output.flush()
    except click.ClickException as error:
        error.show()
        code = 2
    except click.Abort:
        click.echo("interrupted", err=True)
        code = 130
    except BrokenPipeError:  # the reader of our stdout left: not our failure, nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        code = 0
    except (ValueError, OSError) as error:
        click.echo(f"onehidden: {' '.join(str(error).split())}", err=True)
        code = 2
    sys.exit(code if isinstance(code, int) else 0)
