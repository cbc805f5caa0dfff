"""What the terminal shows of a run: the first screen, the checks, the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onehidden.cli.options import as_typed
from onehidden.report.wording import Mark, by_urgency, mark, short

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from onehidden.recovery import Recovery

_STYLES = {Mark.FAILED: "bold red", Mark.NOT_EVALUATED: "yellow", Mark.NOTED: "default", Mark.PASSED: "green"}


def show(recovery: Recovery, console: Console | None = None) -> None:
    """Print the first screen: everything a terminal user needs to judge the answer."""
    from rich.console import Console
    from rich.text import Text

    from onehidden.report.screen import screen
    from onehidden.report.subject import gather
    from onehidden.report.text import lines

    shown, console = screen(gather(recovery)), console or Console()
    shown = replace(shown, message=as_typed(shown.message), advice=as_typed(shown.advice))
    for tone, line in lines(shown, console.width):
        # Text, not markup: a feature called [red] must be shown, not obeyed.
        console.print(Text(line, style=tone.rich), soft_wrap=True)


def headline(recovery: Recovery) -> RenderableType:
    """The two answers and what to do next: the beginning of the first screen."""
    from rich.text import Text

    from onehidden.report.screen import screen
    from onehidden.report.subject import gather
    from onehidden.report.text import TONES

    shown, text = screen(gather(recovery)), Text()
    for label, answer in shown.answers:
        text.append(f"{label}: {answer.sentence}\n", style=TONES[answer.mood].rich)
    return text.append(f"next: {as_typed(shown.advice)}\n") if shown.advice else text


def checks(recovery: Recovery) -> RenderableType:
    """A line a check with its advice below; failures first, then those that were not evaluated."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    made = by_urgency(getattr(recovery, "checks", None) or ())
    if not made:
        return Text("no checks were made", style="yellow")
    named, marked = max(len(check.name) for check in made), max(len(mark(check)) for check in made)
    lines: list[RenderableType] = [Text("checks", style="bold")]
    for check in made:
        word = mark(check)
        line = Text(" ").append(f"{word:<{marked}}", style=_STYLES[word]).append(f"  {check.name:<{named}}")
        if check.evaluated:
            line.append(f"  {short(check.value):>10}   bound {short(check.threshold)}")
        lines.append(line)
        quiet = "dim" if word is Mark.PASSED else ""
        lines.append(Padding(Text(as_typed(check.advice), style=quiet), (0, 0, 0, marked + 3)))
    return Group(*lines, Text())


def status(recovery: Recovery) -> RenderableType:
    """The verdict: one word and the sentence behind it."""
    from rich.text import Text

    line = Text(str(recovery.status), style="bold")
    message = getattr(recovery, "message", "")
    return line.append(f": {message}", style="default") if message else line
