"""recover() on samples as they come: weights, unequal noise, dependent columns, unknown law or activation."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EXACT, check_named
from helpers import teacher as network

import onehidden as oh
from onehidden.certify.certificate import Alternative, AlternativeKind
from onehidden.certify.units import ActivePatterns, pattern_sums


def teacher(d=4, k=2, seed=0, name="relu", bias=0.0):
    output = np.array([1.5, -1.0, 0.8])[:k]
    return network(name, d, k, seed, rows="gaussian", output=output, bias=bias, intercept=0.3)


@pytest.mark.slow
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
    assert "too few different rows" in repeated.message
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


@pytest.mark.slow
def test_unequal_spread_brings_sandwich_errors_of_the_right_size():
    net, z = teacher(), {"robust": [], "classical": []}
    for seed in range(12):
        rng = np.random.default_rng([3, seed])
        X = rng.standard_normal((1000, 4))
        y = net.predict(X) + 0.3 * (1 + np.sum(X**2, axis=1)) / 5 * rng.standard_normal(1000)
        for errors in z:
            r = oh.recover(X, y, 2, bias=False, errors=errors, start="random")
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
    net, X = teacher(bias=0.3), rng.standard_normal((600, 4))
    y = net.predict(X)
    wide = np.column_stack([X, X[:, 0] + X[:, 1]])
    r = oh.recover(wide, y, 2)
    assert r.status == "not identifiable"
    assert "x0, x1, x4" in r.message
    assert np.allclose(r.network.predict(wide), y, atol=1e-8)
    assert np.all(np.isinf(r.standard_errors.weights[:, [0, 1, 4]]))
    assert np.all(np.isfinite(r.standard_errors.weights[:, [2, 3]]))
    assert oh.recover(wide, y).network.n_hidden == 2


def test_a_one_hot_code_is_dependent_with_biases_and_not_without():
    rng = np.random.default_rng(5)
    code = np.eye(3)[rng.integers(0, 3, 900)]
    X = np.column_stack([code, rng.standard_normal((900, 2))])
    net = oh.OneHiddenNet(rng.standard_normal((2, 5)), [1.0, -1.5], activation="tanh")
    r = oh.recover(X, net.predict(X), 2, activation="tanh", bias=False)
    assert r.status == "exact"
    assert oh.match(r.network, net).max_error < 1e-6
    assert oh.recover(X, net.predict(X), 2, activation="tanh").status == "not identifiable"


def test_a_constant_target_is_a_status_with_a_reason(tmp_path):
    X = np.random.default_rng(6).standard_normal((50, 3))
    r = oh.recover(X, np.full(50, 2.5), 2)
    assert r.status == "not identifiable"
    assert "constant" in r.message
    assert np.all(r.network.predict(X) == 2.5)
    r.save(tmp_path)
    assert oh.load_recovery(tmp_path).message == r.message


def test_alternatives_under_the_names_of_version_0_2_still_load(tmp_path):
    X = np.random.default_rng(6).standard_normal((50, 3))
    other = Alternative(AlternativeKind.MORE, "3 units", 2.5, needed=float("inf"))
    replace(oh.recover(X, np.full(50, 2.5), 2), alternatives=(other,)).save(tmp_path)
    path = tmp_path / "recovery.json"
    data = json.loads(path.read_text())
    (kept,) = data["alternatives"]
    kept["deviations"], kept["kind"] = kept.pop("needed"), "one unit more"
    data["format_version"] = 2  # which has no digest
    path.write_text(json.dumps(data))
    assert oh.load_recovery(tmp_path).alternatives == (other,)


@pytest.mark.parametrize("n", [8, 20, *(pytest.param(n, marks=pytest.mark.slow) for n in (12, 40))])
def test_samples_in_the_tens_get_a_status(n):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 3))
    r = oh.recover(X, rng.standard_normal(n))
    assert r.status in ("doubtful", "not identifiable")
    assert r.message


def test_a_leaked_input_is_no_false_discovery():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((500, 3))
    r = oh.recover(X, X[:, 1], 3)
    assert r.status != "consistent"
    assert np.allclose(r.network.predict(X), X[:, 1], atol=1e-6)


def test_a_unit_no_sample_switches_is_named():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((500, 3))
    net = oh.OneHiddenNet(np.eye(3)[:2], [1.0, 1.0], [0.1, 9.0])
    r = oh.recover(X, net.predict(X), 2)
    assert r.status == "not identifiable"
    assert "kink of unit" in r.message or "parallel" in r.message


_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("relu", "gelu", "squared_relu", "erf")]


@pytest.mark.parametrize("name", ["tanh", *_SLOW])
def test_the_activation_is_chosen_from_the_data(name):
    rng = np.random.default_rng(9)
    net, X = teacher(name=name, d=2, k=1, seed=3), rng.standard_normal((600, 2))
    y = net.predict(X)
    r = oh.recover(X, y + 0.02 * y.std() * rng.standard_normal(600), 1, activation="auto")
    assert r.network.activation.name == name
    if name == "tanh":
        assert "sigmoid" in r.message


@pytest.mark.slow
def test_activations_that_noise_hides_are_reported_as_a_tie():
    rng = np.random.default_rng(10)
    net, X = teacher(name="tanh", seed=3), rng.standard_normal((300, 4))
    y = net.predict(X) + 0.5 * rng.standard_normal(300)
    r = oh.recover(X, y, 2, activation="auto")
    assert any(one.kind == "activation" for one in r.alternatives)


@pytest.mark.parametrize(
    ("truth", "asked"), [("tanh", "erf"), pytest.param("relu", "leaky_relu", marks=pytest.mark.slow)]
)
def test_a_near_relative_of_the_true_activation_is_not_certified(truth, asked):
    rng = np.random.default_rng(0)
    net = oh.OneHiddenNet(rng.standard_normal((2, 3)), [1.0, -1.0], activation=truth)
    X = rng.standard_normal((2048, 3))
    y = net.predict(X)
    y = y + 0.1 * y.std() * rng.standard_normal(2048)
    wrong, right = (oh.recover(X, y, 2, activation=name, start="random") for name in (asked, truth))
    assert right.status == "consistent"
    # an answer that hides behind noise names the truth among those it cannot be told from
    named = any(one.label == truth for one in wrong.alternatives)
    assert not wrong.converged or (named and truth in wrong.message)


def test_a_unit_seen_from_one_side_is_never_exact():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((400, 3))
    net = oh.OneHiddenNet([[1.0, 0.2, -0.3], [0.1, 1.0, 0.4]], [1.0, -0.7], [0.2, 12.0])
    r = oh.recover(X, net.predict(X), 2, intercept=False)
    assert r.status == "not identifiable"
    assert "beyond the kink" in r.message
    assert np.allclose(r.network.predict(X), net.predict(X), atol=1e-7)


def test_a_streamed_unit_seen_from_one_side_is_never_exact():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((400, 3))
    net = oh.OneHiddenNet([[1.0, 0.2, -0.3], [0.1, 1.0, 0.4]], [1.0, -0.7], [0.2, 12.0])
    source = oh.data.open((X, net.predict(X)), stream=True)
    r = oh.recover(source, hidden=2, intercept=False)
    assert r.status == "not identifiable"


@pytest.mark.slow
def test_turns_are_told_by_their_loss_where_units_outnumber_inputs():
    problem = oh.problems.get("eeg-relu-10")
    X, clean, truth = problem.sample(None, 2)
    rng = np.random.default_rng(12)
    y = clean + 0.02 * clean.std() * rng.standard_normal(len(clean))
    r = oh.recover(X, y, 10, seed=2, start="random")
    m = oh.match(r.network, truth)
    assert m.max_error < 0.1  # a unit turned around has an error near 2
    assert r.loss < np.mean((y - clean) ** 2)


def test_one_width_or_activation_tried_is_no_comparison():
    rng = np.random.default_rng(15)
    net, X = teacher(), rng.standard_normal((500, 4))
    y = net.predict(X) + 0.3 * rng.standard_normal(500)
    r = oh.recover(X, y, activation="auto", max_seconds=1e-3)
    assert not check_named(r, "activation").passed
    assert not r.converged


@pytest.mark.parametrize("seed", [318, pytest.param(376, marks=pytest.mark.slow)])
def test_two_units_that_few_samples_tell_apart_are_never_called_exact(seed):
    """Where hardly a sample tells two units of the truth apart, others fit every sample with full rank."""
    X, y, truth = oh.problems.get("iris-relu-5").sample(None, seed)
    patterns = ActivePatterns.of(truth, *pattern_sums(truth, X, y, None, None))
    assert patterns.closest()[0] <= 1
    r = oh.recover(X, y, 5, seed=1, max_seconds=5)
    assert not r.converged or oh.match(r.network, truth).max_error < EXACT
    assert r.status != "exact"


def grouped_data(groups, rows, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(groups), rows)
    X = rng.standard_normal((groups * rows, 3))
    net = oh.OneHiddenNet([[0.8, 0.6, 0], [0, -0.6, 0.8]], [2, -1.5], [0.3, -0.2], 0.3)
    y = net.predict(X) + 0.5 * rng.standard_normal(groups)[labels] + 0.5 * rng.standard_normal(len(X))
    order = rng.permutation(len(X))
    return X[order], y[order], labels[order]


def test_rows_of_a_group_share_noise_in_errors_tests_and_intervals(tmp_path):
    X, y, groups = grouped_data(30, 12)
    r = oh.recover(X, y, 2, groups=[f"site {g}" for g in groups], max_seconds=20)
    share = next(check for check in r.checks if check.name == "groups")
    assert share.value == pytest.approx(0.5, abs=0.15)
    assert "30 groups" in share.advice
    freedom = r.mean_freedom(np.eye(11))
    assert np.all((freedom > 5) & (freedom < 29))
    few = oh.recover(*grouped_data(8, 40, seed=1)[:2], 2, groups=grouped_data(8, 40, seed=1)[2])
    assert np.max(few.error_freedom.output) < 8
    lower, upper = r.predict_interval(X[:5])
    assert np.all(lower < upper)
    r.save(tmp_path / "run")
    again = oh.load_recovery(tmp_path / "run")
    assert np.array_equal(again.mean_freedom(np.eye(11)), r.mean_freedom(np.eye(11)))
    assert np.array_equal(again.error_freedom.weights, r.error_freedom.weights)


def test_bad_groups_are_refused_in_a_sentence():
    X, y, groups = grouped_data(30, 12)
    for bad, words in (
        (groups[:-1], "one entry for each of the 360 rows"),
        (np.zeros(360), "one group only"),
        (np.arange(360), "a group of its own"),
        (np.where(groups == 3, np.nan, groups), "groups has gaps .12, the first at row"),
        (groups.reshape(-1, 2), "one entry for each of the"),
    ):
        with pytest.raises(ValueError, match=words):
            oh.recover(X, y, 2, groups=bad)
        with pytest.raises(ValueError, match=words):
            oh.OneHiddenRegressor(2).fit(X, y, groups=bad)


def test_a_weight_is_so_many_rows_of_one_group_and_few_groups_allow_few_units():
    X, y, groups = grouped_data(12, 6)
    weight = 1 + np.arange(72) % 3
    at = np.repeat(np.arange(72), weight)
    known = {"activation": "tanh", "max_seconds": 60}
    weighted = oh.recover(X, y, 1, groups=groups, sample_weight=weight, **known)
    repeated = oh.recover(X[at], y[at], 1, groups=groups[at], **known)
    assert np.allclose(weighted.standard_errors.weights, repeated.standard_errors.weights, rtol=1e-4)
    assert np.allclose(weighted.error_freedom.weights, repeated.error_freedom.weights, rtol=1e-4)
    for fit in (oh.recover, lambda X, y, k, groups: oh.OneHiddenRegressor(k).fit(X, y, groups=groups)):
        with pytest.raises(ValueError, match="3 groups give no standard errors of 4 units: ask for fewer"):
            fit(X, y, 4, groups=groups % 3)


@pytest.mark.parametrize("kind", ["numbers", "weights", "counts"])
def test_the_order_of_the_rows_decides_nothing_but_the_check_of_their_order(kind):
    rng = np.random.default_rng([61, len(kind)])
    X = rng.standard_normal((200, 2))
    eta = oh.OneHiddenNet([[0.6, 0.8]], [1.2], [0.1], 0.3).predict(X)
    y = rng.poisson(np.exp(eta)) if kind == "counts" else eta + 0.3 * rng.standard_normal(200)
    more = {"sample_weight": rng.uniform(0.5, 2, 200)} if kind == "weights" else {}
    more |= {"offset": rng.uniform(0, 1, 200)} if kind == "counts" else {}
    family = "poisson" if kind == "counts" else None

    def recovered(order):
        r = oh.recover(X[order], y[order], 1, family=family, **{name: v[order] for name, v in more.items()})
        checks = [(c.name, c.value) for c in r.checks if c.name != "independent rows"]
        return r, checks

    (one, checks), (other, same) = (recovered(order) for order in (np.arange(200), rng.permutation(200)))
    assert np.allclose(one.network.weights, other.network.weights, rtol=1e-9)
    np.testing.assert_equal([name for name, _ in checks], [name for name, _ in same])
    np.testing.assert_allclose([v for _, v in checks], [v for _, v in same], rtol=1e-5, atol=1e-8)


def test_a_recovery_with_an_activation_of_ones_own_loads_with_it(tmp_path):
    def bent(t):
        return jnp.where(t > 0, t, 0.2 * t)

    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 2))
    y = np.maximum(X[:, 0], 0) + 0.3 * rng.standard_normal(80)
    r = oh.recover(X, y, hidden=1, activation=bent, start="random", max_seconds=5)
    r.save(tmp_path / "run")
    again = oh.load_recovery(tmp_path / "run", activation=bent)
    np.testing.assert_array_equal(again.network.predict(X), r.network.predict(X))
    assert [one.label for one in again.alternatives] == [one.label for one in r.alternatives]
    with pytest.raises(ValueError, match=r"'bent', which is not part of this library: give it"):
        oh.load_recovery(tmp_path / "run")
    with pytest.raises(ValueError, match=r"the activation 'bent', not 'relu'"):
        oh.load_recovery(tmp_path / "run", activation="relu")
