"""The answer first: verdict, key figures, and what was checked."""

from __future__ import annotations

import numpy as np

from onehidden.report.blocks import Block, Checks, Facts, Paragraph, Section, Verdict
from onehidden.report.numbers import seconds, short
from onehidden.report.subject import Subject


def verdict(subject: Subject) -> Verdict:
    """One line that a reader may quote."""
    converged = bool(subject.get("converged", False))
    n_checks, failed = len(subject.get("checks", ())), subject.failed
    units = f"{subject.net.n_hidden} {subject.net.activation.name} unit{'s' * (subject.net.n_hidden != 1)}"
    status, message = str(subject.get("status", "no status")), str(subject.get("message", ""))
    status = f"{status}: {message}." if message else status
    if converged and not failed:
        how = f"all {n_checks} checks passed" if n_checks else "no checks were made"
        return Verdict(True, f"Recovered {units}: {how}.", status)
    reasons = [] if converged else ["the search did not converge"]
    if failed:
        reasons.append(f"{len(failed)} of {n_checks} checks failed ({', '.join(failed)})")
    return Verdict(False, f"Doubtful: {' and '.join(reasons)}.", status)


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
        "Each line is a question asked of the answer: what was measured, the bound, and what to do."
    )
    # What failed comes first: it is what the reader must act on.
    return Section("checks", "Checks", (lead, Checks(tuple(sorted(made, key=lambda check: check.passed)))))
