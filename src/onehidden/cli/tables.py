"""What the terminal shows of a run: the first screen, or the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from onehidden.recovery import Recovery


def show(recovery: Recovery, console: Console | None = None, checks: bool = False) -> None:
    """Print the first screen, or each check with its advice."""
    from rich.console import Console
    from rich.text import Text

    from onehidden.report.text import check_lines, screen_lines

    console = console or Console()
    for tone, line in (check_lines if checks else screen_lines)(recovery, console.width):
        # Text, not markup: a feature called [red] must be shown, not obeyed.
        console.print(Text(line, style=tone.rich), soft_wrap=True)
