"""Estimators in words: the sentences of ``recover``, a warning of their own, arguments by other names."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import onehidden as oh
from onehidden.recovery.estimating import announce
from onehidden.run import stream

DRAW = stream(4, "test", "estimator words")
X = DRAW.normal(size=(60, 2))
Y = np.sin(3 * X[:, 0]) * X[:, 1]
LABELS = np.where(Y > 0, "a", "b")
FRAME = pd.DataFrame(X, columns=["a", "b"])
HOLES = pd.DataFrame(np.where(np.arange(60)[:, None] == 3, np.nan, X), columns=["a", "b"])


@pytest.mark.parametrize(
    ("kind", "inputs", "target", "words"),
    [
        ("Regressor", HOLES, Y, "1 of 60 rows .* hold NaN or infinity in columns 'a'"),
        ("Classifier", HOLES, LABELS, "1 of 60 rows .* hold NaN or infinity in columns 'a'"),
        ("Regressor", FRAME.assign(kind="u"), Y, "'kind' is of type .*: make columns of categories"),
        ("Regressor", X, LABELS, "labels are for OneHiddenClassifier"),
        ("Regressor", X, np.where(Y > 1, np.nan, Y), "y must hold finite numbers only"),
        ("Regressor", X, Y[:5], "X has 60 rows but y has 5 values"),
        ("Classifier", X, LABELS[:5], "X has 60 rows but y has 5 values"),
        ("Regressor", X[:, 0], Y, "use X.reshape"),
        (
            "Classifier",
            pd.DataFrame(X),
            pd.Series(LABELS, index=range(1, 61)),
            "the index of y has other labels",
        ),
    ],
)
def test_estimators_refuse_in_the_sentences_of_recover(kind, inputs, target, words):
    with pytest.raises(ValueError, match=words) as error:
        getattr(oh, f"OneHidden{kind}")().fit(inputs, target)
    assert "\n" not in str(error.value)


def test_rows_to_predict_are_refused_so_too():
    model = oh.OneHiddenRegressor(n_hidden=1, start="random").fit(
        pd.DataFrame(X, columns=["a", "b"]), X[:, 0]
    )
    with pytest.raises(ValueError, match="1 of 60 rows"):
        model.predict(HOLES)


def test_a_search_warns_once_with_a_class_of_its_own(capsys):
    assert issubclass(oh.RecoveryWarning, ConvergenceWarning)
    model = oh.OneHiddenRegressor(start="random", max_seconds=0.5)
    with warnings.catch_warnings():
        warnings.resetwarnings()
        shown = []
        warnings.showwarning = lambda message, *rest, **more: shown.append((message, rest[1]))
        search = GridSearchCV(model, {"n_hidden": [1, 2]}, cv=2).fit(X, Y)
    found = [where for message, where in shown if isinstance(message, oh.RecoveryWarning)]
    assert found == [__file__], shown
    assert search.best_estimator_.notes_


def test_the_processes_of_a_search_do_not_warn():
    """Whose frames end in the loop of a worker, in place of a line of the caller."""
    scope = {"__name__": "joblib.externals.loky.process_executor", "announce": announce}
    exec("def work(text): announce(text)", scope)
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        scope["work"]("said by a worker")
        assert not caught
        announce("said here")
    assert [str(one.message) for one in caught] == ["said here"]


def test_rows_that_only_leave_a_linear_function_open_are_no_reason_to_warn():
    rows = DRAW.normal(size=(400, 2))
    y = rows[:, 0] + 0.5 * DRAW.normal(size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error", oh.RecoveryWarning)
        model = oh.OneHiddenRegressor(n_hidden=1, start="random").fit(rows, y)
    assert model.recovery_.status == "not identifiable"
    assert model.notes_[0].startswith("the answer is not identifiable")


@pytest.mark.parametrize(
    ("function", "name", "meant"),
    [
        (oh.recover, "n_hidden", "hidden"), (oh.recover, "random_state", "seed"),
        (oh.recover, "verbose", "progress"), (oh.recover, "weights", "sample_weight"),
        (oh.recover, "activatoin", "activation"),
        (oh.recover_oracle, "n_hidden", "hidden"), (oh.OneHiddenRegressor, "hidden", "n_hidden"),
        (oh.OneHiddenRegressor, "seed", "random_state"), (oh.OneHiddenClassifier, "progress", "verbose"),
        (oh.OneHiddenRegressor, "timeout", "max_seconds"),
    ],
)  # fmt: skip
def test_an_argument_by_another_name_is_answered_with_the_one_meant(function, name, meant):
    with pytest.raises(TypeError, match=f"has no argument '{name}': did you mean '{meant}'\\?"):
        function(**{name: 1})


def test_the_name_of_the_target_is_kept():
    model = oh.OneHiddenRegressor(n_hidden=1, activation="abs", bias=False)
    model.fit(FRAME, pd.Series(np.abs(X[:, 0]), name="growth"))
    assert model.recovery_.options["target"] == "growth"
    assert "growth" in str(model.recovery_)
