"""A black box that is a network is recovered unit by unit; one that is not is never called exact."""

import importlib.util
import json
import math
import warnings

import numpy as np
import pytest
from helpers import ROOT, check_named, worst_error
from helpers import teacher as network

import onehidden as oh
from onehidden import activations
from onehidden.machine import double
from onehidden.oracle.answers import Answers
from onehidden.oracle.box import BlackBox
from onehidden.oracle.examine import measure_box
from onehidden.oracle.lines import Kinks, distant_line
from onehidden.oracle.signs import solve_signs
from onehidden.oracle.transitions import tail_of, units_along
from onehidden.refused import Refused

# Polynomials hide their units. tests/exports compares the others with formulas written apart from ``fn``.
NAMES = [name for name in activations.names(compared=True) if not activations.get(name).polynomial]
# Rounding of fn is eps; the queries leave a condition of at most 1e5 in the tests here.
CLOSE = 1e5 * np.finfo(float).eps


def teacher(name, k, d, bias=1.0):
    return network(name, d, k, rows="uneven", output="uneven", bias=bias, intercept=0.3)


def box_of(net, dtype=float):
    g = net.activation.fn
    A, b, w = (np.asarray(v, dtype) for v in (net.weights, net.bias, net.output))
    return lambda X: g(X.astype(dtype) @ A.T + b).astype(dtype) @ w + dtype(net.intercept)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("squared_relu", "cubed_relu")])
def test_tails_are_the_lines_far_from_zero(name):
    """Finite differences far out give the degree and the jump."""
    g = activations.get(name)
    for degree in (1, 0):
        places = (far + np.arange(degree + 1) for far in (50.0, -60.0))
        right, left = (np.diff(g(z), degree)[0] / math.factorial(degree) for z in places)
        if abs(right - left) > 1e-9:
            break
    with double():
        tail = tail_of(g)
    assert tail is not None
    assert tail.degree == degree
    assert tail.jump == pytest.approx(right - left, rel=1e-9)
    assert tail.sharp == (g.homogeneity is not None)


@pytest.mark.parametrize("name", ["squared_relu", "quadratic", "linear", "exp", "softsign"])
def test_others_have_no_tails(name):
    with double():
        assert tail_of(activations.get(name)) is None


@pytest.mark.parametrize(("k", "rank"), [(6, 8), (12, 4), (24, 3)])
def test_signs_are_found_and_a_wrong_target_is_refused(k, rank):
    rng = np.random.default_rng(k)
    vectors = rng.standard_normal((50, rank)) @ rng.standard_normal((rank, k))
    signs = rng.choice([-1.0, 1.0], k)
    assert np.array_equal(solve_signs(vectors, vectors @ signs, 1e-8), signs)
    assert solve_signs(vectors, vectors @ signs + 1e-2 * vectors[:, 0], 1e-8) is None


@pytest.mark.parametrize("name", ["softplus", "gelu", "tanh"])
def test_units_along_a_distant_line_are_those_of_the_box(name):
    net = teacher(name, 10, 4)
    box = BlackBox(box_of(net), np.zeros(4), np.ones(4))
    with double():
        tail = tail_of(net.activation)
        measure_box(box, Answers.VALUE)
        line = distant_line(box, 1e5, 20.0)
        found = units_along(box, line, tail, Kinks.none(4, 1))
    assert len(found) >= 6
    rows, bias = net.weights, net.bias
    for row, offset in zip(found.weights, found.bias, strict=True):
        off = [np.linalg.norm(s * row - rows, axis=1) + np.abs(s * offset - bias) for s in (1, -1)]
        assert np.min(off) < 1e-3
    assert len(units_along(box, line, tail, Kinks.none(4, 1), most=2)) == 0


@pytest.mark.parametrize("name", NAMES)
def test_every_activation_is_given_back_with_its_width(name):
    # Of powers of ReLU typical queries show the units that they switch.
    truth = teacher(name, 4, 3, bias=0.1 if name in ("squared_relu", "cubed_relu") else 1.0)
    r = oh.recover_oracle(box_of(truth), 3, activation=name)
    assert r.status == "exact"
    assert r.network.n_hidden == 4
    assert worst_error(r.network, truth) < CLOSE
    nudged = oh.OneHiddenNet(truth.weights * (1 + 1e-9), truth.output, truth.bias + 1e-9, 0.3, name)
    assert worst_error(nudged, truth) > CLOSE


@pytest.mark.parametrize("name", ["relu", "softplus", "tanh"])
def test_an_output_that_is_constant_hides_no_unit(name):
    net = teacher(name, 5, 4)
    output = np.column_stack([net.output, np.zeros(5), net.output[::-1]])
    truth = oh.OneHiddenNet(net.weights, output, net.bias, np.array([0.3, 2.0, -0.1]), name)
    r = oh.recover_oracle(truth.predict, 4, activation=name)
    assert r.status == "exact"
    assert worst_error(r.network, truth) < CLOSE


@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic"])
def test_trained_regressors_are_given_back(activation):
    from sklearn.datasets import load_diabetes
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    X, y = load_diabetes(return_X_y=True, scaled=True)
    X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MLPRegressor(
            hidden_layer_sizes=(16,), activation=activation, solver="lbfgs", max_iter=100, random_state=0
        ).fit(X, y)
    inside = oh.OneHiddenNet(
        model.coefs_[0].T, model.coefs_[1][:, 0], model.intercepts_[0], model.intercepts_[1][0],
        {"logistic": "sigmoid"}.get(activation, activation),
    )  # fmt: skip
    r = oh.recover_oracle(model.predict, 10, 16, activation=inside.activation.name)
    assert r.status == "exact"
    assert worst_error(r.network, inside) < 1e-7
    fresh = np.random.default_rng(5).standard_normal((2000, 10))
    told = model.predict(fresh)
    assert np.max(np.abs(r.network.predict(fresh) - told)) < 1e-7 * told.std()


def test_queries_are_counted_and_repeatable():
    truth, rows = teacher("relu", 5, 4), []
    plain = box_of(truth)

    def counting(X):
        rows.append(len(X))
        return plain(X)

    r = oh.recover_oracle(counting, 4, 5, seed=3)
    assert r.queries == sum(rows)
    again = oh.recover_oracle(plain, 4, 5, seed=3)
    assert again.queries == r.queries
    assert again.network == r.network


def test_queries_survive_the_disk_and_old_runs_have_none(tmp_path):
    r = oh.recover_oracle(box_of(teacher("relu", 2, 2)), 2, 2)
    r.save(tmp_path)
    assert oh.load_recovery(tmp_path).queries == r.queries > 0
    file = tmp_path / "recovery.json"
    content = json.loads(file.read_text())
    del content["queries"]
    content["format_version"] = 2  # no digest yet
    file.write_text(json.dumps(content))
    assert oh.load_recovery(tmp_path).queries == 0


def test_inputs_of_any_unit_are_understood():
    scale, center = np.array([1e-3, 1.0, 1e3]), np.array([0.5, -20.0, 4e3])
    base = teacher("tanh", 4, 3)
    weights = base.weights / scale
    truth = oh.OneHiddenNet(weights, base.output, base.bias - weights @ center, 0.3, "tanh")
    typical = np.random.default_rng(0).standard_normal((200, 3)) * scale + center
    r = oh.recover_oracle(box_of(truth), 3, 4, activation="tanh", inputs=typical)
    assert r.status == "exact"
    assert worst_error(r.network, truth) < 1e-8  # biases of size 1e4 cost four digits


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_units_without_a_trace_are_named(name):
    base = teacher(name, 4, 3)
    weights = np.vstack([base.weights, base.weights[:1], [[0.3, 0.2, 0.1]]])
    truth = oh.OneHiddenNet(
        weights, np.append(base.output, [0.4, 0.0]), np.append(base.bias, [base.bias[0], 0.1]), 0.3, name
    )
    merged = oh.OneHiddenNet(
        base.weights, base.output + np.array([0.4, 0, 0, 0]), base.bias, base.intercept, name
    )
    r = oh.recover_oracle(box_of(truth), 3, 6, activation=name)
    assert r.status == "exact"
    assert worst_error(r.network, merged) < CLOSE
    assert check_named(r, "dead units").value == 2
    assert "dead units" in r.message


def test_more_units_than_asked_for_are_a_doubt():
    truth = teacher("tanh", 5, 3)
    r = oh.recover_oracle(box_of(truth), 3, 3, activation="tanh")
    assert r.status == "doubtful"
    assert not check_named(r, "units").passed


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_nearly_parallel_units_are_told_apart(name):
    base = teacher(name, 4, 3)
    twin = base.weights[0] + 1e-3 * np.array([1.0, -1.0, 1.0])
    truth = oh.OneHiddenNet(
        np.vstack([base.weights, twin]), np.append(base.output, 0.7), np.append(base.bias, base.bias[0]),
        0.3, name,
    )  # fmt: skip
    r = oh.recover_oracle(box_of(truth), 3, 5, activation=name)
    assert r.status == "exact"
    assert worst_error(r.network, truth) < 1e-8


def test_unit_that_typical_inputs_never_switch_is_found_beyond_them():
    base = teacher("relu", 4, 3)
    bias = base.bias.copy()
    bias[0] = 40 * np.linalg.norm(base.weights[0])
    truth = oh.OneHiddenNet(base.weights, base.output, bias, 0.3, "relu")
    r = oh.recover_oracle(box_of(truth), 3, 4)
    assert r.status == "exact"
    assert worst_error(r.network, truth) < 1e-9


def test_single_precision_is_seen_and_never_called_exact():
    truth = teacher("tanh", 4, 3)
    r = oh.recover_oracle(box_of(truth, np.float32), 3, 4, activation="tanh", max_seconds=20)
    assert r.status == "consistent"
    assert "to the rounding of y itself" in r.message
    assert 1e-9 < worst_error(r.network, truth) < 1e-4


def test_reach_is_kept():
    truth, farthest = teacher("relu", 3, 2), []
    plain = box_of(truth)

    def watching(X):
        farthest.append(np.max(np.abs(X)))
        return plain(X)

    r = oh.recover_oracle(watching, 2, 3, reach=30.0)
    assert max(farthest) <= 30.0 * (1 + 1e-15)
    assert r.status == "exact"
    assert worst_error(r.network, truth) < CLOSE


def test_one_smooth_input_falls_back_on_samples():
    truth, rows = oh.OneHiddenNet([[1.5], [-0.7]], [1.0, 0.8], [0.2, 1.0], 0.1, "tanh"), []
    plain = box_of(truth)

    def counting(X):
        rows.append(len(X))
        return plain(X)

    r = oh.recover_oracle(counting, 1, 2, activation="tanh")
    assert r.status == "exact"
    assert r.origin != "transitions along lines"
    assert r.n_samples == 4000  # what was handed to recover(); fresh queries test the answer
    assert sum(rows) == r.queries > r.n_samples + 2000
    assert check_named(r, "fresh queries").value < 1e-12
    # rounding times the condition of the fit, 1 / sqrt(smallest curvature) = 200, with a margin
    assert worst_error(r.network, truth) < CLOSE
    nudged = oh.OneHiddenNet(truth.weights * (1 + 1e-9), truth.output, truth.bias + 1e-9, 0.1, "tanh")
    assert worst_error(nudged, truth) > CLOSE
    other = oh.recover_oracle(lambda X: np.sin(3 * X[:, 0]), 1, 2, activation="tanh", max_seconds=1)
    assert other.queries > 0
    assert not other.converged


@pytest.mark.parametrize(
    "fn",
    [
        lambda X: np.sin(X @ np.array([1.0, 2.0])) + X[:, 0] ** 2,
        lambda X: np.maximum(np.maximum(X[:, 0], 0) - np.maximum(X[:, 1] + 0.2, 0) + 0.1, 0),
    ],
    ids=["smooth", "two layers"],
)
def test_what_is_no_network_is_not_certified(fn):
    try:
        certified = oh.recover_oracle(fn, 2, 3, max_seconds=2).converged
    except Refused:  # with what was seen
        certified = False
    assert not certified


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (lambda X: np.ones(len(X)), "constant"),
        (lambda X: X.T, "one number per row"),
        (lambda X: np.full(len(X), np.nan), "NaN"),
        (lambda X: 1 / 0, "ZeroDivisionError"),
        (lambda X: ["a"] * len(X), "must return numbers"),
        (lambda X: np.random.default_rng().standard_normal(len(X)), "deterministic"),
        (lambda X: np.where(X[:, 0] > -9, np.nan, np.tanh(X[:, 0])), "reach"),
        (3, "must be a function"),
    ],
)
def test_a_bad_function_is_refused_in_one_sentence(fn, words):
    with pytest.raises(ValueError, match=words) as caught:
        oh.recover_oracle(fn, 2, 2, activation="tanh")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "bad",
    [
        {"n_inputs": 0}, {"n_inputs": 2.5}, {"hidden": 0}, {"hidden": True}, {"seed": -1}, {"bias": "yes"},
        {"reach": -1.0}, {"max_seconds": 0}, {"progress": 3}, {"activation": "nope"},
        {"inputs": np.zeros((5, 3))},
    ],
)  # fmt: skip
def test_bad_choices_are_refused_before_any_query(bad):
    def never(X):
        raise AssertionError("asked")

    choices = {"n_inputs": 2, "hidden": 2, **bad}
    with pytest.raises(ValueError, match=r"\w+"):
        oh.recover_oracle(never, choices.pop("n_inputs"), choices.pop("hidden"), **choices)


def test_the_example_distils_its_network():
    path = ROOT / "examples" / "distil_sklearn.py"
    spec = importlib.util.spec_from_file_location("distil_sklearn", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    r = module.main()
    assert r.status == "exact"
    assert r.network.n_hidden == 12
