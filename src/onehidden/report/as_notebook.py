"""The first screen as a fragment of HTML that a notebook shows."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from onehidden.report.screen import screen
from onehidden.report.subject import gather

if TYPE_CHECKING:
    from onehidden.report.subject import Recovered


def fragment(recovery: Recovered) -> str:
    """Title, sentence, formula, facts, units, and what to do next; every name as text."""
    shown = screen(gather(recovery))
    colour = "#2f6f45" if shown.good else "#9f2f27"
    facts = "".join(f"<td>{escape(label)} <b>{escape(value)}</b></td>" for label, value in shown.facts)
    units = "".join(
        f"<tr><th>{unit.index + 1}</th><td>{escape(unit.share)}</td><td>{escape(unit.output)}</td>"
        f"<td style='text-align:left'>{escape(', '.join(f'{name} {value}' for name, value in unit.inputs))}"
        f"{f', and {unit.more} more' if unit.more else ''}</td><td>{escape(unit.judged)}</td></tr>"
        for unit in shown.units
    )
    more = f"<p>and {shown.more_units} more units</p>" if shown.more_units else ""
    more += f"<p>{escape(' '.join(shown.legend))}</p>" if shown.legend else ""
    failed = "".join(f"<li><b>{escape(one.name)}</b> {escape(one.advice)}</li>" for one in shown.failed)
    advice = f"<p>Next: {escape(shown.advice)}.</p>" if shown.advice else ""
    verdict = f"<span style='color:{colour}'>{escape(shown.sentence)}</span>"
    heads = "".join(f"<th>{escape(one)}</th>" for one in ("unit", "share", "output w", shown.head, "verdict"))
    return (
        f"<div><p><b>{escape(shown.title)}</b><br>{verdict}</p>"
        f"<pre>{escape(chr(10).join(shown.formula))}</pre><table><tr>{facts}</tr></table>"
        f"<p>{escape(shown.predictions)}</p><table><tr>{heads}</tr>{units}</table>{more}"
        f"{f'<ul>{failed}</ul>' if failed else ''}<p>{escape(shown.passed)}</p>{advice}</div>"
    )
