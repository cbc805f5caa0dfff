"""The population start: batched descents against plain least squares, children against their parents."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import normal, one_sentence, planted, teacher, worst_error

import onehidden as oh
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Samples
from onehidden.precision import double
from onehidden.run import Run
from onehidden.starts import Population, Refused
from onehidden.starts.candidate import complete, search_fit, search_form
from onehidden.starts.descents import descend, looked, mean_squares, normal_equations, table
from onehidden.starts.flock import Flock, Herd, herd_of
from onehidden.starts.offspring import drawn_units, mixed, own_units, pooled, shared_units

D, K, N = 4, 3, 60


def planes_of(form, weights, bias):
    return np.column_stack([weights, bias])[:, : form.d + form.bias]


def few(activation="relu", bias=0.5, weight=None):
    """A problem of few rows, its search form, its table in double, and the true hyperplanes."""
    net = teacher(activation, D, K, rows="uneven", output="uneven", bias=bias)
    problem = planted(net, normal(N, D))
    if weight is not None:
        problem = problem.with_rows(Samples(problem.samples.X, problem.samples.y, weight))
    form = search_form(problem)
    inner = problem.begin.inward(net)
    with double():
        return problem, form, table(problem, form, np.float64), planes_of(form, inner.weights, inner.bias)


def some_planes(form, count, seed=3):
    return np.random.default_rng(seed).standard_normal((count, form.k, form.d + form.bias))


LOOK = jax.jit(looked, static_argnums=0)
EQUATIONS = jax.jit(normal_equations, static_argnums=0)


@pytest.mark.parametrize(
    ("activation", "bias", "weighted"), [("relu", 0.5, True), ("relu", 0.0, False), ("tanh", 0.5, True)]
)
def test_the_gradient_is_the_slope_of_the_projected_loss(activation, bias, weighted):
    weight = np.random.default_rng(5).uniform(0.5, 1.5, N) if weighted else None
    _, form, rows, _ = few(activation, bias, weight if weight is None else weight / weight.mean())
    planes, along, h = some_planes(form, 2), some_planes(form, 2, seed=4), 1e-6
    with double():
        _, gradient = EQUATIONS(form, rows, LOOK(form, rows, jnp.asarray(planes)))
        ahead, behind = (
            N * np.asarray(mean_squares(LOOK(form, rows, jnp.asarray(planes + s * h * along)))) / 2
            for s in (1, -1)
        )
    slope = np.sum(np.asarray(gradient) * along.reshape(2, -1), axis=1)
    # Rounding of the difference is eps / h; the ridge of 1e-6 changes outputs by some 1e-5 of themselves.
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=1e-3)
    assert np.all(np.abs(slope) > 1e-2)


def test_kaufmans_hessian_is_the_projection_of_the_columns():
    _, form, rows, _ = few()
    with double():
        planes = jnp.asarray(some_planes(form, 1))
        seen = LOOK(form, rows, planes)
        hessian, _ = EQUATIONS(form, rows, seen)
        x = np.asarray(rows.x)[:, : form.d + form.bias]
        s = np.asarray(seen.slopes * seen.output)[0]  # (k, n) times the one output (k, 1)
        J = (s[:, :, None] * x[None]).transpose(1, 0, 2).reshape(N, -1)
        columns = np.column_stack([np.asarray(seen.units)[0].T, np.asarray(rows.fixed)])
        basis = np.linalg.qr(columns)[0]
        J = J - basis @ (basis.T @ J)
    # 1e-4: a ridge of 1e-6 on a Gram matrix whose condition number is some tens.
    np.testing.assert_allclose(hessian[0], J.T @ J, atol=1e-4 * np.max(np.abs(J.T @ J)))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_loss_of_a_batch_is_that_of_least_squares(activation):
    problem, form, rows, _ = few(activation)
    planes = some_planes(form, 4)
    with double():
        found = np.asarray(mean_squares(LOOK(form, rows, jnp.asarray(planes))))
    for plane, loss in zip(planes, found, strict=True):
        theta = complete(problem, form, plane[:, :D], plane[:, D])
        expected = search_fit(problem, form).loss(theta) / problem.n
        assert loss == pytest.approx(expected, rel=1e-4)
        assert loss > 1e-3


def test_a_descent_goes_down_and_ends_at_the_truth_from_nearby():
    _, form, rows, truth = few()
    with double():
        near = truth / np.linalg.norm(truth, axis=1, keepdims=True) + 0.05 * some_planes(form, 3)
        begin = np.asarray(mean_squares(LOOK(form, rows, jnp.asarray(near))))
        _, loss = descend(form, rows, jnp.asarray(near), jnp.asarray(40))
    assert np.all(begin > 1e-5)
    assert np.all(np.asarray(loss) < 1e-12)  # a ridge of 1e-6 leaves its square


def test_pooling_picks_the_true_units_out_of_both_parents():
    _, form, rows, truth = few()
    with double():
        first, second = some_planes(form, 2)
        first[0], second[1], second[2] = truth[0], truth[1], truth[2]
        everything = jnp.asarray(np.arange(2 * K)[None])
        child = pooled(form, rows, jnp.asarray(first[None]), jnp.asarray(second[None]), everything)
        loss = float(mean_squares(LOOK(form, rows, child))[0])
        parents = np.asarray(mean_squares(LOOK(form, rows, jnp.asarray(np.stack([first, second])))))
    assert loss < 1e-10 < np.min(parents)


def test_a_mixed_child_has_its_own_units_and_no_second_copy_of_one():
    _, form, rows, truth = few()
    other = some_planes(form, 1)[0]
    other[1] = -2.0 * truth[0]  # the first unit again: turned, and of another length
    own = np.array([[True, False, True]])
    with double():
        child = np.asarray(
            mixed(form, rows, jnp.asarray(truth[None]), jnp.asarray(other[None]), jnp.asarray(own))
        )[0]
        shared = np.asarray(shared_units(form, rows, jnp.asarray(np.stack([truth, child, other]))))
    np.testing.assert_array_equal(child[:2], truth[[0, 2]])
    assert not np.array_equal(child[2], other[1])
    assert shared.tolist() == [3, 2, 1]


def test_draws_take_some_of_both_parents():
    rng = np.random.default_rng(0)
    drawn, own = drawn_units(rng, 200, 5), own_units(rng, 200, 6)
    assert drawn.shape == (200, 8)
    assert all(len(set(row)) == 8 for row in drawn)
    assert set(own.sum(axis=1)) == {2, 3, 4}


def test_a_herd_is_sorted_finite_and_thinned_to_losses_of_their_own():
    planes = np.arange(5.0).reshape(5, 1, 1)
    herd = herd_of(planes, np.array([3.0, np.nan, 1.0, 1.0 + 1e-6, 2.0]))
    assert herd.planes.ravel().tolist() == [2.0, 3.0, 4.0, 0.0]
    assert herd.distinct(3).loss.tolist() == [1.0, 2.0, 3.0]
    both = herd.best(1).joined(Herd(planes[:1], np.array([0.5])))
    assert both.loss.tolist() == [0.5, 1.0]


def test_batches_of_any_size_say_the_same():
    problem, form, _, _ = few()
    planes = some_planes(form, 7)
    one, other = (Flock(problem, form, members).descended(planes, 0, Run()) for members in (7, 3))
    np.testing.assert_allclose(one.loss, other.loss, rtol=1e-4)  # a thousand roundings of float32
    np.testing.assert_array_equal(one.planes, other.planes)
    assert len(one.loss) == 7


def test_too_little_time_leaves_some_members():
    problem, form, _, _ = few()
    herd = Flock(problem, form, 3).descended(some_planes(form, 7), 0, Run(max_seconds=1e-9))
    assert len(herd.loss) == 3


def test_a_population_finds_units_where_restarts_do_not():
    net = teacher("relu", 6, 6, seed=3, rows="uneven", output="uneven", bias=0.5)
    problem = planted(net, normal(100, 6, seed=4))  # 100 rows, 49 parameters
    heard = []
    found = list(Population(members=128).propose(problem, Run(0, 60.0, heard.append)))
    alone = list(oh.starts.Random(4).propose(problem, Run(0)))
    assert problem.rows.rounding.found(found[-1].loss)
    assert not any(problem.rows.rounding.found(one.loss) for one in alone)
    assert worst_error(problem.begin.outward(found[-1].network), net) < 1e-6
    told = [record for record in heard if "of 6 units shared" in record.stage]
    assert [record.step for record in told] == list(range(len(told))) != []


def test_guests_bring_their_units():
    problem, _, _, truth = few()
    guest = next(iter(oh.starts.Random(1).propose(problem, Run(3))))
    guest = replace(guest, weights=truth[:, :D], bias=truth[:, D], loss=1e-3)
    heard = []
    settings = Population(members=8, generations=1, guests=(guest,))
    found = next(iter(settings.propose(problem, Run(0, None, heard.append))))
    assert problem.rows.rounding.found(found.loss)
    assert next(r for r in heard if r.stage.startswith("population")).loss < 1e-9


def test_what_a_population_cannot_be_is_said_in_a_sentence():
    with pytest.raises(ValueError, match="members") as error:
        Population(members=2)
    one_sentence(error, "members", "8")
    with pytest.raises(ValueError, match="generation"):
        Population(generations=0)


def test_inputs_whose_pairs_do_not_fit_are_refused():
    around = Coordinates(np.eye(800), np.eye(800), np.zeros(800), 0.0, 1.0, np.zeros((800, 0)))
    form = Form(oh.activations.get("relu"), 800, 1)
    problem = Problem(Samples(np.zeros((900, 800)), np.zeros(900)), form, around)
    with pytest.raises(Refused, match="pairs"):
        next(iter(Population().propose(problem, Run())))
