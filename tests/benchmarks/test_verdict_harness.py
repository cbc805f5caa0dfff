"""The verdict's benchmark judges by its rule: right is right, wrong is false, a told tie is allowed."""

from types import SimpleNamespace

import numpy as np
import pytest

import onehidden as oh
from benchmarks import _lanes, verdict
from benchmarks._verdict_cases import FAMILIES, NOISES, Case, catalogue
from benchmarks._verdict_data import sample
from benchmarks._verdict_score import Answer, descent_from, gaps, judge, read

SE = 1e-2


def case(truth="network", activation="relu", d=4, k=2, noise="equal", level=0.05, ask="right", **more):
    return Case(truth, activation, more.get("law", "gaussian"), d, k, noise, level, 200, ask, 3)


def answer(net, status="consistent", se=SE, **more):
    """An answer that claims this network with standard errors of that size."""
    ends = []
    for sign in (-1.96, 0, 1.96):
        shift = sign * se if sign else 0.0
        ends.append(
            SimpleNamespace(
                weights=net.weights + shift,
                output=net.output + shift,
                bias=net.bias + shift,
                intercept=net.intercept + shift,
            )
        )
    errors = SimpleNamespace(
        weights=np.full_like(net.weights, se),
        output=np.full_like(net.output, se),
        bias=np.full_like(net.bias, se),
        intercept=se,
    )
    return Answer(status, net, errors, ends[0], ends[2], loss=more.pop("loss", 1.0), **more)


def changed(net, order=None, output=None, weights=None, bias=None):
    order = np.arange(net.n_hidden) if order is None else np.asarray(order)
    return oh.OneHiddenNet(
        (net.weights if weights is None else weights)[order],
        (net.output if output is None else output)[order],
        (net.bias if bias is None else bias)[order],
        net.intercept,
        net.activation,
    )


@pytest.mark.parametrize("g", ["relu", "tanh", "softplus", "squared_relu"])
def test_the_truth_in_any_order_is_right(g):
    c = case(activation=g, k=3)
    data = sample(c)
    net = data.truth.canonical()
    assert judge(c, data, answer(net)).right
    # The same units in another order, the errors with them.
    turned = changed(net, order=[2, 0, 1])
    assert judge(c, data, answer(turned)).right
    held = gaps(answer(turned), data.truth)
    assert np.allclose(held.gap, 0, atol=1e-12)
    assert held.covered.all()


def test_a_unit_turned_around_is_the_same_for_tanh_and_another_for_relu():
    for g, same in (("tanh", True), ("relu", False)):
        c = case(activation=g)
        data = sample(c)
        net = data.truth.canonical()
        sign = np.array([-1.0, 1.0])
        turned = changed(
            net,
            weights=net.weights * sign[:, None],
            bias=net.bias * sign,
            output=net.output * (sign if g == "tanh" else 1),
        )
        verdict_ = judge(c, data, answer(turned))
        assert verdict_.right is same
        assert bool(verdict_.false) is not same
        if same:
            assert gaps(answer(turned), data.truth).covered.all()


def test_errors_follow_their_units():
    """An error that belongs to the second unit must not excuse the first."""
    c = case()
    data = sample(c)
    net = data.truth.canonical()
    off = changed(net, output=net.output + np.array([20 * SE, 0.0]))
    wide = answer(changed(off, order=[1, 0]))
    excused = SimpleNamespace(**vars(wide.errors))
    excused.output = np.array([SE, 5 * SE])  # found order: the wide error stands at the unit that is off
    assert judge(c, data, Answer("consistent", wide.network, excused, wide.lower, wide.upper)).right
    excused.output = np.array([5 * SE, SE])
    assert judge(c, data, Answer("consistent", wide.network, excused, wide.lower, wide.upper)).false


def test_wrong_answers_are_false_when_certified_and_only_then():
    c = case()
    data = sample(c)
    net = data.truth.canonical()
    crossed = changed(net, output=net.output[::-1])  # outputs of the wrong rows
    zero = oh.OneHiddenNet(np.eye(2, 4), [1e-9, 1e-9], [0.0, 0.0], 0.0)
    minus = changed(net, output=-net.output)
    for wrong in (crossed, zero, minus):
        assert judge(c, data, answer(wrong)).false
        assert not judge(c, data, answer(wrong)).right
        for status in ("approximate", "doubtful", "not identifiable"):
            assert not judge(c, data, answer(wrong, status)).false
            assert not judge(c, data, answer(wrong, status)).right


def test_wrong_units_that_are_told_are_no_false_claim():
    c = case()
    data = sample(c)
    net = data.truth.canonical()
    off = changed(net, output=net.output + np.array([1.0, 0.0]))
    assert judge(c, data, answer(off, units=("undetermined", "determined"))).false == ""
    assert judge(c, data, answer(off, units=("determined", "undetermined"))).false
    assert judge(c, data, answer(off, alternatives=(net,))).false == ""
    assert judge(c, data, answer(off, alternatives=(changed(net, output=-net.output),))).false


def test_absurdly_wide_errors_are_neither_right_nor_false():
    c = case()
    data = sample(c)
    verdict_ = judge(c, data, answer(data.truth.canonical(), se=2.0))
    assert (verdict_.right, verdict_.false, verdict_.vague) == (False, "", True)


def test_without_noise_a_millionth_is_asked():
    c = case(noise="none", level=0.0)
    data = sample(c)
    net = data.truth.canonical()
    near, far = (changed(net, output=net.output * (1 + size)) for size in (1e-8, 1e-4))
    assert judge(c, data, answer(near, "exact")).right
    assert judge(c, data, answer(far, "exact")).false


def test_other_widths_and_activations_are_false():
    c = case(k=3)
    data = sample(c)
    net = data.truth.canonical()
    fewer = changed(net, order=[0, 1])
    assert judge(c, data, answer(fewer), 0.5).false
    assert judge(case(k=3, ask="fewer"), data, answer(fewer), 0.5).false
    other = oh.OneHiddenNet(net.weights, net.output, net.bias, net.intercept, "gelu")
    assert judge(c, data, answer(other)).false
    assert judge(c, data, answer(other, alternatives=(net,))).false == ""


def test_a_unit_too_weak_to_be_seen_may_be_missed_when_the_width_is_open():
    c = case("weak", k=3, ask="open")
    data = sample(c)
    fewer = changed(data.truth.canonical(), order=[0, 1])
    edge = 6 * np.log(200)  # (d + 2) log n
    seen, unseen = (float(np.exp(-gain / 200)) for gain in (edge + 1, edge - 1))
    assert judge(c, data, answer(fewer, loss=1.0), unseen).faint
    assert judge(c, data, answer(fewer, loss=1.0), seen).false


@pytest.mark.parametrize(
    "truth", ["noise", "linear", "sine", "product", "tree", "max", "two-layer", "missing"]
)
def test_no_network_behind_it_no_certificate(truth):
    c = case(truth)
    data = sample(c)
    assert data.truth is None
    assert data.X.shape == (200, 4)
    net = oh.OneHiddenNet(np.eye(2, 4), [1.0, 1.0])
    assert judge(c, data, answer(net)).false
    assert not judge(c, data, answer(net, "approximate")).false


TIES = [
    ("clip", "relu", 2),
    ("hat", "relu", 3),
    ("three", "softplus", 3),
    ("bump", "squared_relu", 3),
    ("frame", "squared_relu", 4),
]


@pytest.mark.parametrize(("kind", "g", "k"), TIES)
def test_ties_are_real_and_must_be_named(kind, g, k):
    """All units turned together compute the same function but for a constant; one alone does not."""
    c = case(kind, g, d=3, k=k, noise="none", level=0.0)
    data = sample(c)
    net = data.truth
    parity = net.activation.reversal.parity

    def rest(turned):
        sign = np.where(turned, -1.0, 1.0)
        output = np.where(turned, parity * net.output, net.output)
        other = oh.OneHiddenNet(
            net.weights * sign[:, None], output, net.bias * sign, net.intercept, net.activation
        )
        return np.std(other.predict(data.X) - net.predict(data.X)) / np.std(net.predict(data.X))

    assert rest(np.ones(k, bool)) < 1e-12
    assert rest(np.arange(k) == 0) > 1e-2
    assert judge(c, data, answer(net.canonical(), "exact")).false
    assert not judge(c, data, answer(net.canonical(), "exact", alternatives=(net,))).false
    other = oh.OneHiddenNet(net.weights, net.output, net.bias, net.intercept, "tanh")
    assert judge(c, data, answer(net.canonical(), "exact", alternatives=(other,))).false
    assert not judge(c, data, answer(net.canonical(), "exact", units=("undetermined",) * k)).false
    assert not judge(c, data, answer(net.canonical(), "not identifiable")).false


def test_the_descent_from_the_truth_ends_below_it_and_beside_it():
    data = sample(case())
    loss, net = descent_from(data.truth, data.X, data.y)
    own = float(np.mean((data.truth.predict(data.X) - data.y) ** 2))
    assert 0.8 * own < loss < own  # 11 parameters of 200 samples take about 5 %
    assert oh.match(net, data.truth).max_error < 0.1


def test_noise_has_the_size_and_the_shape_it_is_called_by():
    for noise in NOISES[1:]:
        data = sample(case(noise=noise, level=0.2))
        assert 0.05 < data.noise / data.clean.std() < 0.35
    c = case(noise="autocorrelated", level=0.2)
    data = sample(c)
    e = data.y - data.clean
    assert np.corrcoef(e[1:], e[:-1])[0, 1] > 0.6
    data = sample(case(noise="equal", level=0.2))
    e = data.y - data.clean
    assert abs(np.corrcoef(e[1:], e[:-1])[0, 1]) < 0.3


@pytest.mark.parametrize("law", FAMILIES)
def test_rows_of_a_family_have_the_mean_of_their_network(law):
    c = Case("network", "relu", "gaussian", 3, 2, law, 1.0, 20_000, "right", 3)
    data = sample(c)
    eta = data.truth.predict(data.X)
    mean = oh.families.get(data.family).mean(eta)
    assert np.allclose(mean, data.clean, rtol=1e-12)
    # The mean of y over the rows, and along the predictor, within six standard errors; no network must fail.
    e = data.y - data.clean
    for weight in (np.ones(len(e)), eta - eta.mean()):
        assert abs(weight @ e) < 6 * np.linalg.norm(weight * e)
    assert abs((eta - eta.mean()) @ (data.y - data.y.mean())) > 6 * np.linalg.norm((eta - eta.mean()) * e)


def test_the_catalogue_is_large_enough_and_its_cases_differ():
    cases = catalogue()
    assert len(cases) == len(set(cases)) >= 1500
    assert {c.noise for c in cases} == {*NOISES, *FAMILIES}
    assert sum(c.truth == "noise" for c in cases) >= 200
    # An ask does not change the sample: the same data can be asked rightly and wrongly.
    a, b = (sample(case(ask=ask)) for ask in ("right", "more"))
    assert np.array_equal(a.y, b.y)
    assert not np.array_equal(a.y, sample(case(noise="heavy")).y)


def test_groups_keep_shapes_together_and_lose_no_cell():
    cells = [(i % 3, i) for i in range(40)]
    made = _lanes.groups(cells, lambda cell: cell[0])
    assert sorted(cell for group in made for cell in group) == sorted(cells)
    assert all(len({cell[0] for cell in group}) == 1 and len(group) <= 8 for group in made)


def test_a_recovery_of_the_library_is_read():
    r = oh.recover(*_plain(), 1, bias=True, seed=0, max_seconds=20)
    a = read(r)
    assert a.status in ("exact", "consistent", "approximate", "doubtful", "not identifiable")
    assert a.errors.weights.shape == a.network.weights.shape
    assert np.all(a.lower.weights <= a.upper.weights)


def _plain():
    data = sample(case(k=1))
    return data.X, data.y


def test_the_report_counts_what_the_rows_say():
    good, bad = case(), case(ask="more")
    row = {"status": "consistent", "right": True, "false": "", "seconds": 1.0, "failed": [], "intervals": 100,
           "covered": 95, "squares": 100.0, "missed": 3.0, "band": 0.9}  # fmt: skip
    doubt = row | {"status": "doubtful", "failed": ["fit"]}
    lines = verdict.report([(good, row), (good, doubt), (bad, row | {"right": False, "false": "why"})])
    text = "\n".join(lines)
    # Of two certificates, not of three runs.
    assert "| false of certificates | ≤ 1.5 % | 1/2 = 50.0 % (1.3–98.7) | **no** |" in text
    assert "| right answers certified, equal | ≥ 92 % | 1/2 = 50.0 % (1.3–98.7) | **no** |" in text
    assert "| coverage of bands, equal | 93.5–96.5 % | 90.0 % (90.0–90.0) | **no** |" in text
    assert "| fit | equal | 1 | 1 |" in text
    assert "- why, misses 3 for 11" in text
    assert "95.0 %" in text
