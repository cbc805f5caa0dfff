"""Eighty-five calls as people write them: each works, or a sentence says what to write instead."""

import pickle
import tempfile
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import command, sketched
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onehidden as oh
from onehidden.run import stream

N = 80
PAGE = Path(tempfile.mkdtemp()) / "page.html"
DRAW = stream(5, "test", "natural calls")
FRAME = pd.DataFrame(DRAW.normal(size=(N, 2)), columns=["age", "dose"])
FRAME["y"] = np.abs(FRAME.age - FRAME.dose) + 0.1 * DRAW.normal(size=N)
TWO = FRAME.assign(z=1 - 2 * FRAME.y + 0.1 * DRAW.normal(size=N))
FULL = FRAME.assign(
    site=np.repeat([f"s{j}" for j in range(10)], N // 10),
    w=1.0 + np.arange(N) % 2, log_time=0.1 * FRAME.dose,
    kind=np.where(np.arange(N) % 3 == 0, "new", "old"),
    label=np.where(FRAME.y + 0.5 * DRAW.normal(size=N) > 1, "ill", "well"),
    count=DRAW.poisson(1 + FRAME.y), of=9, hits=DRAW.binomial(9, 0.2 + 0.5 * (FRAME.y > 1)),
)  # fmt: skip
HOLES = FRAME.mask((FRAME.index == 4).repeat(3).reshape(N, 3))
X, Y = FRAME[["age", "dose"]], FRAME.y
GAP = FULL.label.where(FULL.age < 2)
QUICK = {"hidden": 1, "activation": "abs", "bias": False, "start": "random", "max_seconds": 1.0}
MODEL = {"n_hidden": 1, "activation": "abs", "bias": False, "start": "random", "max_seconds": 1.0}


def recover(*args, **options):
    return oh.recover(*args, **{**QUICK, **options})


def only(*names):
    return FULL[["age", "dose", *names]]


def fitted(**options):
    return oh.OneHiddenRegressor(**MODEL, **options)


def labelled(**options):
    return oh.OneHiddenClassifier(**MODEL, **options)


WORK = {
    "frame and name": lambda: recover(FRAME, "y"),
    "frame and target=": lambda: recover(FRAME, target="y"),
    "two names": lambda: recover(TWO, ["y", "z"]),
    "target= of two": lambda: recover(TWO, target=["y", "z"]),
    "target= holds numbers": lambda: recover(X, target=Y),
    "polars": lambda: recover(pl.from_pandas(FRAME), "y"),
    "lazy polars": lambda: recover(pl.from_pandas(FRAME).lazy(), "y"),
    "pyarrow": lambda: recover(pa.Table.from_pandas(FRAME), "y"),
    "dict of columns": lambda: recover(FRAME.to_dict("list"), "y"),
    "last column of an array": lambda: recover(FRAME.to_numpy(), target=-1),
    "target of text": lambda: recover(only("label"), "label"),
    "labels apart": lambda: recover(X, FULL.label),
    "labels as bernoulli": lambda: recover(only("label"), "label", family="bernoulli"),
    "weights by name": lambda: recover(only("w", "y"), "y", sample_weight="w"),
    "weights as a column": lambda: recover(FRAME, "y", sample_weight=FULL.w),
    "groups by name": lambda: recover(only("site", "y"), "y", groups="site"),
    "groups as a column": lambda: recover(X, Y, groups=FULL.site),
    "offset by name": lambda: recover(
        only("count", "log_time"), "count", family="poisson", offset="log_time"
    ),
    "trials by name": lambda: recover(only("hits", "of"), "hits", family="binomial", trials="of"),
    "gaps dropped": lambda: recover(HOLES, "y", nulls="drop"),
    "gaps dropped, y apart": lambda: recover(HOLES[["age", "dose"]], HOLES.y, nulls="drop"),
    "a column dropped": lambda: recover(only("site", "y"), "y", drop=["site"]),
    "text as indicators": lambda: recover(only("kind", "y"), "y", one_hot=True),
    "an opened table": lambda: recover(oh.data.open(only("site", "y"), "y", groups="site")),
    "predict with the whole frame": lambda: recover(FRAME, "y").predict(FULL),
    "interval of a frame": lambda: recover(FRAME, "y").predict_interval(FULL),
    "regressor on a frame": lambda: fitted().fit(X, Y).predict(X),
    "regressor with groups": lambda: fitted().fit(X, Y, groups=FULL.site),
    "regressor with offset": lambda: fitted().fit(X, Y, offset=FULL.log_time),
    "interval of a regressor": lambda: fitted().fit(X, Y).predict_interval(X),
    "classifier of text": lambda: labelled().fit(X, FULL.label).predict(X),
    "predict from a dict": lambda: recover(X, Y).predict({"dose": [1.0], "age": [2.0]}),
    "predict from polars": lambda: recover(X, Y).predict(pl.from_pandas(FULL[["dose", "age"]])),
    "a curve of the whole frame": lambda: recover(FRAME, "y").plot(FULL),
    "a report of the inputs and y": lambda: recover(FRAME, "y").report(PAGE, FULL, FULL.y) or PAGE.stat(),
    "an activation of NumPy": lambda: recover(X, Y, activation=np.tanh),
    "a search with GridSearchCV": lambda: GridSearchCV(fitted(), {"n_hidden": [1]}, cv=2).fit(X, Y),
    "scores by group": lambda: cross_val_score(fitted(), X, Y, cv=GroupKFold(2), groups=FULL.site),
    "a pipeline with names": lambda: (
        make_pipeline(StandardScaler().set_output(transform="pandas"), fitted())
        .fit(X, Y, onehiddenregressor__groups=FULL.site)
        .predict(X)
    ),
    "a clone of a pickle": lambda: clone(pickle.loads(pickle.dumps(fitted().fit(X, Y)))).fit(X, Y),
}
REFUSED = {
    "no target": (lambda: recover(FRAME), "recover(frame, 'column')"),
    "misspelt target": (lambda: recover(FRAME, "Y"), "did you mean 'y'"),
    "target twice": (lambda: recover(FRAME, "y", target="y"), "leave one of them out"),
    "name of an array": (lambda: recover(X.to_numpy(), "y"), "choose one of 'x0', 'x1'"),
    "a formula": (lambda: recover(FRAME, "y ~ age + dose"), "name the target"),
    "a name for an estimator": (lambda: fitted().fit(FRAME, "y"), "oh.recover(frame, 'y')"),
    "misspelt groups": (lambda: recover(FULL, "y", groups="sites"), "did you mean 'site'"),
    "text features": (lambda: recover(only("kind", "y"), "y"), "one_hot=True"),
    "gaps": (lambda: recover(HOLES, "y"), "nulls='drop'"),
    "drop as text": (lambda: recover(FULL, "y", drop="site"), "write ['site']"),
    "nulls misspelt": (lambda: recover(HOLES, "y", nulls="omit"), "'refuse' or 'drop'"),
    "file without a target": (lambda: recover("table.csv"), "recover('table.csv', 'y')"),
    "file that is not there": (lambda: recover("nowhere/table.csv", "y"), "no file at"),
    "n_hidden of recover": (lambda: oh.recover(X, Y, n_hidden=1), "did you mean 'hidden'?"),
    "random_state of recover": (lambda: recover(X, Y, random_state=1), "did you mean 'seed'?"),
    "verbose of recover": (lambda: recover(X, Y, verbose=True), "did you mean 'progress'?"),
    "hidden of an estimator": (lambda: oh.OneHiddenRegressor(hidden=1), "did you mean 'n_hidden'?"),
    "seed of an estimator": (lambda: oh.OneHiddenClassifier(seed=1), "did you mean 'random_state'?"),
    "weights of recover": (lambda: recover(X, Y, weights=FULL.w), "did you mean 'sample_weight'?"),
    "groups of a few rows": (lambda: recover(X, Y, groups=[1, 2]), "one entry for each of the 80 rows"),
    "text target for a regressor": (lambda: fitted().fit(X, FULL.label), "OneHiddenClassifier"),
    "gaps for a regressor": (lambda: fitted().fit(HOLES[["age", "dose"]], Y), "column"),
    "text for a regressor": (lambda: fitted().fit(only("kind"), Y), "OneHotEncoder"),
    "a formula first": (lambda: recover("y ~ age", FRAME), "the table comes first"),
    "a formula by keyword": (lambda: recover(FRAME, formula="y ~ age"), "did you mean 'target'?"),
    "data of recover": (lambda: recover(data=FRAME, target="y"), "did you mean 'X'?"),
    "x of recover": (lambda: recover(x=X, y=Y), "did you mean 'X'?"),
    "epochs of recover": (lambda: recover(X, Y, epochs=5), "did you mean 'max_seconds'?"),
    "family of another library": (
        lambda: recover(X, Y, family="normal"),
        "did you mean 'gaussian'?",
    ),
    "family in capitals": (lambda: recover(X, Y, family="Poisson"), "did you mean 'poisson'?"),
    "activation in capitals": (lambda: recover(X, Y, activation="ReLU"), "did you mean 'relu'?"),
    "activation of another library": (lambda: recover(X, Y, activation="logistic"), "'sigmoid'"),
    "a Series for X": (lambda: recover(FRAME.age, Y), "frame[['column']]"),
    "labels with a gap": (lambda: recover(X, GAP), "y has gaps ("),
    "labels with a gap to fit": (
        lambda: labelled().fit(X, GAP),
        "y has gaps (",
    ),
    "labels as counts": (lambda: recover(X, FULL.label, family="poisson"), "labels need no family"),
    "predict without a column": (
        lambda: recover(X, Y).predict(FRAME[["age"]]),
        "it has 'age'",
    ),
    "predict one row": (lambda: recover(X, Y).predict([1.0, 2.0]), "one row as [x]"),
    "unlike lengths": (lambda: fitted().fit(X, Y[:9]), "X has 80 rows but y has 9 values"),
}
TYPED = {
    "target and groups": (("--target", "y", "--groups", "site", "--drop", "label"), None),
    "labels": (("--target", "label", "--drop", "y", "--drop", "site"), None),
    "misspelt target": (("--target", "yy"), "no target column 'yy'"),
    "misspelt groups": (("--target", "y", "--groups", "sites"), "did you mean 'site'"),
    "text feature": (("--target", "y"), "--one-hot"),
    "labels as counts": (("--target", "label", "--family", "poisson", "--drop", "site"), "need no family"),
}


def only_known(call):
    """The outcome of a call without the warnings that it may give: they have tests of their own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def test_there_are_eighty_five():
    assert len(WORK) + len(REFUSED) + len(TYPED) == 85


@pytest.mark.parametrize("name", WORK)
def test_it_works(name):
    assert only_known(WORK[name]) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_answered_in_one_sentence(name):
    call, words = REFUSED[name]
    with pytest.raises((ValueError, TypeError)) as error:
        only_known(call)
    sentence = str(error.value)
    assert words in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400


@pytest.mark.parametrize("name", TYPED)
def test_it_is_typed(name, tmp_path):
    asked, words = TYPED[name]
    only("y", "site", "label").to_csv(tmp_path / "table.csv", index=False)
    with sketched():
        done = command(
            "recover", tmp_path / "table.csv", *asked, "--hidden", 1, "--activation", "abs", "--no-bias",
            "--start", "random", "--max-seconds", 2, "--out", tmp_path / "run",
        )  # fmt: skip
    if words is None:
        assert done.returncode in (0, 1), done.stderr
        assert (tmp_path / "run" / "report.html").is_file()
    else:
        assert done.returncode == 2
        assert words in done.stderr
        assert len(done.stderr.splitlines()) <= 2
