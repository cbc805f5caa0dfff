"""The chapters of a report, in reading order: the answer, the units, the evidence, how to repeat it."""

from __future__ import annotations

from onehidden.network import OneHiddenNet
from onehidden.report.blocks import Report
from onehidden.report.sections import answer, evidence, fit, provenance, units
from onehidden.report.subject import Recovered, gather


def build(
    recovery: Recovered, X: object = None, y: object = None, truth: OneHiddenNet | None = None
) -> Report:
    """The whole tree; chapters without data leave themselves out."""
    subject = gather(recovery, X, y, truth)
    chapters = (
        answer.summary,
        answer.checks,
        units.table,
        units.matched,
        fit.ridge_functions,
        fit.observed_against_predicted,
        evidence.loss_trace,
        evidence.curvature,
        evidence.moment_signal,
        evidence.score_validity,
        units.intervals,
        provenance.reproduce,
        provenance.cite,
    )
    net = subject.net
    return Report(
        title=f"Hidden layer of {net.n_hidden} {net.activation.name} units",
        sections=tuple(
            section for section in (chapter(subject) for chapter in chapters) if section is not None
        ),
        network={
            "activation": net.activation.name,
            "feature_names": list(subject.names),
            "weights": net.weights,
            "bias": net.bias,
            "output": net.output,
            "intercept": net.intercept,
            "standard_errors": None
            if subject.errors is None
            else {name: getattr(subject.errors, name) for name in ("weights", "bias", "output", "intercept")},
        },
    )
