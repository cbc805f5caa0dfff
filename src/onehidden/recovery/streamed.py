"""recover() on a source too large to hold: search on a sample of the rows, finish and certify on all.

The passes: one for means, covariance, gaps and the sample (again where so many rows had gaps that the sample
fell short, and where a column leaves its usual value in few rows: the sample must hold some of them); then
one for every step of Levenberg–Marquardt in all parameters, which begins where the sample's answer lies and
so needs few; a few more for the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from onehidden import __version__, threads
from onehidden.certify.certificate import Certificate
from onehidden.certify.questions import certify
from onehidden.certify.units import Cause, UnitVerdict
from onehidden.checks import About, Check, at_most
from onehidden.data.rare import RareRows, rare_column_reasons, rare_columns, with_rare_rows
from onehidden.data.reduction import connected, reduce
from onehidden.data.source import Source
from onehidden.data.survey import Summary, Survey, must_be_usable
from onehidden.fit.coordinates import Coordinates, from_moments, is_constant, must_be_moderate
from onehidden.fit.form import Form
from onehidden.fit.polish import polish
from onehidden.fit.problem import Problem
from onehidden.fit.rounding import rounding_of
from onehidden.fit.samples import checked_samples, coarsest
from onehidden.fit.streamed import StreamedRows
from onehidden.journal import open_journal
from onehidden.matching import match
from onehidden.recovery.options import Options
from onehidden.recovery.outcome import held_against_ridge, record
from onehidden.recovery.record import Recovery
from onehidden.recovery.search import Found
from onehidden.recovery.solve import problem_of, solve
from onehidden.run import Run, TraceRecord

_LEAST_SAMPLE, _LARGEST_SAMPLE = 20_000, 200_000
_ROWS_A_PARAMETER = 32


def recover_source(
    source: Source,
    y: object,
    sample_weight: object,
    options: Options,
    run: Run,
    client: object,
    checkpoint: object,
) -> Recovery:
    """The recovery of all rows of a source, which holds ``y`` and ``sample_weight``: both must be None."""
    if y is not None or source.target_name is None:
        raise ValueError("a source holds its target: open it with target=NAME and leave y out")
    if sample_weight is not None:
        raise ValueError("a source holds its weights: open it with weight=NAME and leave sample_weight out")
    plain, pins = options.plain(), options.pins(source.n_inputs)
    run = replace(run, journal=open_journal(checkpoint, source.fingerprint, pins, __version__))
    with connected(client, source) as cluster:
        outputs = len(source.target_names) if len(source.target_names) > 1 else None
        wanted = sample_size(options.form(source.n_inputs, outputs), source.n_rows)
        summary = survey(source, wanted, cluster, run, outputs)
        samples = replace(checked_samples(summary.X, summary.y, summary.w), names=source.feature_names)
        sampled = problem_of(samples, options)
        with threads.fit_for(sampled.with_width(options.hidden or 8).form.size):
            first = solve(sampled, options, _of_the_sample(run))
        sampled = first.noise_known or sampled
        around = coordinates_of(summary, options.bias)
        if first.noise_known is not None:  # what the sample told of the noise between outputs
            around = replace(around, scale=sampled.around.scale)
        network = first.certificate.network
        largest = np.maximum(np.abs(summary.bottom), np.abs(summary.top))
        rounding = rounding_of(*coarsest(largest, np.sqrt(summary.variance)))
        report = _twentieths(run, "pass over all rows")
        rows = StreamedRows(source, summary.n, summary.weight, rounding, cluster, report)
        if around.constant:
            return record(first.certificate, first.origin, rows, None, plain, run)
        form = options.form(around.rank, outputs)
        form = replace(form, activation=network.activation, k=network.n_hidden)
        problem = Problem(rows, form, around)
        network = polish(network, problem, run.at("finish")).network
        own = certify(network, problem, run, options.errors)
    certificate = _certificate(own, first, summary, samples.n, source.feature_names)
    run.report(f"certified {certificate.status}", 0, certificate.mean_square)
    held = held_against_ridge(certificate, sampled, options, run)
    return record(certificate, first.origin, rows, sampled.inputs, plain, run, held=held)


def sample_size(form: Form, rows: int) -> int:
    """Rows to search in: enough for every parameter many times over, few enough to hold."""
    wanted = max(_LEAST_SAMPLE, _ROWS_A_PARAMETER * form.freedom)
    return min(rows, wanted, _LARGEST_SAMPLE)


def survey(source: Source, sample: int, client: object, run: Run, outputs: int | None = None) -> Summary:
    """The first pass, remembered; a second where the sample would miss what a column shows in few rows."""
    here = run.at("survey")
    kept = here.recall()
    if kept is not None:
        names, counts = kept.pop("fault_names").tolist(), kept.pop("fault_counts").tolist()
        w = kept.pop("w")
        plain: dict[str, Any] = {k: v if v.ndim else v.item() for k, v in kept.items()}
        return Summary(**plain, faults=dict(zip(names, counts, strict=True)), w=w if len(w) else None)
    seed, progress = run.seed_of("rows of the sample"), _twentieths(run, "first pass")

    def ask(rows: int) -> Summary:
        make = partial(Survey, source.n_inputs, sample, rows, seed, outputs)
        return reduce(source, make, client=client, counting=True, progress=progress).result()

    summary = ask(source.n_rows)
    must_be_usable(summary, source.selection)
    if len(summary.X) < min(sample, summary.n):  # rows were left out: parts keep a share of those that count
        summary = ask(summary.n)
    columns, usual = rare_columns(summary)
    if len(columns):
        progress = _twentieths(run, "pass for rare rows")
        gather = partial(RareRows, columns, usual, seed)
        summary = with_rare_rows(summary, reduce(source, gather, client=client, progress=progress))
    values = dict(vars(summary))
    faults = values.pop("faults")
    values["w"] = np.zeros(0) if summary.w is None else summary.w
    values["fault_names"] = np.array(list(faults), dtype=str)
    values["fault_counts"] = np.array(list(faults.values()), dtype=int)
    here.keep(values)
    return summary


def _twentieths(run: Run, stage: str) -> Callable[[int, int], None]:
    """Reports of a pass, at most twenty however many parts there are."""

    def hear(done: int, parts: int) -> None:
        if parts > 1 and (done == parts or done * 20 // parts > (done - 1) * 20 // parts):
            run.report(stage, done, float("nan"))

    return hear


def coordinates_of(summary: Summary, bias: bool) -> Coordinates:
    """Whitened coordinates of all rows; without biases, about the origin where that shows more directions."""
    must_be_moderate(np.array([summary.low, summary.high]), "X")
    must_be_moderate(np.array([summary.bottom, summary.top]), "y")
    scale = np.sqrt(summary.variance)
    largest = np.maximum(np.abs(summary.bottom), np.abs(summary.top))
    scale = np.where(is_constant(scale, largest), 0.0, scale)
    scale = np.diag(scale) if scale.ndim else float(scale)
    found = []
    for mean in (summary.mean, np.zeros_like(summary.mean)):
        off = summary.mean - mean
        second = summary.covariance + np.outer(off, off)
        spread = np.sqrt(np.diag(second))
        found.append(from_moments(mean, spread, second / np.outer(spread, spread), summary.level, scale))
        if bias or found[0].null.shape[1] == 0:
            return found[0]
    return found[1] if found[1].rank > found[0].rank else found[0]


def _of_the_sample(run: Run) -> Run:
    """The run of the search in the sample, its progress told as the sample's."""

    def hear(record: TraceRecord) -> None:
        run.report(f"sample: {record.stage}", record.step, record.loss)

    return replace(run.at("sample"), listener=hear, trace=[])


def _certificate(
    own: Certificate, first: Found, summary: Summary, rows: int, names: tuple[str, ...]
) -> Certificate:
    """All rows asked about the network itself; what only the sample could be asked is carried over.

    A fit of all rows to rounding needs none of the sample's comparisons.
    """
    sample = first.certificate
    own = own.asked(*_same_law(own, sample, rows))
    own = replace(own, open_units=_named_columns(own.open_units, rare_column_reasons(summary, names)))
    if own.exact:
        return own
    return replace(
        own.with_open(_open_in_the_sample(own, sample)),
        compared=tuple(_on_the_sample(check, rows) for check in sample.compared),
        alternatives=sample.alternatives,
        finished=sample.finished,
        stable=sample.stable,
        remarks=tuple(f"on a sample of {rows} rows {remark}" for remark in sample.remarks),
    )


def _open_in_the_sample(own: Certificate, sample: Certificate) -> dict[int, tuple[Cause, str]]:
    """Units that the sample's comparisons left open, as all rows number them."""
    place = match(own.network, sample.network).permutation
    told = (Cause.RIVAL, Cause.SPARE)
    return {
        int(place[unit.index]): (unit.cause, unit.reason)
        for unit in sample.open_units
        if unit.cause is not None and unit.cause in told
    }


def _named_columns(units: tuple[UnitVerdict, ...], columns: list[str]) -> tuple[UnitVerdict, ...]:
    """Units with weights that move no residual, the columns named that hardly leave their usual value."""
    if not columns:
        return units
    why = "; ".join(columns)
    return tuple(replace(one, reason=why) if one.cause is Cause.BLIND else one for one in units)


def _same_law(own: Certificate, sample: Certificate, rows: int) -> list[Check]:
    """Whether all rows follow the law of the sample, where that was one to rounding."""
    if not sample.exact or own.exact:
        return []
    return [
        at_most(
            "rows beyond the sample",
            float(np.sqrt(own.mean_square)),
            float(np.sqrt(sample.mean_square)),
            f"a sample of {rows} rows is reproduced to rounding but other rows are not: some follow another "
            "law; look for them with the residuals of this network",
            About.FIT,
        )
    ]


def _on_the_sample(check: Check, rows: int) -> Check:
    return replace(check, advice=f"on a sample of {rows} rows: {check.advice}")
