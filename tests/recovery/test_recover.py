"""recover(): exact without noise, efficient with it, honest when the data cannot tell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onehidden as oh
from onehidden.checks import at_least
from onehidden.fit.form import Form
from onehidden.recovery import race, search
from onehidden.certify.certificate import Certificate, verdict
from onehidden.starts.restarts import random_start

EXACT = 1e-8


def teacher(name="relu", d=5, k=3, seed=0, bias=False):
    rng = np.random.default_rng(seed)
    A = np.linalg.qr(rng.standard_normal((d, k)))[0].T
    w = np.where(np.arange(k) % 2, -1.0, 1.0)
    b = 0.5 * rng.standard_normal(k) if bias else None
    return oh.OneHiddenNet(A, w, b, 0.7 if bias else 0.0, name)


def errors(found, truth):
    m = oh.match(found, truth)
    return max(m.max_error, m.output_error, m.bias_error, m.intercept_error)


@pytest.mark.parametrize(
    "name", ["relu", "tanh", "sigmoid", "erf", "squared_relu", "softplus", "gelu", "leaky_relu"]
)
def test_noise_free_samples_give_the_units_exactly(name):
    net = teacher(name)
    X = np.random.default_rng(1).standard_normal((1500, 5))
    r = oh.recover(X, net.predict(X), 3, activation=name)
    assert r.status == "exact"
    assert r.converged
    assert all(check.passed for check in r.checks)
    assert errors(r.network, net) < EXACT


@pytest.mark.parametrize("bias", [False, True])
def test_correlated_inputs_of_any_mean_are_handled(bias):
    net, rng = teacher(bias=bias, seed=2), np.random.default_rng(3)
    root = rng.standard_normal((5, 5)) + np.diag([1, 2, 4, 8, 16])
    X = rng.standard_normal((3000, 5)) @ root.T + 3 * rng.standard_normal(5)
    r = oh.recover(X, net.predict(X), 3, bias=bias)
    assert r.status == "exact"
    assert errors(r.network, net) < EXACT
    assert bias or np.all(r.network.bias == 0)


@pytest.mark.parametrize("start", ["random", "tensor", "landscape", "wide"])
def test_every_start_leads_to_the_truth(start):
    net = oh.OneHiddenNet(teacher().weights, np.ones(3))
    X = np.random.default_rng(14).standard_normal((8000, 5))
    r = oh.recover(X, net.predict(X), 3, start=start)
    assert r.status == "exact"
    assert errors(r.network, net) < EXACT


@pytest.mark.parametrize("start", ["tensor", "landscape"])
def test_a_known_law_serves_the_moments(start):
    """Logistic inputs in a rotated and shifted frame, with their exact score."""
    rng = np.random.default_rng(16)
    law = oh.laws.Affine(oh.laws.Logistic(4), np.linalg.qr(rng.standard_normal((4, 4)))[0], np.ones(4))
    net = oh.OneHiddenNet(np.linalg.qr(rng.standard_normal((4, 4)))[0][:3], np.ones(3), 0.1 * np.ones(3))
    X = law.sample(20_000, 0)
    r = oh.recover(X, net.predict(X), 3, bias=True, start=start, score=law)
    assert r.status == "exact"
    assert errors(r.network, net) < EXACT


def test_a_start_that_cannot_begin_says_why():
    net = teacher("tanh")
    X = np.random.default_rng(15).standard_normal((4000, 5))
    with pytest.raises(ValueError, match="second moment"):
        oh.recover(X, net.predict(X), 3, activation="tanh", start="landscape")


def test_width_is_found_from_the_data():
    net = teacher(k=4)
    X = np.random.default_rng(4).standard_normal((3000, 5))
    r = oh.recover(X, net.predict(X))
    assert r.network.n_hidden == 4
    assert errors(r.network, net) < EXACT
    assert "width" in [check.name for check in r.checks]


def test_noisy_answer_lies_within_its_standard_errors():
    net, rng = teacher(bias=True), np.random.default_rng(5)
    X = rng.standard_normal((6000, 5))
    y = net.predict(X)
    r = oh.recover(X, y + 0.1 * y.std() * rng.standard_normal(6000), 3, bias=True)
    assert r.status == "consistent"
    m = oh.match(r.network, net)
    found = r.network.weights[m.permutation]
    z = (found - net.weights) / r.standard_errors.weights[m.permutation]
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.6
    assert np.abs(z).max() < 4.5
    low, high = r.interval(0.95)
    assert np.all(low.weights < r.network.weights)
    assert np.all(r.network.weights < high.weights)
    assert r.noise_variance == pytest.approx(0.01 * y.var(), rel=0.1)


@pytest.mark.slow
def test_standard_errors_match_a_bootstrap_of_the_noise():
    net, rng = teacher(k=2, d=3), np.random.default_rng(6)
    X = rng.standard_normal((1500, 3))
    y, draws = net.predict(X), []
    for _ in range(120):
        r = oh.recover(X, y + 0.05 * rng.standard_normal(1500), 2, start="random")
        p = oh.match(r.network, net).permutation
        draws.append(np.concatenate([r.network.weights[p].ravel(), r.network.output[p]]))
    claimed = np.concatenate([r.standard_errors.weights[p].ravel(), r.standard_errors.output[p]])
    ratio = np.std(draws, axis=0) / claimed
    # 120 draws know a standard deviation to 6.5 %: four of those either way
    assert np.all((ratio > 0.74) & (ratio < 1.26))


@pytest.mark.parametrize(("hidden", "failed"), [(2, "one unit more"), (4, "one unit fewer")])
def test_noise_does_not_hide_a_wrong_width(hidden, failed):
    """Three tanh units under noise: two leave a gap of 69 in log-likelihood, four have one to spare."""
    rng = np.random.default_rng(3)
    net = oh.OneHiddenNet(
        rng.standard_normal((3, 4)),
        rng.choice([-1, 1.0], 3) * rng.uniform(0.5, 1.5, 3),
        0.4 * rng.standard_normal(3),
        activation="tanh",
    )
    X = rng.standard_normal((300, 4))
    y = net.predict(X) + 0.3 * rng.standard_normal(300)
    r = oh.recover(X, y, hidden, bias=True, activation="tanh")
    assert r.status in ("doubtful", "not identifiable")
    if hidden == 2:
        assert failed in [check.name for check in r.checks if not check.passed]


def test_wrong_width_is_called_doubtful_and_extra_units_unidentifiable():
    net = teacher(k=3)
    X = np.random.default_rng(7).standard_normal((1500, 5))
    y = net.predict(X)
    few = oh.recover(X, y, 2, start="random")
    assert few.status == "doubtful"
    assert not few.converged
    many = oh.recover(X, y, 4, start="random")
    assert many.status == "not identifiable"


@pytest.mark.parametrize("name", ["linear", "quadratic"])
def test_polynomial_activations_are_not_identifiable(name):
    net = teacher(name)
    X = np.random.default_rng(8).standard_normal((400, 5))
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
        oh.recover(X, np.maximum(X[:, 0], 0), 1, score=oh.laws.Laplace(3))


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
    (tmp_path / "run" / "recovery.json").write_text("{}")
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
        (GOOD, GOOD[:, 0], {"hidden": 40}, "only 50 samples"),
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


def test_what_all_starts_missed_is_found_by_further_restarts(monkeypatch):
    """Ten units in four dimensions, 150 real rows: one restart in some dozens ends at the truth."""
    problem = oh.problems.get("iris-relu-10")
    X, y, truth = problem.sample(None, 2)
    monkeypatch.setattr(race, "ladder", lambda task, on_cpu: [])
    monkeypatch.setattr(race, "_MORE", 0)
    few = oh.recover(X, y, 10, bias=True, seed=2)
    assert few.status != "exact"
    monkeypatch.setattr(race, "_MORE", 10)
    r = oh.recover(X, y, 10, bias=True, seed=2)
    assert r.status == "exact"
    assert oh.match(r.network, truth).max_error < 1e-8


def test_noise_alone_is_not_searched_again_and_again(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 3)), rng.standard_normal(80)
    monkeypatch.setattr(race, "ladder", lambda task, on_cpu: [])
    attempts = []
    monkeypatch.setattr(race, "random_start", lambda task, i: attempts.append(i) or random_start(task, i))
    assert oh.recover(X, y, 3, bias=True).status in ("doubtful", "not identifiable")
    assert attempts == [0, 1, 2, 3]


def test_a_unit_that_one_sample_sees_does_not_end_the_search():
    """Two restarts end at one local minimum with such a unit, its residuals much like noise."""
    X, y, truth = oh.problems.get("iris-relu-3").sample(None, 3)
    r = oh.recover(X, y, 3, bias=True, seed=3)
    assert r.status == "exact"
    assert oh.match(r.network, truth).max_error < 1e-8


def found(loss, turn, failed=(), status="not identifiable", origin="random restart"):
    checks = [at_least(name, 1.0, 5.0, "advice") for name in failed]
    message = "unit 2 is not determined"
    certificate = Certificate(
        teacher(), checks, status, message, loss, 0.1, None, np.ones(1), rms=0.1, freedom=3
    )
    return search.Found(certificate, origin, None, turn)


@pytest.mark.parametrize(
    ("losses", "turns", "failed", "expected"),
    [
        ((1.0, 1.2), (0, 1), ["weakest unit"], "doubtful"),
        ((1.0, 1.0001), (0, 0), ["weakest unit"], "doubtful"),  # a start and its own repair
        ((1.0, 1.0001), (0, 1), ["weakest unit"], "not identifiable"),
        ((1.0, 1.2), (0, 1), ["identifiability", "independent columns"], "not identifiable"),
    ],
)
def test_what_one_start_alone_leaves_open_is_doubtful_not_unidentifiable(losses, turns, failed, expected):
    """A unit that is loose in a poor local minimum says nothing about the data; found twice, it does."""
    tried = [found(loss, turn, failed) for loss, turn in zip(losses, turns, strict=True)]
    certificate = search._with_agreement(tried, n=100).certificate
    assert certificate.status == expected
    assert "unit 2 is not determined" in certificate.message
    assert ("did not come to one answer" in certificate.message) == (expected == "doubtful")


def test_loose_units_of_a_network_that_misses_something_make_it_doubtful():
    form = Form(teacher().activation, 5, 3)
    loose = at_least("weakest unit", 1.0, 5.0, "drop it")
    fit = at_least("fit", 0.0, 1e-4, "the network misses something")
    assert verdict([loose], False, form, ["unit 2 adds nothing to y"])[0] == "not identifiable"
    status, message = verdict([fit, loose], False, form, ["unit 2 adds nothing to y"])
    assert status == "doubtful"
    assert "misses something" in message


def test_an_answer_that_many_starts_came_to_is_the_lowest_once_a_student_was_asked():
    restarts = [found(1.0, turn) for turn in range(12)]
    assert not search._no_better(restarts, 100)
    assert search._no_better([*restarts, found(2.0, 12, origin="thinning")], 100)
    assert not search._no_better([*restarts[:8], found(2.0, 8, origin="thinning")], 100)
    assert search._no_better([*restarts[:2], found(1.0, 2, origin="wide-and-prune")], 100)
    assert not search._no_better([restarts[0], restarts[0], found(1.0, 2, origin="wide-and-prune")], 100)


def test_agreement_does_not_hang_on_whether_units_are_apart():
    """The choice of a width reads a failed agreement as too few units; units too near are too many."""
    near = [found(1.0, turn, ["units apart"]) for turn in (0, 0, 1)]
    assert not near[0].certificate.clear
    agreement = search._with_agreement(near, 100).certificate.checks[-1]
    assert agreement.name == "agreement"
    assert agreement.passed
    assert agreement.value == 2  # a start and its repair are one
