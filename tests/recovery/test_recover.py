"""recover(): exact without noise, efficient with it, honest when the data cannot tell."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EXACT, normal, teacher, worst_error

import onehidden as oh


@pytest.mark.parametrize(
    "name", ["relu", "tanh", "sigmoid", "erf", "squared_relu", "softplus", "gelu", "leaky_relu"]
)
def test_noise_free_samples_give_the_units_exactly(name):
    net, X = teacher(name), normal(1500)
    r = oh.recover(X, net.predict(X), 3, activation=name)
    assert r.status == "exact"
    assert r.converged
    assert all(check.passed for check in r.checks)
    assert all(unit.status == "determined" for unit in r.units)
    assert worst_error(r.network, net) < EXACT


@pytest.mark.parametrize("bias", [False, True])
def test_correlated_inputs_of_any_mean_are_handled(bias):
    net, rng = teacher(bias=0.5 * bias, seed=2), np.random.default_rng(3)
    root = rng.standard_normal((5, 5)) + np.diag([1, 2, 4, 8, 16])
    X = rng.standard_normal((3000, 5)) @ root.T + 3 * rng.standard_normal(5)
    r = oh.recover(X, net.predict(X), 3, bias=bias)
    assert r.status == "exact"
    assert worst_error(r.network, net) < EXACT
    assert bias or np.all(r.network.bias == 0)


@pytest.mark.parametrize("start", ["random", "tensor", "landscape", "wide"])
def test_every_start_leads_to_the_truth(start):
    net = oh.OneHiddenNet(teacher().weights, np.ones(3))
    X = np.random.default_rng(14).standard_normal((8000, 5))
    r = oh.recover(X, net.predict(X), 3, bias=False, start=start)
    assert r.status == "exact"
    assert worst_error(r.network, net) < EXACT


@pytest.mark.parametrize("start", ["tensor", "landscape"])
def test_a_known_law_serves_the_moments(start):
    """Logistic inputs in a rotated and shifted frame, with their exact score."""
    rng = np.random.default_rng(16)
    law = oh.laws.Affine(oh.laws.Logistic(4), np.linalg.qr(rng.standard_normal((4, 4)))[0], np.ones(4))
    net = oh.OneHiddenNet(np.linalg.qr(rng.standard_normal((4, 4)))[0][:3], np.ones(3), 0.1 * np.ones(3))
    X = law.sample(20_000, 0)
    r = oh.recover(X, net.predict(X), 3, bias=True, start=start, score=law)
    assert r.status == "exact"
    assert worst_error(r.network, net) < EXACT


def test_a_start_that_cannot_begin_says_why():
    net = teacher("tanh")
    X = np.random.default_rng(15).standard_normal((4000, 5))
    with pytest.raises(ValueError, match="second moment"):
        oh.recover(X, net.predict(X), 3, activation="tanh", bias=False, start="landscape")


def test_width_is_found_from_the_data():
    net = teacher(k=4)
    X = np.random.default_rng(4).standard_normal((3000, 5))
    r = oh.recover(X, net.predict(X))
    assert r.network.n_hidden == 4
    assert worst_error(r.network, net) < EXACT
    assert r.options["hidden"] is None


@pytest.fixture(scope="module")
def noisy():
    """A network, what noisy samples of it gave, and the variance of their noise."""
    net, rng = teacher(bias=0.5, intercept=0.7), np.random.default_rng(5)
    X = rng.standard_normal((6000, 5))
    y = net.predict(X)
    r = oh.recover(X, y + 0.1 * y.std() * rng.standard_normal(6000), 3, bias=True)
    return net, r, 0.01 * y.var()


def test_noisy_answer_lies_within_its_standard_errors(noisy):
    net, r, variance = noisy
    assert r.status == "consistent"
    m = oh.match(r.network, net)
    found = r.network.weights[m.permutation]
    z = (found - net.weights) / r.standard_errors.weights[m.permutation]
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.6
    assert np.abs(z).max() < 4.5
    low, high = r.interval(0.95)
    assert np.all(low.weights < r.network.weights)
    assert np.all(r.network.weights < high.weights)
    assert r.noise_variance == pytest.approx(variance, rel=0.1)


@pytest.mark.slow
def test_standard_errors_match_a_bootstrap_of_the_noise():
    net, rng = teacher(k=2, d=3), np.random.default_rng(6)
    X = rng.standard_normal((1500, 3))
    y, draws = net.predict(X), []
    for _ in range(120):
        r = oh.recover(X, y + 0.05 * rng.standard_normal(1500), 2, bias=False, start="random")
        p = oh.match(r.network, net).permutation
        draws.append(np.concatenate([r.network.weights[p].ravel(), r.network.output[p]]))
    claimed = np.concatenate([r.standard_errors.weights[p].ravel(), r.standard_errors.output[p]])
    ratio = np.std(draws, axis=0) / claimed
    # 120 draws know a standard deviation to 6.5 %: four of those either way
    assert np.all((ratio > 0.74) & (ratio < 1.26))


@pytest.mark.parametrize("hidden", [2, 4])
def test_noise_does_not_hide_a_wrong_width(hidden):
    """Three tanh units under noise: two leave a gap of 69 in log-likelihood, four have one to spare."""
    rng = np.random.default_rng(3)
    output = rng.choice([-1, 1.0], 3) * rng.uniform(0.5, 1.5, 3)
    net = teacher("tanh", 4, 3, seed=3, rows="gaussian", output=output, bias=0.4)
    X = rng.standard_normal((300, 4))
    y = net.predict(X) + 0.3 * rng.standard_normal(300)
    r = oh.recover(X, y, hidden, activation="tanh", start="random")
    assert not r.converged
    if hidden == 4:
        assert r.status in ("doubtful", "not identifiable")
    else:
        assert any(not check.passed and check.about in ("fit", "search") for check in r.checks)


def test_a_wrong_width_is_never_certified_and_extra_units_are_unidentifiable():
    net, X = teacher(k=3), normal(1500, seed=7)
    y = net.predict(X)
    few = oh.recover(X, y, 2, bias=False, start="random")
    assert few.status in ("approximate", "doubtful")
    assert not few.converged
    many = oh.recover(X, y, 4, bias=False, start="random")
    assert many.status == "not identifiable"


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_polynomial_activations_are_not_identifiable(name):
    net = teacher(name)
    X = normal(400, seed=8)
    r = oh.recover(X, net.predict(X), 3, activation=name)
    assert r.status == "not identifiable"


def test_a_spent_budget_answers_when_the_width_is_unknown_too():
    X = np.random.default_rng(17).standard_normal((600, 4))
    r = oh.recover(X, np.sin(2 * X[:, 0]), bias=True, max_seconds=0.01)
    assert r.status != "exact"


def test_options_of_any_integer_type_are_saved(tmp_path):
    net = teacher()
    X = np.random.default_rng(18).standard_normal((800, 5))
    oh.recover(X, net.predict(X), np.int8(3)).save(tmp_path / "run")
    assert oh.load_recovery(tmp_path / "run").options["hidden"] == 3


def test_tables_of_every_kind_carry_their_names():
    pyarrow = pytest.importorskip("pyarrow")
    net = teacher(k=1, d=2)
    X = np.random.default_rng(19).standard_normal((200, 2))
    columns = {"left": X[:, 0], "right": X[:, 1]}
    for table in (pyarrow.table(columns), oh.data.open(columns)):
        assert oh.recover(table, net.predict(X), 1).feature_names == ("left", "right")


def test_laws_without_a_score_are_refused():
    X = np.random.default_rng(20).standard_normal((400, 3))
    with pytest.raises(ValueError, match="Laplace has no score of order 2"):
        oh.recover(X, np.maximum(X[:, 0], 0), 1, start="tensor", score=oh.laws.Laplace(3))


def test_same_seed_gives_the_same_answer():
    net = teacher()
    X = np.random.default_rng(9).standard_normal((800, 5))
    one, again = (oh.recover(X, net.predict(X), 3, seed=4) for _ in range(2))
    assert one.network == again.network


def test_the_users_jax_precision_is_left_alone():
    assert jnp.asarray(1.0).dtype == jnp.float32
    seen = []
    net = teacher()
    X = np.random.default_rng(10).standard_normal((800, 5))
    r = oh.recover(X, net.predict(X), 3, progress=lambda record: seen.append(record.stage))
    assert seen
    assert r.network.weights.dtype == np.float64
    assert jnp.asarray(1.0).dtype == jnp.float32
    assert not jax.config.jax_enable_x64


def test_runs_are_saved_and_loaded_whole(tmp_path):
    net = teacher()
    X = np.random.default_rng(11).standard_normal((800, 5))
    r = oh.recover(X, net.predict(X), 3)
    r.save(tmp_path / "run")
    back = oh.load_recovery(tmp_path / "run")
    assert back.network == r.network
    assert back.checks == r.checks
    assert back.trace == r.trace
    np.testing.assert_array_equal(back.standard_errors.weights, r.standard_errors.weights)
    file = tmp_path / "run" / "recovery.json"
    text = file.read_text()
    file.write_text(text.replace('"n_samples": 800', '"n_samples": 900'))
    with pytest.raises(ValueError, match="does not say what was saved"):
        oh.load_recovery(tmp_path / "run")
    file.write_text(
        json.dumps(dict(reversed(json.loads(text).items())))
    )  # the order of its lines is no matter
    assert oh.load_recovery(tmp_path / "run").checks == r.checks
    older = {name: value for name, value in json.loads(text).items() if name != "digest"}
    file.write_text(
        json.dumps(older | {"format_version": 2, "family": {"name": "cauchy", "link": "identity"}})
    )
    with pytest.raises(ValueError, match="family 'cauchy' is not part of this library: upgrade"):
        oh.load_recovery(tmp_path / "run")
    file.write_text("{}")
    with pytest.raises(ValueError, match="run format"):
        oh.load_recovery(tmp_path / "run")


def test_a_spent_budget_still_returns_a_network_called_by_its_name():
    net = teacher(k=5)
    X = np.random.default_rng(12).standard_normal((2000, 5))
    r = oh.recover(X, net.predict(X), 5, max_seconds=1e-9)
    assert r.status != "consistent"
    assert r.seconds < 60
    assert r.network.n_hidden == 5


GOOD = np.random.default_rng(13).standard_normal((50, 3))


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (np.where(GOOD > 2, np.nan, GOOD), GOOD[:, 0], {}, "NaN|finite"),
        (GOOD, np.full(50, np.inf), {}, "finite"),
        (GOOD, GOOD[:40, 0], {}, "50 rows but y has 40"),
        (GOOD[:, 0], GOOD[:, 0], {}, "matrix"),
        (GOOD.astype(str), GOOD[:, 0], {}, "numbers"),
        (GOOD, None, {}, "target"),
        (GOOD, GOOD[:, 0], {"hidden": 40}, "more than 50 samples"),
        (GOOD, GOOD[:, 0], {"hidden": 0}, "at least 1"),
        (GOOD, GOOD[:, 0], {"hidden": 2.5}, "whole number"),
        (np.column_stack([GOOD, np.ones(50)]), GOOD[:, 0], {}, "constant"),
        (GOOD, GOOD[:, 0], {"sample_weight": np.ones(3)}, "one entry for each"),
        (GOOD, GOOD[:, 0], {"sample_weight": -np.ones(50)}, "not negative"),
        (GOOD, GOOD[:, 0], {"errors": "brave"}, "errors must be"),
        (GOOD, GOOD[:, 0], {"activation": "swish"}, "unknown activation"),
        (GOOD, GOOD[:, 0], {"start": "magic"}, "start must be"),
        (GOOD, GOOD[:, 0], {"score": "magic"}, "score must be a law"),
        (GOOD, GOOD[:, 0], {"score": 3}, "score must be a law"),
        (GOOD, GOOD[:, 0], {"score": oh.laws.Logistic(7)}, "7 inputs"),
        (GOOD, GOOD[:, 0], {"seed": -1}, "seed"),
        (GOOD, GOOD[:, 0], {"max_seconds": 0}, "max_seconds"),
        (GOOD, GOOD[:, 0], {"max_seconds": "x"}, "max_seconds"),
        (GOOD, GOOD[:, 0], {"bias": "yes"}, "bias must be"),
        (GOOD, GOOD[:, 0], {"progress": "x"}, "progress must be"),
        (GOOD * 1e300, GOOD[:, 0], {}, "rescale"),
        (GOOD, GOOD[:, 0] * 1e-300, {}, "rescale"),
        (GOOD, GOOD[:, 0], {"score": oh.scores.LocalLikelihood()}, "fit"),
    ],
)
def test_bad_input_is_one_sentence(X, y, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        oh.recover(X, y, **{"hidden": 2, **options})
    assert "\n" not in str(caught.value)


def test_a_unit_that_one_sample_sees_does_not_end_the_search():
    """Two restarts end at one local minimum with such a unit, its residuals much like noise."""
    X, y, truth = oh.problems.get("iris-relu-3").sample(None, 3)
    r = oh.recover(X, y, 3, seed=3)
    assert r.status == "exact"
    assert oh.match(r.network, truth).max_error < EXACT


def test_a_record_carries_a_verdict_for_every_unit(tmp_path):
    net, rng = teacher(), np.random.default_rng(21)
    X = rng.standard_normal((1500, 5))
    r = oh.recover(X, net.predict(X) + 0.1 * rng.standard_normal(1500), 3)
    assert [unit.index for unit in r.units] == [0, 1, 2]
    for unit in r.units:
        np.testing.assert_array_equal(unit.weights, r.network.weights[unit.index])
        assert unit.errors[2] == r.standard_errors.output[unit.index]
        assert 0 < unit.share < 2
    r.save(tmp_path / "run")
    back = oh.load_recovery(tmp_path / "run")
    assert [(unit.status, unit.reason) for unit in back.units] == [(u.status, u.reason) for u in r.units]
    assert back.status is oh.certify.Status(str(r.status))


def test_intervals_widen_with_the_level_and_with_few_degrees_of_freedom(noisy):
    r = replace(noisy[1], n_samples=noisy[1].freedom + 27)
    half, most = ((r.interval(level)[1].output - r.network.output)[0] for level in (0.5, 0.95))
    assert most > half > 0
    # 1.96 standard errors would be the normal law's, which 27 degrees of freedom do not bear
    assert most > 1.97 * r.standard_errors.output[0]
    with pytest.raises(ValueError, match="level"):
        r.interval(1.0)


def test_a_smooth_curve_has_the_digits_of_a_least_squares_routine():
    """Ryegrass (Inderjit, Streibig and Olofsdotter 2002): root length at doses of ferulic acid."""
    from scipy.optimize import curve_fit

    dose = np.repeat([0.01, 0.01, 0.94, 1.88, 3.75, 7.5, 15.0, 30.0], 3)
    length = np.array([
        7.58, 8.0, 8.328571429, 7.25, 7.375, 7.9625, 8.355555556, 6.914285714, 7.75, 6.871428571, 6.45,
        5.922222222, 1.925, 2.885714286, 4.233333333, 1.1875, 0.857142857, 1.057142857, 0.6875, 0.525, 0.825,
        0.25, 0.22, 0.44,
    ])  # fmt: skip
    x = np.log(dose)

    def logistic(x, low, high, slope, middle):
        return low + (high - low) / (1 + np.exp(slope * (x - middle)))

    p, C = curve_fit(logistic, x, length, [0.3, 8, 3, 1], xtol=1e-13, ftol=1e-13)
    r = oh.recover(x[:, None], length, 1, activation="sigmoid", errors="classical")
    assert r.status == "consistent"  # 24 rows, and a test of lack of fit by their replicates
    net = r.network
    found = [
        net.intercept,
        net.intercept + net.output[0],
        -net.weights[0, 0],
        -net.bias[0] / net.weights[0, 0],
    ]
    assert found == pytest.approx(p, rel=1e-6)
    middle = r.derive(lambda one: -one.bias[0] / one.weights[0, 0])
    assert float(middle.error) == pytest.approx(np.sqrt(C[3, 3]), rel=1e-4)
