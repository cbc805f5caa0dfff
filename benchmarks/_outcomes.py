"""Real tables with real outcomes that ship inside packages: (X, y, names, target), nothing fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Outcome:
    """A real table: inputs (n, d) with their names, the outcome (n,) with its name, the package it is in."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    target: str
    package: str


def outcome(name: str) -> Outcome:
    """The table of this name, one of ``NAMES``."""
    return _TABLES[name]()


def _sklearn(loader: str, target: str, inputs: str = "") -> Outcome:
    """A bundled table; ``inputs`` keeps the columns that begin so, the target may be one of the columns."""
    from sklearn import datasets

    table = getattr(datasets, f"load_{loader}")()
    names, X = [str(one) for one in table.feature_names], np.asarray(table.data, float)
    if target in names:
        y = X[:, names.index(target)]
    else:
        y = np.asarray(table.target, float)
        y = y if y.ndim == 1 else y[:, list(table.target_names).index(target)]
    kept = [j for j, one in enumerate(names) if one != target and one.startswith(inputs)]
    return Outcome(X[:, kept], y, tuple(names[j] for j in kept), target, "scikit-learn")


def _statsmodels(module: str, target: str, *inputs: str) -> Outcome:
    """A bundled table; all other columns are inputs where none is named."""
    from importlib import import_module

    table = import_module(f"statsmodels.datasets.{module}").load_pandas().data
    kept = list(inputs) or [one for one in table.columns if one != target]
    table = table[[*kept, target]].dropna().astype(float)
    X, y = table[kept].to_numpy(), table[target].to_numpy()
    return Outcome(X, y, tuple(kept), target, "statsmodels")


def _vega(name: str, target: str, *inputs: str) -> Outcome:
    from vega_datasets import local_data

    table = getattr(local_data, name)()
    for column in table.columns:
        if table[column].dtype.kind == "M":
            table[column] = table[column].dt.year + (table[column].dt.dayofyear - 1) / 365.25
    table = table[[*inputs, target]].dropna().astype(float)
    return Outcome(table[list(inputs)].to_numpy(), table[target].to_numpy(), inputs, target, "vega_datasets")


def _star98() -> Outcome:
    """Share of pupils above the national median in mathematics, by the district's means."""
    table = _statsmodels("star98", "NABOVE")
    below = table.names.index("NBELOW")
    y = table.y / (table.y + table.X[:, below])
    names = tuple(one for one in table.names if one != "NBELOW")
    return Outcome(np.delete(table.X, below, axis=1), y, names, "share above the median", "statsmodels")


def _sunspots() -> Outcome:
    """This year's activity by that of the nine years before."""
    from statsmodels.datasets import sunspots

    series = sunspots.load_pandas().data["SUNACTIVITY"].to_numpy(float)
    X = np.column_stack([series[9 - lag : len(series) - lag] for lag in range(1, 10)])
    return Outcome(X, series[9:], tuple(f"lag {lag}" for lag in range(1, 10)), "activity", "statsmodels")


_TABLES: dict[str, Callable[[], Outcome]] = {
    "diabetes": lambda: _sklearn("diabetes", "progression"),
    "linnerud": lambda: _sklearn("linnerud", "Waist"),
    "iris": lambda: _sklearn("iris", "petal width (cm)"),
    "wine": lambda: _sklearn("wine", "alcohol"),
    "breast cancer": lambda: _sklearn("breast_cancer", "worst concave points", "mean"),
    "engel": lambda: _statsmodels("engel", "foodexp"),
    "grunfeld": lambda: _statsmodels("grunfeld", "invest", "value", "capital"),
    "ccard": lambda: _statsmodels("ccard", "AVGEXP", "AGE", "INCOME", "OWNRENT"),
    "star98": _star98,
    "statecrime": lambda: _statsmodels("statecrime", "murder"),
    "anes96": lambda: _statsmodels("anes96", "PID", "TVnews", "selfLR", "age", "educ", "income", "logpopul"),
    "fair": lambda: _statsmodels("fair", "affairs"),
    "randhie": lambda: _statsmodels("randhie", "mdvis"),
    "macrodata": lambda: _statsmodels(
        "macrodata", "realinv", "realcons", "realgovt", "tbilrate", "unemp", "infl"
    ),
    "elnino": lambda: _statsmodels("elnino", "DEC", *"JAN FEB MAR APR MAY JUN JUL AUG SEP".split()),
    "stackloss": lambda: _statsmodels("stackloss", "STACKLOSS"),
    "sunspots": _sunspots,
    "cars": lambda: _vega(
        "cars", "Miles_per_Gallon",
        "Cylinders", "Displacement", "Horsepower", "Weight_in_lbs", "Acceleration", "Year",
    ),
    "weather": lambda: _vega("seattle_weather", "temp_max", "precipitation", "temp_min", "wind"),
}  # fmt: skip
NAMES = tuple(_TABLES)
