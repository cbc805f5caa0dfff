"""What the terminal shows of a run: the first screen, and the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onehidden.report.text import Lines, checks, lines

if TYPE_CHECKING:
    from rich.console import Console

    from onehidden.recovery import Recovery


def show(recovery: Recovery, console: Console | None = None) -> None:
    """Print the first screen: everything a terminal user needs to judge the answer."""
    from rich.console import Console

    from onehidden.report.screen import screen
    from onehidden.report.subject import gather

    console = console or Console()
    _print(lines(screen(gather(recovery)), console.width), console)


def show_checks(recovery: Recovery, console: Console | None = None) -> None:
    """Print the two answers, each check with its advice, and the verdict."""
    from rich.console import Console

    console = console or Console()
    _print(checks(recovery, console.width), console)


def _print(made: Lines, console: Console) -> None:
    from rich.text import Text

    for tone, line in made:
        # Text, not markup: a feature called [red] must be shown, not obeyed.
        console.print(Text(line, style=tone.rich), soft_wrap=True)
