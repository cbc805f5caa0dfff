"""The command line: one thin file a command, loaded only when called."""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings

import click

_COMMANDS = {
    "demo": "Recover a built-in hidden layer, compare it with the truth, write a page.",
    "recover": "Recover the hidden layer behind a table (CSV, Parquet, Feather, npz, a folder of Parquet).",
    "oracle": "Recover the hidden layer of a model that answers questions (ONNX file, HTTP endpoint).",
    "predict": "Predict with a recovered network at the rows of a table.",
    "check": "Show the checks of a run folder.",
    "report": "Write the report of a run folder as one HTML page.",
    "score": "Estimate the score functions of the law behind a table.",
    "reproduce": "Rerun a figure or table of the papers.",
    "problems": "List the catalogue of problems with known truth.",
}
# Commands of the theory package.
_THEORY = ("demo", "score", "reproduce", "problems")


class _Lazy(click.Group):
    """A group that imports the module of a command only when it is called."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        package = "onehidden_papers.commands" if name in _THEORY else "onehidden.cli"
        return importlib.import_module(f"{package}.{name}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(
    cls=_Lazy,
    commands=dict.fromkeys(_COMMANDS),  # pyright: ignore[reportArgumentType]  # known by name alone
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Begin with: onehidden demo. Tab completion: eval "$(_ONEHIDDEN_COMPLETE=bash_source onehidden)" '
    "(zsh_source, fish_source).",
)
@click.version_option(package_name="onehidden")
def cli() -> None:
    """Recover the hidden layer that generated your data.

    Data goes to stdout, talk to stderr. Exit code 0: success; 1: ran, but in doubt; 2: bad input.
    """


def examples(*lines: str) -> str:
    """An epilog of one command a line; click would join the lines without the mark."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def main() -> None:
    """Entry point: whatever goes wrong becomes one sentence and exit code 2."""
    # The caller may have closed them.
    sys.stdout, sys.stderr = (one or open(os.devnull, "w") for one in (sys.stdout, sys.stderr))
    output = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ± must not end the run
            stream.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            if not os.environ.get("ONEHIDDEN_TRACEBACK"):
                warnings.simplefilter("ignore")  # what a person must know is a sentence
            code = cli.main(prog_name="onehidden", standalone_mode=False)
        output.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        look = "" if context is None else f" See {context.command_path} --help."
        click.echo(f"onehidden: {_one_line(error.format_message())}{look}", err=True)
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 130
    except BrokenPipeError:  # the reader of our stdout left: not our failure, nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
        code = 0
    except (ValueError, OSError) as error:
        code = _failed(_one_line(error))
    except MemoryError:
        code = _failed("out of memory: give fewer rows or columns")
    except Exception as error:
        code = _failed(
            f"unexpected {type(error).__name__}: {_one_line(error)} "
            "(please report it with what ONEHIDDEN_TRACEBACK=1 shows)"
        )
    sys.exit(code if isinstance(code, int) else 0)


def _failed(sentence: str) -> int:
    """The sentence about what went wrong, and the exit code."""
    if os.environ.get("ONEHIDDEN_TRACEBACK"):
        import traceback

        traceback.print_exc()
    click.echo(f"onehidden: {sentence}", err=True)
    return 2


def _one_line(error: object) -> str:
    if isinstance(error, OSError) and error.strerror:
        named = f"{error.filename}: " if error.filename is not None else ""
        return _shown(f"{named}{error.strerror}")
    return _shown(" ".join(str(error).split()))


def _shown(text: str, most: int = 500) -> str:
    """The text without anything that controls a terminal, of bounded length: names come from others."""
    if len(text) > most:
        text = f"{text[: most // 2]} … {text[-most // 2 :]}"
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)
