"""The answer first: verdict, key figures, and what was checked."""

from __future__ import annotations

import numpy as np

from onehidden.report.blocks import Block, Checks, Facts, Paragraph, Section, Verdict
from onehidden.report.marks import by_urgency, left_open, tally
from onehidden.report.numbers import seconds, short
from onehidden.report.subject import Subject


def verdict(subject: Subject) -> Verdict:
    """The sentence that a reader may quote, then what it rests on."""
    status, message = str(subject.get("status", "no status")), str(subject.get("message", ""))
    headline = f"{status[:1].upper()}{status[1:]}" + (f": {message}." if message else ".")
    units = f"{subject.net.n_hidden} {subject.net.activation.name} unit{'s' * (subject.net.n_hidden != 1)}"
    open_ = sum(left_open(unit) for unit in subject.get("units", ()))
    units += f", {open_} of them undetermined" if open_ else ""
    detail = f"{units}; {tally(subject.get('checks', ()))}."
    return Verdict(bool(subject.get("converged", False)), headline, detail)


def summary(subject: Subject) -> Section:
    net = subject.net
    facts = [("hidden units", str(net.n_hidden)), ("inputs", str(net.n_inputs))]
    if subject.n_rows is not None:
        facts.append(("samples", f"{subject.n_rows:,}".replace(",", " ")))
    facts.append(("loss", short(subject.get("loss"), 3)))
    noise = subject.get("noise_variance")
    if noise is not None:
        facts.append(("noise sd", short(float(np.sqrt(max(noise, 0.0))), 3)))
    if subject.X is not None and subject.y is not None:
        facts.append(("R²", _r_squared(subject)))
    if subject.match is not None:
        facts.append(("worst unit error", short(subject.match.max_error, 2)))
        facts.append(("worst output error", short(subject.match.output_error, 2)))
    if subject.get("seconds") is not None:
        facts.append(("time", seconds(subject.get("seconds"))))
    blocks: list[Block] = [verdict(subject), Facts(tuple(facts))]
    blocks.append(
        Paragraph(
            "The model is y = c + Σ wᵢ g(⟨aᵢ, x⟩ + bᵢ) + noise with "
            f"g = {net.activation.name} and c = {short(net.intercept)}."
        )
    )
    return Section("summary", "Summary", tuple(blocks))


def _r_squared(subject: Subject) -> str:
    assert subject.X is not None
    assert subject.y is not None
    residual = subject.y - subject.net.predict(subject.X)
    spread = float(np.var(subject.y))
    if spread == 0:
        return "–"
    left = float(np.mean(residual**2)) / spread
    # Near one, 1 - R² is what can still be read.
    return f"{1 - left:.4f}" if left > 1e-4 else f"1 − {left:.0e}"


def checks(subject: Subject) -> Section | None:
    made = tuple(subject.get("checks", ()))
    if not made:
        return None
    lead = Paragraph(
        "Each line is a question asked of the answer: what was measured, the bound, and what to do. "
        "A question that could not be asked has not passed; one that is noted decides nothing."
    )
    return Section("checks", "Checks", (lead, Checks(tuple(by_urgency(made)))))
