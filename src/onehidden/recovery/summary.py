"""A recovery as a table in plain text, the way people read regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onehidden.certify.units import UnitStatus, UnitVerdict

if TYPE_CHECKING:
    from onehidden.recovery.record import Recovery

_INPUTS = 6  # weights shown of a unit: the largest


def summary(recovery: Recovery) -> str:
    """The verdict, the fit, then a block for each unit; what is undetermined is said so."""
    net = recovery.network
    lines = [
        f"{recovery.status}: {recovery.message}",
        "",
        f"{net.n_hidden} {net.activation.name} units of {net.n_inputs} inputs, {recovery.n_samples} rows, "
        f"{recovery.freedom} parameters",
        f"R squared {recovery.r_squared:.4g}   noise sd {np.sqrt(max(recovery.noise_variance, 0.0)):.4g}   "
        f"missed share of the variance {recovery.left_over:.2g}",
        f"intercept {_number(net.intercept, recovery.standard_errors.intercept)}",
    ]
    for unit in recovery.units:
        lines += ["", *_unit(unit, recovery.feature_names)]
    for other in recovery.alternatives:
        lines += ["", f"as well: {other.label} ({other.behind:.2g} of n log(loss) behind)"]
    return "\n".join(lines)


def _unit(unit: UnitVerdict, names: tuple[str, ...]) -> list[str]:
    open_ = unit.status == UnitStatus.UNDETERMINED
    head = f"unit {unit.index + 1}: {unit.status}" + (f" ({unit.reason})" if unit.reason else "")
    if open_:
        return [head]
    weights, bias, output = unit.errors
    strongest = np.argsort(-np.abs(unit.weights))[:_INPUTS]
    shown = [
        f"  {names[j]:<16} {_number(float(unit.weights[j]), float(weights[j]))}" for j in sorted(strongest)
    ]
    more = len(unit.weights) - len(shown)
    return [
        f"{head}, share {unit.share:.2g} of the variance of y",
        f"  {'output':<16} {_number(unit.output, output)}",
        f"  {'bias':<16} {_number(unit.bias, bias)}",
        *shown,
        *([f"  and {more} smaller weights"] if more else []),
    ]


def _number(value: float, error: float) -> str:
    if not np.isfinite(error):
        return "undetermined"
    return f"{value:>12.5g}" + (f"  ± {error:.2g}" if error > 0 else "")
