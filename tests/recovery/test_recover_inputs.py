"""recover() on samples as they come: weights, unequal noise, dependent columns, unknown law or activation."""

from dataclasses import replace

import numpy as np
import pytest

import onehidden as oh
from onehidden.certify.patterns import samples_apart
from onehidden.certify.halves import Halves, half_sample_checks
from onehidden.fit.input_model import InputModel, looks_gaussian
from onehidden.starts.candidate import Task, complete, search_form
from onehidden.starts.orientation import orient
from onehidden.starts.turns import other_orientations


def teacher(d=4, k=2, seed=0, name="relu", bias=False):
    rng = np.random.default_rng(seed)
    b = rng.uniform(-0.5, 0.5, k) if bias else None
    return oh.OneHiddenNet(rng.standard_normal((k, d)), np.array([1.5, -1.0, 0.8])[:k], b, 0.3, name)


def check_named(r, name):
    return next(check for check in r.checks if check.name == name)


def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    net, X = teacher(), rng.standard_normal((400, 4))
    y = net.predict(X) + 0.1 * rng.standard_normal(400)
    count = rng.integers(0, 4, 400)
    weighted = oh.recover(X, y, 2, sample_weight=count, start="random")
    repeated = oh.recover(np.repeat(X, count, axis=0), np.repeat(y, count), 2, start="random")
    plain = oh.recover(X, y, 2)
    assert np.allclose(weighted.network.weights, repeated.network.weights, atol=1e-7)
    assert not np.allclose(weighted.network.weights, plain.network.weights, atol=1e-4)
    assert "repeated rows" in repeated.message
    assert repeated.status == "doubtful"


def test_known_noise_levels_as_weights_shrink_the_errors():
    rng = np.random.default_rng(2)
    net, X = teacher(), rng.standard_normal((3000, 4))
    level = np.where(X[:, 0] > 0, 1.0, 0.05)
    y = net.predict(X) + level * rng.standard_normal(3000)
    weighted = oh.recover(X, y, 2, sample_weight=level**-2)
    plain = oh.recover(X, y, 2)
    assert weighted.status == "consistent"
    assert np.max(weighted.standard_errors.weights) < 0.7 * np.max(plain.standard_errors.weights)
    z = (weighted.network.weights - net.canonical().weights) / weighted.standard_errors.weights
    assert np.max(np.abs(z)) < 5


def test_unequal_spread_brings_sandwich_errors_of_the_right_size():
    net, z = teacher(), {"robust": [], "classical": []}
    for seed in range(12):
        rng = np.random.default_rng([3, seed])
        X = rng.standard_normal((1000, 4))
        y = net.predict(X) + 0.3 * (1 + np.sum(X**2, axis=1)) / 5 * rng.standard_normal(1000)
        for errors in z:
            r = oh.recover(X, y, 2, errors=errors, start="random")
            difference = r.network.weights - net.canonical().weights
            z[errors].append(difference / r.standard_errors.weights)
    robust, classical = (np.mean(np.square(z[kind])) for kind in ("robust", "classical"))
    # 96 z-values, at least 36 of them independent: mean square 1 within 4 standard errors sqrt(2/36).
    assert abs(robust - 1) < 4 * np.sqrt(2 / 36)
    assert classical > 1.25 * robust
    assert check_named(r, "equal spread").passed is False
    assert oh.recover(X, y, 2).status == "consistent"
    assert "sandwich" in check_named(oh.recover(X, y, 2), "equal spread").advice


def test_dependent_columns_are_named_and_the_fit_is_kept():
    rng = np.random.default_rng(4)
    net, X = teacher(bias=True), rng.standard_normal((600, 4))
    y = net.predict(X)
    wide = np.column_stack([X, X[:, 0] + X[:, 1]])
    r = oh.recover(wide, y, 2, bias=True)
    assert r.status == "not identifiable"
    assert "x0, x1, x4" in r.message
    assert np.allclose(r.network.predict(wide), y, atol=1e-8)
    assert np.all(np.isinf(r.standard_errors.weights[:, [0, 1, 4]]))
    assert np.all(np.isfinite(r.standard_errors.weights[:, [2, 3]]))
    assert oh.recover(wide, y, bias=True).network.n_hidden == 2


def test_a_one_hot_code_is_dependent_with_biases_and_not_without():
    rng = np.random.default_rng(5)
    code = np.eye(3)[rng.integers(0, 3, 900)]
    X = np.column_stack([code, rng.standard_normal((900, 2))])
    net = oh.OneHiddenNet(rng.standard_normal((2, 5)), [1.0, -1.5], activation="tanh")
    r = oh.recover(X, net.predict(X), 2, activation="tanh")
    assert r.status == "exact"
    assert oh.match(r.network, net).max_error < 1e-6
    assert oh.recover(X, net.predict(X), 2, activation="tanh", bias=True).status == "not identifiable"


def test_a_constant_target_is_a_status_with_a_reason(tmp_path):
    X = np.random.default_rng(6).standard_normal((50, 3))
    r = oh.recover(X, np.full(50, 2.5), 2)
    assert r.status == "not identifiable"
    assert "constant" in r.message
    assert np.all(r.network.predict(X) == 2.5)
    r.save(tmp_path)
    assert oh.load_recovery(tmp_path).message == r.message


@pytest.mark.parametrize("n", [8, 12, 20, 40])
def test_samples_in_the_tens_get_a_status(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 3))
    r = oh.recover(X, rng.standard_normal(n), bias=True)
    assert r.status in ("doubtful", "not identifiable")
    assert r.message


def test_a_leaked_input_is_no_false_discovery():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((500, 3))
    r = oh.recover(X, X[:, 1], 3, bias=True)
    assert r.status != "consistent"
    assert np.allclose(r.network.predict(X), X[:, 1], atol=1e-6)


def test_a_unit_no_sample_switches_is_named():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((500, 3))
    net = oh.OneHiddenNet(np.eye(3)[:2], [1.0, 1.0], [0.1, 9.0])
    r = oh.recover(X, net.predict(X), 2, bias=True)
    assert r.status == "not identifiable"
    assert "kink of unit" in r.message or "parallel" in r.message


_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("relu", "gelu", "squared_relu", "erf")]


@pytest.mark.parametrize("name", ["tanh", *_SLOW])
def test_the_activation_is_chosen_from_the_data(name):
    rng = np.random.default_rng(9)
    net, X = teacher(name=name, seed=3), rng.standard_normal((1500, 4))
    y = net.predict(X)
    r = oh.recover(X, y + 0.02 * y.std() * rng.standard_normal(1500), 2, activation="auto")
    assert r.network.activation.name == name
    assert check_named(r, "activation").value > 6
    if name == "tanh":
        assert "sigmoid" in check_named(r, "activation").advice


@pytest.mark.slow
def test_activations_that_noise_hides_are_reported_as_a_tie():
    rng = np.random.default_rng(10)
    net, X = teacher(name="tanh", seed=3), rng.standard_normal((300, 4))
    y = net.predict(X) + 0.5 * rng.standard_normal(300)
    r = oh.recover(X, y, 2, activation="auto")
    check = check_named(r, "activation")
    assert not check.passed
    assert r.status == "doubtful"


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        (oh.laws.Gaussian(np.zeros(3), np.eye(3)), "Gaussian"),
        (oh.laws.Logistic(3), "IndependentScore"),
        (
            oh.laws.GaussianMixture([0.5, 0.5], [2 * np.ones(3), -2 * np.ones(3)], [np.eye(3)] * 2),
            "MixtureScore",
        ),
    ],
)
def test_the_input_model_follows_the_sample(law, kind):
    X = law.sample(6000, 1)
    X = X - X.mean(axis=0)
    Z = X @ np.linalg.inv(np.linalg.cholesky(np.cov(X.T))).T
    model = InputModel(Z, "auto", 0)
    assert model.name == "not needed"
    score = model.score()
    assert model.name.startswith(kind)
    assert (score is None) == (kind == "Gaussian")
    assert looks_gaussian(Z, 0) == (kind == "Gaussian")
    assert bool(model.checks) == (kind != "Gaussian")


def test_half_sample_checks_tell_a_sound_fit_from_one_that_follows_noise():
    sound = half_sample_checks(Halves(0.05, 1.05, 0.01), variance=1.0, freedom=20, n=1000)
    wild = half_sample_checks(Halves(1.5, 1.9, 0.01), variance=1.0, freedom=20, n=1000)
    assert all(check.passed for check in sound)
    assert not any(check.passed for check in wild)


@pytest.mark.parametrize(("truth", "asked"), [("tanh", "erf"), ("relu", "leaky_relu")])
def test_a_near_relative_of_the_true_activation_is_not_certified(truth, asked):
    rng = np.random.default_rng(0)
    net = oh.OneHiddenNet(rng.standard_normal((3, 6)), [1.0, -1.0, 0.8], activation=truth)
    X = rng.standard_normal((4096, 6))
    y = net.predict(X)
    y = y + 0.1 * y.std() * rng.standard_normal(4096)
    wrong, right = (oh.recover(X, y, 3, activation=name, start="random") for name in (asked, truth))
    assert right.status == "consistent"
    assert check_named(right, "rival activation").passed
    assert wrong.status == "doubtful"
    assert truth in wrong.message


def test_a_unit_seen_from_one_side_is_never_exact():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((400, 3))
    net = oh.OneHiddenNet([[1.0, 0.2, -0.3], [0.1, 1.0, 0.4]], [1.0, -0.7], [0.2, 12.0])
    r = oh.recover(X, net.predict(X), 2, bias=True, intercept=False, start="random")
    assert r.status == "not identifiable"
    assert "beyond the kink" in r.message
    assert np.allclose(r.network.predict(X), net.predict(X), atol=1e-7)


@pytest.mark.slow
def test_turns_are_told_by_their_loss_where_units_outnumber_inputs():
    problem = oh.problems.get("eeg-relu-10")
    X, clean, truth = problem.sample(None, 2)
    rng = np.random.default_rng(12)
    y = clean + 0.02 * clean.std() * rng.standard_normal(len(clean))
    r = oh.recover(X, y, 10, bias=True, seed=2, start="random")
    assert check_named(r, "orientation").value > 6
    m = oh.match(r.network, truth)
    assert m.max_error < 0.1  # a unit turned around has an error near 2
    assert r.loss < np.mean((y - clean) ** 2)


def test_orientations_are_found_where_units_outnumber_inputs():
    rng = np.random.default_rng(14)
    net = oh.OneHiddenNet(rng.standard_normal((6, 2)), rng.choice([-1.0, 1.0], 6), rng.uniform(-1, 1, 6))
    X = rng.standard_normal((2000, 2))
    task = Task(X, net.predict(X), net.activation, 6, True, 0)
    form = search_form(net.activation, 2, 6, True)
    turns = np.where(rng.random(6) < 0.5, -1.0, 1.0)
    start = complete(task, form, net.weights * turns[:, None], net.bias * turns)
    m = oh.match(orient(form, start), net)
    assert m.max_error < 1e-6
    assert m.output_error < 1e-4  # a trace of ridge
    others = other_orientations(replace(task, y=task.y + 0.5 * rng.standard_normal(2000)), net, 4)
    assert others
    assert all(oh.match(other, net).max_error > 0.1 for other in others)


def test_a_streamed_unit_seen_from_one_side_is_never_exact():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((400, 3))
    net = oh.OneHiddenNet([[1.0, 0.2, -0.3], [0.1, 1.0, 0.4]], [1.0, -0.7], [0.2, 12.0])
    source = oh.data.open((X, net.predict(X)), stream=True)
    r = oh.recover(source, hidden=2, bias=True, intercept=False, start="random")
    assert r.status == "not identifiable"


def test_one_width_or_activation_tried_is_no_comparison():
    rng = np.random.default_rng(15)
    net, X = teacher(), rng.standard_normal((500, 4))
    y = net.predict(X) + 0.3 * rng.standard_normal(500)
    r = oh.recover(X, y, activation="auto", max_seconds=1e-3)
    assert not check_named(r, "activation").passed
    assert not check_named(r, "width").passed
    assert r.status != "consistent"


def test_samples_apart_counts_where_two_patterns_differ():
    t = np.random.default_rng(0).standard_normal((500, 4))
    t[:, 2] = -t[:, 0]  # on exactly where the first is off ...
    t[:7, 2] *= -1  # ... but for seven samples
    brute = {}
    on = np.column_stack([t > 0, np.ones(500, bool)])
    for i in range(5):
        for j in range(i + 1, 5):
            differ = int(np.sum(on[:, i] != on[:, j]))
            brute[i, j] = min(differ, 500 - differ)
    assert samples_apart(t) == (7, (0, 2))
    assert min(brute.values()) == brute[0, 2] == 7


def test_two_units_that_few_samples_tell_apart_are_never_called_exact():
    # At this truth one sample tells units 2 and 4 apart; from some seeds the descent ends at other units
    # that fit every sample with a Jacobian of full rank.
    problem = oh.problems.get("iris-relu-5")
    X, y, truth = problem.sample(None, 8)
    assert samples_apart(X @ truth.weights.T + truth.bias) == (1, (1, 3))
    r = oh.recover(X, y, 5, bias=True, seed=1)
    assert r.loss < 1e-25
    assert oh.match(r.network, truth).max_error > 0.01
    assert r.status == "not identifiable"
    assert not check_named(r, "units apart").passed
