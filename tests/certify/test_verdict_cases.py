"""Cases that have fooled a verdict, or that it once refused although the answer was right.

The numbered ones were found one by one; the table holds more of the same kinds, drawn and judged as the
benchmark ``verdict`` draws and judges them. Each runs by itself.
"""

import numpy as np
import pytest
from scipy.special import stdtrit

import onehidden as oh
from benchmarks import verdict
from benchmarks._verdict_cases import TIES, Case
from onehidden.run import stream

SECONDS = 20.0


def certified(r):
    return r.status in ("exact", "consistent")


def reports_others(r):
    """Whether other networks, or units that are not determined, are named."""
    return len(r.alternatives) > 0 or any(unit.status != "determined" for unit in r.units)


def recover(X, y, hidden=None, **more):
    return oh.recover(X, y, hidden, **{"bias": True, "max_seconds": SECONDS, **more})


# 1. A wrong model must not disarm the test for wrong models.


def test_a_missed_product_is_not_certified_with_the_uneven_residuals_it_leaves():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 5))
    y = 3 * np.maximum(X.sum(1) / 5**0.5, 0) + X[:, 0] * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(600)
    r = oh.recover(X, y, 1, max_seconds=SECONDS)
    assert not certified(r)
    # The product has a variance of 1 in one of about 4; left_over = 0 is the answer that must fail.
    assert 0.02 < r.left_over < 1


def test_a_missed_square_is_not_certified_by_few_rows():
    """Below a hundred rows a check that cannot be evaluated is not passed."""
    rng = stream(0, "few rows")
    X = rng.standard_normal((90, 3))
    y = np.maximum(X[:, 0], 0) + 1.5 * X[:, 1] ** 2 * X[:, 2] + 0.1 * rng.standard_normal(90)
    assert not certified(recover(X, y, 1))


# 2. Another network that computes the same function must be named.


def equivalent(kind, g):
    a = np.array([0.6, 0.8])
    if kind == "clip":
        return oh.OneHiddenNet(-np.array([a, a]), [1.0, -1.0], [-0.5, 0.5], activation=g)
    if kind == "hat":
        return oh.OneHiddenNet(np.array([a, a, a]), [1.0, -2.0, 1.0], [-0.8, 0.0, 0.8], activation=g)
    angle = 2 * np.pi * np.arange(3) / 3
    return oh.OneHiddenNet(np.column_stack([np.cos(angle), np.sin(angle)]), np.ones(3), activation=g)


@pytest.mark.parametrize("kind", ["clip", "hat", "three"])
def test_an_equivalent_network_is_named_without_noise(kind):
    net = equivalent(kind, "relu")
    X = np.random.default_rng(0).standard_normal((500, 2))
    r = recover(X, net.predict(X), net.n_hidden)
    assert not certified(r) or reports_others(r)


@pytest.mark.parametrize("kind", ["clip", "hat", "three"])
def test_an_equivalent_network_is_named_by_the_black_box(kind):
    net = equivalent(kind, "relu")
    r = oh.recover_oracle(net.predict, 2, net.n_hidden, max_seconds=SECONDS)
    assert not certified(r) or reports_others(r)


def test_a_tie_of_squared_units_is_named_with_noise():
    """g(t+1) - 2 g(t) + g(t-1): the quadratic spline, reversed as a whole, is itself but for a constant."""
    a = np.array([0.6, 0.8])
    net = oh.OneHiddenNet([a, a, a], [1.0, -2.0, 1.0], [-1.0, 0.0, 1.0], activation="squared_relu")
    rng = stream(0, "squared tie")
    X = rng.standard_normal((500, 2))
    y = net.predict(X) + 0.02 * rng.standard_normal(500)
    r = recover(X, y, 3, activation="squared_relu")
    assert not certified(r) or reports_others(r)


# 3. No unit is compared with one unit.


@pytest.mark.parametrize("seed", range(3))
def test_pure_noise_is_not_certified(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((400, 15)), rng.standard_normal(400)
    assert not certified(recover(X, y, 1, seed=seed))


# 4. Units of measurement change nothing.


@pytest.mark.parametrize("scale", [5e4, pytest.param(1e-4, marks=pytest.mark.slow)])
def test_the_verdict_does_not_depend_on_the_units_of_the_inputs(scale):
    net = equivalent("three", "relu")
    rng = stream(0, "units")
    X = rng.standard_normal((300, 2))
    y = net.predict(X) + 0.05 * rng.standard_normal(300)
    plain, scaled = recover(X, y, 3), recover(scale * X, y, 3)
    assert not certified(scaled) or reports_others(scaled)
    assert plain.status == scaled.status
    assert len(plain.alternatives) == len(scaled.alternatives)
    assert [u.status for u in plain.units] == [u.status for u in scaled.units]


# 5. A stream is judged on all of its rows.


def missed_sine(n, size):
    rng = stream(0, "missed sine")
    X = rng.standard_normal((n, 3))
    net = oh.OneHiddenNet([[0.6, 0.8, 0.0], [0.0, -0.6, 0.8]], [1.5, -1.0], [0.2, -0.1])
    return X, net.predict(X) + size * np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(n)


@pytest.mark.slow
def test_a_stream_is_judged_on_all_its_rows():
    """.02 sin(3x) beside noise of .2: p = 3e-45 by all 120 000 rows, nothing to see in a sixth."""
    X, y = missed_sine(120_000, 0.02)
    r = recover(oh.data.open((X, y), stream=True), None, 2)
    assert not certified(r)
    clean = recover(oh.data.open(missed_sine(120_000, 0.0), stream=True), None, 2)
    assert certified(clean)


@pytest.mark.slow
def test_a_long_stream_is_judged_on_all_its_rows():
    X, y = missed_sine(600_000, 0.01)
    assert not certified(recover(oh.data.open((X, y), stream=True), None, 2, max_seconds=120))


# 6. Rows that depend on the one before are reported.


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 4))])
def test_dependent_rows_are_reported(seed):
    row = trial(Case("network", "relu", "gaussian", 4, 2, "autocorrelated", 0.2, 600, "right", seed))
    assert row["status"] not in ("exact", "consistent")


# 7. Two answers within a fraction of n log(loss): neither is reported alone.


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_near_ties_of_eight_units_are_reported(seed, monkeypatch):
    monkeypatch.setenv("BENCH_SECONDS", "60")
    row = verdict.trial(*Case("network", "relu", "gaussian", 16, 8, "equal", 0.1, 1305, "right", seed).cell())
    assert row["false"] == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_near_ties_of_few_rows_are_reported(seed):
    row = trial(Case("network", "relu", "gaussian", 5, 5, "equal", 0.2, 155, "right", seed))
    assert row["false"] == ""


# 8. Rivals are compared.


@pytest.mark.parametrize("activation", ["relu", pytest.param("auto", marks=pytest.mark.slow)])
def test_the_diabetes_table_has_more_than_one_explanation(activation):
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    r = recover(X, y, 1, activation=activation)
    assert not certified(r) or reports_others(r)


def test_a_linear_function_is_not_one_bent_unit():
    rng = stream(0, "linear")
    X = rng.standard_normal((400, 5))
    y = X @ np.array([1.0, -0.5, 0.3, 0.0, 0.2]) + 0.5 * rng.standard_normal(400)
    r = recover(X, y, 1)
    assert not certified(r) or reports_others(r)


# 9. Right answers are certified, under unequal noise too; weak units are spoken of.


@pytest.mark.parametrize("noise", ["equal", "unequal"])
def test_right_answers_are_certified(noise):
    rows = [trial(Case("network", "relu", "gaussian", 4, 2, noise, 0.2, 330, "right", s)) for s in range(5)]
    right = [row for row in rows if row["right"]]
    yes = [row for row in right if row["status"] == "consistent"]
    assert len(right) >= 3
    # 90 % of many are certified; of five one may be refused.
    assert len(yes) >= len(right) - 1, [row["failed"] for row in right]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_width_chosen_below_the_truth_says_what_it_could_not_see(seed):
    from benchmarks._verdict_data import sample

    case = Case("weak", "relu", "gaussian", 6, 3, "equal", 0.5, 220, "open", seed)
    data = sample(case)
    r = recover(data.X, data.y, None, seed=case.solver_seed)
    assert not certified(r) or r.network.n_hidden == 3 or "at least" in r.message + r.summary()


# 10. What stands is said to stand.


def with_a_rare_unit(k, d, n, seen, seed):
    """Units of which the last is active at that many of the rows."""
    rng = stream(seed, "rare unit")
    X = rng.standard_normal((n, d))
    A = np.linalg.qr(rng.standard_normal((d, d)))[0][:k]
    b = rng.uniform(-0.4, 0.4, k)
    t = np.sort(X @ A[-1])[::-1]
    b[-1] = -(t[seen - 1] + t[seen]) / 2
    return X, oh.OneHiddenNet(A, np.append(rng.uniform(0.7, 1.3, k - 1), 2.0), b)


def units_beside_the_rare_one(X, net, **more):
    r = recover(X, net.predict(X), net.n_hidden, **more)
    assert not certified(r)
    assert len(r.units) == net.n_hidden
    sound = [i for i, unit in enumerate(r.units) if unit.status == "determined"]
    assert len(sound) == net.n_hidden - 1
    assert all(unit.reason for unit in r.units if unit.status != "determined")
    # The determined ones are true units within their own errors, which are small; another unit is 1 away.
    gap = np.linalg.norm(r.network.weights[sound][:, None] - net.weights[None, :-1], axis=2).min(axis=1)
    error = np.linalg.norm(r.standard_errors.weights[sound], axis=1)
    assert error.max() < 1e-2
    assert np.all(gap <= 6 * error + 1e-6)


def test_units_stand_beside_one_that_few_rows_see():
    units_beside_the_rare_one(*with_a_rare_unit(3, 6, 400, 7, 0))


@pytest.mark.slow
def test_eleven_units_stand_beside_one_that_seven_rows_see():
    units_beside_the_rare_one(*with_a_rare_unit(12, 12, 3000, 7, 0), max_seconds=120)


# 11. Small samples: quantiles of t, robust errors where noise is uneven.


def test_intervals_of_few_rows_use_quantiles_of_t():
    rng = stream(0, "twenty rows")
    X = rng.standard_normal((20, 2))
    y = 2 * np.tanh(X @ [1.0, 0.5]) + 0.1 * rng.standard_normal(20)
    r = recover(X, y, 1, activation="tanh")
    lower, upper = r.interval(0.95)
    reach = (upper.output - lower.output) / 2 / r.standard_errors.output
    # 20 rows less five parameters; robust errors may leave fewer freedoms, never more. 1.96 must fail.
    assert np.all(reach >= stdtrit(15, 0.975) - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "noise"), [(20, "equal"), (100, "unequal")])
def test_intervals_of_small_samples_cover(n, noise):
    held = []
    for seed in range(150):
        rng = stream(seed, "small samples", n)
        X = rng.standard_normal((n, 2))
        size = np.exp(0.8 * X[:, 0]) if noise == "unequal" else np.ones(n)
        truth = oh.OneHiddenNet([[1.0, 0.5]], [2.0], activation="tanh")
        y = truth.predict(X) + 0.1 * size * rng.standard_normal(n)
        r = recover(X, y, 1, activation="tanh", seed=seed)
        lower, upper = r.interval(0.95)
        held.append(lower.output[0] <= 2.0 <= upper.output[0])
    # Two standard errors of 150 draws at 95 % are 3.6 %; 87 % must fail.
    assert np.mean(held) > 0.95 - 0.036


# 12. Advice does not contradict itself.


@pytest.mark.parametrize("seed", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_failed_checks_do_not_send_in_opposite_directions(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, 3))
    y = np.maximum(X[:, 0], 0) + 0.5 * rng.standard_normal(150)
    r = oh.recover(X, y, 2, bias=True)
    advice = " ".join(check.advice.lower() for check in r.checks if not check.passed)
    assert not ("fewer units" in advice and "more units" in advice)
    assert "more time" not in advice, "there was no limit"


def test_a_p_value_of_nothing_is_not_passed():
    row_case = Case("network", "relu", "gaussian", 4, 2, "unequal", 0.5, 330, "right", 0)
    from benchmarks._verdict_data import sample

    data = sample(row_case)
    r = recover(data.X, data.y, 2)
    assert not [check for check in r.checks if check.passed and check.threshold == 0 < check.value < 1e-6]


# More of the same kinds.


def trial(case):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_SECONDS", str(SECONDS))
        return verdict.trial(*case.cell())


SPLINES = [("clip", "relu"), ("hat", "relu"), ("three", "relu"), ("clip", "softplus"), ("three", "softplus"),
           ("bump", "squared_relu"), ("frame", "squared_relu")]  # fmt: skip
NOT_CERTIFIED = [
    *(Case(tie, g, "gaussian", 2, TIES[tie], "none", 0.0, 300, "right", 1) for tie, g in SPLINES),
    *(Case(tie, g, "skewed", 2, TIES[tie], "equal", 0.05, 300, "right", 2) for tie, g in SPLINES),
    *(
        Case(truth, "relu", "gaussian", 4, 2, noise, 0.2, 330, "right", 3)
        for truth in ("linear", "sine", "product", "tree", "max", "two-layer")
        for noise in ("equal", "unequal")
    ),
    *(Case("noise", "relu", "gaussian", 6, 1, noise, 1.0, 200, ask, 4)
      for noise, ask in (("equal", "open"), ("unequal", "right"), ("heavy", "right"), ("rounded", "right"))),
    *(Case("network", "relu", "gaussian", 4, 2, noise, 0.2, 330, ask, 5)
      for noise in ("equal", "unequal") for ask in ("fewer", "more", "other")),
    # Another minimum, far behind by the sum of squares and not row by row, has the truth's units.
    Case("bump", "squared_relu", "skewed", 2, 3, "unequal", 0.05, 100, "right", 1),
    Case("clip", "softplus", "gaussian", 3, 2, "unequal", 0.05, 330, "right", 1),
    Case("two-layer", "relu", "clusters", 6, 3, "heavy", 0.2, 220, "right", 1),
]  # fmt: skip
CERTIFIED = [
    *(Case("network", "relu", law, 4, 2, "equal", 0.2, 330, "right", 6)
      for law in ("skewed", "clusters", "heavy")),
    Case("network", "relu", "gaussian", 4, 2, "heavy", 0.2, 330, "right", 6),
    Case("network", "relu", "gaussian", 4, 2, "none", 0.0, 330, "right", 6),
    Case("network", "tanh", "gaussian", 3, 2, "unequal", 0.2, 330, "right", 6),
    Case("network", "relu", "gaussian", 4, 2, "equal", 0.2, 330, "open", 6),
]  # fmt: skip


def named(case):
    return "-".join(
        str(word).replace(" ", "-") for word in (case.truth, case.activation, case.noise, case.ask)
    )


# Functions that are no network keep a search busy to its limit.
LONG = ("product", "two-layer", "max", "sine", "tree")
# Of every kind one case is quick; these are the same, of another function, noise or width.
LONGER = {
    "three-softplus-equal-right", "clip-softplus-equal-right", "clip-softplus-unequal-right",
    "bump-squared_relu-equal-right", "bump-squared_relu-unequal-right", "frame-squared_relu-equal-right",
    "clip-relu-equal-right", "noise-relu-equal-open", "linear-relu-equal-right",
    "network-relu-equal-fewer", "network-relu-equal-other", "network-relu-equal-more",
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(c, marks=pytest.mark.slow if c.truth in LONG or named(c) in LONGER else ())
        for c in NOT_CERTIFIED
    ],
    ids=map(named, NOT_CERTIFIED),
)
def test_no_false_certificate(case):
    row = trial(case)
    assert row["false"] == "", row["message"]


@pytest.mark.slow
def test_right_answers_of_many_kinds_are_certified():
    rows = [trial(case) for case in CERTIFIED]
    assert all(row["right"] for row in rows)
    refused = [row["failed"] for row in rows if row["status"] not in ("exact", "consistent")]
    # Checks at 1 % and ties of minima refuse up to one in ten: of seven two may be.
    assert len(refused) <= 2, refused
