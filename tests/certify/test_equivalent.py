"""Sets of units that can be reversed together, and lattices on which kinks can move."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from helpers import planted

from onehidden import OneHiddenNet
from onehidden.certify.equivalent import (
    EquivalentSets,
    equivalent_sets,
    reversal_columns,
    reversed_units,
)
from onehidden.certify.local_fit import local_fit
from onehidden.certify.replicates import lattice_checks
from onehidden.certify.subset_sums import zero_subset_sums
from onehidden.run import stream

EPS = np.finfo(float).eps


def clip() -> OneHiddenNet:
    a = np.array([0.6, 0.8])
    return OneHiddenNet(-np.array([a, a]), [1.0, -1.0], [-0.5, 0.5])


def hat(d: int = 3) -> OneHiddenNet:
    a = stream(5, "hat").standard_normal(d)
    return OneHiddenNet(np.array([a, a, a]), [1.0, -2.0, 1.0], [1.0, 0.0, -1.0], 0.3)


def star() -> OneHiddenNet:
    angle = 2 * np.pi / 3 * np.arange(3)
    return OneHiddenNet(np.column_stack([np.cos(angle), np.sin(angle)]), np.ones(3), [0.1, 0.2, -0.4])


def squared_tie() -> OneHiddenNet:
    """Second differences of t² are a constant."""
    a = np.array([0.6, -0.8])
    return OneHiddenNet(
        np.array([a, a, a]), [1.0, -2.0, 1.0], [1.0, 0.0, -1.0], 0.5, activation="squared_relu"
    )


def cubed_tie() -> OneHiddenNet:
    """Third differences of t³ are a constant."""
    a = np.array([0.6, -0.8])
    return OneHiddenNet(
        np.array([a] * 4), [1.0, -3.0, 3.0, -1.0], [2.0, 1.0, 0.0, -1.0], 0.5, activation="cubed_relu"
    )


def random_net(d: int, k: int, seed: int, activation: str = "relu") -> OneHiddenNet:
    rng = stream(seed, "generic network", d, k)
    return OneHiddenNet(
        rng.standard_normal((k, d)), rng.standard_normal(k), rng.standard_normal(k), 0.2, activation
    )


def with_activation(net: OneHiddenNet, activation: str) -> OneHiddenNet:
    return OneHiddenNet(net.weights, net.output, net.bias, net.intercept, activation)


def proved(found: EquivalentSets) -> bool:
    return found.complete and not found.sets


def units(net: OneHiddenNet) -> set[tuple[float, ...]]:
    rows = np.column_stack([net.weights, net.bias, net.output])
    return {tuple(row) for row in np.round(rows, 6) + 0.0}


TIED = [
    (clip(), (0, 1)),
    (hat(), (0, 1, 2)),
    (star(), (0, 1, 2)),
    *((with_activation(hat(), name), (0, 1, 2)) for name in ("leaky_relu", "softplus", "gelu")),
    (squared_tie(), (0, 1, 2)),
    (cubed_tie(), (0, 1, 2, 3)),
]


@pytest.mark.parametrize(("net", "chosen"), TIED)
def test_reversed_set_computes_the_same_function_with_other_units(net, chosen):
    found = equivalent_sets(net)
    assert found.complete
    assert not proved(found)
    assert found.sets == (chosen,)
    X = 3 * stream(1, "points").standard_normal((300, net.n_inputs))
    y = net.predict(X)
    scale = np.max(np.abs(net.activation(X @ net.weights.T + net.bias)) @ np.abs(net.output))
    assert np.max(np.abs(found.networks[0].predict(X) - y)) < 100 * EPS * scale
    assert units(found.networks[0]) != units(net.canonical())
    part = reversed_units(net, chosen[:1])  # one unit of the set alone must not do
    assert np.max(np.abs(part.predict(X) - y)) > 1e-3 * scale


@pytest.mark.parametrize(("net", "chosen"), TIED)
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_units_of_measurement_do_not_change_the_sets(net, chosen, size):
    rng = stream(2, "measurement")
    spread = size * np.exp(rng.standard_normal(net.n_inputs))
    centre = 3 * spread * rng.standard_normal(net.n_inputs)
    weights = net.weights / spread
    moved = OneHiddenNet(weights, net.output, net.bias - weights @ centre, net.intercept, net.activation)
    found = equivalent_sets(moved, centre=centre, spread=spread)
    assert found.sets == (chosen,)
    Z = rng.standard_normal((200, net.n_inputs))
    y = net.predict(Z)
    error = np.max(np.abs(found.networks[0].predict(centre + spread * Z) - y))
    assert error < 1e4 * EPS * np.max(np.abs(y - y.mean()))  # biases cancel means of three spreads
    assert proved(equivalent_sets(random_net(2, 3, 4), spread=np.full(2, size)))


def test_a_clip_with_fixed_intercept_has_determined_sides():
    assert proved(equivalent_sets(clip(), intercept=False))
    assert equivalent_sets(hat(), intercept=False).sets == ((0, 1, 2),)  # sum w b = 0 too


@pytest.mark.parametrize("activation", ["relu", "softplus", "cubed_relu"])
def test_mirror_images_are_reversals_of_each_other(activation):
    a = np.array([0.3, -1.2])
    net = OneHiddenNet(np.array([a, -a, [0.5, 0.1]]), [1.5, 1.5, 1.0], [0.4, -0.4, 0.2], 0.0, activation)
    assert proved(equivalent_sets(net))
    lame = OneHiddenNet(net.weights, [1.5, 1.5, 1.0], [0.4, -0.1, 0.2], 0.0, activation)
    assert equivalent_sets(lame).sets == (
        ((0, 1),) if activation != "cubed_relu" else ()
    )  # no mirror image: an equivalent set


@pytest.mark.parametrize(("d", "k"), [(1, 3), (2, 12), (2, 20), (5, 5), (5, 9), (10, 30), (50, 50), (20, 40)])
def test_generic_networks_have_no_equivalent_sets(d, k):
    for activation in ("relu", "squared_relu"):
        assert proved(equivalent_sets(random_net(d, k, 0, activation)))


def test_a_hat_is_found_among_fifty_units():
    rng = stream(3, "fifty")
    weights, output, bias = rng.standard_normal((50, 50)), rng.standard_normal(50), rng.standard_normal(50)
    weights[[7, 23, 41]] = weights[7]
    output[[7, 23, 41]] = 0.8 * np.array([1, -2, 1])
    assert equivalent_sets(OneHiddenNet(weights, output, bias)).sets == ((7, 23, 41),)
    narrow = equivalent_sets(
        OneHiddenNet(weights[:, :30], output, bias)
    )  # 20 relations among all units besides
    assert (7, 23, 41) in narrow.sets
    output[23] *= 1 + 1e-6  # a hundred times the tolerance
    assert proved(equivalent_sets(OneHiddenNet(weights, output, bias)))


def test_out_of_reach_is_not_a_proof():
    found = equivalent_sets(random_net(2, 60, 0))
    assert not found.complete
    assert not proved(found)


def test_conventions_are_told_from_proofs():
    for name in ("tanh", "sigmoid", "erf", "abs"):
        assert proved(equivalent_sets(with_activation(clip(), name)))
    found = equivalent_sets(random_net(3, 3, 0), linear=True)
    assert "convention" in found.reason
    assert proved(equivalent_sets(random_net(3, 3, 0, "squared_relu"), linear=True))
    a = np.array([0.6, -0.8])
    ramp = OneHiddenNet(np.array([a, a]), [1.0, -1.0], [0.5, -0.5], 0.0, "squared_relu")  # leaves 2 <a, x>
    assert proved(equivalent_sets(ramp))
    assert equivalent_sets(ramp, linear=True).sets == ((0, 1),)


def by_force(columns: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Minimal sets of sum zero of an integer matrix, from all 2^k."""
    k, kept = columns.shape[1], []
    for size in range(1, k + 1):
        for c in combinations(range(k), size):
            if not np.any(columns[:, c].sum(axis=1)) and not any(set(s) <= set(c) for s in kept):
                kept.append(c)
    return tuple(kept)


@pytest.mark.parametrize("seed", range(60))
def test_search_agrees_with_all_subsets(seed):
    rng = stream(seed, "integers")
    k, m = int(rng.integers(2, 11)), int(rng.integers(1, 6))
    columns = rng.integers(-3, 4, (m, k))
    if seed % 2:  # of rank one or two
        columns = rng.integers(-2, 3, (m, 2)) @ rng.integers(-2, 3, (2, k))
    turn = np.linalg.qr(rng.standard_normal((m, m)))[0]  # the same sets, in real numbers
    found = zero_subset_sums(turn @ columns, 1e-9, most=10**6)
    if not np.any(columns):
        return
    assert found.complete
    assert sorted(found.sets) == sorted(by_force(columns))


def test_an_exhaustive_search_finds_a_planted_set():
    rng = stream(9, "planted")
    columns = rng.standard_normal((6, 27))  # 21 free entries
    assert zero_subset_sums(columns, 1e-9).sets == ()
    columns[:, 20] = -columns[:, [1, 4, 11, 13, 17]].sum(axis=1)
    found = zero_subset_sums(columns, 1e-9)
    assert found.complete
    assert found.sets == ((1, 4, 11, 13, 17, 20),)


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "squared_relu", "cubed_relu"])
def test_reversal_columns_are_the_change_of_the_function(activation):
    net, chosen = random_net(2, 4, 1, activation), (0, 2, 3)
    columns = reversal_columns(net, absorbed=-1)
    X = stream(0, "points of reversals").standard_normal((len(columns), 2))
    change = net.predict(X) - reversed_units(net, chosen, intercept=False).predict(X)
    found = np.sqrt(len(X)) * columns[:, chosen].sum(axis=1)
    assert np.max(np.abs(found - change)) < 1e3 * EPS * np.max(np.abs(change))
    assert np.max(np.abs(change)) > 0.1


def test_tied_sets_leave_nothing():
    for net, chosen in TIED:
        columns = reversal_columns(net)[:, chosen]
        assert np.max(np.abs(columns.sum(axis=1))) < 1e3 * EPS
        assert np.max(np.abs(columns)) > 0.1


def on_lattice(net, X):
    """The checks of rows that stand twice."""
    return lattice_checks(local_fit(net, planted(net, np.repeat(X, 2, axis=0))))


def test_a_lone_row_off_lets_other_units_be_reversed():
    """Integers 0 … 9: unit 0 is off at 0 only, a line elsewhere, and unit 1 is reversed against it."""
    X = np.arange(10.0)[:, None]
    truth = OneHiddenNet([[1.0], [1.0]], [2.0, 0.5], [-0.75, -5.25])
    # 0.5 (x - 5.25)₊ = 0.5 (x - 5.25) + 0.5 (5.25 - x)₊, and the line joins unit 0: slope 2.5 on rows 1 to 9.
    intercept = 0.5 * 0 - 0.5 * 5.25
    offset = (2 * -0.75 - 0.5 * 5.25 - intercept) / 2.5
    other = OneHiddenNet([[1.0], [-1.0]], [2.5, 0.5], [offset, 5.25], intercept)
    assert np.max(np.abs(other.predict(X) - truth.predict(X))) < 1e3 * EPS
    assert proved(equivalent_sets(truth))  # not equivalent everywhere
    (check,) = on_lattice(truth, X)
    assert check.value == -1  # one direction is absorbed
    assert not check.passed
    wide = np.arange(-9.0, 20.0)[:, None]
    assert on_lattice(truth, wide)[0].passed


def test_a_facet_is_counted_as_such_however_many_rows_it_has():
    """A 0/1 column beside integers: one unit is off on a whole facet of rows, and rows repeat."""
    grid = np.array(list(product((0.0, 1.0), range(8))))
    net = OneHiddenNet([[1.0, 0.01], [0.3, 1.0]], [1.0, 1.0], [-0.5, -3.6])
    (check,) = on_lattice(net, np.repeat(grid, 25, axis=0))
    assert check.value <= -1
    assert not check.passed
    X = stream(0, "rows").standard_normal((400, 2))
    assert on_lattice(random_net(2, 2, 0), X)[0].passed
