"""Real tables with real outcomes: cross-validated R², ours beside what a user would fit instead.

Three folds, rows in one shuffled order. The promise: in no fold more than .02 of R² below ridge regression.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._outcomes import NAMES, outcome
from benchmarks._table import Table

SECONDS = 20.0  # of one fit of ours
FOLDS = 3
BELOW = 0.02  # of R² that ours may fall below ridge in a fold
_PEERS = ("linear", "ridge", "MLP", "boosting")
_QUICK = ("iris", "engel", "cars")


def main(quick: bool) -> list[str]:
    names = _QUICK if quick else NAMES
    cells = [(name, fold) for name in names for fold in range(FOLDS)]
    measured = dict(_pool.run(cell, cells, remark=_said))
    heads = ("table", "outcome", "n", "d", "ours", *_PEERS, "the network alone")
    table = Table(*heads, "worst fold less ridge", "longest s", "units; share used")
    below = 0
    for name in names:
        rows = [row for (table_name, _), row in measured.items() if table_name == name and "broke" not in row]
        if not rows:
            continue
        given = outcome(name)
        means = [float(np.mean([row[kind] for row in rows])) for kind in ("ours", *_PEERS)]
        worst = min(row["ours"] - row["ridge"] for row in rows)
        below += sum(row["ours"] < row["ridge"] - BELOW for row in rows)
        used = ", ".join(dict.fromkeys(row["used"] for row in rows))
        seconds = max(row["seconds"] for row in rows)
        alone = float(np.mean([row["alone"] for row in rows]))
        table.row(
            name, given.target, *given.X.shape, *(f"{mean:.3f}" for mean in means), f"{alone:.3f}",
            f"{worst:+.3f}", f"{seconds:.0f}", used,
        )  # fmt: skip
    table.say("")
    table.say(f"{below} of {len(measured)} folds fall more than {BELOW} below ridge.")
    return table.lines


def _said(cell: tuple[Any, ...], row: dict[str, Any]) -> str:
    gap = row["ours"] - row["ridge"]
    return f"{gap:+.3f} against ridge ({row['used']})"


def cell(name: str, fold: int) -> dict[str, Any]:
    """R² on one fold of every model fitted to the others."""
    import time

    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LinearRegression, RidgeCV
    from sklearn.metrics import r2_score
    from sklearn.model_selection import KFold
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    given = outcome(name)
    train, test = list(KFold(FOLDS, shuffle=True, random_state=0).split(given.X))[fold]
    X, y = given.X[train], given.y[train]
    centre, spread = y.mean(), y.std()  # a network of scikit-learn's needs a target of unit size
    models = {
        "linear": LinearRegression(),
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
        "MLP": make_pipeline(StandardScaler(), MLPRegressor(max_iter=1000, random_state=0)),
        "boosting": HistGradientBoostingRegressor(random_state=0),
    }
    row: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, model in models.items():
            predicted = model.fit(X, (y - centre) / spread).predict(given.X[test]) * spread + centre
            row[kind] = float(r2_score(given.y[test], predicted))
        begin = time.perf_counter()
        ours = oh.OneHiddenRegressor(max_seconds=_pool.seconds(SECONDS)).fit(X, y)
        row["seconds"] = time.perf_counter() - begin
        row["ours"] = float(r2_score(given.y[test], ours.predict(given.X[test])))
    row["alone"] = float(r2_score(given.y[test], ours.network_.predict(given.X[test])))
    guard = ours.recovery_.prediction
    share = 1.0 if guard is None else guard.share
    row["status"], row["used"] = str(ours.recovery_.status), f"{ours.network_.n_hidden}; {share:.2g}"
    return row
