"""Labels alone determine the units that bend the decision boundary, up to one factor."""

import numpy as np
import pytest
from helpers import check_named, one_sentence, worst_error

import onehidden as oh


def random_net(d, k, seed):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((k, d)) / np.sqrt(k)
    output, bias = rng.standard_normal(k), 0.3 * rng.standard_normal(k)
    return oh.OneHiddenNet(weights, output, bias, 0.3 * rng.standard_normal())


def labels(net):
    return lambda X: (np.maximum(X @ net.weights.T + net.bias, 0) @ net.output + net.intercept > 0) * 1.0


def of_largest_output_one(net):
    """The same decision boundary, rows of length one."""
    net = net.canonical()
    scale = float(np.max(np.abs(net.output)))
    return oh.OneHiddenNet(net.weights, net.output / scale, net.bias, net.intercept / scale)


@pytest.mark.parametrize(
    ("d", "k", "seed"), [(8, 4, 1), (20, 3, 6), (64, 2, 12), pytest.param(512, 2, 7, marks=pytest.mark.slow)]
)
def test_a_network_whose_units_all_bend_the_boundary_is_given_back_up_to_one_factor(d, k, seed):
    net = random_net(d, k, seed)
    r = oh.recover_oracle(labels(net), d)
    assert r.status == "consistent", r.message
    assert "one positive factor" in r.message
    assert worst_error(of_largest_output_one(r.network), of_largest_output_one(net)) < 1e-9
    told = check_named(r, "attainable error").value
    assert worst_error(of_largest_output_one(r.network), of_largest_output_one(net)) < 100 * told
    assert r.queries <= 2**19
    assert check_named(r, "fresh queries").value == 0


@pytest.mark.slow
def test_a_trained_classifier_of_four_units_is_given_back_from_what_it_predicts():
    import warnings

    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    X, digit = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((4,), max_iter=100, random_state=0).fit(X / 16, (digit >= 5).astype(int))
    inside = oh.OneHiddenNet(
        model.coefs_[0].T, model.coefs_[1][:, 0], model.intercepts_[0], model.intercepts_[1][0]
    )
    r = oh.recover_oracle(model.predict, 64, answers="label")
    assert r.status == "consistent", r.message
    assert worst_error(of_largest_output_one(r.network), of_largest_output_one(inside)) < 1e-6
    assert r.queries <= 2**19


def test_units_that_the_boundary_never_crosses_are_told_and_rows_of_the_others_found():
    net = random_net(20, 4, 0)  # its unit 0 is active all along the boundary
    r = oh.recover_oracle(labels(net), 20)
    assert r.status == "not identifiable"
    assert "never crossed" in r.message
    assert r.network.n_hidden == 3
    assert r.network.has_linear
    assert check_named(r, "units not crossed").value == 1
    found = r.network.weights / np.linalg.norm(r.network.weights, axis=1)[:, None]
    true = net.weights / np.linalg.norm(net.weights, axis=1)[:, None]
    best = np.max(np.abs(found @ true.T), axis=0)
    assert np.all(1 - best[1:] < 1e-9)
    assert best[0] < 0.999
    X = np.random.default_rng(5).standard_normal((2000, 20))
    assert np.array_equal(r.predict(X) > 0, labels(net)(X) == 1)


def test_outputs_of_two_signs_leave_a_row_open_that_another_network_of_the_same_labels_has_otherwise():
    rng = np.random.default_rng(3)
    rows, bias = rng.standard_normal((2, 12)), np.array([0.2, -0.1])
    net = oh.OneHiddenNet(rows, [1.0, -0.7], bias, -0.3)
    # f > 0 where f_1 = <a_1, x> + b_1 + c > 0 and f_12 = f_1 - 0.7 (<a_2, x> + b_2) > 0; so is 3 f_12 > 0.
    one = np.append(rows[0], bias[0] - 0.3)
    both = one - 0.7 * np.append(rows[1], bias[1])
    other = one - 3 * both  # f_1 - relu(other) = min(f_1, 3 f_12)
    twin = oh.OneHiddenNet([rows[0], other[:-1]], [1.0, -1.0], [bias[0], other[-1]], -0.3)
    X = rng.standard_normal((20_000, 12))
    assert np.array_equal(labels(net)(X), labels(twin)(X))
    assert 0.1 < labels(net)(X).mean() < 0.9
    cosine = rows[1] @ other[:-1] / np.linalg.norm(rows[1]) / np.linalg.norm(other[:-1])
    assert abs(cosine) < 0.99
    r = oh.recover_oracle(labels(net), 12)
    assert r.status == "not identifiable"
    assert r.network.n_hidden == 1  # no unit that the box does not have: what is never crossed is linear
    assert r.network.has_linear
    assert np.array_equal(r.predict(X) > 0, labels(net)(X) == 1)


def test_a_row_seen_in_one_bend_only_is_left_open():
    r = oh.recover_oracle(labels(random_net(64, 2, 7)), 64)
    assert r.status == "not identifiable"
    assert "in one place only" in r.message
    assert not check_named(r, "attainable error").passed


@pytest.mark.parametrize(
    ("fn", "choices", "words"),
    [
        (lambda X: (X[:, 0] > 0.1) * 1.0, {}, "flat"),
        (lambda X: (X[:, 0] > 0) * 1.0 + (X[:, 1] > 0), {"answers": "label"}, "two classes"),
        (lambda X: np.ones(len(X)), {"answers": "label"}, "constant"),
        (lambda X: (np.sum(X**2, axis=1) > 6) * 1.0, {}, "curved"),
        (lambda X: (X[:, 0] > 0.1) * 1.0, {"activation": "tanh"}, "relu"),
        (lambda X: np.random.default_rng().integers(0, 2, len(X)), {}, "different labels"),
        (lambda X: (X[:, 0] > 0.1) * 1.0, {"max_queries": 300}, "before a unit was found"),
    ],
)
def test_labels_that_tell_nothing_are_refused_in_one_sentence(fn, choices, words):
    with pytest.raises(ValueError, match=r"\w") as caught:
        oh.recover_oracle(fn, 6, **choices)
    one_sentence(caught, words)
