"""Every number of a recovery as rows: for a data frame, and for a file of comma-separated values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.report.effects import effects
from onehidden.report.marks import left_open
from onehidden.report.subject import gather

if TYPE_CHECKING:
    from onehidden.report.subject import Recovered

COLUMNS = ("unit", "parameter", "estimate", "standard_error", "effect_of_one_sd", "effect_error", "verdict")
Row = tuple[int | None, str, float, float, float, float, str]


def rows(recovery: Recovered) -> list[Row]:
    """One row a number: the intercept, the linear part, then output, bias and weights of each unit.

    Of several outputs each has its own intercept, linear part and output weights; effects are on the first.

    Errors are NaN where they are not known and infinite where the data leave the number open; effects are
    those of an input, w a sd, and NaN for the other numbers.
    """
    subject = gather(recovery)
    net, found, nan = subject.net, effects(subject), float("nan")

    def error(name: str, index: int | tuple[int, ...] = (), unit: int | None = None) -> float:
        if unit is not None and left_open(subject.unit(unit)):
            return float("inf")
        known = subject.error(name, index)
        return nan if known is None else known

    whole, errors = subject.recovery.network, getattr(recovery, "standard_errors", None)
    single = subject.n_outputs == 1

    def of_outputs(name: str, value: Any, at: tuple[int, ...], unit: int | None = None) -> Iterator[Row]:
        """A number that each output has one of."""
        verdict = "" if unit is None or subject.unit(unit) is None else str(subject.unit(unit).status)  # pyright: ignore[reportOptionalMemberAccess]
        known = None if errors is None else getattr(errors, name, None)
        open_ = unit is not None and left_open(subject.unit(unit))
        for j, output in enumerate(subject.outputs):
            index = at if single else (*at, j)
            uncertain = nan if known is None else float(np.asarray(known)[index])
            label = name if name != "linear" else f"linear {subject.names[at[0]]}"
            label = label if single else f"{label} of {output}"
            number = None if unit is None else unit + 1
            error_ = float("inf") if open_ else uncertain
            yield number, label, float(np.asarray(value)[index]), error_, nan, nan, verdict

    made: list[Row] = [*of_outputs("intercept", whole.intercept, ())]
    if whole.has_linear:
        made += [row for j in range(net.n_inputs) for row in of_outputs("linear", whole.linear, (j,))]
    for i in range(net.n_hidden):
        unit = subject.unit(i)
        verdict = "" if unit is None else str(unit.status)
        made += of_outputs("output", whole.output, (i,), i)
        if subject.has_bias:
            made.append((i + 1, "bias", float(net.bias[i]), error("bias", i, i), nan, nan, verdict))
        for j, name in enumerate(subject.names):
            of_effect = nan if found.errors is None else float(found.errors[i, j])
            of_effect = float("inf") if left_open(unit) else of_effect
            values = float(net.weights[i, j]), error("weights", (i, j), i)
            made.append((i + 1, name, *values, float(found.values[i, j]), of_effect, verdict))
    return made


def to_frame(recovery: Recovered) -> Any:
    """The rows as a pandas data frame."""
    try:
        import pandas as pd
    except ImportError:
        raise ValueError("to_frame needs pandas: install it, or read units.csv of the run folder") from None

    table = pd.DataFrame(rows(recovery), columns=list(COLUMNS))
    return table.astype({"unit": "Int64"})


def to_csv(recovery: Recovered) -> str:
    """The rows as comma-separated values; names that a spreadsheet would take for a formula are quoted."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for unit, name, *numbers, verdict in rows(recovery):
        cells = ["" if np.isnan(value) else repr(value) for value in numbers]
        safe = f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name
        writer.writerow(["" if unit is None else unit, safe, *cells, verdict])
    return stream.getvalue()
