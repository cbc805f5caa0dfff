"""recover() on a source too large to hold: search on a sample of the rows, finish and certify on all.

The passes: one for means, covariance, gaps and the sample (again where so many rows had gaps that the sample
fell short, and where a column leaves its usual value in few rows: the sample must hold some of them); then
one for every step of Levenberg–Marquardt in all parameters, which begins where the sample's answer lies and
so needs few; one more for the certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onehidden import activations
from onehidden.data.rare import RareRows, rare_columns, with_rare_rows
from onehidden.data.reduction import connected, reduce
from onehidden.data.source import Source
from onehidden.data.survey import Summary, Survey, must_be_usable
from onehidden.data.table import Table
from onehidden.memo import Memo
from onehidden.network import OneHiddenNet
from onehidden.objectives.residuals import Form
from onehidden.recovery.checkpoint import open_checkpoint
from onehidden.recovery.clock import Clock, TraceRecord
from onehidden.recovery.coordinates import Coordinates, from_moments, must_be_moderate
from onehidden.recovery.outcome import certified
from onehidden.recovery.passes import StreamedFit
from onehidden.recovery.record import Recovery
from onehidden.recovery.search import finishing, without_held
from onehidden.recovery.streamed_certificate import certify_all
from onehidden.solvers import LevenbergMarquardt

_LEAST_SAMPLE, _LARGEST_SAMPLE = 20_000, 200_000
_ROWS_A_PARAMETER = 32


def recover_source(
    recover: Callable[..., Recovery],
    source: Source,
    y: Any,
    sample_weight: Any,
    given: dict[str, Any],
    progress: Any,
    client: Any,
    checkpoint: Any,
) -> Recovery:
    """The recovery of all rows of a source.

    Parameters
    ----------
    recover : the recovery of samples in memory; it searches in the sample.
    source : the samples, target and weights among them: ``y`` and ``sample_weight`` must be None.
    given : the options of ``recover`` by name, checked.
    progress, client, checkpoint : as in ``recover``.
    """
    if y is not None or source.target_name is None:
        raise ValueError("a source holds its target: open it with target=NAME and leave y out")
    if sample_weight is not None:
        raise ValueError("a source holds its weights: open it with weight=NAME and leave sample_weight out")
    clock = Clock(given["max_seconds"], progress)
    first_choice = activations.names()[0] if given["activation"] == "auto" else given["activation"]
    form = Form(
        activations.get(first_choice), source.n_inputs, int(given["hidden"] or 1), bool(given["bias"]),
        bool(given["intercept"]),
    )  # fmt: skip
    memo = open_checkpoint(checkpoint, source.fingerprint, given)
    with connected(client, source) as cluster:
        summary = survey(source, sample_size(form, source.n_rows), given["seed"], cluster, memo, clock)
        around = coordinates_of(summary, form.bias)
        first = _search(recover, summary, source, given, clock, checkpoint)
        if around.scale == 0 or first.network.n_inputs != source.n_inputs:
            return replace(first, n_samples=summary.n)
        network = first.network
        form = replace(form, activation=network.activation, d=around.rank, k=network.n_hidden)
        end = finishing(form, around)
        report = _twentieths(clock, "pass over all rows")
        fit = StreamedFit(form, source, end, summary.n, summary.weight, cluster, report)
        network = _finish(fit, form, end, network, clock, memo)
        certificate = certify_all(network, fit, end, first, summary, given["errors"])
    clock.report(f"certified {certificate.status}", 0, certificate.loss / end.scale**2)
    return replace(
        first,
        **certified(certificate, clock),
        n_samples=summary.n,
        options={**first.options, "max_seconds": given["max_seconds"]},
    )


def sample_size(form: Form, rows: int) -> int:
    """Rows to search in: enough for every parameter many times over, few enough to hold."""
    wanted = max(_LEAST_SAMPLE, _ROWS_A_PARAMETER * form.freedom)
    return min(rows, wanted, _LARGEST_SAMPLE)


def survey(source: Source, sample: int, seed: int, client: Any, memo: Memo, clock: Clock) -> Summary:
    """The first pass, remembered; a second where the sample would miss what a column shows in few rows."""
    kept = memo.recall("survey", sample, seed)
    if kept is not None:
        names, counts = kept.pop("fault_names").tolist(), kept.pop("fault_counts").tolist()
        w = kept.pop("w")
        plain: dict[str, Any] = {k: v if v.ndim else v.item() for k, v in kept.items()}
        return Summary(**plain, faults=dict(zip(names, counts, strict=True)), w=w if len(w) else None)
    progress = _twentieths(clock, "first pass")

    def ask(rows: int) -> Summary:
        make = partial(Survey, source.n_inputs, sample, rows, seed)
        return reduce(source, make, client=client, counting=True, progress=progress).result()

    summary = ask(source.n_rows)
    must_be_usable(summary, source.selection)
    if len(summary.X) < min(sample, summary.n):  # rows were left out: parts keep a share of those that count
        summary = ask(summary.n)
    columns, usual = rare_columns(summary)
    if len(columns):
        progress = _twentieths(clock, "pass for rare rows")
        gather = partial(RareRows, columns, usual, seed)
        summary = with_rare_rows(summary, reduce(source, gather, client=client, progress=progress))
    values = dict(vars(summary))
    faults = values.pop("faults")
    values["w"] = np.zeros(0) if summary.w is None else summary.w
    values["fault_names"] = np.array(list(faults), dtype=str)
    values["fault_counts"] = np.array(list(faults.values()), dtype=int)
    memo.keep(values, "survey", sample, seed)
    return summary


def _twentieths(clock: Clock, stage: str) -> Callable[[int, int], None]:
    """Reports of a pass, at most twenty however many parts there are."""

    def hear(done: int, parts: int) -> None:
        if parts > 1 and (done == parts or done * 20 // parts > (done - 1) * 20 // parts):
            clock.report(stage, done, float("nan"))

    return hear


def coordinates_of(summary: Summary, bias: bool) -> Coordinates:
    """Whitened coordinates of all rows; without biases, about the origin where that shows more directions."""
    must_be_moderate(np.array([summary.low, summary.high]), "X")
    must_be_moderate(np.array([summary.bottom, summary.top]), "y")
    scale = float(np.sqrt(summary.variance))
    if scale <= 1e-14 * max(abs(summary.bottom), abs(summary.top)):
        scale = 0.0
    found = []
    for mean in (summary.mean, np.zeros_like(summary.mean)):
        off = summary.mean - mean
        second = summary.covariance + np.outer(off, off)
        spread = np.sqrt(np.diag(second))
        found.append(from_moments(mean, spread, second / np.outer(spread, spread), summary.level, scale))
        if bias or found[0].null.shape[1] == 0:
            return found[0]
    return found[1] if found[1].rank > found[0].rank else found[0]


def _search(
    recover: Callable[..., Recovery],
    summary: Summary,
    source: Source,
    given: dict[str, Any],
    clock: Clock,
    checkpoint: Any,
) -> Recovery:
    """The ordinary recovery of the sample, its progress told as the sample's."""

    def hear(record: TraceRecord) -> None:
        clock.report(f"sample: {record.stage}", record.step, record.loss)

    options = dict(given)
    if clock.limit is not None:
        options["max_seconds"] = max(clock.limit - clock.seconds(), 1e-3)
    table = Table(summary.X, summary.y, source.feature_names, source.target_name, summary.w)
    folder = None if checkpoint is None else Path(checkpoint) / "sample"
    return recover(table, progress=hear, checkpoint=folder, **options)


def _finish(
    fit: StreamedFit, form: Form, end: Coordinates, network: OneHiddenNet, clock: Clock, memo: Memo
) -> OneHiddenNet:
    """Levenberg–Marquardt over all rows, from the network of the sample."""
    start = end.inward(network)
    theta = form.pack(start.weights, start.output, start.bias, None, start.intercept)
    if fit.loss(theta) <= 1e-28 * fit.n:  # every row to rounding: a step more would be a pass for nothing
        return network
    # A step is a pass over all rows: one whose gain is far below the square of a standard error is not taken.
    solver = LevenbergMarquardt(
        max_steps=100, floor=1e-29 * fit.n, damping=1e-6, patience=5, tiny=max(1e-13, 2e-3 / fit.n)
    )
    solution = solver.solve(
        fit, theta, clock.expired, lambda s, f: clock.report("finish on all rows", s, f / fit.n), memo
    )
    weights, output, bias, _, constant = form.unpack(solution.theta)
    found = OneHiddenNet(weights, output, bias, float(constant), form.activation)
    return without_held(end.outward(found), form)
