"""The chapters of a report, in reading order: the answer, how it meets the data; then the details, folded."""

from __future__ import annotations

from onehidden.network import OneHiddenNet
from onehidden.report.blocks import Report
from onehidden.report.screen import title
from onehidden.report.sections import answer, evidence, fit, intervals, others, provenance, response, units
from onehidden.report.subject import Recovered, gather


def build(
    recovery: Recovered, X: object = None, y: object = None, truth: OneHiddenNet | None = None
) -> Report:
    """The whole tree; chapters without data leave themselves out."""
    subject = gather(recovery, X, y, truth)
    chapters = (
        answer.summary,
        response.of_units,
        fit.at_a_glance,
        units.matched,
        answer.checks,
        answer.outputs,
        others.alternatives,
        response.of_inputs,
        fit.residuals_by_unit,
        units.effects_map,
        intervals.intervals,
        evidence.loss_trace,
        evidence.curvature,
        evidence.moment_signal,
        evidence.score_validity,
        provenance.reproduce,
        provenance.cite,
    )
    net = recovery.network
    return Report(
        title=title(subject),
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
        samples=subject.X is not None,
    )
