"""Markdown rows that appear on the terminal as soon as they are measured."""

from __future__ import annotations


class Table:
    """A Markdown table printed row by row; ``lines`` keeps what was printed."""

    def __init__(self, *columns: str) -> None:
        self.lines: list[str] = []
        self.say("| " + " | ".join(columns) + " |")
        self.say("|" + "---|" * len(columns))

    def row(self, *values: object) -> None:
        self.say("| " + " | ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in values) + " |")

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)
